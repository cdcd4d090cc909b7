//! How long tests wait for what they are owed: two minutes, and longer on a machine that has shown itself to be slow.
//!
//! In: how long the control planes of this process took to start. Out: [`patience`]. Promises: it is two minutes where a control plane starts within
//! ten seconds, never shorter, and bounded, so that what hangs ends; no verdict depends on how fast a machine is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The patience of a machine that is not slow.
const LEAST: Duration = Duration::from_secs(120);
/// The longest.
const MOST: Duration = Duration::from_secs(900);
/// What a test waits for takes so many starts of a control plane at most.
const STARTS: u32 = 12;

/// The slowest start so far, in milliseconds.
static SLOWEST: AtomicU64 = AtomicU64::new(0);

/// How long to wait for a state that has to come, counted from now.
#[must_use]
pub fn patience() -> Duration {
    of(Duration::from_millis(SLOWEST.load(Ordering::Relaxed)))
}

/// A control plane took that long to start.
pub fn started(took: Duration) {
    SLOWEST.fetch_max(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn of(slowest: Duration) -> Duration {
    slowest.saturating_mul(STARTS).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_follows_what_was_measured_within_bounds() {
        for (start, wanted) in [(0, 120), (10, 120), (11, 132), (40, 480), (75, 900), (100_000, 900)] {
            assert_eq!(of(Duration::from_secs(start)), Duration::from_secs(wanted), "{start}");
        }
        started(Duration::from_secs(1));
        assert!(patience() >= LEAST);
    }
}
