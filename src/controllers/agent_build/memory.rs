//! What the controllers of builds remember: how many are held back in each namespace, and which runs would be taken; pure. Every row has its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::note::Note;
use super::shapes::Shapes;
use crate::config::snapshot::Published;
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::plan::{self, Op};
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
    /// Which runs would be taken.
    pub shapes: Shapes,
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

    fn answered(own: &mut Own<Self>, key: &Key, learned: &Learned, now: Duration) {
        match learned {
            Learned::Taken(namespace, shape) => own.memory.shapes.taken(namespace.clone(), shape.clone(), now),
            Learned::Unkept(members) => {
                let before = own.of(key).cloned().unwrap_or_default();
                own.note(key, Note { unkept: Some((now, members.clone())), ..before });
            }
            _ => {}
        }
    }

    fn made(own: &mut Own<Self>, key: &Key, now: Duration) {
        own.memory.shapes.made(&key.namespace, now);
    }

    /// Whoever refuses one object of a namespace, or does not answer, may do so for others, whatever their shape.
    fn failed(own: &mut Own<Self>, _: &Key, op: &Op) {
        if let Op::Try { namespace, .. } | Op::Ensure { namespace, .. } = op {
            own.memory.shapes.failed(namespace);
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
    use super::*;

    #[test]
    fn those_held_back_are_counted_by_namespace() {
        let mut own = Own::<AgentBuilds>::default();
        let held = Note::held(Some(Duration::ZERO));
        let count = |own: &Own<AgentBuilds>, namespace: &str| own.memory.held_in(&namespace.into());
        for name in ["a", "b", "a"] {
            own.note(&Key::new("n", name), held.clone());
        }
        assert_eq!((count(&own, "n"), count(&own, "m")), (2, 0));
        own.note(&Key::new("n", "a"), Note::default());
        own.note(&Key::new("n", "a"), Note::default());
        assert_eq!(count(&own, "n"), 1);
        own.note(&Key::new("n", "b"), Note::default());
        assert!(own.memory.held.is_empty(), "what is over takes no memory");
    }

    /// Whoever refuses one object, or does not answer, may do so for others.
    #[test]
    fn a_write_that_comes_to_nothing_ends_what_its_namespace_was_answered() {
        let (kind, body) = (crate::store::Kind::PipelineRun, serde_json::Value::Null);
        let create = Op::Ensure { kind, namespace: "n".into(), body, owner: "u".into() };
        let other = Op::Delete { kind, key: Key::new("n", "p"), uid: "u".into() };
        let (mut own, key, now) = (Own::<AgentBuilds>::default(), Key::new("n", "a"), Duration::ZERO);
        for namespace in ["n", "m"] {
            AgentBuilds::answered(&mut own, &key, &Learned::Taken(namespace.into(), "shape".into()), now);
        }
        let is = |own: &Own<AgentBuilds>, namespace: &str| own.memory.shapes.is_taken(namespace, "shape", now);
        AgentBuilds::failed(&mut own, &key, &other);
        assert!(is(&own, "n"), "nobody was asked to take anything");
        AgentBuilds::failed(&mut own, &key, &create);
        assert!(!is(&own, "n") && is(&own, "m"));
    }
    /// Whoever admits runs answers there, and what was answered lasts for as long again.
    #[test]
    fn a_run_that_was_made_keeps_what_its_namespace_was_answered() {
        let (mut own, key) = (Own::<AgentBuilds>::default(), Key::new("n", "a"));
        let is = |own: &Own<AgentBuilds>, namespace: &str, now: Duration| {
            own.memory.shapes.is_taken(namespace, "shape", now)
        };
        for namespace in ["n", "m"] {
            AgentBuilds::answered(&mut own, &key, &Learned::Taken(namespace.into(), "shape".into()), Duration::ZERO);
        }
        let lasts = (0..).map(Duration::from_secs).find(|now| !is(&own, "n", *now)).expect("nothing is taken for ever");
        AgentBuilds::made(&mut own, &key, lasts / 2);
        assert!(is(&own, "n", lasts) && !is(&own, "m", lasts), "in its own namespace alone");
    }
}
