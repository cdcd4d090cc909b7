//! What the Go operator left of an Agent, on a real API server, which keeps book of who wrote which field and applies by that book.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent;
use drawbridge::domain::keys;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::{Request, TestNamespace, wait_for};

use super::stage::{CONTROLLERS, agent, deployments, ready, shared};

/// Somebody who is neither the Go operator nor we.
const THIRD: &str = "kubectl-edit";
/// What an Agent has: its Pods need the account first.
const KINDS: [(&str, &str); 3] = [("", "ServiceAccount"), ("", "Service"), ("apps", "Deployment")];

fn objects(ns: &TestNamespace, (group, kind): (&str, &str)) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

fn patching_as(manager: &str) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() }
}

/// What the Go operator has written for that Agent, in the order of [`KINDS`]: a label, a variable, and ports of the Service.
fn by_go((name, uid): (&str, &str), ports: &Value) -> [Value; 3] {
    let owner = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    let selector = json!({"app.kubernetes.io/name": name});
    let labels = json!({"app.kubernetes.io/name": name, "dropped": "long-ago"});
    let metadata = json!({"name": name, "labels": labels, "ownerReferences": [owner]});
    let container = json!({
        "name": "agent", "image": "example.com/weather:v0", "env": [{"name": "OLD", "value": "1"}],
        "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
    });
    let template = json!({
        "metadata": {"labels": labels}, "spec": {"serviceAccountName": name, "containers": [container]},
    });
    let spec = json!({"replicas": 1, "selector": {"matchLabels": selector}, "template": template});
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata,
            "spec": {"selector": selector, "ports": ports}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}),
    ]
}

/// What somebody else adds to each of [`KINDS`].
fn by_third() -> [Value; 3] {
    let metadata = json!({"labels": {"theirs": "stays"}});
    let ports = json!([{"name": "theirs", "port": 7777, "targetPort": 8000, "protocol": "TCP"}]);
    let container = json!({"name": "agent", "env": [{"name": "THEIRS", "value": "stays"}]});
    [
        json!({"metadata": metadata}),
        json!({"metadata": metadata, "spec": {"ports": ports}}),
        json!({"metadata": metadata, "spec": {"template": {"spec": {"containers": [container]}}}}),
    ]
}

/// Who has an entry of the object itself in `metadata.managedFields`, and of which operation.
fn writers(object: &DynamicObject) -> Vec<(&str, &str)> {
    let entries = object.managed_fields().iter();
    let of_object = entries.filter(|entry| entry.subresource.as_deref().is_none_or(str::is_empty));
    of_object.filter_map(|entry| Some((entry.manager.as_deref()?, entry.operation.as_deref()?))).collect()
}

/// Name and port of each port of a Service, in order of their names.
fn ports(service: &DynamicObject) -> Vec<(&str, u64)> {
    let all = service.data["spec"]["ports"].as_array().into_iter().flatten();
    let mut ports: Vec<_> = all.filter_map(|port| Some((port["name"].as_str()?, port["port"].as_u64()?))).collect();
    ports.sort_unstable();
    ports
}

/// An Agent that is held still until the Go operator, and somebody else after it, have written what it has: nothing of it is applied before. A watch
/// that lags behind costs a write that is refused, no more. Returns the Service and the Deployment of before.
async fn left(ns: &TestNamespace, name: &str, ports: &Value) -> Result<[DynamicObject; 2]> {
    let paused = json!({"metadata": {"annotations": {keys::ANNOTATION_PAUSED: "true"}}});
    let uid = ns.accepts(&agent(name, &paused)).await?.metadata.uid.context("a uid")?;
    let by = PostParams { field_manager: Some(keys::MANAGER_UPSTREAM.to_owned()), ..PostParams::default() };
    for (kind, object) in KINDS.into_iter().zip(by_go((name, uid.as_str()), ports)) {
        objects(ns, kind).create(&by, &serde_json::from_value(object)?).await?;
    }
    for (kind, patch) in KINDS.into_iter().zip(by_third()) {
        let object = objects(ns, kind).patch(name, &patching_as(THIRD), &Patch::Strategic(&patch)).await?;
        let writers = writers(&object);
        let both = [keys::MANAGER_UPSTREAM, THIRD].iter().all(|manager| writers.contains(&(*manager, "Update")));
        let ours = writers.iter().any(|(manager, _)| *manager == keys::MANAGER_AGENT);
        ensure!(both && !ours, "{kind:?} {name} is not as the test wants it: {writers:?}");
    }
    let [_, service, deployment] = KINDS;
    Ok([objects(ns, service).get(name).await?, objects(ns, deployment).get(name).await?])
}

/// Our controllers go on with it; back once it is ready.
async fn let_go(ns: &TestNamespace, name: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {keys::ANNOTATION_PAUSED: null}}});
    let agents: Api<Agent> = ns.api();
    agents.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    wait_for(&agents, name, ready).await.map(drop)
}

