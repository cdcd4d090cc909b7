//! How long to wait after the n-th failure in a row: doubling, capped, with jitter, so that replicas which lost the
//! same API server do not come back in step.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(10);

/// The pause after `failures` failures in a row (1 = the first); `jitter` is in 0..1 and moves it by up to a half.
pub fn pause(failures: u32, jitter: f64) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(LONGEST).mul_f64(0.5 + jitter.clamp(0.0, 1.0))
}

/// A number in 0..1.
pub fn jitter() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 40;
    f64::from(u32::try_from(bits).unwrap_or_default()) / f64::from(1u32 << 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_cap_and_differ_between_replicas() {
        assert_eq!(pause(1, 0.5), FIRST);
        assert_eq!(pause(2, 0.5), FIRST * 2);
        assert_eq!(pause(60, 0.5), LONGEST);
        assert!(pause(u32::MAX, 1.0) <= Duration::from_secs(15), "recovery within 30 s of the API server's return");
        let jitters: Vec<_> = (0..32).map(|_| jitter()).collect();
        assert!(jitters.iter().all(|jitter| (0.0..1.0).contains(jitter)));
        assert!(jitters.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-6));
    }
}
