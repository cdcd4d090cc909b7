//! YAML for people: documents with line numbers and key order in, block YAML out.
//!
//! `stream` cuts a text into documents without changing a byte, `tree` reads one of them (`json` when it is JSON, else `compose`, where
//! `scalar` says what a word without quotes is), `emit` writes a value.

mod compose;
pub mod emit;
mod json;
mod scalar;
pub mod stream;
pub mod tree;

#[cfg(test)]
mod tests;
