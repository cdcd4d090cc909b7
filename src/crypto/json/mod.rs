//! Strict JSON. In: bytes. Out: a tree, or what is wrong and where. Refused: duplicate members, invalid UTF-8, lone surrogates, numbers that no
//! double can hold, and whatever is deeper or larger than [`crate::limits`] says.

mod read;
mod write;

use std::collections::BTreeMap;

pub(crate) use read::read;
pub(crate) use write::{Style, write};

/// Members by name; the order is that of the names' bytes.
pub(crate) type Members = BTreeMap<String, Value>;

/// One JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Members),
}

impl Value {
    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn list(&self) -> Option<&[Value]> {
        if let Self::List(list) = self { Some(list) } else { None }
    }

    pub(crate) fn object(&self) -> Option<&Members> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }
}

/// The canonical form of RFC 8785 of a JSON text: the same value has the same bytes, however it is written.
pub fn jcs(text: &[u8]) -> Result<Vec<u8>, JsonFault> {
    Ok(write(&read(text, crate::limits::CARD_BYTES)?, Style::Jcs))
}

/// Why bytes are no acceptable JSON. Positions are bytes from the start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// More bytes than allowed.
    #[error("{bytes} bytes; at most {most} are read")]
    TooLarge {
        /// Bytes received.
        bytes: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// Not UTF-8.
    #[error("byte {at} is not UTF-8")]
    NotUtf8 {
        /// Where.
        at: usize,
    },
    /// Not JSON.
    #[error("not JSON at byte {at}: {wanted} is expected")]
    Syntax {
        /// Where.
        at: usize,
        /// What could stand there.
        wanted: &'static str,
    },
    /// Nested too deeply.
    #[error("nested more than {} deep at byte {at}", crate::limits::DEPTH)]
    TooDeep {
        /// Where.
        at: usize,
    },
    /// Too many values.
    #[error("more than {} values", crate::limits::VALUES)]
    TooManyValues,
    /// A member stands twice in one object.
    #[error("member {name} stands twice in one object, at byte {at}")]
    Duplicate {
        /// Its name, escaped and cut.
        name: String,
        /// Where the second stands.
        at: usize,
    },
    /// An escape for half of a surrogate pair.
    #[error("unpaired UTF-16 surrogate at byte {at}")]
    LoneSurrogate {
        /// Where.
        at: usize,
    },
    /// A number beyond what a double holds.
    #[error("the number at byte {at} is beyond what JSON readers agree on")]
    NumberRange {
        /// Where.
        at: usize,
    },
}
