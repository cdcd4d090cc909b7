//! Process machinery: sockets, certificates, watches, telemetry.

pub mod admin;
pub mod catalogue;
pub mod certs;
pub mod clock;
pub mod config_watch;
pub mod descriptors;
pub mod guards;
pub mod health;
pub mod listener;
pub mod memory;
pub mod routes;
pub mod shutdown;
pub mod snapshots;
pub mod stores;
pub mod tasks;
pub mod telemetry;
#[cfg(test)]
mod testing;
pub mod trust_bundles;
