//! Counters of trust bundles, under the names that dashboards of the field know. The age is worked out at each scrape.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::state::Fault;
use crate::crypto::{Bundles, TrustBundle};
use crate::server::clock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

/// Counters of trust bundles. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct BundleMetrics {
    failures: Family<Reason, Counter>,
    bundles: Arc<Mutex<Bundles>>,
}

/// The age at the time of the scrape.
struct Age {
    descriptor: Descriptor,
    metrics: BundleMetrics,
}

/// What is registered of it; it is printed as the registry prints its own.
#[derive(Debug)]
struct Descriptor {
    name: &'static str,
    help: &'static str,
}

const AGE: Descriptor = Descriptor {
    name: "kagenti_x5c_trust_bundle_age_seconds",
    help: "Seconds since the trust bundle was last readable; absent while none was ever loaded",
};

impl std::fmt::Debug for Age {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.descriptor.fmt(f)
    }
}

impl BundleMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "kagenti_x5c_trust_bundle_load_errors",
            "Trust bundles that could not be used, once per content, by reason",
            self.failures.clone(),
        );
        registry.register_collector(Box::new(Age { descriptor: AGE, metrics: self.clone() }));
    }

    pub(super) fn failed(&self, fault: &Fault) {
        self.failures.get_or_create(&Reason { reason: fault.as_str() }).inc();
    }

    pub(super) fn in_force(&self, bundles: &Bundles) {
        *self.bundles.lock() = bundles.clone();
    }

    /// Seconds since the sources were last readable, `now`; none while nothing is loaded.
    pub(super) fn age(&self, now: SystemTime) -> Option<i64> {
        let read_at = self.bundles.lock().read_at()?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Some(i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(read_at).max(0))
    }

    /// One series in every family.
    pub fn fill(&self) {
        self.failed(&Fault::NotFound);
        let bundle = TrustBundle::default().into();
        self.in_force(&Bundles::loaded(bundle, Arc::default()));
    }
}

impl Collector for Age {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let Some(age) = self.metrics.age(clock::now()) else { return Ok(()) };
        let gauge = ConstGauge::new(age);
        let Descriptor { name, help } = self.descriptor;
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}

#[cfg(test)]
impl BundleMetrics {
    pub(super) fn failures(&self, reason: &'static str) -> u64 {
        self.failures.get_or_create(&Reason { reason }).get()
    }
}
