//! The store as the controllers see it, and beside it what only they keep; pure.
//!
//! In: changes from the watches, and what the server answered to our own writes. Out: the look-ups of the [`Store`], and what waits behind our
//! gate, is suspended by us, or belongs to the original operator of KAOS. Promise: a change that says nothing new changes none of it.

mod before;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

pub use crate::store::objects::{
    CardRef, CustomRef, PodRef, PolicyRef, Ref, RunRef, RuntimeRef, TaskRunRef, WorkloadRef,
};

use super::memory::Memory;
use crate::domain::keys;
use crate::store::{Change, Key, Kind, PodSeen, Reach, Store, What};

/// The cluster, as the controllers see it: every look-up of the [`Store`], and what only controllers keep.
#[derive(Debug)]
pub struct World {
    store: Store,
    /// Where the runtimes of tool servers are listed, as the settings have it.
    registry_namespace: Option<Arc<str>>,
    gated: BTreeSet<Key>,
    gatings: u64,
    suspended: BTreeSet<Key>,
    /// Leases of the original operator of KAOS.
    before: before::Before,
    /// What plans leave behind for later ones.
    pub memory: Memory,
    /// When a probe last came back without our gate.
    pub proved: Option<Duration>,
    /// Probes that were answered; the next one goes to another namespace.
    pub probes: usize,
}

impl Deref for World {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl World {
    /// An empty cluster.
    #[must_use]
    pub fn new(operator_namespace: &str) -> Self {
        Self {
            store: Store::new(operator_namespace),
            registry_namespace: None,
            gated: BTreeSet::new(),
            gatings: 0,
            suspended: BTreeSet::new(),
            before: before::Before::default(),
            memory: Memory::default(),
            proved: None,
            probes: 0,
        }
    }

    /// Where the runtimes of tool servers are listed: where the settings have it, or in our own namespace. The name of the original's own means
    /// ours where no namespace has it.
    #[must_use]
    pub fn registry_namespace(&self) -> &str {
        let named = self.registry_namespace.as_deref();
        let there = named.filter(|name| *name != keys::KAOS_NAMESPACE || self.namespace(name).is_some());
        there.unwrap_or(self.operator_namespace())
    }

    /// Takes note of where the settings have them.
    pub fn set_registry_namespace(&mut self, name: Option<&str>) {
        self.registry_namespace = name.map(Into::into);
    }

    /// Takes note of a change at `now`; false when it says nothing new.
    pub fn apply(&mut self, change: &Change, now: Duration) -> bool {
        if !self.store.apply(change, now) {
            return false;
        }
        let waits = |what: &What| matches!(what, What::Pod(seen) if seen.gated && !seen.terminating);
        self.gatings += u64::from(mark(&mut self.gated, change, Kind::Pod, waits));
        let suspended = |what: &What| matches!(what, What::Workload(seen) if seen.suspended_by_us);
        mark(&mut self.suspended, change, Kind::Job, suspended);
        if change.kind == Kind::Lease {
            self.before.note(&change.key, now, change.now.as_deref());
        }
        true
    }

    /// The cluster went back: the versions that are known, of objects and of deletions, say nothing about those that come.
    pub fn forget_versions(&mut self) {
        self.store.forget_versions();
    }

    /// Takes note of whether a kind can be read; false when that is known.
    pub fn set_reach(&mut self, kind: Kind, reach: Reach) -> bool {
        self.store.set_reach(kind, reach)
    }

    /// How long the original operator of KAOS still holds its Lease; `None`: it does not write.
    #[must_use]
    pub fn held_by_the_operator_before(&self, now: Duration) -> Option<Duration> {
        self.before.holds(now)
    }

    /// Whether the Lease of the original operator of KAOS names somebody, however long ago it was renewed.
    #[must_use]
    pub fn names_the_operator_before(&self) -> bool {
        self.before.is_named()
    }

    /// The Pods behind our gate, with their uids.
    pub fn gated(&self) -> impl Iterator<Item = (&Key, &PodSeen, &str)> {
        self.gated.iter().filter_map(|key| {
            let pod = self.pod(&key.namespace, &key.name)?;
            Some((key, pod.seen, pod.uid))
        })
    }

    /// Another number after every change to [`World::gated`].
    #[must_use]
    pub fn gatings(&self) -> u64 {
        self.gatings
    }

    /// The Jobs that we suspended.
    pub fn suspended(&self) -> impl Iterator<Item = (&Key, WorkloadRef<'_>)> {
        self.suspended.iter().filter_map(|key| Some((key, self.workload(Kind::Job, &key.namespace, &key.name)?)))
    }
}

/// Keeps the objects of a kind that are so; whether the changed one is or was.
fn mark(set: &mut BTreeSet<Key>, change: &Change, kind: Kind, is: fn(&What) -> bool) -> bool {
    if change.kind != kind {
        return false;
    }
    if change.now.as_ref().is_some_and(|now| is(&now.what)) {
        set.insert(change.key.clone());
        return true;
    }
    set.remove(&change.key)
}
