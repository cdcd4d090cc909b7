//! What reconciles each kind: pure plans, and the loop that carries them out.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_admission::admission;
pub use drawbridge_api::api;
pub use drawbridge_cluster::cluster;
pub use drawbridge_config::config;
pub use drawbridge_crypto as crypto;
pub use drawbridge_domain::domain;
pub use drawbridge_pipelines::pipelines;
pub use drawbridge_policy::policy;
pub use drawbridge_store::store;
pub use drawbridge_workloads::workloads;

#[path = "mod.rs"]
pub mod controllers;
