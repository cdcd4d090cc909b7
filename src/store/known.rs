//! What one list-and-watch knows of its objects: which there are, and at which version; pure.
//!
//! In: the objects of lists and the events of watches, in the order in which they come. Out: what is news. Promises: a list is the truth,
//! even when its versions are smaller than what was known, or the same for something else (a restored backup); an event that is old is only
//! late; an object that a complete list lacks is gone, and one that half a list lacks is not.

use std::collections::BTreeMap;

use super::{Change, Key, Kind};

/// The objects of one list-and-watch.
#[derive(Debug, Default)]
pub struct KnownObjects {
    versions: BTreeMap<Key, u64>,
    /// Those of the list that is being read.
    fresh: BTreeMap<Key, u64>,
}

impl KnownObjects {
    /// One object of a list, which is the first one or another; what is news of it.
    pub fn listed(&mut self, mut change: Change, again: bool) -> Option<Change> {
        change.listed = true;
        if change.now.is_some() {
            self.fresh.insert(change.key.clone(), change.version);
        }
        self.news(change, |known, version| known == version && !again)
    }

    /// One object as an event has it; what is news of it.
    pub fn changed(&mut self, mut change: Change) -> Option<Change> {
        change.listed = false;
        self.news(change, |known, version| version <= known)
    }

    /// An object that an event says is gone, as it was last.
    pub fn deleted(&mut self, kind: Kind, (key, version): (Key, u64)) -> Option<Change> {
        let known = self.versions.get(&key).is_some_and(|known| version == 0 || *known <= version);
        known.then(|| {
            self.versions.remove(&key);
            Change { kind, key, version, listed: false, now: None }
        })
    }

    /// The list is complete: what it lacked is gone.
    pub fn complete(&mut self, kind: Kind) -> Vec<Change> {
        let fresh = std::mem::take(&mut self.fresh);
        let before = std::mem::replace(&mut self.versions, fresh);
        let gone = before.into_keys().filter(|key| !self.versions.contains_key(key));
        gone.map(|key| Change { kind, key, version: 0, listed: true, now: None }).collect()
    }

    /// The list that was being read failed: half a list is no list.
    pub fn abandon(&mut self) {
        self.fresh.clear();
    }

    /// None is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }

    fn news(&mut self, change: Change, stale: impl Fn(u64, u64) -> bool) -> Option<Change> {
        let known = self.versions.get(&change.key).copied();
        let interesting = change.now.is_some();
        if known.is_some_and(|known| stale(known, change.version)) || (!interesting && known.is_none()) {
            return None;
        }
        if interesting {
            self.versions.insert(change.key.clone(), change.version);
        } else {
            self.versions.remove(&change.key);
        }
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::store::{NamespaceSeen, Observed, What};

    fn seen(name: &str, version: u64, there: bool) -> Change {
        let what = What::Namespace(NamespaceSeen::default());
        let now = there.then(|| Arc::new(Observed { uid: "u".into(), version, what }));
        Change { kind: Kind::Namespace, key: Key::new("", name), version, listed: false, now }
    }

    #[test]
    fn a_list_may_go_back_and_an_event_may_not() {
        let mut known = KnownObjects::default();
        assert!(known.listed(seen("a", 7, true), false).is_some_and(|change| change.listed));
        assert!(known.complete(Kind::Namespace).is_empty());
        assert!(known.changed(seen("a", 7, true)).is_none(), "known");
        assert!(known.changed(seen("a", 6, true)).is_none(), "late");
        assert!(known.changed(seen("a", 9, true)).is_some_and(|change| !change.listed));
        assert!(known.listed(seen("a", 3, true), true).is_some(), "a backup was put back");
        assert!(known.listed(seen("a", 3, true), true).is_some(), "the same version, and maybe something else");
        assert!(known.listed(seen("a", 3, true), false).is_none(), "the first list, begun again");
        known.complete(Kind::Namespace);
        assert!(known.changed(seen("a", 4, true)).is_some(), "what follows is compared with the list");
    }

    #[test]
    fn what_a_whole_list_lacks_is_gone_and_what_half_a_list_lacks_is_not() {
        let mut known = KnownObjects::default();
        for name in ["a", "b", "c"] {
            assert!(known.changed(seen(name, 5, true)).is_some());
        }
        known.listed(seen("a", 5, true), true);
        known.abandon();
        known.listed(seen("b", 5, true), true);
        let gone: Vec<_> = known.complete(Kind::Namespace).into_iter().map(|change| change.key.name).collect();
        assert_eq!(gone, [Arc::from("a"), Arc::from("c")], "in order, and of the whole list alone");
        assert!(!known.is_empty());
        assert!(known.complete(Kind::Namespace).len() == 1 && known.is_empty(), "a list of nothing");
    }

    #[test]
    fn what_goes_is_told_once() {
        let mut known = KnownObjects::default();
        known.changed(seen("a", 5, true));
        let key = Key::new("", "a");
        assert!(known.deleted(Kind::Namespace, (key.clone(), 4)).is_none(), "late");
        assert!(known.deleted(Kind::Namespace, (key.clone(), 6)).is_some());
        assert!(known.deleted(Kind::Namespace, (key, 6)).is_none());
        assert!(known.changed(seen("b", 7, false)).is_none(), "of no interest, and never known");
        known.changed(seen("b", 8, true));
        assert!(known.changed(seen("b", 9, false)).is_some(), "of no interest any more");
    }
}
