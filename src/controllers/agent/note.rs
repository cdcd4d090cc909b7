//! What a plan found out about its agent, ModelAPI or MCPServer, for later plans; data.

use std::sync::Arc;
use std::time::Duration;

/// What a plan found out about its item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    /// Its object rolls, or is about to, because of a change that we wrote.
    pub rolling: bool,
    /// Its rollout exceeded its deadline, and what it rolled to is still what is wanted.
    pub failed: bool,
    /// It waits until one of those that roll is done.
    pub waits: bool,
    /// Digests of what was applied whole, one behind the other.
    pub sent: String,
    /// Fields that somebody else takes back each time they are applied.
    pub contested: Option<Box<str>>,
    /// What it is wired to, as its plan found it.
    pub wiring: Option<Wiring>,
    /// How what an earlier operator made stands against what is wanted.
    pub compared: Option<Compared>,
    /// When its Deployment was last read for that.
    pub read: Option<Duration>,
    /// The marks that were put on it, while something is still to be made for it.
    pub marked: Option<Marked>,
}

/// How often in a row an object was given the mark that policies look for, and when last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// How often.
    pub times: u32,
    /// When last.
    pub at: Duration,
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
