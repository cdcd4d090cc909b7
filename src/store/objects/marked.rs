//! The few objects that are looked for across all namespaces: Pods behind our gate, Jobs that we suspended, and what belongs to the original
//! operator of KAOS.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Store, WorkloadRef};
use crate::domain::keys;
use crate::store::{Change, Key, Kind, PodSeen, What};

/// Where they are.
#[derive(Debug, Clone, Default)]
pub(super) struct Marked {
    gated: BTreeSet<Key>,
    gatings: u64,
    suspended: BTreeSet<Key>,
}

impl Marked {
    /// Takes note of a change that says something new.
    pub(super) fn note(&mut self, change: &Change) {
        let waits = |what: &What| matches!(what, What::Pod(seen) if seen.gated && !seen.terminating);
        self.gatings += u64::from(mark(&mut self.gated, change, Kind::Pod, waits));
        let suspended = |what: &What| matches!(what, What::Workload(seen) if seen.suspended_by_us);
        mark(&mut self.suspended, change, Kind::Job, suspended);
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

impl Store {
    /// The Pods behind our gate, with their uids.
    pub fn gated(&self) -> impl Iterator<Item = (&Key, &PodSeen, &str)> {
        self.marked.gated.iter().filter_map(|key| {
            let pod = self.pod(&key.namespace, &key.name)?;
            Some((key, pod.seen, pod.uid))
        })
    }

    /// Another number after every change to [`Store::gated`].
    #[must_use]
    pub fn gatings(&self) -> u64 {
        self.marked.gatings
    }

    /// The Jobs that we suspended.
    pub fn suspended(&self) -> impl Iterator<Item = (&Key, WorkloadRef<'_>)> {
        let job = |key: &Key| self.workload(Kind::Job, &key.namespace, &key.name);
        self.marked.suspended.iter().filter_map(move |key| Some((key, job(key)?)))
    }

    /// How long the original operator of KAOS still holds its Lease in one of these namespaces; `None`: it does not write.
    #[must_use]
    pub fn held_by_the_operator_before(&self, now: Duration, believed: &BTreeSet<&str>) -> Option<Duration> {
        self.before.holds(now, believed)
    }

    /// Whether the Lease of the original operator of KAOS names somebody in one of these namespaces, however long ago it was renewed.
    #[must_use]
    pub fn names_the_operator_before(&self, believed: &BTreeSet<&str>) -> bool {
        self.before.is_named(believed)
    }

    /// The Leases of that name that somebody holds in other namespaces than these: nothing waits for them.
    pub fn not_believed<'a>(&'a self, believed: &'a BTreeSet<&str>) -> impl Iterator<Item = &'a Key> {
        self.before.elsewhere(believed)
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
}
