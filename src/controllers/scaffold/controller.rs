//! What a controller remembers and what it makes of answers: types of its own, which nobody else sees; pure.
//!
//! In: the notes of its plans, and what came of their operations. Out: notes and memory for its next plans, and its gauges. Promises: a note
//! lasts until the next plan of its item, a memory until the end of the term; one controller's are never handed to another, so what others
//! have to know has to stand in the cluster.

use std::collections::HashMap;
use std::fmt::Debug;
use std::time::Duration;

use super::apply::Learned;
use super::memory::Rollout;
use super::plan::Op;
use super::signing::Signing;
use crate::config::snapshot::Published;
use crate::store::Key;

/// Takes gauges: the family, the state, the number.
pub type Gauges<'a> = &'a mut dyn FnMut(&'static str, &'static str, usize);

/// What is a controller's own. `()` remembers nothing.
pub trait Controller: Copy + Debug + 'static {
    /// What a plan finds out about its item, for later plans.
    type Note: Clone + Debug + Default + PartialEq + Send + 'static;
    /// What is remembered of all items together.
    type Memory: Debug + Default + Send + 'static;

    /// How the item takes part in what rolls through the fleet.
    #[must_use]
    fn rollout(_: &Self::Note) -> Rollout {
        Rollout::default()
    }

    /// How the signature of the item's card stands, where it has been judged.
    #[must_use]
    fn signing(_: &Self::Note) -> Option<&Signing> {
        None
    }

    /// An item's note is another one now.
    fn noted(_: &mut Self::Memory, _: &Key, _before: &Self::Note, _now: &Self::Note) {}

    /// That came of an operation about an item.
    fn answered(_: &mut Own<Self>, _: &Key, _: &Learned, _now: Duration) {}

    /// That operation about an item came to nothing.
    fn failed(_: &mut Own<Self>, _: &Key, _: &Op) {}

    /// The object that an item is about was made, and asks for no other look.
    fn made(_: &mut Own<Self>, _: &Key, _now: Duration) {}

    /// What is left of the memory when another term begins or ends.
    #[must_use]
    fn next_term(_: Self::Memory) -> Self::Memory {
        Self::Memory::default()
    }

    /// Every item is to be looked at again because of a change of the configuration that is none of the whole fleet.
    #[must_use]
    fn is_affected(_before: &Published, _now: &Published) -> bool {
        false
    }

    /// Publishes what is counted.
    fn gauges(_: &Self::Memory, _: Gauges<'_>) {}
}

impl Controller for () {
    type Note = ();
    type Memory = ();
}

/// What one controller remembers.
#[derive(Debug)]
pub struct Own<C: Controller> {
    notes: HashMap<Key, C::Note>,
    /// What is remembered of all items together.
    pub memory: C::Memory,
}

impl<C: Controller> Default for Own<C> {
    fn default() -> Self {
        Self { notes: HashMap::new(), memory: C::Memory::default() }
    }
}

impl<C: Controller> Own<C> {
    /// The note of an item's last plan; `None` when it noted nothing.
    #[must_use]
    pub fn of(&self, key: &Key) -> Option<&C::Note> {
        self.notes.get(key)
    }

    /// The same, to be corrected by what came of the plan.
    pub fn of_mut(&mut self, key: &Key) -> Option<&mut C::Note> {
        self.notes.get_mut(key)
    }

    /// Takes the note of an item's plan.
    pub fn note(&mut self, key: &Key, note: C::Note) {
        let nothing = C::Note::default();
        C::noted(&mut self.memory, key, self.notes.get(key).unwrap_or(&nothing), &note);
        if note == nothing {
            self.notes.remove(key);
        } else {
            self.notes.insert(key.clone(), note);
        }
    }

    /// Another term begins or ends.
    pub fn next_term(&mut self) {
        self.notes.clear();
        self.memory = C::next_term(std::mem::take(&mut self.memory));
    }
}

/// Counts those that say yes and those that say no, when one says something else than before.
pub fn recount(counts: &mut (usize, usize), before: Option<bool>, now: Option<bool>) {
    let says = |one: Option<bool>, what: bool| usize::from(one == Some(what));
    counts.0 = counts.0 + says(now, true) - says(before, true);
    counts.1 = counts.1 + says(now, false) - says(before, false);
}
