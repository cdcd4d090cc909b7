//! What is kept of workloads: seven kinds, which share it.
//!
//! Promise: a few hundred bytes each, whatever the object's size (a test holds it): keys of ours, the part of the Pod
//! template that decides about injection, and how a rollout goes.

mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::claim::{applied_fields, digest};
use super::{Kind, Slim, What};
use crate::api::agent_kagenti_dev::agent_card::is_within;
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::refused_pods;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::decode::fields::{Owned, Place};
use crate::store::decode::identity::owner;
use crate::store::decode::wire::{Condition, Metadata, Raw, Spec, Status};
use crate::store::kind::page;
use crate::store::label::TypeLabel;
use crate::store::{Decode, Descriptor, Kept, Observed, Over, OwnerReference, Selection, UsedBy, WrittenBefore};
pub use template::{Pairs, TemplateSeen};
use template::{longest, reduced};

/// Jobs: admission asks for the one that a Pod belongs to.
pub(super) const JOB: Descriptor = Descriptor {
    words: &["job", "jobs"],
    selections: &[Selection::all(page::LARGE, UsedBy::Every)],
    slim: job_owner,
    ..Descriptor::built_in("batch", "jobs", "Job", Decode::Common(project))
};

/// CronJobs.
pub(super) const CRON_JOB: Descriptor = Descriptor {
    words: &["cronjob", "cronjobs", "cj"],
    selections: FOR_CONTROLLERS,
    ..Descriptor::built_in("batch", "cronjobs", "CronJob", Decode::Common(project))
};

/// Deployments.
pub(super) const DEPLOYMENT: Descriptor = Descriptor {
    words: &["deployment", "deployments", "deploy"],
    selections: FOR_CONTROLLERS,
    bounded: true,
    ..Descriptor::built_in("apps", "deployments", "Deployment", Decode::Common(project))
};

/// ReplicaSets.
pub(super) const REPLICA_SET: Descriptor = Descriptor {
    words: &["replicaset", "replicasets", "rs"],
    selections: FOR_CONTROLLERS,
    ..Descriptor::built_in("apps", "replicasets", "ReplicaSet", Decode::Common(project))
};

/// StatefulSets.
pub(super) const STATEFUL_SET: Descriptor = Descriptor {
    words: &["statefulset", "statefulsets", "sts"],
    selections: FOR_CONTROLLERS,
    ..Descriptor::built_in("apps", "statefulsets", "StatefulSet", Decode::Common(project))
};

/// DaemonSets.
pub(super) const DAEMON_SET: Descriptor = Descriptor {
    words: &["daemonset", "daemonsets", "ds"],
    selections: FOR_CONTROLLERS,
    ..Descriptor::built_in("apps", "daemonsets", "DaemonSet", Decode::Common(project))
};

/// Sandboxes, where their definition is installed.
pub(super) const SANDBOX: Descriptor = Descriptor {
    words: &["sandbox", "sandboxes"],
    selections: FOR_CONTROLLERS,
    ..Descriptor::optional(("agents.x-k8s.io", "v1alpha1"), "sandboxes", "Sandbox", Decode::Common(project))
};

/// Only the controllers read them.
const FOR_CONTROLLERS: &[Selection] = &[Selection::all(page::LARGE, UsedBy::Controllers)];

fn project(kind: Kind, raw: Raw) -> Option<What> {
    workload(kind.workload()?, raw).map(|seen| What::Workload(Box::new(seen)))
}

/// What a Job's Pods need to know of the Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOwner {
    /// `metadata.uid` of the Job: a Job of the same name made later is another one.
    pub uid: Arc<str>,
    /// The CronJob that controls it, or the Job itself.
    pub workload: Workload,
}

/// Admission reads whose the Pods of a Job are.
fn job_owner(name: &str, now: &Arc<Observed>) -> Arc<Observed> {
    let What::Workload(seen) = &now.what else { return now.clone() };
    let controller = seen.controller.as_ref().map(|owner| (owner.group(), &*owner.kind, &*owner.name));
    let owner = JobOwner { uid: now.uid.clone(), workload: Workload::of_job(name, controller) };
    let what = What::Slim(Slim::Job(Arc::new(owner)));
    Arc::new(Observed { uid: now.uid.clone(), version: now.version, what })
}

