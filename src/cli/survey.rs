//! What a cluster has that concerns us, read by lists: for `explain`, `status`, `uninstall` and `doctor`.
//!
//! In: a cluster and a namespace (an empty one stands for all). Out: objects as JSON, and the facts of a namespace as a [`World`]. Kinds whose
//! CRD is absent have no objects; what may not be read is noted.

use std::collections::HashMap;

use serde_json::Value;

use super::cluster::watch::Collection;
use super::cluster::{Answer, Cluster};
use super::offline::world::World;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::Kind;

/// A kind that is, or makes, Pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// What people call it, in full first.
    pub words: &'static [&'static str],
    /// The kind.
    pub kind: WorkloadKind,
    of: Kind,
}

const fn kind(kind: WorkloadKind, of: Kind) -> Type {
    Type { words: of.descriptor().words, kind, of }
}

/// Every kind that is, or makes, Pods.
pub const TYPES: &[Type] = &[
    kind(WorkloadKind::Pod, Kind::Pod),
    kind(WorkloadKind::Deployment, Kind::Deployment),
    kind(WorkloadKind::StatefulSet, Kind::StatefulSet),
    kind(WorkloadKind::DaemonSet, Kind::DaemonSet),
    kind(WorkloadKind::ReplicaSet, Kind::ReplicaSet),
    kind(WorkloadKind::Job, Kind::Job),
    kind(WorkloadKind::CronJob, Kind::CronJob),
    kind(WorkloadKind::Sandbox, Kind::Sandbox),
];

/// The kind, as manifests spell it.
pub const AGENT_RUNTIME: &str = Kind::AgentRuntime.as_str();
/// What people call an AgentRuntime.
pub const AGENT_RUNTIME_WORDS: &[&str] = Kind::AgentRuntime.descriptor().words;

impl Type {
    /// The type that a person means by that word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<&'static Self> {
        TYPES.iter().find(|known| known.words.contains(&word))
    }

    /// The type of that kind.
    #[must_use]
    pub fn of_kind(kind: WorkloadKind) -> Option<&'static Self> {
        TYPES.iter().find(|known| known.kind == kind)
    }

    /// Its objects in that namespace, or in all.
    #[must_use]
    pub fn collection(&self, namespace: &str) -> Collection {
        collection(self.of, namespace)
    }
}

/// The objects of a kind in that namespace, or in all.
#[must_use]
pub fn collection(kind: Kind, namespace: &str) -> Collection {
    Collection {
        group: kind.group(),
        version: kind.version(),
        kind: kind.as_str(),
        plural: kind.plural(),
        namespace: namespace.to_owned(),
    }
}

/// The AgentRuntimes of a namespace, or of all.
#[must_use]
pub fn agent_runtimes(namespace: &str) -> Collection {
    collection(Kind::AgentRuntime, namespace)
}

/// Gives the world everything a decision about Pods of that namespace depends on.
///
/// # Errors
/// [`super::Unreachable`] when nobody answers.
pub async fn facts(
    cluster: &Cluster,
    world: &mut World,
    namespace: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    of_the_cluster(cluster, world, notes).await?;
    of_a_namespace(cluster, world, namespace, notes).await?;
    for of in [agent_runtimes(namespace), collection(Kind::Job, namespace)] {
        for object in cluster.list(&of.path(), notes).await? {
            world.observe(&object, namespace);
        }
    }
    Ok(())
}

/// The facts that hold in every namespace: version, SPIRE, the operator's own configuration.
///
/// # Errors
/// [`super::Unreachable`] when nobody answers.
pub async fn of_the_cluster(cluster: &Cluster, world: &mut World, notes: &mut Vec<String>) -> anyhow::Result<()> {
    match cluster.version().await? {
        // Too much to do, or not allowed: no API server is so old.
        (0, _) => {
            let (major, minor) = world.keep_server_version();
            cluster.has_not_seen_all();
            notes.push(format!(
                "the API server does not tell its version at /version; judged as if it were {major}.{minor}"
            ));
        }
        version => world.set_server_version(version),
    }
    let driver = format!("/apis/storage.k8s.io/v1/csidrivers/{}", keys::CSI_DRIVER_SPIFFE);
    read(cluster, world, &driver, notes).await?;
    let operator = world.operator_namespace().to_owned();
    for object in cluster.list(&format!("/api/v1/namespaces/{operator}/configmaps"), notes).await? {
        world.observe(&object, &operator);
    }
    world.leave_out_faulty(notes);
    Ok(())
}

