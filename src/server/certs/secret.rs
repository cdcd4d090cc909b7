//! Certificates from somebody else's Secret, as cert-manager writes it: `tls.crt`, `tls.key`, `ca.crt`.
//!
//! In: one Secret, watched by name. Out: pairs in the resolver, and `ca.crt` to the publisher, unless a configuration
//! asks cert-manager's injector to publish (annotation `cert-manager.io/inject-ca-from`). Promises: a new pair with a
//! new `ca.crt` is served once every bundle holds that and it is valid, or when the old pair has expired; a Secret that is deleted,
//! incomplete or unusable changes nothing but a log line and a counter. Unusable is also a pair that nobody would accept
//! (`Pair::unfit`): one that is not valid yet or no longer, is for no server, or is not for the name under which the configurations' entries
//! call, and one that no certificate of `ca.crt` signed, of which that is not published either;
//! the last good one is served on, and where there was none nothing is served. Without a certificate in `ca.crt` nothing is
//! published, a new pair is served at once, and it is said once that others keep `caBundle`: readiness does not wait
//! for what nobody here can know.

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use tokio::time::MissedTickBehavior;

use super::bundle::Publisher;
use super::context::{self, Context};
use super::expiry::Announcements;
use super::metrics::Part;
use super::pair::{Pair, PairError};
use super::resolver::Resolver;
use super::root::{Fingerprint, Millis, Root, RootCertificate};
use super::source::Source;
use super::trust::Trust;
use super::trust_bundle::{Damaged, read_bundle};
use super::wanted::Wanted;
use crate::cluster::watch::named::named;
use crate::server::shutdown::{Phase, Shutdown};

const TICK: Duration = Duration::from_millis(500);

/// Where the pair comes from.
#[derive(Debug, Clone)]
pub struct CertManagerSecretConfig {
    /// Namespace of the Secret and of the Service.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// The Service in front of the webhook port.
    pub service: String,
    /// For how long a new `ca.crt` must have been in every bundle before a pair depends on it, in milliseconds.
    pub settle: Millis,
}

/// A pair with the roots it depends on.
#[derive(Debug, Clone)]
struct Provided {
    pair: Pair,
    roots: Vec<RootCertificate>,
}

impl Provided {
    /// Reads a Secret; also the sections of `ca.crt` that are left out.
    fn read(secret: &Secret) -> Result<(Provided, Vec<Damaged>), PairError> {
        let get = |key: &str| {
            let data = secret.data.as_ref().and_then(|data| data.get(key));
            data.map(|value| value.0.as_slice()).unwrap_or_default()
        };
        let pair = Pair::read(get("tls.crt"), get("tls.key"))?;
        let bundle = read_bundle(get("ca.crt"));
        Ok((Provided { pair, roots: bundle.certificates }, bundle.damaged))
    }

    fn fingerprints(&self) -> Vec<Fingerprint> {
        self.roots.iter().map(|certificate| certificate.root.fingerprint).collect()
    }

    /// Whether callers see the same of both; a certificate has one key.
    fn is_same(&self, other: &Provided) -> bool {
        self.roots == other.roots && self.pair.certified.cert == other.pair.certified.cert
    }
}

/// A source that follows a Secret. Spawn [`CertManagerSecret::run`] and the [`Publisher`]'s.
pub struct CertManagerSecret {
    source: Source,
    config: CertManagerSecretConfig,
    uid: Option<String>,
    served: Option<Provided>,
    candidate: Option<Provided>,
    /// Why the candidate is not used, as it was said.
    told: Option<String>,
    announcements: Announcements,
}

impl fmt::Debug for CertManagerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertManagerSecret").field("config", &self.config).finish_non_exhaustive()
    }
}

impl CertManagerSecret {
    /// The source and the publisher that goes with it.
    #[must_use]
    pub fn new(
        client: &Client,
        config: CertManagerSecretConfig,
        resolver: Arc<Resolver>,
        context: Context,
    ) -> (CertManagerSecret, Publisher) {
        let service = (config.service.clone(), config.namespace.clone());
        let publisher = Publisher::new(client.clone(), service, context.clone()).by_agreement();
        let source = Source::new(client, &config.namespace, &publisher, resolver, context);
        let source = CertManagerSecret {
            source,
            config,
            uid: None,
            served: None,
            candidate: None,
            told: None,
            announcements: Announcements::default(),
        };
        (source, publisher)
    }

