//! Which history of the cluster this process follows.
//!
//! Versions of a cluster only grow, until somebody puts a backup back: then the same numbers are given again, to other
//! things. In: positions of watches that a list was found below. Out: the epoch, which grows by one for each time that
//! the cluster went back, however many watches notice. Promise: one log line each time.

use std::sync::Arc;

use tokio::sync::watch;

/// The epoch of the process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct History {
    epoch: Arc<watch::Sender<u64>>,
}

impl History {
    /// How often the cluster went back so far. What was known in an earlier epoch is no longer to be compared with.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        *self.epoch.borrow()
    }

    /// Hears of every new epoch.
    #[must_use]
    pub fn turns(&self) -> watch::Receiver<u64> {
        self.epoch.subscribe()
    }

    /// Somebody who knew version `from` of `what` in that epoch was told of `to`, which is lower.
    pub fn went_back(&self, what: &str, epoch: u64, (from, to): (u64, u64)) {
        let first = self.epoch.send_if_modified(|now| {
            let first = *now == epoch;
            *now += u64::from(first);
            first
        });
        if first {
            tracing::warn!(
                what,
                from,
                to,
                epoch = epoch + 1,
                "the cluster went back to an earlier state, as it does when a backup of etcd is put back: everything is \
                 read again, and what was read before counts no more"
            );
        }
    }
}
