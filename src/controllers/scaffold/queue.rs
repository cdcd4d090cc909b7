//! Which item is next: fresh changes before the backlog of a start, namespaces in turn, failures after a pause; pure.
//!
//! Within a namespace what was begun is finished first: ten thousand items that are all asked about something before one
//! of them is gone on with would find every answer too old when their turn comes. What never comes to an end waits its
//! turn every so often; and what is still to be said of an object that was made waits until others are made, too.
//!
//! Promises: an item is never worked on twice at once; a change that arrives meanwhile is not lost; a failing item
//! waits 1 s, doubling to 5 min, with jitter (conflicts: from 50 ms; where the server asks for more: that), whatever
//! changes arrive, and a success forgets its failures. A namespace has at most as many items under way as workers are
//! free: alone it gets half of them, and however slow some are, others always find one. While others work, too, it has no more
//! than [`SHARE`], because a worker is not all that is shared: the API server is as slow for everybody as it is busy.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::plan::{Item, Name};

/// How urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// It was worked on a moment ago, and there is more to do about it at once. Other namespaces take it for fresh.
    Begun,
    /// Somebody is waiting for it.
    Fresh,
    /// It was so before.
    Backlog,
}

/// How a piece of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done; look again after that time, if any.
    Done(Option<Duration>),
    /// What it was about is made; what is left has no hurry.
    Made,
    /// Somebody else wrote in between.
    Conflict,
    /// It failed; not again before that time has passed.
    Failed(Duration),
}

/// The items to be worked on.
#[derive(Debug, Default)]
pub struct Queue {
    sequence: u64,
    lanes: HashMap<Arc<str>, Lane>,
    /// The lanes with something to do: by how urgent it is, then by when they last had their turn.
    turns: BTreeSet<Turn>,
    places: HashMap<Item, (Priority, u64)>,
    /// How many of them are whose.
    depths: BTreeMap<Name, usize>,
    waiting: BTreeMap<(Duration, u64), Item>,
    delays: HashMap<Item, (Duration, u64)>,
    failures: HashMap<Item, u32>,
    running: HashSet<Item>,
    again: HashMap<Item, Priority>,
    /// How often an item was gone on with since it was last at rest.
    looks: HashMap<Item, u32>,
    /// The two namespaces for which something was begun last, and when.
    worked: [Option<(Arc<str>, Duration)>; 2],
}

type Turn = (Priority, u64, Arc<str>);

/// The items of one namespace.
#[derive(Debug, Default)]
struct Lane {
    ready: BTreeMap<(Priority, u64), Item>,
    running: usize,
    /// When it last had its turn.
    served: u64,
}

impl Lane {
    fn turn(&self, name: &Arc<str>) -> Option<Turn> {
        let ((priority, _), _) = self.ready.first_key_value()?;
        Some(((*priority).max(Priority::Fresh), self.served, name.clone()))
    }
}

const FIRST: Duration = Duration::from_secs(1);
const FIRST_CONFLICT: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(300);
/// What a namespace may have under way while others work, too.
const SHARE: usize = 2;
/// A namespace for which something was begun in this time works.
const WORKS: Duration = Duration::from_secs(1);
/// So many looks at one item follow each other before others of its namespace have their turn: more than anything takes
/// that comes to an end.
const IN_A_ROW: u32 = 16;
/// For so many items there is room while nothing waits: what a start or a burst took besides is given back.
const ROOM: usize = 1024;

/// The pause after so many failures in a row; `jitter` is in 0..1 and moves it by up to a quarter.
#[must_use]
pub fn pause(first: Duration, failures: u32, jitter: f64) -> Duration {
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(20));
    doubled.min(LONGEST).mul_f64(0.75 + jitter.clamp(0.0, 1.0) / 2.0)
}

impl Queue {
    /// Asks for an item to be worked on.
    pub fn add(&mut self, item: Item, priority: Priority) {
        if self.running.contains(&item) {
            let wanted = self.again.entry(item).or_insert(priority);
            *wanted = (*wanted).min(priority);
            return;
        }
        if self.failures.contains_key(&item) && self.delays.contains_key(&item) {
            return;
        }
        if let Some(delay) = self.delays.remove(&item) {
            self.waiting.remove(&delay);
        }
        match self.places.get(&item) {
            Some((known, _)) if *known <= priority => return,
            Some(place) => {
                let place = *place;
                self.lane(&item.key.namespace, |lane| drop(lane.ready.remove(&place)));
            }
            None => {}
        }
        self.place(item, priority);
    }

