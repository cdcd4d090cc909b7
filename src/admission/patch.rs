//! Intended operations on the raw JSON; never a diff of a typed round trip (design, law 4).
//!
//! Paths are built from tokens, so that a `/` or `~` in a key is escaped here and nowhere else.

pub use json_patch::PatchOperation;
pub use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, MoveOperation, RemoveOperation};
use serde_json::Value;

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
