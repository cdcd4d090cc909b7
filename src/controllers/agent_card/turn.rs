//! When an agent is asked, and which of its Pods; pure.
//!
//! In: the card's uid and period, the time. Out: a number that grows by one per period, and when that period began. Promise: derived from the uid
//! and the time alone: cards of one period are spread over it, each has a period of its own within a tenth of the wanted one, and no two plans of the
//! same moment disagree.

use std::time::Duration;

/// A period of one card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Which one.
    pub(super) number: u64,
    /// When it began.
    pub(super) since: Duration,
    /// When the next one begins.
    pub(super) next: Duration,
}

impl Turn {
    /// The one at `now`.
    pub(super) fn at(now: Duration, uid: &str, period: Duration) -> Self {
        let spread = spread(uid);
        let own = nanoseconds(period.mul_f64(0.9 + 0.2 * spread.0)).max(1);
        let begun = own - (as_share(own, spread.1)).min(own - 1);
        // The first turn is the one that runs when the clock begins.
        let passed = nanoseconds(now).saturating_add(begun);
        let number = passed / own;
        let since = (number * own).saturating_sub(begun);
        let next = (number + 1).saturating_mul(own).saturating_sub(begun);
        Self { number, since: Duration::from_nanos(since), next: Duration::from_nanos(next) }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn as_share(of: u64, share: f64) -> u64 {
    nanoseconds(Duration::from_nanos(of).mul_f64(share))
}

/// Two numbers in 0..1 that belong to the uid.
fn spread(uid: &str) -> (f64, f64) {
    // FNV-1a, and its bits mixed as by SplitMix64: neighbouring uids lie far apart.
    let mut hash = uid
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut number = || {
        hash = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bits = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    };
    (number(), number())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(30);

    #[test]
    fn turns_follow_one_another_within_a_tenth_of_the_period() {
        for card in 0..200 {
            let uid = format!("uid-{card}");
            let (mut now, mut last) = (Duration::ZERO, None);
            for _ in 0..20 {
                let turn = Turn::at(now, &uid, PERIOD);
                assert!(turn.since <= now && now < turn.next, "{turn:?} at {now:?}");
                if let Some(last) = last {
                    assert_eq!(turn.number, last + 1);
                    let length = turn.next - turn.since;
                    assert!(length >= PERIOD.mul_f64(0.9) && length <= PERIOD.mul_f64(1.1), "{length:?}");
                }
                (now, last) = (turn.next, Some(turn.number));
            }
        }
    }

    #[test]
    fn cards_are_spread_over_the_period() {
        let mut seconds = [0; 30];
        for card in 0..3_000 {
            let first = Turn::at(Duration::ZERO, &format!("{card}-uid"), PERIOD).next;
            seconds[usize::try_from(first.as_secs()).unwrap().min(29)] += 1;
        }
        assert!(seconds.iter().all(|count| (50..200).contains(count)), "{seconds:?}");
    }
}
