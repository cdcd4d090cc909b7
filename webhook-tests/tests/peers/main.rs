//! The suites that need heavy peers: real Tekton Pipelines, SPIRE, A2A agents, LiteLLM, FastMCP, and the tools of build steps. `make test-peers` runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod beeai_steps;
mod canonical;
mod cards;
mod cards_cluster;
mod cards_load;
mod cards_proof;
mod cards_rotation;
mod cards_signing;
mod fleet;
mod kaos;
mod kaos_environment;
mod kaos_models;
mod kaos_tools;
mod names;
mod tekton;
mod tekton_builds;
