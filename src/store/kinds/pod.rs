//! What is kept of Pods: of those that are enrolled or wait behind our gate, and of those of builds' tasks.

use std::sync::Arc;

use super::{Kind, What};
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::Raw;
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
    pub agent_type: Box<str>,
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
        hash: metadata.annotation(keys::ANNOTATION_CONFIG_HASH).map(Into::into),
        // The annotation alone proves nothing: whoever opts a Pod out can write it himself, or have copied it.
        injected: metadata.annotation(keys::ANNOTATION_STATUS).is_some()
            && containers.any(|name| keys::OUR_CONTAINERS.contains(&name.as_str())),
        terminating: metadata.deletion_timestamp.is_some(),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        phase,
        gated,
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
