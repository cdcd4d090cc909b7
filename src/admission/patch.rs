//! Intended operations on the raw JSON; never a diff of a typed round trip (design, law 4).

pub use json_patch::PatchOperation;
