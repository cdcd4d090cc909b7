//! The one rule by which a store takes note of what happens to an object.
//!
//! In: changes, in any order between objects, selections and ways. Out: what each comes to ([`Taken`]). Promises: an event or answer that is
//! older than what is known changes nothing, nor does one of before a deletion; a list is the truth for its selection, even when its versions are
//! smaller, and no answer that is as old as a list brings back what that lacks; an object is gone when no selection delivers it any longer, whichever is faster; versions are compared within one epoch alone.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::namespace::Entry;
use super::{Store, place};
use crate::store::{Change, Key, Kind, Observed, Over, Selection, SelectionId, Taken, Via, What};

/// Deletions that are remembered, so that a late event or answer does not bring the object back: as many as these, and at most as many before them.
const TOMBS: usize = 2048;

impl Kind {
    /// Its selections, each with its number in the table of those of all kinds.
    pub fn selected(self) -> impl Iterator<Item = (SelectionId, &'static Selection)> {
        let of_kind = |kind: &Kind| {
            let kind = *kind;
            kind.descriptor().selections.iter().map(move |selection| (kind, selection))
        };
        let all = Kind::ALL.iter().flat_map(of_kind).zip(0..);
        let its = all.filter(move |((kind, _), _)| *kind == self);
        its.map(|((_, selection), number)| (SelectionId::new(number), selection))
    }
}

/// What a change came to, and what was kept of the object before: dropping it costs by its size, so it is for the caller to drop.
pub type Replaced = (Taken, Option<Arc<Observed>>);

impl Store {
    /// Takes note of a change at `now`; false when nothing that is kept is other than before.
    pub fn apply(&mut self, change: &Change, now: Duration) -> bool {
        self.take(change, now).0 == Taken::New
    }

    /// Takes note of a change at `now`.
    pub fn take(&mut self, change: &Change, now: Duration) -> Replaced {
        let place = place(change.kind, &change.key);
        match &change.now {
            Some(observed) => self.there(change, observed, (place, now)),
            None => self.not_there(change, &place, now),
        }
    }

    /// Whether a change, if it counts, makes anything that is kept of its object other than it is.
    #[must_use]
    pub fn alters(&self, change: &Change) -> bool {
        let Some(observed) = &change.now else { return true };
        let known = self.entry(change.kind, &place(change.kind, &change.key), &change.key.name);
        known.is_none_or(|known| !known.observed.is_same(observed))
    }

    fn there(&mut self, change: &Change, observed: &Arc<Observed>, (place, now): (Arc<str>, Duration)) -> Replaced {
        let Change { kind, key, version, via, .. } = change;
        let (epoch, bit) = (self.epoch, via.selection().map_or(0, SelectionId::bit));
        let late = |known: u64| !via.is_truth() && *version != 0 && known > *version;
        if self.is_in_lists(change, &observed.what) {
            return (Taken::No, None);
        }
        // Of ConfigMaps only digests are kept: their texts would be the largest part of what is known here.
        let less = observed.kept(&self.operator_namespace, key);
        let kept = less.map_or_else(|| observed.clone(), Arc::new);
        let old = self.namespaces.get_mut(&place).and_then(|space| space.entry_mut(*kind, &key.name));
        let (mut from, mut arrived, mut same) = (bit, now, false);
        if let Some(old) = old {
            old.from |= bit;
            let comparable = old.epoch == epoch;
            if comparable && late(old.version) {
                return (Taken::No, None);
            }
            same = old.observed.is_same(&kept);
            if same && comparable && !via.is_truth() && old.version == *version {
                return (Taken::No, None);
            }
            from = old.from;
            if old.observed.uid == kept.uid {
                arrived = old.arrived;
            }
        } else {
            let object = (*kind, key.clone());
            if self.gone.iter().filter_map(|tombs| tombs.get(&object)).any(|first| late(*first)) {
                return (Taken::No, None);
            }
        }
        if !same {
            self.marked.note(change);
            if *kind == Kind::Lease {
                self.before.note(key, now, Some(&kept));
            }
        }
        let object = (*kind, key.clone());
        for tombs in &mut self.gone {
            tombs.remove(&object);
        }
        let entry = Entry { observed: kept, version: *version, arrived, epoch, from };
        let space = self.namespaces.entry(place).or_default();
        match space.entry_mut(*kind, &key.name).filter(|_| same) {
            Some(known) => (Taken::Same, Some(std::mem::replace(known, entry).observed)),
            None => (Taken::New, space.put(*kind, &key.name, entry)),
        }
    }

