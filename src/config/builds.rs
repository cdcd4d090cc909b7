//! What reviews and controllers know about builds and agents, besides the objects themselves.
//!
//! In: the platform file, the ConfigMaps with templates and steps, and which AgentBuilds exist. Out: one immutable
//! value in every [`super::snapshot::Snapshot`]. Promise: nothing in it is looked up on behalf of a review.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::pipelines::templates::TemplatesView;
use crate::{pipelines, workloads};

/// Names of AgentBuilds, by namespace.
pub type Names = BTreeMap<Arc<str>, BTreeSet<String>>;

/// What the platform decides about all builds and agents.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// About builds.
    pub pipelines: pipelines::settings::Settings,
    /// About the workloads of agents.
    pub workloads: workloads::settings::Settings,
}

impl Settings {
    /// The built-in settings of an operator in that namespace.
    #[must_use]
    pub fn new(operator_namespace: impl Into<String>) -> Self {
        Self {
            pipelines: pipelines::settings::Settings::new(operator_namespace),
            workloads: workloads::settings::Settings::default(),
        }
    }
}

/// Settings, templates, steps and the names of AgentBuilds.
#[derive(Debug, Clone, PartialEq)]
pub struct Builds {
    /// What the platform decides about all builds and agents.
    pub settings: Settings,
    /// The templates and steps of all namespaces.
    pub view: TemplatesView,
    /// AgentBuilds that exist; `None` where nobody knows, as in a stream of manifests.
    pub names: Option<Names>,
}

impl Builds {
    /// No template, no step, and no AgentBuild that anybody knows of, under these settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let view = TemplatesView::new(&*settings.pipelines.operator_namespace, settings.pipelines.privileged_steps);
        Self { settings, view, names: None }
    }

    /// Names of the AgentBuilds of a namespace, where they are known.
    #[must_use]
    pub fn names(&self, namespace: &str) -> Option<&BTreeSet<String>> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        Some(self.names.as_ref()?.get(namespace).unwrap_or(&NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_without_builds_differs_from_one_that_nobody_looked_at() {
        let mut builds = Builds::new(Settings::new("kagenti-system"));
        assert_eq!(builds.names("team1"), None);
        builds.names = Some(Names::from([("team1".into(), BTreeSet::from(["weather".to_owned()]))]));
        assert_eq!(builds.names("team1").map(BTreeSet::len), Some(1));
        assert_eq!(builds.names("team2").map(BTreeSet::len), Some(0));
    }
}
