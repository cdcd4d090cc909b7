//! Intended operations on the raw JSON; never a diff of a typed round trip (design, law 4).
//!
//! Paths are built from tokens, so that a `/` or `~` in a key is escaped here and nowhere else.

use std::sync::Arc;

pub use json_patch::PatchOperation;
pub use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, MoveOperation, RemoveOperation};
use serde_json::Value;

/// A value that many objects get, with its text.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The value.
    pub value: Value,
    /// What serde_json writes for `value`.
    pub text: String,
}

/// The value of an operation as text, so that it need not be written again.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Index of the operation, which adds or replaces.
    pub operation: usize,
    /// What its value is made of.
    pub text: WrittenText,
}

/// How the value of an operation is made of parts.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenText {
    /// It is this part.
    One(Arc<Part>),
    /// It is the list of these.
    List(Vec<Arc<Part>>),
}

/// Operations in order, with the texts that are known.
#[derive(Debug, Default)]
pub struct Operations {
    /// The operations.
    pub list: Vec<PatchOperation>,
    /// In order of the operations; those whose text is not known are left out.
    pub written: Vec<Written>,
}

impl Operations {
    /// Adds this part.
    pub fn add(&mut self, path: PointerBuf, part: &Arc<Part>) {
        self.written.push(Written { operation: self.list.len(), text: WrittenText::One(Arc::clone(part)) });
        self.list.push(add(path, part.value.clone()));
    }

    /// Replaces what exists by this part.
    pub fn replace(&mut self, path: PointerBuf, part: &Arc<Part>) {
        self.written.push(Written { operation: self.list.len(), text: WrittenText::One(Arc::clone(part)) });
        self.list.push(replace(path, part.value.clone()));
    }

    /// Adds a list of these parts.
    pub fn add_list(&mut self, path: PointerBuf, parts: Vec<Arc<Part>>) {
        self.list.push(add(path, parts.iter().map(|part| part.value.clone()).collect::<Vec<_>>()));
        self.written.push(Written { operation: self.list.len() - 1, text: WrittenText::List(parts) });
    }
}

/// The pointer of these object keys.
#[must_use]
pub fn pointer<const N: usize>(keys: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(keys)
}

/// Adds a member or an array element, or replaces a member that exists.
#[must_use]
pub fn add(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value: value.into() })
}

/// Replaces what exists.
#[must_use]
pub fn replace(path: PointerBuf, value: impl Into<Value>) -> PatchOperation {
    PatchOperation::Replace(json_patch::ReplaceOperation { path, value: value.into() })
}

/// Removes what exists.
#[must_use]
pub fn remove(path: PointerBuf) -> PatchOperation {
    PatchOperation::Remove(RemoveOperation { path })
}

/// Moves an element, byte for byte: what others wrote in it survives.
#[must_use]
pub fn relocate(from: PointerBuf, path: PointerBuf) -> PatchOperation {
    PatchOperation::Move(MoveOperation { from, path })
}
