//! The loop as one who is told of every change by the keeper, under its lock: the queue is filled, and the loop is woken.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::machine::Loop;
use crate::cluster::keeper::Witness;
use crate::store::{Change, Store, Taken};

/// What the keeper tells, into the loop.
pub(in crate::controllers) struct ToldLoop {
    pub(in crate::controllers) work: Arc<Mutex<Loop>>,
    pub(in crate::controllers) wake: Arc<Notify>,
}

impl ToldLoop {
    fn tell(&self, tell: impl FnOnce(&mut Loop)) {
        tell(&mut self.work.lock());
        self.wake.notify_one();
    }
}

impl Witness for ToldLoop {
    fn before(&mut self, store: &Store, change: &Change, alters: bool) {
        // Of the others none is told of afterwards either.
        if alters {
            self.work.lock().before(store, change);
        }
    }

    fn after(&mut self, store: &Store, change: &Change, taken: Taken) {
        if taken == Taken::New {
            self.tell(|work| work.after(store, change));
        }
    }

    fn reach(&mut self, _: &Store) {
        self.tell(Loop::reach);
    }

    fn listed(&mut self, _: &Store, missing: usize) {
        self.tell(|work| work.listed(missing));
    }

    fn turned(&mut self, _: &Store) {
        self.tell(Loop::turned);
    }
}
