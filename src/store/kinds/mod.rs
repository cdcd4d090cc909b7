//! The table of kinds. Another kind is a file here and a line in the table.

pub mod agent;
pub mod agent_build;
pub mod agent_card;
pub mod agent_runtime;
pub mod beeai_agent;
pub mod beeai_build;
pub mod claim;
pub mod cluster_network_policy;
pub mod config_map;
pub mod csi_driver;
pub mod custom;
pub mod endpoint_slice;
pub mod event;
pub mod http_route;
pub mod kaos;
pub mod lease;
pub mod namespace;
pub mod network_policy;
pub mod pod;
pub mod right;
pub mod secret;
pub mod service;
pub mod service_account;
pub mod signed_card;
pub mod tekton;
pub mod workload;

use std::sync::Arc;

use agent_card::{AgentCardSeen, CardTarget};
use agent_runtime::AgentRuntimeSeen;
use agent_runtime::input::AgentRuntimeInput;
use claim::ClaimSeen;
use cluster_network_policy::ClusterNetworkPolicySeen;
use config_map::ConfigMapSeen;
use custom::CustomSeen;
use endpoint_slice::EndpointSliceSeen;
use http_route::HttpRouteSeen;
use lease::LeaseSeen;
use namespace::NamespaceSeen;
use network_policy::NetworkPolicySeen;
use pod::{BuildPodSeen, PodSeen};
use right::RightSeen;
use service::ServiceSeen;
use service_account::ServiceAccountSeen;
use signed_card::SignedCardSeen;
use tekton::{PipelineRunSeen, TaskRunSeen};
use workload::{JobOwner, WorkloadSeen};

use super::{Descriptor, Key, OwnerReference};
use crate::domain::bounds::Over;
use crate::domain::workload::WorkloadKind;

/// Makes [`Kind`] of the table.
macro_rules! kinds {
    ($($kind:ident => $descriptor:path;)*) => {
        /// The kinds that are watched or written.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each is the Kubernetes kind of that name")]
        pub enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// Every kind, in the order in which they are watched and installed.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind,)*];

            /// Everything that is told of the kind.
            #[must_use]
            pub const fn descriptor(self) -> &'static Descriptor {
                match self {
                    $(Kind::$kind => &$descriptor,)*
                }
            }
        }
    };
}

kinds! {
    Namespace => namespace::DESCRIPTOR;
    ServiceAccount => service_account::DESCRIPTOR;
    Job => workload::JOB;
    CsiDriver => csi_driver::DESCRIPTOR;
    ConfigMap => config_map::DESCRIPTOR;
    AgentRuntime => agent_runtime::DESCRIPTOR;
    AgentBuild => agent_build::DESCRIPTOR;
    AgentCard => agent_card::DESCRIPTOR;
    NetworkPolicy => network_policy::DESCRIPTOR;
    ClusterNetworkPolicy => cluster_network_policy::DESCRIPTOR;
    Deployment => workload::DEPLOYMENT;
    StatefulSet => workload::STATEFUL_SET;
    DaemonSet => workload::DAEMON_SET;
    ReplicaSet => workload::REPLICA_SET;
    CronJob => workload::CRON_JOB;
    Sandbox => workload::SANDBOX;
    Pod => pod::DESCRIPTOR;
    Agent => agent::DESCRIPTOR;
    BeeaiAgent => beeai_agent::DESCRIPTOR;
    BeeaiCompatAgent => beeai_agent::COMPAT;
    KaosAgent => kaos::AGENT;
    ModelApi => kaos::MODEL_API;
    McpServer => kaos::MCP_SERVER;
    HttpRoute => http_route::DESCRIPTOR;
    BeeaiBuild => beeai_build::DESCRIPTOR;
    BeeaiCompatBuild => beeai_build::COMPAT;
    PipelineRun => tekton::PIPELINE_RUN;
    TaskRun => tekton::TASK_RUN;
    PersistentVolumeClaim => claim::DESCRIPTOR;
    Service => service::DESCRIPTOR;
    EndpointSlice => endpoint_slice::DESCRIPTOR;
    Event => event::DESCRIPTOR;
    Secret => secret::DESCRIPTOR;
    Lease => lease::DESCRIPTOR;
    SignedCard => signed_card::DESCRIPTOR;
    Role => right::ROLE;
    RoleBinding => right::ROLE_BINDING;
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
    /// An Agent of BeeAI, of either group.
    BeeaiAgent(Box<CustomSeen>),
    /// An Agent of KAOS.
    KaosAgent(Box<CustomSeen>),
    /// A ModelAPI.
    ModelApi(Box<CustomSeen>),
    /// An MCPServer.
    McpServer(Box<CustomSeen>),
    /// An AgentBuild.
    AgentBuild(Box<CustomSeen>),
    /// An HTTPRoute of what KAOS makes.
    HttpRoute(Box<HttpRouteSeen>),
    /// An AgentBuild of BeeAI, of either group.
    BeeaiBuild(Box<CustomSeen>),
    /// An AgentCard.
    AgentCard(Box<AgentCardSeen>),
    /// Any NetworkPolicy.
    NetworkPolicy(Box<NetworkPolicySeen>),
    /// A ClusterNetworkPolicy.
    ClusterNetworkPolicy(Box<ClusterNetworkPolicySeen>),
    /// Where the API server is.
    EndpointSlice(EndpointSliceSeen),
    /// The Lease of the original operator of KAOS.
    Lease(LeaseSeen),
    /// A ConfigMap with a signed card.
    SignedCard(SignedCardSeen),
    /// A Role or RoleBinding by which a Pod publishes its signed card.
    Right(Box<RightSeen>),
    /// A PipelineRun of a build.
    PipelineRun(Box<PipelineRunSeen>),
    /// A TaskRun of such a run.
    TaskRun(Box<TaskRunSeen>),
    /// Any Service.
    Service(Box<ServiceSeen>),
    /// A PersistentVolumeClaim of a build.
    Claim(ClaimSeen),
    /// A Pod of a build's task.
    BuildPod(BuildPodSeen),
    /// An object of any kind of which no more is read than that it is there.
    Known,
    /// No more than admission reads.
    Slim(Slim),
}

