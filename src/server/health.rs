//! Readiness as latches and conditions: each part of the process that must have happened once holds a latch, each that must
//! stay so a condition.
//!
//! In: releases from the parts, conditions that fail and hold again, and the start of draining. Out: ready or not, and the
//! list that `/readyz?verbose=1` prints. Promises: ready = every latch released, every condition holds and not draining; a
//! latch that is dropped without release never makes the process ready; draining cannot be taken back.

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

/// Why a check stands in the way of readiness; nothing, when it does not.
type Obstacle = Arc<RwLock<Option<String>>>;

#[derive(Debug)]
struct Entry {
    name: &'static str,
    obstacle: Obstacle,
}

/// Something that must happen once before this process may receive traffic.
#[derive(Debug)]
#[must_use = "a latch that is never released keeps the process unready"]
pub struct Latch {
    obstacle: Obstacle,
}

/// Something that must be so while this process receives traffic. It holds at first, and may fail and hold again.
#[derive(Debug, Clone)]
pub struct Condition {
    obstacle: Obstacle,
}

/// One line of the verbose answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name of the latch or condition, or `draining`.
    pub name: &'static str,
    /// Why it stands in the way of readiness; empty for what says no more than its name. Nothing when it does not.
    pub obstacle: Option<String>,
}

impl Check {
    /// Whether it does not stand in the way of readiness.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.obstacle.is_none()
    }
}

impl Latch {
    /// It has happened.
    pub fn release(self) {
        *self.obstacle.write() = None;
    }
}

impl Condition {
    /// It does not hold, and why.
    pub fn fails(&self, why: String) {
        *self.obstacle.write() = Some(why);
    }

    /// It holds.
    pub fn holds(&self) {
        *self.obstacle.write() = None;
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
        Latch { obstacle: self.check(name, Some(String::new())) }
    }

    /// Takes a condition of this name, which holds; not ready while it fails.
    #[must_use]
    pub fn condition(&self, name: &'static str) -> Condition {
        Condition { obstacle: self.check(name, None) }
    }

    fn check(&self, name: &'static str, obstacle: Option<String>) -> Obstacle {
        let obstacle = Arc::new(RwLock::new(obstacle));
        self.checks.write().push(Entry { name, obstacle: obstacle.clone() });
        obstacle
    }

    /// Not ready from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether this process may receive traffic.
    #[must_use]
    pub fn ready(&self) -> bool {
        !self.draining.load(Ordering::Acquire) && self.checks.read().iter().all(|check| check.obstacle.read().is_none())
    }

    /// Every check, in the order in which the latches were taken.
    #[must_use]
    pub fn checks(&self) -> Vec<Check> {
        let mut list: Vec<Check> = self
            .checks
            .read()
            .iter()
            .map(|entry| Check { name: entry.name, obstacle: entry.obstacle.read().clone() })
            .collect();
        let draining = self.draining.load(Ordering::Acquire).then(String::new);
        list.push(Check { name: DRAINING, obstacle: draining });
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
                Check { name: "certificates", obstacle: None },
                Check { name: "snapshot", obstacle: Some(String::new()) },
                Check { name: "draining", obstacle: None }
            ]
        );
        snapshot.release();
        assert!(readiness.ready());
        readiness.drain();
        assert!(!readiness.ready());
        assert!(!readiness.checks().last().unwrap().ok());
    }

    #[test]
    fn mend_03_a_condition_fails_and_holds_again_and_says_why() {
        let readiness = Readiness::new();
        let condition = readiness.condition("trust");
        assert!(readiness.ready());
        condition.fails("nobody trusts it".to_owned());
        assert!(!readiness.ready());
        assert_eq!(readiness.checks()[0].obstacle.as_deref(), Some("nobody trusts it"));
        condition.holds();
        assert!(readiness.ready());
    }

    #[test]
    fn a_dropped_latch_keeps_the_process_unready() {
        let readiness = Readiness::new();
        drop(readiness.latch("leader"));
        assert!(!readiness.ready());
    }
}
