//! What this room and `runtime` ask of the API server, as data: manifests are rendered from it or compared with it.
//!
//! Promise: every operation a controller can plan is here (held by a test), and nothing that nobody asks for.

use crate::api::observed::Kind;
use crate::domain::keys;

/// Which process asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// Every process: the snapshot.
    All,
    /// Role controllers.
    Controllers,
    /// Role controllers under failure mode gate.
    Gate,
}

/// One thing that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Who asks.
    pub asker: Asker,
    /// In the operator's namespace only; otherwise in all of them.
    pub own_namespace: bool,
    /// API group, empty for core.
    pub group: &'static str,
    /// Resource, plural.
    pub resource: &'static str,
    /// The only object name, where there is one.
    pub name: Option<&'static str>,
    /// RBAC verbs.
    pub verbs: &'static [&'static str],
}

const FOLLOW: &[&str] = &["list", "watch"];

const fn ask(asker: Asker, kind: Kind, verbs: &'static [&'static str]) -> Ask {
    Ask { asker, own_namespace: false, group: kind.group(), resource: kind.plural(), name: None, verbs }
}

const fn lease(name: Option<&'static str>, verbs: &'static [&'static str]) -> Ask {
    let group = "coordination.k8s.io";
    Ask { asker: Asker::Controllers, own_namespace: true, group, resource: "leases", name, verbs }
}

/// Everything, by asker.
pub const ASKS: &[Ask] = &[
    ask(Asker::All, Kind::Namespace, FOLLOW),
    ask(Asker::All, Kind::ConfigMap, FOLLOW),
    ask(Asker::All, Kind::ServiceAccount, FOLLOW),
    ask(Asker::All, Kind::Job, FOLLOW),
    ask(Asker::All, Kind::AgentRuntime, FOLLOW),
    Ask { name: Some(keys::CSI_DRIVER_SPIFFE), ..ask(Asker::All, Kind::CsiDriver, FOLLOW) },
    ask(Asker::All, Kind::AgentBuild, FOLLOW),
    // Agents and builds, and what they are made of.
    ask(Asker::Controllers, Kind::Agent, FOLLOW),
    ask(Asker::Controllers, Kind::TaskRun, FOLLOW),
    ask(Asker::Controllers, Kind::Service, FOLLOW),
    // Builds: finalizer and status; runs, which are read when their name is taken; workspaces; which keys the Secrets
    // have that a build names; finished Pods.
    ask(Asker::Controllers, Kind::AgentBuild, &["patch"]),
    // Runs and workspaces block the deletion of their build; some clusters ask for this right to say so.
    Ask { resource: "agentbuilds/finalizers", ..ask(Asker::Controllers, Kind::AgentBuild, &["update"]) },
    Ask { resource: "agentbuilds/status", ..ask(Asker::Controllers, Kind::AgentBuild, &["patch"]) },
    ask(Asker::Controllers, Kind::PipelineRun, &["get", "list", "watch", "create", "patch", "delete"]),
    ask(Asker::Controllers, Kind::PersistentVolumeClaim, &["get", "list", "watch", "create", "delete"]),
    ask(Asker::Controllers, Kind::Secret, &["get"]),
    ask(Asker::Controllers, Kind::Pod, &["delete"]),
    // Workloads of every kind: which ServiceAccounts and namespaces' ConfigMaps are needed, and who still waits.
    ask(Asker::Controllers, Kind::Deployment, &["list", "watch", "patch"]),
    ask(Asker::Controllers, Kind::CronJob, &["list", "watch", "patch"]),
    ask(Asker::Controllers, Kind::Pod, FOLLOW),
    ask(Asker::Controllers, Kind::ReplicaSet, &["list", "watch", "patch"]),
    ask(Asker::Controllers, Kind::StatefulSet, &["list", "watch", "patch"]),
    ask(Asker::Controllers, Kind::DaemonSet, &["list", "watch", "patch"]),
    ask(Asker::Controllers, Kind::Sandbox, &["list", "watch", "patch"]),
    // Finalizers and status of AgentRuntimes; Pods that are not as their workload wants them.
    ask(Asker::Controllers, Kind::AgentRuntime, &["patch"]),
    Ask { resource: "agentruntimes/status", ..ask(Asker::Controllers, Kind::AgentRuntime, &["patch"]) },
    Ask { resource: "pods/eviction", ..ask(Asker::Controllers, Kind::Pod, &["create"]) },
    // Agents, and what runs them. Where owners are enforced, naming an Agent as one that blocks its deletion takes a
    // right on its finalizers.
    ask(Asker::Controllers, Kind::Agent, &["patch"]),
    Ask { resource: "agents/status", ..ask(Asker::Controllers, Kind::Agent, &["patch"]) },
    Ask { resource: "agents/finalizers", ..ask(Asker::Controllers, Kind::Agent, &["update"]) },
    ask(Asker::Controllers, Kind::Deployment, &["create", "delete"]),
    ask(Asker::Controllers, Kind::Service, &["create", "patch", "delete"]),
    ask(Asker::Controllers, Kind::Job, &["patch"]),
    ask(Asker::Controllers, Kind::ServiceAccount, &["create", "patch"]),
    ask(Asker::Controllers, Kind::ConfigMap, &["create", "patch"]),
    ask(Asker::Controllers, Kind::Event, &["get", "create"]),
    // Owners of ServiceAccounts are set without blockOwnerDeletion, so no right on finalizers is needed.
    lease(None, &["create"]),
    lease(Some(keys::LEASE), &["get", "list", "watch", "update"]),
    // Pods behind the gate: replaced, and asked for by dry run.
    ask(Asker::Gate, Kind::Pod, &["create", "delete"]),
];

/// Whether `verb` on `kind`, or on a subresource of it, is declared for a process with role controllers.
#[must_use]
pub fn declared(verb: &str, kind: Kind, subresource: Option<&str>) -> bool {
    let resource = subresource.map_or_else(|| kind.plural().to_owned(), |sub| format!("{}/{sub}", kind.plural()));
    ASKS.iter().any(|ask| ask.group == kind.group() && ask.resource == resource && ask.verbs.contains(&verb))
}
