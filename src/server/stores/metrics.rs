//! Counters of the watches: which kind, what went wrong.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::room::Room;
use crate::config::bounds::Bound;
use crate::store::{self, Kind, Reach};

/// Why a watch was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Cause {
    /// 401 or 403: permissions are missing.
    Forbidden,
    /// 410: everything is read again.
    Gone,
    /// 429 or a 5xx.
    ServerError,
    /// Another refusal.
    Refused,
    /// Transport.
    Connection,
    /// Nothing came in time.
    Silent,
    /// The server ended the watch at once.
    TooShort,
}

impl Cause {
    pub(super) fn of_code(code: u16) -> Self {
        match code {
            401 | 403 => Cause::Forbidden,
            410 => Cause::Gone,
            429 | 500..=599 => Cause::ServerError,
            _ => Cause::Refused,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Cause::Forbidden => "forbidden",
            Cause::Gone => "gone",
            Cause::ServerError => "server_error",
            Cause::Refused => "refused",
            Cause::Connection => "connection",
            Cause::Silent => "silent",
            Cause::TooShort => "too_short",
        }
    }
}

impl EncodeLabelValue for Cause {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), Error> {
        self.as_str().encode(encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    kind: &'static str,
    cause: Cause,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Sources {
    kind: &'static str,
    state: &'static str,
}

/// The counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct WatchMetrics {
    failures: Family<Labels, Counter>,
    sources: Family<Sources, Gauge>,
    objects_over: Family<ObjectsOver, Gauge>,
    objects_kept: Family<ObjectsKept, Gauge>,
    /// What is kept of ConfigMaps.
    pub texts: TextMetrics,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectsOver {
    kind: &'static str,
    bound: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ObjectsKept {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Over {
    bound: &'static str,
}

/// What is kept of ConfigMaps. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct TextMetrics {
    kept: Gauge,
    waiting: Gauge,
    over: Family<Over, Gauge>,
}

impl TextMetrics {
    fn register(&self, registry: &mut Registry) {
        let help = "Bytes kept of what the ConfigMaps of all namespaces say, estimated from above";
        registry.register("drawbridge_config_kept_bytes", help, self.kept.clone());
        let help = "Namespaces with ConfigMaps that have not been read since they changed";
        registry.register("drawbridge_config_waiting_namespaces", help, self.waiting.clone());
        let help = "ConfigMaps that are not read because they are over a bound (docs/limits.md): size (of one), \
                    count, text (of those of one sort together), kept (of what they say), total (of all namespaces)";
        registry.register("drawbridge_config_over_bound", help, self.over.clone());
    }

    pub(super) fn set(&self, (kept, waiting): (usize, usize), over: &BTreeMap<Bound, usize>) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.kept.set(number(kept));
        self.waiting.set(number(waiting));
        for bound in Bound::ALL {
            let count = over.get(&bound).copied().unwrap_or_default();
            self.over.get_or_create(&Over { bound: bound.as_str() }).set(number(count));
        }
    }
}

impl WatchMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        let help = "Interruptions of watches, by kind and cause";
        registry.register("drawbridge_watch_failures", help, self.failures.clone());
        let help = "Watches by kind and state: listed (all is known), absent (the API server does not serve the kind), \
                    unknown (not read yet, or not permitted)";
        registry.register("drawbridge_watches", help, self.sources.clone());
        let help = "Agents, AgentBuilds, AgentRuntimes, AgentCards, Roles, RoleBindings and ConfigMaps for signed cards, and NetworkPolicies of which nothing is read but their status or owner, and Deployments, \
                    Services and ServiceAccounts of which is not kept what was applied, because they are over a bound \
                    (docs/limits.md): size (of one), count (in one namespace), total (of what is kept)";
        registry.register("drawbridge_objects_over_bound", help, self.objects_over.clone());
        let help = "Bytes kept of what is written on Agents, AgentBuilds, AgentRuntimes, AgentCards, Roles, RoleBindings and ConfigMaps for signed cards, and NetworkPolicies, and of who owns the fields of Deployments, Services and ServiceAccounts, estimated from above";
        registry.register("drawbridge_objects_kept_bytes", help, self.objects_kept.clone());
        self.texts.register(registry);
    }

    pub(super) fn objects(&self, kind: Kind, room: &Room) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let kind = kind.label();
        self.objects_kept.get_or_create(&ObjectsKept { kind }).set(number(room.held()));
        for bound in store::Over::ALL {
            let labels = ObjectsOver { kind, bound: bound.as_str() };
            self.objects_over.get_or_create(&labels).set(number(room.count(bound)));
        }
    }

    pub(super) fn sources(&self, kind: Kind, reach: Reach, count: usize) {
        let state = match reach {
            Reach::Unknown => "unknown",
            Reach::Listed => "listed",
            Reach::Absent => "absent",
        };
        let labels = Sources { kind: kind.label(), state };
        self.sources.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        self.failed(Kind::Pod, Cause::Gone);
        self.sources(Kind::Pod, Reach::Listed, 1);
        self.objects(Kind::Agent, &Room::default());
        self.texts.set((1, 0), &BTreeMap::new());
    }

    pub(super) fn failed(&self, kind: Kind, cause: Cause) {
        self.failures.get_or_create(&Labels { kind: kind.label(), cause }).inc();
    }
}
