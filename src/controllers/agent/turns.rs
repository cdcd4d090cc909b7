//! How many workloads roll at once when a change concerns all of them: an image, a log level, where traces go; or when what an earlier operator
//! made is locked down.
//!
//! In: an object, what runs it, and who rolls now. Out: whether its Deployment may be written. Promises: what its user has changed is never held
//! back, nor what is made for the first time; everything else rolls five at a time, or a tenth, whichever is more; two that failed end it, until
//! something else is wanted of them. Nobody rolls before it is known who does: whoever leads next reads it from the Deployments of KAOS, which say
//! that they were written in their turn ([`in_turn`]), and from the objects of the kinds that say it there ([`Inherits::Rolls`]).

use serde_json::Value;

use super::subject::Subject;
use super::wanted::Wanted;
use crate::controllers::scaffold::plan::Item;
use crate::store::Rollout;

/// Workloads that may roll at once, whatever the size of the fleet.
const LEAST: usize = 5;
/// One in so many may roll at once.
const SHARE: usize = 10;
/// So many failed rollouts end it.
const FAILURES: usize = 2;
/// What the digest of a Deployment that was written in its turn begins with.
const IN_TURN: &str = "wave:";
/// Bytes of a digest: of a longer one nothing is kept.
const DIGEST: usize = 64;

/// The digest as it stands on a Deployment that was written in its turn. Of its status alone nobody could tell whose rollout it is, and what
/// users have broken themselves would halt everybody else.
pub(super) fn in_turn(digest: &str) -> String {
    let kept = digest.chars().take(DIGEST - IN_TURN.len());
    IN_TURN.chars().chain(kept).collect()
}

/// Whether what was applied last to what runs an object was written in its turn.
pub(super) fn took_its_turn(subject: &Subject<'_>) -> bool {
    let applied = subject.own_deployment().and_then(|own| own.applied.as_deref());
    applied.is_some_and(|applied| applied.starts_with(IN_TURN))
}

/// Where an object stands among those that roll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is its user's own change, or nothing runs, or what runs is held still: it waits for nobody.
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
    let told = subject.seen.status.get("observedGeneration").and_then(Value::as_i64);
    let of_fleet = subject.look.is_some() && is_ours && told == Some(subject.seen.generation);
    let inherits = (subject.face.inherits)(subject);
    if !of_fleet && !matches!(inherits, Inherits::Unsaid | Inherits::Waits) {
        return Turn::Own;
    }
    let rollout = subject.deployment.map(|deployment| deployment.seen.rollout);
    if subject.look.is_some() && rollout.is_some_and(|rollout| rollout.paused || rollout.wanted == 0) {
        // It replaces no Pod.
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

/// Whether a rollout that took a place goes on; and whether it has failed. One that failed and is to be another keeps neither: what is wanted now may
/// be what mends it.
pub(super) fn goes_on(subject: &Subject<'_>, wanted: &Wanted) -> (bool, bool) {
    let noted = subject.note().is_some_and(|note| note.rolling);
    let took = noted || took_its_turn(subject) || (subject.face.inherits)(subject) == Inherits::Rolls;
    let rollout = subject.deployment.map(|deployment| deployment.seen.rollout).filter(|_| took);
    match rollout {
        Some(rollout) if rollout.deadline_exceeded && rollout.is_observed() => {
            let applied = subject.own_deployment().and_then(|own| own.applied.as_deref());
            let stays = wanted.deployment.is_applied(applied);
            (stays, stays)
        }
        // What somebody holds still replaces no Pod, and keeps no place.
        Some(rollout) => (!has_ended(subject, rollout) && !rollout.paused, false),
        None => (false, false),
    }
}

/// Whether all Pods of the present template have been there. What becomes of them afterwards is no rollout, though fewer are available again.
fn has_ended(subject: &Subject<'_>, rollout: Rollout) -> bool {
    let conditions = subject.own_deployment().and_then(|own| own.conditions.as_deref()?.as_array());
    let ends = |one: &Value| one["type"] == "Progressing" && one["reason"] == "NewReplicaSetAvailable";
    let said = conditions.is_some_and(|all| all.iter().any(ends));
    rollout.is_complete() || (said && rollout.is_observed() && rollout.existing == rollout.updated)
}
