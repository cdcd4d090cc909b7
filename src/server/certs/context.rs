//! What every certificate source needs of its surroundings: the clock, metrics, and a way to tell people.
//!
//! In: a clock and a listener from whoever wires the process. Out: log lines, metrics and notices. The sources read
//! the time nowhere else, so that tests hand in any day they like.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

use super::expiry::Threshold;
use super::metrics::{CertificateMetrics, Part};
use super::root::{Millis, Root};
use crate::api::event::Regarding;
use crate::cluster::watch::Watching;
use crate::domain::keys;
use crate::domain::reason::Reason;

/// Reads the wall clock: [`crate::server::clock::now`], or any day a test likes.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Something a person should hear of. [`fmt::Display`] gives the whole sentence: what, where, why, what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// Who tells it, as the Event names its source.
    pub teller: &'static str,
    /// The reason code: `CertificateExpiring`, `AuthorityRepaired`, `AuthorityRefused`, `BundleOverwritten` or
    /// `BundleUnpublished`; of the policies, `PolicyMissing`.
    pub reason: Reason,
    /// The object it is about: the Secret, or the webhook configuration; of policies, the operator's Deployment.
    pub about: Regarding,
    /// What happened, where, and what to do.
    pub message: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason.code(), self.message)
    }
}

/// Receives notices; see [`super::Events`]. Must not block.
pub type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// A Secret, as the object of a notice.
pub(super) fn secret(namespace: &str, name: &str, uid: Option<String>) -> Regarding {
    let uid = uid.unwrap_or_default();
    Regarding {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid,
    }
}

/// One of our webhook configurations, as the object of a notice.
pub(super) fn configuration(kind: &str, uid: Option<String>) -> Regarding {
    Regarding {
        api_version: "admissionregistration.k8s.io/v1".to_owned(),
        kind: kind.to_owned(),
        namespace: String::new(),
        name: keys::WEBHOOK_CONFIGURATION.to_owned(),
        uid: uid.unwrap_or_default(),
    }
}

/// Clock, metrics and listener, shared by clones.
#[derive(Clone)]
pub struct Context {
    clock: Clock,
    listener: Listener,
    /// What is counted.
    pub metrics: CertificateMetrics,
    /// How objects are watched.
    pub(super) watching: Watching,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("metrics", &self.metrics).finish_non_exhaustive()
    }
}

impl Context {
    /// From a clock, metrics and a listener.
    #[must_use]
    pub fn new(clock: Clock, metrics: CertificateMetrics, listener: Listener) -> Context {
        Context { clock, listener, metrics, watching: Watching::default() }
    }

    /// Watches as the rest of the process does.
    #[must_use]
    pub fn watching(self, watching: Watching) -> Context {
        Context { watching, ..self }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Millis {
        let since = (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
    }

    /// Logs the notice and hands it to the listener.
    pub fn notify(&self, reason: Reason, about: Regarding, message: String) {
        tracing::warn!(reason = reason.code(), "{message}");
        (self.listener)(&Notice { teller: keys::MANAGER_CERTIFICATES, reason, about, message });
    }

    /// Tells of an approaching expiry: gauge, log and notice.
    pub fn expiring(&self, part: Part, about: Regarding, certificate: &Root, threshold: Threshold) {
        self.notify(
            Reason::CertificateExpiring,
            about,
            format!(
                "the webhook's {} {} {} ({}) and was not renewed in time: {}",
                part.words(),
                certificate.fingerprint,
                threshold.words(),
                Timestamp::from_millisecond(certificate.not_after).unwrap_or_default(),
                part.remedy(),
            ),
        );
    }
}
