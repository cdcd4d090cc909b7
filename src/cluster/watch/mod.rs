//! The one way of watching: how lists, watches and versions are read, by whoever follows something.
//!
//! ```text
//! list (pages) ─► watch from there ─► ends after its period, having said something ─► watch from the last version
//!      ▲                                    │
//!      └── 410, or it ended in silence ◄────┘      any failure: pause with jitter, then where it stopped
//! ```
//!
//! In: a collection, or one object of it by name. Out: [`Step`](follow::Step)s ([`follow`], which asks what [`machine`] decides), or the object as it is now ([`named`]).
//! The rule for lists, watches and versions, which every watch of the process keeps:
//!
//! - a watch that ends without an event or bookmark at or past its position has proved nothing: an API server that has
//!   not reached that version (a restored backup) is silent for ever. A list follows;
//! - lists carry no resourceVersion, replace everything object by object, and their versions are compared with nothing
//!   but the position of the same watch;
//! - a list below that position means that the cluster went back: the [`History`] of the process turns a page, once,
//!   and everybody forgets what versions they knew;
//! - a list at or above it means that only the watch's server was behind;
//! - a list begins with a small page, and pages grow while they weigh little (`pages`): what an object weighs is up to whoever writes it;
//! - what of an object lies deeper than a decoder goes counts as null, in a list as in an event (`events`): whoever writes it keeps nobody from reading
//!   the others, and makes no list necessary however often it is written;
//! - one object that matters by itself is then read by name, which is the truth also where lists come from a cache that
//!   stopped.
//!
//! Not kube's `watcher`: it keeps bookmarks to itself, renews after the client's read timeout has ended the stream, and
//! goes on from a version that the server has not reached.

pub mod backoff;
mod error;
mod events;
pub mod follow;
mod history;
pub mod machine;
pub mod named;
mod pages;
mod trouble;

#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

pub use error::WatchError;
pub use history::History;
pub use trouble::Trouble;

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

    /// How often a kind that is not served is asked for, on average: no shorter proof makes it more than once a second. Once its absence is
    /// `certain`, a third as often: that may last for as long as the cluster, and every replica asks for every such kind.
    #[must_use]
    pub fn asking(self, certain: bool) -> Duration {
        (self.absence / 6).max(Duration::from_secs(1)) * if certain { 3 } else { 1 }
    }
}

/// What the watches of one process share. Clones share the history.
#[derive(Debug, Clone, Default)]
pub struct Watching {
    /// How long things take.
    pub pace: Pace,
    /// The history that the process follows.
    pub history: History,
}

impl Watching {
    /// With a history of its own.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        Self { pace, history: History::default() }
    }
}

/// A version as a number; 0 when it is none.
#[must_use]
pub fn number(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}
