//! B4 with the real API server: it shows a client certificate to the webhook, by its admission control configuration.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use webhook_tests::patience::patience;
use webhook_tests::pki::{Authority, Pair};
use webhook_tests::{Installation, Installing, Options, installation};

/// The files by which an API server is given an identity for its webhook calls.
fn admission_control(folder: &Path, identity: &Pair) -> Result<String> {
    let (certificate, key) = (folder.join("client.crt"), folder.join("client.key"));
    std::fs::write(&certificate, &identity.certificate)?;
    std::fs::write(&key, &identity.key)?;
    let kubeconfig = folder.join("webhooks.kubeconfig");
    let user = json!({ "client-certificate": certificate, "client-key": key });
    let users = json!([{ "name": "*.kagenti-system.svc", "user": user }, { "name": "*", "user": user }]);
    std::fs::write(&kubeconfig, json!({ "apiVersion": "v1", "kind": "Config", "users": users }).to_string())?;
    let plugin = |name: &str| {
        json!({ "name": name, "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig,
        }})
    };
    let plugins = json!([plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")]);
    let file = folder.join("admission-control.yaml");
    let document =
        json!({ "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins });
    std::fs::write(&file, document.to_string())?;
    Ok(format!("--admission-control-config-file={}", file.display()))
}

/// An enrolled Pod, asked for without being stored: the answer of the API server in words.
pub(super) async fn try_a_pod(pods: &Api<Pod>) -> Result<(), String> {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"generateName": "agent-", "labels": {"kagenti.io/type": "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]},
    }))
    .map_err(|error| error.to_string())?;
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let pod = pods.create(&dry_run, &pod).await.map_err(|error| error.to_string())?;
    let injected = pod.metadata.annotations.is_some_and(|all| all.contains_key("kagenti.io/authbridge-status"));
    if injected { Ok(()) } else { Err("came back without our parts".to_owned()) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b4_an_api_server_with_the_right_certificate_is_answered_and_one_with_another_is_not() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (ours, theirs) = (Authority::new("webhook clients")?, Authority::new("somebody else")?);
    let identity = ours.client("kube-apiserver", &[])?;
    let options = Options::default().api_server_args(&[&admission_control(folder.path(), &identity)?]);
    let cp = installation::plane(options).await?;
    let accepted = folder.path().join("clients.crt");
    std::fs::write(&accepted, ours.certificate())?;
    let flags = [
        "--drain-delay=0s".to_owned(),
        format!("--webhook-client-ca={}", accepted.display()),
        "--webhook-client-name=kube-apiserver".to_owned(),
    ];
    let installing = Installing { flags: flags.to_vec(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let pods: Api<Pod> = Api::namespaced(cp.client().await?, "default");
    try_a_pod(&pods).await.map_err(anyhow::Error::msg)?;
    let webhook = &installation.webhooks[0];
    let refused = async || -> Result<f64> {
        let cause = [("cause", "client_certificate_refused")];
        Ok(webhook.metrics().await?.sum("drawbridge_handshake_failures_total", &cause))
    };
    ensure!(refused().await? == 0.0, "the API server was refused before");

    // Another authority from now on: the next connection is refused. The connection at hand was accepted and lives on.
    std::fs::write(&accepted, theirs.certificate())?;
    let taken = async {
        while !webhook.log().contains("client certificates of other authorities are accepted now") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience(), taken).await?;
    cp.restart(webhook_tests::Process::ApiServer).await?;
    let refusal = tokio::time::timeout(patience(), async {
        loop {
            match try_a_pod(&pods).await {
                Err(refusal) if refusal.contains("failed calling webhook") => return refusal,
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    })
    .await?;
    ensure!(refusal.contains("tls:"), "{refusal}");
    // It is counted once the API server has been told.
    let counted = async {
        while refused().await? < 1.0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(patience(), counted).await.context("the refusal is counted")??;

    // Both side by side, as in a change of authority: accepted again, without a restart of anybody.
    std::fs::write(&accepted, format!("{}{}", theirs.certificate(), ours.certificate()))?;
    tokio::time::timeout(patience(), async {
        while try_a_pod(&pods).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await?;
    Ok(())
}
