//! The one door to the API server: clients, list and watch, the Lease and the fence behind it.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_api::api;
pub use drawbridge_domain::domain;
pub use drawbridge_store::store;

#[path = "mod.rs"]
pub mod cluster;