    fn not_there(&mut self, change: &Change, place: &Arc<str>, now: Duration) -> Replaced {
        let Change { kind, key, version, via, .. } = change;
        let epoch = self.epoch;
        let listed = match via {
            Via::List(selection) => self.list_of(*kind, *selection, key),
            _ => 0,
        };
        let old = self.namespaces.get_mut(place).and_then(|space| space.entry_mut(*kind, &key.name));
        let Some(old) = old else {
            if via.selection().is_none() {
                self.bury((*kind, key.clone()), version + 1);
            }
            return (Taken::No, None);
        };
        let late = !via.is_truth() && *version != 0 && old.epoch == epoch && old.version > *version;
        // An answer has come between the list's end and this.
        if listed != 0 && old.epoch == epoch && old.version > listed {
            return (Taken::No, None);
        }
        let first = match via {
            Via::Answer | Via::File => version + 1,
            // Another selection may have it at that very version: a label moved it.
            Via::Watch(_) if *version != 0 => *version,
            // A version of another history says nothing of those that come.
            Via::Watch(_) | Via::List(_) => {
                if old.epoch == epoch {
                    old.version + 1
                } else {
                    0
                }
            }
        };
        if let Some(selection) = via.selection() {
            let mine = old.from & selection.bit() != 0;
            old.from &= !selection.bit();
            // Of one that nobody delivered yet an answer told: it is not of interest to this selection, unless a list lacks it.
            let counts = mine || via.is_truth();
            if old.from != 0 || !counts {
                return (Taken::No, None);
            }
        }
        if late {
            return (Taken::No, None);
        }
        self.bury((*kind, key.clone()), first);
        self.marked.note(change);
        if *kind == Kind::Lease {
            self.before.note(key, now, None);
        }
        let Some(space) = self.namespaces.get_mut(place) else { return (Taken::New, None) };
        let old = space.remove(*kind, &key.name);
        if space.is_empty() {
            self.namespaces.remove(place);
        }
        (Taken::New, old)
    }

    fn bury(&mut self, object: (Kind, Key), first: u64) {
        let [last, before] = &mut self.gone;
        // A deletion of before that one may be told of late.
        let known = [before.remove(&object), last.get(&object).copied()].into_iter().flatten().max();
        let first = first.max(known.unwrap_or_default());
        if last.len() >= TOMBS {
            *before = std::mem::take(last);
        }
        last.insert(object, first);
    }

    /// A complete list of a selection is of that version, in that `namespace` or in all: an answer that is no newer tells of nothing that the list
    /// lacks. Versions that are no numbers are compared with nothing.
    pub fn listed(&mut self, (kind, selection, namespace): (Kind, SelectionId, Option<&str>), version: u64) {
        let lists = self.lists.entry((kind, namespace.map(Arc::from))).or_default();
        match lists.iter_mut().find(|(of, _)| *of == selection) {
            Some((_, known)) => *known = version,
            None => lists.push((selection, version)),
        }
    }

