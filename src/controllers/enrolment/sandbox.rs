//! A Sandbox keeps its Pod when its template changes: how the Pod comes to be made again; pure.
//!
//! ```text
//! Pod is not as wanted ─► replicas 0, annotations restart-pending and restart-replicas
//! Pod is gone          ─► replicas as before, annotations gone, agents.x-k8s.io/pod-name gone
//! ```
//!
//! Promises: a suspended Sandbox stays suspended; the number of replicas is the one before; replicas that somebody else
//! sets meanwhile stay; a Sandbox whose enrolment ends in the middle is put back first, and one whose enrolment is refused or waits then
//! gets its Pod all the same.

use std::time::Duration;

use serde_json::{Value, json};

use super::judge::{Judgement, Subject};
use super::pods::Tally;
use crate::config::schema::Repair;
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

/// How long a Pod that is counted and not seen may still be on its way to us.
const LAG: Duration = Duration::from_secs(2);

/// What a Sandbox needs next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Restart {
    /// Nothing.
    No,
    /// Its Pod goes.
    Go(Op),
    /// Its Pod comes again.
    Back(Vec<Op>),
    /// Its Pod has to go first, or may still come into sight.
    Wait(Duration),
    /// The Pod that was made since the last restart is no better: not again before this time.
    Vain(Duration),
}

/// What a Sandbox with the wanted template needs for its Pod to have it, too. One that its user enrolled by the label is
/// restarted for a change that must roll it; what it runs from before is reported, as for every other kind.
pub(super) fn restart(subject: &Subject<'_>, tally: &Tally<'_>, judgement: &Judgement) -> Restart {
    let seen = subject.workload.seen;
    if seen.kind != WorkloadKind::Sandbox {
        return Restart::No;
    }
    if let Some(next) = under_way(subject) {
        return next;
    }
    let running = tally.running() + tally.ending;
    let may = is_ours_to_restart(subject, judgement) || subject.cx.facts.platform.repair() == Repair::Evict;
    if seen.rollout.wanted == 0 || !may {
        return Restart::No;
    }
    let stale = !tally.outdated.is_empty() || !tally.unprotected.is_empty();
    // A Pod from before the enrolment has no label, so it is counted by the Sandbox and not seen by us.
    let unseen = running == 0 && seen.rollout.existing > 0;
    let held = subject.note().and_then(|note| note.held);
    let waited = held.map_or(Duration::ZERO, |since| subject.cx.now.saturating_sub(since));
    let last = subject.note().and_then(|note| note.evicted.as_ref());
    match last.and_then(|last| tally.in_vain(last, subject.cx.now)) {
        Some(rest) => Restart::Vain(rest),
        None if stale || (unseen && waited >= LAG) => Restart::Go(go(subject)),
        None if unseen => Restart::Wait(LAG),
        None => Restart::No,
    }
}

/// Whether its Pod is to be replaced: an AgentRuntime says so, or we have written that a change must roll it.
pub(super) fn is_ours_to_restart(subject: &Subject<'_>, judgement: &Judgement) -> bool {
    subject.workload.winner.is_some() || judgement.standing.hash() == judgement.wanted.as_deref()
}

/// Whether a restart of ours is under way.
pub(super) fn pending(subject: &Subject<'_>) -> bool {
    subject.workload.seen.annotations.get(keys::ANNOTATION_RESTART_PENDING).is_some()
}

/// What a restart of ours that is under way needs next, whatever its Pods should carry; `None` when there is none.
pub(super) fn under_way(subject: &Subject<'_>) -> Option<Restart> {
    let seen = subject.workload.seen;
    if seen.kind != WorkloadKind::Sandbox || !pending(subject) {
        return None;
    }
    let pods = subject.cx.store.pods_of(subject.namespace(), &subject.workload);
    let tally = Tally::of(pods, keys::HASH_OF_NOTHING);
    let gone = tally.running() + tally.ending == 0 && seen.rollout.existing == 0;
    Some(if gone { Restart::Back(come_back(subject)) } else { Restart::Wait(LAG) })
}

fn merge(subject: &Subject<'_>, annotations: Value, replicas: Option<i64>) -> Op {
    let workload = &subject.workload;
    let mut patch = json!({"metadata": {
        "uid": workload.uid,
        "resourceVersion": workload.version.to_string(),
        "annotations": annotations,
    }});
    if let Some(replicas) = replicas {
        patch["spec"] = json!({"replicas": replicas});
    }
    let key = crate::store::Key::new(subject.namespace(), workload.name);
    Op::Merge { kind: workload.kind, key, patch }
}

fn go(subject: &Subject<'_>) -> Op {
    let replicas = subject.workload.seen.rollout.wanted;
    let annotations = json!({
        keys::ANNOTATION_RESTART_PENDING: "true",
        keys::ANNOTATION_RESTART_REPLICAS: replicas.to_string(),
    });
    merge(subject, annotations, Some(0))
}

/// Replicas as before the restart, and who is told.
pub(super) fn come_back(subject: &Subject<'_>) -> Vec<Op> {
    let seen = subject.workload.seen;
    let before = seen.annotations.get(keys::ANNOTATION_RESTART_REPLICAS).and_then(|text| text.parse::<i64>().ok());
    let replicas = (seen.rollout.wanted == 0).then(|| before.unwrap_or(1));
    let annotations = json!({
        keys::ANNOTATION_RESTART_PENDING: Value::Null,
        keys::ANNOTATION_RESTART_REPLICAS: Value::Null,
        keys::ANNOTATION_SANDBOX_POD: Value::Null,
    });
    let workload = &subject.workload;
    let told = workload.winner.map(|winner| Report {
        kind: crate::store::Kind::AgentRuntime,
        about: crate::store::Key::new(subject.namespace(), winner.name),
        uid: winner.uid.to_owned(),
        reason: Reason::SandboxRestarted,
        message: format!(
            "Sandbox {} was restarted for configuration {}",
            workload.name,
            super::short(super::fields::Fields::standing(seen).hash().unwrap_or_default()),
        ),
        since: String::new(),
    });
    told.map(Op::Report).into_iter().chain([merge(subject, annotations, replicas)]).collect()
}
