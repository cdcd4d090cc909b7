//! What the controllers know of the cluster; pure.
//!
//! In: changes from the watches, and what the server answered to our own writes. Out: look-ups. Promises: an older
//! version never replaces a newer one, so the answer to a write counts at once and a watch event that was already under
//! way does not undo it; a new list is the truth in any case. Memory: the projections, which the watches share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::api::observed::{
    Change, ConfigMapSeen, Key, Kind, NamespaceSeen, Observed, PodSeen, ServiceAccountSeen, What, WorkloadSeen,
};
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};

/// Deletions that are remembered, so that a late answer does not bring the object back.
const TOMBS: usize = 4096;

/// The cluster, as the controllers see it.
#[derive(Debug)]
pub struct World {
    operator_namespace: Arc<str>,
    objects: BTreeMap<Arc<str>, Space>,
    gone: HashMap<(Kind, Key), u64>,
    gated: BTreeSet<Key>,
    suspended: BTreeSet<Key>,
    /// When a probe last came back without our gate.
    pub proved: Option<Duration>,
    /// Probes that were answered; the next one goes to another namespace.
    pub probes: usize,
}

/// One namespace.
#[derive(Debug, Default)]
struct Space {
    objects: BTreeMap<(Kind, Arc<str>), Entry>,
    /// Workloads by the ServiceAccount name that their identity gives.
    users: BTreeMap<Arc<str>, BTreeSet<(Kind, Arc<str>)>>,
}

#[derive(Debug)]
struct Entry {
    observed: Arc<Observed>,
    arrived: Duration,
}

/// A workload with what identifies it.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadRef<'a> {
    /// Kind.
    pub kind: Kind,
    /// `metadata.name`.
    pub name: &'a Arc<str>,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// The rest.
    pub seen: &'a WorkloadSeen,
}

impl WorkloadRef<'_> {
    /// The workload whose identity its Pods carry.
    #[must_use]
    pub fn identity(&self) -> Workload {
        identity(self.seen, self.name)
    }

    /// True unless a Deployment or CronJob controls it, which then answers for it.
    #[must_use]
    pub fn is_root(&self) -> bool {
        let kind =
            self.seen.controller.as_ref().and_then(|owner| WorkloadKind::from_group_kind(owner.group(), &owner.kind));
        !matches!(
            (self.seen.kind, kind),
            (WorkloadKind::ReplicaSet, Some(WorkloadKind::Deployment))
                | (WorkloadKind::Job, Some(WorkloadKind::CronJob))
        )
    }
}

/// The workload whose identity the Pods of `seen` carry: what `admission` finds from the Pod's side.
fn identity(seen: &WorkloadSeen, name: &str) -> Workload {
    let controller = seen.controller.as_ref().map(|owner| (owner.group(), &*owner.kind, &*owner.name));
    match seen.kind {
        WorkloadKind::ReplicaSet => {
            let labels = seen.template.as_ref().and_then(|template| template.pointer("/metadata/labels"));
            let hash = labels.and_then(|labels| labels.get(keys::LABEL_POD_TEMPLATE_HASH)?.as_str());
            Workload::of_replica_set(name, hash)
        }
        WorkloadKind::Job => Workload::of_job(name, controller),
        kind => Workload { kind, name: name.to_owned() },
    }
}

impl World {
    /// An empty cluster.
    #[must_use]
    pub fn new(operator_namespace: &str) -> Self {
        Self {
            operator_namespace: operator_namespace.into(),
            objects: BTreeMap::new(),
            gone: HashMap::new(),
            gated: BTreeSet::new(),
            suspended: BTreeSet::new(),
            proved: None,
            probes: 0,
        }
    }

    /// Our own namespace.
    #[must_use]
    pub fn operator_namespace(&self) -> &str {
        &self.operator_namespace
    }

    /// Takes note of a change at `now`; false when it says nothing new.
    pub fn apply(&mut self, change: &Change, now: Duration) -> bool {
        let Change { kind, key, version, listed, .. } = change;
        let place = place(*kind, key);
        let space = self.objects.entry(place.0.clone()).or_default();
        let slot = (*kind, place.1.clone());
        let old = space.objects.get(&slot);
        let newer = |known: u64| !listed && *version != 0 && known > *version;
        if old.is_some_and(|old| newer(old.observed.version))
            || (old.is_none() && self.gone.get(&(*kind, key.clone())).is_some_and(|tomb| newer(tomb + 1)))
        {
            if space.objects.is_empty() {
                self.objects.remove(&place.0);
            }
            return false;
        }
        let changed = match (old, &change.now) {
            (None, None) => false,
            (Some(old), Some(now)) => old.observed.what != now.what || old.observed.uid != now.uid,
            _ => true,
        };
        let arrived = old.filter(|old| change.now.as_ref().is_some_and(|now| now.uid == old.observed.uid));
        let arrived = arrived.map_or(now, |old| old.arrived);
        if let Some(old) = space.objects.remove(&slot) {
            space.unindex(&slot, &old.observed);
        }
        match &change.now {
            Some(observed) => {
                self.gone.remove(&(*kind, key.clone()));
                space.index(&slot, observed);
                space.objects.insert(slot, Entry { observed: observed.clone(), arrived });
            }
            None => {
                if self.gone.len() >= TOMBS {
                    self.gone.clear();
                }
                self.gone.insert((*kind, key.clone()), *version);
            }
        }
        if space.objects.is_empty() {
            self.objects.remove(&place.0);
        }
        mark(&mut self.gated, key, change, |what| matches!(what, What::GatedPod(_)), Kind::Pod);
        mark(&mut self.suspended, key, change, suspended_by_us, Kind::Job);
        changed
    }