    /// The versions of the last complete lists of a kind in which an object would be.
    fn lists_at<'a>(&'a self, kind: Kind, key: &Key) -> impl Iterator<Item = (SelectionId, u64)> + use<'a> {
        let places = [None, Some(key.namespace.clone())];
        places.into_iter().filter_map(move |place| self.lists.get(&(kind, place))).flatten().copied()
    }

    /// The version of the last complete list of that selection; 0 where there was none.
    fn list_of(&self, kind: Kind, selection: SelectionId, key: &Key) -> u64 {
        self.lists_at(kind, key).find(|(of, _)| *of == selection).map_or(0, |(_, version)| version)
    }

    /// Whether a change is an answer that is no newer than a list in which its object would be: it was there, as it was then, or is gone.
    fn is_in_lists(&self, change: &Change, what: &What) -> bool {
        let Change { kind, key, version, via, .. } = change;
        if *via != Via::Answer || *version == 0 {
            return false;
        }
        let would = |selection: SelectionId| {
            let row = kind.selected().find(|(id, _)| *id == selection).map(|(_, row)| row);
            self.would_deliver(*kind, row, (key, what))
        };
        self.lists_at(*kind, key).any(|(selection, listed)| *version <= listed && would(selection))
    }

    /// The change as there is room for it: of an object that is over a bound, the answer to a write of ours is cut as well.
    #[must_use]
    pub fn admitted<'a>(&self, change: &'a Change) -> Cow<'a, Change> {
        let cut = || {
            let now = change.now.as_deref().filter(|_| change.via == Via::Answer)?;
            let known = self.entry(change.kind, &place(change.kind, &change.key), &change.key.name)?;
            let over = known.observed.what.over().filter(|over| matches!(over, Over::Count | Over::Total))?;
            let what = now.what.slim(over)?;
            let now = Observed { uid: now.uid.clone(), version: now.version, what };
            Some(Change { now: Some(Arc::new(now)), ..change.clone() })
        };
        cut().map_or(Cow::Borrowed(change), Cow::Owned)
    }

    /// What a complete list of a selection lacks, which has that version: what the selection delivered so far, in that `namespace` or in
    /// all. What was learned at a later version is not missing. What only answers told of is, where that selection would deliver it.
    #[must_use]
    pub fn missing(
        &self,
        (kind, selection, namespace): (Kind, SelectionId, Option<&str>),
        (listed, version): (&HashSet<Key>, u64),
    ) -> Vec<Change> {
        let row = kind.selected().find(|(id, _)| *id == selection).map(|(_, row)| row);
        let of = self.delivered(kind, namespace).filter(|(key, entry)| {
            let would = || self.would_deliver(kind, row, (key, &entry.observed.what));
            let is_its = if entry.from == 0 { version != 0 && would() } else { entry.from & selection.bit() != 0 };
            let later = version != 0 && entry.epoch == self.epoch && entry.version > version;
            is_its && !later && !listed.contains(key)
        });
        of.map(|(key, _)| Change { kind, key, version: 0, via: Via::List(selection), now: None }).collect()
    }

    /// Whether a selection of that kind certainly delivers an object of which that is kept: the only one does. Of several, what labels say cannot be
    /// told from it.
    fn would_deliver(&self, kind: Kind, row: Option<&Selection>, (key, what): (&Key, &What)) -> bool {
        let would = |row: &Selection| {
            row.labels.is_none()
                && row.name.is_none_or(|name| *name == *key.name)
                && (!row.own || *key.namespace == *self.operator_namespace)
                && (row.keep)(key, what)
        };
        kind.descriptor().selections.len() == 1 || row.is_some_and(would)
    }

    /// Whether a selection has delivered anything that is there, in that `namespace` or in all.
    #[must_use]
    pub fn delivers(&self, (kind, selection, namespace): (Kind, SelectionId, Option<&str>)) -> bool {
        self.delivered(kind, namespace).any(|(_, entry)| entry.from & selection.bit() != 0)
    }

    fn delivered<'a>(&'a self, kind: Kind, only: Option<&'a str>) -> impl Iterator<Item = (Key, &'a Entry)> {
        let spaces = self.namespaces.iter().filter(move |(name, _)| only.is_none_or(|only| *only == ***name));
        spaces.flat_map(move |(place, space)| {
            let namespace = if kind == Kind::Namespace { Arc::from("") } else { place.clone() };
            space
                .entries(kind)
                .map(move |(name, entry)| (Key { namespace: namespace.clone(), name: name.clone() }, entry))
        })
    }

    /// Which history of the cluster is followed.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The cluster went back: the versions that are known, of objects and of deletions, say nothing about those of that epoch.
    pub fn turn_to(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.gone.iter_mut().for_each(HashMap::clear);
        self.lists.clear();
    }
}
