//! What is remembered of all items alike, whichever controller's; pure.
//!
//! In: how each plan's item takes part in what rolls, and the failures of what was carried out. Out: who rolls, who waits for whom, what was
//! refused. Promises: what a plan said lasts until the next plan of its item, a failure until nothing is wanted of its item any
//! more; everything is forgotten with the term, so whatever has to outlive it stands in the cluster. What is one controller's alone is in
//! its own memory ([`super::controller`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::time::Duration;

use super::answers::Answers;
use super::plan::{Item, Name, Op};
use super::signing::Signing;
use crate::domain::reason::Reason;

/// So many of those that wait are looked at again when one that rolls is done.
const WOKEN: usize = 8;

/// The last write of an item that came to nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Trouble {
    /// What was tried.
    pub op: Op,
    /// How often in a row something was tried and failed.
    pub times: u32,
    /// Refused for a reason that a person has to remove; `None` when trying again may help by itself.
    pub refused: Option<Reason>,
    /// A policy of our own had not heard of what it looks for.
    pub unheard: bool,
    /// How often in a row this very write came to nothing because somebody else wrote in between, or because what it makes is there.
    pub conflicts: u32,
    /// The server's words.
    pub message: String,
    /// When.
    pub at: Duration,
}

/// How an item takes part in what rolls through the fleet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rollout {
    /// Its object rolls, or is about to, because of a change that we wrote.
    pub rolling: bool,
    /// Its Pods are replaced for the first time, because its user has just labelled it.
    pub enters: bool,
    /// It has rolled for so long that people are told.
    pub slow: bool,
    /// Its rollout exceeded its deadline, and what it rolled to is still what is wanted.
    pub failed: bool,
    /// It waits until one of those that roll is done.
    pub waits: bool,
}

/// Everything that is remembered of all items alike.
#[derive(Debug, Default)]
pub struct Memory {
    troubles: HashMap<Item, Trouble>,
    signings: HashMap<Item, Signing>,
    rolling: BTreeSet<Item>,
    entering: BTreeSet<Item>,
    slow: BTreeSet<Item>,
    failed: BTreeSet<Item>,
    waiting: BTreeMap<Name, BTreeSet<Item>>,
    /// Of those of each controller that wait, the one that was looked at last.
    looked_at: BTreeMap<Name, Item>,
    /// Whose that was.
    looked_at_last: Option<Name>,
    /// Counts the configurations of the fleet (platform file, gates, API server, SPIRE) of this term.
    pub epoch: u64,
    /// Every item has been planned once: who rolls is known.
    pub surveyed: bool,
    /// What the API server was asked, and answered.
    pub answers: Answers,
}

impl Memory {
    /// Another term begins or ends: all is forgotten.
    pub fn next_term(&mut self) {
        *self = Self::default();
    }

    /// Takes how an item takes part, by its plan; returns the items for which that may change something.
    pub fn takes_part(&mut self, item: &Item, rollout: Rollout) -> Vec<Item> {
        let was = [&self.rolling, &self.failed, &self.entering].iter().any(|set| set.contains(item));
        for (set, is) in [
            (&mut self.rolling, rollout.rolling),
            (&mut self.entering, rollout.enters),
            (&mut self.slow, rollout.slow),
            (&mut self.failed, rollout.failed),
        ] {
            if is {
                set.insert(item.clone());
            } else {
                set.remove(item);
            }
        }
        if rollout.waits {
            self.waiting.entry(item.controller).or_default().insert(item.clone());
        } else if let Some(own) = self.waiting.get_mut(&item.controller) {
            own.remove(item);
        }
        let freed = was && !rollout.rolling && !rollout.failed && !rollout.enters;
        if freed { self.woken() } else { Vec::new() }
    }