/// What of the labels, and of who wrote what, is the same for each of [`KINDS`].
fn is_taken_over(object: &DynamicObject) -> Result<()> {
    let (labels, writers) = (object.labels(), writers(object));
    let which = format!("{:?} {}", object.types.as_ref().map(|types| &types.kind), object.name_any());
    ensure!(
        !labels.contains_key("dropped"),
        "{which}: nobody wants it, and it is still there: {labels:?}; {writers:?}"
    );
    ensure!(labels.get("theirs").is_some_and(|value| value == "stays"), "{which}: it is somebody else's: {labels:?}");
    let ours: Vec<_> = writers.iter().filter(|(manager, _)| *manager == keys::MANAGER_AGENT).collect();
    ensure!(ours == [&(keys::MANAGER_AGENT, "Apply")], "{which}: one entry is ours, and an apply's: {writers:?}");
    ensure!(writers.contains(&(THIRD, "Update")), "{which}: {writers:?}");
    let old = [keys::MANAGER_UPSTREAM, "before-first-apply"];
    ensure!(!writers.iter().any(|(manager, _)| old.contains(manager)), "{which}: {writers:?}");
    Ok(())
}

/// What the Agent wants no more is gone from all that it has, what somebody else wrote is there, and what the API server allots is as it was.
async fn all_is_taken_over(ns: &TestNamespace, name: &str, [service, deployment]: &[DynamicObject; 2]) -> Result<()> {
    let [of_account, of_service, of_deployment] = KINDS;
    let now = objects(ns, of_deployment).get(name).await?;
    let template = &now.data["spec"]["template"];
    let env = template["spec"]["containers"][0]["env"].to_string();
    ensure!(
        !env.contains("\"OLD\""),
        "{name}: a variable that nobody wants is still there: {env}; {:?}",
        writers(&now)
    );
    ensure!(env.contains("\"THEIRS\""), "{name}: a variable of somebody else is gone: {env}");
    ensure!(template["metadata"]["labels"].get("dropped").is_none(), "{name}: {template}");
    is_taken_over(&now)?;
    let before = deployment.metadata.generation.context("a generation")?;
    assert_eq!(now.metadata.generation, Some(before + 1), "{name}: one rollout");

    let now = objects(ns, of_service).get(name).await?;
    assert_eq!(ports(&now), [("http", 8080), ("theirs", 7777)], "{name}: {:?}", writers(&now));
    assert_eq!(now.data["spec"]["clusterIP"], service.data["spec"]["clusterIP"], "{name}");
    is_taken_over(&now)?;

    let now = objects(ns, of_account).get(name).await?;
    assert_eq!(now.data["automountServiceAccountToken"], false, "{name}");
    is_taken_over(&now)
}

/// Versions of what nobody but us writes any more; the status of a Deployment is the cluster's.
async fn versions(ns: &TestNamespace, names: &[&str]) -> Result<Vec<Option<String>>> {
    let mut versions = Vec::new();
    for name in names {
        for kind in &KINDS[..2] {
            versions.push(objects(ns, *kind).get(name).await?.resource_version());
        }
    }
    Ok(versions)
}

/// An apply keeps what another entry owns as well; so the Go operator's entry becomes ours first. Once: whoever writes under that name later writes
/// beside us.
#[tokio::test]
async fn what_the_go_operator_wrote_and_is_wanted_no_more_goes_with_our_first_apply() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("agent-taken").await?;
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": 8000, "protocol": "TCP"});
    let names = ["weather", "moved"];
    for (name, ports) in names.into_iter().zip([
        json!([port("http", 8080), port("old", 9999)]),
        // Beside the one that is wanted it would be a second port of that name, which the API server does not take.
        json!([port("http", 9999)]),
    ]) {
        let before = left(&ns, name, &ports).await?;
        let_go(&ns, name).await.with_context(|| name.to_owned())?;
        all_is_taken_over(&ns, name, &before).await?;
    }

    // Its next turn, because of what somebody writes who has that name by chance, writes nothing.
    let (log, before) = (cp.audit(), versions(&ns, &names).await?);
    let mark = log.mark()?;
    let late = json!({"metadata": {"annotations": {"late": "stays"}}});
    deployments(&ns).patch("weather", &patching_as(keys::MANAGER_UPSTREAM), &Patch::Merge(&late)).await?;
    // Whoever comes last is served last: by then the others have been looked at.
    ns.accepts(&agent("zz-last", &json!({}))).await?;
    let agents: Api<Agent> = ns.api();
    wait_for(&agents, "zz-last", ready).await?;
    let of_both = |request: &Request| {
        let is_own = ["serviceaccounts", "services", "deployments"].contains(&request.resource.as_str());
        is_own && names.contains(&request.name.as_str())
    };
    let written = log.settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name()).filter(of_both);
    ensure!(written.is_empty(), "{written}");
    assert_eq!(versions(&ns, &names).await?, before);

    // The next change of the Agent leaves it in place as well.
    let next = json!({"spec": {"imageSource": {"image": "example.com/weather:v2"}}});
    agents.patch("weather", &PatchParams::default(), &Patch::Merge(&next)).await?;
    let follows = |agent: &Agent| {
        let image = agent.status.as_ref().and_then(|status| status.image.as_deref());
        image == Some("example.com/weather:v2") && ready(agent)
    };
    wait_for(&agents, "weather", follows).await?;
    let now = deployments(&ns).get("weather").await?;
    assert_eq!(now.annotations().get("late").map(String::as_str), Some("stays"), "{:?}", writers(&now));
    ensure!(writers(&now).contains(&(keys::MANAGER_UPSTREAM, "Update")), "{:?}", writers(&now));
    Ok(())
}
