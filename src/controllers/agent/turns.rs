//! How many workloads roll at once when a change concerns all of them: an image, a log level, where traces go; or when what an earlier operator
//! made is locked down.
//!
//! In: an object, what runs it, and who rolls now. Out: whether its Deployment may be written. Promises: what its user has changed is never held
//! back, nor what is made for the first time; everything else rolls five at a time, or a tenth, whichever is more; two that failed end it, until
//! something else is wanted of them. Nobody rolls before it is known who does: whoever leads next reads it from the Deployments of KAOS, which say
//! that they were written in their turn ([`in_turn`]), and from the objects of the kinds that say it there ([`Inherits::Rolls`]). What rolls one
//! later that was written in its turn takes no place.

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
/// What the digest of a Deployment that was written in its turn begins with; the generation that this made stands behind it.
const IN_TURN: &str = "wave:";
/// Bytes of a digest: of a longer one nothing is kept.
const DIGEST: usize = 64;
/// So much of a digest stands behind a mark at least, however long that is.
const LEAST_KEPT: usize = 32;

/// The digest as it stands on a Deployment that was written in its turn. Of its status alone nobody could tell whose rollout it is, and what
/// users have broken themselves would halt everybody else.
pub(super) fn in_turn(digest: &str, generation: i64) -> String {
    let mark = format!("{IN_TURN}{generation}:");
    let kept = digest.chars().take(DIGEST.saturating_sub(mark.len()));
    mark.chars().chain(kept).collect()
}

/// The generation that a mark says, where it says one, and the digest behind it; `None` where there is no mark.
fn marked(applied: &str) -> Option<(Option<i64>, &str)> {
    let behind = applied.strip_prefix(IN_TURN)?;
    // Versions before this one said no generation.
    let said = behind.split_once(':').and_then(|(generation, digest)| Some((Some(generation.parse().ok()?), digest)));
    Some(said.unwrap_or((None, behind)))
}

/// Whether that stands on a Deployment to which what has that digest was applied, in its turn or not.
pub(super) fn is_of(applied: &str, digest: &str) -> bool {
    let of_mark = |(_, kept): (Option<i64>, &str)| kept.len() >= LEAST_KEPT && digest.starts_with(kept);
    applied == digest || marked(applied).is_some_and(of_mark)
}

/// What was applied last to what runs an object, where it was written in its turn.
fn mark<'a>(subject: &Subject<'a>) -> Option<(Option<i64>, &'a str)> {
    subject.own_deployment()?.applied.as_deref().and_then(marked)
}

/// Whether what was applied last to what runs an object was written in its turn.
pub(super) fn is_marked(subject: &Subject<'_>) -> bool {
    mark(subject).is_some()
}

/// Whether the template that runs is still the one that was written in its turn: what changes it later, a Secret or a restart by hand, rolls it
/// for its own user alone.
fn took_its_turn(subject: &Subject<'_>) -> bool {
    let present = subject.deployment.map(|deployment| deployment.seen.rollout.generation);
    mark(subject).is_some_and(|(generation, _)| generation.is_none() || generation == present)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_says_the_digest_and_the_generation_that_was_made_and_one_of_before_only_the_digest() {
        let (digest, other) = ("0123456789abcdef".repeat(4), "f123456789abcdef".repeat(4));
        for (applied, generation) in [
            (in_turn(&digest, 7), Some(7)),
            (in_turn(&digest, i64::MAX), Some(i64::MAX)),
            (format!("{IN_TURN}{}", &digest[..DIGEST - IN_TURN.len()]), None),
        ] {
            assert_eq!(applied.len(), DIGEST, "of a longer one nothing is kept: {applied}");
            assert_eq!(marked(&applied).map(|(generation, _)| generation), Some(generation), "{applied}");
            assert!(is_of(&applied, &digest) && !is_of(&applied, &other), "{applied}");
        }
        assert!(is_of(&digest, &digest) && marked(&digest).is_none());
        for nothing in ["wave:", "wave:7:", "wave:7:0123", ""] {
            assert!(!is_of(nothing, &digest), "{nothing}");
        }
    }
}
