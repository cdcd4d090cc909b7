//! The model behind the snapshot: what the watches said last, by namespace; pure.
//!
//! In: [`Change`]s, in any order between sources. Out: which namespaces a change touches, and their resolver inputs.
//! Promise: the model depends only on the last change of each object, so the order in which sources deliver is
//! irrelevant; ConfigMaps of equal content are kept once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use crate::api::observed::{AgentRuntimeSeen, Change, ConfigMapSeen, Key, Kind, Observed, What};
use crate::config::content::digest;
use crate::config::inputs::{AgentRuntimeInput, ConfigMapInput, NamespaceInputs};
use crate::config::view::{JobOwner, Ownership};
use crate::domain::keys::{CONFIG_MAP_ENROLMENT, WATCHED_CONFIG_MAPS};
use crate::domain::workload::Workload;

/// Everything that configuration and admission read of the cluster.
#[derive(Debug, Default)]
pub(super) struct Model {
    namespaces: HashMap<Arc<str>, Facts>,
    spiffe_driver: bool,
    contents: HashMap<u64, Weak<BTreeMap<String, String>>>,
}

/// One namespace. `inputs.config_maps` stays empty: it is filled for the moment of resolving.
#[derive(Debug, Default)]
struct Facts {
    exists: bool,
    inputs: NamespaceInputs,
    config_maps: BTreeMap<Arc<str>, ConfigMapSeen>,
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
            Kind::ConfigMap | Kind::ServiceAccount | Kind::Job | Kind::AgentRuntime => {}
            _ => return Touched::Nothing,
        }
        let Key { namespace, name } = &change.key;
        if change.kind == Kind::ConfigMap && &**name == CONFIG_MAP_ENROLMENT {
            return self.installation(namespace, what.map(|(_, what)| what));
        }
        let content = match what {
            Some((_, What::ConfigMap(seen))) if configures(name, seen) => Some(self.shared(seen)),
            _ => None,
        };
        let facts = self.namespaces.entry(namespace.clone()).or_default();
        let changed = match what {
            Some((_, What::ConfigMap(_))) => match content {
                Some(seen) => put(&mut facts.config_maps, name, seen),
                None => facts.config_maps.remove(name).is_some(),
            },
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
            Some(_) => false,
            None => match change.kind {
                Kind::AgentRuntime => facts.inputs.agent_runtimes.remove(name).is_some(),
                Kind::ConfigMap => facts.config_maps.remove(name).is_some(),
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

    /// `seen` with its data replaced by an equal one that is known already.
    fn shared(&mut self, seen: &ConfigMapSeen) -> ConfigMapSeen {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        seen.data.hash(&mut hasher);
        let entry = self.contents.entry(hasher.finish()).or_default();
        let mut seen = seen.clone();
        match entry.upgrade() {
            Some(known) if known == seen.data => seen.data = known,
            _ => *entry = Arc::downgrade(&seen.data),
        }
        if self.contents.len() > 2 * self.namespaces.len() + 64 {
            self.contents.retain(|_, content| content.strong_count() > 0);
        }
        seen
    }

    /// CSIDriver `csi.spiffe.io` exists.
    pub(super) fn spiffe_driver(&self) -> bool {
        self.spiffe_driver
    }

    /// Every namespace that exists.
    pub(super) fn existing(&self) -> BTreeSet<Arc<str>> {
        self.namespaces.iter().filter(|(_, facts)| facts.exists).map(|(name, _)| name.clone()).collect()
    }

    /// Every ConfigMap of a namespace, as resolver input.
    pub(super) fn config_maps(&self, namespace: &str) -> BTreeMap<String, ConfigMapInput> {
        let known = self.namespaces.get(namespace).into_iter().flat_map(|facts| &facts.config_maps);
        known.map(|(name, seen)| (name.to_string(), input(seen))).collect()
    }

    /// Calls `with` with the inputs of a namespace; `None` when it does not exist.
    pub(super) fn resolve<T>(&mut self, name: &str, with: impl FnOnce(&NamespaceInputs) -> T) -> Option<T> {
        let facts = self.namespaces.get_mut(name).filter(|facts| facts.exists)?;
        facts.inputs.config_maps =
            facts.config_maps.iter().map(|(name, seen)| (name.to_string(), input(seen))).collect();
        let result = with(&facts.inputs);
        facts.inputs.config_maps = BTreeMap::new();
        Some(result)
    }
}

impl Facts {
    fn empty(&self) -> bool {
        !self.exists
            && self.config_maps.is_empty()
            && self.installed.is_none()
            && self.inputs.service_accounts.is_empty()
            && self.inputs.jobs.is_empty()
            && self.inputs.agent_runtimes.is_empty()
    }
}

/// Whether a namespace's configuration depends on a ConfigMap; others hold templates and steps of builds.
fn configures(name: &str, seen: &ConfigMapSeen) -> bool {
    seen.is_defaults || WATCHED_CONFIG_MAPS.contains(&name)
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
        ..AgentRuntimeInput::of_spec(&seen.spec)
    }
}

fn input(seen: &ConfigMapSeen) -> ConfigMapInput {
    let kept = seen.ours && seen.written.as_deref() == Some(&*digest(&seen.data));
    ConfigMapInput { is_defaults: seen.is_defaults, kept, data: (*seen.data).clone() }
}
