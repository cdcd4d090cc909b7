//! The review of an AgentBuild of BeeAI, of either group: every fault in one answer, and never a value that may be a token.
//!
//! Promises: nothing that is being deleted and no update that leaves the spec alone is refused; nothing is filled in; the controller judges by
//! the same function, so that the operator is as safe without this webhook.

use crate::admission::custom::{Objects, judged, too_large};
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::verdict::Verdict;
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::pipelines::beeai_build::{front, template, validate};

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    let builds = &snapshot.builds;
    let whose = (front(&request.kind.group), request.namespace());
    let mut findings =
        validate((&objects.object, objects.old.as_ref()), whose, &builds.view, &builds.settings.pipelines);
    too_large(request, &objects.object).into_iter().for_each(|fault| findings.fault(fault));
    judged(&objects.title(request), findings)
}

/// The tree behind the decision: which template its steps come from.
pub(in crate::admission) fn explain(request: &Request<'_>, snapshot: &Snapshot, verdict: &Verdict) -> Explanation {
    let Ok(objects) = Objects::of(request) else { return Explanation::of("AgentBuild", verdict) };
    let mut tree = Explanation::of(&objects.title(request), verdict);
    tree.fields.push(FieldLine {
        name: "template".to_owned(),
        value: template(&snapshot.builds.view).map_or_else(|| "none".to_owned(), |entry| entry.title()),
        layer: "platform".to_owned(),
        shadowed: Vec::new(),
    });
    tree
}
