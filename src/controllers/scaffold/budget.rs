//! How many workloads we may roll at once, whatever for: a change of configuration, or a card that is to be signed anew; pure.
//!
//! In: the size of the fleet, how many roll and how many failed. Out: whether one more may begin.

/// Workloads that may roll at once, whatever the size of the fleet.
pub(in crate::controllers) const LEAST: usize = 5;
/// One in so many may roll at once.
const SHARE: usize = 10;
/// So many failed rollouts end the wave.
const FAILURES: usize = 2;

/// Whether one more may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::controllers) enum Turn {
    /// Now.
    Now,
    /// When one of those that roll is done.
    Later,
    /// Not before somebody has looked at those that failed.
    Halted {
        /// How many failed.
        failed: usize,
    },
}

/// How many may roll at once in a fleet of that size.
pub(in crate::controllers) fn budget(enrolled: usize) -> usize {
    LEAST.max(enrolled / SHARE)
}

/// Decides about one more, while so many roll and so many failed.
pub(in crate::controllers) fn turn(budget: usize, rolling: usize, failed: usize) -> Turn {
    match () {
        () if failed >= FAILURES => Turn::Halted { failed },
        () if rolling >= budget => Turn::Later,
        () => Turn::Now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_or_a_tenth_whichever_is_more() {
        for (enrolled, may) in [(0, 5), (1, 5), (50, 5), (59, 5), (60, 6), (1_000, 100)] {
            assert_eq!(budget(enrolled), may, "{enrolled}");
            assert_eq!(turn(may, may - 1, 1), Turn::Now, "{enrolled}");
            assert_eq!(turn(may, may, 1), Turn::Later, "{enrolled}");
        }
    }

    #[test]
    fn two_failures_end_the_wave() {
        assert_eq!(turn(100, 0, 2), Turn::Halted { failed: 2 });
    }
}
