//! Objects of the cluster as the watches keep them: projections of a few hundred bytes (design, law 9).
//!
//! In: the JSON of a watched object ([`wire`]). Out: an [`Observed`] with what admission and controllers read, and
//! nothing else. Promise: a projection does not depend on fields that are not listed here, so an update elsewhere in
//! the object compares equal. `runtime::stores` makes these values; the snapshot and `controllers` are built from them.

mod config_map;
mod custom;
mod fields;
pub mod label;
mod lenient;
pub mod object;
mod pool;
mod project;
mod runtime;
pub mod tekton;
mod transcript;
pub mod wire;
mod workload;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use config_map::{ConfigMapSeen, LARGEST_TEXT};
pub use custom::{ClaimSeen, CustomSeen, Over, ServiceSeen};
pub use fields::{Owned, Place};
pub use label::TypeLabel;
pub use pool::Pool;
use project::owner;
pub use runtime::{AgentRuntimeSeen, Target};
pub use tekton::{PipelineRunSeen, TaskRunSeen};
pub use workload::{AgentDeploymentSeen, Pairs, PodPhase, PodSeen, Rollout, TemplateSeen, WorkloadSeen, selects_type};

use crate::domain::keys;
use crate::domain::workload::WorkloadKind;

/// The kinds that are watched or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is the Kubernetes kind of that name")]
pub enum Kind {
    Namespace,
    ConfigMap,
    ServiceAccount,
    Job,
    CsiDriver,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    CronJob,
    Sandbox,
    AgentRuntime,
    Pod,
    Event,
    Agent,
    AgentBuild,
    PipelineRun,
    TaskRun,
    Service,
    PersistentVolumeClaim,
    Secret,
}

impl Kind {
    /// Group (empty for core), version, plural, kind, whether it lives in a namespace.
    const fn row(self) -> (&'static str, &'static str, &'static str, &'static str, bool) {
        match self {
            Kind::Namespace => ("", "v1", "namespaces", "Namespace", false),
            Kind::ConfigMap => ("", "v1", "configmaps", "ConfigMap", true),
            Kind::ServiceAccount => ("", "v1", "serviceaccounts", "ServiceAccount", true),
            Kind::Pod => ("", "v1", "pods", "Pod", true),
            Kind::Event => ("", "v1", "events", "Event", true),
            Kind::Job => ("batch", "v1", "jobs", "Job", true),
            Kind::CronJob => ("batch", "v1", "cronjobs", "CronJob", true),
            Kind::CsiDriver => ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", false),
            Kind::Deployment => ("apps", "v1", "deployments", "Deployment", true),
            Kind::ReplicaSet => ("apps", "v1", "replicasets", "ReplicaSet", true),
            Kind::StatefulSet => ("apps", "v1", "statefulsets", "StatefulSet", true),
            Kind::DaemonSet => ("apps", "v1", "daemonsets", "DaemonSet", true),
            Kind::Sandbox => ("agents.x-k8s.io", "v1alpha1", "sandboxes", "Sandbox", true),
            Kind::AgentRuntime => ("agent.kagenti.dev", "v1alpha1", "agentruntimes", "AgentRuntime", true),
            Kind::Agent => ("agent.kagenti.dev", "v1alpha1", "agents", "Agent", true),
            Kind::AgentBuild => ("agent.kagenti.dev", "v1alpha1", "agentbuilds", "AgentBuild", true),
            Kind::PipelineRun => ("tekton.dev", "v1", "pipelineruns", "PipelineRun", true),
            Kind::TaskRun => ("tekton.dev", "v1", "taskruns", "TaskRun", true),
            Kind::Service => ("", "v1", "services", "Service", true),
            Kind::PersistentVolumeClaim => ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true),
            Kind::Secret => ("", "v1", "secrets", "Secret", true),
        }
    }

    /// API group, empty for core.
    #[must_use]
    pub const fn group(self) -> &'static str {
        self.row().0
    }

    /// API version without the group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        self.row().1
    }

    /// Plural, as in paths and RBAC rules.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        self.row().2
    }

    /// The kind as manifests spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().3
    }

    /// `group/version`, or the version alone for core.
    #[must_use]
    pub fn api_version(self) -> String {
        if self.group().is_empty() { self.version().to_owned() } else { format!("{}/{}", self.group(), self.version()) }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        self.row().4
    }

    /// Path of the collection, in one namespace or (with an empty name) in all of them.
    #[must_use]
    pub fn path(self, namespace: &str) -> String {
        let (group, version, plural, _, namespaced) = self.row();
        let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
        if namespaced && !namespace.is_empty() {
            format!("{root}/{version}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{version}/{plural}")
        }
    }

    /// The watched kind of a workload kind, where there is one.
    #[must_use]
    pub fn of_workload(kind: WorkloadKind) -> Option<Self> {
        Some(match kind {
            WorkloadKind::Deployment => Kind::Deployment,
            WorkloadKind::ReplicaSet => Kind::ReplicaSet,
            WorkloadKind::StatefulSet => Kind::StatefulSet,
            WorkloadKind::DaemonSet => Kind::DaemonSet,
            WorkloadKind::Job => Kind::Job,
            WorkloadKind::CronJob => Kind::CronJob,
            WorkloadKind::Sandbox => Kind::Sandbox,
            WorkloadKind::Pod | WorkloadKind::Unknown => return None,
        })
    }

    /// The workload kind of a watched kind, where it is one.
    #[must_use]
    pub fn workload(self) -> Option<WorkloadKind> {
        WorkloadKind::WITH_TEMPLATE.into_iter().find(|kind| Kind::of_workload(*kind) == Some(self))
    }
}

