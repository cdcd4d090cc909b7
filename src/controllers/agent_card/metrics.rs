//! Counters of cards, under the names that dashboards of the field know. In: how a question ended, what a document was
//! found to be. Promise: no label is anything that an agent or a tenant wrote, and none names a card.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::controllers::scaffold::lane::AskFault;
use crate::crypto::Verdict;

/// Seconds; those of the field's dashboards.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Where keys come from: the chain in a signature's header.
const PROVIDER: &str = "x5c";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    source: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Verified {
    provider: &'static str,
    result: &'static str,
    audit_mode: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Provider {
    provider: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    provider: &'static str,
    error_type: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Chain {
    valid: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Signed {
    profile: &'static str,
}

/// The counters. Clones share them.
#[derive(Debug, Clone)]
pub struct CardMetrics {
    fetches: Family<Asked, Counter>,
    duration: Histogram,
    last_success: Gauge,
    verifications: Family<Verified, Counter>,
    verification: Family<Provider, Histogram, fn() -> Histogram>,
    errors: Family<Failed, Counter>,
    chains: Family<Chain, Counter>,
    profiles: Family<Signed, Counter>,
}

/// Where a card was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// A Pod, over HTTP.
    Agent,
    /// The workload's ConfigMap.
    ConfigMap,
}

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl Default for CardMetrics {
    fn default() -> Self {
        Self {
            fetches: Family::default(),
            duration: histogram(),
            last_success: Gauge::default(),
            verifications: Family::default(),
            verification: Family::new_with_constructor(histogram),
            errors: Family::default(),
            chains: Family::default(),
            profiles: Family::default(),
        }
    }
}

impl CardMetrics {
    /// Puts the counters into a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "agentcard_fetch",
            "Cards that were asked for, by where and by how it ended",
            self.fetches.clone(),
        );
        registry.register(
            "agentcard_fetch_duration_seconds",
            "Time until a question for a card ended",
            self.duration.clone(),
        );
        registry.register(
            "agentcard_last_success_timestamp_seconds",
            "When a card was last read, of whichever agent; 0 while none was",
            self.last_success.clone(),
        );
        registry.register(
            "a2a_signature_verification",
            "Documents whose signatures were judged, by result",
            self.verifications.clone(),
        );
        registry.register(
            "a2a_signature_verification_duration_seconds",
            "Time that judging the signatures of one document took",
            self.verification.clone(),
        );
        registry.register(
            "a2a_signature_verification_errors",
            "Documents whose signatures could not be judged, because no trust bundle was ever readable",
            self.errors.clone(),
        );
        registry.register(
            "kagenti_x5c_chain_validation",
            "Entries of signatures that were judged, by what they came to",
            self.chains.clone(),
        );
        registry.register(
            "agentcard_signature_profile",
            "Good signatures, by the rules for the signed bytes that fitted",
            self.profiles.clone(),
        );
    }

    /// A question for a card has ended at `now`, in seconds since 1970, after that time.
    pub fn asked(&self, source: From, fault: Option<AskFault>, took: Duration, now: i64) {
        let source = match source {
            From::Agent => "agent",
            From::ConfigMap => "config-map",
        };
        let result = fault.map_or("ok", AskFault::as_str);
        self.fetches.get_or_create(&Asked { source, result }).inc();
        self.duration.observe(took.as_secs_f64());
        if fault.is_none() {
            self.last_success.set(now);
        }
    }

    /// The signatures of a document were judged.
    pub fn judged(&self, verdict: &Verdict, audit: bool, took: Duration) {
        self.verification.get_or_create(&Provider { provider: PROVIDER }).observe(took.as_secs_f64());
        if matches!(verdict, Verdict::Unknown) {
            self.errors.get_or_create(&Failed { provider: PROVIDER, error_type: "verification_error" }).inc();
            return;
        }
        let result = if verdict.verified().is_some() { "success" } else { "failed" };
        let audit_mode = if audit { "true" } else { "false" };
        self.verifications.get_or_create(&Verified { provider: PROVIDER, result, audit_mode }).inc();
        for class in verdict.classes() {
            let reason = class.as_str();
            let valid = if reason == "ok" { "true" } else { "false" };
            self.chains.get_or_create(&Chain { valid, reason }).inc();
        }
        for good in verdict.verified().into_iter().flat_map(|verified| verified.good()) {
            self.profiles.get_or_create(&Signed { profile: good.profile.as_str() }).inc();
        }
    }

    /// One series in every family.
    pub fn fill(&self) {
        self.asked(From::Agent, None, Duration::ZERO, 0);
        self.judged(&Verdict::Unknown, false, Duration::ZERO);
        self.verifications
            .get_or_create(&Verified { provider: PROVIDER, result: "success", audit_mode: "false" })
            .inc_by(0);
        self.chains.get_or_create(&Chain { valid: "true", reason: "ok" }).inc_by(0);
        self.profiles.get_or_create(&Signed { profile: "kagenti-v2" }).inc_by(0);
    }
}
