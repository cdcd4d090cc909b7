//! What plans leave behind for later plans, their own and those of other items; pure.
//!
//! In: the note that comes with each plan, and the failures of what was carried out. Out: who rolls, who waits for whom,
//! what was refused. Promises: a note lasts until the next plan of its item, a failure until nothing is wanted of its item any
//! more; everything is forgotten with the term, so whatever has to outlive it stands in the cluster.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::answers::Answers;
use super::note::Note;
use super::plan::{Controller, Item, Op};
use crate::domain::reason::Reason;

/// So many of those that wait are looked at again when one that rolls is done.
const WOKEN: usize = 8;

/// How long a refused eviction is not asked for again.
const BLOCKED: Duration = Duration::from_secs(30);

/// The last write of an item that came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// What was tried.
    pub op: Op,
    /// How often in a row something was tried and failed.
    pub times: u32,
    /// Refused for a reason that a person has to remove; `None` when trying again may help by itself.
    pub refused: Option<Reason>,
    /// The server's words.
    pub message: String,
    /// When.
    pub at: Duration,
}

/// What a note says of itself, or that it says nothing of it.
type Says = fn(&Note) -> Option<bool>;

/// Everything that is remembered.
#[derive(Debug, Default)]
pub struct Memory {
    notes: HashMap<Item, Note>,
    troubles: HashMap<Item, Trouble>,
    rolling: BTreeSet<Item>,
    entering: BTreeSet<Item>,
    slow: BTreeSet<Item>,
    failed: BTreeSet<Item>,
    waiting: BTreeSet<Item>,
    evicting: BTreeSet<Item>,
    /// Pods that run unprotected, and with an old configuration, in all notes.
    drift: (usize, usize),
    /// AgentRuntimes that say they are protected, and that they are not, in all notes.
    protected: (usize, usize),
    /// Agents that are open, and that are cut off, in all notes.
    opened: (usize, usize),
    /// Namespaces in which what cuts off stands, and in which it does not, in all notes.
    armed: (usize, usize),
    blocked: HashMap<Item, Duration>,
    /// Items that are held back, by controller and namespace.
    held: HashMap<(Controller, Arc<str>), usize>,
    /// Counts the configurations of the fleet (platform file, gates, API server, SPIRE) of this term.
    pub epoch: u64,
    /// Every item has been planned once: who rolls is known.
    pub surveyed: bool,
    /// When a Pod was last evicted.
    pub evicted: Option<Duration>,
    /// When a probe last came back without our gate.
    pub proved: Option<Duration>,
    /// Probes that were answered; the next one goes to another namespace.
    pub probes: usize,
    /// What the API server was asked, and answered.
    pub answers: Answers,
}

impl Memory {
    /// Another term begins or ends: all is forgotten but where the next probe goes.
    pub fn next_term(&mut self) {
        *self = Self { probes: self.probes, ..Self::default() };
    }

    /// Takes the note of an item's plan; returns the items for which that may change something.
    pub fn note(&mut self, item: &Item, note: Note) -> Vec<Item> {
        let was = self.notes.get(item).is_some_and(|old| old.rolling || old.failed || old.enters);
        let before = self.notes.get(item).map_or((0, 0), |old| (old.unprotected, old.outdated));
        self.drift.0 = self.drift.0 + note.unprotected - before.0;
        self.drift.1 = self.drift.1 + note.outdated - before.1;
        let old = self.notes.get(item);
        let said: [(&mut (usize, usize), Says); 3] = [
            (&mut self.protected, |note| note.protected),
            (&mut self.opened, |note| note.opened),
            (&mut self.armed, |note| note.armed),
        ];
        for (counts, of) in said {
            let says = |note: Option<&Note>, what: bool| usize::from(note.and_then(of) == Some(what));
            counts.0 = counts.0 + says(Some(&note), true) - says(old, true);
            counts.1 = counts.1 + says(Some(&note), false) - says(old, false);
        }
        let was_held = self.notes.get(item).is_some_and(|old| old.held.is_some());
        if was_held != note.held.is_some() {
            let place = (item.controller, item.key.namespace.clone());
            let count = self.held.entry(place.clone()).or_default();
            *count = if was_held { count.saturating_sub(1) } else { *count + 1 };
            if *count == 0 {
                self.held.remove(&place);
            }
        }
        for (set, is) in [
            (&mut self.rolling, note.rolling),
            (&mut self.entering, note.enters),
            (&mut self.slow, note.slow),
            (&mut self.failed, note.failed),
            (&mut self.waiting, note.waits),
            (&mut self.evicting, note.evicting),
        ] {
            if is {
                set.insert(item.clone());
            } else {
                set.remove(item);
            }
        }
        let freed = was && !note.rolling && !note.failed && !note.enters;
        if note == Note::default() {
            self.notes.remove(item);
        } else {
            self.notes.insert(item.clone(), note);
        }
        if freed { self.waiting.iter().take(WOKEN).cloned().collect() } else { Vec::new() }
    }

