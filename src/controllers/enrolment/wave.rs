//! How many enrolled workloads roll at once when their configuration changes; pure.
//!
//! In: what rolls now, as the cluster says it, and what this process has sent off. Out: whether one more may begin.
//! Promises: what was rolled by us is recognised after a restart and by another leader, by annotation
//! `kagenti.io/rolled-for`; a change of configuration ends a halt, because what failed no longer carries what is wanted.

use std::time::Duration;

use crate::controllers::scaffold::budget::LEAST;
pub(super) use crate::controllers::scaffold::budget::{Turn, budget, turn};
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::WorkloadSeen;

/// How long a rollout may take before people are told that it keeps a place: the deadline that Deployments have by default. It goes
/// on keeping it: a wave that passed over what is stuck would break one workload after the other.
pub(super) const SLOW: Duration = Duration::from_secs(600);

/// What stands before the hash in `kagenti.io/rolled-for` where a rollout is the first one of a workload that its user has just labelled.
const ENTRY: &str = "first:";
/// So many of those at once in one namespace: what people label there waits for what they labelled before, and nobody else's.
pub(super) const ENTRIES: usize = LEAST;

/// The value of `kagenti.io/rolled-for` of a first rollout.
pub(super) fn entry(hash: &str) -> String {
    format!("{ENTRY}{hash}")
}

/// Whether that is such a value.
pub(super) fn is_entry(rolled_for: Option<&str>) -> bool {
    rolled_for.is_some_and(|value| value.starts_with(ENTRY))
}

/// Whether a first rollout is under way. One that exceeded its deadline is its user's matter, and keeps no place.
pub(super) fn enters(seen: &WorkloadSeen) -> bool {
    let under_way = match seen.kind {
        WorkloadKind::Sandbox => seen.annotations.get(keys::ANNOTATION_RESTART_PENDING).is_some(),
        _ => !seen.rollout.is_complete() && !seen.rollout.deadline_exceeded,
    };
    is_entry(seen.annotations.get(keys::ANNOTATION_ROLLED_FOR)) && rolls(seen) && under_way
}

/// How a rollout that we began goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rolling {
    /// Not begun by us, or over.
    No,
    /// Under way.
    Yes,
    /// It exceeded its deadline.
    Failed,
}

/// Whether Pods of that workload are replaced as soon as its template changes.
pub(super) fn rolls(seen: &WorkloadSeen) -> bool {
    let by_itself = matches!(
        seen.kind,
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::DaemonSet | WorkloadKind::Sandbox
    );
    by_itself && !seen.rollout.paused && !seen.rollout.on_delete && seen.rollout.wanted > seen.rollout.held
}

/// The same without our doing anything about it: a Sandbox keeps its Pod, and says of no template that all its Pods are of it.
pub(super) fn rolls_by_itself(seen: &WorkloadSeen) -> bool {
    rolls(seen) && seen.kind != WorkloadKind::Sandbox
}

/// Whether the rollout of the present template exceeded its deadline: a condition from before it was seen is about another.
pub(super) fn has_failed(seen: &WorkloadSeen) -> bool {
    seen.rollout.deadline_exceeded && seen.rollout.is_observed()
}

/// How the rollout goes that we began on that workload, if we did.
pub(super) fn rolling(seen: &WorkloadSeen) -> Rolling {
    let hash = seen.template.as_ref().and_then(|template| template.annotations.get(keys::ANNOTATION_CONFIG_HASH));
    let ours = hash.is_some() && seen.annotations.get(keys::ANNOTATION_ROLLED_FOR) == hash;
    let restarts = seen.annotations.get(keys::ANNOTATION_RESTART_PENDING).is_some();
    match () {
        () if ours && seen.kind == WorkloadKind::Sandbox && restarts => Rolling::Yes,
        () if !ours || !rolls(seen) || seen.kind == WorkloadKind::Sandbox => Rolling::No,
        () if seen.rollout.deadline_exceeded => Rolling::Failed,
        () if seen.rollout.is_complete() => Rolling::No,
        () => Rolling::Yes,
    }
}
