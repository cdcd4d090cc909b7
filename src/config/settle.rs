//! Facts about the cluster that count for hashes only once they have been stable; pure.
//!
//! A CSIDriver that is removed and made again by an upgrade of SPIRE, and replicas of an API server that answer with two
//! versions while they are upgraded one by one, would otherwise roll the whole fleet there and back. Admission always
//! decides by what is there now.
//!
//! In: what is there, and a monotonic time. Out: what counts. Assumes that what a process finds at its start is stable:
//! it cannot know how long it has been so.

use std::sync::Arc;
use std::time::Duration;

use super::snapshot::Snapshot;

/// How long something has to be so.
pub const STABLE: Duration = Duration::from_secs(300);

/// One fact.
#[derive(Debug, Clone, Copy)]
struct Settled<T> {
    value: T,
    candidate: Option<(T, Duration)>,
}

impl<T: Copy + PartialEq> Settled<T> {
    fn new(value: T) -> Self {
        Self { value, candidate: None }
    }

    fn observe(&mut self, seen: T, now: Duration) -> T {
        let since = self.candidate.filter(|(known, _)| *known == seen).map_or(now, |(_, since)| since);
        if seen == self.value || now.saturating_sub(since) >= STABLE {
            *self = Self::new(seen);
        } else {
            self.candidate = Some((seen, since));
        }
        self.value
    }

    fn due(&self) -> Option<Duration> {
        self.candidate.map(|(_, since)| since + STABLE)
    }
}

/// The facts that have to settle: the API server's version and SPIRE's CSIDriver.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings {
    server_version: Settled<(u32, u32)>,
    spiffe_driver: Settled<bool>,
}

impl Surroundings {
    /// As the first snapshot has them.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            server_version: Settled::new(snapshot.view.server_version),
            spiffe_driver: Settled::new(snapshot.view.spiffe_driver),
        }
    }

    /// `snapshot` with what counts at `now`: the very same while nothing has changed lately.
    #[must_use]
    pub fn settle(&mut self, snapshot: &Arc<Snapshot>, now: Duration) -> Arc<Snapshot> {
        let view = &snapshot.view;
        let server_version = self.server_version.observe(view.server_version, now);
        let spiffe_driver = self.spiffe_driver.observe(view.spiffe_driver, now);
        if (server_version, spiffe_driver) == (view.server_version, view.spiffe_driver) {
            return Arc::clone(snapshot);
        }
        let mut settled = Snapshot::clone(snapshot);
        settled.view.server_version = server_version;
        settled.view.spiffe_driver = spiffe_driver;
        Arc::new(settled)
    }

    /// When something will count that does not yet, should it stay as it is.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.server_version.due().into_iter().chain(self.spiffe_driver.due()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::gates::Gates;
    use crate::config::schema::Platform;
    use crate::config::view::ClusterView;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn snapshot(minor: u32, spiffe_driver: bool) -> Arc<Snapshot> {
        let view = ClusterView {
            operator_namespace: "own".into(),
            server_version: (1, minor),
            spiffe_driver,
            namespaces: [].into(),
        };
        Arc::new(Snapshot::new(&Platform::built_in(), Gates::default(), view))
    }

    /// What counts after each of those moments.
    fn counts(history: &[(u64, u32, bool)]) -> Vec<(u32, bool)> {
        let mut surroundings = Surroundings::of(&snapshot(history[0].1, history[0].2));
        let settle = |(at, minor, driver): &(u64, u32, bool)| {
            let seen = snapshot(*minor, *driver);
            let settled = surroundings.settle(&seen, s(*at));
            let same = (settled.view.server_version, settled.view.spiffe_driver) == ((1, *minor), *driver);
            assert_eq!(Arc::ptr_eq(&settled, &seen), same, "no second snapshot without need");
            (settled.view.server_version.1, settled.view.spiffe_driver)
        };
        history.iter().map(settle).collect()
    }

    #[test]
    fn a_change_counts_after_five_stable_minutes() {
        assert_eq!(
            counts(&[(0, 36, true), (10, 36, false), (309, 36, false), (310, 36, false)])[1..],
            [(36, true), (36, true), (36, false)]
        );
    }

    #[test]
    fn going_back_and_forth_never_counts_and_facts_settle_each_for_itself() {
        let flapping: Vec<_> = (0..100).map(|at| (at * 60, 36 + u32::from(at % 4 == 3), at >= 2)).collect();
        let counted = counts(&flapping);
        assert!(counted.iter().all(|(minor, _)| *minor == 36), "two replicas of different versions");
        assert_eq!(counted.iter().position(|(_, driver)| *driver), Some(7), "120 s + 300 s");
    }

    #[test]
    fn what_is_awaited_is_known() {
        let mut surroundings = Surroundings::of(&snapshot(36, true));
        assert_eq!(surroundings.due(), None);
        drop(surroundings.settle(&snapshot(36, false), s(10)));
        drop(surroundings.settle(&snapshot(37, false), s(20)));
        assert_eq!(surroundings.due(), Some(s(310)));
        drop(surroundings.settle(&snapshot(37, true), s(30)));
        assert_eq!(surroundings.due(), Some(s(320)));
        drop(surroundings.settle(&snapshot(37, true), s(320)));
        assert_eq!(surroundings.due(), None);
    }
}
