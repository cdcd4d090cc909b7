//! Objects that more than one source may deliver: a label put on or taken off moves them between sources.
//!
//! In: what each source says. Out: whether that is news. Promises: an object is gone when no source knows it any
//! longer, and a later version is never followed by an earlier one, whichever source is faster. Pure but for its lock,
//! under which news is passed on, so that it cannot be overtaken.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::store::{Change, Key};

/// What is known of one object.
#[derive(Debug)]
struct Claim {
    version: u64,
    /// One bit per source.
    sources: u64,
}

/// The objects of one kind, by key.
#[derive(Debug, Default)]
pub(super) struct Claims {
    known: Mutex<HashMap<Key, Claim>>,
}

impl Claims {
    /// Takes note of a change that source number `at` (less than 64) reports; news is passed to `tell`. Returns whether
    /// it is news.
    pub(super) fn note(&self, at: usize, change: &Change, tell: impl FnOnce(&Change)) -> bool {
        let mut known = self.known.lock();
        let news = news(&mut known, 1 << at, change);
        if news {
            tell(change);
        }
        news
    }
}

fn news(known: &mut HashMap<Key, Claim>, bit: u64, change: &Change) -> bool {
    let claim = known.get_mut(&change.key);
    if change.now.is_none() {
        let Some(claim) = claim else { return false };
        claim.sources &= !bit;
        let gone = claim.sources == 0;
        if gone {
            known.remove(&change.key);
        }
        return gone;
    }
    match claim {
        None => {
            known.insert(change.key.clone(), Claim { version: change.version, sources: bit });
            true
        }
        Some(claim) => {
            claim.sources |= bit;
            // A list is the truth, even when its versions are smaller, or the same (a restored backup).
            let news = change.listed || change.version > claim.version;
            if news {
                claim.version = change.version;
            }
            news
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{ConfigMapSeen, Kind, Observed, What};

    fn seen(version: u64, there: bool) -> Change {
        let what = What::ConfigMap(ConfigMapSeen::default());
        let now = there.then(|| Arc::new(Observed { uid: "u".into(), version, what }));
        Change { kind: Kind::ConfigMap, key: Key::new("team", "step"), version, listed: false, now }
    }

    #[test]
    fn an_object_is_gone_when_no_source_knows_it() {
        let claims = Claims::default();
        let note = |at, version, there| claims.note(at, &seen(version, there), |_| ());
        assert!(note(0, 5, true));
        assert!(!note(1, 5, true), "the same from another source");
        assert!(note(1, 6, true), "its label was taken off: the other source knows it still");
        assert!(!note(0, 6, false));
        assert!(!note(0, 6, false), "nothing twice");
        assert!(note(1, 7, false));
        assert!(!note(0, 7, false));
        assert!(note(0, 9, true), "made again");
    }

    #[test]
    fn nothing_goes_back_but_by_a_list() {
        let claims = Claims::default();
        assert!(claims.note(0, &seen(7, true), |_| ()));
        assert!(!claims.note(1, &seen(6, true), |_| panic!("old")));
        let listed = Change { listed: true, ..seen(3, true) };
        assert!(claims.note(1, &listed, |_| ()));
        assert!(claims.note(0, &seen(4, true), |_| ()));
    }
}
