//! Counters of the controllers: who wrote what, and how it went.
//!
//! Beside our own there are those that controller-runtime has, under its names, so that its dashboards and alerts read us too. What
//! it calls reconciling is a plan with its writes here; its queue is the part of ours that is one controller's.

use std::collections::BTreeMap;
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
use super::plan::{Name, Op};
use super::queue::Ending;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Write {
    controller: &'static str,
    verb: &'static str,
    kind: &'static str,
    result: &'static str,
}

/// In place of a controller's name, where families are filled for the reference.
const EXAMPLE: &str = "example";
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
    questions: Family<Answered, Counter>,
    asking: Family<Asking, Gauge>,
    /// What single controllers count, by the name of the family.
    own: Arc<BTreeMap<&'static str, OwnFamily>>,
}

/// A family that one controller fills, as a row of the table.
#[derive(Debug, Clone, Copy)]
pub struct FamilyRow {
    /// Its name.
    pub name: &'static str,
    /// What people are told of it.
    pub help: &'static str,
    /// A value that its one label takes.
    pub example: &'static str,
    /// What it counts.
    pub counts: Counts,
}

/// What a family of one controller counts.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// What there is, by label `state`: the controller publishes it ([`super::controller::Controller::gauges`]).
    State,
    /// Operations that were carried out.
    Ops {
        /// Whose.
        controller: Name,
        /// The value of label `reason`; `None` of an operation that is not counted.
        of: fn(&Op) -> Option<&'static str>,
    },
}

