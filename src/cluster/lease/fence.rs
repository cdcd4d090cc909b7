//! The fence: until when this process may write.
//!
//! In: the end of each lease term, as a monotonic instant measured from before the renewal was sent. Out: yes or no,
//! asked immediately before a request leaves and again before each byte of it does. Promise: a process that was
//! stopped and resumed, or whose renewals hang, finds the fence closed by the clock alone: no task has to run for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// May this process write, and until when. Clones share it.
#[derive(Debug, Clone)]
pub struct Fence {
    base: Instant,
    /// Milliseconds after `base` at which the right to write ends; 0 = closed.
    end: Arc<AtomicU64>,
    under_way: Arc<AtomicUsize>,
    idle: Arc<Notify>,
}

/// A write that was refused, because this process does not (or no longer) hold the Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this process does not hold the Lease, so its controllers do not write")]
pub struct Fenced;

/// A write under way; dropping it says that it has ended.
#[derive(Debug)]
pub(super) struct UnderWay(Fence);

impl Default for Fence {
    fn default() -> Self {
        Self::closed()
    }
}

impl Fence {
    /// Closed until [`Fence::open_until`].
    #[must_use]
    pub fn closed() -> Self {
        Self { base: Instant::now(), end: Arc::default(), under_way: Arc::default(), idle: Arc::default() }
    }

    /// Time left to write.
    ///
    /// # Errors
    /// When there is none.
    pub fn left(&self) -> Result<Duration, Fenced> {
        let end = self.base + Duration::from_millis(self.end.load(Ordering::Acquire));
        end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).ok_or(Fenced)
    }

    /// Open until `end`.
    pub(super) fn open_until(&self, end: Instant) {
        let end = end.saturating_duration_since(self.base).as_millis();
        self.end.store(u64::try_from(end).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Closed from now on.
    pub(super) fn close(&self) {
        self.end.store(0, Ordering::Release);
    }

    /// Counts one write as under way.
    pub(super) fn enter(&self) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(self.clone())
    }

    /// Waits until no write is under way, at most `patience`; says whether that was reached.
    pub(super) async fn drained(&self, patience: Duration) -> bool {
        let quiet = async {
            loop {
                let notified = self.idle.notified();
                if self.under_way.load(Ordering::Acquire) == 0 {
                    return;
                }
                notified.await;
            }
        };
        tokio::time::timeout(patience, quiet).await.is_ok()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}
