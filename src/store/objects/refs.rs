//! Objects of the store with what identifies them.

use std::sync::Arc;

use serde_json::Value;

use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::enrolment::{Asks, WorkloadLabels};
use crate::store::{AgentRuntimeSeen, Kind, Place, PodSeen, TemplateSeen, WorkloadSeen};

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

    /// Whether a label on the workload itself may ask for the same, as the settings have it.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.seen.type_label.is_some()
    }

    /// The type that the label on the workload itself gives its Pods: unless an AgentRuntime governs it, or its template has a
    /// label that enrolment has not written. What such a label has enrolled stays enrolled as long as it is there.
    #[must_use]
    pub fn label_type(&self, labels: &WorkloadLabels) -> Option<AgentType> {
        let (label, template) = (self.seen.type_label.as_deref()?, self.seen.template.as_ref()?);
        let ours = |place| self.seen.applied.as_ref().is_some_and(|applied| applied.owns(place, keys::LABEL_TYPE));
        let by_runtime = ours(Place::Labels);
        // A template that its user labels as well goes on as it is: what would be taken away would replace its Pods.
        let is_ours = ours(Place::TemplateLabels) && !(by_runtime && label.on_template);
        let carries_its_own = template.agent_type().is_some() && !is_ours;
        if self.winner.is_some() || carries_its_own {
            return None;
        }
        match labels.asks(label) {
            Asks::Enrolment(agent_type) => Some(agent_type),
            Asks::Pending(agent_type) => (ours(Place::TemplateLabels) && !by_runtime).then_some(agent_type),
            Asks::Unknown | Asks::Nothing => None,
        }
    }

    /// The Pod template as it will be once enrolment has done its part: with the type that the AgentRuntime gives, or the label
    /// on the workload. A type that somebody else has written stays, because it is never overwritten.
    #[must_use]
    pub fn governed_template(&self, labels: &WorkloadLabels) -> Option<Value> {
        let template = self.seen.template.as_ref()?;
        let given = self.winner.and_then(|winner| winner.seen.agent_type());
        let given = given.filter(|_| !self.has_type_of_others(template));
        Some(match given.or_else(|| self.label_type(labels).map(AgentType::as_str)) {
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
