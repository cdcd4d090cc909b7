//! What the webhook will say of Pods of the whole template: the store keeps what decides whether they are injected, and not everything that may stand in
//! the way (ports, volumes, users, commands, annotations of others); pure.
//!
//! In: what is to be written, and then the workload as the API server has it. Out: a check that the write has to pass. Promises: what it says is said by
//! the webhook's own function, of the settings that the hash in the same write is of; where nothing would be injected, or no Pod replaced, nothing
//! is read; the deletion of an AgentRuntime never waits for it; a label that somebody has taken off the template is put back whatever it leads to, because
//! without it Pods are unprotected.

use super::fields::{Fields, value};
use super::judge::{Judgement, Subject, would_be_refused};
use crate::admission::inject::needs;
use crate::api::place::mapping;
use crate::controllers::scaffold::check::{Check, Objection};
use crate::domain::keys;
use crate::store::Place;

/// What the workload has to pass before these fields are written; `None` where they bring no Pods with sidecars.
pub(super) fn check(subject: &Subject<'_>, judgement: &Judgement, fields: &Fields) -> Option<Check> {
    let (workload, standing) = (&subject.workload, &judgement.standing);
    // A label goes on with what an AgentRuntime leaves behind.
    let is_left = workload.winner.is_none() && standing.is_of_runtime();
    let wanted = judgement.wanted.as_deref().filter(|hash| *hash != keys::HASH_OF_NOTHING);
    let is_wanted = wanted.is_some() && fields.hash() == wanted;
    let is_lost = !standing.is_empty() && value(workload.seen, Place::TemplateLabels, keys::LABEL_TYPE).is_none();
    if is_left || is_lost || !is_wanted || !fields.changes_template(standing) {
        return None;
    }
    let (namespace, uid, identity) = (subject.namespace().to_owned(), workload.uid.to_owned(), workload.identity());
    let (name, path) = (workload.name.clone(), workload.seen.kind.template_path());
    let agent_type = fields.get(Place::TemplateLabels, keys::LABEL_TYPE).map(str::to_owned);
    let snapshot = subject.cx.facts.settled.clone();
    Some(Check::new(move |object| {
        // Of another one under its name the write says so.
        if object["metadata"]["uid"] != *uid {
            return None;
        }
        let mut template = path.iter().try_fold(object, |inner, key| inner.get(*key))?.clone();
        if let Some(agent_type) = &agent_type {
            mapping(&mut template, ["metadata", "labels"])?
                .insert(keys::LABEL_TYPE.to_owned(), agent_type.as_str().into());
        }
        let refused = needs(&namespace, &identity, &template, &snapshot).refused?;
        let brief = refused.field.clone().unwrap_or_default();
        Some(Objection { reason: refused.reason, brief, message: would_be_refused(&name, &refused) })
    }))
}
