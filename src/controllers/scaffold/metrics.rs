//! Counters of the controllers: who wrote what, and how it went.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::apply::{ApplyError, Learned};
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
}

impl ControllerMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("drawbridge_controller_writes", "Writes of the controllers", self.writes.clone());
        registry.register("drawbridge_controller_ready_items", "Items waiting for a worker", self.ready.clone());
    }

    pub(super) fn wrote(&self, controller: Controller, op: &Op, result: &Result<Learned, ApplyError>) {
        let (verb, kind, _) = op.asks();
        let result = match result {
            Ok(_) => "ok",
            Err(ApplyError::Conflict { .. }) => "conflict",
            Err(_) => "error",
        };
        let labels = Write { controller: controller.as_str(), verb, kind: kind.as_str(), result };
        self.writes.get_or_create(&labels).inc();
    }

    pub(super) fn queue(&self, ready: usize) {
        self.ready.set(i64::try_from(ready).unwrap_or(i64::MAX));
    }
}