/// Where an object lives. The namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub struct Key {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    /// A key from its parts.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// One entry of `metadata.ownerReferences`, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// An Agent of ours.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.group() == keys::GROUP_AGENT && self.kind == "Agent"
    }

    /// The API group, empty for core.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// One object at one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion` as a number (0 when it is not one); later versions of an object are larger.
    pub version: u64,
    /// What is kept of it.
    pub what: What,
}

impl Observed {
    /// A Pod that waits behind our scheduling gate.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        matches!(&self.what, What::Pod(seen) if seen.gated)
    }
}

/// What is kept of an object. Large variants are boxed: there are ten Pods to a workload.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A namespace.
    Namespace(NamespaceSeen),
    /// A ConfigMap that is watched by name or by label.
    ConfigMap(ConfigMapSeen),
    /// Any ServiceAccount.
    ServiceAccount(ServiceAccountSeen),
    /// Something with a Pod template: what people write (roots) and Jobs always, ReplicaSets when enrolled.
    Workload(Box<WorkloadSeen>),
    /// A Pod that is enrolled, or waits behind our scheduling gate.
    Pod(PodSeen),
    /// An AgentRuntime.
    AgentRuntime(AgentRuntimeSeen),
    /// CSIDriver `csi.spiffe.io`: only its existence counts.
    CsiDriver,
    /// An Agent.
    Agent(Box<CustomSeen>),
    /// An AgentBuild.
    AgentBuild(Box<CustomSeen>),
    /// A PipelineRun of a build.
    PipelineRun(Box<PipelineRunSeen>),
    /// A TaskRun of such a run.
    TaskRun(Box<TaskRunSeen>),
    /// Any Service.
    Service(ServiceSeen),
    /// A PersistentVolumeClaim of a build.
    Claim(ClaimSeen),
    /// A Pod of a build's task.
    BuildPod(BuildPodSeen),
}

impl What {
    /// The owner that controls an object of those kinds for which that is looked up: what a build or an Agent made.
    #[must_use]
    pub fn controller(&self) -> Option<&OwnerReference> {
        match self {
            What::PipelineRun(seen) => seen.controller.as_deref(),
            What::TaskRun(seen) => seen.controller.as_deref(),
            What::Service(seen) => seen.claim.controller.as_deref(),
            What::Claim(seen) => seen.controller.as_deref(),
            What::ServiceAccount(seen) => seen.claim.as_ref()?.controller.as_deref(),
            What::Workload(seen) if seen.kind == WorkloadKind::Deployment => seen.controller.as_deref(),
            What::BuildPod(seen) => seen.controller.as_deref(),
            _ => None,
        }
    }
}

/// A Pod of a build's task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPodSeen {
    /// Label `tekton.dev/pipelineRun`.
    pub run: Box<str>,
    /// The owner that controls it: a TaskRun.
    pub controller: Option<Arc<OwnerReference>>,
    /// Being deleted.
    pub terminating: bool,
    /// How far it has come.
    pub phase: PodPhase,
}

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceSeen {
    /// The labels that admission reads.
    pub labels: BTreeMap<String, String>,
    /// Being deleted: nothing can be created in it.
    pub terminating: bool,
}

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAccountSeen {
    /// Carries `kagenti.io/managed-by: webhook`.
    pub ours: bool,
    /// `automountServiceAccountToken`.
    pub automount: Option<bool>,
    /// Owners; kept only of ours and of those that an Agent owns.
    pub owners: Vec<OwnerReference>,
    /// Carries `agent.kagenti.dev/build-account: "true"`: builds may use it.
    pub for_builds: bool,
    /// Whose it is, when an Agent is among the owners.
    pub claim: Option<ClaimSeen>,
}

impl ServiceAccountSeen {
    /// Pods may be given it without being asked: made for injected Pods, or controlled by an Agent.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        let controller = self.claim.as_ref().and_then(|claim| claim.controller.as_ref());
        self.ours || controller.is_some_and(|owner| owner.is_agent())
    }
}

/// One thing that happened to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its kind.
    pub kind: Kind,
    /// Where it lives.
    pub key: Key,
    /// Its resourceVersion; 0 when it was found missing from a new list.
    pub version: u64,
    /// It comes from a new list, which is the truth whatever was known before.
    pub listed: bool,
    /// What it is now; `None`: gone, or no longer of interest.
    pub now: Option<Arc<Observed>>,
}

/// One message from the watches to the controllers.
#[derive(Debug)]
pub enum Feed {
    /// Something happened to one object.
    Change(Change),
    /// One more source has delivered its first list; the number tells how many are missing.
    Listed(usize),
    /// Whether a kind can be read has changed.
    Reach(Kind, Reach),
}

/// Whether what is known of a kind is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reach {
    /// It has not been read yet, or may not be: that an object is not known says nothing.
    #[default]
    Unknown,
    /// Everything is known.
    Listed,
    /// The API server certainly does not serve it: there are no objects of the kind.
    Absent,
}
