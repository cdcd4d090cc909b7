//! Sandboxes: a definition that appears and disappears while everything else goes on, and Pods that are made again.
//!
//! Nobody here runs the Sandbox controller; the test does what it does.

use anyhow::Result;
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::json;
use webhook_tests::{Installation, Installing, Options, TestNamespace, installation, wait_for, wait_gone, wait_served};

use super::*;

fn sandboxes(ns: &TestNamespace) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("agents.x-k8s.io", "v1alpha1", "Sandbox"),
        "sandboxes",
    );
    Api::namespaced_with(ns.client(), ns.name(), &kind)
}

/// Waits for a state of a Sandbox.
async fn sandbox(ns: &TestNamespace, holds: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
    let deadline = tokio::time::Instant::now() + webhook_tests::patience::patience();
    loop {
        let found = sandboxes(ns).get("box").await?;
        if holds(&found) {
            return Ok(found);
        }
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "never so: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// What the Sandbox controller does for `replicas: 1`: one Pod from the template of that moment.
async fn make_pod(ns: &TestNamespace) -> Result<()> {
    let found = sandboxes(ns).get("box").await?;
    let mut pod = found.data["spec"]["podTemplate"].clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("box");
    pod["metadata"]["ownerReferences"] = json!([{"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "name": "box",
        "uid": found.uid(), "controller": true}]);
    let deadline = tokio::time::Instant::now() + webhook_tests::patience::patience();
    // A Pod that waits for its ServiceAccount is refused and asked for again, as controllers do.
    while let Err(status) = ns.create(&pod, false).await?.result {
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "{}", status.message);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    count(ns, 1).await
}

async fn count(ns: &TestNamespace, replicas: i64) -> Result<()> {
    let status = json!({"status": {"replicas": replicas}});
    sandboxes(ns).patch_status("box", &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

fn replicas(found: &DynamicObject) -> Option<i64> {
    found.data["spec"]["replicas"].as_i64()
}

#[tokio::test]
async fn case_042_043_044_049_sandboxes_come_restart_and_go_with_their_definition() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let _installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("boxes").await?;
    // case_044: without the definition the rest works, and an AgentRuntime says what is missing.
    ns.accepts(&deployment("web", 1)).await?;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    ns.accepts(&art("boxed", "Sandbox", "box", json!({}))).await?;
    let missing = |art: &AgentRuntime| condition(art, "Ready").starts_with("False/Target");
    wait_for(&ns.api::<AgentRuntime>(), "boxed", missing).await?;
    rolled(&ns, "weather", 1).await?;

    ns.apply(&webhook_tests::sandbox::definition().to_string()).await?;
    let crds: Api<CustomResourceDefinition> = Api::all(cp.client().await?);
    wait_served(&ns, "sandboxes.agents.x-k8s.io").await?;
    let mut object = json!({"apiVersion": "agents.x-k8s.io/v1alpha1", "kind": "Sandbox", "metadata": {"name": "box"},
        "spec": {"replicas": 1, "podTemplate": template("box")}});
    object["spec"]["podTemplate"]["metadata"]["annotations"] = json!({"team": "weather"});
    let object: DynamicObject = serde_json::from_value(object)?;
    sandboxes(&ns).create(&kube::api::PostParams::default(), &object).await?;
    let labelled =
        |found: &DynamicObject| found.data["spec"]["podTemplate"]["metadata"]["labels"][keys::LABEL_TYPE] == "agent";
    sandbox(&ns, labelled).await?;
    make_pod(&ns).await?;
    says(&ns, "boxed", "Ready", "True/Configured").await?;
    let configured = |art: &AgentRuntime| art.status.as_ref().and_then(|status| status.configured_pods) == Some(1);
    wait_for(&ns.api::<AgentRuntime>(), "boxed", configured).await?;

    // case_042: another configuration; down, and up again once the Pod is gone.
    merge::<AgentRuntime>(&ns, "boxed", json!({"spec": {"trace": {"endpoint": "http://otel:4318"}}})).await?;
    sandbox(&ns, |found| {
        replicas(found) == Some(0) && found.annotations().contains_key(keys::ANNOTATION_RESTART_PENDING)
    })
    .await?;
    ns.api::<Pod>().delete("box", &DeleteParams::default()).await?;
    wait_gone(&ns.api::<Pod>(), "box").await?;
    count(&ns, 0).await?;
    sandbox(&ns, |found| {
        replicas(found) == Some(1) && !found.annotations().contains_key(keys::ANNOTATION_RESTART_PENDING)
    })
    .await?;
    make_pod(&ns).await?;
    wait_for(&ns.api::<AgentRuntime>(), "boxed", configured).await?;

    // case_049: the definition goes, and with it every Sandbox; the AgentRuntime goes all the same.
    crds.delete("sandboxes.agents.x-k8s.io", &DeleteParams::default()).await?;
    wait_gone(&crds, "sandboxes.agents.x-k8s.io").await?;
    wait_for(&ns.api::<AgentRuntime>(), "boxed", missing).await?;
    delete_art(&ns, "boxed").await?;
    assert_eq!(condition(&ns.api::<AgentRuntime>().get("weather").await?, "Ready"), "True/Configured");

    // Our own definition goes: its objects are deleted one by one, so the workload is its user's again. It comes back, and
    // enrolment works without a restart.
    const OURS: &str = "agentruntimes.agent.kagenti.dev";
    crds.delete(OURS, &DeleteParams::default()).await?;
    wait_gone(&crds, OURS).await?;
    pods(&ns, "web", 1, false).await?;
    let file = webhook_tests::corpus::root().join("../../manifests/crds").join(format!("{OURS}.yaml"));
    cp.objects().await?.apply(&std::fs::read_to_string(file)?).await?;
    wait_served(&ns, OURS).await?;
    ns.accepts(&art("again", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "again", 1).await?;
    pods(&ns, "web", 1, true).await?;
    Ok(())
}
