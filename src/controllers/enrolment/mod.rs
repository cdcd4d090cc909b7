//! Enrolment of existing workloads: what an AgentRuntime or a label asks for, done once and undone without a trace.
//!
//! ```text
//! target (item) ─► judge (what is to be written, in waves) ─► one server-side apply
//!        │              ▲ labelled · fields · pods · wave · adopt · contest · sandbox · whole · work (one workload at a time)
//!        └─► status of every AgentRuntime that points at it (verdict: of the one that governs it) ─► finalizers
//! ```
//!
//! The items are targets, so that one workload has one writer: `<plural>/<name>`, whether or not the workload exists, and
//! `agentruntimes/<name>` for an AgentRuntime whose target is of no kind that can be enrolled. Everything here is pure.

mod adopt;
mod contest;
mod effective;
mod fields;
mod judge;
mod labelled;
pub mod memory;
pub mod note;
pub mod plan;
mod pods;
mod protected;
mod sandbox;
mod status;
mod verdict;
mod wave;
mod whole;
mod work;

#[cfg(test)]
pub(in crate::controllers) mod tests;

/// The first twelve characters of a hash: what people compare.
fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}