    /// How many items of a controller are held back in a namespace.
    #[must_use]
    pub fn held_in(&self, controller: Controller, namespace: &Arc<str>) -> usize {
        self.held.get(&(controller, namespace.clone())).copied().unwrap_or_default()
    }

    /// The last note of an item.
    #[must_use]
    pub fn of(&self, item: &Item) -> Option<&Note> {
        self.notes.get(item)
    }

    /// How many roll, that item aside.
    #[must_use]
    pub fn rolling_besides(&self, item: &Item) -> usize {
        self.rolling.len() - usize::from(self.rolling.contains(item))
    }

    /// How many of the same namespace enter, that item aside.
    #[must_use]
    pub fn entering_besides(&self, item: &Item) -> usize {
        let near = |other: &&Item| other.key.namespace == item.key.namespace && *other != item;
        self.entering.iter().filter(near).count()
    }

    /// Those that have rolled for long.
    pub fn slow(&self) -> impl Iterator<Item = &Item> {
        self.slow.iter()
    }

    /// How many rollouts failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// Whether a Pod of another item is being evicted.
    #[must_use]
    pub fn evicts_besides(&self, item: &Item) -> bool {
        self.evicting.iter().any(|other| other != item)
    }

    /// Takes note that the eviction that an item asked for was granted.
    pub fn was_evicted(&mut self, item: &Item, now: Duration) {
        self.evicted = Some(now);
        if let Some(note) = self.notes.get_mut(item) {
            note.evicted = note.asked.take().or_else(|| note.evicted.take());
        }
    }

    /// Takes note that a disruption budget forbids evictions of an item for a while.
    pub fn blocked(&mut self, item: &Item, now: Duration) {
        self.not_evicted(item);
        self.blocked.retain(|_, until| *until > now);
        self.blocked.insert(item.clone(), now + BLOCKED);
    }

    /// The eviction that was planned has not happened, so Pods that are made meanwhile do not show that it was in vain.
    fn not_evicted(&mut self, item: &Item) {
        self.evicting.remove(item);
        if let Some(note) = self.notes.get_mut(item) {
            (note.evicting, note.asked) = (false, None);
        }
    }

    /// Whether evictions of an item were forbidden a short while ago.
    #[must_use]
    pub fn is_blocked(&self, item: &Item, now: Duration) -> bool {
        self.blocked.get(item).is_some_and(|until| *until > now)
    }

    /// Those that wait.
    pub fn waiters(&self) -> impl Iterator<Item = &Item> {
        self.waiting.iter()
    }