/// The facts of a namespace, but AgentRuntimes and Jobs.
///
/// # Errors
/// [`super::Unreachable`] when nobody answers.
pub async fn of_a_namespace(
    cluster: &Cluster,
    world: &mut World,
    namespace: &str,
    notes: &mut Vec<String>,
) -> anyhow::Result<()> {
    read(cluster, world, &format!("/api/v1/namespaces/{namespace}"), notes).await?;
    for path in [
        format!("/api/v1/namespaces/{namespace}/configmaps"),
        format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
    ] {
        for object in cluster.list(&path, notes).await? {
            world.observe(&object, namespace);
        }
    }
    if world.enforces_trust(namespace)? {
        let policy = collection(Kind::NetworkPolicy, namespace).path();
        match cluster.read(&format!("{policy}/{}", keys::DEFAULT_DENY), notes).await? {
            Answer::Object(object) => world.observe(&object, namespace),
            Answer::Absent => world.is_not_cut_off(namespace),
            Answer::Refused(..) => {}
        }
    }
    Ok(())
}

async fn read(cluster: &Cluster, world: &mut World, path: &str, notes: &mut Vec<String>) -> anyhow::Result<()> {
    if let Answer::Object(object) = cluster.read(path, notes).await? {
        world.observe(&object, "");
    }
    Ok(())
}

/// The owner that controls an object.
#[must_use]
pub fn controller(object: &Value) -> Option<&Value> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// The workload a Pod belongs to; `jobs` are the Jobs of its namespace by name.
#[must_use]
pub fn owner(pod: &Value, jobs: &HashMap<&str, &Value>) -> Workload {
    let Some(owner) = controller(pod) else {
        return Workload { kind: WorkloadKind::Pod, name: text(pod, "/metadata/name").to_owned() };
    };
    let name = text(owner, "/name");
    match WorkloadKind::from_group_kind(group(owner), text(owner, "/kind")) {
        Some(WorkloadKind::ReplicaSet) => Workload::of_replica_set(name, label(pod, keys::LABEL_POD_TEMPLATE_HASH)),
        Some(WorkloadKind::Job) => {
            let above = jobs.get(name).and_then(|job| controller(job));
            Workload::of_job(name, above.map(|above| (group(above), text(above, "/kind"), text(above, "/name"))))
        }
        Some(kind) => Workload { kind, name: name.to_owned() },
        None => Workload { kind: WorkloadKind::Unknown, name: name.to_owned() },
    }
}

/// What makes Pods for something else that makes Pods: the ReplicaSets of a Deployment, the Jobs of a CronJob. A Pod belongs to whatever
/// controls it.
#[must_use]
pub fn belongs_to_another(object: &Value) -> bool {
    let is_pod = text(object, "/kind") == WorkloadKind::Pod.as_str();
    controller(object)
        .is_some_and(|owner| is_pod || WorkloadKind::from_group_kind(group(owner), text(owner, "/kind")).is_some())
}

/// The API group of an object or owner reference, empty for core.
fn group(object: &Value) -> &str {
    text(object, "/apiVersion").split_once('/').map_or("", |(group, _)| group)
}

/// The text at a pointer, empty when there is none.
#[must_use]
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// The phase of an AgentBuild of whichever group, in the words of `agent.kagenti.dev`; empty where it has none.
#[must_use]
pub fn phase(build: &Value) -> &str {
    match text(build, "/status/buildStatus") {
        "" => text(build, "/status/phase"),
        "Completed" => "Succeeded",
        other => other,
    }
}

/// A label of an object.
#[must_use]
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// An annotation of an object.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/annotations")?.get(key)?.as_str()
}

/// The Pod has parts of ours. The annotation alone proves nothing: whoever opts a Pod out can write it himself, or have copied it.
#[must_use]
pub fn is_injected(pod: &Value) -> bool {
    let lists = ["containers", "initContainers"].map(|list| pod.pointer("/spec")?.get(list)?.as_array());
    let mut names = lists.into_iter().flatten().flatten().filter_map(|container| container["name"].as_str());
    annotation(pod, keys::ANNOTATION_STATUS).is_some() && names.any(|name| keys::OUR_CONTAINERS.contains(&name))
}

/// The Pod waits behind our scheduling gate.
#[must_use]
pub fn is_gated(pod: &Value) -> bool {
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    gates.into_iter().flatten().any(|gate| gate["name"] == keys::SCHEDULING_GATE)
}
