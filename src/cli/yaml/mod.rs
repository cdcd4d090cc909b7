//! YAML for people: documents with line numbers and key order in, block YAML out.
//!
//! `stream` cuts a text into documents without changing a byte, `tree` reads one of them, `emit` writes a value.

pub mod emit;
pub mod stream;
pub mod tree;

#[cfg(test)]
mod tests;
