//! What a plan found out about its build, for later plans; data.

use std::time::Duration;

/// What a plan found out about its item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// Since when it has been held back.
    pub held: Option<Duration>,
}
