//! What the platform file says about what agents may reach. In: keys below `cards`. Out: typed values.
//! Promise: a namespace is never less than the floor, and neither a system namespace nor our own is ever cut off.

use std::collections::BTreeMap;

use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// Everything below `cards` that says what agents reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// What holds in a namespace that says nothing.
    pub default: TrustLevel,
    /// The least that a namespace may say.
    pub floor: TrustLevel,
    /// Which verified agents reach a verified one.
    pub verified_peers: VerifiedPeers,
    /// Who reaches verified agents besides.
    pub ingress: Vec<CardPeer>,
    /// Whom agents reach that are not verified, besides.
    pub egress: Vec<CardPeer>,
    /// Whether they reach the cluster's DNS, whatever they need it for.
    pub dns: bool,
}

/// Which verified agents reach a verified one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VerifiedPeers {
    /// Those of its namespace.
    #[default]
    Namespace,
    /// Those of namespaces with `kagenti-enabled: "true"`.
    Enabled,
    /// Those of every namespace.
    All,
    /// Those that name it, of its namespace and of namespaces with `kagenti-enabled: "true"`; and it reaches only whom it names.
    Declared,
}

impl VerifiedPeers {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 4] = [Self::Namespace, Self::Enabled, Self::All, Self::Declared];

    /// As the platform file writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Enabled => "enabled",
            Self::All => "all",
            Self::Declared => "declared",
        }
    }

    /// The one that is written so.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text)
    }
}

/// Somebody that agents talk to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardPeer {
    /// Who.
    pub whom: PeerWhom,
    /// TCP ports; none: all, and of a Service those that it leads to.
    pub ports: Vec<u16>,
}

/// Who somebody is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerWhom {
    /// The Pods of a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Pods of a namespace: those with these labels, or all.
    Pods {
        /// Its name.
        namespace: String,
        /// Their labels.
        labels: BTreeMap<String, String>,
    },
    /// A block of addresses.
    Block(String),
}

/// The same, as the keys set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) default: Option<TrustLevel>,
    pub(super) floor: TrustLevel,
    pub(super) verified_peers: VerifiedPeers,
    pub(super) ingress: Vec<CardPeer>,
    pub(super) egress: Vec<CardPeer>,
    pub(super) dns: bool,
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            default: None,
            floor: TrustLevel::Off,
            verified_peers: VerifiedPeers::Namespace,
            ingress: Vec::new(),
            egress: Vec::new(),
            dns: false,
        }
    }
}

impl Keys {
    /// What follows from the keys; `verifies`: there is a bundle to judge signatures by.
    pub(super) fn settled(&self, verifies: bool) -> Trust {
        let unsaid = if verifies { TrustLevel::Audit } else { TrustLevel::Off };
        Trust {
            default: self.default.unwrap_or(unsaid),
            floor: self.floor,
            verified_peers: self.verified_peers,
            ingress: self.ingress.clone(),
            egress: self.egress.clone(),
            dns: self.dns,
        }
    }
}

impl Trust {
    /// What holds in the namespace of that name whose label is `label`; `own` is the operator's.
    #[must_use]
    pub fn in_force(&self, namespace: &str, own: &str, label: Option<&str>) -> TrustLevel {
        if namespace == own || keys::SYSTEM_NAMESPACES.contains(&namespace) {
            return TrustLevel::Off;
        }
        TrustLevel::in_force(label, self.default, self.floor)
    }
}
