//! An AgentBuild of any API group becomes a PipelineRun.
//!
//! The crates of the house stand under their own names here, so that a path reads the same in every crate.

pub use drawbridge_api::api;
pub use drawbridge_domain::domain;

#[path = "mod.rs"]
pub mod pipelines;