/// Such a family with its numbers.
#[derive(Debug)]
struct OwnFamily {
    row: FamilyRow,
    states: Family<State, Gauge>,
    reasons: Family<Why, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
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
    /// Counters with what single controllers count besides.
    #[must_use]
    pub fn with(rows: &[FamilyRow]) -> Self {
        let family = |row: &FamilyRow| OwnFamily { row: *row, states: Family::default(), reasons: Family::default() };
        let own = rows.iter().map(|row| (row.name, family(row))).collect();
        Self { own: Arc::new(own), ..Self::default() }
    }

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
            "drawbridge_controller_questions",
            "Questions of the controllers to others than the API server, by how they ended: ok, slow (asked again with more time), timed-out, \
             unreachable, refused, unusable, not-asked (what this process needs for it is missing)",
            self.questions.clone(),
        );
        registry.register(
            "drawbridge_controller_questions_open",
            "Questions of the controllers to others than the API server that are under way (running) or wait for their turn (waiting)",
            self.asking.clone(),
        );
        for family in self.own.values() {
            match family.row.counts {
                Counts::State => registry.register(family.row.name, family.row.help, family.states.clone()),
                Counts::Ops { .. } => registry.register(family.row.name, family.row.help, family.reasons.clone()),
            }
        }
    }

    /// A plan ended, its writes included.
    pub(super) fn reconciled(&self, controller: Name, ending: Ending, took: Duration) {
        self.planned(controller.as_str(), ending, took);
    }

    fn planned(&self, controller: &'static str, ending: Ending, took: Duration) {
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

    pub(super) fn answered(&self, controller: Name, fault: Option<AskFault>) {
        let result = fault.map_or("ok", AskFault::as_str);
        self.questions.get_or_create(&Answered { controller: controller.as_str(), result }).inc();
    }

    pub(super) fn questions(&self, controller: Name, running: usize, waiting: usize) {
        for (state, count) in [("running", running), ("waiting", waiting)] {
            let gauge = self.asking.get_or_create(&Asking { controller: controller.as_str(), state });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    pub(super) fn wrote(&self, controller: Name, op: &Op, result: &Result<Learned, ApplyError>) {
        let (verb, kind, _) = op.asks();
        let result = match result {
            // Whoever counts what fails is to see it, though nothing is tried again.
            Ok(Learned::Unkept(_)) => "error",
            Ok(_) => "ok",
            Err(ApplyError::Conflict { .. }) => "conflict",
            Err(ApplyError::Early { .. } | ApplyError::Unheard { .. }) => "early",
            Err(_) => "error",
        };
        let labels = Write { controller: controller.as_str(), verb, kind: kind.label(), result };
        self.writes.get_or_create(&labels).inc();
        if result == "ok" {
            self.carried_out(controller, op);
        }
    }

    fn carried_out(&self, by: Name, op: &Op) {
        for family in self.own.values() {
            if let Counts::Ops { controller, of } = family.row.counts
                && controller == by
                && let Some(reason) = of(op)
            {
                family.reasons.get_or_create(&Why { reason }).inc();
            }
        }
    }

    /// Sets a gauge of one controller.
    pub(super) fn gauge(&self, family: &str, state: &'static str, count: usize) {
        if let Some(family) = self.own.get(family) {
            family.states.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        let labels = Write { controller: EXAMPLE, verb: "delete", kind: "Pod", result: "ok" };
        self.writes.get_or_create(&labels).inc();
        self.rollouts.get_or_create(&State { state: "rolling" }).set(0);
        self.questions.get_or_create(&Answered { controller: EXAMPLE, result: "ok" }).inc();
        self.asking.get_or_create(&Asking { controller: EXAMPLE, state: "running" }).set(0);
        for family in self.own.values() {
            match family.row.counts {
                Counts::State => {
                    family.states.get_or_create(&State { state: family.row.example }).set(0);
                }
                Counts::Ops { .. } => {
                    family.reasons.get_or_create(&Why { reason: family.row.example }).inc_by(0);
                }
            }
        }
        self.field.depth.get_or_create(&Named { name: EXAMPLE }).set(0);
        self.planned(EXAMPLE, Ending::Conflict, Duration::ZERO);
    }

    /// How what is rolled through the fleet stands.
    pub(super) fn fleet(&self, memory: &Memory) {
        let set = |family: &Family<State, Gauge>, state, count: usize| {
            family.get_or_create(&State { state }).set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set(&self.rollouts, "rolling", memory.rolling());
        set(&self.rollouts, "slow", memory.slow().count());
        set(&self.rollouts, "waiting", memory.waiting());
        set(&self.rollouts, "failed", memory.failed());
    }

    /// How many items wait for a worker, in all and by controller.
    pub(super) fn queue(&self, ready: usize, depths: impl Iterator<Item = (Name, usize)>) {
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

    const ONE: Name = Name::new("one");

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
            metrics.reconciled(ONE, ending, Duration::from_millis(20));
        }
        metrics.queue(3, [(ONE, 2), (Name::new("other"), 0)].into_iter());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let name = ONE.as_str();
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

    #[test]
    fn what_one_controller_counts_is_exposed_and_of_nobody_else() {
        let of = |op: &Op| matches!(op, Op::Report(_)).then_some("told");
        let row = |name, counts| FamilyRow { name, help: "h", example: "x", counts };
        let rows = [row("gauges", Counts::State), row("counted", Counts::Ops { controller: ONE, of })];
        let metrics = ControllerMetrics::with(&rows);
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        metrics.gauge("gauges", "open", 3);
        metrics.gauge("of_nobody", "open", 3);
        let told = Op::Report(super::super::plan::Report {
            kind: crate::store::Kind::Pod,
            about: crate::store::Key::new("n", "p"),
            uid: "u".to_owned(),
            reason: crate::domain::reason::Reason::InternalError,
            message: "m".to_owned(),
            since: String::new(),
        });
        let looked = Op::Look { key: crate::store::Key::new("n", "s") };
        for (by, op) in [(ONE, &told), (Name::new("other"), &told), (ONE, &looked)] {
            metrics.wrote(by, op, &Ok(Learned::Nothing));
        }
        metrics.wrote(ONE, &told, &Err(ApplyError::Conflict { what: String::new() }));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in ["gauges{state=\"open\"} 3", "counted_total{reason=\"told\"} 1"] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("of_nobody"), "{text}");
    }
}
