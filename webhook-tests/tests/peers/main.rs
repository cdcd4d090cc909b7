//! The suites that need heavy peers: real Tekton Pipelines, SPIRE and A2A agents. `make test-peers` runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod cards;
mod cards_cluster;
mod names;
mod tekton;
mod tekton_builds;
