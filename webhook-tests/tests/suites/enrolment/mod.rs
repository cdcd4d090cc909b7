//! Enrolment on a real API server, by the product as `manifests/` installs it: AgentRuntimes and labels, what they do to
//! workloads that run, and what is left of them in the end.
//!
//! One installation serves most tests, each in namespaces of its own; those that change the platform's configuration, lose
//! processes or definitions, or do without the webhook have installations of their own ([`fleet`], [`repair`], [`sandbox`],
//! [`crowd`]). `tests/suites/agent_runtime_cases.rs` holds the numbered cases against the tests and the decisions.

mod cases;
mod changes;
mod crowd;
mod ending;
mod fleet;
mod labelled;
mod one;
mod repair;
mod sandbox;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, Requests, TestNamespace, installation, wait_for, wait_gone, wait_until};

/// Who writes.
pub(crate) const USER: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";

pub(crate) async fn control_plane() -> Result<&'static ControlPlane> {
    installation::shared().await
}

/// The Pod template of a user who knows nothing of us.
pub(crate) fn template(app: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}, "annotations": {"team": "weather"}},
        "spec": {"containers": [{"name": "agent", "image": "example.com/agent:1", "ports": [{"containerPort": 8000}]}]}})
}

/// A Deployment of that user.
pub(crate) fn deployment(name: &str, replicas: i64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template(name)}})
}

/// An AgentRuntime on a workload.
pub(crate) fn art(name: &str, kind: &str, target: &str, more: Value) -> Value {
    let api_version = match kind {
        "CronJob" => "batch/v1",
        "Sandbox" => "agents.x-k8s.io/v1alpha1",
        _ => "apps/v1",
    };
    let mut object = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": name},
        "spec": {"type": "agent", "targetRef": {"apiVersion": api_version, "kind": kind, "name": target}}});
    json_patch::merge(&mut object, &more);
    object
}

/// A condition as `status/reason`; empty when there is none.
pub(crate) fn condition(art: &AgentRuntime, type_: &str) -> String {
    let conditions = art.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.into_iter().find(|one| one.type_ == type_);
    found.map_or_else(String::new, |one| format!("{}/{}", one.status, one.reason))
}

/// Waits for a condition of an AgentRuntime.
pub(crate) async fn says(ns: &TestNamespace, name: &str, type_: &str, state: &str) -> Result<AgentRuntime> {
    let found = wait_for(&ns.api::<AgentRuntime>(), name, |art| condition(art, type_) == state).await;
    found.with_context(|| format!("{name} never says {type_}={state}"))
}

/// Waits until an AgentRuntime's workload has rolled: so many Pods with the configuration, and none is being replaced.
pub(crate) async fn rolled(ns: &TestNamespace, name: &str, pods: i32) -> Result<AgentRuntime> {
    let done = |art: &AgentRuntime| {
        let configured = art.status.as_ref().and_then(|status| status.configured_pods).unwrap_or_default();
        let current = art.status.as_ref().and_then(|status| status.observed_generation) == art.metadata.generation;
        current
            && configured == pods
            && condition(art, "Ready") == "True/Configured"
            && condition(art, "RolloutProgressing") == "False/RolloutComplete"
    };
    wait_for(&ns.api::<AgentRuntime>(), name, done).await.with_context(|| format!("{name} never rolled"))
}

/// The ReplicaSets of an app: one per template that its Deployment has had.
pub(crate) async fn replica_sets(ns: &TestNamespace, app: &str) -> Result<usize> {
    let selected = ListParams::default().labels(&format!("app={app}"));
    Ok(ns.api::<ReplicaSet>().list(&selected).await?.items.len())
}

/// The Pods of an app that are not being deleted, once there are so many, all of them running and injected, or none injected.
pub(crate) async fn pods(ns: &TestNamespace, app: &str, count: usize, injected: bool) -> Result<Vec<Pod>> {
    let right = move |pod: &&Pod| {
        let running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
        running && pod.annotations().contains_key(keys::ANNOTATION_STATUS) == injected
    };
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let selected = watcher::Config::default().labels(&format!("app={app}"));
    let api = ns.api::<Pod>();
    let all = wait_until(&api, selected, |all| {
        let live: Vec<&Pod> = all.values().filter(stays).collect();
        live.len() == count && live.iter().all(right)
    });
    Ok(all.await?.into_iter().filter(|pod| stays(&pod)).collect())
}

/// What is compared: everything but what the API server and the workload's own controller keep there.
pub(crate) fn essence(workload: &impl serde::Serialize) -> Value {
    let mut value = serde_json::to_value(workload).unwrap();
    value.as_object_mut().unwrap().remove("status");
    let metadata = value["metadata"].as_object_mut().unwrap();
    for key in ["managedFields", "generation", "resourceVersion"] {
        metadata.remove(key);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    value
}

pub(crate) async fn merge<K>(ns: &TestNamespace, name: &str, patch: Value) -> Result<K>
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + serde::de::DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    Ok(ns.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

pub(crate) async fn delete_art(ns: &TestNamespace, name: &str) -> Result<()> {
    ns.api::<AgentRuntime>().delete(name, &DeleteParams::default()).await?;
    wait_gone(&ns.api::<AgentRuntime>(), name).await
}

/// What the controllers wrote, Leases aside.
pub(crate) fn writes(requests: Requests) -> Requests {
    requests.by(USER).writes().filter(|request| request.resource != "leases")
}

pub(crate) async fn kubectl(cp: &ControlPlane, ns: &TestNamespace, args: &[&str], input: &str) -> Result<String> {
    let args: Vec<&str> = ["-n", ns.name()].into_iter().chain(args.iter().copied()).collect();
    let output = cp.kubectl(cp.admin(), &args, input).await?;
    ensure!(output.success, "kubectl {args:?}: {output:?}");
    Ok(output.stdout)
}

/// The hash on a Deployment's template.
pub(crate) fn hash(deployment: &Deployment) -> Option<String> {
    let metadata = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    metadata.annotations.as_ref()?.get(keys::ANNOTATION_CONFIG_HASH).cloned()
}
