//! Targets, AgentRuntimes and Pods through the plans of the row, on objects as the API server keeps them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

pub(in crate::controllers) mod bench;
mod cards;
mod changes;
mod contest;
mod edges;
mod ending;
mod enrolling;
mod labelled;
mod pods;
mod protected;
mod rolling;
mod targets;
mod templates;
mod waiting;
mod whole;
