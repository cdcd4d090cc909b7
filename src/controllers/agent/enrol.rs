//! What enrolment would write on a Deployment right after it was made, written while it is made: its Pods are made once.
//!
//! In: the Deployment as it is to be applied. Out: type label and hash for its Pod template. Promises: the same values,
//! from the same resolver, that enrolment computes, so that it finds nothing to change; from the moment at which
//! enrolment has taken over the fields, they are its own, and no longer part of what is applied here.

use serde_json::{Value, json};

use super::subject::Subject;
use crate::admission::inject::{governed_template, needs};
use crate::config::agent_runtime::AgentRuntimeInput;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::objects::RuntimeRef;
use crate::store::{Place, WorkloadSeen};

/// What is added to the Pod template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Carried {
    /// `kagenti.io/type`, when an AgentRuntime gives it.
    agent_type: Option<String>,
    /// `kagenti.io/config-hash`.
    hash: Option<String>,
}

/// The snapshot does not know yet which AgentRuntime governs the Deployment.
pub(in crate::controllers::agent) struct Unsettled;

impl Carried {
    pub(super) fn put(&self, template: &mut Value) {
        if let Some(agent_type) = &self.agent_type {
            template["metadata"]["labels"][keys::LABEL_TYPE] = json!(agent_type);
        }
        if let Some(hash) = &self.hash {
            template["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH] = json!(hash);
        }
    }
}

/// What a Deployment's template carries besides what the Agent says; `template` is that, with the Agent's own labels.
pub(super) fn carried(
    subject: &Subject<'_>,
    ours: Option<&WorkloadSeen>,
    template: &Value,
) -> Result<Carried, Unsettled> {
    match ours {
        Some(seen) => Ok(kept(subject, seen, template)),
        None => first(subject, template),
    }
}

fn winner<'a>(subject: &Subject<'a>) -> Option<RuntimeRef<'a>> {
    let (namespace, name) = (&subject.made.namespace, &subject.made.name);
    let first = subject.cx.store.agent_runtimes_of(namespace, WorkloadKind::Deployment, name).next();
    first.filter(|runtime| !runtime.seen.deleting)
}

fn has_type(template: &Value) -> bool {
    template.pointer("/metadata/labels").and_then(|labels| labels.get(keys::LABEL_TYPE)).is_some()
}

/// What the template of a Deployment that is made now carries.
fn first(subject: &Subject<'_>, template: &Value) -> Result<Carried, Unsettled> {
    let (namespace, name) = (&*subject.made.namespace, &*subject.made.name);
    let winner = winner(subject);
    let facts = subject.cx.facts;
    let Some(view) = facts.snapshot.namespace(namespace) else { return Err(Unsettled) };
    let says =
        winner.map(|winner| AgentRuntimeInput { uid: winner.uid.into(), ..AgentRuntimeInput::of_seen(winner.seen) });
    let settled = match (view.governors.winner(WorkloadKind::Deployment, name), &says) {
        (None, None) => true,
        (Some(known), Some(says)) => known.says.same_settings(says) && known.says.uid == says.uid,
        _ => false,
    };
    if !settled {
        return Err(Unsettled);
    }
    // What enrolment refuses is not anticipated either.
    let refused = says.as_ref().is_some_and(|says| {
        says.agent_type.is_none() || says.faults.iter().any(|fault| fault.reason == Reason::ModeNotAvailable)
    });
    if refused || (winner.is_none() && !has_type(template)) {
        return Ok(Carried::default());
    }
    let workload = Workload { kind: WorkloadKind::Deployment, name: name.to_owned() };
    let governed = governed_template(namespace, &workload, template, &facts.settled);
    let needs = needs(namespace, &workload, &governed, &facts.settled);
    if needs.refused.is_some() {
        return Ok(Carried::default());
    }
    let given = says.as_ref().and_then(|says| says.agent_type).map(|kind| kind.as_str().to_owned());
    let agent_type = given.filter(|_| !has_type(template));
    // An AgentRuntime's enrolment writes a hash even where nothing is injected.
    let nothing = winner.map(|_| keys::HASH_OF_NOTHING.to_owned());
    Ok(Carried { agent_type, hash: needs.config_hash.or(nothing) })
}

/// What stays of it while enrolment has not taken it over.
fn kept(subject: &Subject<'_>, seen: &WorkloadSeen, template: &Value) -> Carried {
    let Some(live) = &seen.template else { return Carried::default() };
    let not_taken = |place, key| !seen.enrolment_owns(place, key);
    let governed = winner(subject).is_some();
    let agent_type = live
        .agent_type()
        .filter(|_| governed && !has_type(template) && not_taken(Place::TemplateLabels, keys::LABEL_TYPE));
    let enrolled = governed || has_type(template);
    let hash = live
        .annotations
        .get(keys::ANNOTATION_CONFIG_HASH)
        .filter(|_| enrolled && not_taken(Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH));
    Carried { agent_type: agent_type.map(str::to_owned), hash: hash.map(str::to_owned) }
}
