//! The suites on real processes, one module each, in one binary: an edit of the product links one program, and suites share
//! control planes. `cargo test -p webhook-tests --test suites enrolment::` runs one of them.
//!
//! In: the programs of `make controlplane`, Envoy and promtool, and the product's binary beside this one. Promise: each test has a
//! namespace of its own, so that all of them can run at once; what changes a whole cluster has a control plane of its own.
//! What a suite shares: `ControlPlane::lent` (no product), `installation::shared` (the product as installed), or a `Kept` of
//! its own (a plane for that suite, whose product holds the Lease there). But for `installation::shared`, which most suites use, all
//! of these end a while after the last test that used them: what is kept to the end takes processor time to the end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod agent_cards;
mod agent_runtime_cases;
mod agent_runtime_schema;
mod agents;
mod alerts;
mod answers;
mod balancer;
mod beeai;
mod build_admission;
mod builds;
mod card_bundles;
mod catalogue;
mod certificates;
mod controllers;
mod controlplane;
mod doctor;
mod enrolment;
mod envoy;
mod fuzz_worlds;
mod git;
mod injection;
mod inline;
mod installed_again;
mod kaos;
mod kinds;
mod launcher;
mod one_name;
mod papers;
mod policies;
mod pressure;
mod resilience;
mod restored;
mod status;
mod strategic_merge;
mod told;
mod trust;
mod uninstall;
mod wire;
