//! How many workloads roll at once when a change concerns all of them: an image, a log level, where traces go; or when what an earlier operator
//! made is locked down.
//!
//! In: an object, what runs it, and who rolls now. Out: whether its Deployment may be written. Promises: what its user has changed is never held
//! back, nor what is made for the first time; everything else rolls five at a time, or a tenth, whichever is more; two that failed end it. Nobody
//! rolls before it is known who does: whoever leads next reads it from the objects, as far as their kind says it there ([`Inherits::Rolls`]).

use super::subject::Subject;
use crate::controllers::scaffold::plan::Item;

/// Workloads that may roll at once, whatever the size of the fleet.
const LEAST: usize = 5;
/// One in so many may roll at once.
const SHARE: usize = 10;
/// So many failed rollouts end it.
const FAILURES: usize = 2;

/// Where an object stands among those that roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is its user's own change, or nothing runs yet: it waits for nobody.
    Own,
    /// It may roll now, and takes a place.
    Now,
    /// It waits until one of those that roll is done.
    Later,
}

/// What becomes of what runs an object and was made before us, while its user changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers::agent) enum Inherits {
    /// Nothing that takes turns.
    No,
    /// It is to roll, and its object does not say so yet: that comes first, so that whoever leads next knows of it.
    Unsaid,
    /// It is to roll.
    Waits,
    /// It was written for that, and its Pods are not all there yet; its object says so.
    Rolls,
}

/// Whether another template may be written.
pub(super) fn turn(subject: &Subject<'_>) -> Turn {
    let is_ours = subject.own_deployment().is_some_and(|own| own.applied.is_some());
    let told = subject.seen.status.get("observedGeneration").and_then(serde_json::Value::as_i64);
    let of_fleet = subject.look.is_some() && is_ours && told == Some(subject.seen.generation);
    let inherits = (subject.face.inherits)(subject);
    if !of_fleet && !matches!(inherits, Inherits::Unsaid | Inherits::Waits) {
        return Turn::Own;
    }
    let (store, memory) = (subject.cx.store, subject.cx.memory);
    if inherits == Inherits::Unsaid || !memory.surveyed {
        return Turn::Later;
    }
    let item = Item { controller: subject.face.controller, key: subject.cx.key.clone() };
    let all: usize = store.namespaces().map(|namespace| store.customs(subject.face.kind, namespace).count()).sum();
    let rolling = memory.rolling_besides(&item);
    if memory.failed() < FAILURES && rolling < LEAST.max(all / SHARE) { Turn::Now } else { Turn::Later }
}

/// Whether a rollout that took a place goes on; and whether it has failed.
pub(super) fn goes_on(subject: &Subject<'_>) -> (bool, bool) {
    let took = subject.note().is_some_and(|note| note.rolling) || (subject.face.inherits)(subject) == Inherits::Rolls;
    let rollout = subject.deployment.map(|deployment| deployment.seen.rollout).filter(|_| took);
    match rollout {
        Some(rollout) if rollout.deadline_exceeded && rollout.is_observed() => (true, true),
        // What somebody holds still replaces no Pod, and keeps no place.
        Some(rollout) => (!rollout.is_complete() && !rollout.paused, false),
        None => (false, false),
    }
}
