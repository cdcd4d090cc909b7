//! What the controllers of agents remember: a note of each, and nothing besides; pure. Every row has its own.

use super::note::Note;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::memory::Rollout;
use crate::controllers::scaffold::plan;

/// The controller of what runs an agent, whichever group's.
#[derive(Debug, Clone, Copy)]
pub struct Agents;

/// What its plans are made from.
pub(in crate::controllers::agent) type Context<'a> = plan::Context<'a, Agents>;
/// What it plans.
pub(in crate::controllers::agent) type Plan = plan::Plan<Note>;
/// What it remembers.
pub(in crate::controllers::agent) type Notes = Own<Agents>;

impl Controller for Agents {
    type Note = Note;
    type Memory = ();

    fn rollout(note: &Note) -> Rollout {
        Rollout { rolling: note.rolling, failed: note.failed, waits: note.waits, ..Rollout::default() }
    }
}
