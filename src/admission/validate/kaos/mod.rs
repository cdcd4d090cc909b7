//! The reviews of the kinds of KAOS: every fault in one answer.
//!
//! In: an Agent, ModelAPI or MCPServer of `kaos.tools` in whatever spelling. Promises: nothing that is being deleted and no update that leaves
//! the spec alone is refused; an update is not refused for what was wrong before it, but warned of; two spellings that say different things
//! are refused with both paths; nothing is refused for what another object says, since that may change; what is larger than what is kept of one
//! object is refused for that alone, and not read. No message repeats a value of an environment, a key or a tool's text.

mod notes;

use serde_json::Value;

use crate::admission::custom::{Objects, judged, larger_than};
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::namesakes;
use crate::admission::verdict::Verdict;
use crate::api::findings::{Fault, Findings, Note, count};
use crate::api::kaos_tools::read::{self, Looked, OldSpelling};
use crate::api::review::Request;
use crate::config::snapshot::Snapshot;
use crate::domain::bounds::LARGEST_KAOS;

#[cfg(test)]
mod tests;

/// What is read of an object, whatever its kind.
struct Seen {
    faults: Vec<Fault>,
    notes: Vec<Note>,
    old: Vec<OldSpelling>,
}

impl Seen {
    fn of<T>(looked: Looked<T>) -> Self {
        let faults = looked.faults.into_iter().chain(looked.conflicts).collect();
        Self { faults, notes: looked.notes, old: looked.old }
    }

    fn read(kind: &str, object: &Value) -> Self {
        match kind {
            "Agent" => {
                let looked = read::agent(object);
                let more = notes::of_agent(&looked);
                let mut seen = Self::of(looked);
                seen.notes.extend(more);
                seen
            }
            "ModelAPI" => {
                let looked = read::model_api(object);
                let more = notes::of_model_api(&looked);
                let mut seen = Self::of(looked);
                seen.notes.extend(more);
                seen
            }
            _ => Self::of(read::mcp_server(object)),
        }
    }
}

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    let title = objects.title(request);
    let mut findings = Findings::default();
    if let Some(fault) = larger_than(LARGEST_KAOS, request, &objects.object) {
        findings.fault(fault);
        return judged(&title, findings);
    }
    let kind = &*request.kind.kind;
    let seen = Seen::read(kind, &objects.object);
    let before = objects.old.as_ref().map(|old| Seen::read(kind, old).faults).unwrap_or_default();
    // Of more faults than are kept nobody knows which they were: as long as there are no more of them, they are those of before.
    let is_cut = before.iter().any(|fault| fault.others > 0);
    let is_no_worse = is_cut && count(&seen.faults) <= count(&before);
    for fault in seen.faults {
        if is_no_worse || before.contains(&fault) {
            findings.note(Note::new(fault.reason, fault.path, format!("{}; {}", fault.sentence, fault.remedy)));
        } else {
            findings.fault(fault);
        }
    }
    let more = notes::of_unknown(kind, &objects.object).into_iter().chain(notes::of_old(&seen.old));
    let named = namesakes::notes(request, &objects, snapshot);
    seen.notes.into_iter().chain(more).chain(named).for_each(|note| findings.note(note));
    judged(&title, findings)
}

/// The tree behind the decision: what each old spelling means.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let Ok(objects) = Objects::of(request) else { return Explanation::of(&request.kind.kind, verdict) };
    let mut tree = Explanation::of(&objects.title(request), verdict);
    for old in Seen::read(&request.kind.kind, &objects.object).old {
        tree.fields.push(FieldLine {
            name: old.path,
            value: old.alias.row().new.to_owned(),
            layer: "old spelling".to_owned(),
            shadowed: Vec::new(),
        });
    }
    tree
}
