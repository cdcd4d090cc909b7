//! What the objects of all kinds take together; pure.
//!
//! In: what each [`super::Room`] of a process takes in and lets go. Out: whether there is room for one more beside those of all other kinds. Promises: the
//! rooms together come to no more than [`ALL_KEPT`] and [`FLOOR`] of each; one namespace comes to no more bytes, of all kinds together, than are left for all
//! others then; once something goes, [`Account::made`] says that those without room here are to be read anew, whatever kind they are of.

use std::collections::HashMap;
use std::sync::Arc;

/// Bytes that are kept of the objects of all kinds. With what is kept of ConfigMaps, and the process itself, that is less than its container may take.
pub(super) const ALL_KEPT: usize = 112 * 1024 * 1024;
/// Bytes of a kind for which there is room however much the others take.
pub(super) const FLOOR: usize = 1024 * 1024;

/// The account of one process.
#[derive(Debug, Default)]
pub(in crate::server::stores) struct Account {
    held: usize,
    /// Of each namespace, where it is anything.
    spaces: HashMap<Arc<str>, usize>,
    /// Objects for which there was no room here.
    waiting: usize,
    made: u64,
}

/// What one object is here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) bytes: usize,
    /// There was no room for it here.
    pub(super) waits: bool,
}

impl Account {
    /// Whether a namespace has room for so many bytes more.
    pub(super) fn has_room(&self, namespace: &str, bytes: usize) -> bool {
        let own = self.spaces.get(namespace).copied().unwrap_or_default();
        // Twice: what it takes is not left for others.
        own + 2 * bytes <= ALL_KEPT.saturating_sub(self.held)
    }

    /// An object of a namespace is no more what it was here.
    pub(super) fn leaves(&mut self, namespace: &str, was: Entry) {
        self.waiting -= usize::from(was.waits);
        self.held -= was.bytes;
        if let Some(own) = self.spaces.get_mut(namespace) {
            *own -= was.bytes;
            if *own == 0 {
                self.spaces.remove(namespace);
            }
        }
    }

    /// It is that now, where it `was` something else.
    pub(super) fn takes(&mut self, namespace: &Arc<str>, was: Entry, is: Entry) {
        self.waiting += usize::from(is.waits);
        self.held += is.bytes;
        if is.bytes > 0 {
            *self.spaces.entry(namespace.clone()).or_default() += is.bytes;
        }
        self.made += u64::from(self.waiting > 0 && is.bytes < was.bytes);
    }

    /// Another number each time that others may have room here that had none.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Bytes that are kept, and of how many namespaces.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.held, self.spaces.len())
    }
}