    /// Those that are looked at again where there is room: of each controller in turn, and of its own those behind the last that was. What may not begin
    /// all the same, because its kind or its namespace has no room, keeps nobody else from being looked at.
    fn woken(&mut self) -> Vec<Item> {
        let mut queues: Vec<_> = self.waiting.iter().map(|(name, own)| behind(own, self.looked_at.get(name))).collect();
        let last = self.looked_at_last;
        let first = self.waiting.keys().position(|name| last.is_some_and(|last| *name > last));
        queues.rotate_left(first.unwrap_or_default());
        let mut woken: Vec<Item> = Vec::new();
        for _ in 0..WOKEN {
            let room = WOKEN - woken.len();
            woken.extend(queues.iter_mut().filter_map(Iterator::next).take(room).cloned());
        }
        drop(queues);
        for item in &woken {
            self.looked_at.insert(item.controller, item.clone());
            self.looked_at_last = Some(item.controller);
        }
        woken
    }

    /// Takes how the signature of an item's card stands, by its plan.
    pub fn is_signed(&mut self, item: &Item, signing: Option<Signing>) {
        match signing {
            Some(signing) => drop(self.signings.insert(item.clone(), signing)),
            None => drop(self.signings.remove(item)),
        }
    }

    /// How the signature of an item's card stands, where it was judged.
    #[must_use]
    pub fn signing(&self, item: &Item) -> Option<&Signing> {
        self.signings.get(item)
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

    /// Those that wait.
    pub fn waiters(&self) -> impl Iterator<Item = &Item> {
        self.waiting.values().flatten()
    }

    /// How many roll.
    #[must_use]
    pub fn rolling(&self) -> usize {
        self.rolling.len()
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.values().map(BTreeSet::len).sum()
    }

    /// A write failed: which, for what reason it was refused (if it was), and the server's words.
    pub fn failure(&mut self, item: &Item, at: Duration, (op, refused, message): (Op, Option<Reason>, String)) {
        self.troubled(item, Trouble { op, times: 0, refused, unheard: false, conflicts: 0, message, at });
    }

    /// A write was refused by a policy of our own that had not heard of what it looks for.
    pub fn unheard(&mut self, item: &Item, at: Duration, (op, message): (Op, String)) {
        self.troubled(item, Trouble { op, times: 0, refused: None, unheard: true, conflicts: 0, message, at });
    }

    /// A write came to nothing because somebody else wrote in between, or because what was to be made is there.
    pub fn conflict(&mut self, item: &Item, at: Duration, (op, message): (Op, String)) {
        let before = self.troubles.get(item).filter(|before| before.op == op);
        let conflicts = before.map_or(0, |before| before.conflicts).saturating_add(1);
        self.troubled(item, Trouble { op, times: 0, refused: None, unheard: false, conflicts, message, at });
    }

    fn troubled(&mut self, item: &Item, trouble: Trouble) {
        let times = self.troubles.get(item).map_or(0, |before| before.times).saturating_add(1);
        let op = trouble.op.remembered();
        self.troubles.insert(item.clone(), Trouble { op, times, ..trouble });
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

/// Those behind the last one, then those up to it.
fn behind<'m>(items: &'m BTreeSet<Item>, last: Option<&Item>) -> impl Iterator<Item = &'m Item> {
    let from = last.map_or(Bound::Unbounded, Bound::Excluded);
    let before = last.map(|last| items.range::<Item, _>(..=last));
    items.range::<Item, _>((from, Bound::<&Item>::Unbounded)).chain(before.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    fn item(name: &str) -> Item {
        Item { controller: Name::new("rolls"), key: Key::new("n", name) }
    }

    #[test]
    fn those_that_wait_are_woken_when_one_is_done_and_not_before() {
        let mut memory = Memory::default();
        let rolls = Rollout { rolling: true, ..Rollout::default() };
        let waits = Rollout { waits: true, ..Rollout::default() };
        assert!(memory.takes_part(&item("a"), rolls).is_empty());
        for number in 0..20 {
            assert!(memory.takes_part(&item(&format!("w{number:02}")), waits).is_empty());
        }
        assert_eq!((memory.rolling_besides(&item("b")), memory.rolling_besides(&item("a"))), (1, 0));
        assert!(memory.takes_part(&item("a"), rolls).is_empty(), "still rolling");
        let failed = Rollout { failed: true, ..Rollout::default() };
        assert!(memory.takes_part(&item("a"), failed).is_empty(), "a failure makes no room");
        assert_eq!(memory.failed(), 1);
        let woken = memory.takes_part(&item("a"), Rollout::default());
        assert_eq!((woken.len(), woken[0] == item("w00"), memory.waiting()), (WOKEN, true, 20));
    }

    /// Which of those that wait may begin depends on their kind and namespace, too: were the same always looked at, the others would wait for as long.
    #[test]
    fn room_is_offered_to_every_controller_and_to_all_that_wait() {
        let mut memory = Memory::default();
        let waits = Rollout { waits: true, ..Rollout::default() };
        let of = |controller: &'static str, name: String| Item {
            controller: Name::new(controller),
            key: Key::new("n", &name),
        };
        for number in 0..12 {
            memory.takes_part(&of("a", format!("a{number:02}")), waits);
        }
        for number in 0..3 {
            memory.takes_part(&of("z", format!("z{number}")), waits);
        }
        let mut woken = || {
            memory.takes_part(&item("r"), Rollout { rolling: true, ..Rollout::default() });
            let woken = memory.takes_part(&item("r"), Rollout::default());
            woken.iter().map(|item| item.key.name.to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(woken(), "a00 z0 a01 z1 a02 z2 a03 a04");
        assert_eq!(woken(), "z0 a05 z1 a06 z2 a07 a08 a09");
        assert_eq!(woken(), "z0 a10 z1 a11 z2 a00 a01 a02");
        // More controllers than are looked at at once.
        let mut memory = Memory::default();
        let names = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        for name in names {
            memory.takes_part(&of(name, name.to_owned()), waits);
        }
        let mut seen = BTreeSet::new();
        for _ in 0..2 {
            memory.takes_part(&item("r"), Rollout { rolling: true, ..Rollout::default() });
            seen.extend(memory.takes_part(&item("r"), Rollout::default()).into_iter().map(|item| item.controller));
        }
        assert_eq!((seen.len(), memory.waiting(), memory.waiters().count()), (names.len(), 10, 10));
    }

    #[test]
    fn failures_are_counted_until_a_success() {
        let mut memory = Memory::default();
        let op = Op::Delete { kind: crate::store::Kind::Pod, key: Key::new("n", "p"), uid: "u".into() };
        for times in 1..4 {
            memory.failure(&item("a"), Duration::ZERO, (op.clone(), None, "why".into()));
            assert_eq!(memory.trouble(&item("a")).map(|trouble| trouble.times), Some(times));
        }
        for times in 1..3 {
            memory.conflict(&item("b"), Duration::ZERO, (op.clone(), "why".into()));
            assert_eq!(memory.trouble(&item("b")).map(|trouble| trouble.conflicts), Some(times));
        }
        memory.failure(&item("b"), Duration::ZERO, (op.clone(), None, "why".into()));
        assert_eq!(memory.trouble(&item("b")).map(|trouble| (trouble.times, trouble.conflicts)), Some((3, 0)));
        memory.unheard(&item("a"), Duration::ZERO, (op.clone(), "why".into()));
        assert_eq!(memory.trouble(&item("a")).map(|trouble| (trouble.times, trouble.unheard)), Some((4, true)));
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
            let item = item(&number.to_string());
            let op = Op::Delete { kind: crate::store::Kind::Pod, key: Key::new("n", "p"), uid: "u".into() };
            memory.failure(&item, Duration::ZERO, (op, Some(Reason::RunRefused), "why".into()));
            memory.takes_part(&item, Rollout { rolling: true, slow: true, ..Rollout::default() });
            memory.takes_part(&item, Rollout::default());
            assert!(memory.trouble(&item).is_some());
            memory.at_rest(&item);
        }
        assert_eq!((memory.troubles.len(), memory.rolling(), memory.slow().count()), (0, 0, 0));
    }
}