    /// Works until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let watching = &self.source.context.watching;
        let (_, mut secrets) = named(self.source.api.clone(), &self.config.name, "Secret", watching);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            self.turn();
            tokio::select! {
                () = &mut closing => return,
                Some(secret) = secrets.next() => self.see(secret.as_ref()),
                () = self.source.changed() => {}
                _ = tick.tick() => {}
            }
        }
    }

    fn see(&mut self, secret: Option<&Secret>) {
        let Some(secret) = secret else {
            tracing::warn!(
                namespace = self.config.namespace,
                secret = self.config.name,
                "the Secret with the webhook's certificate does not exist; whoever issues it must make it again"
            );
            return;
        };
        self.uid.clone_from(&secret.metadata.uid);
        self.source.context.metrics.read();
        match Provided::read(secret) {
            Ok((provided, damaged)) => {
                for section in damaged {
                    tracing::warn!(
                        %section,
                        namespace = self.config.namespace,
                        secret = self.config.name,
                        "ca.crt in the Secret has a section that cannot be read; it is left out, and the others are used"
                    );
                }
                self.take(provided);
            }
            Err(error) => self.refuse(&error.to_string()),
        }
    }

    /// Takes what the Secret holds for what is to be served, unless it is that already: a label may have changed, or a list told of it again.
    fn take(&mut self, provided: Provided) {
        if !provided.pair.is_vouched_for(&provided.roots) {
            return self.refuse(&PairError::Foreign.to_string());
        }
        let is_served = self.served.as_ref().is_some_and(|served| served.is_same(&provided));
        (self.candidate, self.told) = ((!is_served).then_some(provided), None);
    }

    /// Says that what the Secret holds is not used.
    fn refuse(&self, error: &str) {
        self.source.context.metrics.read_failed();
        let (namespace, secret) = (&self.config.namespace, &self.config.name);
        if self.served.is_some() {
            tracing::warn!(
                error,
                namespace,
                secret,
                "the pair in the Secret (tls.crt, tls.key) cannot be used; serving the last good one"
            );
        } else {
            tracing::warn!(
                error,
                namespace,
                secret,
                "the pair in the Secret (tls.crt, tls.key) cannot be used, and there was none before it: nothing is served, and a \
                 replica of the webhook stays unready until the Secret holds a good one (where the dates are in order, compare the \
                 clocks of the nodes)"
            );
        }
    }

    /// Whether the candidate is to be served now. Why it is not is said once.
    fn accepted(&mut self, now: Millis) -> bool {
        let Some(candidate) = &self.candidate else { return false };
        let known = self.source.names();
        let read = known.is_some();
        let mut names = known.unwrap_or_default();
        if names.is_empty() {
            names.insert(format!("{}.{}.svc", self.config.service, self.config.namespace));
        }
        let trust = (&self.source.trust, self.config.settle);
        match may_switch(self.served.as_ref(), candidate, trust, &names, now) {
            Ok(may) => may,
            // They may call by URL.
            Err(PairError::Name(_)) if !read => false,
            Err(error) => {
                let error = error.to_string();
                if self.told.as_deref() != Some(error.as_str()) {
                    self.refuse(&error);
                    self.told = Some(error);
                }
                false
            }
        }
    }

    fn turn(&mut self) {
        let now = self.source.observe();
        if self.accepted(now)
            && let Some(candidate) = &self.candidate
        {
            if candidate.roots.is_empty() && self.served.as_ref().is_none_or(|served| !served.roots.is_empty()) {
                tracing::warn!(
                    namespace = self.config.namespace,
                    secret = self.config.name,
                    "the Secret has no certificate in ca.crt, so Drawbridge publishes nothing and cannot tell whether \
                     the API server trusts what is served: write its authority into caBundle of both webhook \
                     configurations, or into ca.crt"
                );
            }
            self.source.resolver.store(&candidate.pair, candidate.fingerprints());
            self.source.context.metrics.in_use(Part::Provided, &candidate.pair.leaf);
            tracing::info!(certificate = %candidate.pair.leaf.fingerprint, "serving a new certificate from the Secret");
            self.served = self.candidate.take();
        }
        let mut wanted = Wanted::default();
        for provided in [self.candidate.as_ref(), self.served.as_ref()].into_iter().flatten() {
            provided.roots.iter().for_each(|certificate| wanted.add(certificate));
        }
        wanted.serving = self.served.as_ref().map(Provided::fingerprints);
        self.source.want(wanted);
        // One that is not served because it has expired is told of, too.
        let leaf: Option<Root> = self.served.as_ref().or(self.candidate.as_ref()).map(|provided| provided.pair.leaf);
        if let Some(leaf) = leaf
            && let Some(threshold) = self.announcements.next(&leaf, now)
        {
            let about = context::secret(&self.config.namespace, &self.config.name, self.uid.clone());
            self.source.context.expiring(Part::Provided, about, &leaf, threshold);
        }
    }
}

/// Whether the candidate may be served now: there is nothing else, nothing better, or everyone trusts it (for the settling time);
/// why not, where it is not fit to.
fn may_switch(
    served: Option<&Provided>,
    candidate: &Provided,
    (trust, settle): (&Trust, Millis),
    names: &BTreeSet<String>,
    now: Millis,
) -> Result<bool, PairError> {
    if let Some(error) = candidate.pair.unfit(served.map(|served| &served.pair), names, now) {
        return Err(error);
    }
    let Some(served) = served else { return Ok(true) };
    let roots = candidate.fingerprints();
    let known = served.fingerprints();
    let trusted = roots.iter().all(|root| known.contains(root)) || trust.settled(&roots, settle, now);
    Ok(trusted || served.pair.leaf.expired(now))
}

#[cfg(test)]
mod tests;
