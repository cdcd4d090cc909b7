//! What the controller of references remembers: a note of each Deployment, and how many of each namespace are being replaced; pure. A Secret is its
//! namespace's, so those that use it take turns there: whoever changes one again and again holds up nobody else's rollouts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::plan;
use crate::store::{Key, Kind};

/// The controller of Deployments whose Pods follow what their environment refers to.
#[derive(Debug, Clone, Copy)]
pub struct Follows;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Follows>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;

/// How a Deployment takes part in what rolls in its namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// It does not.
    #[default]
    None,
    /// Its Pods are being replaced for a reference that has changed.
    Rolls,
    /// That exceeded its deadline, and the reference is still what it was.
    Failed,
}

/// What a plan found out about its Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// How it takes part.
    pub part: Part,
    /// For which versions its template is to be written, or was.
    pub rolls_for: Option<Box<str>>,
    /// It was.
    pub written: bool,
}

/// How many Deployments of each namespace roll, and how many failed.
#[derive(Debug, Default)]
pub struct Places(HashMap<Arc<str>, (usize, usize)>);

impl Places {
    /// How many of a namespace roll and how many failed, beside one that takes part so.
    #[must_use]
    pub fn besides(&self, namespace: &str, own: Part) -> (usize, usize) {
        let (rolls, failed) = self.0.get(namespace).copied().unwrap_or_default();
        (rolls.saturating_sub(usize::from(own == Part::Rolls)), failed.saturating_sub(usize::from(own == Part::Failed)))
    }

    fn moved(&mut self, namespace: &Arc<str>, before: Part, now: Part) {
        if before == now {
            return;
        }
        let (rolls, failed) = self.0.entry(namespace.clone()).or_default();
        for (part, count) in [(Part::Rolls, &mut *rolls), (Part::Failed, &mut *failed)] {
            *count = *count + usize::from(now == part) - usize::from(before == part);
        }
        if (*rolls, *failed) == (0, 0) {
            self.0.remove(namespace);
        }
    }
}

impl Controller for Follows {
    type Note = Note;
    type Memory = Places;

    fn noted(memory: &mut Places, key: &Key, before: &Note, now: &Note) {
        memory.moved(&key.namespace, before.part, now.part);
    }

    fn answered(own: &mut Own<Self>, key: &Key, learned: &Learned, _: Duration) {
        let Learned::Change(change) = learned else { return };
        if change.kind == Kind::Deployment
            && let Some(note) = own.of_mut(key)
        {
            note.written = note.rolls_for.is_some();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_counts_its_own_and_what_is_over_takes_no_memory() {
        let mut places = Places::default();
        let (team, other) = (Arc::from("team"), Arc::from("other"));
        places.moved(&team, Part::None, Part::Rolls);
        places.moved(&team, Part::None, Part::Rolls);
        places.moved(&other, Part::None, Part::Failed);
        assert_eq!(places.besides("team", Part::None), (2, 0));
        assert_eq!(places.besides("team", Part::Rolls), (1, 0));
        assert_eq!(places.besides("other", Part::Failed), (0, 0));
        places.moved(&team, Part::Rolls, Part::Failed);
        assert_eq!((places.besides("team", Part::None), places.besides("none", Part::None)), ((1, 1), (0, 0)));
        places.moved(&team, Part::Failed, Part::None);
        places.moved(&team, Part::Rolls, Part::None);
        places.moved(&other, Part::Failed, Part::Failed);
        places.moved(&other, Part::Failed, Part::None);
        assert!(places.0.is_empty(), "{places:?}");
    }
}
