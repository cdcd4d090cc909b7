//! Whether the original operator of KAOS writes: its Lease, by when this process saw it change.
//!
//! Promises: a Lease counts in the namespaces that whoever asks names, since whoever may write Leases elsewhere would hold up everybody; no clock
//! but ours is asked. A Lease that is seen for the first time counts as renewed then, so one that was left behind holds its
//! duration and no longer; one that is renewed holds as long as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::store::{Key, LeaseSeen, Observed, What};

/// The Leases of that name, by place, each with when it was last seen to change.
#[derive(Debug, Clone, Default)]
pub(super) struct Before(BTreeMap<Key, (LeaseSeen, Duration)>);

impl Before {
    /// Takes note of what a Lease is at `now`.
    pub(super) fn note(&mut self, key: &Key, now: Duration, observed: Option<&Observed>) {
        match observed.map(|observed| &observed.what) {
            Some(What::Lease(seen)) => {
                let known = self.0.get(key).is_some_and(|(known, _)| known == seen);
                if !known {
                    self.0.insert(key.clone(), (seen.clone(), now));
                }
            }
            _ => {
                self.0.remove(key);
            }
        }
    }

    /// How long somebody still holds one of these namespaces; `None`: nobody does.
    pub(super) fn holds(&self, now: Duration, believed: &BTreeSet<&str>) -> Option<Duration> {
        let held = self.held().filter(|(key, ..)| believed.contains(&*key.namespace));
        let left = held.filter_map(|(_, seen, since)| {
            let end = since.saturating_add(Duration::from_secs(seen.seconds.into()));
            end.checked_sub(now).filter(|left| !left.is_zero())
        });
        left.max()
    }

    /// Whether one of these namespaces is held, however long ago it was renewed.
    pub(super) fn is_named(&self, believed: &BTreeSet<&str>) -> bool {
        self.held().any(|(key, ..)| believed.contains(&*key.namespace))
    }

    /// Those that somebody holds in other namespaces.
    pub(super) fn elsewhere<'a>(&'a self, believed: &'a BTreeSet<&str>) -> impl Iterator<Item = &'a Key> {
        self.held().map(|(key, ..)| key).filter(move |key| !believed.contains(&*key.namespace))
    }

    fn held(&self) -> impl Iterator<Item = (&Key, &LeaseSeen, Duration)> {
        let all = self.0.iter().map(|(key, (seen, since))| (key, seen, *since));
        all.filter(|(_, seen, _)| !seen.holder.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: &str) -> Observed {
        let seen = LeaseSeen { holder: holder.into(), seconds: 15, renewed: renewed.into() };
        Observed { uid: "u".into(), version: 1, what: What::Lease(seen) }
    }

    #[test]
    fn a_lease_holds_while_it_is_renewed_and_its_duration_after_it_was_last_seen_to_be() {
        let (key, at) = (Key::new("kaos-system", "kaos-operator.kaos.tools"), Duration::from_secs);
        let (mut before, places) = (Before::default(), BTreeSet::from(["kaos-system"]));
        assert_eq!((before.holds(at(0), &places), before.is_named(&places)), (None, false));
        before.note(&key, at(100), Some(&lease("go", "1")));
        assert_eq!((before.holds(at(110), &places), before.holds(at(115), &places)), (Some(at(5)), None));
        before.note(&key, at(112), Some(&lease("go", "1")));
        assert_eq!(before.holds(at(115), &places), None, "what was seen again was not renewed");
        before.note(&key, at(120), Some(&lease("go", "2")));
        assert_eq!(before.holds(at(121), &places), Some(at(14)));
        before.note(&key, at(122), Some(&lease("", "3")));
        assert_eq!((before.holds(at(122), &places), before.is_named(&places)), (None, false), "it was released");
        before.note(&key, at(123), Some(&lease("go", "4")));
        before.note(&key, at(124), None);
        assert_eq!(before.holds(at(124), &places), None, "it was deleted");
    }
    /// Whoever has ClusterRole `edit` in one namespace writes Leases there.
    #[test]
    fn a_lease_of_a_namespace_that_nobody_named_holds_nothing() {
        let at = Duration::from_secs;
        let of = |namespace: &str| Key::new(namespace, "kaos-operator.kaos.tools");
        let mut before = Before::default();
        before.note(&of("team-a"), at(100), Some(&lease("x", "1")));
        let places = BTreeSet::from(["kaos-system", "charts"]);
        assert_eq!((before.holds(at(101), &places), before.is_named(&places)), (None, false));
        assert_eq!(before.elsewhere(&places).collect::<Vec<_>>(), [&of("team-a")]);
        before.note(&of("charts"), at(101), Some(&lease("go", "1")));
        assert_eq!((before.holds(at(102), &places), before.is_named(&places)), (Some(at(14)), true));
        assert_eq!(before.elsewhere(&places).count(), 1);
        before.note(&of("team-a"), at(103), Some(&lease("", "2")));
        assert_eq!(before.elsewhere(&places).count(), 0, "nobody holds it");
    }
}
