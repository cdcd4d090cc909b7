//! Fields of the Pod that the API server knows or does not, and the labels of an Agent's account.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Service, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use serde_json::json;
use webhook_tests::{TestNamespace, wait_for};

use super::stage::{agent, ready, shared};

async fn nothing_is_made(ns: &TestNamespace, name: &str) -> Result<()> {
    ensure!(ns.api::<Agent>().get_opt(name).await?.is_none(), "{name} is stored");
    ensure!(ns.api::<Service>().get_opt(name).await?.is_none(), "{name} has a Service");
    Ok(())
}

/// A38: every field that the API server does not know is named by its path in the Agent, before anything is stored; what it
/// knows and our bindings do not reaches the Deployment.
#[tokio::test]
async fn mend_12_unknown_fields_of_the_pod_are_refused_all_at_once_and_younger_ones_are_passed_on() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-unknown").await?;
    let pod = json!({"futureField": {"deep": 1}, "containers": [{"name": "agent", "imagePullPolcy": "Always"}]});
    let unknown = agent("weather", &json!({"spec": {"podTemplateSpec": {"spec": pod}}}));
    let refusal = ns.accepts(&unknown).await.err().context("it is accepted")?.to_string();
    for part in [
        "FieldUnknown",
        "spec.podTemplateSpec.spec.futureField is not a field",
        "spec.podTemplateSpec.spec.containers[0].imagePullPolcy is not a field",
        "did you mean imagePullPolicy?",
    ] {
        ensure!(refusal.contains(part), "{part}: {refusal}");
    }
    nothing_is_made(&ns, "weather").await?;
    // Younger than our bindings, and this API server has it.
    let younger = json!({"spec": {"podTemplateSpec": {"spec": {"hostnameOverride": "weather"}}}});
    ns.accepts(&agent("younger", &younger)).await?;
    wait_for(&ns.api::<Agent>(), "younger", ready).await?;
    let made: DynamicObject = super::stage::deployments(&ns).get("younger").await?;
    assert_eq!(made.data["spec"]["template"]["spec"]["hostnameOverride"], "weather");
    Ok(())
}

#[tokio::test]
async fn mend_13_the_account_follows_the_labels_of_its_agent() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-account").await?;
    let members = json!({"metadata": {"labels": {"team": "weather"}}, "spec": {"labels": {"tier": "gold"}}});
    ns.accepts(&agent("weather", &members)).await?;
    wait_for(&ns.api::<Agent>(), "weather", ready).await?;
    let account = ns.api::<ServiceAccount>().get("weather").await?;
    let label = |account: &ServiceAccount, key: &str| account.labels().get(key).cloned();
    assert_eq!(
        (label(&account, "team").as_deref(), label(&account, "tier").as_deref()),
        (Some("weather"), Some("gold"))
    );
    assert_eq!(account.automount_service_account_token, Some(false));
    let uid = account.uid();
    let change = Patch::Merge(json!({"metadata": {"labels": {"team": null, "owner": "us"}}}));
    ns.api::<Agent>().patch("weather", &PatchParams::default(), &change).await?;
    let follows =
        |account: &ServiceAccount| label(account, "team").is_none() && label(account, "owner").as_deref() == Some("us");
    let account = wait_for(&ns.api::<ServiceAccount>(), "weather", follows).await?;
    assert_eq!((account.uid(), label(&account, "tier").as_deref()), (uid, Some("gold")));
    let template = ns.api::<Deployment>().get("weather").await?.spec.and_then(|spec| spec.template.spec);
    assert_eq!(template.and_then(|pod| pod.service_account_name).as_deref(), Some("weather"));
    Ok(())
}
