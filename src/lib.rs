//! Drawbridge: admission webhook, controllers and command line in one crate.
//!
//! The layers, from the inside out; each may import only what stands to its left
//! (the table is held by `tests/product/architecture.rs`):
//!
//! ```text
//! domain ─► api ─► build ─► config ─► admission    pure: no I/O, no clock, no async
//!                                         │
//!                          controllers, runtime    working: watches, writes, sockets
//!                                         │
//!                                        cli       wiring and people
//! ```
//!
//! The promise everything else serves is one function:
//! [`admission::evaluate`]`(&Request, &Snapshot) -> Verdict`.
//!
//! Comments name the rule they follow: `design`, `anchors`, `faults.md` and `spec/…` are pages of the project's specification, which
//! is kept outside of this repository. Nothing has to be looked up there to understand the code; a case number is also the name of
//! a test.

pub mod admission;
pub mod api;
pub mod build;
pub mod cli;
pub mod config;
pub mod controllers;
pub mod domain;
pub mod runtime;
