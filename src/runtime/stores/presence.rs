//! When a kind certainly is not served; pure.
//!
//! The kind of a CustomResourceDefinition may be missing at the start, come, go and come back. Whether it is there is
//! asked of its collection itself: 404 is the one answer that covers every cause (no definition, not established yet,
//! another version only), it needs no right on CustomResourceDefinitions, and a definition that exists while its
//! collection does not answer helps nobody. It costs one small request in 5 s per missing kind.
//!
//! In: answers. Out: whether the kind is absent. Promises: an error is no answer; a replica of the API server that lags
//! behind answers 404 as well, so one 404 proves nothing, and where objects are known they have to come over 5 s.

use std::time::Duration;

/// Over how long a kind with known objects has to answer 404 until they count as gone.
const PROOF: Duration = Duration::from_secs(5);

/// What the last answers about a kind were.
#[derive(Debug, Default)]
pub(super) struct Presence {
    /// The first 404 of those in a row, and whether there was another.
    missing: Option<(Duration, bool)>,
    absent: bool,
}

impl Presence {
    /// The collection answered 404 at `now`; `known`: objects of the kind are known. True when it is absent now and was
    /// not before.
    pub(super) fn missing(&mut self, known: bool, now: Duration) -> bool {
        let (since, again) = *self.missing.get_or_insert((now, false));
        self.missing = Some((since, true));
        let certain = again && (!known || now.saturating_sub(since) >= PROOF);
        certain && !std::mem::replace(&mut self.absent, true)
    }

    /// The collection answered.
    pub(super) fn served(&mut self) {
        *self = Self::default();
    }

    /// Neither there nor not: an error, or no answer.
    pub(super) fn unclear(&mut self) {
        self.missing = None;
    }

    /// The kind is absent.
    pub(super) fn is_absent(&self) -> bool {
        self.absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_answer_proves_nothing_and_known_objects_need_time() {
        let mut presence = Presence::default();
        assert!(!presence.missing(false, s(0)) && !presence.is_absent());
        assert!(presence.missing(false, s(0)) && presence.is_absent());
        assert!(!presence.missing(false, s(9)), "told once");
        presence.served();
        assert!(!presence.is_absent());
        assert!(!presence.missing(true, s(20)));
        assert!(!presence.missing(true, s(24)));
        assert!(presence.missing(true, s(25)));
    }

    #[test]
    fn an_error_in_between_starts_anew_and_an_absent_kind_stays_absent() {
        let mut presence = Presence::default();
        for at in [0, 4] {
            assert!(!presence.missing(true, s(at)));
            presence.unclear();
        }
        assert!(!presence.missing(true, s(8)));
        assert!(presence.missing(true, s(13)));
        presence.unclear();
        assert!(presence.is_absent() && !presence.missing(true, s(30)) && !presence.missing(true, s(40)));
    }
}
