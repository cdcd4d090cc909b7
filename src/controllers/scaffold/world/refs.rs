//! Objects of the world with what identifies them.

use std::sync::Arc;

use serde_json::Value;

use crate::api::observed::{AgentRuntimeSeen, Kind, Place, PodSeen, TemplateSeen, WorkloadSeen};
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};

/// A workload.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadRef<'a> {
    /// Kind.
    pub kind: Kind,
    /// `metadata.name`.
    pub name: &'a Arc<str>,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `metadata.resourceVersion`.
    pub version: u64,
    /// The rest.
    pub seen: &'a WorkloadSeen,
    /// The AgentRuntime that governs it.
    pub winner: Option<RuntimeRef<'a>>,
}

/// An AgentRuntime.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeRef<'a> {
    /// `metadata.name`.
    pub name: &'a Arc<str>,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `metadata.resourceVersion`.
    pub version: u64,
    /// The rest.
    pub seen: &'a AgentRuntimeSeen,
}

/// A Pod.
#[derive(Debug, Clone, Copy)]
pub struct PodRef<'a> {
    /// `metadata.name`.
    pub name: &'a Arc<str>,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// The rest.
    pub seen: &'a PodSeen,
}

impl WorkloadRef<'_> {
    /// The workload whose identity its Pods carry.
    #[must_use]
    pub fn identity(&self) -> Workload {
        identity(self.seen, self.name)
    }

    /// True unless a Deployment or CronJob controls it, which then answers for it.
    #[must_use]
    pub fn is_root(&self) -> bool {
        let owner = self.seen.controller.as_ref();
        let kind = owner.and_then(|owner| WorkloadKind::from_group_kind(owner.group(), &owner.kind));
        !matches!(
            (self.seen.kind, kind),
            (WorkloadKind::ReplicaSet, Some(WorkloadKind::Deployment))
                | (WorkloadKind::Job, Some(WorkloadKind::CronJob))
        )
    }

    /// Whether its Pods are, or are meant to be, enrolled.
    #[must_use]
    pub fn is_governed(&self) -> bool {
        self.winner.is_some() || self.seen.template.as_ref().is_some_and(|template| template.agent_type().is_some())
    }

    /// The Pod template as it will be once enrolment has done its part: with the type that the AgentRuntime gives.
    /// A type that somebody else has written stays, because it is never overwritten.
    #[must_use]
    pub fn governed_template(&self) -> Option<Value> {
        let template = self.seen.template.as_ref()?;
        let given = self.winner.and_then(|winner| winner.seen.agent_type());
        Some(match given.filter(|_| !self.has_type_of_others(template)) {
            Some(agent_type) => template.value_with_type(agent_type),
            None => template.value(),
        })
    }

    fn has_type_of_others(&self, template: &TemplateSeen) -> bool {
        template.agent_type().is_some() && !self.seen.enrolment_owns(Place::TemplateLabels, keys::LABEL_TYPE)
    }
}

/// The workload whose identity the Pods of `seen` carry: what `admission` finds from the Pod's side.
pub(super) fn identity(seen: &WorkloadSeen, name: &str) -> Workload {
    let controller = seen.controller.as_ref().map(|owner| (owner.group(), &*owner.kind, &*owner.name));
    match seen.kind {
        WorkloadKind::ReplicaSet => {
            let template = seen.template.as_ref();
            Workload::of_replica_set(name, template.and_then(|seen| seen.labels.get(keys::LABEL_POD_TEMPLATE_HASH)))
        }
        WorkloadKind::Job => Workload::of_job(name, controller),
        kind => Workload { kind, name: name.to_owned() },
    }
}
