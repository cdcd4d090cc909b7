//! What goes over the wire: JSON, YAML, admission reviews, custom resources, Events.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_domain::domain;

#[path = "mod.rs"]
pub mod api;
