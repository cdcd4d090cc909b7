//! The verified cards that are kept, and which of them a caller sees; pure.
//!
//! In: cards, by namespace and name; a caller's namespace, what is known of namespaces, what is asked for. Out: pages of the catalogue, single cards.
//! Promises: one namespace keeps no more than [`CARDS`] and [`BYTES`], and never more than is left for all others; a namespace with more AgentCards
//! than the operator reads shows none, since some of them were not judged; whoever is in quarantine is shown to nobody; a caller learns of no namespace that is
//! neither its own nor shared, not even that it is there; for one page at most [`LOOKED`] cards are looked through.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use super::listed::{Listed, Wanted};
use crate::config::bounds::OBJECTS;
use crate::config::snapshot::Snapshot;
use crate::domain::quarantine::Quarantine;

/// Verified cards that are kept of one namespace.
pub(super) const CARDS: usize = 256;
/// Bytes of them.
pub(super) const BYTES: usize = 1024 * 1024;
/// Bytes of those of all namespaces.
pub(super) const BYTES_IN_ALL: usize = 24 * 1024 * 1024;
/// Lines of one page, at most and where nobody says.
pub(super) const LINES: (usize, usize) = (200, 100);
/// Bytes of the lines of one page.
pub(super) const PAGE: usize = 256 * 1024;
/// Cards that are looked through for one page: the threads that do it answer reviews as well.
pub(super) const LOOKED: usize = 2048;

/// One AgentCard.
#[derive(Debug)]
enum Slot {
    /// It is not verified.
    Unverified,
    /// It is, and there is no room for it.
    NoRoom,
    /// It is.
    Listed(Arc<Listed>),
}

impl Slot {
    fn bytes(&self) -> usize {
        match self {
            Slot::Listed(listed) => listed.bytes(),
            Slot::Unverified | Slot::NoRoom => 0,
        }
    }
}

#[derive(Debug, Default)]
struct Space {
    cards: BTreeMap<Arc<str>, Slot>,
    bytes: usize,
    listed: usize,
}

/// The cards of all namespaces.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    spaces: BTreeMap<Arc<str>, Space>,
    bytes: usize,
    listed: usize,
    waiting: usize,
}

/// What a caller asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Agents with each of these skills.
    pub(super) skills: Vec<String>,
    /// Lines of the page.
    pub(super) limit: Option<usize>,
    /// Behind that card.
    pub(super) after: Option<(String, String)>,
}

/// A part of the catalogue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// Its lines, in JSON, joined; none where none of the cards that were looked through has what is asked for.
    pub(super) lines: String,
    /// The last card that was looked through, where there are more.
    pub(super) last: Option<(Arc<str>, Arc<str>)>,
}

impl Shelf {
    /// The card of that name as it is now; `None`: it is not verified. Whether others may have room now that had none.
    pub(super) fn put(&mut self, namespace: &str, name: &str, card: Option<Listed>) -> bool {
        let before = self.take(namespace, name);
        let space = self.spaces.entry(namespace.into()).or_default();
        let slot = match card {
            None => Slot::Unverified,
            Some(card) => {
                let bytes = card.bytes();
                // Twice: what it takes is not left for others.
                let fits = space.listed < CARDS
                    && space.bytes + bytes <= BYTES
                    && space.bytes + 2 * bytes <= BYTES_IN_ALL.saturating_sub(self.bytes);
                if fits { Slot::Listed(card.into()) } else { Slot::NoRoom }
            }
        };
        let after = slot.bytes();
        (space.bytes, self.bytes) = (space.bytes + after, self.bytes + after);
        if matches!(slot, Slot::Listed(_)) {
            (space.listed, self.listed) = (space.listed + 1, self.listed + 1);
        }
        self.waiting += usize::from(matches!(slot, Slot::NoRoom));
        space.cards.insert(name.into(), slot);
        self.waiting > 0 && after < before
    }

    /// The card of that name is gone. Whether others may have room now that had none.
    pub(super) fn forget(&mut self, namespace: &str, name: &str) -> bool {
        let before = self.take(namespace, name);
        self.waiting > 0 && before > 0
    }