/// Something that makes Pods.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSeen {
    /// Which kind.
    pub kind: WorkloadKind,
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// Being deleted.
    pub deleting: bool,
    /// The labels of ours on the workload itself; also `app.kubernetes.io/managed-by`, and of an agent its protocols and
    /// `app.kubernetes.io/name`.
    pub labels: Pairs,
    /// The annotations of ours on the workload itself.
    pub annotations: Pairs,
    /// The part of the Pod template that decides whether and how it is injected. Always of roots; `None` of a Job that
    /// is not enrolled.
    pub template: Option<TemplateSeen>,
    /// What of our fields was applied by manager `drawbridge/enrolment`; `None` when it has no entry.
    pub applied: Option<Owned>,
    /// The type label on the workload itself, unless enrolment alone has written it (kinds that can be enrolled).
    pub type_label: Option<Box<TypeLabel>>,
    /// What of our fields the Go operator owns, and the place of its entry in `metadata.managedFields`. An entry of another operator whose
    /// field manager has the same name is none.
    pub upstream: Option<(usize, Owned)>,
    /// How far the rollout of the present template is (roots).
    pub rollout: Rollout,
    /// It says of itself that it can serve (roots): a Deployment that it is available, a StatefulSet or DaemonSet that all its
    /// Pods are ready, anything else that it is.
    pub ready: bool,
    /// What an Agent's controller reads of its Deployment, of one that an Agent controls.
    pub agent: Option<Box<AgentDeploymentSeen>>,
    /// Pods are wanted and (as far as the kind tells) could not be created.
    pub unmet: bool,
    /// Why the API server refuses its Pods, as its condition `ReplicaFailure` says (Deployments).
    pub failure: Option<Reason>,
    /// Fact that the object was last told to try again for.
    pub retried: Option<Arc<str>>,
    /// `spec.suspend` (Jobs).
    pub suspended: bool,
    /// Suspended by us, to replace Pods that wait behind the gate (Jobs).
    pub suspended_by_us: bool,
    /// `status.active` (Jobs).
    pub active: i32,
    /// `spec.selector` of one that makes agents' Pods and whose selector never changes; of a Sandbox, which has none, the labels of its
    /// template. `None` of others, and of one that is larger than [`SELECTOR`].
    pub selector: Option<Kept>,
    /// Its selector names `kagenti.io/type`: the template must carry the label, and neither can be changed.
    pub selects_type: bool,
}

/// What an Agent's controller reads of its Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentDeploymentSeen {
    /// Digest of what we applied last (annotation `kagenti.io/content-digest`).
    pub applied: Option<Box<str>>,
    /// The fields that we have applied and nobody has taken since, as FieldsV1.
    pub fields: Option<Arc<str>>,
    /// Image of the container named `agent`, or of the first.
    pub image: Option<Box<str>>,
    /// `spec.selector.matchLabels`.
    pub selector: BTreeMap<String, String>,
    /// `status.readyReplicas`.
    pub ready: i64,
    /// `status.unavailableReplicas`.
    pub unavailable: i64,
    /// Condition `Available`.
    pub is_available: Option<bool>,
    /// The message of condition `ReplicaFailure=True`.
    pub failure: Option<Box<str>>,
    /// `status.conditions`, of a Deployment of KAOS: its status repeats them.
    pub conditions: Option<Arc<Value>>,
    /// What was written on it before the Agent's controller had applied anything.
    pub written_before: Option<WrittenBefore>,
    /// There is no room for [`Self::fields`] and [`Self::conditions`] beside what is written on others: what was applied counts as lost.
    pub over: Option<Over>,
}

/// How far a rollout is, in the words of the API; a DaemonSet's counts of nodes are its replicas. All 0 and false of
/// kinds that do not roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rollout {
    /// `metadata.generation`.
    pub generation: i64,
    /// `status.observedGeneration`.
    pub observed: i64,
    /// Pods that are wanted.
    pub wanted: i64,
    /// Pods that exist, of any template.
    pub existing: i64,
    /// Pods of the present template.
    pub updated: i64,
    /// Pods that are available, of any template.
    pub available: i64,
    /// `spec.paused` (Deployments).
    pub paused: bool,
    /// `spec.updateStrategy.type: OnDelete` (StatefulSets and DaemonSets).
    pub on_delete: bool,
    /// Condition `Progressing=False` with reason `ProgressDeadlineExceeded` (Deployments).
    pub deadline_exceeded: bool,
    /// Pods below `spec.updateStrategy.rollingUpdate.partition`, which keep the template of before (StatefulSets).
    pub held: i64,
}

