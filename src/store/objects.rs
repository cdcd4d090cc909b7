//! The objects of a cluster, and who points at whom; pure.
//!
//! In: changes, whichever way they come: by a watch, by a list, as the answer to a write of ours, or from a file. Out: look-ups. Promises: an older
//! version never replaces a newer one, so the answer to a write counts at once and a watch event that was already under
//! way does not undo it; a new list is the truth in any case, also for the answer to a write of before it; an object is gone when none of the
//! selections that delivered it has it any longer; taking note of a change and every look-up cost the same however many objects there are, but for the depth of a tree.

mod before;
mod builds;
mod cards;
mod marked;
mod namespace;
mod refs;
mod take;
mod trust;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use builds::{CustomRef, Ref, RunRef, TaskRunRef};
pub use cards::CardRef;
pub use refs::{PodRef, RuntimeRef, WorkloadRef};
pub use take::Replaced;
pub use trust::{ClusterPolicyRef, PolicyRef};

use crate::domain::workload::WorkloadKind;
use crate::store::{
    ConfigMapSeen, Key, Kind, NamespaceSeen, Observed, OwnerReference, Reach, SelectionId, ServiceAccountSeen, What,
};
use namespace::{Entry, Namespace};

/// A kind, and the namespace that it is followed in; `None`: in all.
type Followed = (Kind, Option<Arc<str>>);

/// What is known of a cluster.
#[derive(Debug, Clone)]
pub struct Store {
    operator_namespace: Arc<str>,
    /// The namespaces that are served; empty: all.
    served: Arc<[Arc<str>]>,
    namespaces: BTreeMap<Arc<str>, Namespace>,
    /// Objects that are gone, each with the first version of which news counts: the last ones, and those before them.
    gone: [HashMap<(Kind, Key), u64>; 2],
    /// Of which version the last complete list of each selection was.
    lists: HashMap<Followed, Vec<(SelectionId, u64)>>,
    /// Grows when the cluster went back: versions are compared within one epoch only.
    epoch: u64,
    reach: BTreeMap<Kind, Reach>,
    marked: marked::Marked,
    /// Leases of the original operator of KAOS.
    before: before::Before,
    /// Where the runtimes of tool servers are listed, as the settings have it.
    registry_namespace: Option<Arc<str>>,
}

impl Store {
    /// An empty cluster.
    #[must_use]
    pub fn new(operator_namespace: &str) -> Self {
        Self {
            operator_namespace: operator_namespace.into(),
            served: Arc::default(),
            namespaces: BTreeMap::new(),
            gone: Default::default(),
            lists: HashMap::new(),
            epoch: 0,
            reach: BTreeMap::new(),
            marked: marked::Marked::default(),
            before: before::Before::default(),
            registry_namespace: None,
        }
    }

    /// The same of a process that serves these namespaces alone; with none, every one.
    #[must_use]
    pub fn serving(mut self, namespaces: &[Arc<str>]) -> Self {
        self.served = namespaces.into();
        self
    }

    /// The namespaces that are served; empty where every one is.
    #[must_use]
    pub fn served(&self) -> &[Arc<str>] {
        &self.served
    }

    /// Our own namespace.
    #[must_use]
    pub fn operator_namespace(&self) -> &str {
        &self.operator_namespace
    }

    /// Takes note of whether a kind can be read; false when that is known.
    pub fn set_reach(&mut self, kind: Kind, reach: Reach) -> bool {
        self.reach.insert(kind, reach).unwrap_or_default() != reach
    }

    /// Whether what is known of a kind is all there is.
    #[must_use]
    pub fn reach(&self, kind: Kind) -> Reach {
        self.reach.get(&kind).copied().unwrap_or_default()
    }

    /// Whether an object of that kind that is not known certainly does not exist. False while the kind has not been
    /// read, or may not be: then nothing may be concluded from its absence.
    #[must_use]
    pub fn is_certain(&self, kind: Kind) -> bool {
        self.reach(kind) != Reach::Unknown
    }

