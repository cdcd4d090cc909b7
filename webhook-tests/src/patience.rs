//! How long tests wait for what they are owed: two minutes, and longer on a machine that has shown itself to be slow.
//!
//! In: how long the control planes of this process took to start. Out: [`patience`], which is [`timeout`] for commands; [`delay`], by which an API server
//! may come late; and [`lease`], for which a process keeps what it has to renew. Promises: the first is two minutes where a control plane starts within
//! ten seconds, never shorter, and bounded, so that what hangs ends; no verdict depends on how fast a machine is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The patience of a machine that is not slow.
const LEAST: Duration = Duration::from_secs(120);
/// The longest.
const MOST: Duration = Duration::from_secs(900);
/// What a test waits for takes so many starts of a control plane at most.
const STARTS: u32 = 12;
/// An API server hears of what it has stored within such a part of the time that a start takes.
const PART: u32 = 10;
/// The shortest and the longest time that is allowed for that; the longest is what the product allows everywhere.
const LATE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// A Lease lasts for so many delays.
const LASTS: u32 = 8;

/// The slowest start so far, in milliseconds.
static SLOWEST: AtomicU64 = AtomicU64::new(0);

/// How long to wait for a state that has to come, counted from now.
#[must_use]
pub fn patience() -> Duration {
    of(Duration::from_millis(SLOWEST.load(Ordering::Relaxed)))
}

/// By how much an API server may act later on what it has stored than others hear of it: its caches, too, get as little of the machine as everything.
#[must_use]
pub fn delay() -> Duration {
    late(Duration::from_millis(SLOWEST.load(Ordering::Relaxed)))
}

/// How long a Lease lasts in tests, in whole seconds: four, and longer where its holder may not get to renewing it for that long. What can be lost only
/// by it runs out within a fraction of [`patience`].
#[must_use]
pub fn lease() -> Duration {
    lasting(delay())
}

/// [`patience`] as commands take it, ours and kubectl: what they wait for has to come, and how soon is nobody's verdict.
#[must_use]
pub fn timeout() -> String {
    format!("--timeout={}s", patience().as_secs())
}

/// A control plane took that long to start.
pub fn started(took: Duration) {
    SLOWEST.fetch_max(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn of(slowest: Duration) -> Duration {
    slowest.saturating_mul(STARTS).clamp(LEAST, MOST)
}

fn late(slowest: Duration) -> Duration {
    (slowest / PART).clamp(LATE.0, LATE.1)
}

fn lasting(delay: Duration) -> Duration {
    Duration::from_secs_f64((delay * LASTS).as_secs_f64().ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_what_was_measured_within_bounds() {
        for (start, wanted) in [(0, 120), (10, 120), (11, 132), (40, 480), (75, 900), (100_000, 900)] {
            assert_eq!(of(Duration::from_secs(start)), Duration::from_secs(wanted), "{start}");
        }
        for (start, wanted) in [(0, 500), (5, 500), (40, 4_000), (1_000, 10_000)] {
            assert_eq!(late(Duration::from_secs(start)), Duration::from_millis(wanted), "{start}");
        }
        for (delay, wanted) in [(500, 4), (501, 5), (1_000, 8), (10_000, 80)] {
            assert_eq!(lasting(Duration::from_millis(delay)), Duration::from_secs(wanted), "{delay}");
        }
        started(Duration::from_secs(1));
        assert!(patience() >= LEAST);
        assert!(lease() >= Duration::from_secs(4));
    }
}
