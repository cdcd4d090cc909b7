//! Those for which there is no room beside what is kept of all other namespaces; pure.
//!
//! In: where each ConfigMap stands, and how much is free. Out: who is to be read once more. Promises: whoever has waited longest comes first,
//! and nobody overtakes; nobody is read once more before there is room for what it said; what is promised to one is promised to no other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::slot::Slot;
use crate::config::bounds::Bound;
use crate::store::Key;

/// Where one stands.
#[derive(Debug, Default, Clone, Copy)]
pub(super) enum Crowded {
    /// It is not over the bound.
    #[default]
    No,
    /// It waits, at that place.
    Waits(u64),
    /// It is to be read once more: so many bytes are promised to it.
    Again(usize),
}

/// Everybody that waits for room.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// By place.
    waits: BTreeMap<u64, Key>,
    /// The place that was given last.
    last: u64,
    /// Bytes that are free, and promised to those that are read once more.
    promised: usize,
}

impl Crowd {
    /// Takes note of how one stands by now. One that had a promise and is still over the bound waits behind all others.
    pub(super) fn judge(&mut self, slot: &mut Slot, (namespace, name): (&Arc<str>, &Arc<str>)) {
        let is_over = slot.over == Some(Bound::Total);
        let stays = match slot.crowded {
            Crowded::No => !is_over,
            Crowded::Waits(_) => is_over,
            Crowded::Again(_) => slot.wants,
        };
        if stays {
            return;
        }
        self.leave(slot);
        if is_over {
            self.last += 1;
            self.waits.insert(self.last, Key { namespace: namespace.clone(), name: name.clone() });
            slot.crowded = Crowded::Waits(self.last);
        }
    }

    /// One waits no longer, and nothing is promised to it.
    pub(super) fn leave(&mut self, slot: &mut Slot) {
        match std::mem::take(&mut slot.crowded) {
            Crowded::No => {}
            Crowded::Waits(at) => drop(self.waits.remove(&at)),
            Crowded::Again(bytes) => self.promised -= bytes,
        }
    }

    /// Who has waited longest.
    pub(super) fn first(&self) -> Option<&Key> {
        self.waits.first_key_value().map(|(_, key)| key)
    }

    /// One that waits is to be read once more: there is room for what it said.
    pub(super) fn promise(&mut self, slot: &mut Slot) {
        self.leave(slot);
        self.promised += slot.needs();
        slot.crowded = Crowded::Again(slot.needs());
    }

    /// Bytes that are promised.
    pub(super) fn promised(&self) -> usize {
        self.promised
    }
}
