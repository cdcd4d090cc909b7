//! Which refusals are over in a moment, and how long a review is held for them, so that no Warning Event tells of what is over before it is
//! read.
//!
//! In: the reason of a refusal, and the namespace. Out: how long after its arrival the review may be decided once more. Promises: a namespace
//! whose accounts never come (a quota on them, no controllers) is held up once in [`RESTS`], not once per Pod; what is remembered is bounded.

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
