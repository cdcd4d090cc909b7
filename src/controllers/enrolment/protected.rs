//! Whether what an AgentRuntime governs is protected: what its Pods carry, not what was written on its workload; pure.
//!
//! In: the judgement on the workload, and its Pods. Out: condition `Protected`: True when every Pod that runs carries the parts of the
//! wanted configuration; False with the reason that the Pods, or their absence, give; Unknown while they are being replaced. Its message
//! has no counts: those stand in the status, and change more often than the judgement does.

use super::judge::Step;
use super::status::{Findings, Governs};
use super::verdict::{done, drift, progress};
use super::wave;
use crate::controllers::conditions::Condition;
use crate::domain::reason::Reason;
use crate::domain::refused_pods;
use crate::domain::workload::WorkloadKind;

/// The condition's type.
pub(super) const PROTECTED: &str = "Protected";

/// Whether that AgentRuntime is protected, as far as it is known.
pub(super) fn known(findings: &Findings<'_>) -> Option<bool> {
    match findings {
        Findings::Unresolved { .. } => Some(false),
        Findings::Governs(found) => Some(condition(found)).filter(|one| !one.open).map(|one| one.holds),
        Findings::Duplicate { .. } | Findings::HeldUp { .. } => None,
    }
}

/// The condition of an AgentRuntime that governs its workload.
pub(super) fn condition(found: &Governs<'_>) -> Condition {
    let no = |reason: Reason, message: String| Condition::new(PROTECTED, false, reason, message);
    let (kind, name, namespace) = (found.workload.kind.as_str(), found.workload.name, found.namespace);
    let called = format!("{kind} {name}");
    match &found.judgement.step {
        Step::Refused { reason, message } => return no(*reason, message.clone()),
        Step::Wait(_) | Step::Apply { .. } | Step::Release => {
            let (_, reason, message) = progress(found);
            return Condition::unknown(PROTECTED, reason, message);
        }
        Step::Settled => {}
    }
    if let Some(reason) = found.nothing {
        let message = format!(
            "nothing is injected into the Pods of {called}: {}. drawbridge explain -n {namespace} {}/{name} shows what would change that",
            reason.sentence(),
            kind.to_lowercase()
        );
        return match reason {
            Reason::ModeWaypoint => Condition::unknown(PROTECTED, reason, message),
            _ => no(reason, message),
        };
    }
    let (seen, tally) = (found.workload.seen, found.tally.as_ref());
    let Some(tally) = tally else {
        return Condition::unknown(
            PROTECTED,
            Reason::EnrolmentPending,
            format!("what the Pods of {called} should carry is not known yet"),
        );
    };
    // A CronJob wants Pods only while one of its Jobs runs.
    let at_times = seen.kind == WorkloadKind::CronJob;
    if !at_times && seen.rollout.wanted == 0 && tally.live == 0 {
        return Condition::new(PROTECTED, true, Reason::NoReplicasWanted, format!("{called} wants no Pods"));
    }
    if let Some(reason) = seen.failure.filter(|_| !seen.rollout.is_complete()) {
        let remedy = refused_pods::remedy(reason, namespace);
        return no(
            reason,
            format!("the API server refuses Pods of {called}: {}. What to do: {remedy}", reason.sentence()),
        );
    }
    if wave::has_failed(seen) {
        let message = format!(
            "the new Pods of {called} did not become available in time; drawbridge status -n {namespace} shows the cause"
        );
        return no(Reason::ProgressDeadlineExceeded, message);
    }
    if !at_times && wave::rolls(seen) && !done(found) {
        let (_, reason, message) = progress(found);
        return Condition::unknown(PROTECTED, reason, message);
    }
    if let Some((reason, message)) = drift(tally) {
        return no(reason, message);
    }
    if tally.gated > 0 {
        let message = format!(
            "Pods of {called} wait behind the scheduling gate, because no webhook answered when they were made"
        );
        return no(Reason::PodsGated, message);
    }
    match (tally.live, tally.running()) {
        (0, 0) if at_times => {
            let message = format!("no Job of {called} runs at present; the next one is made with the sidecars");
            Condition::new(PROTECTED, true, Reason::NoReplicasWanted, message)
        }
        (0, 0) => no(
            Reason::PodsMissing,
            format!(
                "Pods that {called} wants do not exist; kubectl -n {namespace} describe {} {name} shows why",
                kind.to_lowercase()
            ),
        ),
        (0, _) => no(
            Reason::PodsNotRunning,
            format!(
                "Pods of {called} exist and none of them runs yet; drawbridge status -n {namespace} shows the cause"
            ),
        ),
        _ => Condition::new(
            PROTECTED,
            true,
            Reason::Protected,
            format!("every Pod of {called} that runs has the sidecars of its configuration"),
        ),
    }
}
