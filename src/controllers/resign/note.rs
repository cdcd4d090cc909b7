//! What a plan found out about its card's signature, for later plans; data.

use std::time::Duration;

/// What a plan found out about its item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Note {
    /// Its object rolls, or is about to, because of a change that we wrote.
    pub rolling: bool,
    /// Since when it has rolled.
    pub rolls: Option<Duration>,
    /// It waits until one of those that roll is done.
    pub waits: bool,
    /// Since when the authority that signed for it has been unknown.
    pub awaiting: Option<Duration>,
    /// When it was last restarted for its card to be signed anew.
    pub resigned: Option<Duration>,
}
