//! When to speak of an approaching expiry.
//!
//! In: validity of what is in use and the time. Out: a threshold (30, 7, 1 days, or expired), once per certificate
//! and threshold. A threshold that lies in the last third of the certificate's life is the point: until then renewal
//! is expected to have happened, so only thresholds shorter than a third of the life are announced. Pure.

use super::root::{Fingerprint, Millis, Root};

const DAY: Millis = 86_400_000;

/// How near the end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Threshold {
    /// Less than 30 days.
    Month,
    /// Less than 7 days.
    Week,
    /// Less than one day.
    Day,
    /// It has ended.
    Expired,
}

impl Threshold {
    /// In words, after "expires" or alone.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Threshold::Month => "expires in less than 30 days",
            Threshold::Week => "expires in less than 7 days",
            Threshold::Day => "expires in less than a day",
            Threshold::Expired => "has expired",
        }
    }
}

/// The threshold that a certificate has passed at `now`; `issued` is the moment its life is counted from.
#[must_use]
pub(super) fn passed(issued: Millis, not_after: Millis, now: Millis) -> Option<Threshold> {
    if now >= not_after {
        return Some(Threshold::Expired);
    }
    let third = (not_after - issued) / 3;
    [(1, Threshold::Day), (7, Threshold::Week), (30, Threshold::Month)]
        .into_iter()
        .find(|(days, _)| days * DAY < third && not_after - now < days * DAY)
        .map(|(_, threshold)| threshold)
}

/// Remembers what was announced for one place.
#[derive(Debug, Default)]
pub(super) struct Announcements(Option<(Fingerprint, Threshold)>);

impl Announcements {
    /// The threshold to announce now; nothing when it was announced before for this certificate.
    pub(super) fn next(&mut self, certificate: &Root, now: Millis) -> Option<Threshold> {
        let threshold = passed(certificate.not_before, certificate.not_after, now)?;
        let new = self.0.is_none_or(|(fingerprint, said)| fingerprint != certificate.fingerprint || threshold > said);
        if new {
            self.0 = Some((certificate.fingerprint, threshold));
        }
        new.then_some(threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_by_life_and_time_left() {
        let rows = [
            (365, 31, None),
            (365, 29, Some(Threshold::Month)),
            (365, 6, Some(Threshold::Week)),
            (365, 0, Some(Threshold::Day)),
            (90, 29, None),
            (90, 6, Some(Threshold::Week)),
            (7, 6, None),
            (7, 2, None),
            (7, 0, Some(Threshold::Day)),
            (1, 0, None),
            (365, -1, Some(Threshold::Expired)),
            (1, -1, Some(Threshold::Expired)),
        ];
        for (life, left, expected) in rows {
            let now = (life - left) * DAY - DAY / 2;
            assert_eq!(passed(0, life * DAY, now), expected, "a life of {life} days, {left} and a half left");
        }
    }

    #[test]
    fn each_threshold_is_announced_once_per_certificate() {
        let mut announcements = Announcements::default();
        let old = Root { fingerprint: Fingerprint([1; 32]), not_before: 0, not_after: 365 * DAY };
        assert_eq!(announcements.next(&old, 300 * DAY), None);
        assert_eq!(announcements.next(&old, 340 * DAY), Some(Threshold::Month));
        assert_eq!(announcements.next(&old, 341 * DAY), None);
        assert_eq!(announcements.next(&old, 360 * DAY), Some(Threshold::Week));
        assert_eq!(announcements.next(&old, 340 * DAY), None, "a clock set back repeats nothing");
        let new = Root { fingerprint: Fingerprint([2; 32]), ..old };
        assert_eq!(announcements.next(&new, 360 * DAY), Some(Threshold::Week));
    }
}
