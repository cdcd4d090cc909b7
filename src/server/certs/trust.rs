//! Since when a root has been in every published bundle.
//!
//! In: the sets of roots that the webhook configurations hold, as observed. Out: for how long a root has been trusted
//! by everyone who calls us. Pure. A replica may change to another root only on this answer, so that no call meets a
//! certificate that its caller does not trust yet.

use std::collections::{BTreeMap, BTreeSet};

use super::root::{Fingerprint, Millis};

/// What the webhook configurations were last seen to hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Whether every kind of configuration has been read once. Until then nothing is known.
    pub synced: bool,
    /// The roots of each entry, over all configurations that exist.
    pub entries: Vec<BTreeSet<Fingerprint>>,
    /// The names under which the entries call: what the certificate has to be valid for.
    pub names: BTreeSet<String>,
}

/// The memory of observations.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    /// Since when no entry exists at all, and so nobody calls.
    uncalled_since: Option<Millis>,
    since: BTreeMap<Fingerprint, Millis>,
}

impl Trust {
    /// Takes in an observation. Call it again with the same observation when time has passed: a clock that was set
    /// back then cannot hold a change up.
    pub fn observe(&mut self, observed: &Observed, now: Millis) {
        if !observed.synced {
            *self = Trust::default();
            return;
        }
        let mut entries = observed.entries.iter();
        let Some(first) = entries.next() else {
            self.since.clear();
            self.uncalled_since = Some(self.uncalled_since.map_or(now, |since| since.min(now)));
            return;
        };
        self.uncalled_since = None;
        let everywhere: BTreeSet<Fingerprint> =
            entries.fold(first.clone(), |both, entry| both.intersection(entry).copied().collect());
        let known = std::mem::take(&mut self.since);
        self.since = everywhere
            .into_iter()
            .map(|fingerprint| (fingerprint, known.get(&fingerprint).map_or(now, |since| (*since).min(now))))
            .collect();
    }

    /// For how long the root has been in every entry; nothing when it is missing in one, or nothing is known yet.
    /// With no entry at all nobody calls, and every root will do.
    #[must_use]
    pub fn everywhere_for(&self, fingerprint: Fingerprint, now: Millis) -> Option<Millis> {
        let since = self.uncalled_since.or_else(|| self.since.get(&fingerprint).copied())?;
        Some((now - since).max(0))
    }

    /// Whether all the roots have been in every entry for at least `settle`: a change of certificate that depends on
    /// them is then safe also for an API server that hears of configurations a little later than we do.
    #[must_use]
    pub fn settled(&self, roots: &[Fingerprint], settle: Millis, now: Millis) -> bool {
        roots.iter().all(|root| self.everywhere_for(*root, now).is_some_and(|held| held >= settle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(byte: u8) -> Fingerprint {
        Fingerprint([byte; 32])
    }

    fn observed(entries: &[&[u8]]) -> Observed {
        let entries = entries.iter().map(|entry| entry.iter().copied().map(fingerprint).collect()).collect();
        Observed { synced: true, entries, names: BTreeSet::new() }
    }

    #[test]
    fn a_root_must_be_in_every_entry_without_a_break() {
        let mut trust = Trust::default();
        trust.observe(&observed(&[&[1, 2], &[1]]), 100);
        assert_eq!(trust.everywhere_for(fingerprint(1), 150), Some(50));
        assert_eq!(trust.everywhere_for(fingerprint(2), 150), None);
        trust.observe(&observed(&[&[1, 2], &[2]]), 200);
        assert_eq!(trust.everywhere_for(fingerprint(1), 250), None);
        trust.observe(&observed(&[&[1, 2], &[1, 2]]), 300);
        assert_eq!(trust.everywhere_for(fingerprint(1), 300), Some(0), "the break counts");
        assert_eq!(trust.everywhere_for(fingerprint(2), 300), Some(100), "here since 200");
    }

    #[test]
    fn nothing_is_trusted_before_the_first_reading_and_everything_when_nobody_calls() {
        let mut trust = Trust::default();
        trust.observe(&Observed::default(), 100);
        assert_eq!(trust.everywhere_for(fingerprint(1), 200), None);
        trust.observe(&observed(&[]), 300);
        assert_eq!(trust.everywhere_for(fingerprint(1), 400), Some(100));
        assert!(trust.settled(&[fingerprint(1), fingerprint(2)], 100, 400));
        trust.observe(&observed(&[&[]]), 500);
        assert_eq!(trust.everywhere_for(fingerprint(1), 600), None);
    }

    #[test]
    fn a_clock_set_back_a_day_delays_a_change_by_no_more_than_the_settling_time() {
        let day = 86_400_000;
        let mut trust = Trust::default();
        trust.observe(&observed(&[&[1]]), 2 * day);
        trust.observe(&observed(&[&[1]]), day);
        assert_eq!(trust.everywhere_for(fingerprint(1), day + 10), Some(10));
    }
}