/// What admission reads of an object ([`Descriptor::slim`]), of kinds of which it reads little.
#[derive(Debug, Clone, PartialEq)]
pub enum Slim {
    /// A ServiceAccount that Pods may be given without being asked.
    DedicatedAccount,
    /// A Job: whose its Pods are.
    Job(Arc<JobOwner>),
    /// An AgentRuntime: what it asks for.
    AgentRuntime(Arc<AgentRuntimeInput>),
    /// An AgentCard of a person: the workload that it is of.
    Card(CardTarget),
    /// The NetworkPolicy that cuts off agents, where it is ours.
    CutsOff,
}

impl What {
    /// What is kept of a resource of ours of which everything is.
    #[must_use]
    pub fn custom(&self) -> Option<&CustomSeen> {
        match self {
            What::Agent(seen)
            | What::BeeaiAgent(seen)
            | What::AgentBuild(seen)
            | What::BeeaiBuild(seen)
            | What::KaosAgent(seen)
            | What::ModelApi(seen)
            | What::McpServer(seen) => Some(seen),
            _ => None,
        }
    }

    /// The bound that it is over: what [`What::slim`] made of it says so, whatever the kind.
    #[must_use]
    pub fn over(&self) -> Option<Over> {
        match self {
            What::AgentRuntime(seen) => seen.over,
            What::AgentCard(seen) => seen.over,
            What::Right(seen) => seen.over,
            What::NetworkPolicy(seen) => seen.over,
            What::SignedCard(seen) => seen.over,
            What::Workload(seen) => seen.agent.as_deref()?.over,
            What::Service(seen) => seen.claim.over,
            What::ServiceAccount(seen) => seen.over,
            what => what.custom()?.over,
        }
    }

    /// The same of which nothing is read because it is `over` a bound; `None` where that is kept of nothing like it.
    #[must_use]
    pub fn slim(&self, over: Over) -> Option<Self> {
        Some(match self {
            What::Agent(seen) => What::Agent(Box::new(seen.slim(over))),
            What::BeeaiAgent(seen) => What::BeeaiAgent(Box::new(seen.slim(over))),
            What::AgentBuild(seen) => What::AgentBuild(Box::new(seen.slim(over))),
            What::KaosAgent(seen) => What::KaosAgent(Box::new(seen.slim(over))),
            What::ModelApi(seen) => What::ModelApi(Box::new(seen.slim(over))),
            What::McpServer(seen) => What::McpServer(Box::new(seen.slim(over))),
            What::BeeaiBuild(seen) => What::BeeaiBuild(Box::new(seen.slim(over))),
            What::AgentRuntime(seen) => What::AgentRuntime(seen.slim(over)),
            What::AgentCard(seen) => What::AgentCard(Box::new(seen.slim(over))),
            What::Right(seen) => What::Right(Box::new(seen.slim(over))),
            What::NetworkPolicy(seen) => What::NetworkPolicy(Box::new(seen.slim(over))),
            What::SignedCard(seen) => What::SignedCard(seen.slim(over)),
            What::Workload(seen) => What::Workload(Box::new(seen.slim(over)?)),
            What::Service(seen) => What::Service(Box::new(seen.slim(over))),
            What::ServiceAccount(seen) => What::ServiceAccount(seen.slim(over)),
            _ => return None,
        })
    }

    /// What a store of the operator in namespace `own` keeps of the object `key`, where that is not all that a change brings.
    pub(super) fn kept(&self, own: &str, key: &Key) -> Option<Self> {
        match self {
            What::ConfigMap(seen) => seen.kept(own, key).map(What::ConfigMap),
            What::ServiceAccount(seen) => seen.kept(own, key).map(What::ServiceAccount),
            _ => None,
        }
    }

    /// Whose an object is that is made beside a workload, of kinds that are known by name alone.
    #[must_use]
    pub fn claim(&self) -> Option<&ClaimSeen> {
        match self {
            What::HttpRoute(seen) => Some(&seen.claim),
            What::ConfigMap(seen) => seen.claim.as_deref(),
            What::NetworkPolicy(seen) => seen.claim.as_deref(),
            _ => None,
        }
    }

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
            What::HttpRoute(seen) => seen.claim.controller.as_deref(),
            What::ConfigMap(seen) => seen.claim.as_ref()?.controller.as_deref(),
            _ => None,
        }
    }
}
