//! What enrolment remembers of all its workloads: whose Pods it evicts, and how Pods and AgentRuntimes stand; pure.
//!
//! In: the notes of its plans, and what came of evictions. Out: whether one more Pod may be evicted, and its gauges. Promise: an eviction that
//! did not happen is not taken for one that was in vain.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::note::Note;
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Gauges, Own, recount};
use crate::controllers::scaffold::memory::Rollout;
use crate::controllers::scaffold::metrics::{Counts, FamilyRow};
use crate::controllers::scaffold::plan::{self, Op};
use crate::store::Key;

/// Pods that are not as their workload says.
pub const DRIFT: FamilyRow = FamilyRow {
    name: "drawbridge_drifted_pods",
    help: "Pods of enrolled workloads whose rollout is over that run without the sidecars (unprotected) or with another \
           configuration (outdated)",
    example: "outdated",
    counts: Counts::State,
};

/// AgentRuntimes by what they say of protection.
pub const PROTECTED: FamilyRow = FamilyRow {
    name: "drawbridge_agent_runtimes",
    help: "AgentRuntimes whose condition Protected is True (protected) or False (unprotected)",
    example: "protected",
    counts: Counts::State,
};

/// How long a refused eviction is not asked for again.
const BLOCKED: Duration = Duration::from_secs(30);

/// The controller.
#[derive(Debug, Clone, Copy)]
pub struct Enrolment;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Enrolment>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;

/// What it remembers of all its items together.
#[derive(Debug, Default)]
pub struct Memory {
    evicting: BTreeSet<Key>,
    /// Pods that run unprotected, and with an old configuration, in all notes.
    drift: (usize, usize),
    /// AgentRuntimes that say they are protected, and that they are not, in all notes.
    protected: (usize, usize),
    blocked: HashMap<Key, Duration>,
    /// When a Pod was last evicted.
    pub evicted: Option<Duration>,
}

impl Memory {
    /// Whether a Pod of another item is being evicted.
    #[must_use]
    pub fn evicts_besides(&self, key: &Key) -> bool {
        self.evicting.iter().any(|other| other != key)
    }

    /// Whether evictions of an item were forbidden a short while ago.
    #[must_use]
    pub fn is_blocked(&self, key: &Key, now: Duration) -> bool {
        self.blocked.get(key).is_some_and(|until| *until > now)
    }

    /// Pods that run unprotected, and Pods with an old configuration, of all items.
    #[must_use]
    pub fn drift(&self) -> (usize, usize) {
        self.drift
    }

    /// AgentRuntimes that say they are protected, and that they are not.
    #[must_use]
    pub fn protected(&self) -> (usize, usize) {
        self.protected
    }
}

/// The eviction that was planned has not happened, so Pods that are made meanwhile do not show that it was in vain.
fn not_evicted(own: &mut Own<Enrolment>, key: &Key) {
    own.memory.evicting.remove(key);
    if let Some(note) = own.of_mut(key) {
        (note.evicting, note.asked) = (false, None);
    }
}

impl Controller for Enrolment {
    type Note = Note;
    type Memory = Memory;

    fn rollout(note: &Note) -> Rollout {
        let Note { rolling, enters, slow, failed, waits, .. } = *note;
        Rollout { rolling, enters, slow, failed, waits }
    }

    fn noted(memory: &mut Memory, key: &Key, before: &Note, now: &Note) {
        memory.drift.0 = memory.drift.0 + now.unprotected - before.unprotected;
        memory.drift.1 = memory.drift.1 + now.outdated - before.outdated;
        recount(&mut memory.protected, before.protected, now.protected);
        if now.evicting {
            memory.evicting.insert(key.clone());
        } else {
            memory.evicting.remove(key);
        }
    }

    fn answered(own: &mut Own<Self>, key: &Key, learned: &Learned, now: Duration) {
        match learned {
            Learned::Evicted => {
                own.memory.evicted = Some(now);
                if let Some(note) = own.of_mut(key) {
                    note.evicted = note.asked.take().or_else(|| note.evicted.take());
                }
            }
            // A disruption budget forbids it for a while.
            Learned::Blocked => {
                not_evicted(own, key);
                own.memory.blocked.retain(|_, until| *until > now);
                own.memory.blocked.insert(key.clone(), now + BLOCKED);
            }
            _ => {}
        }
    }

