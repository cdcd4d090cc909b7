//! When it is to be said that nobody leads; pure.
//!
//! In: until when somebody leads, as far as this process can see, and the time. Out: when to say something. Promises: an
//! ordinary hand-over, a killed leader included, is not told of; what lasts is told once a minute.

use std::time::Duration;

use super::plan::{Moment, Times};

const EVERY: Duration = Duration::from_secs(60);

/// What has been said.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Silence {
    told: Option<Moment>,
    complained: Option<Moment>,
}

impl Silence {
    /// When to say next that nobody leads, if nothing changes until then.
    pub(super) fn due(&self, led: Option<Moment>, times: Times, now: Moment) -> Moment {
        // Whoever follows has as long as the Lease lasts to come forward.
        let over = led.unwrap_or_default() + times.duration * 2;
        let again = self.told.map_or(Duration::ZERO, |told| told + EVERY);
        over.max(again).max(now)
    }

    /// It was said.
    pub(super) fn told(&mut self, now: Moment) {
        self.told = Some(now);
    }

    /// Whether a failure may be told of now; then it counts as told.
    pub(super) fn may_complain(&mut self, now: Moment) -> bool {
        let may = self.complained.is_none_or(|told| now >= told + EVERY);
        if may {
            self.complained = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn mend_03_that_nobody_leads_is_told_after_two_leases_and_then_once_a_minute() {
        let (mut silence, times) = (Silence::default(), Times::default());
        assert_eq!(silence.due(None, times, s(1)), s(16), "nobody since the start");
        assert_eq!(silence.due(Some(s(100)), times, s(50)), s(116));
        silence.told(s(116));
        assert_eq!(silence.due(Some(s(100)), times, s(116)), s(176));
        assert_eq!(silence.due(Some(s(300)), times, s(200)), s(316), "led again in between");
        assert_eq!(silence.due(Some(s(100)), times, s(900)), s(900), "never in the past");
    }

    #[test]
    fn mend_03_a_failure_twice_a_second_is_told_once_a_minute() {
        let mut silence = Silence::default();
        let told = (0..240).filter(|half| silence.may_complain(Duration::from_millis(half * 500))).count();
        assert_eq!(told, 2);
    }
}
