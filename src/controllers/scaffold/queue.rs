//! Which item is next: fresh changes before the backlog of a start, failures after a pause; pure.
//!
//! Promises: an item is never worked on twice at once; a change that arrives meanwhile is not lost; a failing item
//! waits 1 s, doubling to 5 min, with jitter (conflicts: from 50 ms), whatever changes arrive, and a success forgets
//! its failures.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::plan::Item;

/// How urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
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
    /// Somebody else wrote in between.
    Conflict,
    /// It failed.
    Failed,
}

/// The items to be worked on.
#[derive(Debug, Default)]
pub struct Queue {
    sequence: u64,
    ready: BTreeMap<(Priority, u64), Item>,
    places: HashMap<Item, (Priority, u64)>,
    waiting: BTreeMap<(Duration, u64), Item>,
    delays: HashMap<Item, (Duration, u64)>,
    failures: HashMap<Item, u32>,
    running: HashSet<Item>,
    again: HashMap<Item, Priority>,
}

const FIRST: Duration = Duration::from_secs(1);
const FIRST_CONFLICT: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(300);

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
            Some(place) => drop(self.ready.remove(place)),
            None => {}
        }
        let place = (priority, self.next());
        self.places.insert(item.clone(), place);
        self.ready.insert(place, item);
    }

    /// The next item to be worked on; the caller says how it ended with [`Queue::done`].
    pub fn pop(&mut self, now: Duration) -> Option<Item> {
        while let Some(first) = self.waiting.first_entry().filter(|first| first.key().0 <= now) {
            let item = first.remove();
            self.delays.remove(&item);
            let place = (Priority::Fresh, self.next());
            self.places.insert(item.clone(), place);
            self.ready.insert(place, item);
        }
        let (_, item) = self.ready.pop_first()?;
        self.places.remove(&item);
        self.running.insert(item.clone());
        Some(item)
    }

    /// The work on `item` ended.
    pub fn done(&mut self, item: &Item, ending: Ending, now: Duration, jitter: f64) {
        self.running.remove(item);
        let again = self.again.remove(item);
        let delay = match ending {
            Ending::Done(delay) => {
                self.failures.remove(item);
                match again {
                    Some(priority) => return self.add(item.clone(), priority),
                    None => delay,
                }
            }
            Ending::Conflict | Ending::Failed => {
                let failures = self.failures.entry(item.clone()).or_insert(0);
                *failures = failures.saturating_add(1);
                let first = if ending == Ending::Conflict { FIRST_CONFLICT } else { FIRST };
                Some(pause(first, *failures, jitter))
            }
        };
        if let Some(delay) = delay {
            let place = (now + delay, self.next());
            self.delays.insert(item.clone(), place);
            self.waiting.insert(place, item.clone());
        }
    }

    /// When an item that waits becomes due.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// Items that could be worked on now.
    #[must_use]
    pub fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Forgets everything.
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
        let order: Vec<_> = std::iter::from_fn(|| queue.pop(s(0))).map(|item| item.key.name.to_string()).collect();
        assert_eq!(order, ["new", "c", "a", "b"]);
    }

    #[test]
    fn a_change_during_the_work_is_not_lost_and_never_worked_on_twice_at_once() {
        let mut queue = Queue::default();
        queue.add(item("a"), Priority::Fresh);
        let running = queue.pop(s(0)).unwrap();
        queue.add(item("a"), Priority::Backlog);
        assert_eq!(queue.pop(s(0)), None);
        queue.done(&running, Ending::Done(Some(s(60))), s(1), 0.5);
        assert_eq!(queue.pop(s(1)), Some(item("a")), "the change wins over the timer");
        queue.done(&item("a"), Ending::Done(Some(s(60))), s(1), 0.5);
        assert_eq!((queue.pop(s(60)), queue.due()), (None, Some(s(61))));
        queue.add(item("a"), Priority::Fresh);
        assert_eq!(queue.pop(s(2)), Some(item("a")), "a timer does not hold a change back");
    }

    #[test]
    fn failures_wait_longer_each_time_whatever_changes_arrive() {
        let mut queue = Queue::default();
        let mut now = s(0);
        let mut pauses = Vec::new();
        queue.add(item("a"), Priority::Fresh);
        for _ in 0..12 {
            let running = queue.pop(now).unwrap();
            queue.done(&running, Ending::Failed, now, 0.5);
            queue.add(item("a"), Priority::Fresh);
            let due = queue.due().unwrap();
            assert_eq!(queue.pop(due - Duration::from_millis(1)), None, "a change does not shorten the pause");
            pauses.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        let running = queue.pop(now).unwrap();
        queue.done(&running, Ending::Done(None), now, 0.5);
        queue.add(item("a"), Priority::Fresh);
        assert!(queue.pop(now).is_some(), "a success forgets");
        queue.done(&running, Ending::Conflict, now, 0.0);
        assert_eq!(queue.due().unwrap() - now, Duration::from_micros(37_500));
    }
}