    /// Takes out what is known under that name, and says how many bytes that was.
    fn take(&mut self, namespace: &str, name: &str) -> usize {
        let Entry::Occupied(mut space) = self.spaces.entry(namespace.into()) else { return 0 };
        let Some(slot) = space.get_mut().cards.remove(name) else { return 0 };
        let bytes = slot.bytes();
        let of_space = space.get_mut();
        (of_space.bytes, self.bytes) = (of_space.bytes - bytes, self.bytes - bytes);
        if matches!(slot, Slot::Listed(_)) {
            (of_space.listed, self.listed) = (of_space.listed - 1, self.listed - 1);
        }
        self.waiting -= usize::from(matches!(slot, Slot::NoRoom));
        if of_space.cards.is_empty() {
            space.remove();
        }
        bytes
    }

    /// Everything that is known, by namespace and name.
    pub(super) fn names(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        self.spaces.iter().flat_map(|(namespace, space)| space.cards.keys().map(move |name| (namespace, name)))
    }

    /// Cards that are kept, that have no room, and bytes.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.listed, self.waiting, self.bytes)
    }

    /// The card of that name, where a caller of namespace `own` sees it.
    pub(super) fn card(&self, own: &str, snapshot: &Snapshot, (namespace, name): (&str, &str)) -> Option<Arc<Listed>> {
        let space = self.spaces.get(namespace).filter(|space| shows(space, (own, namespace), snapshot))?;
        match space.cards.get(name)? {
            Slot::Listed(listed) if !is_held(held(snapshot, namespace), listed) => Some(listed.clone()),
            _ => None,
        }
    }

    /// What a caller of namespace `own` sees, in order.
    pub(super) fn page(&self, own: &str, snapshot: &Snapshot, query: &Query) -> Page {
        let limit = query.limit.unwrap_or(LINES.1).clamp(1, LINES.0);
        let after = query.after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let wanted = Wanted::each_of(&query.skills);
        let mut page = Page { lines: String::new(), last: None };
        let (mut count, mut looked, mut last) = (0, 0, None);
        let from = after.map_or(Bound::Unbounded, |(namespace, _)| Bound::Included(namespace));
        for (namespace, space) in self.spaces.range::<str, _>((from, Bound::Unbounded)) {
            if !shows(space, (own, namespace), snapshot) {
                continue;
            }
            let behind = match after {
                Some((first, name)) if first == &**namespace => Bound::Excluded(name),
                _ => Bound::Unbounded,
            };
            let held = held(snapshot, namespace);
            for (name, slot) in space.cards.range::<str, _>((behind, Bound::Unbounded)) {
                // The name of one that is not shown is no place to go on from.
                let Slot::Listed(listed) = slot else { continue };
                if is_held(held, listed) {
                    continue;
                }
                let fits = listed.has(&wanted);
                let is_full = count == limit || (count > 0 && page.lines.len() + listed.line.len() > PAGE);
                if looked == LOOKED || (fits && is_full) {
                    page.last = last.map(|(namespace, name): (&Arc<str>, &Arc<str>)| (namespace.clone(), name.clone()));
                    return page;
                }
                if fits {
                    if count > 0 {
                        page.lines.push(',');
                    }
                    page.lines.push_str(&listed.line);
                    count += 1;
                }
                (looked, last) = (looked + 1, Some((namespace, name)));
            }
        }
        page
    }
}

/// Whether a caller of the first namespace sees the second.
fn shows(space: &Space, (own, namespace): (&str, &str), snapshot: &Snapshot) -> bool {
    let Some(view) = snapshot.namespace(namespace) else { return false };
    (own == namespace || view.shared) && space.cards.len() <= OBJECTS
}

/// Who of a namespace is in quarantine.
fn held<'s>(snapshot: &'s Snapshot, namespace: &str) -> Option<&'s Quarantine> {
    snapshot.namespace(namespace)?.quarantine.as_deref()
}

fn is_held(held: Option<&Quarantine>, listed: &Listed) -> bool {
    held.is_some_and(|held| held.holds(&listed.workload))
}
