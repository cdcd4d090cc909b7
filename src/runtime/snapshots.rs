//! The snapshot in force, shared by whoever builds it and every review.
//!
//! In: snapshots from `runtime::stores` or `config_watch`. Out: the last one, without waiting. Promises: a review sees
//! one whole snapshot; there is none until the first was stored, and from then on there always is one.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use crate::config::snapshot::Snapshot;

/// A cell with the snapshot in force. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SnapshotCell {
    current: Arc<ArcSwapOption<Snapshot>>,
    confirmed: Arc<Mutex<Option<Instant>>>,
}

impl SnapshotCell {
    /// An empty cell: nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The snapshot in force; `None` until the cluster was read once.
    #[must_use]
    pub fn load(&self) -> Option<Arc<Snapshot>> {
        self.current.load_full()
    }

    /// Puts `snapshot` in force for every review that starts from now on.
    pub fn store(&self, snapshot: Snapshot) {
        self.current.store(Some(Arc::new(snapshot)));
        self.confirm();
    }

    /// Says that the snapshot in force agrees with the cluster as of now: to be called whenever a watch delivers
    /// something, a bookmark included, also when nothing changed.
    pub fn confirm(&self) {
        *self.confirmed.lock() = Some(Instant::now());
    }

    /// How long ago the snapshot was last known to agree with the cluster; `None` before the first one.
    #[must_use]
    pub fn staleness(&self) -> Option<Duration> {
        (*self.confirmed.lock()).map(|at| at.elapsed())
    }
}
