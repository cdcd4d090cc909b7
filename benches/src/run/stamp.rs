//! A webhook that does nothing but answer: what the API server itself needs to have a Pod changed.
//!
//! In: the installation. Out: a second webhook on the same control plane, for Pods with label [`LABEL`]. It answers the first
//! review of such a Pod with the patch that Drawbridge answered to a Pod that differs in labels only, with this Pod's token
//! volume in it, and a second, if there is one, with none; it reads of a review no more than its uid, that volume's name, and
//! whether the Pod has been changed. What is stored is the same, so what a creation takes longer than without any webhook is
//! the API server's own part.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};
use webhook_tests::pki::Authority;

use super::world::World;
use crate::echo;
use crate::load::{Connection, Target};

/// Label of the Pods that this webhook is asked about; its value is of no interest.
pub(super) const LABEL: &str = "bench.example.com/stamp";
const ADDRESS: &str = "127.0.0.1";
const UID: &str = "\"uid\":\"";
/// How the name of the volume begins that the API server made for the Pod's token: another one for every Pod.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// What the handler knows.
struct Stamp {
    /// The product, which is asked once.
    ours: Target,
    patch: tokio::sync::OnceCell<Recorded>,
}

/// The answer that is repeated.
struct Recorded {
    /// The patch, as text.
    patch: String,
    /// The token volume of the Pod that it was made for.
    volume: String,
}

/// Registers and serves it for as long as this process lives; ready when a Pod is changed by it.
pub(super) async fn start(world: &World, pod: &Value) -> Result<()> {
    let authority = Authority::new("bench stamp")?;
    let folder = tempfile::tempdir()?;
    let pair = authority.server(ADDRESS, &[ADDRESS])?;
    std::fs::write(folder.path().join("tls.crt"), &pair.certificate)?;
    std::fs::write(folder.path().join("tls.key"), &pair.key)?;
    let port = webhook_tests::Port::reserve()?;
    let stamp = Arc::new(Stamp { ours: world.target(world.webhook()?), patch: tokio::sync::OnceCell::new() });
    let router = Router::new().route("/", post(answer)).with_state(stamp);
    let number = port.number();
    tokio::spawn(async move {
        // Whoever calls in vain says so: the Pod is refused.
        drop(echo::listen(number, folder.path(), router).await);
        drop(port);
    });
    let configuration: MutatingWebhookConfiguration = serde_json::from_value(json!({
        "metadata": { "name": "bench-stamp" },
        "webhooks": [{
            "name": "stamp.bench.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "reinvocationPolicy": "IfNeeded", "failurePolicy": "Fail", "timeoutSeconds": 10,
            "clientConfig": {
                "url": format!("https://{ADDRESS}:{number}/"),
                "caBundle": k8s_openapi::ByteString(authority.certificate().into_bytes()),
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
            Ok(pod) if pod.data.pointer("/spec/initContainers/0").is_some() => return Ok(()),
            Err(status) if tokio::time::Instant::now() > deadline => return Err(anyhow!("{}", status.message)),
            _ => ensure!(tokio::time::Instant::now() < deadline, "the Pod is not changed"),
        }
        // The API server reads webhook configurations through a watch of its own.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn answer(State(stamp): State<Arc<Stamp>>, review: Bytes) -> Result<String, String> {
    let text = std::str::from_utf8(&review).map_err(|error| error.to_string())?;
    let uid = text.split_once(UID).and_then(|(_, rest)| rest.split_once('"')).ok_or("no uid")?.0;
    let patch = if text.contains(keys::ANNOTATION_STATUS) {
        String::new()
    } else {
        let asked = stamp.patch.get_or_try_init(|| async { record(&stamp.ours, text) }).await;
        let recorded = asked.map_err(|error| format!("{error:#}"))?;
        let patch = recorded.patch.replace(&recorded.volume, token_volume(text).ok_or("no token volume")?);
        let patch = json!(k8s_openapi::ByteString(patch.into_bytes()));
        format!(r#","patchType":"JSONPatch","patch":{patch}"#)
    };
    let kind = r#""kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1""#;
    Ok(format!(r#"{{{kind},"response":{{"uid":"{uid}","allowed":true{patch}}}}}"#))
}

/// The name of the Pod's token volume.
fn token_volume(review: &str) -> Option<&str> {
    let from = review.find(TOKEN_VOLUME)?;
    review[from..].split('"').next()
}

/// What Drawbridge answers to this Pod.
fn record(ours: &Target, text: &str) -> Result<Recorded> {
    let mut review: Value = serde_json::from_str(text)?;
    let labels = review.pointer_mut("/request/object/metadata/labels").context("a Pod without labels")?;
    labels["kagenti.io/type"] = json!("agent");
    let mut connection = Connection::open(ours)?;
    let answer: Value = serde_json::from_slice(connection.ask(review.to_string().as_bytes())?)?;
    let patch = answer.pointer("/response/patch").with_context(|| format!("no patch: {answer}"))?;
    let patch: k8s_openapi::ByteString = serde_json::from_value(patch.clone())?;
    let volume = token_volume(text).context("a Pod without a token volume")?.to_owned();
    Ok(Recorded { patch: String::from_utf8(patch.0)?, volume })
}
