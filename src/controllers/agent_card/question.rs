//! What is asked of an agent, and what comes back: data, for the plan and for whoever asks.

use core::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::published::Published;
use crate::controllers::scaffold::lane::{Host, Question};
use crate::controllers::scaffold::signing::{Signing, Stands};
use crate::crypto::{Bundles, SpiffeId, Verdict};

/// Paths of a card, the newest first, that of KAOS's agents last. Each is asked for only where nothing is at those before it.
pub const PATHS: [&str; 3] = ["/.well-known/agent-card.json", "/.well-known/agent.json", "/.well-known/agent"];

/// What the controller of AgentCards asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CardQuestion {
    /// The card that a Pod serves.
    Fetch(Fetch),
    /// The card that somebody has signed into a ConfigMap.
    Read(Read),
}

/// The signed card in one version of a ConfigMap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Read {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion`: another one is another question.
    pub version: Arc<str>,
    /// Name and port of the workload's Service, as a client inside the cluster writes them.
    pub authority: Arc<str>,
}

/// The card that one Pod serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fetch {
    /// The Pod's namespace.
    pub namespace: Arc<str>,
    /// `metadata.uid` of the Pod: another one at the same address is another question.
    pub pod: Arc<str>,
    /// An address in its `status.podIPs`, and the port that the Service leads to.
    pub address: SocketAddr,
    /// Name and port of the Service, as a client inside the cluster writes them; the header Host.
    pub authority: Arc<str>,
    /// The Pod carries our sidecar, which may be who refuses.
    pub injected: bool,
    /// It is asked over TLS, and has to prove who it is.
    pub proves: bool,
}

/// A card that was read.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// What is published of it where nobody claims that it is signed.
    pub served: Arc<Published>,
    /// What is published of what its good signatures cover, beside what the verdict says is covered: the bytes, or their digest.
    pub covered: Vec<(Arc<[u8]>, Arc<Published>)>,
    /// Whether it is signed, and by whom.
    pub verdict: Arc<Verdict>,
    /// The authorities by which that was judged.
    pub bundles: Arc<Bundles>,
    /// When it was judged, in seconds since 1970.
    pub read: i64,
    /// Who the agent has proved to be over TLS.
    pub peer: Option<SpiffeId>,
}

impl PartialEq for Fetched {
    fn eq(&self, other: &Self) -> bool {
        let judged = |one: &Self| (one.bundles.configured(), one.bundles.version());
        self.served == other.served
            && self.peer == other.peer
            && self.verdict == other.verdict
            && judged(self) == judged(other)
    }
}

impl Fetched {
    /// How its signature stands, as was found at `at` on the clock of the plans.
    #[must_use]
    pub fn signing(&self, stands: Stands, at: Duration) -> Signing {
        Signing { stands, bundle: self.bundles.version(), read: self.read, at }
    }
}

impl Question for CardQuestion {
    type Fact = Fetched;

    fn host(&self) -> Host {
        match self {
            Self::Fetch(fetch) => Host::At(fetch.address),
            // What one ConfigMap holds is no reason to leave those of others alone.
            Self::Read(read) => Host::Of(read.namespace.clone(), read.name.clone()),
        }
    }

    fn namespace(&self) -> Arc<str> {
        match self {
            Self::Fetch(fetch) => fetch.namespace.clone(),
            Self::Read(read) => read.namespace.clone(),
        }
    }
}
