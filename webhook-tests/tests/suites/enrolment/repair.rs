//! Pods that run unprotected: seen, said, counted, and evicted when that is wanted.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::{Installation, Installing, Options, installation, wait_for, wait_until};

use super::*;

/// Until the API server has heard that the webhook is gone, which a Pod on trial shows.
async fn calls_nobody(ns: &TestNamespace) -> Result<()> {
    let probe = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "labels": {keys::LABEL_TYPE: "agent"}},
        "spec": {"containers": [{"name": "agent", "image": "ghcr.io/acme/weather:v1"}]}});
    let deadline = tokio::time::Instant::now() + webhook_tests::patience::patience();
    while ns.create(&probe, true).await?.result?.annotations().contains_key(keys::ANNOTATION_STATUS) {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "the webhook is called still");
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    Ok(())
}

/// Until an eviction was answered so.
async fn answered(cp: &ControlPlane, mark: webhook_tests::Mark, code: u16) -> Result<()> {
    let deadline = tokio::time::Instant::now() + 3 * webhook_tests::patience::patience();
    let so = |one: &webhook_tests::Request| one.subresource == "eviction" && one.code == Some(code);
    while !cp.audit().since(mark)?.by(USER).iter().any(so) {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "no eviction is answered with {code}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test]
async fn unprotected_pods_are_reported_and_evicted_one_at_a_time_as_budgets_allow() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { platform: "repair: evict\n".into(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("repair").await?;
    ns.accepts(&deployment("web", 2)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 2).await?;
    // A disruption budget that allows nothing, for the beginning.
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    ns.accepts(&budget).await?;

    // Somebody takes the webhook away, and Pods are made meanwhile.
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(cp.client().await?);
    let mut configuration = configurations.get(keys::WEBHOOK_CONFIGURATION).await?;
    configurations.delete(keys::WEBHOOK_CONFIGURATION, &DeleteParams::default()).await?;
    calls_nobody(&ns).await?;
    for pod in pods(&ns, "web", 2, true).await? {
        ns.api::<Pod>().delete(&pod.metadata.name.unwrap_or_default(), &DeleteParams::default()).await?;
    }
    let mark = cp.audit().mark()?;
    let bare = pods(&ns, "web", 2, false).await?;
    // While one of them is replaced, the other one still counts.
    let none = |art: &AgentRuntime| {
        condition(art, "PodsCurrent") == "False/UnprotectedPods"
            && art.status.as_ref().unwrap().configured_pods.is_none()
    };
    wait_for(&ns.api::<AgentRuntime>(), "weather", none).await?;
    let told = |event: &Event| event.reason.as_deref() == Some("UnprotectedPods");
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(told)).await?;
    let deadline = tokio::time::Instant::now() + webhook_tests::patience::patience();
    while installation.controllers[0].metrics().await?.sum("drawbridge_drifted_pods", &[("state", "unprotected")])
        != 2.0
    {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "never counted");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    configuration.metadata.resource_version = None;
    configuration.metadata.uid = None;
    configurations.create(&PostParams::default(), &configuration).await?;

    // The budget holds both back until it allows one to be away; a refused eviction is asked for again half a minute later.
    answered(&cp, mark, 429).await?;
    assert_eq!(pods(&ns, "web", 2, false).await?.len(), bare.len());
    merge::<k8s_openapi::api::policy::v1::PodDisruptionBudget>(&ns, "web", json!({"spec": {"minAvailable": 1}}))
        .await?;
    answered(&cp, mark, 201).await?;
    rolled(&ns, "weather", 2).await?;
    says(&ns, "weather", "PodsCurrent", "True/PodsCurrent").await?;
    pods(&ns, "web", 2, true).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2, "no rollout");
    Ok(())
}
