//! What a plan of enrolment found out about its workload, for later plans; data.

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
    /// What was written last on an enrolled workload.
    pub taken: Option<Taken>,
}

/// Fields that were written, and how often they had to be written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Which: a number that equal fields have in common.
    pub fields: u64,
    /// How often they were taken back and written again.
    pub times: u32,
    /// When they were written last.
    pub at: Duration,
    /// That came to nothing, so that nobody had anything to take back.
    pub void: bool,
}

/// A Pod was evicted, so that a better one might be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eviction {
    /// When the youngest of the Pods that were not as they should be was made, as the API server writes it.
    pub youngest: Box<str>,
    /// When it was evicted.
    pub at: Duration,
}
