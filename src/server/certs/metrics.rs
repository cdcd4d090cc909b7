//! What is counted about certificates.
//!
//! Names: `certwatcher_*` are the ones dashboards of the original know; the others
//! are ours. Every label is a closed set.

use std::sync::{Arc, OnceLock};

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::root::Root;

/// Which certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum Part {
    /// What the server presents.
    Leaf,
    /// What signs it.
    Authority,
    /// What the server presents, from files or from somebody else's Secret.
    Provided,
    /// What signs the certificates of callers.
    Clients,
}

impl Part {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Part::Leaf => "serving certificate",
            Part::Authority => "certificate authority",
            Part::Provided => "provided serving certificate",
            Part::Clients => "authority of client certificates",
        }
    }

    /// What to do when it is about to expire.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Part::Leaf => "see the log for why its authority cannot sign",
            Part::Authority => {
                "check that this replica reaches the API server and may update Secret drawbridge-webhook-ca; an \
                 authority without label app.kubernetes.io/managed-by=drawbridge is never renewed: replace it, or delete \
                 the Secret to get one of Drawbridge's"
            }
            Part::Provided => "whoever provides the files or the Secret must renew it",
            Part::Clients => "put its successor beside it into the file of --webhook-client-ca",
        }
    }
}

/// What happened to the authority's Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum SecretOutcome {
    /// We created it.
    Created,
    /// We changed it.
    Replaced,
    /// Another replica was first.
    Lost,
    /// The API server refused or did not answer.
    Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabel {
    part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: SecretOutcome,
}

/// A gauge that is exposed once it was set: a process in which nobody knows its value says nothing, where 0 would be a
/// claim. Clones share it.
#[derive(Debug, Clone, Default)]
struct OnceSet(Arc<OnceLock<Gauge>>);

impl OnceSet {
    fn set(&self, value: i64) {
        self.0.get_or_init(Gauge::default).set(value);
    }
}

impl EncodeMetric for OnceSet {
    fn encode(&self, encoder: MetricEncoder<'_>) -> std::fmt::Result {
        self.0.get().map_or(Ok(()), |gauge| gauge.encode(encoder))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }
}

/// The metrics; clones share them.
#[derive(Debug, Clone, Default)]
pub struct CertificateMetrics {
    reads: Counter,
    read_errors: Counter,
    not_after: Family<PartLabel, Gauge>,
    changes: Family<PartLabel, Counter>,
    secret: Family<OutcomeLabel, Counter>,
    bundle_writes: Counter,
    bundle_failures: Counter,
    bundle_overwritten: Counter,
    bundle_published: OnceSet,
    bundle_contested: OnceSet,
}

impl CertificateMetrics {
    /// Registers all of them.
    #[must_use]
    pub fn register(registry: &mut Registry) -> CertificateMetrics {
        let metrics = CertificateMetrics::default();
        let m = metrics.clone();
        registry.register("certwatcher_read_certificate", "Readings of certificate files that were tried", m.reads);
        registry.register(
            "certwatcher_read_certificate_errors",
            "Contents of certificate files that could not be used; the last good pair stays",
            m.read_errors,
        );
        registry.register(
            "drawbridge_certificate_not_after_seconds",
            "End of validity of the certificates in use, in seconds since the epoch",
            m.not_after,
        );
        registry.register("drawbridge_certificate_changes", "Certificates taken into use", m.changes);
        registry.register(
            "drawbridge_authority_secret_writes",
            "Attempts to write the certificate authority's Secret",
            m.secret,
        );
        registry.register("drawbridge_bundle_writes", "Patches of caBundle that were accepted", m.bundle_writes);
        registry.register("drawbridge_bundle_write_failures", "Patches of caBundle that failed", m.bundle_failures);
        registry.register(
            "drawbridge_bundle_overwritten",
            "Times somebody else took Drawbridge's certificate authority out of a caBundle",
            m.bundle_overwritten,
        );
        registry.register(
            "drawbridge_bundle_published",
            "1 when every webhook entry trusts the certificate being served, or others keep caBundle because its \
             authority is not known; absent where files are served",
            m.bundle_published,
        );
        registry.register(
            "drawbridge_bundle_contested",
            "Webhook configurations whose caBundle somebody else overwrote and that are not repaired yet",
            m.bundle_contested,
        );
        metrics
    }

    pub(super) fn read(&self) {
        self.reads.inc();
    }

    pub(super) fn read_failed(&self) {
        self.read_errors.inc();
    }

    /// A certificate was taken into use.
    pub(super) fn in_use(&self, part: Part, certificate: &Root) {
        self.not_after.get_or_create(&PartLabel { part }).set(certificate.not_after / 1000);
        self.changes.get_or_create(&PartLabel { part }).inc();
    }

    pub(super) fn secret(&self, outcome: SecretOutcome) {
        self.secret.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(super) fn bundle_written(&self) {
        self.bundle_writes.inc();
    }

    pub(super) fn bundle_failed(&self) {
        self.bundle_failures.inc();
    }

    pub(super) fn bundle_overwritten(&self) {
        self.bundle_overwritten.inc();
    }

    pub(super) fn bundle_state(&self, published: bool, contested: usize) {
        self.bundle_published.set(i64::from(published));
        self.bundle_contested.set(i64::try_from(contested).unwrap_or(i64::MAX));
    }

    /// One series in every family: what the reference of all families is compared with, since a family without any is not exposed.
    pub fn fill(&self) {
        self.changes.get_or_create(&PartLabel { part: Part::Leaf }).inc();
        self.not_after.get_or_create(&PartLabel { part: Part::Leaf }).set(1);
        self.secret(SecretOutcome::Created);
        self.bundle_state(true, 0);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    /// The lines of the registry about published bundles.
    fn exposed(registry: &Registry) -> Vec<String> {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        let about = ["drawbridge_bundle_published", "drawbridge_bundle_contested"];
        let lines = text.lines().filter(|line| about.iter().any(|name| line.starts_with(name)));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn a_process_that_knows_nothing_of_bundles_does_not_say_that_they_are_not_published() {
        let mut registry = Registry::default();
        let metrics = CertificateMetrics::register(&mut registry);
        assert!(exposed(&registry).is_empty(), "files have no publisher: {:?}", exposed(&registry));
        metrics.bundle_state(false, 0);
        assert_eq!(exposed(&registry), ["drawbridge_bundle_published 0", "drawbridge_bundle_contested 0"]);
        metrics.bundle_state(true, 1);
        assert_eq!(exposed(&registry), ["drawbridge_bundle_published 1", "drawbridge_bundle_contested 1"]);
    }
}
