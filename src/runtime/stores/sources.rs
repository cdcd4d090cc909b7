//! Which objects are watched: a table. Another kind is another row.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::Needs;
use super::texts::is_template;
use crate::api::observed::{Key, Kind, What};
use crate::domain::keys;

/// One list-and-watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// What is watched.
    pub(super) kind: Kind,
    /// `metadata.name` it is limited to.
    pub(super) name: Option<&'static str>,
    /// Label selector it is limited to.
    pub(super) labels: Option<&'static str>,
    /// In the operator's own namespace only, otherwise in all.
    pub(super) own: bool,
    /// Other sources with this mark deliver the same objects, depending on labels that change.
    pub(super) overlaps: bool,
    /// Objects per page of the first list: few where they are large.
    pub(super) page: u32,
    /// Objects that another source delivers are left out here.
    pub(super) keep: fn(&Key, &What) -> bool,
    /// Who needs it.
    pub(super) needs: Needs,
    /// The API server may not serve the kind, now or at times: its definition is not part of Kubernetes.
    pub(super) optional: bool,
}

const SMALL: u32 = 500;
const LARGE: u32 = 100;
/// Anybody who may write one ConfigMap can make it as large as the API server takes them: 1 MiB, and more with what surrounds it.
const TEXTS: u32 = 8;
/// Tekton copies whole pipelines into its objects, and our own kinds hold whole Pod templates.
const RUNS: u32 = 20;

const fn all(kind: Kind, page: u32, needs: Needs) -> Source {
    Source {
        kind,
        name: None,
        labels: None,
        own: false,
        overlaps: false,
        page,
        keep: |_, _| true,
        needs,
        optional: false,
    }
}

const fn config_map(name: &'static str) -> Source {
    Source { name: Some(name), ..all(Kind::ConfigMap, TEXTS, Needs::Admission) }
}

/// Pages of ConfigMaps that are read at once, in the whole process: each may be as large as eight of them can be.
static PAGES: Semaphore = Semaphore::const_new(2);

impl Source {
    /// Waits until a page may be read; to be held until nothing of it is left.
    pub(super) async fn page_turn(&self) -> Option<SemaphorePermit<'static>> {
        if self.kind == Kind::ConfigMap { PAGES.acquire().await.ok() } else { None }
    }

    /// The namespaces it is watched in, each by a watch of its own; `None` for all at once. When only `served` namespaces are, ConfigMaps
    /// of our `own` are followed all the same: they hold templates and steps.
    pub(super) fn places(&self, own: &Arc<str>, served: &[Arc<str>]) -> Vec<Option<Arc<str>>> {
        if self.own {
            return vec![Some(own.clone())];
        }
        if served.is_empty() || !self.kind.is_namespaced() {
            return vec![None];
        }
        let mut places = served.to_vec();
        if self.kind == Kind::ConfigMap && !served.contains(own) {
            places.push(own.clone());
        }
        places.into_iter().map(Some).collect()
    }
}

/// Those that sources by name deliver.
fn is_named(key: &Key) -> bool {
    keys::WATCHED_CONFIG_MAPS.contains(&&*key.name) || is_template(&key.name)
}

fn holds_step(what: &What) -> bool {
    matches!(what, What::ConfigMap(seen) if seen.holds_step)
}

/// What builds made carries their label, and Tekton passes it on to what it makes for them.
const fn of_builds(source: Source) -> Source {
    Source { labels: Some(keys::LABEL_AGENT_BUILD), ..source }
}