    /// Every namespace in which something is known.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.objects.keys()
    }

    /// The namespace, while things can be created in it.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&NamespaceSeen> {
        match &self.entry(Kind::Namespace, name, name)?.observed.what {
            What::Namespace(seen) if !seen.terminating => Some(seen),
            _ => None,
        }
    }

    /// A ConfigMap with its uid and version.
    #[must_use]
    pub fn config_map(&self, namespace: &str, name: &str) -> Option<(&ConfigMapSeen, &Observed)> {
        let observed = &*self.entry(Kind::ConfigMap, namespace, name)?.observed;
        match &observed.what {
            What::ConfigMap(seen) => Some((seen, observed)),
            _ => None,
        }
    }

    /// A ServiceAccount with its uid and version, and when it was first seen.
    #[must_use]
    pub fn service_account(&self, namespace: &str, name: &str) -> Option<(&ServiceAccountSeen, &Observed, Duration)> {
        let entry = self.entry(Kind::ServiceAccount, namespace, name)?;
        match &entry.observed.what {
            What::ServiceAccount(seen) => Some((seen, &entry.observed, entry.arrived)),
            _ => None,
        }
    }

    /// One workload.
    #[must_use]
    pub fn workload(&self, kind: Kind, namespace: &str, name: &str) -> Option<WorkloadRef<'_>> {
        let (slot, entry) = self.objects.get(namespace)?.objects.get_key_value(&(kind, Arc::from(name)))?;
        workload(slot, entry)
    }

    /// The workloads of a namespace.
    pub fn workloads(&self, namespace: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        let space = self.objects.get(namespace);
        space.into_iter().flat_map(|space| &space.objects).filter_map(|(slot, entry)| workload(slot, entry))
    }

    /// The workloads whose identity gives that ServiceAccount name.
    pub fn users<'a>(&'a self, namespace: &str, account: &str) -> impl Iterator<Item = WorkloadRef<'a>> {
        let space = self.objects.get(namespace);
        let users = space.and_then(|space| Some((space, space.users.get(account)?)));
        users.into_iter().flat_map(|(space, users)| {
            users
                .iter()
                .filter_map(|slot| space.objects.get_key_value(slot))
                .filter_map(|(slot, entry)| workload(slot, entry))
        })
    }

    /// The Pods behind our gate, with their uids.
    pub fn gated(&self) -> impl Iterator<Item = (&Key, &PodSeen, &str)> {
        self.gated.iter().filter_map(|key| {
            let observed = &self.entry(Kind::Pod, &key.namespace, &key.name)?.observed;
            match &observed.what {
                What::GatedPod(seen) => Some((key, seen, &*observed.uid)),
                _ => None,
            }
        })
    }

    /// The Jobs that we suspended.
    pub fn suspended(&self) -> impl Iterator<Item = (&Key, WorkloadRef<'_>)> {
        self.suspended.iter().filter_map(|key| Some((key, self.workload(Kind::Job, &key.namespace, &key.name)?)))
    }

    fn entry(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Entry> {
        self.objects.get(namespace)?.objects.get(&(kind, Arc::from(name)))
    }
}

impl Space {
    fn index(&mut self, slot: &(Kind, Arc<str>), observed: &Observed) {
        if let What::Workload(seen) = &observed.what {
            let account: Arc<str> = identity(seen, &slot.1).service_account().into();
            self.users.entry(account).or_default().insert(slot.clone());
        }
    }

    fn unindex(&mut self, slot: &(Kind, Arc<str>), observed: &Observed) {
        if let What::Workload(seen) = &observed.what {
            let identity = identity(seen, &slot.1);
            let account = identity.service_account();
            if let Some(users) = self.users.get_mut(account) {
                users.remove(slot);
                if users.is_empty() {
                    self.users.remove(account);
                }
            }
        }
    }
}

fn workload<'a>((kind, name): &'a (Kind, Arc<str>), entry: &'a Entry) -> Option<WorkloadRef<'a>> {
    match &entry.observed.what {
        What::Workload(seen) => Some(WorkloadRef { kind: *kind, name, uid: &entry.observed.uid, seen }),
        _ => None,
    }
}

/// Namespaces are filed under their own name; other cluster-scoped objects under the empty one.
fn place(kind: Kind, key: &Key) -> (Arc<str>, Arc<str>) {
    match kind {
        Kind::Namespace => (key.name.clone(), key.name.clone()),
        _ => (key.namespace.clone(), key.name.clone()),
    }
}

fn suspended_by_us(what: &What) -> bool {
    matches!(what, What::Workload(seen) if seen.suspended_by_us)
}

fn mark(set: &mut BTreeSet<Key>, key: &Key, change: &Change, is: fn(&What) -> bool, kind: Kind) {
    if change.kind == kind {
        if change.now.as_ref().is_some_and(|now| is(&now.what)) {
            set.insert(key.clone());
        } else {
            set.remove(key);
        }
    }
}
