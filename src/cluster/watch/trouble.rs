//! What is said of a watch that fails, and how long it waits: a warning once a minute, and one line when it works again.

use std::time::Duration;

use tokio::time::Instant;

use super::{WatchError, backoff};

/// At most one log line in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The failures in a row of one watch.
#[derive(Debug)]
pub struct Trouble {
    what: &'static str,
    name: String,
    failures: u32,
    logged: Option<Instant>,
    spoken: bool,
}

impl Trouble {
    /// None so far. `what` and `name` say in the log what is watched.
    #[must_use]
    pub fn new(what: &'static str, name: &str) -> Self {
        Self { what, name: name.to_owned(), failures: 0, logged: None, spoken: false }
    }

    /// A step succeeded.
    pub fn works(&mut self) {
        if std::mem::take(&mut self.failures) > 0 && std::mem::take(&mut self.spoken) {
            tracing::info!(what = self.what, name = self.name, "the watch works again");
        }
    }

    /// A step failed; returns how long to wait before the next one.
    pub fn failed(&mut self, error: &WatchError) -> Duration {
        self.failures = self.failures.saturating_add(1);
        if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            tracing::warn!(
                what = self.what,
                name = self.name,
                failures = self.failures,
                %error,
                "the objects cannot be watched (get, list and watch are needed); what was read last is kept"
            );
            (self.logged, self.spoken) = (Some(Instant::now()), true);
        }
        backoff::pause(self.failures, backoff::jitter()).max(error.retry_after())
    }
}
