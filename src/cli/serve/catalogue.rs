//! The catalogue of verified agents of one process.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use super::flags::Args;
use crate::cluster::watch::Watching;
use crate::server::catalogue::{Catalogue, CatalogueMetrics, Options};
use crate::server::clock;
use crate::server::config_watch::Settings;
use crate::server::snapshots::SnapshotCell;
use crate::server::telemetry::metrics::Metrics;

/// It is closed until the platform file asks for it.
pub(super) fn catalogue(
    args: &Args,
    client: Client,
    (settings, snapshots, watching): (watch::Receiver<Arc<Settings>>, SnapshotCell, Watching),
    registered: &Metrics,
) -> Catalogue {
    let metrics = CatalogueMetrics::default();
    registered.register(|registry| metrics.register(registry));
    Catalogue::new(Options {
        client,
        operator_namespace: args.namespace.clone(),
        namespaces: args.watch_namespaces.0.clone(),
        settings,
        snapshots,
        watching,
        clock: Arc::new(clock::now),
        metrics,
    })
}
