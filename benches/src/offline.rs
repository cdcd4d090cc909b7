//! The product's endpoints over its own server loop, with a snapshot that is made up: what reviews cost by themselves.

use std::path::Path;

use anyhow::Result;
use drawbridge::server::routes::Reviews;
use drawbridge::server::snapshots::SnapshotCell;
use drawbridge::server::telemetry::log;
use drawbridge::server::telemetry::metrics::Metrics;

use drawbridge_counts::fixture;

use crate::echo;

/// Serves until the process is ended; logs as `serve` does by default.
///
/// # Errors
/// When the port or the certificate cannot be used.
pub async fn serve(port: u16, certificates: &Path, others: usize) -> Result<()> {
    log::init("info", log::Format::Json)?;
    let cell = SnapshotCell::new();
    cell.store(fixture::snapshot(others)?);
    echo::listen(port, certificates, Reviews::new(cell, Metrics::new()).router()).await
}
