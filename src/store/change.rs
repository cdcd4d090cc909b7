//! What happens to objects, as it is learned: one object at a time, and what is known of a kind as a whole.

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
    /// How it was learned.
    pub via: Via,
    /// What it is now; `None`: gone, or no longer of interest.
    pub now: Option<Arc<Observed>>,
}

impl Change {
    /// The same with no more of the object than admission reads.
    #[must_use]
    pub fn slim(&self) -> Self {
        let slim = self.kind.descriptor().slim;
        Self { now: self.now.as_ref().map(|now| slim(&self.key.name, now)), ..self.clone() }
    }
}

/// One row of the table of selections ([`super::Descriptor::selections`]): a number below 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SelectionId(u8);

impl SelectionId {
    /// The selection of that number, of which an entry of the store has a bit: they repeat beyond 64.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self(number % 64)
    }

    /// Its bit.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// How something was learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// An event of a watch; one that says that the object is gone speaks for its selection alone.
    Watch(SelectionId),
    /// A list, which is the truth for its selection whatever was known before.
    List(SelectionId),
    /// The API server's answer to a request about that very object.
    Answer,
    /// A manifest, which is the truth.
    File,
}

impl Via {
    /// The selection that delivers it.
    #[must_use]
    pub const fn selection(self) -> Option<SelectionId> {
        match self {
            Via::Watch(selection) | Via::List(selection) => Some(selection),
            Via::Answer | Via::File => None,
        }
    }

    /// It counts whatever version is known.
    #[must_use]
    pub const fn is_truth(self) -> bool {
        matches!(self, Via::List(_) | Via::File)
    }
}

/// What a change comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is late, was known, or concerns one selection of several: nothing is other than before.
    No,
    /// A version that was not known, or a list's word for one that was; what is kept of the object is the same.
    Same,
    /// The object is there, gone, or another.
    New,
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
