//! Somebody else who takes the hash back that we apply: another operator, or a tool that puts its own copy of the workload back; pure.
//!
//! In: what is to be applied, and what is remembered of earlier tries. Out: whether to try once more. Promises: a fight over a hash,
//! in which every blow replaces the Pods, ends after a few and is said; it is tried again after a while, since whoever it was may be
//! gone. The label is put back however often it is taken: without it Pods are unprotected.

use std::time::Duration;

use super::judge::{Judgement, Step, Subject};
use crate::controllers::enrolment::note::Taken;
use crate::domain::keys;

/// So many times the same is applied again within [`WINDOW`] ...
const MOST: u32 = 3;
/// ... and then not until so long after the last time.
const WINDOW: Duration = Duration::from_secs(600);

/// What came of looking back.
pub(super) enum Contest {
    /// Nobody is in the way; what later plans are told.
    None(Option<Taken>),
    /// It is left for now: what is said, and when it is tried again.
    Left(Taken, String, Duration),
}

/// Looks back before the step is carried out. `failed`: the last write came to nothing, so that nobody had anything to take back.
pub(super) fn look_back(subject: &Subject<'_>, judgement: &Judgement, failed: bool) -> Contest {
    let known = subject.note().and_then(|note| note.taken.clone());
    // Over a hash alone nobody fights: while Pods are replaced nothing is written, and then they have the stamp that counts.
    if subject.workload.winner.is_none() && subject.label_type().is_none() {
        return Contest::None(known);
    }
    let Step::Apply { fields, .. } = &judgement.step else { return Contest::None(known) };
    let Some(hash) = fields.hash() else { return Contest::None(known) };
    let now = subject.cx.now;
    let (times, at) = match &known {
        Some(taken) if *taken.hash == *hash => (taken.times, taken.at),
        _ => return Contest::None(Some(Taken { hash: hash.into(), times: 0, at: now })),
    };
    if !judgement.standing.differs_by_hash_only(fields) {
        return Contest::None(known);
    }
    let waited = now.saturating_sub(at);
    let times = match () {
        () if waited >= WINDOW => 0,
        () if failed => times,
        () if times >= MOST => {
            let left = Taken { hash: hash.into(), times, at };
            return Contest::Left(left, message(subject), WINDOW.saturating_sub(waited));
        }
        () => times + 1,
    };
    Contest::None(Some(Taken { hash: hash.into(), times, at: now }))
}

fn message(subject: &Subject<'_>) -> String {
    let (workload, namespace) = (&subject.workload, subject.namespace());
    let who = if workload.seen.upstream.is_some() { "the Go operator, by its field manager" } else { "somebody else" };
    format!(
        "annotation {} of its Pod template is changed back by {who} each time it is written, and every change replaces the Pods of \
         {} {}; it is left for now, and written again in 10 minutes. Stop the other one, or take the annotation out of what it \
         applies. Who it is: kubectl -n {namespace} get {} {} -o yaml --show-managed-fields",
        keys::ANNOTATION_CONFIG_HASH,
        workload.kind.as_str(),
        workload.name,
        workload.kind.plural(),
        workload.name,
    )
}