impl Rollout {
    /// Every wanted Pod is of the present template and available, and no other is left, but for those that a partition holds.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let done = self.updated + self.held_back();
        self.is_observed() && done >= self.wanted && self.existing <= done && self.available >= done
    }

    /// The status tells about the present template.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        self.observed >= self.generation
    }

    /// The Pods that a partition keeps at the template of before.
    #[must_use]
    pub fn held_back(&self) -> i64 {
        self.held.min(self.wanted - self.updated).max(0)
    }
}

impl WorkloadSeen {
    /// The same without what was applied, for which there is no room; `None` of one of which nothing like it is kept.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Option<Self> {
        let agent = self.agent.as_deref()?;
        let agent = AgentDeploymentSeen { fields: None, conditions: None, over: Some(over), ..agent.clone() };
        Some(Self { agent: Some(Box::new(agent)), ..self.clone() })
    }

    /// Whether that field was written by an enrolment, ours or the Go operator's, and is not the user's own.
    #[must_use]
    pub fn enrolment_owns(&self, place: Place, key: &str) -> bool {
        let upstream = self.upstream.as_ref().map(|(_, owned)| owned);
        self.applied.iter().chain(upstream).any(|owned| owned.owns(place, key))
    }
}

fn workload(kind: WorkloadKind, raw: Raw) -> Option<WorkloadSeen> {
    let metadata = &raw.metadata;
    let spec = raw.spec.unwrap_or_default();
    let status = raw.status.unwrap_or_default();
    let root = WorkloadKind::TARGETS.contains(&kind);
    let template = spec.template_of(kind).map(reduced).filter(|template| root || template.agent_type().is_some());
    // Jobs are kept also without the label: their Pods may have got it from another webhook, and ours asks for the Job.
    if template.is_none() && !root && kind != WorkloadKind::Job {
        return None;
    }
    let entries = metadata.managed_fields.iter().flatten();
    let upstream = entries.clone().enumerate().filter(|(_, entry)| entry.is(keys::MANAGER_UPSTREAM, "Update"));
    Some(WorkloadSeen {
        kind,
        controller: owner(metadata),
        deleting: metadata.deletion_timestamp.is_some(),
        labels: labels(metadata),
        annotations: Pairs::of(metadata.annotations.as_ref(), keys::is_of_workload),
        applied: entries.clone().find(|entry| entry.is(keys::MANAGER_ENROLMENT, "Apply")).map(|entry| entry.owned()),
        type_label: TypeLabel::of(metadata).filter(|_| root).map(Box::new),
        upstream: upstream.map(|(at, entry)| (at, entry.owned())).find(|(_, owned)| is_upstream(metadata, owned)),
        rollout: if root { rollout(kind, metadata, &spec, &status) } else { Rollout::default() },
        ready: root && ready(kind, &spec, &status),
        agent: agent_deployment(kind, metadata, &spec, &status),
        unmet: unmet(kind, &spec, &status),
        failure: if root { failure(&status) } else { None },
        retried: metadata.annotation(keys::ANNOTATION_RETRY).filter(|fact| fact.len() <= FACT).map(Into::into),
        suspended: spec.suspend == Some(true),
        suspended_by_us: metadata.annotation(keys::ANNOTATION_SUSPENDED).is_some(),
        active: i32::try_from(status.active()).unwrap_or(i32::MAX),
        selects_type: spec.selector.as_ref().is_some_and(selects_type),
        selector: selector(kind, template.as_ref(), &spec),
        template,
    })
}

/// Whether what a manager of that name owns was written by the Go operator: it alone writes the hash, and its own name as `managed-by`. The
/// manager of every operator that gives it no other name is called the same.
fn is_upstream(metadata: &Metadata, owned: &Owned) -> bool {
    let is_named = metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_UPSTREAM);
    owned.owns(Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH)
        || (is_named && owned.owns(Place::Labels, keys::LABEL_APP_MANAGED_BY))
}

/// Bytes of a fact that an object is told to try again for; those that we write are some dozens.
const FACT: usize = 1024;

/// Bytes of text that are kept of a selector.
pub const SELECTOR: usize = 2048;

