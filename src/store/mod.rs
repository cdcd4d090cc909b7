//! What the cluster holds: per kind a descriptor, and projections of its objects of a few hundred bytes.
//!
//! In: the JSON of a watched object ([`decode`]). Out: an [`Observed`] with what admission and controllers read, and
//! nothing else. Promise: a projection does not depend on fields that are not listed here, so an update elsewhere in
//! the object compares equal. Watches make these values, and one [`Store`] of the process keeps them for whoever looks things up.

mod change;
pub mod decode;
pub mod enrolment;
mod kept;
pub mod kind;
pub mod kinds;
pub mod label;
mod object;
pub mod objects;

#[cfg(test)]
mod tests;

pub use crate::domain::bounds::{LARGEST_TEXT, Over};
pub use change::{Change, Reach, SelectionId, Taken, Via};
pub use decode::change_of;
pub use decode::fields::{Owned, Place, WrittenBefore};
pub use decode::pool::Pool;
pub use kept::Kept;
pub use kind::{Decode, Descriptor, KindOrigin, Selection, UsedBy};
pub use kinds::agent_card::{AgentCardSeen, CardBinding, CardSpec, CardTarget, Trust, vouched};
pub use kinds::agent_runtime::{AgentRuntimeSeen, Target};
pub use kinds::claim::ClaimSeen;
pub use kinds::cluster_network_policy::ClusterNetworkPolicySeen;
pub use kinds::config_map::ConfigMapSeen;
pub use kinds::custom::CustomSeen;
pub use kinds::endpoint_slice::EndpointSliceSeen;
pub use kinds::http_route::{Accepted, HttpRouteSeen};
pub use kinds::lease::LeaseSeen;
pub use kinds::namespace::NamespaceSeen;
pub use kinds::network_policy::NetworkPolicySeen;
pub use kinds::pod::{BuildPodSeen, PodEndpoint, PodPhase, PodPort, PodSeen};
pub use kinds::right::RightSeen;
pub use kinds::service::{IpFamily, Leads, PortProtocol, ServicePort, ServiceSeen, TargetPort};
pub use kinds::service_account::ServiceAccountSeen;
pub use kinds::signed_card::SignedCardSeen;
pub use kinds::tekton::{PipelineRunSeen, TaskRunSeen};
pub use kinds::workload::{AgentDeploymentSeen, JobOwner, Pairs, Rollout, TemplateSeen, WorkloadSeen, selects_type};
pub use kinds::{Kind, Slim, What};
pub use label::TypeLabel;
pub use object::{Key, Observed, OwnerReference};
pub use objects::Store;