    fn failed(own: &mut Own<Self>, key: &Key, op: &Op) {
        // Of a plan that failed nothing may stand, whether or not anything is wrong.
        if let Some(taken) = own.of_mut(key).and_then(|note| note.taken.as_mut()) {
            taken.void = true;
        }
        if matches!(op, Op::Evict { .. }) {
            not_evicted(own, key);
        }
    }

    fn gauges(memory: &Memory, set: Gauges<'_>) {
        let ((unprotected, outdated), (said, denied)) = (memory.drift, memory.protected);
        set(DRIFT.name, "unprotected", unprotected);
        set(DRIFT.name, "outdated", outdated);
        set(PROTECTED.name, "protected", said);
        set(PROTECTED.name, "unprotected", denied);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::enrolment::note::Eviction;

    fn item(name: &str) -> Key {
        Key::new("n", name)
    }

    #[test]
    fn an_eviction_that_was_forbidden_did_not_happen() {
        let mut own = Own::<Enrolment>::default();
        let asked = Some(Eviction { youngest: "2026-05-01T10:20:30Z".into(), at: Duration::ZERO });
        let before = Some(Eviction { youngest: "2026-05-01T10:00:00Z".into(), at: Duration::ZERO });
        let told = Note { unprotected: 2, evicted: before.clone(), ..Note::default() };
        own.note(&item("a"), Note { evicting: true, asked: asked.clone(), ..told.clone() });
        Enrolment::answered(&mut own, &item("a"), &Learned::Blocked, Duration::ZERO);
        assert_eq!(own.of(&item("a")), Some(&told), "the one before it did");
        own.note(&item("b"), Note { asked: asked.clone(), evicted: before, ..Note::default() });
        Enrolment::answered(&mut own, &item("b"), &Learned::Evicted, Duration::ZERO);
        assert_eq!(own.of(&item("b")).and_then(|note| note.evicted.clone()), asked);
        assert!(!own.memory.evicts_besides(&item("b")) && own.memory.is_blocked(&item("a"), Duration::ZERO));
    }

    #[test]
    fn an_eviction_that_nobody_answered_did_not_happen() {
        let mut own = Own::<Enrolment>::default();
        let asked = Some(Eviction { youngest: "2026-05-01T10:20:30Z".into(), at: Duration::ZERO });
        own.note(&item("a"), Note { evicting: true, asked, unprotected: 1, ..Note::default() });
        assert!(own.memory.evicts_besides(&item("b")));
        let delete = Op::Delete { kind: crate::store::Kind::Pod, key: item("p"), uid: "u".into() };
        Enrolment::failed(&mut own, &item("a"), &delete);
        assert!(own.memory.evicts_besides(&item("b")), "something else failed");
        Enrolment::failed(&mut own, &item("a"), &Op::Evict { key: item("p"), uid: "u".into() });
        assert!(!own.memory.evicts_besides(&item("b")));
        assert_eq!(own.of(&item("a")), Some(&Note { unprotected: 1, ..Note::default() }));
    }

    /// Workloads come and go under names of their own for as long as a term lasts.
    #[test]
    fn what_is_over_takes_no_memory() {
        let mut own = Own::<Enrolment>::default();
        for number in 0..100 {
            let (item, now) = (item(&number.to_string()), BLOCKED * number);
            Enrolment::answered(&mut own, &item, &Learned::Blocked, now);
            assert!(own.memory.is_blocked(&item, now));
        }
        assert_eq!(own.memory.blocked.len(), 1);
    }

    #[test]
    fn drift_is_the_sum_over_all_items() {
        let mut own = Own::<Enrolment>::default();
        own.note(&item("a"), Note { unprotected: 2, outdated: 1, ..Note::default() });
        own.note(&item("b"), Note { outdated: 3, protected: Some(true), ..Note::default() });
        let mut told = Vec::new();
        Enrolment::gauges(&own.memory, &mut |_, state, count| told.push((state, count)));
        assert_eq!(told, [("unprotected", 2), ("outdated", 4), ("protected", 1), ("unprotected", 0)]);
        own.note(&item("b"), Note::default());
        assert_eq!((own.memory.drift(), own.memory.protected()), ((2, 1), (0, 0)));
    }
}
