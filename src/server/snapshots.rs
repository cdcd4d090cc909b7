//! The snapshot in force, shared by whoever builds it and every review.
//!
//! In: snapshots from `server::stores` or `config_watch`, and each watch's word that it is heard of. Out: the last one, without
//! waiting, and for how long it may have been out of date. Promises: a review sees one whole snapshot; there is none until the first
//! was stored, and from then on there always is one; one watch that is silent is not hidden by the others.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::time::{Duration, Instant};

use crate::config::snapshot::Snapshot;

/// A cell with the snapshot in force. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SnapshotCell {
    current: Arc<ArcSwapOption<Snapshot>>,
    heard: Arc<Mutex<Heard>>,
}

/// When what the snapshot is made from was last known to be current.
#[derive(Debug, Default)]
struct Heard {
    /// The last snapshot was stored.
    stored: Option<Instant>,
    /// Every watch that it is made from.
    watches: Vec<Instant>,
}

/// One of the watches that the snapshot is made from.
#[derive(Debug)]
pub struct Confirmation {
    heard: Arc<Mutex<Heard>>,
    place: usize,
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
        self.heard.lock().stored = Some(Instant::now());
    }

    /// A further watch that the snapshot depends on from now on.
    #[must_use]
    pub fn depends(&self) -> Confirmation {
        let mut heard = self.heard.lock();
        heard.watches.push(Instant::now());
        Confirmation { heard: Arc::clone(&self.heard), place: heard.watches.len() - 1 }
    }

    /// How long ago the snapshot was last known to agree with the cluster: since the watch that has been silent for longest was heard
    /// of, and where there are no watches since it was stored; `None` before the first one.
    #[must_use]
    pub fn staleness(&self) -> Option<Duration> {
        let heard = self.heard.lock();
        let stored = heard.stored?;
        Some(heard.watches.iter().min().unwrap_or(&stored).elapsed())
    }
}

impl Confirmation {
    /// Says that what this watch has delivered agrees with the cluster as of now: to be called whenever the API server says something, a
    /// bookmark included, also when nothing changed.
    pub fn now(&self) {
        if let Some(at) = self.heard.lock().watches.get_mut(self.place) {
            *at = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::gates::Gates;
    use crate::config::schema::Platform;
    use crate::config::view::ClusterView;

    fn snapshot() -> Snapshot {
        let (operator_namespace, namespaces) = ("own".into(), [].into());
        let view = ClusterView { operator_namespace, server_version: (1, 36), spiffe_driver: false, namespaces };
        Snapshot::new(&Platform::built_in(), Gates::default(), view)
    }

    /// What happened in that second, and the staleness at its end.
    #[tokio::test(start_paused = true)]
    async fn staleness_tells_of_the_watch_that_was_silent_for_longest() {
        let cell = SnapshotCell::new();
        let watches = [cell.depends(), cell.depends()];
        let second = Duration::from_secs(1);
        for (step, heard, stored, stale) in [
            (0, &[0, 1][..], false, None),
            (1, &[0, 1], true, Some(1)),
            (2, &[0], false, Some(2)),
            (3, &[0], true, Some(3)),
            (4, &[], false, Some(4)),
            (5, &[1], false, Some(3)),
            (6, &[0, 1], false, Some(1)),
        ] {
            heard.iter().for_each(|watch: &usize| watches[*watch].now());
            if stored {
                cell.store(snapshot());
            }
            tokio::time::sleep(second).await;
            assert_eq!(cell.staleness(), stale.map(|seconds| second * seconds), "step {step}");
        }
        let alone = SnapshotCell::new();
        alone.store(snapshot());
        tokio::time::sleep(second).await;
        assert_eq!(alone.staleness(), Some(second), "a snapshot that no watch has to do with");
    }
}
