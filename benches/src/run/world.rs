//! A control plane with an installation on it, and one agent whose Pods can be injected.

use anyhow::{Context as _, Result};
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::installation::BRISK;
use webhook_tests::{ControlPlane, Drawbridge, Installation, Installing, Options, TestNamespace, wait_for};

use crate::load::Target;
use crate::tls::Trust;
use drawbridge_counts::fixture::{self, WORKLOAD};

/// Host name of the webhook, as the API server checks it.
const HOST: &str = "drawbridge-webhook.kagenti-system.svc";

/// An installation that waits for as long as a cluster's does, but for the end of its drain: what suites shorten so as not to wait for it
/// costs processor time, which is measured here.
pub(super) fn as_shipped() -> Installing {
    let flags = BRISK.into_iter().filter(|flag| flag.starts_with("--drain-delay=")).map(str::to_owned).collect();
    Installing { flags, ..Installing::default() }
}

/// See the module.
pub(super) struct World {
    pub(super) cp: ControlPlane,
    pub(super) installation: Installation,
    pub(super) namespace: TestNamespace,
    trust: Trust,
    bundle: Vec<u8>,
}

impl World {
    pub(super) async fn start() -> Result<Self> {
        let cp = ControlPlane::start(Options { scheduling: false, ..Options::default() }).await?;
        let installation = Installation::start(&cp, &as_shipped()).await?;
        directly(&cp, &installation).await?;
        let namespace = cp.namespace("bench").await?;
        namespace.apply(&deployment(namespace.name(), WORKLOAD).to_string()).await?;
        wait_for(&namespace.api::<ServiceAccount>(), WORKLOAD, |_: &ServiceAccount| true)
            .await
            .context("the ServiceAccount of the agent")?;
        let configurations: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
        let webhooks = configurations.get(keys::WEBHOOK_CONFIGURATION).await?.webhooks.unwrap_or_default();
        let bundle = webhooks.into_iter().find_map(|webhook| webhook.client_config.ca_bundle);
        let bundle = bundle.context("the webhook has no caBundle")?.0;
        let trust = Trust::new(HOST, &bundle)?;
        let world = Self { cp, installation, namespace, trust, bundle };
        world.injects().await?;
        Ok(world)
    }

    /// The process that serves reviews.
    pub(super) fn webhook(&self) -> Result<&Drawbridge> {
        self.installation.webhooks.first().context("no webhook process")
    }

    /// Where reviews go, past the API server.
    pub(super) fn target(&self, process: &Drawbridge) -> Target {
        let path = format!("{}?timeout=10s", keys::PATH_INJECT);
        Target { address: process.webhook(), path, trust: self.trust.clone() }
    }

    /// The certificates that the webhook is trusted by (PEM).
    pub(super) fn bundle(&self) -> &[u8] {
        &self.bundle
    }

    /// Waits until a Pod of the agent is injected: what its controllers make is known to the webhook.
    async fn injects(&self) -> Result<()> {
        let pod = fixture::manifest(self.namespace.name(), 4096);
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
        loop {
            let answer = self.namespace.create(&pod, true).await?;
            match answer.result {
                Ok(_) => return Ok(()),
                Err(status) if tokio::time::Instant::now() > deadline => {
                    anyhow::bail!("a Pod of the agent is not injected: {}", status.message)
                }
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }
}

/// Has the API server call the webhook itself: the balancer of the suites would add a hop that no cluster has.
async fn directly(cp: &ControlPlane, installation: &Installation) -> Result<()> {
    let port = installation.webhooks.first().context("no webhook process")?.webhook().port();
    cp.publish_service(keys::OPERATOR_NAMESPACE, keys::SERVICE_WEBHOOK, port).await?;
    let client = cp.client().await?;
    let operation = json!([{ "op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": port }]);
    let patch: Patch<Value> = Patch::Json(serde_json::from_value(operation)?);
    let params = PatchParams::default();
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    mutating.patch(keys::WEBHOOK_CONFIGURATION, &params, &patch).await?;
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
    validating.patch(keys::WEBHOOK_CONFIGURATION, &params, &patch).await?;
    Ok(())
}

/// An agent without Pods of its own.
pub(super) fn deployment(namespace: &str, name: &str) -> Value {
    let labels = json!({ "app.kubernetes.io/name": name, "kagenti.io/type": "agent" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": name, "namespace": namespace, "labels": labels },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": { "app.kubernetes.io/name": name } },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "agent", "image": "registry.example.com/agents/weather:1.4.2",
                    "ports": [{ "containerPort": 8000 }] }] },
            },
        },
    })
}
