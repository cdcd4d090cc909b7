//! One namespace: its objects, and who points at whom.
//!
//! Every index is kept in step by [`Namespace::put`] and [`Namespace::remove`], which look only at the object that changes and
//! at what it points at. Pods and what stands between them and their root are found by the uid of the controller, so a
//! Deployment and a StatefulSet of one name never share any, nor does an object made again under its old name.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::refs::{PodRef, RuntimeRef, WorkloadRef, identity};
use crate::domain::workload::WorkloadKind;
use crate::store::{AgentRuntimeSeen, CardTarget, CustomSeen, Kind, Observed, What, WorkloadSeen};

/// An object and when it was first seen.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) observed: Arc<Observed>,
    /// `metadata.resourceVersion`.
    pub(super) version: u64,
    pub(super) arrived: Duration,
    /// The epoch of the store in which this version was learned.
    pub(super) epoch: u64,
    /// One bit for each selection that delivers it.
    pub(super) from: u64,
}

type Slot = (Kind, Arc<str>);

/// A count that look-ups, which change nothing else, may raise.
#[cfg(debug_assertions)]
#[derive(Debug, Default)]
struct Visits(std::sync::atomic::AtomicUsize);

#[cfg(debug_assertions)]
impl Clone for Visits {
    fn clone(&self) -> Self {
        Self(self.0.load(std::sync::atomic::Ordering::Relaxed).into())
    }
}

/// An AgentRuntime among those that point at one workload; the smallest governs it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    deleting: bool,
    created: Box<str>,
    uid: Arc<str>,
    name: Arc<str>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Namespace {
    objects: BTreeMap<Kind, BTreeMap<Arc<str>, Entry>>,
    /// Workloads by the ServiceAccount name that their identity gives.
    users: BTreeMap<Arc<str>, BTreeSet<Slot>>,
    /// Roots by the ServiceAccount that their template names.
    named: BTreeMap<Arc<str>, BTreeSet<Slot>>,
    /// AgentRuntimes by what they point at.
    runtimes: BTreeMap<WorkloadKind, BTreeMap<Arc<str>, BTreeSet<Rank>>>,
    /// Roots whose template carries the label, or that an AgentRuntime governs.
    governed: BTreeSet<Slot>,
    /// Others with the label on themselves, which may ask for the same.
    asking: BTreeSet<Slot>,
    /// ReplicaSets and Jobs by the uid of their controller.
    children: HashMap<Box<str>, BTreeSet<Slot>>,
    /// Pods by the uid of their controller.
    pods: HashMap<Box<str>, BTreeSet<Arc<str>>>,
    /// What an object of ours or of Tekton controls, by its uid.
    owned: HashMap<Box<str>, BTreeSet<Slot>>,
    /// Agents by the AgentBuild that gives their image.
    by_build: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// Agents of KAOS by the objects that they name.
    by_name: BTreeMap<Slot, BTreeSet<Arc<str>>>,
    /// Agents, ModelAPIs and MCPServers that stay and by which policies know that there is one of their kind.
    parameters: BTreeSet<Slot>,
    /// AgentCards by what they point at.
    cards: BTreeMap<CardTarget, BTreeSet<Arc<str>>>,
    /// References that were given out: what look-ups cost.
    #[cfg(debug_assertions)]
    visits: Visits,
}

