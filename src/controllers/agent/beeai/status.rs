//! The status of one Agent of BeeAI.
//!
//! In: the Agent as stored, and everything that was found. Out: the status to be stored, and what people are told. Promises: those of the
//! frame's status; the words are those that the original operator wrote, and `Failed` beside them.

use serde_json::{Map, Value};

use super::{is_untouched, kept, locks, pending};
use crate::controllers::agent::claim::Claim;
use crate::controllers::agent::status::{
    Phase, READY, RECONCILING, RELAXED, Ready, STALLED, Verdict, deployment, image, progress, ready, relaxed, written,
};
use crate::controllers::agent::subject::Subject;
use crate::controllers::conditions::Condition;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// What an earlier operator made has not been locked down yet.
pub(super) const PENDING: &str = "LockdownPending";
/// The condition types that are ours.
const OURS: [&str; 5] = [READY, RELAXED, PENDING, RECONCILING, STALLED];
/// What becomes of Pods that are locked down.
const LOCKED: &str = "as a user that is not root, with a root filesystem that cannot be written, without capabilities and without a token of \
                      the Kubernetes API";

/// The operations that bring the status up to date: none when it is.
pub(super) fn update(subject: &Subject<'_>, verdict: &Verdict<'_>) -> Vec<Op> {
    let ready = ready(subject, verdict);
    let mut wanted = vec![Condition::new(READY, ready.phase == Phase::Ready, ready.reason, ready.message.clone())];
    wanted.extend(relaxed(verdict));
    let (is_ours, waits) = (matches!(verdict.claims.deployment, Claim::Ours(_)), pending(subject, verdict.claims));
    let says = match () {
        () if waits => Some(what_waits(subject, verdict)),
        () if is_ours && locks(subject) => Some(what_rolls(subject)),
        () => None,
    };
    wanted.extend(says.map(|says| Condition::new(PENDING, true, Reason::LockdownPending, says)));
    wanted.extend(progress(&ready));
    // A change that could not be written yet is not forgotten: what is stored says of which generation the Deployment is.
    let stays = is_ours && is_untouched(subject) && !waits;
    let ours: Vec<&str> = OURS.into_iter().filter(|type_| !stays || *type_ != PENDING).collect();
    written(subject, verdict, (fields(subject, verdict, &ready), &wanted, &ours))
}

fn what_rolls(subject: &Subject<'_>) -> String {
    let name = &subject.cx.key.name;
    format!(
        "Deployment {name} was made by an earlier operator and is locked down: its Pods are made again {LOCKED}, and do not all run yet"
    )
}

fn what_waits(subject: &Subject<'_>, verdict: &Verdict<'_>) -> String {
    let name = &subject.cx.key.name;
    let wanted = verdict.image.runs.as_deref().unwrap_or_default();
    let (mut says, runs) = (String::new(), subject.own_deployment().and_then(|own| own.image.as_deref()));
    if let Some(runs) = runs.filter(|runs| *runs != wanted) {
        says = format!("; it runs image {runs}, and the Agent names {wanted}");
    }
    let once = match kept(subject) {
        true => {
            format!("the Agent changes, or carries annotation {}: {}", keys::ANNOTATION_LOCKDOWN, keys::LOCKDOWN_NOW)
        }
        // `beeai.takeover: lockdown`.
        false => "some of the Agents that are being locked down are ready".to_owned(),
    };
    format!(
        "Deployment {name} was made by an earlier operator and runs on as it is{says}. Once {once}, its Pods are made again: {LOCKED}"
    )
}

fn fields(subject: &Subject<'_>, verdict: &Verdict<'_>, ready: &Ready) -> Map<String, Value> {
    let words = match (ready.phase, deployment(subject, verdict)) {
        (Phase::Ready, _) => "Ready",
        (Phase::Failed, _) => "Failed",
        (Phase::Pending | Phase::Deploying, Some((rollout, _))) if rollout.observed > 0 => "NotReady",
        (Phase::Pending | Phase::Deploying, _) => "Creating",
    };
    let mut status = Map::new();
    status.insert("observedGeneration".to_owned(), subject.seen.generation.into());
    status.insert("deploymentStatus".to_owned(), words.into());
    status.insert("ready".to_owned(), (ready.phase == Phase::Ready).into());
    status.extend(image(subject, verdict).map(|image| ("image".to_owned(), image)));
    status
}
