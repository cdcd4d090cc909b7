//! The metrics of this process, under the names that dashboards already know.
//!
//! In: increments from the parts. Out: OpenMetrics text. Promises: label values come from closed sets only
//! (reasons, routes, ports, causes), so the number of series does not grow with the cluster.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::domain::reason::Reason;

/// Seconds; the API server's own patience ends at 10.
const LATENCY_BUCKETS: [f64; 14] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

/// A reason as a label value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReasonValue(pub Reason);

impl EncodeLabelValue for ReasonValue {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(self.0.code())
    }
}

/// Labels of [`Metrics::webhook_requests`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct WebhookCode {
    pub webhook: &'static str,
    pub code: u16,
}

/// A webhook, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct Webhook {
    pub webhook: &'static str,
}

/// Labels of [`Metrics::decisions`] and [`Metrics::warnings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct Decision {
    pub reason: ReasonValue,
}

/// One of our listeners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct Port {
    pub port: &'static str,
}

/// Something that happened at a listener, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct PortCause {
    pub port: &'static str,
    pub cause: &'static str,
}

/// A cause alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct Cause {
    pub cause: &'static str,
}

/// A controller, a Lease or a source, by its fixed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
#[expect(missing_docs, reason = "fields are label names")]
pub struct Name {
    pub name: &'static str,
}

/// A fractional gauge.
pub type Seconds = Gauge<f64, AtomicU64>;

/// Every metric of the process. Shared as an `Arc`.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Answers by path and HTTP status of the envelope.
    pub webhook_requests: Family<WebhookCode, Counter>,
    /// From the end of the request's head to the answer.
    pub webhook_latency: Family<Webhook, Histogram, fn() -> Histogram>,
    /// Reviews between head and answer.
    pub webhook_in_flight: Family<Webhook, Gauge>,
    /// Verdicts by reason.
    pub decisions: Family<Decision, Counter>,
    /// Warnings by reason.
    pub warnings: Family<Decision, Counter>,
    /// Panics that were turned into an answer.
    pub panics: Counter,
    /// Reviews that were not decided, by cause.
    pub shed: Family<Cause, Counter>,
    /// Open connections.
    pub connections: Family<Port, Gauge>,
    /// Connections accepted.
    pub connections_accepted: Family<Port, Counter>,
    /// Connections that we ended, by cause.
    pub connections_ended: Family<PortCause, Counter>,
    /// TLS handshakes that failed, by cause.
    pub handshake_failures: Family<PortCause, Counter>,
    /// Errors of `accept`.
    pub accept_errors: Family<Port, Counter>,
    /// How long ago the snapshot was known to agree with the cluster; -1 before the first.
    pub snapshot_staleness: Seconds,
    /// Tasks of the runtime that have not ended, at the time of the scrape.
    pub tasks: Gauge,
    /// 1 while this process holds the Lease of that name.
    pub leader: Family<Name, Gauge>,
}

impl Metrics {
    /// All metrics, registered.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let metrics = Self {
            registry: Mutex::new(Registry::default()),
            webhook_requests: Family::default(),
            webhook_latency: Family::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS)),
            webhook_in_flight: Family::default(),
            decisions: Family::default(),
            warnings: Family::default(),
            panics: Counter::default(),
            shed: Family::default(),
            connections: Family::default(),
            connections_accepted: Family::default(),
            connections_ended: Family::default(),
            handshake_failures: Family::default(),
            accept_errors: Family::default(),
            snapshot_staleness: Seconds::default(),
            tasks: Gauge::default(),
            leader: Family::default(),
        };
        metrics.register_all();
        Arc::new(metrics)
    }

    fn register_all(&self) {
        self.register(|r| {
            let runtime = r.sub_registry_with_prefix("controller_runtime_webhook");
            runtime.register("requests", "Answers to admission reviews, by HTTP status", self.webhook_requests.clone());
            runtime.register("latency_seconds", "Time from the head of an admission review's request to its answer",
                self.webhook_latency.clone());
            runtime.register("requests_in_flight", "Admission reviews being answered", self.webhook_in_flight.clone());
            r.register("leader_election_master_status", "1 while this process holds the Lease, so that its controllers write",
                self.leader.clone());
            let ours = r.sub_registry_with_prefix("drawbridge");
            ours.register("decisions", "Decisions of admission reviews, by reason", self.decisions.clone());
            ours.register("warnings", "Warnings given in admission reviews, by reason", self.warnings.clone());
            ours.register("panics", "Panics while a review was answered, each of which became an answer", self.panics.clone());
            ours.register("shed", "Admission reviews that were not decided, by cause", self.shed.clone());
            ours.register("connections", "Open connections", self.connections.clone());
            ours.register("connections_accepted", "Connections accepted", self.connections_accepted.clone());
            ours.register("connections_ended", "Connections that Drawbridge ended, by cause", self.connections_ended.clone());
            ours.register("handshake_failures", "Failed TLS handshakes, by cause", self.handshake_failures.clone());
            ours.register("accept_errors", "Connections that could not be accepted", self.accept_errors.clone());
            ours.register("tasks", "Tasks that have not ended", self.tasks.clone());
            ours.register(
                "snapshot_staleness_seconds",
                "Time since the snapshot agreed with the cluster, by the watch that has been silent for longest: up to half a minute \
                 where nothing happens; -1 before the first",
                self.snapshot_staleness.clone(),
            );
        });
    }

    /// Lets another part add metrics of its own.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// Everything, as OpenMetrics text.
    ///
    /// # Errors
    /// Never in practice: writing to a string does not fail.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::with_capacity(16 * 1024);
        prometheus_client::encoding::text::encode(&mut text, &self.registry.lock())?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_dashboards_know() {
        let metrics = Metrics::new();
        metrics.webhook_requests.get_or_create(&WebhookCode { webhook: "/a", code: 200 }).inc();
        metrics.webhook_latency.get_or_create(&Webhook { webhook: "/a" }).observe(0.0002);
        metrics.decisions.get_or_create(&Decision { reason: ReasonValue(Reason::HostNetwork) }).inc();
        metrics.leader.get_or_create(&Name { name: "lease" }).set(1);
        let text = metrics.text().unwrap();
        for line in [
            r#"controller_runtime_webhook_requests_total{webhook="/a",code="200"} 1"#,
            r#"controller_runtime_webhook_latency_seconds_bucket{le="0.00025",webhook="/a"} 1"#,
            r#"leader_election_master_status{name="lease"} 1"#,
            r#"drawbridge_decisions_total{reason="HostNetwork"} 1"#,
            "drawbridge_panics_total 0",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is missing in:\n{text}");
        }
    }
}
