//! When a kind certainly is not served; pure.
//!
//! The kind of a CustomResourceDefinition may be missing at the start, come, go and come back. Whether it is there is
//! asked of its collection itself: 404 is the one answer that covers every cause (no definition, not established yet,
//! another version only), it needs no right on CustomResourceDefinitions, and a definition that exists while its
//! collection does not answer helps nobody. It costs one small request per missing kind in 5 s, and in 15 s once it is certain.
//!
//! In: answers. Out: whether anybody should wait for the kind, and whether it is certainly absent. Promises: an error is
//! no answer; a replica of the API server that lags behind answers 404 as well, so nothing is concluded before 404 was
//! the only answer for half a minute (`serve --absence-proof`): enrolments would be taken back by mistake.

use std::time::Duration;

/// What the answers of a kind come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One 404 proves nothing.
    Unclear,
    /// Nobody should wait for the kind any longer; nothing may be concluded yet.
    Missing,
    /// It is not there, and neither are its objects.
    Absent,
}

/// What the last answers about a kind were.
#[derive(Debug)]
pub(super) struct Presence {
    /// For how long a kind has to answer 404 until its objects count as gone.
    proof: Duration,
    /// The first 404 of those in a row.
    since: Option<Duration>,
    absent: bool,
}

impl Presence {
    /// Of a kind that is gone after `proof` of nothing but 404.
    pub(super) fn new(proof: Duration) -> Self {
        Self { proof, since: None, absent: false }
    }

    /// The collection answered 404 at `now`.
    pub(super) fn missing(&mut self, now: Duration) -> Verdict {
        let since = *self.since.get_or_insert(now);
        self.absent |= now.saturating_sub(since) >= self.proof;
        match () {
            () if self.absent => Verdict::Absent,
            () if now > since => Verdict::Missing,
            () => Verdict::Unclear,
        }
    }

    /// The collection answered.
    pub(super) fn served(&mut self) {
        *self = Self::new(self.proof);
    }

    /// Neither there nor not: an error, or no answer.
    pub(super) fn unclear(&mut self) {
        self.since = None;
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
    fn nobody_waits_for_long_and_nothing_is_concluded_soon() {
        let mut presence = Presence::new(s(30));
        let told: Vec<_> = [0, 1, 29, 30, 31].map(|at| presence.missing(s(at))).to_vec();
        use Verdict::{Absent, Missing, Unclear};
        assert_eq!(told, [Unclear, Missing, Missing, Absent, Absent]);
        presence.served();
        assert!(!presence.is_absent());
        assert_eq!((presence.missing(s(50)), presence.missing(s(79))), (Unclear, Missing));
    }

    #[test]
    fn an_error_in_between_starts_anew_and_an_absent_kind_stays_absent() {
        let mut presence = Presence::new(s(30));
        for at in [0, 20] {
            presence.missing(s(at));
            presence.unclear();
        }
        assert_eq!((presence.missing(s(40)), presence.missing(s(69))), (Verdict::Unclear, Verdict::Missing));
        assert_eq!(presence.missing(s(70)), Verdict::Absent);
        presence.unclear();
        assert!(presence.is_absent());
        assert_eq!(presence.missing(s(71)), Verdict::Absent);
    }
}
