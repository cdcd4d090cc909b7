//! The one way of watching: how lists, watches and versions are read, by whoever follows something.

use std::time::Duration;

/// How long things take that a watch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How long the server lets one watch last; whole seconds.
    pub period: Duration,
    /// For how long a kind has to answer 404 until its objects count as gone.
    pub absence: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { period: Duration::from_secs(25), absence: Duration::from_secs(30) }
    }
}

impl Pace {
    /// Longest silence on a watch, and longest wait for a page.
    #[must_use]
    pub fn silence(self) -> Duration {
        self.period + Duration::from_secs(5)
    }

    /// How often a kind that is not served is asked for, on average.
    #[must_use]
    pub fn asking(self) -> Duration {
        self.absence / 6
    }
}
