//! Has the API server ask the webhook that only answers ([`crate::stamp`]) about Pods with label [`LABEL`].
//!
//! In: the installation. Out: a second webhook on the same control plane, a process of its own that is called as a Service, as
//! Drawbridge is: what differs between the two lanes is what is done with a review.

use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::world::World;
use crate::peers::{Peer, Peers};

/// Label of the Pods that this webhook is asked about; its value is of no interest.
pub(super) const LABEL: &str = "bench.example.com/stamp";
/// Name of its Service.
const SERVICE: &str = "bench-stamp";

/// Starts and registers it; ready when a Pod is changed by it. It serves for as long as what is returned lives.
pub(super) async fn start(world: &World, pod: &Value) -> Result<Peer> {
    let files = Peers::named(&format!("{SERVICE}.{}.svc", keys::OPERATOR_NAMESPACE))?;
    let peer = files.stamp(&world.target(world.webhook()?), world.bundle())?;
    let port = peer.target.address.port();
    world.cp.publish_service(keys::OPERATOR_NAMESPACE, SERVICE, port).await?;
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": { "name": SERVICE },
        "webhooks": [{
            "name": "stamp.bench.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail", "timeoutSeconds": 10,
            "clientConfig": {
                "service": { "namespace": keys::OPERATOR_NAMESPACE, "name": SERVICE, "port": port, "path": "/" },
                "caBundle": k8s_openapi::ByteString(files.bundle()?),
            },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
            "objectSelector": { "matchExpressions": [{ "key": LABEL, "operator": "Exists" }] },
        }],
    }))?;
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(world.cp.client().await?);
    configurations.create(&PostParams::default(), &configuration).await?;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let created = world.namespace.create(pod, true).await?;
        match created.result {
            Ok(pod) if pod.data.pointer("/spec/initContainers/0").is_some() => return Ok(peer),
            Err(status) if tokio::time::Instant::now() > deadline => return Err(anyhow!("{}", status.message)),
            _ => ensure!(tokio::time::Instant::now() < deadline, "the Pod is not changed"),
        }
        // The API server reads webhook configurations through a watch of its own.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
