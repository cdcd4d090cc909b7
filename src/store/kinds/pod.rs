//! What is kept of Pods: of those that are enrolled or wait behind our gate, and of those of builds' tasks.

use std::net::IpAddr;
use std::sync::Arc;

use super::claim::digest;
use super::{Kind, What};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::{ContainerPort, Raw};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, OwnerReference, Selection, UsedBy};

/// Pods.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    words: &["pod", "pods", "po"],
    selections: &[
        Selection::labelled(keys::LABEL_TYPE, page::LARGE, UsedBy::Controllers),
        Selection {
            keep: |_, what| matches!(what, What::BuildPod(_)),
            ..Selection::labelled(keys::LABEL_AGENT_BUILD, page::LARGE, UsedBy::Controllers)
        },
    ],
    ..Descriptor::built_in("", "pods", "Pod", Decode::Common(project))
};

/// `status.phase` of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the values are those of the API")]
pub enum PodPhase {
    Pending,
    Running,
    Succeeded,
    Failed,
    Unknown,
}

/// A Pod that is enrolled, or waits behind our gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodSeen {
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// The value of `kagenti.io/type`.
    pub agent_type: Arc<str>,
    /// The hash of what it was injected with (annotation `kagenti.io/config-hash`).
    pub hash: Option<Arc<str>>,
    /// Carries our status annotation: it went through the webhook and came out with our parts.
    pub injected: bool,
    /// Being deleted.
    pub terminating: bool,
    /// How far it has come.
    pub phase: PodPhase,
    /// Waits behind our scheduling gate.
    pub gated: bool,
    /// Label `kagenti.io/inject: disabled`: nobody but its template can have put the gate on it.
    pub opted_out: bool,
    /// Carries the trust label.
    pub verified: bool,
    /// As whom it is in quarantine, by the label of a Pod that is.
    pub quarantined: Option<Box<str>>,
    /// Where it is reached and as whom it runs, of an agent's Pod.
    pub endpoint: Option<Box<PodEndpoint>>,
}

impl PodSeen {
    /// It may still reach somebody: it has not ended, and is not being deleted.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.terminating && !matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }
}

/// Where a Pod is reached, and as whom it runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PodEndpoint {
    /// Condition `Ready`.
    pub ready: bool,
    /// It shares the network of its node, and so its address.
    pub host_network: bool,
    /// `status.podIPs`, at most [`ADDRESSES`].
    pub addresses: Box<[IpAddr]>,
    /// `spec.serviceAccountName`.
    pub account: Option<Arc<str>>,
    /// TCP ports of its containers, then those of its sidecars, in order, at most [`PORTS`].
    pub ports: Arc<[PodPort]>,
}

/// A port that a container names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct PodPort {
    pub name: Box<str>,
    pub number: u16,
}

/// Addresses that are kept of one Pod; Kubernetes gives it one of each family.
pub const ADDRESSES: usize = 4;
/// Ports that are kept of one Pod.
pub const PORTS: usize = 32;
/// Bytes of a port's name that Kubernetes takes.
const PORT_NAME: usize = 15;

impl PodEndpoint {
    /// The port of that name, as a Service finds it: the first.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<u16> {
        self.ports.iter().find(|port| !name.is_empty() && &*port.name == name).map(|port| port.number)
    }

    fn of(raw: &Raw) -> Self {
        let (spec, status) = (raw.spec.as_deref(), raw.status.as_deref());
        let regular = spec.and_then(|spec| spec.containers.as_ref()).into_iter().flatten();
        let sidecars = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
        let sidecars = sidecars.filter(|container| container.restart_policy.as_deref() == Some("Always"));
        let ports = regular.chain(sidecars).flat_map(|container| container.ports.iter().flatten());
        let port = |port: &ContainerPort| {
            let name = port.name.as_deref().unwrap_or_default();
            let is_tcp = port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP");
            let number = u16::try_from(port.container_port?).ok().filter(|number| is_tcp && *number > 0)?;
            (name.len() <= PORT_NAME).then(|| PodPort { name: name.into(), number })
        };
        let addresses = status.and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
        Self {
            ready: status.is_some_and(|status| status.is("Ready")),
            host_network: spec.is_some_and(|spec| spec.host_network == Some(true)),
            addresses: addresses.filter_map(|address| address.ip.parse().ok()).take(ADDRESSES).collect(),
            account: spec.and_then(|spec| spec.service_account_name.as_deref()).map(Into::into),
            ports: ports.filter_map(port).take(PORTS).collect(),
        }
    }
}

/// How far a Pod has come.
fn phase(raw: &Raw) -> PodPhase {
    match raw.status.as_ref().and_then(|status| status.phase.as_deref()) {
        None | Some("" | "Pending") => PodPhase::Pending,
        Some("Running") => PodPhase::Running,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        Some(_) => PodPhase::Unknown,
    }
}

fn pod(raw: Raw) -> Option<PodSeen> {
    let phase = phase(&raw);
    let is_agent = raw.metadata.label(keys::LABEL_TYPE) == Some(AgentType::Agent.as_str());
    let endpoint = is_agent.then(|| Box::new(PodEndpoint::of(&raw)));
    let spec = raw.spec.unwrap_or_default();
    let gated = spec.scheduling_gates.iter().flatten().any(|gate| gate.name == keys::SCHEDULING_GATE);
    let regular = spec.containers.iter().flatten().map(|container| &container.name);
    let mut containers = regular.chain(spec.init_containers.iter().flatten().map(|container| &container.name));
    let metadata = raw.metadata;
    let agent_type = metadata.label(keys::LABEL_TYPE);
    if agent_type.is_none() && !gated {
        return None;
    }
    Some(PodSeen {
        controller: owner(&metadata),
        agent_type: agent_type.unwrap_or_default().into(),
        hash: digest(&metadata, keys::ANNOTATION_CONFIG_HASH).map(Into::into),
        // The annotation alone proves nothing: whoever opts a Pod out can write it himself, or have copied it.
        injected: metadata.annotation(keys::ANNOTATION_STATUS).is_some()
            && containers.any(|name| keys::OUR_CONTAINERS.contains(&name.as_str())),
        terminating: metadata.deletion_timestamp.is_some(),
        opted_out: metadata.label(keys::LABEL_INJECT) == Some(keys::INJECT_DISABLED),
        verified: metadata.label(keys::LABEL_VERIFIED).is_some(),
        quarantined: metadata.label(keys::LABEL_QUARANTINED).map(Into::into),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        phase,
        gated,
        endpoint,
    })
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

fn project(_: Kind, raw: Raw) -> Option<What> {
    match build_pod(&raw) {
        Some(seen) => Some(What::BuildPod(seen)),
        None => pod(raw).map(What::Pod),
    }
}

/// The Pod of a build's task, unless it is one that injection is about.
fn build_pod(raw: &Raw) -> Option<BuildPodSeen> {
    let metadata = &raw.metadata;
    let run = metadata.label(keys::LABEL_PIPELINE_RUN).filter(|run| !run.is_empty())?;
    if metadata.label(keys::LABEL_AGENT_BUILD).is_none() || metadata.label(keys::LABEL_TYPE).is_some() {
        return None;
    }
    Some(BuildPodSeen {
        run: run.into(),
        controller: owner(metadata),
        terminating: metadata.deletion_timestamp.is_some(),
        phase: phase(raw),
    })
}
