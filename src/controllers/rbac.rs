//! What this room and `runtime` ask of the API server, as data: manifests are rendered from it or compared with it.
//!
//! Promise: every operation a controller can plan is here (held by a test), and nothing that nobody asks for.

use crate::domain::keys;
use crate::store::{Kind, UsedBy};

/// One thing that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Who asks.
    pub asker: UsedBy,
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

const fn ask(asker: UsedBy, kind: Kind, verbs: &'static [&'static str]) -> Ask {
    Ask { asker, own_namespace: false, group: kind.group(), resource: kind.plural(), name: None, verbs }
}

const fn lease(name: Option<&'static str>, verbs: &'static [&'static str]) -> Ask {
    let group = "coordination.k8s.io";
    Ask { asker: UsedBy::Controllers, own_namespace: true, group, resource: "leases", name, verbs }
}

/// Everything, by asker.
pub const ASKS: &[Ask] = &[
    ask(UsedBy::Every, Kind::Namespace, FOLLOW),
    ask(UsedBy::Every, Kind::ConfigMap, FOLLOW),
    ask(UsedBy::Every, Kind::ServiceAccount, FOLLOW),
    ask(UsedBy::Every, Kind::Job, FOLLOW),
    ask(UsedBy::Every, Kind::AgentRuntime, FOLLOW),
    Ask { name: Some(keys::CSI_DRIVER_SPIFFE), ..ask(UsedBy::Every, Kind::CsiDriver, FOLLOW) },
    ask(UsedBy::Every, Kind::AgentBuild, FOLLOW),
    ask(UsedBy::Every, Kind::AgentCard, FOLLOW),
    ask(UsedBy::Every, Kind::NetworkPolicy, FOLLOW),
    // What is run under a name of its own: whoever is about to take that name is told of it.
    ask(UsedBy::Every, Kind::Agent, FOLLOW),
    ask(UsedBy::Every, Kind::BeeaiAgent, FOLLOW),
    ask(UsedBy::Every, Kind::BeeaiCompatAgent, FOLLOW),
    ask(UsedBy::Every, Kind::KaosAgent, FOLLOW),
    ask(UsedBy::Every, Kind::ModelApi, FOLLOW),
    ask(UsedBy::Every, Kind::McpServer, FOLLOW),
    // Agents and builds, and what they are made of.
    ask(UsedBy::Controllers, Kind::TaskRun, FOLLOW),
    ask(UsedBy::Controllers, Kind::Service, FOLLOW),
    // Builds: finalizer and status; runs, which are read when their name is taken; workspaces; which keys the Secrets
    // have that a build names; finished Pods.
    ask(UsedBy::Controllers, Kind::AgentBuild, &["patch"]),
    // Runs and workspaces block the deletion of their build; some clusters ask for this right to say so.
    Ask { resource: "agentbuilds/finalizers", ..ask(UsedBy::Controllers, Kind::AgentBuild, &["update"]) },
    Ask { resource: "agentbuilds/status", ..ask(UsedBy::Controllers, Kind::AgentBuild, &["patch"]) },
    ask(UsedBy::Controllers, Kind::PipelineRun, &["get", "list", "watch", "create", "patch", "delete"]),
    ask(UsedBy::Controllers, Kind::PersistentVolumeClaim, &["get", "list", "watch", "create", "delete"]),
    ask(UsedBy::Controllers, Kind::Secret, &["get"]),
    ask(UsedBy::Controllers, Kind::Pod, &["delete"]),
    // Workloads of every kind: which ServiceAccounts and namespaces' ConfigMaps are needed, and who still waits.
    ask(UsedBy::Controllers, Kind::Deployment, &["list", "watch", "patch"]),
    ask(UsedBy::Controllers, Kind::CronJob, &["list", "watch", "patch"]),
    ask(UsedBy::Controllers, Kind::Pod, FOLLOW),
    ask(UsedBy::Controllers, Kind::ReplicaSet, &["list", "watch", "patch"]),
    ask(UsedBy::Controllers, Kind::StatefulSet, &["list", "watch", "patch"]),
    ask(UsedBy::Controllers, Kind::DaemonSet, &["list", "watch", "patch"]),
    ask(UsedBy::Controllers, Kind::Sandbox, &["list", "watch", "patch"]),
    // Finalizers and status of AgentRuntimes; Pods that are not as their workload wants them.
    ask(UsedBy::Controllers, Kind::AgentRuntime, &["patch"]),
    Ask { resource: "agentruntimes/status", ..ask(UsedBy::Controllers, Kind::AgentRuntime, &["patch"]) },
    Ask { resource: "pods/eviction", ..ask(UsedBy::Controllers, Kind::Pod, &["create"]) },
    // Agents, and what runs them. Where owners are enforced, naming an Agent as one that blocks its deletion takes a
    // right on its finalizers.
    ask(UsedBy::Controllers, Kind::Agent, &["patch"]),
    Ask { resource: "agents/status", ..ask(UsedBy::Controllers, Kind::Agent, &["patch"]) },
    Ask { resource: "agents/finalizers", ..ask(UsedBy::Controllers, Kind::Agent, &["update"]) },
    ask(UsedBy::Controllers, Kind::BeeaiAgent, &["patch"]),
    Ask { resource: "agents/status", ..ask(UsedBy::Controllers, Kind::BeeaiAgent, &["patch"]) },
    Ask { resource: "agents/finalizers", ..ask(UsedBy::Controllers, Kind::BeeaiAgent, &["update"]) },
    ask(UsedBy::Controllers, Kind::BeeaiCompatAgent, &["patch"]),
    Ask { resource: "agents/status", ..ask(UsedBy::Controllers, Kind::BeeaiCompatAgent, &["patch"]) },
    Ask { resource: "agents/finalizers", ..ask(UsedBy::Controllers, Kind::BeeaiCompatAgent, &["update"]) },
    // Builds of BeeAI, the Agents that they keep, and the logins that are made from their tokens.
    ask(UsedBy::Controllers, Kind::BeeaiBuild, &["list", "watch", "patch"]),
    Ask { resource: "agentbuilds/status", ..ask(UsedBy::Controllers, Kind::BeeaiBuild, &["patch"]) },
    Ask { resource: "agentbuilds/finalizers", ..ask(UsedBy::Controllers, Kind::BeeaiBuild, &["update"]) },
    ask(UsedBy::Controllers, Kind::BeeaiCompatBuild, &["list", "watch", "patch"]),
    Ask { resource: "agentbuilds/status", ..ask(UsedBy::Controllers, Kind::BeeaiCompatBuild, &["patch"]) },
    Ask { resource: "agentbuilds/finalizers", ..ask(UsedBy::Controllers, Kind::BeeaiCompatBuild, &["update"]) },
    ask(UsedBy::Controllers, Kind::BeeaiAgent, &["create"]),
    ask(UsedBy::Controllers, Kind::BeeaiCompatAgent, &["create"]),
    ask(UsedBy::Controllers, Kind::Secret, &["create", "patch"]),
    ask(UsedBy::Controllers, Kind::Deployment, &["create", "delete"]),
    // Agents, ModelAPIs and MCPServers of KAOS, and their routes.
    ask(UsedBy::Controllers, Kind::KaosAgent, &["patch"]),
    Ask { resource: "agents/status", ..ask(UsedBy::Controllers, Kind::KaosAgent, &["patch"]) },
    Ask { resource: "agents/finalizers", ..ask(UsedBy::Controllers, Kind::KaosAgent, &["update"]) },
    ask(UsedBy::Controllers, Kind::ModelApi, &["patch"]),
    Ask { resource: "modelapis/status", ..ask(UsedBy::Controllers, Kind::ModelApi, &["patch"]) },
    Ask { resource: "modelapis/finalizers", ..ask(UsedBy::Controllers, Kind::ModelApi, &["update"]) },
    ask(UsedBy::Controllers, Kind::McpServer, &["patch"]),
    Ask { resource: "mcpservers/status", ..ask(UsedBy::Controllers, Kind::McpServer, &["patch"]) },
    Ask { resource: "mcpservers/finalizers", ..ask(UsedBy::Controllers, Kind::McpServer, &["update"]) },
    // The deny and the quarantine once more, where the cluster has a tier that no namespace opens.
    ask(UsedBy::Controllers, Kind::ClusterNetworkPolicy, &["list", "watch", "create", "patch", "delete"]),
    ask(UsedBy::Controllers, Kind::HttpRoute, &["list", "watch", "create", "patch", "delete"]),
    // Whether the original operator of KAOS still writes.
    Ask { name: Some(keys::LEASE_KAOS_BEFORE), ..ask(UsedBy::Controllers, Kind::Lease, FOLLOW) },
    // Cards of agents: made, adopted, freed of finalizers; taken away where somebody made another one.
    ask(UsedBy::Controllers, Kind::AgentCard, &["create", "patch", "delete"]),
    Ask { resource: "agentcards/status", ..ask(UsedBy::Controllers, Kind::AgentCard, &["patch"]) },
    ask(UsedBy::Controllers, Kind::Service, &["create", "patch", "delete"]),
    ask(UsedBy::Controllers, Kind::Job, &["patch"]),
    ask(UsedBy::Controllers, Kind::ServiceAccount, &["create", "patch"]),
    ask(UsedBy::Controllers, Kind::ConfigMap, &["create", "patch", "delete"]),
    // The trust bundle, by name, wherever it is.
    ask(UsedBy::Controllers, Kind::ConfigMap, &["get"]),
    // Cards that Pods sign: the right to write the one ConfigMap, for the account that they run under. What of it may be written is bound by the
    // policy for our own account.
    ask(UsedBy::Controllers, Kind::Role, &["get", "list", "watch", "create", "patch", "delete"]),
    ask(UsedBy::Controllers, Kind::RoleBinding, &["get", "list", "watch", "create", "patch", "delete"]),
    // What agents reach: where the API server is, policies, and the trust label of running Pods.
    ask(UsedBy::Controllers, Kind::EndpointSlice, FOLLOW),
    ask(UsedBy::Controllers, Kind::NetworkPolicy, &["create", "patch", "delete"]),
    ask(UsedBy::Controllers, Kind::Pod, &["patch"]),
    ask(UsedBy::Controllers, Kind::Event, &["get", "create"]),
    // Owners of ServiceAccounts are set without blockOwnerDeletion, so no right on finalizers is needed.
    lease(None, &["create"]),
    lease(Some(keys::LEASE), &["get", "list", "watch", "update"]),
    // Pods behind the gate: replaced, and asked for by dry run.
    ask(UsedBy::Gate, Kind::Pod, &["create", "delete"]),
];

/// Whether `verb` on `kind`, or on a subresource of it, is declared for a process with role controllers.
#[must_use]
pub fn declared(verb: &str, kind: Kind, subresource: Option<&str>) -> bool {
    let resource = subresource.map_or_else(|| kind.plural().to_owned(), |sub| format!("{}/{sub}", kind.plural()));
    ASKS.iter().any(|ask| ask.group == kind.group() && ask.resource == resource && ask.verbs.contains(&verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everywhere that a selection reads, by whoever uses it.
    #[test]
    fn what_is_selected_may_be_listed_and_watched() {
        for kind in Kind::ALL {
            for selection in kind.descriptor().selections {
                let least = if selection.names { UsedBy::Every } else { selection.used_by };
                let may = |verb: &str| {
                    ASKS.iter().any(|ask| {
                        (ask.group, ask.resource) == (kind.group(), kind.plural())
                            && ask.asker <= least
                            && !ask.own_namespace
                            && ask.name.is_none_or(|name| selection.name == Some(name))
                            && ask.verbs.contains(&verb)
                    })
                };
                assert!(may("list") && may("watch"), "{kind:?}: {selection:?}");
            }
        }
    }
}
