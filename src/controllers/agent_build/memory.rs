//! What the controllers of builds remember: how many are held back in each namespace; pure. Every row has its own.

use std::collections::HashMap;
use std::sync::Arc;

use super::note::Note;
use crate::config::snapshot::Published;
use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::plan;
use crate::store::Key;

/// The controller of runs of AgentBuilds, whichever group's.
#[derive(Debug, Clone, Copy)]
pub struct AgentBuilds;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, AgentBuilds>;
/// What it plans.
pub(in crate::controllers::agent_build) type Plan = plan::Plan<Note>;

/// What it remembers of all its items together.
#[derive(Debug, Default)]
pub struct Memory {
    /// AgentBuilds that are held back, by namespace.
    held: HashMap<Arc<str>, usize>,
}

impl Memory {
    /// How many builds are held back in a namespace.
    #[must_use]
    pub fn held_in(&self, namespace: &Arc<str>) -> usize {
        self.held.get(namespace).copied().unwrap_or_default()
    }
}

impl Controller for AgentBuilds {
    type Note = Note;
    type Memory = Memory;

    fn noted(memory: &mut Memory, key: &Key, before: &Note, now: &Note) {
        let was_held = before.held.is_some();
        if was_held == now.held.is_some() {
            return;
        }
        let count = memory.held.entry(key.namespace.clone()).or_default();
        *count = if was_held { count.saturating_sub(1) } else { *count + 1 };
        if *count == 0 {
            memory.held.remove(&key.namespace);
        }
    }

    /// Templates, steps or settings are others: a build that waits for them may start. Names of builds change with every build, and concern
    /// nobody here.
    fn is_affected(before: &Published, now: &Published) -> bool {
        let (was, is) = (&before.snapshot.builds, &now.snapshot.builds);
        !Arc::ptr_eq(was, is) && (was.view != is.view || was.settings != is.settings)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::controllers::scaffold::controller::Own;

    #[test]
    fn those_held_back_are_counted_by_namespace() {
        let mut own = Own::<AgentBuilds>::default();
        let held = Note { held: Some(Duration::ZERO) };
        let count = |own: &Own<AgentBuilds>, namespace: &str| own.memory.held_in(&namespace.into());
        for name in ["a", "b", "a"] {
            own.note(&Key::new("n", name), held);
        }
        assert_eq!((count(&own, "n"), count(&own, "m")), (2, 0));
        own.note(&Key::new("n", "a"), Note::default());
        own.note(&Key::new("n", "a"), Note::default());
        assert_eq!(count(&own, "n"), 1);
        own.note(&Key::new("n", "b"), Note::default());
        assert!(own.memory.held.is_empty(), "what is over takes no memory");
    }
}