/// By what its agents' Pods are selected.
fn selector(kind: WorkloadKind, template: Option<&TemplateSeen>, spec: &Spec) -> Option<Kept> {
    template.filter(|template| template.agent_type() == Some(AgentType::Agent.as_str()))?;
    let selector = match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => spec.selector.clone()?,
        WorkloadKind::Sandbox => {
            let labels = spec.template_of(kind)?.metadata.as_ref()?.labels.as_ref()?;
            let own = labels.iter().filter(|(key, _)| *key != keys::LABEL_VERIFIED);
            json!({"matchLabels": own.map(|(key, value)| (key.clone(), value.clone().into())).collect::<Map<_, _>>()})
        }
        _ => return None,
    };
    is_within(&selector, SELECTOR).then(|| Kept::of(&selector))
}

/// The protocol that an agent is asked in where it speaks it.
const A2A: &str = "a2a";
/// Labels for other protocols that are kept of a workload.
const PROTOCOLS: usize = 16;

/// The labels that are kept of a workload itself.
fn labels(metadata: &Metadata) -> Pairs {
    let is_agent = metadata.label(keys::LABEL_TYPE) == Some(AgentType::Agent.as_str());
    let keep = if is_agent { keys::is_of_agent } else { keys::is_ours };
    let mut protocols = 0;
    let kept = metadata.labels.iter().flatten().filter(|(key, value)| {
        // A2A comes before all others, and then the first by name.
        let is_one_of_many = key.strip_prefix(keys::PREFIX_PROTOCOL).is_some_and(|protocol| protocol != A2A);
        protocols += usize::from(is_one_of_many);
        keep(key) && value.len() <= longest(key) && (!is_one_of_many || protocols <= PROTOCOLS)
    });
    Pairs::of_texts(kept.map(|(key, value)| (key.as_str(), value.as_str())))
}

/// Whether it says of itself that it can serve.
fn ready(kind: WorkloadKind, spec: &Spec, status: &Status) -> bool {
    let all = |wanted: i64, ready: Option<i64>| wanted > 0 && ready == Some(wanted);
    match kind {
        WorkloadKind::Deployment => status.is("Available"),
        WorkloadKind::StatefulSet => all(spec.replicas.unwrap_or(1), status.ready_replicas),
        WorkloadKind::DaemonSet => all(status.desired_number_scheduled.unwrap_or_default(), status.number_ready),
        _ => status.is("Ready"),
    }
}

/// Whether a selector wants label `kagenti.io/type` to be there.
#[must_use]
pub fn selects_type(selector: &Value) -> bool {
    let wants = |one: &Value| {
        let text = |key: &str| one.get(key).and_then(Value::as_str);
        text("key") == Some(keys::LABEL_TYPE) && matches!(text("operator"), Some("In" | "Exists"))
    };
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    selector.get("matchLabels").is_some_and(|labels| labels.get(keys::LABEL_TYPE).is_some())
        || expressions.is_some_and(|all| all.iter().any(wants))
}

/// Bytes of an image's name that is kept: more than a registry takes.
const IMAGE: usize = 1024;
/// Labels that are kept of a selector: many more than any of ours has.
const SELECTOR_LABELS: usize = 32;

fn agent_deployment(
    kind: WorkloadKind,
    metadata: &Metadata,
    spec: &Spec,
    status: &Status,
) -> Option<Box<AgentDeploymentSeen>> {
    if kind != WorkloadKind::Deployment || owner(metadata).is_none_or(|owner| owner.agent_manager().is_none()) {
        return None;
    }
    let containers = spec.template.as_ref()?.spec.as_ref()?.containers.as_deref().unwrap_or_default();
    let agent = containers.iter().find(|one| one.name == keys::CONTAINER_AGENT).or_else(|| containers.first());
    let condition = |type_: &str| status.conditions.iter().flatten().find(|one| one.type_ == type_);
    let selector = spec.selector.as_ref().and_then(|selector| selector.get("matchLabels")?.as_object());
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    let failure = condition("ReplicaFailure").filter(|one| one.status == "True");
    let is_kaos = owner(metadata).is_some_and(|owner| owner.group() == keys::GROUP_KAOS);
    Some(Box::new(AgentDeploymentSeen {
        applied: digest(metadata, keys::ANNOTATION_CONTENT_DIGEST).map(Into::into),
        fields: applied_fields(metadata),
        image: agent.and_then(|agent| agent.image.as_deref()).filter(|image| image.len() <= IMAGE).map(Into::into),
        selector: selector.into_iter().flatten().filter_map(text).take(SELECTOR_LABELS).collect(),
        ready: status.ready_replicas.unwrap_or_default(),
        unavailable: status.unavailable_replicas.unwrap_or_default(),
        is_available: condition("Available").map(|one| one.status == "True"),
        failure: failure.map(|one| one.message.as_deref().unwrap_or_default().into()),
        conditions: is_kaos.then(|| Arc::new(conditions(status))),
        written_before: metadata.written_before(),
        over: None,
    }))
}

