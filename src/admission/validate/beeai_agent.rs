//! The review of an Agent of BeeAI, of either group: every fault in one answer, and never the value of a variable.
//!
//! Promises: nothing that is being deleted and no update that leaves spec and security profile alone is refused; the controller judges
//! by the same function, so that the operator is as safe without this webhook.

use crate::admission::custom::{Objects, judged, too_large};
use crate::admission::explanation::Explanation;
use crate::admission::namesakes;
use crate::admission::verdict::Verdict;
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::domain::reason::Reason;
use crate::workloads::beeai_agent::validate;

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::of(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    if objects.is_deleting() {
        return Verdict::skipped(Reason::BeingDeleted);
    }
    if let Some(refused) = too_large(request, &objects).filter(|_| objects.judges_spec()) {
        return refused;
    }
    let mut findings = validate(&objects.object, objects.old.as_ref(), &snapshot.builds.settings.workloads);
    if objects.judges_spec() {
        namesakes::notes(request, &objects, snapshot).into_iter().for_each(|note| findings.note(note));
    }
    judged(&objects.title(request), findings)
}

/// The tree behind the decision.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let subject = Objects::of(request).map_or_else(|_| "Agent".to_owned(), |objects| objects.title(request));
    Explanation::of(&subject, verdict)
}
