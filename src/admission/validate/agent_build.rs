//! The review of an AgentBuild: every fault in one answer.
//!
//! Promises: nothing that is being deleted and no update that leaves the spec alone is refused, so no finalizer is held
//! up and an upgrade of templates refuses nobody; nothing is looked up.

use crate::admission::custom::{Objects, config_pending, judged, too_large};
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::verdict::Verdict;
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::pipelines::agent_build::{Change, Origin, validate};

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    if let Some(refused) = too_large(request, &objects) {
        return refused;
    }
    if let Some(refused) = config_pending(&objects.title(request), &objects.object, snapshot) {
        return refused;
    }
    let builds = &snapshot.builds;
    let change = Change { namespace: request.namespace(), object: &objects.object, old: objects.old.as_ref() };
    let findings = validate(&change, &builds.view, &builds.settings.pipelines);
    judged(&objects.title(request), findings)
}

/// The tree behind the decision: whose the steps are.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let Ok(objects) = Objects::of(request) else { return Explanation::of("AgentBuild", verdict) };
    let mut tree = Explanation::of(&objects.title(request), verdict);
    tree.fields.push(FieldLine {
        name: "origin".to_owned(),
        value: Origin::of(&objects.object).value(),
        layer: "webhook".to_owned(),
        shadowed: Vec::new(),
    });
    tree
}