/// Every source, in the order in which they are started.
pub(super) const SOURCES: &[Source] = &[
    all(Kind::Namespace, SMALL, Needs::Admission),
    all(Kind::ServiceAccount, SMALL, Needs::Admission),
    all(Kind::Job, LARGE, Needs::Admission),
    Source { name: Some(keys::CSI_DRIVER_SPIFFE), ..all(Kind::CsiDriver, SMALL, Needs::Admission) },
    config_map(keys::CONFIG_MAP_AUTHBRIDGE),
    config_map(keys::CONFIG_MAP_RUNTIME),
    config_map(keys::CONFIG_MAP_SPIFFE_HELPER),
    config_map(keys::CONFIG_MAP_ENVOY),
    config_map(keys::CONFIG_MAP_ROUTES),
    Source {
        labels: Some("kagenti.io/defaults=true"),
        overlaps: true,
        keep: |key, _| !is_named(key),
        ..all(Kind::ConfigMap, TEXTS, Needs::Admission)
    },
    config_map("pipeline-template-dev"),
    config_map("pipeline-template-buildpack-dev"),
    config_map("pipeline-template-dev-local"),
    config_map("pipeline-template-dev-external"),
    config_map("pipeline-template-preprod"),
    config_map("pipeline-template-prod"),
    Source {
        labels: Some("kagenti.operator.dev/tekton=step"),
        overlaps: true,
        keep: |key, _| !is_named(key),
        ..all(Kind::ConfigMap, TEXTS, Needs::Admission)
    },
    // Of our own namespace a step needs no label; and when this installation was made stands there.
    Source {
        own: true,
        overlaps: true,
        keep: |key, what| !is_named(key) && (holds_step(what) || &*key.name == keys::CONFIG_MAP_ENROLMENT),
        ..all(Kind::ConfigMap, TEXTS, Needs::Admission)
    },
    Source { optional: true, ..all(Kind::AgentRuntime, RUNS, Needs::Admission) },
    Source { optional: true, ..all(Kind::AgentBuild, RUNS, Needs::Admission) },
    all(Kind::Deployment, LARGE, Needs::Controllers),
    all(Kind::StatefulSet, LARGE, Needs::Controllers),
    all(Kind::DaemonSet, LARGE, Needs::Controllers),
    all(Kind::ReplicaSet, LARGE, Needs::Controllers),
    all(Kind::CronJob, LARGE, Needs::Controllers),
    Source { optional: true, ..all(Kind::Sandbox, LARGE, Needs::Controllers) },
    Source { labels: Some(keys::LABEL_TYPE), ..all(Kind::Pod, LARGE, Needs::Controllers) },
    Source { optional: true, ..all(Kind::Agent, RUNS, Needs::Controllers) },
    of_builds(Source { optional: true, ..all(Kind::PipelineRun, RUNS, Needs::Controllers) }),
    of_builds(Source { optional: true, ..all(Kind::TaskRun, RUNS, Needs::Controllers) }),
    of_builds(all(Kind::PersistentVolumeClaim, LARGE, Needs::Controllers)),
    Source {
        keep: |_, what| matches!(what, What::BuildPod(_)),
        ..of_builds(all(Kind::Pod, LARGE, Needs::Controllers))
    },
    all(Kind::Service, LARGE, Needs::Controllers),
    Source { name: Some(keys::CONFIG_MAP_GATE), ..all(Kind::ConfigMap, TEXTS, Needs::Gate) },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::agent_kagenti_dev::agent_build::MODES;
    use crate::build::agent_build::CUSTOM;

    #[test]
    fn only_served_namespaces_are_watched_and_config_maps_of_our_own() {
        let (own, served): (Arc<str>, Vec<Arc<str>>) = ("own".into(), vec!["team1".into(), "team2".into()]);
        for source in SOURCES {
            assert_eq!(source.places(&own, &[]), [source.own.then(|| own.clone())]);
            let places = source.places(&own, &served);
            let names: Vec<_> = places.iter().map(|place| place.as_deref().unwrap_or("*")).collect();
            let expected: &[&str] = match source.kind {
                _ if source.own => &["own"],
                Kind::Namespace | Kind::CsiDriver => &["*"],
                Kind::ConfigMap => &["team1", "team2", "own"],
                _ => &["team1", "team2"],
            };
            assert_eq!(names, expected, "{:?}", source.kind);
        }
    }

    #[test]
    fn every_mode_that_may_have_a_template_is_watched() {
        let mut watched: Vec<_> =
            SOURCES.iter().filter_map(|source| is_template(source.name?).then_some(source.name?)).collect();
        let modes = MODES.into_iter().filter(|mode| *mode != CUSTOM);
        let mut wanted: Vec<_> = modes.map(|mode| format!("{}{mode}", keys::PREFIX_TEMPLATE)).collect();
        watched.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(watched, wanted);
        assert!(SOURCES.len() <= 64, "claims have one bit per source");
    }
}
