//! What the gate's controller remembers: whether the webhook answers, and whose Pods come back behind the gate although it does; pure.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::controller::{Controller, Own};
use crate::controllers::scaffold::plan::{self, Op};
use crate::store::Key;

/// So often may the Pods of one owner come back behind the gate before they are left alone ...
const MOST: u32 = 3;
/// ... for so long.
const REST: Duration = Duration::from_secs(3_600);
/// How long nothing is done in a namespace in which something failed, doubling to [`REST`] while it fails again: all of them are served by one
/// plan, which ends with the first failure.
const FAILED: Duration = Duration::from_secs(30);

/// The controller of Pods behind the scheduling gate.
#[derive(Debug, Clone, Copy)]
pub struct Gate;

/// What its plans are made from.
pub(super) type Context<'a> = plan::Context<'a, Gate>;
/// What it plans.
pub(super) type Plan = plan::Plan<Note>;

/// Whose Pods a plan replaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Owners by their uids, each with the time of creation of the youngest of its Pods that wait, RFC 3339.
    pub replaced: BTreeMap<Box<str>, Box<str>>,
    /// When; zero of a plan that does nothing.
    pub at: Duration,
}

/// What came of it for one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The time of creation of the youngest of its Pods that waited then.
    youngest: Box<str>,
    /// How often younger ones waited again.
    times: u32,
    /// When that was last.
    at: Duration,
}

/// What it remembers.
#[derive(Debug, Default)]
pub struct Memory {
    /// When a probe last came back without our gate.
    pub proved: Option<Duration>,
    /// Probes that were answered; the next one goes to another namespace.
    pub probes: usize,
    /// Owners whose Pods were replaced while the webhook answered, by their uids.
    owners: HashMap<Box<str>, Owner>,
    /// Namespaces in which something could not be done: how often in a row, and when that was planned last.
    failed: HashMap<Box<str>, (u32, Duration)>,
    /// When the last plan was made that does something.
    planned: Duration,
}

impl Memory {
    /// For how long the Pods of an owner are left alone yet; `None` where they are replaced.
    #[must_use]
    pub fn rests(&self, owner: &str, now: Duration) -> Option<Duration> {
        let known = self.owners.get(owner).filter(|known| known.times >= MOST)?;
        REST.checked_sub(now.saturating_sub(known.at)).filter(|left| !left.is_zero())
    }

    /// For how long nothing is done in a namespace yet; `None` where something is.
    #[must_use]
    pub fn leaves(&self, namespace: &str, now: Duration) -> Option<Duration> {
        let (times, at) = self.failed.get(namespace)?;
        pause(*times).checked_sub(now.saturating_sub(*at)).filter(|left| !left.is_zero())
    }

    /// The Pods of these are replaced.
    fn replaces(&mut self, note: &Note) {
        let now = note.at;
        self.owners.retain(|_, known| now.saturating_sub(known.at) < REST);
        for (owner, youngest) in &note.replaced {
            let first = || Owner { youngest: youngest.clone(), times: 0, at: now };
            let known = self.owners.entry(owner.clone()).or_insert_with(first);
            // Of the same second nobody knows which was made first.
            if *youngest > known.youngest {
                *known = Owner { youngest: youngest.clone(), times: known.times + 1, at: now };
            }
        }
    }
}

/// The pause after so many failures in a row.
fn pause(times: u32) -> Duration {
    FAILED.saturating_mul(1 << times.saturating_sub(1).min(20)).min(REST)
}

impl Controller for Gate {
    type Note = Note;
    type Memory = Memory;

    fn noted(memory: &mut Memory, _: &Key, _: &Note, now: &Note) {
        memory.planned = now.at;
        // What has not failed for as long as it rested is none in a row any more.
        memory.failed.retain(|_, (times, at)| now.at.saturating_sub(*at) < 2 * pause(*times));
        if !now.replaced.is_empty() {
            memory.replaces(now);
        }
    }

    fn answered(own: &mut Own<Self>, _: &Key, learned: &Learned, now: Duration) {
        if let Learned::Back(back) = learned {
            own.memory.proved = back.then_some(now);
            own.memory.probes = own.memory.probes.wrapping_add(1);
            if !back {
                // Those that come back gated now are gated because nobody answers.
                own.memory.owners.clear();
            }
        }
    }

