//! The only place that reads the wall clock; everything else is handed the time.

use std::time::SystemTime;

/// The wall clock now.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the one reader of the clock")]
pub fn now() -> SystemTime {
    SystemTime::now()
}
