//! Process machinery: sockets, certificates, watches, leadership, telemetry.

pub mod health;
pub mod shutdown;
pub mod snapshots;
