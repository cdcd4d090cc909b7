//! What the controller of NetworkPolicies remembers: who is open and who is cut off; pure.

use crate::controllers::scaffold::controller::{Controller, Gauges, recount};
use crate::controllers::scaffold::metrics::{Counts, FamilyRow};
use crate::controllers::scaffold::plan;
use crate::store::Key;

/// Agents that are open, and that are cut off.
pub const OPENED: FamilyRow = FamilyRow {
    name: "drawbridge_trust_agents",
    help: "Agents with a card in namespaces that enforce trust, which are open because they are verified (open) or are not (cut-off)",
    example: "open",
    counts: Counts::State,
};

/// Namespaces in which what cuts off stands, and in which it does not.
pub const ARMED: FamilyRow = FamilyRow {
    name: "drawbridge_trust_namespaces",
    help: "Namespaces that enforce trust in which NetworkPolicy drawbridge-default-deny stands (armed), or does not yet, so that no Pod of an agent \
           is made (waiting)",
    example: "armed",
    counts: Counts::State,
};

/// The controller of what cuts off agents, and what opens them.
#[derive(Debug, Clone, Copy)]
pub struct Policies;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Policies>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;

/// What a plan found out about its item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// Whether an agent of a namespace that enforces trust is open, as its card is verified; `None` of what is none.
    pub opened: Option<bool>,
    /// Whether what cuts off stands in a namespace that enforces trust; `None` where nothing is enforced.
    pub armed: Option<bool>,
}

/// What it remembers of all its items together.
#[derive(Debug, Default)]
pub struct Memory {
    /// Agents that are open, and that are cut off, in all notes.
    opened: (usize, usize),
    /// Namespaces in which what cuts off stands, and in which it does not, in all notes.
    armed: (usize, usize),
}

impl Controller for Policies {
    type Note = Note;
    type Memory = Memory;

    fn noted(memory: &mut Memory, _: &Key, before: &Note, now: &Note) {
        recount(&mut memory.opened, before.opened, now.opened);
        recount(&mut memory.armed, before.armed, now.armed);
    }

    fn gauges(memory: &Memory, set: Gauges<'_>) {
        let ((open, cut), (armed, waiting)) = (memory.opened, memory.armed);
        set(OPENED.name, "open", open);
        set(OPENED.name, "cut-off", cut);
        set(ARMED.name, "armed", armed);
        set(ARMED.name, "waiting", waiting);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::controller::Own;

    #[test]
    fn what_is_open_and_what_is_cut_off_is_counted() {
        let mut own = Own::<Policies>::default();
        let agent = |opened| Note { opened: Some(opened), ..Note::default() };
        let key = |name: &str| Key::new("n", name);
        for (name, opened) in [("a", true), ("b", false), ("c", false), ("b", true)] {
            own.note(&key(name), agent(opened));
        }
        own.note(&key("deny"), Note { armed: Some(false), ..Note::default() });
        assert_eq!((own.memory.opened, own.memory.armed), ((2, 1), (0, 1)));
        own.note(&key("a"), Note::default());
        own.note(&key("deny"), Note { armed: Some(true), ..Note::default() });
        let mut told = Vec::new();
        Policies::gauges(&own.memory, &mut |_, state, count| told.push((state, count)));
        assert_eq!(told, [("open", 1), ("cut-off", 1), ("armed", 1), ("waiting", 0)]);
    }
}
