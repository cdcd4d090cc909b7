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
//! A number such as `A13`, `case 50` or `D-11` is the name of a rule and of the test that holds it; docs/cases.md has the list of series and the
//! faults in words.

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
