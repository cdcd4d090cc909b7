//! Builds against the real Tekton Pipelines: what composition makes is admitted by Tekton's webhook and run by its
//! controller, with kwok as the kubelet. Run by `make test-peers`.
//!
//! One control plane and one Tekton serve all tests here; each test has a namespace of its own.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used, reason = "a test says what is wrong by panicking")]

mod acceptance;
mod beeai;
mod builds;
mod dice;
mod generator;
mod hostile;
mod running;
mod specs;