    /// The next item to be worked on while that many workers are free; the caller says how it ended with
    /// [`Queue::done`].
    pub fn pop(&mut self, free: usize, now: Duration) -> Option<Item> {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let item = first.remove();
            self.delays.remove(&item);
            self.place(item, Priority::Fresh);
        }
        // Few lanes are passed over: only those that have something under way.
        let may = |(_, _, name): &&Turn| {
            let most = if self.others_work(name, now) { free.min(SHARE) } else { free };
            self.lanes.get(name).is_some_and(|lane| lane.running < most)
        };
        let (_, _, name) = self.turns.iter().find(may)?.clone();
        let served = self.next();
        let item = self.lane(&name, |lane| {
            let item = lane.ready.pop_first().map(|(_, item)| item);
            lane.running += 1;
            lane.served = served;
            item
        })?;
        if self.places.remove(&item).is_some() {
            let depth = self.depths.entry(item.controller).or_default();
            *depth = depth.saturating_sub(1);
        }
        if self.places.is_empty() {
            self.places.shrink_to(ROOM);
        }
        self.running.insert(item.clone());
        Some(item)
    }

    /// The API server is asked for something on behalf of an item; most looks at items end without.
    pub fn begun(&mut self, item: &Item, now: Duration) {
        let [last, before] = &mut self.worked;
        if last.as_ref().is_some_and(|(last, _)| *last != item.key.namespace) {
            *before = last.take();
        }
        *last = Some((item.key.namespace.clone(), now));
    }

    /// Whether something was begun for another namespace a short while ago.
    fn others_work(&self, name: &Arc<str>, now: Duration) -> bool {
        self.worked.iter().flatten().any(|(other, at)| other != name && now.saturating_sub(*at) < WORKS)
    }

    fn place(&mut self, item: Item, priority: Priority) {
        let place = (priority, self.next());
        if self.places.insert(item.clone(), place).is_none() {
            *self.depths.entry(item.controller).or_default() += 1;
        }
        let name = item.key.namespace.clone();
        self.lane(&name, |lane| drop(lane.ready.insert(place, item)));
    }

    /// Changes a lane and keeps its turn in step.
    fn lane<T>(&mut self, name: &Arc<str>, change: impl FnOnce(&mut Lane) -> T) -> T {
        let lane = self.lanes.entry(name.clone()).or_default();
        if let Some(turn) = lane.turn(name) {
            self.turns.remove(&turn);
        }
        let result = change(lane);
        match lane.turn(name) {
            Some(turn) => drop(self.turns.insert(turn)),
            None if lane.running == 0 => drop(self.lanes.remove(name)),
            None => {}
        }
        result
    }

    /// The work on `item` ended.
    pub fn done(&mut self, item: &Item, ending: Ending, now: Duration, jitter: f64) {
        let ran = self.running.remove(item);
        self.go_on(item, ending, now, jitter);
        // Last, so that a lane whose only item goes on is not forgotten, and its turn with it.
        if ran {
            self.lane(&item.key.namespace, |lane| lane.running -= 1);
        }
    }

    fn go_on(&mut self, item: &Item, ending: Ending, now: Duration, jitter: f64) {
        let again = self.again.remove(item);
        let delay = match ending {
            Ending::Done(delay) => {
                self.failures.remove(item);
                if let Some(wanted) = again.or((delay == Some(Duration::ZERO)).then_some(Priority::Fresh)) {
                    let priority = self.going_on(item, wanted);
                    return self.add(item.clone(), priority);
                }
                self.looks.remove(item);
                delay
            }
            Ending::Made => {
                self.failures.remove(item);
                self.looks.remove(item);
                if let Some(wanted) = again {
                    self.add(item.clone(), wanted);
                }
                None
            }
            Ending::Conflict | Ending::Failed(_) => {
                let failures = self.failures.entry(item.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                let (first, least) = match ending {
                    Ending::Failed(least) => (FIRST, least),
                    _ => (FIRST_CONFLICT, Duration::ZERO),
                };
                Some(pause(first, *failures, jitter).max(least))
            }
        };
        if let Some(delay) = delay {
            let place = (now + delay, self.next());
            self.delays.insert(item.clone(), place);
            self.waiting.insert(place, item.clone());
        }
    }

    /// How urgent the next look at an item is that was looked at a moment ago.
    fn going_on(&mut self, item: &Item, wanted: Priority) -> Priority {
        let looks = self.looks.entry(item.clone()).or_insert(0);
        *looks += 1;
        if wanted == Priority::Backlog || looks.is_multiple_of(IN_A_ROW) { wanted } else { Priority::Begun }
    }

    /// When an item that waits becomes due.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Items that could be worked on now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.places.len()
    }

    /// The same by controller; one that has none now and had some before is among them.
    pub fn depths(&self) -> impl Iterator<Item = (Name, usize)> {
        self.depths.iter().map(|(controller, depth)| (*controller, *depth))
    }

    /// Forgets everything but what is under way, whose end is still to come.
    pub fn clear(&mut self) {
        // Whose nothing waits any more is still told.
        let mut depths = std::mem::take(&mut self.depths);
        depths.values_mut().for_each(|depth| *depth = 0);
        *self = Self { sequence: self.sequence, depths, ..Self::default() };
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

#[cfg(test)]
mod tests;
