//! The model behind the snapshot: what the watches said last, by namespace; pure.
//!
//! In: [`Change`]s, in any order between sources. Out: which namespaces a change touches, and their resolver inputs: what one object says
//! is decided by [`gather`], and ConfigMaps are kept by [`super::texts`]. Promise: the model depends only on the last change of
//! each object, so the order in which sources deliver is irrelevant.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::config::gather;
use crate::config::inputs::NamespaceInputs;
use crate::domain::keys::CONFIG_MAP_ENROLMENT;
use crate::store::{Change, Kind, Observed, What};

/// Everything that configuration and admission read of the cluster.
#[derive(Debug, Default)]
pub(super) struct Model {
    namespaces: HashMap<Arc<str>, Facts>,
    spiffe_driver: bool,
}

/// One namespace. `inputs.config_maps` stays empty.
#[derive(Debug, Default)]
struct Facts {
    exists: bool,
    inputs: NamespaceInputs,
    /// When ConfigMap `drawbridge-enrolment` was made.
    installed: Option<Arc<str>>,
}

/// What a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// Nothing that admission reads.
    Nothing,
    /// One namespace.
    Namespace(Arc<str>),
    /// The cluster as a whole.
    Cluster,
}

impl Model {
    /// Takes note of a change.
    pub(super) fn apply(&mut self, change: &Change) -> Touched {
        let what = change.now.as_deref().map(|observed: &Observed| &observed.what);
        match change.kind {
            Kind::CsiDriver => {
                let exists = what.is_some();
                if std::mem::replace(&mut self.spiffe_driver, exists) == exists {
                    return Touched::Nothing;
                }
                return Touched::Cluster;
            }
            Kind::Namespace => return self.namespace(change),
            Kind::ConfigMap => return self.config_map(change, what),
            kind if gather::KINDS.contains(&kind) => {}
            _ => return Touched::Nothing,
        }
        let namespace = &change.key.namespace;
        let facts = self.namespaces.entry(namespace.clone()).or_default();
        let changed = facts.inputs.take(change);
        if facts.empty() {
            self.namespaces.remove(namespace);
        }
        if changed { Touched::Namespace(namespace.clone()) } else { Touched::Nothing }
    }

    fn namespace(&mut self, change: &Change) -> Touched {
        let (name, exists) = (&change.key.name, change.now.is_some());
        let facts = self.namespaces.entry(name.clone()).or_default();
        let changed = facts.inputs.take(change) | (std::mem::replace(&mut facts.exists, exists) != exists);
        if facts.empty() {
            self.namespaces.remove(name);
        }
        if changed { Touched::Namespace(name.clone()) } else { Touched::Nothing }
    }

    /// The record of when an installation was made; whose namespace is ours is for others to know.
    fn config_map(&mut self, change: &Change, what: Option<&What>) -> Touched {
        let namespace = &change.key.namespace;
        if &*change.key.name != CONFIG_MAP_ENROLMENT {
            return Touched::Nothing;
        }
        let created = match what {
            Some(What::ConfigMap(seen)) => seen.created.clone(),
            _ => None,
        };
        let facts = self.namespaces.entry(namespace.clone()).or_default();
        let changed = facts.installed != created;
        facts.installed = created;
        if facts.empty() {
            self.namespaces.remove(namespace);
        }
        if changed { Touched::Cluster } else { Touched::Nothing }
    }

    /// When the installation in that namespace was made.
    pub(super) fn installed(&self, operator_namespace: &str) -> Option<Arc<str>> {
        self.namespaces.get(operator_namespace)?.installed.clone()
    }

    /// CSIDriver `csi.spiffe.io` exists.
    pub(super) fn spiffe_driver(&self) -> bool {
        self.spiffe_driver
    }

    /// Every namespace that exists.
    pub(super) fn existing(&self) -> BTreeSet<Arc<str>> {
        self.namespaces.iter().filter(|(_, facts)| facts.exists).map(|(name, _)| name.clone()).collect()
    }

    /// What is known of a namespace; `None` when it does not exist.
    pub(super) fn inputs(&self, name: &str) -> Option<NamespaceInputs> {
        Some(self.namespaces.get(name).filter(|facts| facts.exists)?.inputs.clone())
    }
}

impl Facts {
    fn empty(&self) -> bool {
        !self.exists
            && self.installed.is_none()
            && self.inputs.service_accounts.is_empty()
            && self.inputs.jobs.is_empty()
            && self.inputs.agent_runtimes.is_empty()
            && self.inputs.agent_cards.is_empty()
            && !self.inputs.cut_off
    }
}
