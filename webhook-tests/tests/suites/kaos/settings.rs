//! Settings that are off by default, under the installation's own rights and the policies that fence its accounts.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use webhook_tests::patience::patience;
use webhook_tests::{Installation, Installing, Options, installation, wait_for, wait_gone};

use super::{objects, ready};

const ON: &str = "kaos:\n  restrictModelAPIs: true\n  rollOnSecretChange: true\n";

fn annotation(deployment: &Deployment) -> Option<&str> {
    let template = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    template.annotations.as_ref()?.get("kaos.tools/references").map(String::as_str)
}

/// Rulings 13 and 17: a ModelAPI lets in who names it, and its Pods are made again once the Secret of its key is another.
#[tokio::test]
async fn rulings_13_and_17_a_model_api_is_restricted_and_follows_its_secret() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { platform: ON.to_owned(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("settings").await?;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider"}, "stringData": {"key": "one"}});
    ns.accepts(&secret).await?;
    let key = json!({"valueFrom": {"secretKeyRef": {"name": "provider", "key": "key"}}});
    let api = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "m"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"], "apiKey": key}},
    });
    ns.accepts(&api).await?;
    let agent = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a"},
        "spec": {"modelAPI": "m", "model": "openai/x"},
    });
    ns.accepts(&agent).await?;
    let seen = |api: &DynamicObject| ready(api) && api.data["status"]["references"].is_string();
    wait_for(&objects(&ns, "ModelAPI"), "m", seen).await?;
    let lets_in = |policy: &NetworkPolicy, names: &[&str]| {
        let ingress = policy.spec.as_ref().and_then(|spec| spec.ingress.as_ref());
        let text = json!(ingress).to_string();
        text.contains(&json!({"key": "agent", "operator": "In", "values": names}).to_string())
            || (names.is_empty() && !text.contains("agent"))
    };
    let policies = ns.api::<NetworkPolicy>();
    wait_for(&policies, "modelapi-m", |policy| lets_in(policy, &["a"])).await?;
    wait_for(&objects(&ns, "Agent"), "a", ready).await?;
    let deployments = ns.api::<Deployment>();
    ensure!(annotation(&deployments.get("modelapi-m").await?).is_none(), "what is seen first rolls nothing");

    // A process that begins asks at once; one that runs asks once a minute.
    let controllers = installation.controllers.first().context("a process with role controllers")?;
    controllers.stop(patience()).await?;
    let changed = json!({"stringData": {"key": "two"}});
    ns.api::<Secret>().patch("provider", &PatchParams::default(), &Patch::Merge(&changed)).await?;
    objects(&ns, "Agent").delete("a", &kube::api::DeleteParams::default()).await?;
    controllers.start_again()?;
    wait_for(&deployments, "modelapi-m", |deployment| annotation(deployment).is_some()).await?;
    wait_gone(&objects(&ns, "Agent"), "a").await?;
    wait_for(&policies, "modelapi-m", |policy| lets_in(policy, &[])).await?;
    Ok(())
}
