//! Intended operations on the raw JSON; never a diff of a typed round trip.
//!
//! Paths are built from tokens, so that a `/` or `~` in a key is escaped here and nowhere else. A value that many
//! objects get is shared and not copied into each operation; [`Operation::plain`] copies it for those who apply one.

use std::sync::Arc;

pub use json_patch::PatchOperation;
pub use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, MoveOperation, RemoveOperation, ReplaceOperation};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::api::review::Piece;

/// A value that many objects get, as a tree and as it goes out.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The value.
    pub value: Value,
    /// Its text, encoded.
    pub piece: Piece,
}

impl Part {
    /// The part that is `value`.
    #[must_use]
    pub fn new(value: Value) -> Self {
        let text = serde_json::to_vec(&value).expect("a tree has text keys");
        Self { piece: Piece::of(text), value }
    }
}

/// What is made of parts.
#[derive(Debug, Clone, PartialEq)]
pub enum Shared {
    /// This part.
    One(Arc<Part>),
    /// The list of these.
    List(Vec<Arc<Part>>),
    /// The object of these members.
    Members(Vec<(&'static str, Arc<Part>)>),
}

impl Shared {
    /// The value.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Shared::One(part) => part.value.clone(),
            Shared::List(parts) => parts.iter().map(|part| part.value.clone()).collect(),
            Shared::Members(parts) => parts.iter().map(|(key, part)| (*key, part.value.clone())).collect(),
        }
    }
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// With a value of its own, or with none.
    Plain(PatchOperation),
    /// Adds what is made of parts.
    Add(PointerBuf, Shared),
    /// Replaces what exists by what is made of parts.
    Replace(PointerBuf, Shared),
}

impl Operation {
    /// The operation as those know it who apply one.
    #[must_use]
    pub fn plain(&self) -> PatchOperation {
        match self {
            Operation::Plain(plain) => plain.clone(),
            Operation::Add(path, shared) => {
                PatchOperation::Add(AddOperation { path: path.clone(), value: shared.value() })
            }
            Operation::Replace(path, shared) => {
                PatchOperation::Replace(ReplaceOperation { path: path.clone(), value: shared.value() })
            }
        }
    }
}

impl From<PatchOperation> for Operation {
    fn from(plain: PatchOperation) -> Self {
        Operation::Plain(plain)
    }
}

impl Serialize for Operation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.plain().serialize(serializer)
    }
}

/// The operations as those know them who apply them.
#[must_use]
pub fn plain(operations: &[Operation]) -> Vec<PatchOperation> {
    operations.iter().map(Operation::plain).collect()
}

/// The pointer of these object keys.
#[must_use]
pub fn pointer<const N: usize>(keys: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(keys)
}

/// Adds a member or an array element, or replaces a member that exists.
#[must_use]
pub fn add(path: PointerBuf, value: impl Into<Value>) -> Operation {
    PatchOperation::Add(AddOperation { path, value: value.into() }).into()
}

/// Adds this part.
#[must_use]
pub fn add_part(path: PointerBuf, part: &Arc<Part>) -> Operation {
    Operation::Add(path, Shared::One(Arc::clone(part)))
}

/// Adds a list of these parts.
#[must_use]
pub fn add_parts(path: PointerBuf, parts: Vec<Arc<Part>>) -> Operation {
    Operation::Add(path, Shared::List(parts))
}

/// Adds an object of these parts.
#[must_use]
pub fn add_members(path: PointerBuf, parts: Vec<(&'static str, Arc<Part>)>) -> Operation {
    Operation::Add(path, Shared::Members(parts))
}

/// Replaces what exists.
#[must_use]
pub fn replace(path: PointerBuf, value: impl Into<Value>) -> Operation {
    PatchOperation::Replace(ReplaceOperation { path, value: value.into() }).into()
}

/// Replaces what exists by this part.
#[must_use]
pub fn replace_part(path: PointerBuf, part: &Arc<Part>) -> Operation {
    Operation::Replace(path, Shared::One(Arc::clone(part)))
}

/// Removes what exists.
#[must_use]
pub fn remove(path: PointerBuf) -> Operation {
    PatchOperation::Remove(RemoveOperation { path }).into()
}

/// Moves an element, byte for byte: what others wrote in it survives.
#[must_use]
pub fn relocate(from: PointerBuf, path: PointerBuf) -> Operation {
    PatchOperation::Move(MoveOperation { from, path }).into()
}