    /// Every namespace in which something is known.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.keys()
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
        self.namespaces.get(namespace)?.workload(kind, name)
    }

    /// The workloads of a namespace.
    pub fn workloads(&self, namespace: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.namespaces.get(namespace).into_iter().flat_map(Namespace::workloads)
    }

    /// The workloads whose identity gives that ServiceAccount name.
    pub fn users<'a>(&'a self, namespace: &str, account: &str) -> impl Iterator<Item = WorkloadRef<'a>> {
        let space = self.namespaces.get(namespace);
        space.into_iter().flat_map(move |space| space.users(account))
    }

    /// The roots whose template names that ServiceAccount, enrolled or not.
    pub fn naming<'a>(&'a self, namespace: &str, account: &str) -> impl Iterator<Item = WorkloadRef<'a>> {
        let space = self.namespaces.get(namespace);
        space.into_iter().flat_map(move |space| space.naming(account))
    }

    /// The roots of a namespace whose Pods are, or are meant to be, enrolled: those with the label in their template
    /// and those that an AgentRuntime governs. ReplicaSets and Jobs that nobody controls are roots, too.
    pub fn governed(&self, namespace: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.namespaces.get(namespace).into_iter().flat_map(Namespace::governed)
    }

    /// The other roots of a namespace that carry the label themselves: the settings say whether that enrols them.
    pub fn asking(&self, namespace: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.namespaces.get(namespace).into_iter().flat_map(Namespace::asking)
    }

    /// [`Store::governed`] of all namespaces, with the namespace.
    pub fn enrolled(&self) -> impl Iterator<Item = (&Arc<str>, WorkloadRef<'_>)> {
        self.namespaces.iter().flat_map(|(name, space)| space.governed().map(move |workload| (name, workload)))
    }

    /// How many workloads are governed, in all namespaces.
    #[must_use]
    pub fn enrolled_count(&self) -> usize {
        self.namespaces.values().map(Namespace::governed_count).sum()
    }

    /// One AgentRuntime.
    #[must_use]
    pub fn agent_runtime(&self, namespace: &str, name: &str) -> Option<RuntimeRef<'_>> {
        self.namespaces.get(namespace)?.runtime(name)
    }

    /// The AgentRuntimes of a namespace.
    pub fn agent_runtimes(&self, namespace: &str) -> impl Iterator<Item = RuntimeRef<'_>> {
        self.namespaces.get(namespace).into_iter().flat_map(Namespace::runtimes)
    }

    /// The AgentRuntimes that point at a workload, whether or not it exists. The first one governs it unless it is
    /// being deleted: the oldest, then the one with the smallest uid; those being deleted come last.
    pub fn agent_runtimes_of<'a>(
        &'a self,
        namespace: &str,
        kind: WorkloadKind,
        name: &str,
    ) -> impl Iterator<Item = RuntimeRef<'a>> {
        let space = self.namespaces.get(namespace);
        space.into_iter().flat_map(move |space| space.runtimes_of(kind, name))
    }

    /// The workload that an AgentRuntime points at.
    #[must_use]
    pub fn target_of(&self, namespace: &str, runtime: &RuntimeRef<'_>) -> Option<WorkloadRef<'_>> {
        let target = runtime.seen.target.as_ref()?;
        self.workload(Kind::of_workload(target.kind)?, namespace, &target.name)
    }

    /// One Pod.
    #[must_use]
    pub fn pod(&self, namespace: &str, name: &str) -> Option<PodRef<'_>> {
        self.namespaces.get(namespace)?.pod(name)
    }

    /// The Pods of a workload, by the uids of their controllers: its own, and those of its ReplicaSets or Jobs.
    pub fn pods_of<'a>(&'a self, namespace: &str, workload: &WorkloadRef<'_>) -> impl Iterator<Item = PodRef<'a>> {
        let (space, uid) = (self.namespaces.get(namespace), workload.uid);
        space.into_iter().flat_map(move |space| space.pods_of(uid))
    }

    /// The ReplicaSets or Jobs that a workload controls.
    pub fn children<'a>(
        &'a self,
        namespace: &str,
        workload: &WorkloadRef<'_>,
    ) -> impl Iterator<Item = WorkloadRef<'a>> {
        let (space, uid) = (self.namespaces.get(namespace), workload.uid);
        space.into_iter().flat_map(move |space| space.children(uid))
    }

    /// The root behind a controller: itself, or the Deployment or CronJob of a ReplicaSet or Job. `None` while one of
    /// them is not known, or is another object of the same name.
    #[must_use]
    pub fn root_of(&self, namespace: &str, controller: &OwnerReference) -> Option<WorkloadRef<'_>> {
        let kind = WorkloadKind::from_group_kind(controller.group(), &controller.kind).and_then(Kind::of_workload)?;
        let owner = self.workload(kind, namespace, &controller.name).filter(|found| found.uid == controller.uid)?;
        if owner.is_root() { Some(owner) } else { self.root_of(namespace, owner.seen.controller.as_deref()?) }
    }

    /// References that were given out so far: what look-ups cost.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn visits(&self) -> usize {
        self.namespaces.values().map(Namespace::visits).sum()
    }

    fn entry(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Entry> {
        self.namespaces.get(namespace)?.entry(kind, name)
    }
}

/// Namespaces are filed under their own name; other cluster-scoped objects under the empty one.
fn place(kind: Kind, key: &Key) -> Arc<str> {
    if kind == Kind::Namespace { key.name.clone() } else { key.namespace.clone() }
}
