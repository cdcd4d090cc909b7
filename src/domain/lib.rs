//! The words of the house: keys, reasons, identities of workloads, quantities.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

#[path = "mod.rs"]
pub mod domain;