/// Conditions as a status of ours repeats them.
fn conditions(status: &Status) -> Value {
    let one = |one: &Condition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let mut kept = json!({"type": one.type_, "status": one.status, "reason": text(&one.reason), "message": text(&one.message)});
        if let Some(time) = &one.last_transition_time {
            kept["lastTransitionTime"] = json!(time);
        }
        kept
    };
    status.conditions.iter().flatten().map(one).collect()
}

fn rollout(kind: WorkloadKind, metadata: &Metadata, spec: &Spec, status: &Status) -> Rollout {
    let count = |number: Option<i64>| number.unwrap_or_default();
    let stuck = |one: &Condition| {
        one.type_ == "Progressing" && one.status == "False" && one.reason.as_deref() == Some("ProgressDeadlineExceeded")
    };
    let base = Rollout {
        generation: count(metadata.generation),
        observed: count(status.observed_generation),
        paused: spec.paused == Some(true),
        on_delete: spec.update_strategy.as_ref().is_some_and(|strategy| strategy.type_.as_deref() == Some("OnDelete")),
        deadline_exceeded: status.conditions.iter().flatten().any(stuck),
        ..Rollout::default()
    };
    let wanted = spec.replicas.unwrap_or(1);
    match kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet => Rollout {
            wanted,
            held: if kind == WorkloadKind::StatefulSet { partition(spec).clamp(0, wanted.max(0)) } else { 0 },
            existing: count(status.replicas),
            updated: count(status.updated_replicas),
            available: count(status.available_replicas),
            ..base
        },
        WorkloadKind::DaemonSet => Rollout {
            wanted: count(status.desired_number_scheduled),
            existing: count(status.current_number_scheduled),
            updated: count(status.updated_number_scheduled),
            available: count(status.number_available),
            ..base
        },
        // A Sandbox keeps its Pod, a CronJob makes the next one from the new template: neither rolls.
        WorkloadKind::Sandbox => Rollout { wanted, existing: count(status.replicas), ..base },
        _ => base,
    }
}

fn partition(spec: &Spec) -> i64 {
    let update = spec.update_strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    update.and_then(|update| update.partition).unwrap_or_default()
}

fn unmet(kind: WorkloadKind, spec: &Spec, status: &Status) -> bool {
    match kind {
        // The only kind that says it: fewer Pods than wanted is also what a busy controller looks like.
        WorkloadKind::ReplicaSet => {
            let refused = |one: &Condition| one.type_ == "ReplicaFailure" && one.status == "True";
            status.replicas.unwrap_or_default() < spec.replicas.unwrap_or(1)
                && status.conditions.iter().flatten().any(refused)
        }
        // Ordered StatefulSets have fewer Pods than wanted in the ordinary course; none at all is another matter.
        WorkloadKind::StatefulSet => status.replicas.unwrap_or_default() == 0 && spec.replicas.unwrap_or(1) > 0,
        WorkloadKind::DaemonSet => {
            status.current_number_scheduled.unwrap_or_default() < status.desired_number_scheduled.unwrap_or_default()
        }
        WorkloadKind::Job => {
            let done = [status.succeeded, status.failed].into_iter().flatten().sum::<i64>() > 0;
            spec.suspend != Some(true) && status.active() == 0 && !done && status.completion_time.is_none()
        }
        _ => false,
    }
}

/// Why Pods are refused: what a Deployment takes over from its ReplicaSets.
fn failure(status: &Status) -> Option<Reason> {
    let refused = |one: &&Condition| one.type_ == "ReplicaFailure" && one.status == "True";
    let told = status.conditions.iter().flatten().find(refused)?;
    Some(refused_pods::reason(told.message.as_deref().unwrap_or_default()))
}
