//! Drawbridge: admission webhook, controllers and command line, under one name for tests, benchmarks and fuzz targets.
//!
//! One crate per folder of `src/`; each may use only what stands to its left (its `Cargo.toml` says so, and cargo holds it):
//!
//! ```text
//! domain ─► api ─► store, pipelines, workloads ─► config ─► admission    pure: no I/O, no clock, no async
//!                                         │
//!                          controllers, cluster ─► server    working: watches, writes, sockets
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

pub use drawbridge_adapters::adapters;
pub use drawbridge_admission::admission;
pub use drawbridge_api::api;
pub use drawbridge_cli::cli;
pub use drawbridge_cluster::cluster;
pub use drawbridge_config::config;
pub use drawbridge_controllers::controllers;
pub use drawbridge_domain::domain;
pub use drawbridge_pipelines::pipelines;
pub use drawbridge_policy::policy;
pub use drawbridge_server::server;
pub use drawbridge_store::store;
pub use drawbridge_workloads::workloads;
