//! What the signer that stays beside an agent does next; pure.
//!
//! In: the certificates of the SVID in force, the card as it was read last, how signing and publishing ended, the time. Out: one [`Step`] at a
//! time. Promises: what this SVID has signed over this card is not signed again, and what is published is not published again; what failed is
//! tried again after a pause that doubles up to [`LONGEST`], and at once where SVID or card are others by then; the agent is let go when a signature stands, or where
//! there is no card to sign and that is no failure; once let go, it is held no more.

use std::sync::Arc;
use std::time::Duration;

/// The pause after the first failure.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause between two attempts.
pub(super) const LONGEST: Duration = Duration::from_secs(60);
/// For so long what the operator makes ahead of the Pod may be on its way before the agent is let go unpublished.
const MADE_WITHIN: Duration = Duration::from_secs(10);

/// The pause after so many failures in a row.
pub(super) fn pause(failures: u32, longest: Duration) -> Duration {
    FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(longest)
}

/// What is signed with what: the certificates of the SVID, and the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) chain: Arc<[u8]>,
    pub(super) card: Arc<[u8]>,
}

/// What the last look at the card found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It could not be read.
    Unread,
    /// There is none.
    Absent,
    /// These bytes.
    Card(Arc<[u8]>),
}

/// What is done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// That is signed.
    Sign(Work),
    /// What was signed for that is published.
    Publish(Work),
    /// The agent may start.
    Release,
    /// No signature stands, and the time for the first one is over.
    GiveUp,
    /// Nothing until something is heard, or until then.
    Wait(Option<Duration>),
}

/// Attempts at one work.
#[derive(Debug, Default)]
struct Tries {
    at: Option<Work>,
    /// When the first of them was made.
    since: Duration,
    failures: u32,
    next: Duration,
}

impl Tries {
    /// When the next one is made.
    fn due(&self, work: &Work) -> Duration {
        if self.at.as_ref() == Some(work) { self.next } else { Duration::ZERO }
    }

    /// One of them failed.
    fn failed(&mut self, work: &Work, begun: Duration, now: Duration) {
        if self.at.as_ref() != Some(work) {
            *self = Self { at: Some(work.clone()), since: begun, ..Self::default() };
        }
        self.failures = self.failures.saturating_add(1);
        self.next = now.saturating_add(pause(self.failures, LONGEST));
    }
}

/// What is known of how far the signer is. Times are those since it began.
#[derive(Debug)]
pub(super) struct Machine {
    /// How long the first signature may take.
    patience: Duration,
    /// That there is no card to sign is no failure.
    if_present: bool,
    /// It is known where a signed card is published.
    publishes: bool,
    is_released: bool,
    card: Seen,
    /// The certificates in force, and the last second of the first.
    svid: Option<(Arc<[u8]>, i64)>,
    signed: Option<Work>,
    published: Option<Work>,
    signing: Tries,
    publishing: Tries,
}

impl Machine {
    /// Nothing is known yet. `is_released`: an earlier process in this Pod has let the agent go.
    pub(super) fn new(patience: Duration, if_present: bool, publishes: bool, is_released: bool) -> Self {
        Self {
            patience,
            if_present,
            publishes,
            is_released,
            card: Seen::Unread,
            svid: None,
            signed: None,
            published: None,
            signing: Tries::default(),
            publishing: Tries::default(),
        }
    }

    /// The SVID in force has these certificates, the first of which ends at that second.
    pub(super) fn renewed(&mut self, chain: Arc<[u8]>, until: i64) {
        self.svid = Some((chain, until));
    }

    /// The card was looked at.
    pub(super) fn looked(&mut self, seen: Seen) {
        self.card = seen;
    }

    /// An attempt to sign that has ended.
    pub(super) fn signed(&mut self, work: Work, is_done: bool, (begun, now): (Duration, Duration)) {
        if is_done {
            self.signed = Some(work);
        } else {
            self.signing.failed(&work, begun, now);
        }
    }

    /// An attempt to publish that has ended.
    pub(super) fn published(&mut self, work: Work, is_done: bool, (begun, now): (Duration, Duration)) {
        if is_done {
            self.published = Some(work);
        } else {
            self.publishing.failed(&work, begun, now);
        }
    }

    /// The agent has been let go.
    pub(super) fn released(&mut self) {
        self.is_released = true;
    }

    /// What is done next, `now`, which is second `clock` since 1970.
    pub(super) fn step(&self, now: Duration, clock: i64) -> Step {
        if !self.is_released && self.may_start(now) {
            return Step::Release;
        }
        let mut wait: Option<Duration> = None;
        let mut until = |then: Duration| wait = Some(wait.map_or(then, |wait| wait.min(then)));
        if let Some(work) = self.work(clock).filter(|work| self.signed.as_ref() != Some(work)) {
            match self.signing.due(&work) {
                due if due <= now => return Step::Sign(work),
                due => until(due),
            }
        }
        if let Some(work) = self.unpublished() {
            match self.publishing.due(work) {
                due if due <= now => return Step::Publish(work.clone()),
                due => until(due),
            }
        }
        if !self.is_released {
            if now >= self.patience && self.signed.is_none() {
                return Step::GiveUp;
            }
            until(if self.signed.is_none() { self.patience } else { self.publishing.since + MADE_WITHIN });
        }
        Step::Wait(wait)
    }

    /// What is to be signed, whether it was or not: an SVID that has ended signs nothing.
    fn work(&self, clock: i64) -> Option<Work> {
        let (chain, _) = self.svid.as_ref().filter(|(_, until)| *until > clock)?;
        let Seen::Card(card) = &self.card else { return None };
        Some(Work { chain: chain.clone(), card: card.clone() })
    }

    /// What was signed and is not published.
    fn unpublished(&self) -> Option<&Work> {
        self.signed.as_ref().filter(|work| self.publishes && self.published.as_ref() != Some(work))
    }

    fn may_start(&self, now: Duration) -> bool {
        if self.signed.is_none() {
            return self.if_present && self.card == Seen::Absent;
        }
        let Some(work) = self.unpublished() else { return true };
        let tries = &self.publishing;
        tries.at.as_ref() == Some(work) && now >= tries.since + MADE_WITHIN
    }
}

#[cfg(test)]
mod tests;
