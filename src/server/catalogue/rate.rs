//! How often somebody may ask; pure.
//!
//! In: who asks, and when, counted from whatever moment. Out: whether it is too often. Promises: each has [`Rate::burst`] at once and [`Rate::per_second`] from
//! then on; what is known of callers is bounded, and whoever there is no room for is one too many: nobody gets a second purse by filling the table.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Callers that are known at once.
pub(in crate::server) const CALLERS: usize = 4096;

/// What each may.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::server) struct Rate {
    /// At once.
    pub(in crate::server) burst: f64,
    /// From then on.
    pub(in crate::server) per_second: f64,
}

#[derive(Debug, Clone, Copy)]
struct Purse {
    left: f64,
    at: Duration,
}

/// The purses of all callers.
#[derive(Debug)]
pub(in crate::server) struct Rates<K> {
    rate: Rate,
    purses: HashMap<K, Purse>,
}

impl<K: Eq + Hash> Rates<K> {
    pub(in crate::server) fn new(rate: Rate) -> Self {
        Self { rate, purses: HashMap::new() }
    }

    /// Whether `who` may ask `now`.
    pub(in crate::server) fn may(&mut self, who: K, now: Duration) -> bool {
        let rate = self.rate;
        let filled = |purse: &Purse| {
            let since = now.saturating_sub(purse.at).as_secs_f64();
            (purse.left + since * rate.per_second).min(rate.burst)
        };
        if !self.purses.contains_key(&who) && self.purses.len() >= CALLERS {
            // A full purse says nothing.
            self.purses.retain(|_, purse| filled(purse) < rate.burst);
            if self.purses.len() >= CALLERS {
                return false;
            }
        }
        let purse = self.purses.entry(who).or_insert(Purse { left: rate.burst, at: now });
        *purse = Purse { left: filled(purse), at: now };
        let may = purse.left >= 1.0;
        purse.left -= if may { 1.0 } else { 0.0 };
        may
    }
}
