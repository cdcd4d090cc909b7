//! Readiness as latches: each part of the process that must have happened once holds one.
//!
//! In: releases from the parts, and the start of draining. Out: ready or not, and the list that `/readyz?verbose=1`
//! prints. Promises: ready = every latch released and not draining; a latch that is dropped without release never makes
//! the process ready; draining cannot be taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// Name of the check that fails while the process drains.
const DRAINING: &str = "draining";

/// The readiness of this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    checks: Arc<RwLock<Vec<Entry>>>,
    draining: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Entry {
    name: &'static str,
    released: Arc<AtomicBool>,
}

/// Something that must happen once before this process may receive traffic.
#[derive(Debug)]
#[must_use = "a latch that is never released keeps the process unready"]
pub struct Latch {
    released: Arc<AtomicBool>,
}

/// One line of the verbose answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// Name of the latch, or `draining`.
    pub name: &'static str,
    /// Whether it stands in the way of readiness.
    pub ok: bool,
}

impl Latch {
    /// It has happened.
    pub fn release(self) {
        self.released.store(true, Ordering::Release);
    }
}

impl Readiness {
    /// Ready at once, until the first latch is taken.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a latch of this name; not ready until it is released. Names appear in `/readyz/<name>`.
    pub fn latch(&self, name: &'static str) -> Latch {
        let released = Arc::new(AtomicBool::new(false));
        self.checks.write().push(Entry { name, released: released.clone() });
        Latch { released }
    }

    /// Not ready from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether this process may receive traffic.
    #[must_use]
    pub fn ready(&self) -> bool {
        !self.draining.load(Ordering::Acquire)
            && self.checks.read().iter().all(|check| check.released.load(Ordering::Acquire))
    }

    /// Every check, in the order in which the latches were taken.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut list: Vec<Check> = self
            .checks
            .read()
            .iter()
            .map(|entry| Check { name: entry.name, ok: entry.released.load(Ordering::Acquire) })
            .collect();
        list.push(Check { name: DRAINING, ok: !self.draining.load(Ordering::Acquire) });
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_all_latches_released_and_not_draining() {
        let readiness = Readiness::new();
        assert!(readiness.ready());
        let (certificates, snapshot) = (readiness.latch("certificates"), readiness.latch("snapshot"));
        certificates.release();
        assert!(!readiness.clone().ready());
        assert_eq!(
            readiness.checks(),
            [
                Check { name: "certificates", ok: true },
                Check { name: "snapshot", ok: false },
                Check { name: "draining", ok: true }
            ]
        );
        snapshot.release();
        assert!(readiness.ready());
        readiness.drain();
        assert!(!readiness.ready());
        assert!(!readiness.checks().last().unwrap().ok);
    }

    #[test]
    fn a_dropped_latch_keeps_the_process_unready() {
        let readiness = Readiness::new();
        drop(readiness.latch("leader"));
        assert!(!readiness.ready());
    }
}
