//! The suites that need heavy peers: real Tekton Pipelines. `make test-peers` runs them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod names;
mod tekton;
mod tekton_builds;
