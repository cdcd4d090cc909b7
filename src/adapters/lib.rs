//! What asks others than the API server: one outgoing HTTP client, and an adapter per outside system.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_api::api;
pub use drawbridge_controllers::controllers;
pub use drawbridge_crypto as crypto;
pub use drawbridge_domain::domain;

#[path = "mod.rs"]
pub mod adapters;
