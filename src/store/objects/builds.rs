//! Look-ups about Agents, AgentBuilds and what Tekton makes of them.

use std::sync::Arc;

use super::Store;
use crate::store::{
    ClaimSeen, CustomSeen, HttpRouteSeen, Kind, Observed, PipelineRunSeen, ServiceSeen, TaskRunSeen, What,
};

/// An object of that kind, with what identifies it.
#[derive(Debug)]
pub struct Ref<'a, T> {
    /// `metadata.name`.
    pub name: &'a Arc<str>,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// `metadata.resourceVersion`.
    pub version: u64,
    /// The rest.
    pub seen: &'a T,
}

impl<T> Clone for Ref<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<'_, T> {}

/// An Agent or AgentBuild.
pub type CustomRef<'a> = Ref<'a, CustomSeen>;
/// A PipelineRun of a build.
pub type RunRef<'a> = Ref<'a, PipelineRunSeen>;
/// A TaskRun of such a run.
pub type TaskRunRef<'a> = Ref<'a, TaskRunSeen>;

pub(super) fn of<'a, T>(
    (name, observed): (&'a Arc<str>, &'a Observed),
    seen: impl FnOnce(&'a What) -> Option<&'a T>,
) -> Option<Ref<'a, T>> {
    Some(Ref { name, uid: &observed.uid, version: observed.version, seen: seen(&observed.what)? })
}

fn custom(what: &What) -> Option<&CustomSeen> {
    what.custom()
}

fn run(what: &What) -> Option<&PipelineRunSeen> {
    match what {
        What::PipelineRun(seen) => Some(seen),
        _ => None,
    }
}

fn task_run(what: &What) -> Option<&TaskRunSeen> {
    match what {
        What::TaskRun(seen) => Some(seen),
        _ => None,
    }
}

impl Store {
    /// One object of any kind, with its name.
    #[must_use]
    pub fn object(&self, kind: Kind, namespace: &str, name: &str) -> Option<(&Arc<str>, &Observed)> {
        self.namespaces.get(namespace)?.object(kind, name)
    }

    /// The objects of a kind in a namespace, by name.
    pub fn of_kind(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Observed)> {
        self.namespaces.get(namespace).into_iter().flat_map(move |space| space.of_kind(kind))
    }

    /// What is kept of one object, as a pointer; a Namespace is found in the namespace of its own name.
    #[must_use]
    pub fn kept(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Observed>> {
        Some(&self.entry(kind, namespace, name)?.observed)
    }

    /// What is kept of the objects of a kind in a namespace, by name, as pointers.
    pub fn all_kept(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Arc<Observed>)> {
        let entries = self.namespaces.get(namespace).into_iter().flat_map(move |space| space.entries(kind));
        entries.map(|(name, entry)| (name, &entry.observed))
    }

    /// One resource of a kind of ours that is kept whole.
    #[must_use]
    pub fn custom(&self, kind: Kind, namespace: &str, name: &str) -> Option<CustomRef<'_>> {
        of(self.object(kind, namespace, name)?, custom)
    }

