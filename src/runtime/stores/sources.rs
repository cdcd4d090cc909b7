//! Which objects are watched: a table. Another kind is another row.

use super::Needs;
use crate::api::observed::Kind;
use crate::api::observed::wire::Raw;
use crate::domain::keys;

/// One list-and-watch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// What is watched, in all namespaces.
    pub(super) kind: Kind,
    /// `metadata.name` it is limited to.
    pub(super) name: Option<&'static str>,
    /// Label selector it is limited to.
    pub(super) labels: Option<&'static str>,
    /// Objects per page of the first list: few where they are large.
    pub(super) page: u32,
    /// Objects that another source delivers are left out here.
    pub(super) keep: fn(&Raw) -> bool,
    /// Who needs it.
    pub(super) needs: Needs,
    /// The API server may not serve the kind, now or at times: its definition is not part of Kubernetes.
    pub(super) optional: bool,
}

const SMALL: u32 = 500;
const LARGE: u32 = 100;

const fn all(kind: Kind, page: u32, needs: Needs) -> Source {
    Source { kind, name: None, labels: None, page, keep: |_| true, needs, optional: false }
}

const fn config_map(name: &'static str) -> Source {
    Source { name: Some(name), ..all(Kind::ConfigMap, SMALL, Needs::Admission) }
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
        keep: |raw| !raw.metadata.name.as_deref().is_some_and(|name| keys::WATCHED_CONFIG_MAPS.contains(&name)),
        ..all(Kind::ConfigMap, LARGE, Needs::Admission)
    },
    Source { optional: true, ..all(Kind::AgentRuntime, SMALL, Needs::Admission) },
    all(Kind::Deployment, LARGE, Needs::Controllers),
    all(Kind::StatefulSet, LARGE, Needs::Controllers),
    all(Kind::DaemonSet, LARGE, Needs::Controllers),
    all(Kind::ReplicaSet, LARGE, Needs::Controllers),
    all(Kind::CronJob, LARGE, Needs::Controllers),
    Source { optional: true, ..all(Kind::Sandbox, LARGE, Needs::Controllers) },
    Source { labels: Some(keys::LABEL_TYPE), ..all(Kind::Pod, LARGE, Needs::Controllers) },
    Source { name: Some(keys::CONFIG_MAP_GATE), ..all(Kind::ConfigMap, SMALL, Needs::Gate) },
];