    /// An Event that cannot be written keeps nobody's Pods behind the gate, and says nothing of what else may be done there.
    fn failed(own: &mut Own<Self>, key: &Key, op: &Op) {
        let (_, _, namespace) = op.asks();
        if !matches!(op, Op::Report(_)) && *namespace != *key.namespace {
            let planned = own.memory.planned;
            let (times, at) = own.memory.failed.entry(namespace.into()).or_default();
            (*times, *at) = (times.saturating_add(1), planned);
        }
    }

    /// Another leader does not begin with the namespace in which a probe was refused last.
    fn next_term(memory: Memory) -> Memory {
        Memory { probes: memory.probes, ..Memory::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::plan::Report;
    use crate::domain::reason::Reason;
    use crate::store::Kind;

    #[test]
    fn a_probe_that_came_back_proves_that_the_webhook_answers_until_the_term_ends() {
        let (mut own, key) = (Own::<Gate>::default(), Key::new("own", ""));
        for (back, proved) in
            [(true, Some(Duration::from_secs(7))), (false, None), (true, Some(Duration::from_secs(7)))]
        {
            Gate::answered(&mut own, &key, &Learned::Back(back), Duration::from_secs(7));
            assert_eq!(own.memory.proved, proved);
        }
        Gate::answered(&mut own, &key, &Learned::Evicted, Duration::from_secs(9));
        assert_eq!((own.memory.proved, own.memory.probes), (Some(Duration::from_secs(7)), 3));
        own.next_term();
        assert_eq!((own.memory.proved, own.memory.probes), (None, 3), "the next probe goes elsewhere all the same");
    }

    #[test]
    fn an_owner_whose_pods_come_back_three_times_rests_for_an_hour() {
        let (mut own, key, seconds) = (Own::<Gate>::default(), Key::new("own", ""), Duration::from_secs);
        let mut replace = |youngest: &str, at: u64| {
            let replaced = BTreeMap::from([("o".into(), youngest.into())]);
            own.note(&key, Note { replaced, at: seconds(at) });
            own.memory.rests("o", seconds(at))
        };
        for (youngest, at, rests) in [
            ("2026-01-01T00:00:00Z", 100, None),
            ("2026-01-01T00:00:00Z", 102, None),
            ("2026-01-01T00:00:05Z", 104, None),
            ("2026-01-01T00:00:07Z", 106, None),
            ("2026-01-01T00:00:09Z", 108, Some(REST)),
        ] {
            assert_eq!(replace(youngest, at), rests, "{at}");
        }
        assert_eq!(own.memory.rests("o", seconds(3_707)), Some(seconds(1)));
        assert_eq!((own.memory.rests("o", seconds(3_708)), own.memory.rests("other", seconds(108))), (None, None));
        // While nobody answers every Pod comes back gated, whoever made it.
        Gate::answered(&mut own, &key, &Learned::Back(false), seconds(110));
        assert_eq!(own.memory.rests("o", seconds(110)), None);
    }

    #[test]
    fn a_namespace_in_which_something_fails_rests_for_longer_each_time_and_no_event_counts() {
        let (mut own, key, seconds) = (Own::<Gate>::default(), Key::new("own", ""), Duration::from_secs);
        let delete = Op::Delete { kind: Kind::Pod, key: Key::new("team", "p"), uid: "u".into() };
        for (at, fails, rests) in [
            (100, false, None),
            (100, true, Some(30)),
            (130, true, Some(60)),
            (190, true, Some(120)),
            (310, false, None),
            (429, true, Some(240)),
            (429 + 480, true, Some(30)),
        ] {
            own.note(&key, Note { at: seconds(at), ..Note::default() });
            if fails {
                Gate::failed(&mut own, &key, &delete);
            }
            assert_eq!(own.memory.leaves("team", seconds(at)), rests.map(seconds), "{at}");
            assert_eq!(own.memory.leaves("other", seconds(at)), None);
        }
        let report = Report {
            kind: Kind::Pod,
            about: Key::new("other", "p"),
            uid: "u".into(),
            reason: Reason::PodsGated,
            message: String::new(),
            since: String::new(),
        };
        Gate::failed(&mut own, &key, &Op::Report(report));
        assert_eq!(own.memory.leaves("other", seconds(429 + 480)), None);
    }
}
