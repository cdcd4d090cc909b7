//! Counters of the controllers: who wrote what, and how it went.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::apply::{ApplyError, Learned};
use super::lane::AskFault;
use super::memory::Memory;
use super::plan::{Controller, Op};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    controller: &'static str,
    verb: &'static str,
    kind: &'static str,
    result: &'static str,
}

/// The counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ControllerMetrics {
    writes: Family<Write, Counter>,
    ready: Gauge,
    gated: Gauge,
    gated_since: Gauge,
    /// Of which state of the world these two tell.
    gatings: Arc<AtomicU64>,
    rollouts: Family<State, Gauge>,
    drift: Family<State, Gauge>,
    protected: Family<State, Gauge>,
    questions: Family<Answered, Counter>,
    asking: Family<Asking, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    controller: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asking {
    controller: &'static str,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

impl ControllerMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("drawbridge_controller_writes", "Writes of the controllers", self.writes.clone());
        registry.register("drawbridge_controller_ready_items", "Items waiting for a worker", self.ready.clone());
        registry.register("drawbridge_gated_pods", "Pods that wait behind the scheduling gate", self.gated.clone());
        registry.register(
            "drawbridge_gated_pods_oldest_seconds",
            "When the oldest Pod behind the scheduling gate was created, in seconds since the epoch; 0 when there is none",
            self.gated_since.clone(),
        );
        registry.register(
            "drawbridge_rollouts",
            "Enrolled workloads that a change of configuration rolls (rolling), has rolled for more than ten minutes (slow, among \
             those that roll), is about to roll (waiting), or rolled without success (failed)",
            self.rollouts.clone(),
        );
        registry.register(
            "drawbridge_drifted_pods",
            "Pods of enrolled workloads whose rollout is over that run without the sidecars (unprotected) or with another \
             configuration (outdated)",
            self.drift.clone(),
        );
        registry.register(
            "drawbridge_agent_runtimes",
            "AgentRuntimes whose condition Protected is True (protected) or False (unprotected)",
            self.protected.clone(),
        );
        registry.register(
            "drawbridge_controller_questions",
            "Questions of the controllers to others than the API server, by how they ended: ok, slow (asked again with more time), timed-out, \
             unreachable, refused, unusable",
            self.questions.clone(),
        );
        registry.register(
            "drawbridge_controller_questions_open",
            "Questions of the controllers to others than the API server that are under way (running) or wait for their turn (waiting)",
            self.asking.clone(),
        );
    }

    pub(super) fn answered(&self, controller: Controller, fault: Option<AskFault>) {
        let result = fault.map_or("ok", AskFault::as_str);
        self.questions.get_or_create(&Answered { controller: controller.as_str(), result }).inc();
    }

    pub(super) fn questions(&self, controller: Controller, running: usize, waiting: usize) {
        for (state, count) in [("running", running), ("waiting", waiting)] {
            let gauge = self.asking.get_or_create(&Asking { controller: controller.as_str(), state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn wrote(&self, controller: Controller, op: &Op, result: &Result<Learned, ApplyError>) {
        let (verb, kind, _) = op.asks();
        let result = match result {
            Ok(_) => "ok",
            Err(ApplyError::Conflict { .. }) => "conflict",
            Err(_) => "error",
        };
        let labels = Write { controller: controller.as_str(), verb, kind: kind.label(), result };
        self.writes.get_or_create(&labels).inc();
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        let labels = Write { controller: "gate", verb: "delete", kind: "Pod", result: "ok" };
        self.writes.get_or_create(&labels).inc();
        self.rollouts.get_or_create(&State { state: "rolling" }).set(0);
        self.drift.get_or_create(&State { state: "outdated" }).set(0);
        self.protected.get_or_create(&State { state: "protected" }).set(0);
        self.questions.get_or_create(&Answered { controller: "agent-card", result: "ok" }).inc();
        self.asking.get_or_create(&Asking { controller: "agent-card", state: "running" }).set(0);
    }

    /// How enrolled workloads and their Pods stand.
    pub(super) fn fleet(&self, memory: &Memory) {
        let set = |family: &Family<State, Gauge>, state, count: usize| {
            family.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set(&self.rollouts, "rolling", memory.rolling());
        set(&self.rollouts, "slow", memory.slow().count());
        set(&self.rollouts, "waiting", memory.waiting());
        set(&self.rollouts, "failed", memory.failed());
        let (unprotected, outdated) = memory.drift();
        set(&self.drift, "unprotected", unprotected);
        set(&self.drift, "outdated", outdated);
        let (protected, unprotected) = memory.protected();
        set(&self.protected, "protected", protected);
        set(&self.protected, "unprotected", unprotected);
    }

    pub(super) fn queue(&self, ready: usize) {
        self.ready.set(i64::try_from(ready).unwrap_or(i64::MAX));
    }

    /// The Pods behind the gate, by the RFC 3339 times at which they were created; counted anew only when `gatings` is another number.
    pub(super) fn gated<'a>(&self, gatings: u64, created: impl Iterator<Item = &'a str>) {
        if self.gatings.swap(gatings, Ordering::Relaxed) == gatings {
            return;
        }
        let (mut count, mut oldest) = (0, 0);
        for since in created.filter_map(|time| time.parse::<jiff::Timestamp>().ok()).map(jiff::Timestamp::as_second) {
            oldest = if count == 0 { since } else { oldest.min(since) };
            count += 1;
        }
        self.gated.set(count);
        self.gated_since.set(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gated_pod_is_told_and_none_is_zero() {
        let metrics = ControllerMetrics::default();
        let gated = ["1970-01-01T00:10:00Z", "1970-01-01T00:05:00Z", "nonsense"];
        metrics.gated(1, gated.into_iter());
        assert_eq!((metrics.gated.get(), metrics.gated_since.get()), (2, 300));
        // Thousands may wait after an outage, and every turn asks.
        metrics.gated(1, gated.into_iter().inspect(|_| panic!("nothing has changed")));
        metrics.gated(2, std::iter::empty());
        assert_eq!((metrics.gated.get(), metrics.gated_since.get()), (0, 0));
    }
}
