//! Whose text is read next; pure.
//!
//! In: namespaces that have something to be read, and how long each reading took. Out: the namespace whose turn it is.
//! Promises: at most one reading per namespace at a time; among those that wait, the one that was served longest ago comes
//! first, then the one with least to read, so that whoever changes its texts all the time stands behind everybody else; a
//! namespace that has used up its allowance waits for more, which comes at a tenth of the time that passes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time of reading that a namespace may have saved up.
const ALLOWANCE: Duration = Duration::from_millis(100);
/// One part in so many of the time that passes is a namespace's own.
const SHARE: u32 = 10;
/// A namespace is not made to wait for longer, however long its text took.
const LONGEST: Duration = Duration::from_secs(10);
/// How soon a text is asked for again that could not be had.
const AGAIN: Duration = Duration::from_secs(1);

/// The order of readings.
#[derive(Debug, Default)]
pub(super) struct Turns {
    spaces: BTreeMap<Arc<str>, Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    /// Bytes that wait; `None`: nothing does.
    waits: Option<usize>,
    running: bool,
    /// When its last reading ended.
    served: Option<Duration>,
    /// Time it has used beyond what it had saved up, as of `served`.
    used: Duration,
    /// Not before then.
    due: Duration,
}

impl Turns {
    /// A namespace has that many bytes to be read.
    pub(super) fn waits(&mut self, namespace: &Arc<str>, bytes: usize) {
        self.spaces.entry(namespace.clone()).or_default().waits = Some(bytes);
    }

    /// A namespace has nothing to be read.
    pub(super) fn rests(&mut self, namespace: &str) {
        if let Some(turn) = self.spaces.get_mut(namespace) {
            turn.waits = None;
        }
    }

    /// How many namespaces have something to be read.
    pub(super) fn waiting(&self) -> usize {
        self.spaces.values().filter(|turn| turn.waits.is_some() || turn.running).count()
    }

    /// The namespace whose turn it is; [`Turns::ended`] has to follow.
    pub(super) fn next(&mut self, now: Duration) -> Option<Arc<str>> {
        let ready = self.spaces.iter().filter(|(_, turn)| turn.waits.is_some() && !turn.running && turn.due <= now);
        let (name, _) = ready.min_by_key(|(_, turn)| (turn.served, turn.waits))?;
        let name = name.clone();
        self.spaces.get_mut(&name)?.running = true;
        Some(name)
    }

    /// When somebody's turn comes next, where that is a matter of time alone.
    pub(super) fn due(&self) -> Option<Duration> {
        self.spaces.values().filter(|turn| turn.waits.is_some() && !turn.running).map(|turn| turn.due).min()
    }

    /// A reading has ended at `now`, after `spent`; not `had`: its text could not be had.
    pub(super) fn ended(&mut self, namespace: &str, spent: Duration, had: bool, now: Duration) {
        let Some(turn) = self.spaces.get_mut(namespace) else { return };
        let earned = turn.served.map_or(Duration::MAX, |served| now.saturating_sub(served) / SHARE);
        turn.used = turn.used.saturating_sub(earned) + spent;
        turn.running = false;
        turn.served = Some(now);
        let wait = (turn.used.saturating_sub(ALLOWANCE) * SHARE).min(LONGEST);
        turn.due = now + if had { wait } else { wait.max(AGAIN) };
    }

    /// The turn of a namespace came to nothing: it has nothing to be read after all.
    pub(super) fn cancelled(&mut self, namespace: &str) {
        if let Some(turn) = self.spaces.get_mut(namespace) {
            (turn.running, turn.waits) = (false, None);
        }
    }

    /// Nothing is kept of any namespace.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// A namespace is gone.
    pub(super) fn forget(&mut self, namespace: &str) {
        if self.spaces.get(namespace).is_some_and(|turn| !turn.running) {
            self.spaces.remove(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn name(name: &str) -> Arc<str> {
        name.into()
    }

    #[test]
    fn mend_01_a_namespace_that_changes_all_the_time_stands_behind_everybody() {
        let mut turns = Turns::default();
        let (loud, quiet) = (name("loud"), name("quiet"));
        turns.waits(&loud, 1);
        assert_eq!(turns.next(ms(0)), Some(loud.clone()));
        turns.waits(&loud, 1);
        assert_eq!(turns.next(ms(0)), None, "one reading at a time");
        turns.ended("loud", ms(20), true, ms(20));
        turns.waits(&quiet, 900);
        assert_eq!(turns.next(ms(20)), Some(quiet.clone()), "it has been served longest ago, which is never");
        assert_eq!(turns.next(ms(20)), Some(loud));
        turns.ended("quiet", ms(1), true, ms(21));
        turns.rests("quiet");
        assert_eq!(turns.next(ms(21)), None);
    }

    #[test]
    fn mend_01_at_the_start_those_with_least_to_read_come_first() {
        let mut turns = Turns::default();
        for (bytes, namespace) in [(900, "a"), (10, "b"), (500, "c")] {
            turns.waits(&name(namespace), bytes);
        }
        let order: Vec<_> = std::iter::from_fn(|| turns.next(ms(0))).collect();
        assert_eq!(order, [name("b"), name("c"), name("a")]);
    }

    /// Of a minute in which it always has something to be read, a namespace gets a tenth and what it had saved up.
    #[test]
    fn mend_01_a_namespace_gets_a_tenth_of_the_time_however_often_it_changes() {
        let mut turns = Turns::default();
        let (mut now, mut spent) = (ms(0), ms(0));
        turns.waits(&name("loud"), 1);
        while now < ms(60_000) {
            match turns.next(now) {
                Some(_) => {
                    now += ms(30);
                    spent += ms(30);
                    turns.ended("loud", ms(30), true, now);
                }
                None => now = turns.due().unwrap().max(now + ms(1)),
            }
        }
        assert!(spent > ms(5_000) && spent < ms(6_400), "{spent:?}");
        turns.ended("loud", ms(3_600_000), true, now);
        assert_eq!(turns.due(), Some(now + LONGEST), "an hour is not paid back in ten");
    }

    #[test]
    fn what_could_not_be_had_is_asked_for_again_later() {
        let mut turns = Turns::default();
        turns.waits(&name("a"), 1);
        turns.next(ms(0)).unwrap();
        turns.ended("a", ms(0), false, ms(5));
        assert_eq!((turns.next(ms(1_004)), turns.due()), (None, Some(ms(1_005))));
        assert_eq!(turns.next(ms(1_005)), Some(name("a")));
    }
}
