//! What happens to objects, as the watches tell it: one object at a time, and what is known of a kind as a whole.

use std::sync::Arc;

use super::{Key, Kind, Observed};

/// One thing that happened to one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its kind.
    pub kind: Kind,
    /// Where it lives.
    pub key: Key,
    /// Its resourceVersion; 0 when it was found missing from a new list.
    pub version: u64,
    /// It comes from a new list, which is the truth whatever was known before.
    pub listed: bool,
    /// What it is now; `None`: gone, or no longer of interest.
    pub now: Option<Arc<Observed>>,
}

/// One message from the watches to the controllers.
#[derive(Debug)]
pub enum Feed {
    /// Something happened to one object.
    Change(Change),
    /// One more source has delivered its first list; the number tells how many are missing.
    Listed(usize),
    /// Whether a kind can be read has changed.
    Reach(Kind, Reach),
}

/// Whether what is known of a kind is all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Reach {
    /// It has not been read yet, or may not be: that an object is not known says nothing.
    #[default]
    Unknown,
    /// Everything is known.
    Listed,
    /// The API server certainly does not serve it: there are no objects of the kind.
    Absent,
}