    /// How many roll.
    #[must_use]
    pub fn rolling(&self) -> usize {
        self.rolling.len()
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
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

    /// Agents that are open, and that are cut off.
    #[must_use]
    pub fn opened(&self) -> (usize, usize) {
        self.opened
    }

    /// Namespaces that enforce trust in which what cuts off stands, and in which it does not.
    #[must_use]
    pub fn armed(&self) -> (usize, usize) {
        self.armed
    }

    /// A write failed: which, for what reason it was refused (if it was), and the server's words.
    pub fn failure(&mut self, item: &Item, at: Duration, (op, refused, message): (Op, Option<Reason>, String)) {
        if matches!(op, Op::Evict { .. }) {
            self.not_evicted(item);
        }
        // Whoever refuses one object of a namespace, or does not answer, may do so for others, whatever their shape.
        if let Op::Try { namespace, .. } | Op::Ensure { namespace, .. } = &op {
            self.answers.failed(namespace);
        }
        let times = self.troubles.get(item).map_or(0, |trouble| trouble.times).saturating_add(1);
        self.troubles.insert(item.clone(), Trouble { op, times, refused, message, at });
    }

    /// A plan was carried out; a refusal is forgotten only when fields were `applied`.
    pub fn success(&mut self, item: &Item, applied: bool) {
        if self.troubles.get(item).is_some_and(|trouble| applied || trouble.refused.is_none()) {
            self.troubles.remove(item);
        }
    }

    /// Nothing is to be done about an item, and nothing is awaited: it is as it should be, or gone.
    pub fn at_rest(&mut self, item: &Item) {
        self.troubles.remove(item);
    }

    /// The last failure of an item.
    #[must_use]
    pub fn trouble(&self, item: &Item) -> Option<&Trouble> {
        self.troubles.get(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::note::Eviction;
    use crate::store::Key;

    fn item(name: &str) -> Item {
        Item { controller: Controller::Enrolment, key: Key::new("n", name) }
    }

    #[test]
    fn those_that_wait_are_woken_when_one_is_done_and_not_before() {
        let mut memory = Memory::default();
        let rolls = Note { rolling: true, ..Note::default() };
        let waits = Note { waits: true, ..Note::default() };
        assert!(memory.note(&item("a"), rolls.clone()).is_empty());
        for number in 0..20 {
            assert!(memory.note(&item(&format!("w{number:02}")), waits.clone()).is_empty());
        }
        assert_eq!((memory.rolling_besides(&item("b")), memory.rolling_besides(&item("a"))), (1, 0));
        assert!(memory.note(&item("a"), rolls).is_empty(), "still rolling");
        let failed = Note { failed: true, ..Note::default() };
        assert!(memory.note(&item("a"), failed).is_empty(), "a failure makes no room");
        assert_eq!(memory.failed(), 1);
        let woken = memory.note(&item("a"), Note::default());
        assert_eq!((woken.len(), woken[0] == item("w00"), memory.waiting()), (WOKEN, true, 20));
        assert_eq!(memory.of(&item("a")), None);
    }

    #[test]
    fn failures_are_counted_until_a_success() {
        let mut memory = Memory::default();
        let op = Op::Delete { kind: crate::store::Kind::Pod, key: Key::new("n", "p"), uid: "u".into() };
        for times in 1..4 {
            memory.failure(&item("a"), Duration::ZERO, (op.clone(), None, "why".into()));
            assert_eq!(memory.trouble(&item("a")).map(|trouble| trouble.times), Some(times));
        }
        memory.success(&item("a"), false);
        assert_eq!(memory.trouble(&item("a")), None);
        memory.failure(&item("a"), Duration::ZERO, (op, Some(Reason::LabelConflict), "why".into()));
        memory.success(&item("a"), false);
        assert!(memory.trouble(&item("a")).is_some(), "a status that was written does not make it right");
        memory.success(&item("a"), true);
        assert_eq!(memory.trouble(&item("a")), None);
    }

    /// Objects come and go under names of their own for as long as a term lasts.
    #[test]
    fn what_is_over_takes_no_memory() {
        let mut memory = Memory::default();
        for number in 0..100 {
            let (item, now) = (item(&number.to_string()), BLOCKED * number);
            let op = Op::Delete { kind: crate::store::Kind::Pod, key: Key::new("n", "p"), uid: "u".into() };
            memory.failure(&item, now, (op, Some(Reason::RunRefused), "why".into()));
            memory.blocked(&item, now);
            assert!(memory.is_blocked(&item, now) && memory.trouble(&item).is_some());
            memory.at_rest(&item);
        }
        assert_eq!((memory.troubles.len(), memory.blocked.len()), (0, 1));
    }

    /// Whoever refuses one object, or does not answer, may do so for others.
    #[test]
    fn a_write_that_comes_to_nothing_ends_what_its_namespace_was_answered() {
        let kind = crate::store::Kind::PipelineRun;
        let body = serde_json::Value::Null;
        let create = Op::Ensure { kind, namespace: "n".into(), body, owner: "u".into() };
        for (refused, why) in [(None, "no answer"), (Some(Reason::RunRefused), "why")] {
            let mut memory = Memory::default();
            for namespace in ["n", "m"] {
                memory.answers.taken(namespace.into(), "shape".into(), Duration::ZERO);
            }
            memory.failure(&item("a"), Duration::ZERO, (create.clone(), refused, why.into()));
            let is = |namespace: &str| memory.answers.is_taken(namespace, "shape", Duration::ZERO);
            assert!(!is("n") && is("m"), "{why}");
        }
    }

    #[test]
    fn an_eviction_that_was_forbidden_did_not_happen() {
        let mut memory = Memory::default();
        let asked = Some(Eviction { youngest: "2026-05-01T10:20:30Z".into(), at: Duration::ZERO });
        let before = Some(Eviction { youngest: "2026-05-01T10:00:00Z".into(), at: Duration::ZERO });
        let told = Note { unprotected: 2, evicted: before.clone(), ..Note::default() };
        memory.note(&item("a"), Note { evicting: true, asked: asked.clone(), ..told.clone() });
        memory.blocked(&item("a"), Duration::ZERO);
        assert_eq!(memory.of(&item("a")), Some(&told), "the one before it did");
        memory.note(&item("b"), Note { asked: asked.clone(), evicted: before, ..Note::default() });
        memory.was_evicted(&item("b"), Duration::ZERO);
        assert_eq!(memory.of(&item("b")).and_then(|note| note.evicted.clone()), asked);
        assert!(!memory.evicts_besides(&item("b")) && memory.is_blocked(&item("a"), Duration::ZERO));
    }

    #[test]
    fn those_held_back_are_counted_by_namespace() {
        let mut memory = Memory::default();
        let held = Note { held: Some(Duration::ZERO), ..Note::default() };
        let count = |memory: &Memory| memory.held_in(Controller::Enrolment, &"n".into());
        for name in ["a", "b", "a"] {
            memory.note(&item(name), held.clone());
        }
        assert_eq!((count(&memory), memory.held_in(Controller::Enrolment, &"m".into())), (2, 0));
        memory.note(&item("a"), Note::default());
        memory.note(&item("a"), Note::default());
        assert_eq!(count(&memory), 1);
    }

    #[test]
    fn what_is_open_and_what_is_cut_off_is_counted() {
        let mut memory = Memory::default();
        let agent = |opened| Note { opened: Some(opened), ..Note::default() };
        for (name, opened) in [("a", true), ("b", false), ("c", false), ("b", true)] {
            memory.note(&item(name), agent(opened));
        }
        memory.note(&item("deny"), Note { armed: Some(false), ..Note::default() });
        assert_eq!((memory.opened(), memory.armed(), memory.protected()), ((2, 1), (0, 1), (0, 0)));
        memory.note(&item("a"), Note::default());
        memory.note(&item("deny"), Note { armed: Some(true), ..Note::default() });
        assert_eq!((memory.opened(), memory.armed()), ((1, 1), (1, 0)));
    }

    #[test]
    fn drift_is_the_sum_over_all_items() {
        let mut memory = Memory::default();
        memory.note(&item("a"), Note { unprotected: 2, outdated: 1, ..Note::default() });
        memory.note(&item("b"), Note { outdated: 3, ..Note::default() });
        assert_eq!(memory.drift(), (2, 4));
        memory.note(&item("b"), Note::default());
        assert_eq!(memory.drift(), (2, 1));
    }
}
