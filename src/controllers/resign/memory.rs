//! What the controller of restarts remembers: a note of each card, and its counter of what it restarted; pure.

use super::note::Note;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::memory::Rollout;
use crate::controllers::scaffold::metrics::{Counts, FamilyRow};
use crate::controllers::scaffold::plan::{self, Op};
use crate::domain::keys;
use crate::domain::resign::Cause;

/// Restarts, by why.
pub const RESTARTS: FamilyRow = FamilyRow {
    name: "agentcard_resign_restarts",
    help: "Workloads that were restarted so that their card is signed anew, by why: leaf-expires, authority-expires, authority-lost",
    example: Cause::LeafExpires.as_str(),
    counts: Counts::Ops { controller: super::plan::NAME, of: cause },
};

/// Why an operation restarts a workload; `None` when it restarts none.
fn cause(op: &Op) -> Option<&'static str> {
    let Op::Merge { patch, .. } = op else { return None };
    let said = patch.pointer("/metadata/annotations")?.get(keys::ANNOTATION_RESIGN_CAUSE)?.as_str()?;
    Cause::named(said).map(Cause::as_str)
}

/// The controller of workloads whose card is signed anew when their Pods are.
#[derive(Debug, Clone, Copy)]
pub struct Resign;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Resign>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;

impl Controller for Resign {
    type Note = Note;
    type Memory = ();

    fn rollout(note: &Note) -> Rollout {
        Rollout { rolling: note.rolling, waits: note.waits, ..Rollout::default() }
    }
}
