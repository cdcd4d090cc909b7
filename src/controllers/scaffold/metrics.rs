//! Counters of the controllers: who wrote what, and how it went.
//!
//! Beside our own there are those that controller-runtime has, under its names, so that its dashboards and alerts read us too. What
//! it calls reconciling is a plan with its writes here; its queue is the part of ours that is one controller's.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::apply::{ApplyError, Learned};
use super::lane::AskFault;
use super::memory::Memory;
use super::plan::{Controller, Op};
use super::queue::Ending;
use crate::domain::keys;
use crate::domain::resign::Cause;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    controller: &'static str,
    verb: &'static str,
    kind: &'static str,
    result: &'static str,
}

/// Seconds: controller-runtime's buckets of work.
const WORK: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    controller: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciler {
    controller: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: &'static str,
}

/// Counters in controller-runtime's terms. Clones share them.
#[derive(Debug, Clone)]
struct Field {
    reconciled: Family<Reconciled, Counter>,
    errors: Family<Reconciler, Counter>,
    depth: Family<Named, Gauge>,
    retries: Family<Named, Counter>,
    work: Family<Named, Histogram, fn() -> Histogram>,
}

impl Default for Field {
    fn default() -> Self {
        Self {
            reconciled: Family::default(),
            errors: Family::default(),
            depth: Family::default(),
            retries: Family::default(),
            work: Family::new_with_constructor(|| Histogram::new(WORK)),
        }
    }
}

impl Field {
    fn register(&self, registry: &mut Registry) {
        registry.register(
            "controller_runtime_reconcile",
            "Plans that ended, by controller and result: success, requeue (at once), requeue_after (later), error",
            self.reconciled.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_errors",
            "Plans that failed, by controller",
            self.errors.clone(),
        );
        registry.register("workqueue_depth", "Objects that wait for a worker, by controller", self.depth.clone());
        registry.register(
            "workqueue_retries",
            "Objects that wait to be tried again, by controller",
            self.retries.clone(),
        );
        registry.register(
            "workqueue_work_duration_seconds",
            "Time from the beginning of a plan to the end of its writes, by controller",
            self.work.clone(),
        );
    }
}

/// The counters. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ControllerMetrics {
    field: Field,
    writes: Family<Write, Counter>,
    ready: Gauge,
    gated: Gauge,
    gated_since: Gauge,
    /// Of which state of the store these two tell.
    gatings: Arc<AtomicU64>,
    rollouts: Family<State, Gauge>,
    drift: Family<State, Gauge>,
    protected: Family<State, Gauge>,
    questions: Family<Answered, Counter>,
    asking: Family<Asking, Gauge>,
    resigned: Family<Resigned, Counter>,
    opened: Family<State, Gauge>,
    armed: Family<State, Gauge>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Resigned {
    reason: &'static str,
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
        self.field.register(registry);
        registry.register(
            "drawbridge_controller_writes",
            "Writes of the controllers to the API server",
            self.writes.clone(),
        );
        registry.register("drawbridge_controller_ready_items", "Objects that wait for a worker", self.ready.clone());
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
        registry.register(
            "agentcard_resign_restarts",
            "Workloads that were restarted so that their card is signed anew, by why: leaf-expires, authority-expires, authority-lost",
            self.resigned.clone(),
        );
        registry.register(
            "drawbridge_trust_agents",
            "Agents with a card in namespaces that enforce trust, which are open because they are verified (open) or are not (cut-off)",
            self.opened.clone(),
        );
        registry.register(
            "drawbridge_trust_namespaces",
            "Namespaces that enforce trust in which NetworkPolicy drawbridge-default-deny stands (armed), or does not yet, so that no Pod of an agent \
             is made (waiting)",
            self.armed.clone(),
        );
    }

    /// A plan ended, its writes included.
    pub(super) fn reconciled(&self, controller: Controller, ending: Ending, took: Duration) {
        let controller = controller.as_str();
        let result = match ending {
            Ending::Done(None) | Ending::Made => "success",
            Ending::Done(Some(Duration::ZERO)) => "requeue",
            Ending::Done(Some(_)) => "requeue_after",
            Ending::Conflict | Ending::Failed(_) => "error",
        };
        self.field.reconciled.get_or_create(&Reconciled { controller, result }).inc();
        self.field.work.get_or_create(&Named { name: controller }).observe(took.as_secs_f64());
        if result == "error" {
            self.field.errors.get_or_create(&Reconciler { controller }).inc();
            self.field.retries.get_or_create(&Named { name: controller }).inc();
        }
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
        if let (Op::Merge { patch, .. }, Controller::Resign, "ok") = (op, controller, result) {
            let said =
                patch.pointer("/metadata/annotations").and_then(|all| all.get(keys::ANNOTATION_RESIGN_CAUSE)?.as_str());
            if let Some(cause) = said.and_then(Cause::named) {
                self.opened.get_or_create(&State { state: "open" }).set(0);
                self.armed.get_or_create(&State { state: "armed" }).set(0);
                self.resigned.get_or_create(&Resigned { reason: cause.as_str() }).inc();
            }
        }
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
        self.resigned.get_or_create(&Resigned { reason: Cause::LeafExpires.as_str() }).inc_by(0);
        self.opened.get_or_create(&State { state: "open" }).set(0);
        self.armed.get_or_create(&State { state: "armed" }).set(0);
        self.field.depth.get_or_create(&Named { name: "gate" }).set(0);
        self.reconciled(Controller::ServiceAccount, Ending::Conflict, Duration::ZERO);
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
        let (open, cut) = memory.opened();
        set(&self.opened, "open", open);
        set(&self.opened, "cut-off", cut);
        let (armed, waiting) = memory.armed();
        set(&self.armed, "armed", armed);
        set(&self.armed, "waiting", waiting);
    }

    /// How many items wait for a worker, in all and by controller.
    pub(super) fn queue(&self, ready: usize, depths: impl Iterator<Item = (Controller, usize)>) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.ready.set(number(ready));
        for (controller, depth) in depths {
            self.field.depth.get_or_create(&Named { name: controller.as_str() }).set(number(depth));
        }
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
    fn plans_are_counted_in_controller_runtimes_terms() {
        let metrics = ControllerMetrics::default();
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let later = Duration::from_secs(5);
        for ending in [
            Ending::Done(None),
            Ending::Made,
            Ending::Done(Some(Duration::ZERO)),
            Ending::Done(Some(later)),
            Ending::Conflict,
            Ending::Failed(later),
        ] {
            metrics.reconciled(Controller::Enrolment, ending, Duration::from_millis(20));
        }
        metrics.queue(3, [(Controller::Enrolment, 2), (Controller::ServiceAccount, 0)].into_iter());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let name = Controller::Enrolment.as_str();
        for line in [
            format!("controller_runtime_reconcile_total{{controller=\"{name}\",result=\"success\"}} 2"),
            format!("controller_runtime_reconcile_total{{controller=\"{name}\",result=\"requeue\"}} 1"),
            format!("controller_runtime_reconcile_total{{controller=\"{name}\",result=\"requeue_after\"}} 1"),
            format!("controller_runtime_reconcile_total{{controller=\"{name}\",result=\"error\"}} 2"),
            format!("controller_runtime_reconcile_errors_total{{controller=\"{name}\"}} 2"),
            format!("workqueue_retries_total{{name=\"{name}\"}} 2"),
            format!("workqueue_depth{{name=\"{name}\"}} 2"),
            format!("workqueue_work_duration_seconds_count{{name=\"{name}\"}} 6"),
            "drawbridge_controller_ready_items 3".to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

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
