//! Which refusals are over in a moment, and how long a review is held for them, so that no Warning Event tells of what is over before it is
//! read.
//!
//! In: the reason of a refusal, and the namespace. Out: how long after its arrival the review may be decided once more, and a place to wait in. Promises: a
//! namespace whose accounts never come (a quota on them, no controllers) is held up once in [`RESTS`], not once per Pod; however many reviews of one
//! namespace wait, there is a place for those of others; what is remembered is bounded.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::domain::reason::Reason;

/// How long a Job that nobody has heard of yet is waited for: its watch needs milliseconds.
pub(super) const OWNER_COMES: Duration = Duration::from_millis(500);
/// How long the ServiceAccount of a new workload is waited for: the controllers hear of the workload, write, and the account comes back by its
/// watch. A third of what the API server waits for us by default.
pub(super) const ACCOUNT_COMES: Duration = Duration::from_secs(3);
/// How long nothing is waited for in a namespace in which an account did not come.
const RESTS: Duration = Duration::from_secs(30);
/// Namespaces of which that is remembered. With more of them, some are waited for once more.
const NAMESPACES: usize = 1024;

/// Reviews that wait at once; more are refused at once, and their controllers try again.
const PLACES: usize = 32;

/// The reviews that wait, of each namespace where any does. A Pod may say that it is of a Job that there is none of, as often as whoever makes it likes.
#[derive(Debug, Default)]
pub(super) struct Places {
    hasher: RandomState,
    taken: Mutex<HashMap<u64, usize>>,
}

/// A place of a review that waits; dropping it gives it back.
#[derive(Debug)]
pub(super) struct Place<'p> {
    places: &'p Places,
    namespace: u64,
}

impl Places {
    /// A place for a review of `namespace`, which never has more of them than are left for all others then.
    pub(super) fn take(&self, namespace: &str) -> Option<Place<'_>> {
        let namespace = self.hasher.hash_one(namespace);
        let mut taken = self.taken.lock();
        let left = PLACES - taken.values().sum::<usize>();
        let own = taken.get(&namespace).copied().unwrap_or_default();
        // Twice: the place that it takes is not left for others.
        if own + 2 > left {
            return None;
        }
        taken.insert(namespace, own + 1);
        Some(Place { places: self, namespace })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        let others = taken.remove(&self.namespace).unwrap_or_default().saturating_sub(1);
        if others > 0 {
            taken.insert(self.namespace, others);
        }
    }
}

/// Namespaces in which was waited in vain.
#[derive(Debug, Default)]
pub(super) struct InVain {
    hasher: RandomState,
    since: Mutex<HashMap<u64, Instant>>,
}

impl InVain {
    /// How long after its arrival a review of `namespace` is held for what `reason` says; `None` for a refusal that stands.
    pub(super) fn patience(&self, reason: Reason, namespace: &str) -> Option<Duration> {
        match reason {
            Reason::OwnerPending => Some(OWNER_COMES),
            Reason::ServiceAccountPending => {
                let since = self.since.lock().get(&self.hasher.hash_one(namespace)).copied();
                since.is_none_or(|since| since.elapsed() >= RESTS).then_some(ACCOUNT_COMES)
            }
            _ => None,
        }
    }

    /// What `reason` says was waited for in `namespace`, and did not come.
    pub(super) fn note(&self, reason: Reason, namespace: &str) {
        if reason != Reason::ServiceAccountPending {
            return;
        }
        let mut since = self.since.lock();
        if since.len() >= NAMESPACES {
            since.clear();
        }
        since.insert(self.hasher.hash_one(namespace), Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that a namespace gets.
    fn all<'p>(places: &'p Places, namespace: &str) -> Vec<Place<'p>> {
        std::iter::from_fn(|| places.take(namespace)).collect()
    }

    #[test]
    fn a_namespace_has_no_more_places_than_are_left_for_others() {
        let places = Places::default();
        let (loud, quiet) = (all(&places, "loud"), all(&places, "quiet"));
        assert_eq!((loud.len(), quiet.len()), (16, 8));
        assert_eq!((all(&places, "loud").len(), all(&places, "late").len()), (0, 4), "half of what is left");
        drop(loud);
        assert_eq!(all(&places, "quiet").len(), 8, "as many as the first had");
        drop(quiet);
        assert!(places.taken.lock().is_empty(), "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_03_a_namespace_whose_accounts_do_not_come_is_held_up_once_in_a_while() {
        let vain = InVain::default();
        let patience = |namespace: &str| vain.patience(Reason::ServiceAccountPending, namespace);
        assert_eq!(patience("team1"), Some(ACCOUNT_COMES));
        vain.note(Reason::ServiceAccountPending, "team1");
        vain.note(Reason::OwnerPending, "team2");
        assert_eq!((patience("team1"), patience("team2")), (None, Some(ACCOUNT_COMES)));
        assert_eq!(vain.patience(Reason::OwnerPending, "team1"), Some(OWNER_COMES));
        assert_eq!(vain.patience(Reason::ServiceAccountConflict, "team3"), None);
        tokio::time::advance(RESTS).await;
        assert_eq!(patience("team1"), Some(ACCOUNT_COMES));
        for number in 0..2 * NAMESPACES {
            vain.note(Reason::ServiceAccountPending, &format!("team{number}"));
        }
        assert!(vain.since.lock().len() <= NAMESPACES);
    }
}
