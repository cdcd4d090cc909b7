//! Process machinery: sockets, certificates, watches, leadership, telemetry.

pub mod admin;
pub mod certs;
pub mod clock;
pub mod config_watch;
pub mod descriptors;
pub mod guards;
pub mod health;
pub mod kube;
pub mod leader;
pub mod memory;
pub mod routes;
pub mod server;
pub mod shutdown;
pub mod snapshots;
pub mod stores;
pub mod tasks;
pub mod telemetry;
pub mod trust_bundles;
pub mod watching;
