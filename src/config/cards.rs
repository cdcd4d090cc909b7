//! What the platform file says about signed agent cards: whom to believe, by which profiles, for how long. In: keys below `cards`. Out: typed values
//! that `crypto` judges with. Promise: whose word counts comes from here alone; a card or a namespace can narrow it and never widen it.

use std::path::PathBuf;
use std::time::Duration;

use super::trust::{self, Trust};
use crate::crypto::{Policy, Profile, TrustDomain};

/// Namespace of a trust bundle's ConfigMap, where only its name is given: where SPIRE's installations put it.
pub const BUNDLE_NAMESPACE: &str = "spire-system";
/// Its key: what SPIRE's publisher writes.
pub const BUNDLE_KEY: &str = "bundle.spiffe";
/// Shortest and longest period of a card; 30 s when a card names none.
pub const PERIODS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(24 * 3600));

/// Where `drawbridge render --with-spire` mounts the SPIFFE agent's socket.
pub const SOCKET: &str = "/spiffe-workload-api/spire-agent.sock";

/// How long before its end a signature is made anew, at most.
const RESTART_GRACE: Duration = Duration::from_secs(1800);
/// One day: how long an expired SVID, and a trust bundle that can no longer be read, still count.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Everything below `cards`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cards {
    /// Trust domains that cards and AgentRuntimes may name, besides the platform's own.
    pub trust_domains: Vec<TrustDomain>,
    /// Where the trust bundle is.
    pub bundle: BundleSources,
    /// Profiles to try, in this order.
    pub profiles: Vec<Profile>,
    /// A failure is reported and nothing follows from it.
    pub audit: bool,
    /// How long a card counts whose SVID has expired.
    pub tolerance: Duration,
    /// The shortest period of a card.
    pub least_period: Duration,
    /// Workloads that sign their cards are restarted before a signature counts no more.
    pub restarts: bool,
    /// So long before, at most; also the time between two restarts of a workload.
    pub restart_grace: Duration,
    /// The socket of the SPIFFE agent, where agents are to prove over TLS who they are.
    pub proof: Option<PathBuf>,
    /// Verified cards are answered to whoever shows a token for that.
    pub catalogue: bool,
    /// What agents may reach.
    pub trust: Trust,
}

/// Where authorities come from. Neither: nothing is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleSources {
    /// A ConfigMap.
    pub config_map: Option<BundleConfigMap>,
    /// A file.
    pub file: Option<PathBuf>,
    /// Whose a bundle is that does not say so itself.
    pub trust_domain: Option<TrustDomain>,
    /// How long a bundle counts after it was last readable.
    pub max_age: Duration,
}

/// One key of one ConfigMap, in any namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleConfigMap {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The key.
    pub key: String,
}

/// The parts of a ConfigMap's address, as the keys set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigMapParts {
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) key: String,
}

/// The keys below `cards`, as they are set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) trust_domains: Vec<TrustDomain>,
    pub(super) config_map: ConfigMapParts,
    pub(super) file: Option<PathBuf>,
    pub(super) bundle_domain: Option<TrustDomain>,
    pub(super) bundle_age: Duration,
    pub(super) profiles: Vec<Profile>,
    pub(super) audit: bool,
    pub(super) tolerance: Duration,
    pub(super) least_period: Duration,
    pub(super) restarts: bool,
    pub(super) restart_grace: Duration,
    pub(super) proof: bool,
    pub(super) socket: PathBuf,
    pub(super) catalogue: bool,
    pub(super) trust: trust::Keys,
}

impl Default for Keys {
    fn default() -> Self {
        let parts = ConfigMapParts { namespace: BUNDLE_NAMESPACE.to_owned(), name: None, key: BUNDLE_KEY.to_owned() };
        Self {
            trust_domains: Vec::new(),
            config_map: parts,
            file: None,
            bundle_domain: None,
            bundle_age: DAY,
            profiles: Profile::ALL.to_vec(),
            audit: true,
            tolerance: DAY,
            least_period: PERIODS.0,
            restarts: false,
            restart_grace: RESTART_GRACE,
            proof: false,
            socket: SOCKET.into(),
            catalogue: false,
            trust: trust::Keys::default(),
        }
    }
}

impl Keys {
    /// What follows from the keys.
    pub(super) fn settled(&self) -> Cards {
        let parts = self.config_map.clone();
        let config_map = parts.name.map(|name| BundleConfigMap { namespace: parts.namespace, name, key: parts.key });
        Cards {
            trust_domains: self.trust_domains.clone(),
            bundle: BundleSources {
                config_map,
                file: self.file.clone(),
                trust_domain: self.bundle_domain.clone(),
                max_age: self.bundle_age,
            },
            profiles: self.profiles.clone(),
            audit: self.audit,
            tolerance: self.tolerance,
            least_period: self.least_period,
            restarts: self.restarts,
            restart_grace: self.restart_grace,
            proof: self.proof.then(|| self.socket.clone()),
            catalogue: self.catalogue,
            trust: self.trust.settled(self.config_map.name.is_some() || self.file.is_some()),
        }
    }
}

impl BundleSources {
    /// Whether there is any source: without one nothing is verified, and nothing is said of signatures.
    #[must_use]
    pub fn any(&self) -> bool {
        self.config_map.is_some() || self.file.is_some()
    }
}

impl Cards {
    /// What the verification of a card goes by.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        Policy {
            profiles: self.profiles.clone(),
            tolerance: seconds(self.tolerance),
            bundle_age: seconds(self.bundle.max_age),
        }
    }

    /// The period of a card that asks for `wanted`: within the bounds, whatever it asks for.
    #[must_use]
    pub fn period(&self, wanted: Duration) -> Duration {
        wanted.clamp(self.least_period, PERIODS.1)
    }
}
