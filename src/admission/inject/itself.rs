//! The type label on a workload itself, while its Pod template has none: what becomes of the workload for it.
//!
//! In: a workload as it is sent, the snapshot. Out: the template as its Pods will have it, or why the label does nothing. Promise: the
//! same rule, from the same facts, by which the controllers enrol ([`crate::config::enrolment`]).

use serde_json::Value;

use crate::api::place::mapping;
use crate::api::review::Request;
use crate::config::enrolment::{self, Asks};
use crate::config::misplaced::{self, Named};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::TypeLabel;

/// What the label comes to.
pub(super) struct Asked {
    /// The template with the label that enrolment writes there.
    pub(super) template: Option<Value>,
    /// Why nothing is written, and what to do, without a full stop.
    pub(super) words: Option<(Reason, String)>,
}

/// What the label comes to; `None` where there is none, where the template has its own, and where an AgentRuntime governs.
pub(super) fn asked(
    request: &Request<'_>,
    workload: &Workload,
    (object, template): (&Value, &Value),
    snapshot: &Snapshot,
) -> Option<Asked> {
    let labels = |of: &Value| of.get("metadata").and_then(|metadata| metadata.get("labels")).cloned();
    labels(object)?.get(keys::LABEL_TYPE)?;
    if labels(template).is_some_and(|labels| labels.get(keys::LABEL_TYPE).is_some_and(|label| !label.is_null())) {
        return None;
    }
    let view = snapshot.namespace(request.namespace());
    if view.is_some_and(|view| view.governors.winner(workload.kind, &workload.name).is_some()) {
        return None;
    }
    let label = TypeLabel::of_object(object)?;
    let kind = workload.kind.as_str();
    let no = |reason, words| Some(Asked { template: None, words: Some((reason, words)) });
    let in_template = format!("write it under {}.metadata.labels", workload.kind.template_path().join("."));
    match snapshot.labels.asks(&label) {
        _ if !WorkloadKind::TARGETS.contains(&workload.kind) => {
            let named =
                Named { kind: workload.kind, spelled: kind, namespace: request.namespace(), name: &workload.name };
            let words = misplaced::of(named, object, Some(template)).map(|told| told.message);
            no(Reason::LabelIgnored, words.unwrap_or_else(|| enrolment::unknown(kind, &label.value)))
        }
        Asks::Nothing => {
            let words = format!(
                "label {} stands on the {kind} itself, where it is for discovery alone here; {in_template}",
                keys::LABEL_TYPE
            );
            no(Reason::NoTypeLabel, words)
        }
        Asks::Unknown => no(Reason::UnknownValue, enrolment::unknown(kind, &label.value)),
        Asks::Pending(agent_type) => {
            let words = enrolment::pending(kind, request.namespace(), &workload.name, agent_type);
            no(Reason::EnrolmentPending, words)
        }
        Asks::Enrolment(agent_type) => {
            let mut governed = template.clone();
            let labels = mapping(&mut governed, ["metadata", "labels"])?;
            labels.insert(keys::LABEL_TYPE.to_owned(), agent_type.as_str().into());
            Some(Asked { template: Some(governed), words: None })
        }
    }
}

/// What it means for Pods that the label stands on the workload itself, as the end of a sentence.
pub(super) fn rolls(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::CronJob => {
            "; the label stands on the CronJob itself: Drawbridge writes it into the template, and the next Job has it"
        }
        _ => {
            "; the label stands on the workload itself: Drawbridge writes it into the Pod template, and its Pods roll once. In \
             spec.template.metadata.labels it would cost no rollout"
        }
    }
}
