//! What a store says to admission: the one way from objects to the [`NamespaceInputs`] of a namespace and the rest of a snapshot.
//!
//! ```text
//! Store ─► gather (under its lock: pointers) ─► Gathered ─► inputs (outside of it) ─► NamespaceInputs
//! Store, Change ─► touched: which part of a snapshot is to be made anew
//! ```
//!
//! In: a [`Store`] of whatever process: one with controllers has whole projections, a webhook alone what is slim, and a command what manifests
//! say. Out: inputs. Promises: what counts of an object is said by its descriptor ([`Descriptor::slim`](crate::store::Descriptor::slim)), and
//! here everything goes through it, so no two processes differ; a namespace costs by its own objects of [`KINDS`]. ConfigMaps are not taken:
//! their texts are bounded, and read elsewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::inputs::{AgentCardInput, NamespaceInputs};
use super::namesakes;
use super::view::Ownership;
use crate::domain::keys::{CONFIG_MAP_ENROLMENT, CSI_DRIVER_SPIFFE, DEFAULT_DENY};
use crate::store::{Change, Kind, Observed, Slim, Store, What};

/// The kinds whose objects say something about their namespace.
pub const KINDS: [Kind; 12] = [
    Kind::Namespace,
    Kind::ServiceAccount,
    Kind::Job,
    Kind::AgentRuntime,
    Kind::AgentCard,
    Kind::NetworkPolicy,
    // Their names alone: what they say is not read here.
    Kind::Agent,
    Kind::BeeaiAgent,
    Kind::BeeaiCompatAgent,
    Kind::KaosAgent,
    Kind::ModelApi,
    Kind::McpServer,
];

/// The objects of one namespace that admission reads.
#[derive(Debug, Default)]
pub struct Gathered(Vec<(Kind, Arc<str>, Arc<Observed>)>);

/// What of a snapshot has to be made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touched {
    /// Nothing: admission does not read it.
    Nothing,
    /// The view of that namespace.
    Namespace(Arc<str>),
    /// Which AgentBuilds that namespace has.
    Builds(Arc<str>),
    /// What is of the cluster as a whole.
    Cluster,
}

/// What is of the cluster as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterInputs {
    /// CSIDriver `csi.spiffe.io` exists.
    pub spiffe_driver: bool,
    /// When this installation was made, RFC 3339.
    pub installed: Option<Arc<str>>,
}

/// The objects of a namespace that admission reads: pointers, so that whoever holds the store for it holds it for a moment.
#[must_use]
pub fn gather(store: &Store, namespace: &str) -> Gathered {
    let mut all = Vec::new();
    for kind in KINDS.into_iter().filter(|kind| *kind != Kind::NetworkPolicy) {
        let of_kind = store.all_kept(kind, namespace);
        all.extend(of_kind.map(|(name, observed)| (kind, name.clone(), observed.clone())));
    }
    if let Some(observed) = store.kept(Kind::NetworkPolicy, namespace, DEFAULT_DENY) {
        all.push((Kind::NetworkPolicy, DEFAULT_DENY.into(), observed.clone()));
    }
    Gathered(all)
}

/// What is of the cluster as a whole.
#[must_use]
pub fn cluster(store: &Store) -> ClusterInputs {
    let installed = store.config_map(store.operator_namespace(), CONFIG_MAP_ENROLMENT);
    ClusterInputs {
        spiffe_driver: store.kept(Kind::CsiDriver, "", CSI_DRIVER_SPIFFE).is_some(),
        installed: installed.and_then(|(seen, _)| seen.created.clone()).filter(|time| !time.is_empty()),
    }
}

/// The names of the AgentBuilds of a namespace.
#[must_use]
pub fn builds(store: &Store, namespace: &str) -> BTreeSet<String> {
    store.all_kept(Kind::AgentBuild, namespace).map(|(name, _)| name.to_string()).collect()
}