impl Namespace {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) fn entry(&self, kind: Kind, name: &str) -> Option<&Entry> {
        self.objects.get(&kind)?.get(name)
    }

    /// The entry itself: who changes what is observed of it puts it anew, since indices go by that.
    pub(super) fn entry_mut(&mut self, kind: Kind, name: &str) -> Option<&mut Entry> {
        self.objects.get_mut(&kind)?.get_mut(name)
    }

    /// The entries of a kind, by name.
    pub(super) fn entries(&self, kind: Kind) -> impl Iterator<Item = (&Arc<str>, &Entry)> {
        self.objects.get(&kind).into_iter().flatten()
    }

    /// Files an object, in place of the one of that name, which is returned.
    pub(super) fn put(&mut self, kind: Kind, name: &Arc<str>, entry: Entry) -> Option<Arc<Observed>> {
        let observed = entry.observed.clone();
        let name =
            self.objects.get(&kind).and_then(|of_kind| of_kind.get_key_value(name)).map_or(name, |(name, _)| name);
        let name = name.clone();
        let old = self.objects.entry(kind).or_default().insert(name.clone(), entry);
        if let Some(old) = &old {
            self.unindex(&(kind, name.clone()), &old.observed);
        }
        self.index(&(kind, name), &observed);
        old.map(|old| old.observed)
    }

    /// Takes an object out, which is returned.
    pub(super) fn remove(&mut self, kind: Kind, name: &Arc<str>) -> Option<Arc<Observed>> {
        let of_kind = self.objects.get_mut(&kind)?;
        let old = of_kind.remove(name);
        if of_kind.is_empty() {
            self.objects.remove(&kind);
        }
        if let Some(old) = &old {
            self.unindex(&(kind, name.clone()), &old.observed);
        }
        old.map(|old| old.observed)
    }

    fn index(&mut self, slot: &Slot, observed: &Observed) {
        if let Some(owner) = observed.what.controller() {
            self.owned.entry(owner.uid.as_str().into()).or_default().insert(slot.clone());
        }
        if observed.what.custom().is_some_and(CustomSeen::is_policy_parameter) {
            self.parameters.insert(slot.clone());
        }
        match &observed.what {
            What::Workload(seen) => {
                let account: Arc<str> = identity(seen, &slot.1).service_account().into();
                self.users.entry(account).or_default().insert(slot.clone());
                if let Some(account) = named(seen) {
                    self.named.entry(account.into()).or_default().insert(slot.clone());
                }
                if let Some(owner) = seen.controller.as_ref().filter(|_| is_child(seen.kind)) {
                    self.children.entry(owner.uid.as_str().into()).or_default().insert(slot.clone());
                }
                self.judge(slot);
            }
            What::Pod(seen) => {
                if let Some(owner) = &seen.controller {
                    self.pods.entry(owner.uid.as_str().into()).or_default().insert(slot.1.clone());
                }
            }
            What::AgentRuntime(seen) => {
                let Some(target) = &seen.target else { return };
                let of_kind = self.runtimes.entry(target.kind).or_default();
                of_kind.entry(target.name.clone()).or_default().insert(rank(&slot.1, observed, seen));
                self.judge_target(seen);
            }
            What::Agent(seen) => {
                if let Some(build) = seen.build_ref() {
                    self.by_build.entry(build.into()).or_default().insert(slot.1.clone());
                }
            }
            What::KaosAgent(seen) => {
                for (kind, name) in wired(seen) {
                    self.by_name.entry((kind, name.into())).or_default().insert(slot.1.clone());
                }
            }
            What::AgentCard(seen) => {
                if let Some(target) = &seen.spec.target {
                    self.cards.entry(target.clone()).or_default().insert(slot.1.clone());
                }
            }
            _ => {}
        }
    }

    fn unindex(&mut self, slot: &Slot, observed: &Observed) {
        if let Some(owner) = observed.what.controller() {
            take_hashed(&mut self.owned, &owner.uid, slot);
        }
        self.parameters.remove(slot);
        match &observed.what {
            What::Workload(seen) => {
                take(&mut self.users, identity(seen, &slot.1).service_account(), slot);
                if let Some(account) = named(seen) {
                    take(&mut self.named, account.as_str(), slot);
                }
                if let Some(owner) = seen.controller.as_ref().filter(|_| is_child(seen.kind)) {
                    take_hashed(&mut self.children, &owner.uid, slot);
                }
                self.judge(slot);
            }
            What::Pod(seen) => {
                if let Some(owner) = &seen.controller {
                    take_hashed(&mut self.pods, &owner.uid, &slot.1);
                }
            }
            What::AgentRuntime(seen) => {
                let Some(target) = &seen.target else { return };
                if let Some(of_kind) = self.runtimes.get_mut(&target.kind) {
                    take(of_kind, &target.name, &rank(&slot.1, observed, seen));
                }
                self.judge_target(seen);
            }
            What::Agent(seen) => {
                if let Some(build) = seen.build_ref() {
                    take(&mut self.by_build, build, &slot.1);
                }
            }
            What::KaosAgent(seen) => {
                for (kind, name) in wired(seen) {
                    take(&mut self.by_name, &(kind, name.into()), &slot.1);
                }
            }
            What::AgentCard(seen) => {
                if let Some(target) = &seen.spec.target {
                    take(&mut self.cards, target, &slot.1);
                }
            }
            _ => {}
        }
    }

    /// Decides anew whether a workload is governed.
    fn judge(&mut self, slot: &Slot) {
        let workload = self.workload(slot.0, &slot.1);
        let governed = workload.is_some_and(|workload| workload.is_root() && workload.is_governed());
        let asks = !governed && workload.is_some_and(|workload| workload.may_ask());
        for (set, is) in [(&mut self.governed, governed), (&mut self.asking, asks)] {
            if is {
                set.insert(slot.clone());
            } else {
                set.remove(slot);
            }
        }
    }

    fn judge_target(&mut self, seen: &AgentRuntimeSeen) {
        let target = seen.target.as_ref();
        if let Some((kind, name)) = target.and_then(|target| Some((Kind::of_workload(target.kind)?, &target.name))) {
            self.judge(&(kind, name.clone()));
        }
    }

    fn workload_ref<'a>(&'a self, kind: Kind, name: &'a Arc<str>, entry: &'a Entry) -> Option<WorkloadRef<'a>> {
        self.visit();
        let What::Workload(seen) = &entry.observed.what else { return None };
        let winner = self.runtimes_of(seen.kind, name).next().filter(|first| !first.seen.deleting);
        let Observed { uid, version, .. } = &*entry.observed;
        Some(WorkloadRef { kind, name, uid, version: *version, seen, winner })
    }

    pub(super) fn workload(&self, kind: Kind, name: &str) -> Option<WorkloadRef<'_>> {
        let (name, entry) = self.objects.get(&kind)?.get_key_value(name)?;
        self.workload_ref(kind, name, entry)
    }

    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadRef<'_>> {
        let of_workloads = self.objects.iter().filter(|(kind, _)| kind.workload().is_some());
        of_workloads.flat_map(move |(kind, of_kind)| {
            of_kind.iter().filter_map(move |(name, entry)| self.workload_ref(*kind, name, entry))
        })
    }

    fn slots<'a>(&'a self, slots: impl Iterator<Item = &'a Slot>) -> impl Iterator<Item = WorkloadRef<'a>> {
        slots.filter_map(|(kind, name)| self.workload(*kind, name))
    }

    /// An object of any kind.
    pub(super) fn object(&self, kind: Kind, name: &str) -> Option<(&Arc<str>, &Observed)> {
        self.visit();
        let (name, entry) = self.objects.get(&kind)?.get_key_value(name)?;
        Some((name, &entry.observed))
    }

    /// The objects of a kind, by name.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Arc<str>, &Observed)> {
        let all = self.objects.get(&kind).into_iter().flatten();
        all.inspect(|_| self.visit()).map(|(name, entry)| (name, &*entry.observed))
    }

    /// What the object of that uid controls.
    pub(super) fn owned(&self, uid: &str) -> impl Iterator<Item = &Slot> {
        self.owned.get(uid).into_iter().flatten()
    }

    /// The Agents that take their image from that AgentBuild.
    pub(super) fn agents_of_build(&self, build: &str) -> impl Iterator<Item = &Arc<str>> {
        self.by_build.get(build).into_iter().flatten()
    }

    /// Whether an object of that kind is one by which policies know that there is one.
    pub(super) fn has_policy_parameter(&self, kind: Kind) -> bool {
        self.parameters.range((kind, Arc::from(""))..).next().is_some_and(|(of, _)| *of == kind)
    }

    /// The Agents of KAOS that name that object.
    pub(super) fn wired_to(&self, kind: Kind, name: &str) -> impl Iterator<Item = &Arc<str>> {
        self.by_name.get(&(kind, name.into())).into_iter().flatten()
    }

    /// The AgentCards that point at that workload.
    pub(super) fn cards_of(&self, target: &CardTarget) -> impl Iterator<Item = &Arc<str>> {
        self.cards.get(target).into_iter().flatten()
    }

    pub(super) fn users(&self, account: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.slots(self.users.get(account).into_iter().flatten())
    }

    pub(super) fn naming(&self, account: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.slots(self.named.get(account).into_iter().flatten()).filter(WorkloadRef::is_root)
    }

    pub(super) fn governed(&self) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.slots(self.governed.iter())
    }

    pub(super) fn asking(&self) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.slots(self.asking.iter())
    }

    pub(super) fn governed_count(&self) -> usize {
        self.governed.len()
    }

    pub(super) fn runtime(&self, name: &str) -> Option<RuntimeRef<'_>> {
        let (name, entry) = self.objects.get(&Kind::AgentRuntime)?.get_key_value(name)?;
        self.runtime_ref(name, entry)
    }

    fn runtime_ref<'a>(&'a self, name: &'a Arc<str>, entry: &'a Entry) -> Option<RuntimeRef<'a>> {
        self.visit();
        let What::AgentRuntime(seen) = &entry.observed.what else { return None };
        Some(RuntimeRef { name, uid: &entry.observed.uid, version: entry.observed.version, seen })
    }

    pub(super) fn runtimes(&self) -> impl Iterator<Item = RuntimeRef<'_>> {
        let of_kind = self.objects.get(&Kind::AgentRuntime).into_iter().flatten();
        of_kind.filter_map(|(name, entry)| self.runtime_ref(name, entry))
    }

    pub(super) fn runtimes_of(&self, kind: WorkloadKind, name: &str) -> impl Iterator<Item = RuntimeRef<'_>> {
        let ranks = self.runtimes.get(&kind).and_then(|of_kind| of_kind.get(name));
        ranks.into_iter().flatten().filter_map(|rank| self.runtime(&rank.name))
    }

    pub(super) fn pod(&self, name: &str) -> Option<PodRef<'_>> {
        self.visit();
        let (name, entry) = self.objects.get(&Kind::Pod)?.get_key_value(name)?;
        let What::Pod(seen) = &entry.observed.what else { return None };
        Some(PodRef { name, uid: &entry.observed.uid, seen })
    }

    /// The ReplicaSets and Jobs that the object of that uid controls.
    pub(super) fn children(&self, uid: &str) -> impl Iterator<Item = WorkloadRef<'_>> {
        self.slots(self.children.get(uid).into_iter().flatten())
    }

    /// The Pods controlled by the object of that uid, and by what it controls.
    pub(super) fn pods_of<'a>(&'a self, uid: &str) -> impl Iterator<Item = PodRef<'a>> {
        let children = self.children(uid);
        let of = |uid: &str| self.pods.get(uid).into_iter().flatten();
        let names = of(uid).chain(children.flat_map(move |child| of(child.uid)));
        names.filter_map(|name| self.pod(name))
    }

    #[cfg(debug_assertions)]
    fn visit(&self) {
        self.visits.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    #[cfg(not(debug_assertions))]
    #[expect(clippy::unused_self, reason = "counts where assertions are checked")]
    fn visit(&self) {}

    /// References that were given out so far.
    #[cfg(debug_assertions)]
    pub(super) fn visits(&self) -> usize {
        self.visits.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// The objects that an Agent of KAOS names: its ModelAPI, its MCPServers, its peers. Every spelling names them so.
fn wired(seen: &CustomSeen) -> impl Iterator<Item = (Kind, &str)> {
    let list = |pointer: &str| {
        seen.spec.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    };
    let api = seen.spec.get("modelAPI").and_then(Value::as_str).map(|name| (Kind::ModelApi, name));
    let servers = list("/mcpServers").map(|name| (Kind::McpServer, name));
    api.into_iter().chain(servers).chain(list("/agentNetwork/access").map(|name| (Kind::KaosAgent, name)))
}

/// The ServiceAccount that its template names.
fn named(seen: &WorkloadSeen) -> Option<String> {
    seen.template.as_ref()?.account()
}

/// Kinds that stand between a root and its Pods.
fn is_child(kind: WorkloadKind) -> bool {
    matches!(kind, WorkloadKind::ReplicaSet | WorkloadKind::Job)
}

fn rank(name: &Arc<str>, observed: &Observed, seen: &AgentRuntimeSeen) -> Rank {
    Rank { deleting: seen.deleting, created: seen.created.clone(), uid: observed.uid.clone(), name: name.clone() }
}

fn take<K, Q, T>(map: &mut BTreeMap<K, BTreeSet<T>>, key: &Q, value: &T)
where
    K: Borrow<Q> + Ord,
    Q: Ord + ?Sized,
    T: Ord,
{
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}

fn take_hashed<T: Ord>(map: &mut HashMap<Box<str>, BTreeSet<T>>, key: &str, value: &T) {
    if let Some(set) = map.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