    /// Those of a namespace.
    pub fn customs(&self, kind: Kind, namespace: &str) -> impl Iterator<Item = CustomRef<'_>> {
        self.of_kind(kind, namespace).filter_map(|named| of(named, custom))
    }

    /// One Agent.
    #[must_use]
    pub fn agent(&self, namespace: &str, name: &str) -> Option<CustomRef<'_>> {
        of(self.object(Kind::Agent, namespace, name)?, custom)
    }

    /// The Agents of a namespace.
    pub fn agents(&self, namespace: &str) -> impl Iterator<Item = CustomRef<'_>> {
        self.of_kind(Kind::Agent, namespace).filter_map(|named| of(named, custom))
    }

    /// The Agents that take their image from the AgentBuild of that name, whether or not it exists.
    pub fn agents_of_build<'a>(&'a self, namespace: &str, build: &str) -> impl Iterator<Item = CustomRef<'a>> {
        let space = self.namespaces.get(namespace);
        let names = space.into_iter().flat_map(move |space| space.agents_of_build(build));
        names.filter_map(move |name| of(space?.object(Kind::Agent, name)?, custom))
    }

    /// Whether that namespace has an object of that kind by which the API server's policies know that there is one.
    #[must_use]
    pub fn has_policy_parameter(&self, kind: Kind, namespace: &str) -> bool {
        self.namespaces.get(namespace).is_some_and(|space| space.has_policy_parameter(kind))
    }

    /// The Agents of KAOS that name that ModelAPI, MCPServer or Agent, whether or not it exists.
    pub fn wired_to<'a>(&'a self, kind: Kind, namespace: &str, name: &str) -> impl Iterator<Item = CustomRef<'a>> {
        let space = self.namespaces.get(namespace);
        let names = space.into_iter().flat_map(move |space| space.wired_to(kind, name));
        names.filter_map(move |name| of(space?.object(Kind::KaosAgent, name)?, custom))
    }

    /// One HTTPRoute.
    #[must_use]
    pub fn route(&self, namespace: &str, name: &str) -> Option<Ref<'_, HttpRouteSeen>> {
        of(self.object(Kind::HttpRoute, namespace, name)?, |what| match what {
            What::HttpRoute(seen) => Some(&**seen),
            _ => None,
        })
    }

    /// One AgentBuild.
    #[must_use]
    pub fn agent_build(&self, namespace: &str, name: &str) -> Option<CustomRef<'_>> {
        of(self.object(Kind::AgentBuild, namespace, name)?, custom)
    }

    /// The AgentBuilds of a namespace.
    pub fn agent_builds(&self, namespace: &str) -> impl Iterator<Item = CustomRef<'_>> {
        self.of_kind(Kind::AgentBuild, namespace).filter_map(|named| of(named, custom))
    }

    /// What the object of that uid controls, of the kinds of [`What::controller`].
    pub fn owned<'a>(&'a self, namespace: &str, uid: &str) -> impl Iterator<Item = (Kind, &'a Arc<str>, &'a Observed)> {
        let space = self.namespaces.get(namespace);
        let slots = space.into_iter().flat_map(move |space| space.owned(uid));
        slots.filter_map(move |(kind, name)| {
            let (name, observed) = space?.object(*kind, name)?;
            Some((*kind, name, observed))
        })
    }

    /// One PipelineRun of a build.
    #[must_use]
    pub fn run(&self, namespace: &str, name: &str) -> Option<RunRef<'_>> {
        of(self.object(Kind::PipelineRun, namespace, name)?, run)
    }

    /// The PipelineRuns that the object of that uid controls.
    pub fn runs_of<'a>(&'a self, namespace: &str, uid: &str) -> impl Iterator<Item = RunRef<'a>> {
        self.owned(namespace, uid).filter_map(|(_, name, observed)| of((name, observed), run))
    }

    /// One TaskRun of a build.
    #[must_use]
    pub fn task_run(&self, namespace: &str, name: &str) -> Option<TaskRunRef<'_>> {
        of(self.object(Kind::TaskRun, namespace, name)?, task_run)
    }

    /// The TaskRuns that the PipelineRun of that uid controls.
    pub fn task_runs_of<'a>(&'a self, namespace: &str, run: &str) -> impl Iterator<Item = TaskRunRef<'a>> {
        self.owned(namespace, run).filter_map(|(_, name, observed)| of((name, observed), task_run))
    }

    /// One Service.
    #[must_use]
    pub fn service(&self, namespace: &str, name: &str) -> Option<Ref<'_, ServiceSeen>> {
        of(self.object(Kind::Service, namespace, name)?, |what| match what {
            What::Service(seen) => Some(&**seen),
            _ => None,
        })
    }

    /// One PersistentVolumeClaim of a build.
    #[must_use]
    pub fn claim(&self, namespace: &str, name: &str) -> Option<Ref<'_, ClaimSeen>> {
        of(self.object(Kind::PersistentVolumeClaim, namespace, name)?, |what| match what {
            What::Claim(seen) => Some(seen),
            _ => None,
        })
    }

    /// The ServiceAccounts of a namespace that builds may use.
    pub fn build_accounts(&self, namespace: &str) -> impl Iterator<Item = &str> {
        let accounts = self.of_kind(Kind::ServiceAccount, namespace);
        let for_builds = |what: &What| matches!(what, What::ServiceAccount(seen) if seen.for_builds);
        accounts.filter(move |(_, observed)| for_builds(&observed.what)).map(|(name, _)| &**name)
    }
}
