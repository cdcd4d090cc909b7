//! Whether the original operator of KAOS writes: its Lease, by when this process saw it change.
//!
//! Promise: no clock but ours is asked. A Lease that is seen for the first time counts as renewed then, so one that was left behind holds its
//! duration and no longer; one that is renewed holds as long as it is.

use std::collections::BTreeMap;
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

    /// How long somebody still holds one; `None`: nobody does.
    pub(super) fn holds(&self, now: Duration) -> Option<Duration> {
        let left = self.0.values().filter(|(seen, _)| !seen.holder.is_empty()).filter_map(|(seen, since)| {
            let end = since.saturating_add(Duration::from_secs(seen.seconds.into()));
            end.checked_sub(now).filter(|left| !left.is_zero())
        });
        left.max()
    }

    /// Whether one is held, however long ago it was renewed.
    pub(super) fn is_named(&self) -> bool {
        self.0.values().any(|(seen, _)| !seen.holder.is_empty())
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
        let mut before = Before::default();
        assert_eq!((before.holds(at(0)), before.is_named()), (None, false));
        before.note(&key, at(100), Some(&lease("go", "1")));
        assert_eq!((before.holds(at(110)), before.holds(at(115))), (Some(at(5)), None));
        before.note(&key, at(112), Some(&lease("go", "1")));
        assert_eq!(before.holds(at(115)), None, "what was seen again was not renewed");
        before.note(&key, at(120), Some(&lease("go", "2")));
        assert_eq!(before.holds(at(121)), Some(at(14)));
        before.note(&key, at(122), Some(&lease("", "3")));
        assert_eq!((before.holds(at(122)), before.is_named()), (None, false), "it was released");
        before.note(&key, at(123), Some(&lease("go", "4")));
        before.note(&key, at(124), None);
        assert_eq!(before.holds(at(124)), None, "it was deleted");
    }
}
