//! What a plan found out about its item, for later plans ([`super::memory`]); data.

use std::sync::Arc;
use std::time::Duration;

/// What a plan found out about its item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Its object rolls, or is about to, because of a change that we wrote.
    pub rolling: bool,
    /// Since when it has rolled.
    pub rolls: Option<Duration>,
    /// It has rolled for so long that people are told.
    pub slow: bool,
    /// Its rollout exceeded its deadline, and what it rolled to is still what is wanted.
    pub failed: bool,
    /// What stood on it was taken away by a change of the settings, and its Pods are being replaced for that.
    pub leaves: bool,
    /// Its Pods are replaced for the first time, because its user has just labelled it.
    pub enters: bool,
    /// It waits until one of those that roll is done.
    pub waits: bool,
    /// It was as wanted, under the fleet's configuration of that number.
    pub settled: Option<u64>,
    /// What it waits for was asked for by a person, in its AgentRuntime.
    pub edited: bool,
    /// Since when it has been held back.
    pub held: Option<Duration>,
    /// Since when its namespace has lacked what was to be made there for its Pods.
    pub lacks: Option<Duration>,
    /// Pods that run without our parts although they should have them.
    pub unprotected: usize,
    /// Pods that run with another configuration than their workload's, whose rollout is over.
    pub outdated: usize,
    /// Whether its AgentRuntime says that it is protected; `None` when none governs it, or while that is not known.
    pub protected: Option<bool>,
    /// When its AgentRuntime's status was last written for the number of its Pods alone.
    pub counted: Option<Duration>,
    /// One of its Pods is being evicted by us.
    pub evicting: bool,
    /// The last eviction, while its Pods are not as they should be.
    pub evicted: Option<Eviction>,
    /// The eviction that was asked for and not answered yet.
    pub asked: Option<Eviction>,
    /// Digests of what was applied whole, one behind the other.
    pub sent: String,
    /// Fields that somebody else takes back each time they are applied.
    pub contested: Option<Box<str>>,
    /// The hash that was written last on an enrolled workload.
    pub taken: Option<Taken>,
    /// A person's wish to have it looked at again, and when it was noticed.
    pub refresh: Option<(Box<str>, Duration)>,
    /// The first good answer after trust was lost.
    pub settling: Option<Settling>,
    /// Since when the authority that signed for it has been unknown.
    pub awaiting: Option<Duration>,
    /// Since when nobody has answered for it.
    pub failing: Option<Duration>,
    /// When it is asked for the first time in this term.
    pub first: Option<Duration>,
    /// The first second of the youngest certificate by which its card was accepted, in seconds since 1970.
    pub leaf: Option<i64>,
    /// Whether an agent of a namespace that enforces trust is open, as its card is verified; `None` of what is none.
    pub opened: Option<bool>,
    /// Whether what cuts off stands in a namespace that enforces trust; `None` where nothing is enforced.
    pub armed: Option<bool>,
    /// Until when the signature of its card counts, as it was judged last.
    pub signing: Option<Signing>,
    /// When it was last restarted for its card to be signed anew.
    pub resigned: Option<Duration>,
    /// What it is wired to, as its plan found it.
    pub wiring: Option<Wiring>,
    /// How what an earlier operator made stands against what is wanted.
    pub compared: Option<Compared>,
    /// When its Deployment was last read for that.
    pub read: Option<Duration>,
}

/// What an object is wired to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wiring {
    /// Of which objects there are, and what is written on them.
    pub digest: u64,
    /// All of them are ready, as far as its status says so.
    pub ready: bool,
    /// It is not made before they are.
    pub gated: bool,
    /// Since when that is otherwise than its status says: what only flickers is not written.
    pub unsettled: Option<Duration>,
}

/// How the Deployment that an earlier operator made stands against what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// Digest of what is wanted.
    pub wanted: Box<str>,
    /// Generation of the Deployment.
    pub generation: i64,
    /// Paths of what differs and counts: it is rolled for.
    pub counts: Arc<[String]>,
    /// What the next change does besides, a line each.
    pub later: Arc<[String]>,
}

/// How the signature of a card stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    /// What was found.
    pub stands: Stands,
    /// Fingerprint of the authorities by which it was judged.
    pub bundle: Arc<str>,
    /// When it was answered, in seconds since 1970.
    pub read: i64,
    /// The same moment on the clock of the plans.
    pub at: Duration,
}

/// Whether a signature counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stands {
    /// Until then; seconds since 1970.
    Until {
        /// The first second of the certificate that signed.
        from: i64,
        /// Its last second.
        leaf: i64,
        /// The last second of the authority that vouches for it.
        authority: i64,
    },
    /// It is a good one, and no authority vouches for its certificate any more.
    Lost,
}

/// When the first good answer was asked for, after trust was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settling(pub Duration);

/// A hash that was written, and how often it had to be written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Which.
    pub hash: Box<str>,
    /// How often it was taken back and written again.
    pub times: u32,
    /// When it was written last.
    pub at: Duration,
}

/// A Pod was evicted, so that a better one might be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// When the youngest of the Pods that were not as they should be was made, as the API server writes it.
    pub youngest: Box<str>,
    /// When it was evicted.
    pub at: Duration,
}
