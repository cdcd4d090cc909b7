//! The model behind the snapshot: what the watches said last, by namespace; pure.
//!
//! In: [`Change`]s, in any order between sources. Out: which namespaces a change touches, and their resolver inputs; ConfigMaps
//! are kept by [`super::texts`]. Promise: the model depends only on the last change of each object, so the order in which
//! sources deliver is irrelevant.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::config::inputs::{AgentCardInput, AgentRuntimeInput, NamespaceInputs};
use crate::config::view::{JobOwner, Ownership};
use crate::domain::keys::{CONFIG_MAP_ENROLMENT, DEFAULT_DENY};
use crate::domain::workload::Workload;
use crate::store::{AgentRuntimeSeen, Change, Key, Kind, Observed, What};

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
        let what = change.now.as_deref().map(|observed: &Observed| (&observed.uid, &observed.what));
        match change.kind {
            Kind::CsiDriver => {
                let exists = what.is_some();
                if std::mem::replace(&mut self.spiffe_driver, exists) == exists {
                    return Touched::Nothing;
                }
                return Touched::Cluster;
            }
            Kind::Namespace => return self.namespace(&change.key.name, what.map(|(_, what)| what)),
            Kind::NetworkPolicy if &*change.key.name != DEFAULT_DENY => return Touched::Nothing,
            Kind::ConfigMap
            | Kind::ServiceAccount
            | Kind::Job
            | Kind::AgentRuntime
            | Kind::AgentCard
            | Kind::NetworkPolicy => {}
            _ => return Touched::Nothing,
        }
        let Key { namespace, name } = &change.key;
        if change.kind == Kind::ConfigMap {
            let is_record = &**name == CONFIG_MAP_ENROLMENT;
            return if is_record { self.installation(namespace, what.map(|(_, what)| what)) } else { Touched::Nothing };
        }
        let facts = self.namespaces.entry(namespace.clone()).or_default();
        let changed = match what {
            Some((_, What::ServiceAccount(seen))) => {
                let whose = if seen.is_dedicated() { Ownership::Ours } else { Ownership::Foreign };
                put(&mut facts.inputs.service_accounts, name, whose)
            }
            Some((uid, What::Workload(seen))) => {
                let controller = seen.controller.as_ref().map(|owner| (owner.group(), &*owner.kind, &*owner.name));
                let job = JobOwner { uid: uid.to_string(), workload: Workload::of_job(name, controller) };
                put(&mut facts.inputs.jobs, name, job)
            }
            Some((uid, What::AgentRuntime(seen))) => {
                put(&mut facts.inputs.agent_runtimes, name, Arc::new(agent_runtime(uid, seen)))
            }
            // Only a person's card stands in anybody's way: the many that controllers make touch no namespace.
            Some((_, What::AgentCard(seen))) => match AgentCardInput::of_seen(seen) {
                card if card.automatic || card.deleting => facts.inputs.agent_cards.remove(name).is_some(),
                card => put(&mut facts.inputs.agent_cards, name, card),
            },
            Some((_, What::NetworkPolicy(seen))) => {
                let is_there = seen.is_ours() && !seen.deleting;
                std::mem::replace(&mut facts.inputs.cut_off, is_there) != is_there
            }
            Some(_) => false,
            None => match change.kind {
                Kind::AgentRuntime => facts.inputs.agent_runtimes.remove(name).is_some(),
                Kind::AgentCard => facts.inputs.agent_cards.remove(name).is_some(),
                Kind::NetworkPolicy => std::mem::take(&mut facts.inputs.cut_off),
                Kind::ServiceAccount => facts.inputs.service_accounts.remove(name).is_some(),
                _ => facts.inputs.jobs.remove(name).is_some(),
            },
        };
        if facts.empty() {
            self.namespaces.remove(namespace);
        }
        if changed { Touched::Namespace(namespace.clone()) } else { Touched::Nothing }
    }

    fn namespace(&mut self, name: &Arc<str>, what: Option<&What>) -> Touched {
        let facts = self.namespaces.entry(name.clone()).or_default();
        let labels = match what {
            Some(What::Namespace(seen)) => Some(&seen.labels),
            _ => None,
        };
        let changed = facts.exists != labels.is_some() || labels.is_some_and(|labels| *labels != facts.inputs.labels);
        facts.exists = labels.is_some();
        facts.inputs.labels = labels.cloned().unwrap_or_default();
        if facts.empty() {
            self.namespaces.remove(name);
        }
        if changed { Touched::Namespace(name.clone()) } else { Touched::Nothing }
    }

    /// The record of when an installation was made; whose namespace is ours is for others to know.
    fn installation(&mut self, namespace: &Arc<str>, what: Option<&What>) -> Touched {
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

fn put<T: PartialEq>(map: &mut BTreeMap<Arc<str>, T>, name: &Arc<str>, value: T) -> bool {
    let changed = map.get(name) != Some(&value);
    if changed {
        map.insert(name.clone(), value);
    }
    changed
}

fn agent_runtime(uid: &Arc<str>, seen: &AgentRuntimeSeen) -> AgentRuntimeInput {
    AgentRuntimeInput {
        uid: uid.clone(),
        created: Arc::from(&*seen.created),
        deleting: seen.deleting,
        ..AgentRuntimeInput::of_seen(seen)
    }
}
