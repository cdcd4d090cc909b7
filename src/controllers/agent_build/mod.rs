//! An AgentBuild becomes one PipelineRun per attempt, and tells how it goes.
//!
//! ```text
//! AgentBuild ─► subject (what is wanted: hash) ─┬─ not claimed ─► start: prerequisites, compose, try, claim, create
//!   status (what is claimed: hash, attempt) ────┤─ known by content: judged at once
//!                                               ├─ claimed ─────► follow: run, tasks ─► outcome ─► status
//!                                               ├─ judged ──────► clean-up, history
//!                                               └─ deleting ────► ending
//! ```
//!
//! In: AgentBuilds, the runs, TaskRuns, claims and Pods of builds, templates, steps and settings of the snapshot. Out:
//! operations. Everything here is pure. Promises: the name of a run follows from the object, its inputs and the attempt,
//! and the status names an attempt before its run is created, so that whatever ends the process between two writes there
//! is one run per attempt; never two runs of a build at once; a judged build is not judged again, so its status changes
//! only when its object does; equal facts give an equal status, so steady state and a restart write nothing. Of Secrets
//! only the names of keys are known here; no text that a step printed reaches a status or an Event.

pub mod beeai;
mod clean_up;
mod ending;
mod face;
mod failure;
mod follow;
mod image;
mod known;
pub mod memory;
pub mod note;
mod outcome;
pub mod plan;
mod prerequisites;
mod provenance;
mod secrets;
pub mod shapes;
mod start;
mod status;
mod subject;

#[cfg(test)]
mod tests;
