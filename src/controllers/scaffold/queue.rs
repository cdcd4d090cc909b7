//! Which item is next: fresh changes before the backlog of a start, namespaces in turn, failures after a pause; pure.
//!
//! Within a namespace what was begun is finished first: ten thousand items that are all asked about something before one
//! of them is gone on with would find every answer too old when their turn comes. What never comes to an end waits its
//! turn every so often; and what is still to be said of an object that was made waits until others are made, too.
//!
//! Promises: an item is never worked on twice at once; a change that arrives meanwhile is not lost; a failing item
//! waits 1 s, doubling to 5 min, with jitter (conflicts: from 50 ms; where the server asks for more: that), whatever
//! changes arrive, and a success forgets its failures. A namespace has at most as many items under way as workers are
//! free: alone it gets half of them, and however slow some are, others always find one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::plan::Item;

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
    waiting: BTreeMap<(Duration, u64), Item>,
    delays: HashMap<Item, (Duration, u64)>,
    failures: HashMap<Item, u32>,
    running: HashSet<Item>,
    again: HashMap<Item, Priority>,
    /// How often an item was gone on with since it was last at rest.
    looks: HashMap<Item, u32>,
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
/// So many looks at one item follow each other before others of its namespace have their turn: more than anything takes
/// that comes to an end.
const IN_A_ROW: u32 = 16;

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
        let may = |(_, _, name): &&Turn| self.lanes.get(name).is_some_and(|lane| lane.running < free);
        let (_, _, name) = self.turns.iter().find(may)?.clone();
        let served = self.next();
        let item = self.lane(&name, |lane| {
            let item = lane.ready.pop_first().map(|(_, item)| item);
            lane.running += 1;
            lane.served = served;
            item
        })?;
        self.places.remove(&item);
        self.running.insert(item.clone());
        Some(item)
    }

    fn place(&mut self, item: Item, priority: Priority) {
        let place = (priority, self.next());
        self.places.insert(item.clone(), place);
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

    /// Forgets everything but what is under way, whose end is still to come.
    pub fn clear(&mut self) {
        *self = Self { sequence: self.sequence, ..Self::default() };
    }

    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::observed::Key;
    use crate::controllers::scaffold::plan::Controller;

    fn item(name: &str) -> Item {
        Item { controller: Controller::Waiting, key: Key::new("n", name) }
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn fresh_changes_pass_the_backlog_of_a_start() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c"] {
            queue.add(item(name), Priority::Backlog);
        }
        queue.add(item("new"), Priority::Fresh);
        queue.add(item("c"), Priority::Fresh);
        queue.add(item("c"), Priority::Backlog);
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(9, s(0))).map(|item| item.key.name.to_string()).collect();
        assert_eq!(order, ["new", "c", "a", "b"]);
    }

    fn of(namespace: &str, name: &str) -> Item {
        Item { controller: Controller::Waiting, key: Key::new(namespace, name) }
    }

    #[test]
    fn namespaces_take_turns_whatever_one_of_them_asks_for() {
        let mut queue = Queue::default();
        for number in 0..100 {
            queue.add(of("flood", &format!("{number:03}")), Priority::Fresh);
        }
        queue.add(of("b", "1"), Priority::Fresh);
        queue.add(of("c", "1"), Priority::Fresh);
        queue.add(of("c", "2"), Priority::Fresh);
        let mut order = Vec::new();
        for _ in 0..7 {
            let item = queue.pop(32, s(0)).unwrap();
            queue.done(&item, Ending::Done(None), s(0), 0.5);
            order.push(format!("{}/{}", item.key.namespace, item.key.name));
        }
        assert_eq!(order, ["b/1", "c/1", "flood/000", "c/2", "flood/001", "flood/002", "flood/003"]);
    }

    /// A flood whose items take two looks each: the second follows the first, and other namespaces lose no turn by it.
    #[test]
    fn what_was_begun_is_finished_before_more_of_its_namespace_is_begun() {
        let mut queue = Queue::default();
        for number in 0..1000 {
            queue.add(of("flood", &format!("{number:03}")), Priority::Fresh);
        }
        let mut order = Vec::new();
        let mut look = |queue: &mut Queue, ending| {
            let item = queue.pop(32, s(0)).unwrap();
            if ending == Ending::Done(None) && item.key.name.ends_with('1') {
                // Its own write is the change that asks for the next look.
                queue.add(item.clone(), Priority::Fresh);
            }
            queue.done(&item, ending, s(0), 0.5);
            order.push(format!("{}/{}", item.key.namespace, item.key.name));
        };
        look(&mut queue, Ending::Done(Some(s(0))));
        queue.add(of("other", "1"), Priority::Fresh);
        look(&mut queue, Ending::Done(Some(s(0))));
        look(&mut queue, Ending::Done(None));
        look(&mut queue, Ending::Done(Some(s(60))));
        look(&mut queue, Ending::Done(None));
        look(&mut queue, Ending::Done(None));
        assert_eq!(order, ["flood/000", "other/1", "flood/000", "other/1", "flood/001", "flood/001"]);
    }

    /// Runs of a flood are made before anything is said of those that are made already.
    #[test]
    fn what_is_left_once_something_is_made_takes_its_turn() {
        let mut queue = Queue::default();
        for name in ["a", "b", "c"] {
            queue.add(item(name), Priority::Fresh);
        }
        let mut order = Vec::new();
        for ending in [Ending::Done(None), Ending::Made, Ending::Made, Ending::Made, Ending::Made, Ending::Made] {
            let item = queue.pop(32, s(0)).unwrap();
            order.push(item.key.name.to_string());
            // Its own write.
            queue.add(item.clone(), Priority::Fresh);
            queue.done(&item, ending, s(0), 0.5);
        }
        assert_eq!(order, ["a", "a", "b", "c", "a", "b"]);
        let item = queue.pop(32, s(0)).unwrap();
        queue.done(&item, Ending::Made, s(0), 0.5);
        assert_eq!((&*item.key.name, queue.ready(), queue.due()), ("c", 2, None), "a look that nobody asked for");
    }

    /// One that changes whenever it was looked at does not keep its neighbours from ever being looked at.
    #[test]
    fn what_goes_on_for_ever_leaves_turns_to_its_neighbours() {
        let mut queue = Queue::default();
        queue.add(item("restless"), Priority::Fresh);
        queue.add(item("neighbour"), Priority::Fresh);
        let mut before = 0;
        while let Some(item) = queue.pop(32, s(0)).filter(|item| &*item.key.name == "restless") {
            before += 1;
            assert!(before <= 2 * IN_A_ROW, "the neighbour never has its turn");
            queue.add(item.clone(), Priority::Fresh);
            queue.done(&item, Ending::Done(None), s(0), 0.5);
        }
        assert_eq!(before, IN_A_ROW);
    }

    #[test]
    fn a_slow_namespace_leaves_workers_to_the_others() {
        let workers = 32;
        let mut queue = Queue::default();
        let mut running = 0;
        let fill = |queue: &mut Queue, running: &mut usize, namespace: &str| {
            for number in 0..100 {
                queue.add(of(namespace, &number.to_string()), Priority::Fresh);
            }
            let before = *running;
            while queue.pop(workers - *running, s(0)).is_some() {
                *running += 1;
            }
            *running - before
        };
        // Nothing of what is begun ever ends.
        let got: Vec<_> = ["a", "b", "c", "d"].map(|name| fill(&mut queue, &mut running, name)).to_vec();
        assert_eq!(got, [16, 8, 4, 2]);
        queue.add(of("e", "1"), Priority::Backlog);
        assert_eq!(queue.pop(workers - running, s(0)), Some(of("e", "1")), "somebody new finds a worker at once");
        assert_eq!(queue.ready(), 400 - 30);
        queue.done(&of("a", "0"), Ending::Failed(s(0)), s(0), 0.5);
        assert_eq!(
            queue.pop(2, s(0)).map(|item| item.key.namespace.to_string()),
            None,
            "all have two or more under way"
        );
    }

    #[test]
    fn a_server_that_asks_for_more_time_gets_it() {
        let mut queue = Queue::default();
        queue.add(item("a"), Priority::Fresh);
        let running = queue.pop(1, s(0)).unwrap();
        queue.done(&running, Ending::Failed(s(30)), s(0), 0.5);
        assert_eq!(queue.due(), Some(s(30)));
        let running = queue.pop(1, s(30)).unwrap();
        queue.done(&running, Ending::Failed(s(1)), s(30), 0.5);
        assert_eq!(queue.due(), Some(s(32)), "the pause of a second failure is longer than that");
    }

    #[test]
    fn a_change_during_the_work_is_not_lost_and_never_worked_on_twice_at_once() {
        let mut queue = Queue::default();
        queue.add(item("a"), Priority::Fresh);
        let running = queue.pop(1, s(0)).unwrap();
        queue.add(item("a"), Priority::Backlog);
        assert_eq!(queue.pop(1, s(0)), None);
        queue.done(&running, Ending::Done(Some(s(60))), s(1), 0.5);
        assert_eq!(queue.pop(1, s(1)), Some(item("a")), "the change wins over the timer");
        queue.done(&item("a"), Ending::Done(Some(s(60))), s(1), 0.5);
        assert_eq!((queue.pop(1, s(60)), queue.due()), (None, Some(s(61))));
        queue.add(item("a"), Priority::Fresh);
        assert_eq!(queue.pop(1, s(2)), Some(item("a")), "a timer does not hold a change back");
    }

    #[test]
    fn failures_wait_longer_each_time_whatever_changes_arrive() {
        let mut queue = Queue::default();
        let mut now = s(0);
        let mut pauses = Vec::new();
        queue.add(item("a"), Priority::Fresh);
        for _ in 0..12 {
            let running = queue.pop(1, now).unwrap();
            queue.done(&running, Ending::Failed(s(0)), now, 0.5);
            queue.add(item("a"), Priority::Fresh);
            let due = queue.due().unwrap();
            assert_eq!(queue.pop(1, due - Duration::from_millis(1)), None, "a change does not shorten the pause");
            pauses.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let running = queue.pop(1, now).unwrap();
        queue.done(&running, Ending::Done(None), now, 0.5);
        queue.add(item("a"), Priority::Fresh);
        assert!(queue.pop(1, now).is_some(), "a success forgets");
        queue.done(&running, Ending::Conflict, now, 0.0);
        assert_eq!(queue.due().unwrap() - now, Duration::from_micros(37_500));
    }
}
