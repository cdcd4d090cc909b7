//! A Secret that an Agent leaves to its own consent, on a real API server: read at each write of what runs, never before, and never copied.

use anyhow::{Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{TestNamespace, wait_for};

use super::stage::{CONTROLLERS, agent, condition, image, ready, shared};

async fn annotated(ns: &TestNamespace, usable_by: Value) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {keys::ANNOTATION_USABLE_BY: usable_by}}});
    ns.api::<Secret>().patch("theirs", &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

#[tokio::test]
async fn mend_06_a_secret_by_consent_is_asked_at_each_write_and_what_runs_stays_without_it() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-consent").await?;
    ns.accepts(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "theirs"},
        "stringData": {"token": "canary-of-consent"}}))
        .await?;
    let agents = ns.api::<Agent>();
    let says = |wanted: &'static str| move |stored: &Agent| condition(stored, "Ready") == wanted;
    let members = json!({
        "metadata": {"annotations": {keys::ANNOTATION_SECRETS_BY_CONSENT: "theirs"}},
        "spec": {"podTemplateSpec": {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "theirs"}}]}}},
    });
    ns.accepts(&agent("weather", &members)).await?;
    let stored = wait_for(&agents, "weather", says("False/SecretNotUsable")).await?;
    let told = serde_json::to_string(&stored.status)?;
    ensure!(told.contains("Secret theirs") && !told.contains("canary"), "{told}");
    assert!(ns.api::<Deployment>().get_opt("weather").await?.is_none());
    assert!(ns.api::<Service>().get_opt("weather").await?.is_none());

    annotated(&ns, json!("agents")).await?;
    wait_for(&agents, "weather", ready).await?;
    let before = ns.api::<Deployment>().get("weather").await?;

    annotated(&ns, Value::Null).await?;
    let mark = cp.audit().mark()?;
    let patch = json!({"spec": {"imageSource": {"image": "example.com/shell:v1"}}});
    agents.patch("weather", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    wait_for(&agents, "weather", says("False/SecretNotUsable")).await?;
    let now = ns.api::<Deployment>().get("weather").await?;
    assert_eq!((image(&now), now.metadata.generation), (image(&before), before.metadata.generation), "what runs stays");
    let asked = cp.audit().settled(mark).await?.by(CONTROLLERS);
    let reads = asked.iter().filter(|one| one.resource == "secrets" && one.name == "theirs").count();
    ensure!(reads >= 1, "the Secret was read anew");

    annotated(&ns, json!("builds,agents")).await?;
    wait_for(&ns.api::<Deployment>(), "weather", |found| image(found) == "example.com/shell:v1").await?;
    wait_for(&agents, "weather", ready).await?;
    Ok(())
}