/// Every namespace that exists.
pub fn existing(store: &Store) -> impl Iterator<Item = &Arc<str>> {
    store.namespaces().filter(|name| store.kept(Kind::Namespace, name, name).is_some())
}

/// Which part of a snapshot is another once the store has taken that change.
#[must_use]
pub fn touched(store: &Store, change: &Change) -> Touched {
    let (kind, name) = (change.kind, &change.key.name);
    let namespace = if kind == Kind::Namespace { name } else { &change.key.namespace };
    let part = match kind {
        Kind::CsiDriver => Touched::Cluster,
        Kind::ConfigMap if **name == *CONFIG_MAP_ENROLMENT && **namespace == *store.operator_namespace() => {
            Touched::Cluster
        }
        Kind::AgentBuild => Touched::Builds(namespace.clone()),
        kind if is_read(kind, name) => Touched::Namespace(namespace.clone()),
        _ => return Touched::Nothing,
    };
    let slim = kind.descriptor().slim;
    let said = |observed: &Arc<Observed>| Some(slim(name, observed)).filter(|said| says_anything(kind, &said.what));
    let (before, after) = (store.kept(kind, namespace, name).and_then(said), change.now.as_ref().and_then(said));
    let is_same = match (&before, &after) {
        (Some(before), Some(after)) => before.is_same(after),
        (before, after) => before.is_none() && after.is_none(),
    };
    if is_same { Touched::Nothing } else { part }
}

/// Whether an object of that kind and name is one of those that say anything about their namespace.
fn is_read(kind: Kind, name: &str) -> bool {
    KINDS.contains(&kind) && (kind != Kind::NetworkPolicy || name == DEFAULT_DENY)
}

/// Of some kinds it does not count that an object is there: the many cards that controllers make touch no namespace.
fn says_anything(kind: Kind, said: &What) -> bool {
    !(matches!(kind, Kind::AgentCard | Kind::NetworkPolicy) && *said == What::Known)
}

impl Gathered {
    /// Whether the namespace itself is there.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.0.iter().any(|(kind, _, _)| *kind == Kind::Namespace)
    }

    /// What they say.
    #[must_use]
    pub fn inputs(self) -> NamespaceInputs {
        let mut inputs = NamespaceInputs::default();
        for (kind, name, observed) in self.0 {
            let said = (kind.descriptor().slim)(&name, &observed);
            inputs.see(kind, name, &said.what);
        }
        inputs
    }
}

impl NamespaceInputs {
    /// What the objects of a namespace say that a store has.
    #[must_use]
    pub fn of(store: &Store, namespace: &str) -> Self {
        gather(store, namespace).inputs()
    }

    /// An object of that kind and name is there, of which admission reads this.
    fn see(&mut self, kind: Kind, name: Arc<str>, said: &What) {
        match (kind, said) {
            (Kind::Namespace, What::Namespace(seen)) => {
                self.labels.clone_from(&seen.labels);
                self.quarantine = seen.quarantine.as_deref().cloned().map(Arc::new);
            }
            (Kind::ServiceAccount, What::Slim(Slim::DedicatedAccount)) => {
                self.service_accounts.insert(name, Ownership::Ours);
            }
            (Kind::ServiceAccount, _) => {
                self.service_accounts.insert(name, Ownership::Foreign);
            }
            (_, What::Slim(Slim::Job(owner))) => {
                self.jobs.insert(name, owner.clone());
            }
            (_, What::Slim(Slim::AgentRuntime(input))) => {
                self.agent_runtimes.insert(name, input.clone());
            }
            // Only a person's card stands in anybody's way.
            (_, What::Slim(Slim::Card(target))) => {
                let card = AgentCardInput { target: Some(target.clone()), ..AgentCardInput::default() };
                self.agent_cards.insert(name, card);
            }
            (_, What::Slim(Slim::CutsOff)) => self.cut_off = true,
            (kind, _) if namesakes::KINDS.contains(&kind) => {
                self.named.set(kind, &name, true);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
