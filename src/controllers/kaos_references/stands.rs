//! How the rollout of a Deployment stands, for whoever is about to make its Pods again; pure.

use serde_json::Value;

use crate::store::WorkloadSeen;

/// How a rollout stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stands {
    /// Somebody holds it, or it wants no Pods: a change of its template replaces none.
    Still,
    /// All Pods of its template are there, or have been.
    Ended,
    /// It exceeded its deadline.
    Failed,
    /// Its Pods are being replaced.
    Rolls,
}

/// How the rollout of that Deployment stands.
pub(super) fn stands(seen: &WorkloadSeen) -> Stands {
    let rollout = seen.rollout;
    match () {
        () if rollout.paused || rollout.wanted == 0 => Stands::Still,
        () if rollout.deadline_exceeded && rollout.is_observed() => Stands::Failed,
        () if rollout.is_complete() || have_been(seen) => Stands::Ended,
        () => Stands::Rolls,
    }
}

/// Whether all Pods of the present template have been there. What becomes of them afterwards is no rollout, though fewer are available again.
fn have_been(seen: &WorkloadSeen) -> bool {
    let conditions = seen.agent.as_deref().and_then(|own| own.conditions.as_deref()?.as_array());
    let ends = |one: &Value| one["type"] == "Progressing" && one["reason"] == "NewReplicaSetAvailable";
    let rollout = seen.rollout;
    conditions.is_some_and(|all| all.iter().any(ends)) && rollout.is_observed() && rollout.existing == rollout.updated
}
