//! The review of an Agent: every fault in one answer.
//!
//! Promises: nothing that is being deleted and no update that leaves the spec alone is refused; an AgentBuild that does
//! not exist yet is a warning, since it may come later.

use crate::admission::custom::{Objects, judged, too_large};
use crate::admission::explanation::Explanation;
use crate::admission::namesakes;
use crate::admission::verdict::Verdict;
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::workloads::agent::{AgentChange, validate};

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    if let Some(refused) = too_large(request, &objects) {
        return refused;
    }
    let builds = &snapshot.builds;
    let names = builds.names(request.namespace());
    let server = snapshot.view.server_version;
    let change = AgentChange { object: &objects.object, old: objects.old.as_ref(), builds: names, server };
    let mut findings = validate(&change, &builds.settings.workloads);
    namesakes::notes(request, &objects, snapshot).into_iter().for_each(|note| findings.note(note));
    judged(&objects.title(request), findings)
}

/// The tree behind the decision: what relaxes the lock-down and what deserves attention stands in its warnings.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let subject = Objects::of(request).map_or_else(|_| "Agent".to_owned(), |objects| objects.title(request));
    Explanation::of(&subject, verdict)
}
