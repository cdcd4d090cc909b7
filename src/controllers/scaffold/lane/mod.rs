//! The lane for questions to others: what a plan has to know and the cluster does not hold.
//!
//! In: with each plan, what it asks ([`Ask`]). Out: facts with their time ([`Facts`]), and the items that named them, to be planned again.
//! Promises: a plan never waits, it decides from the facts that are there; questions have tasks of their own and never a worker that
//! writes to the API server; one host, one namespace and all slow hosts together have bounded shares of the places; only the
//! leader asks, and what it knew goes with its term; a fact that no plan names goes.

mod shell;
mod state;

use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use shell::Lane;
use state::State;

use crate::domain::reason::Reason;

#[cfg(test)]
mod tests;

/// What is asked of somebody outside the cluster's API; data. Never a secret: it is printed by Debug.
pub trait Question: Clone + Debug + Eq + Hash + Send + Sync + 'static {
    /// What is answered; never a secret either.
    type Fact: Clone + Debug + PartialEq + Send + Sync + 'static;

    /// Who answers.
    fn host(&self) -> Host;

    /// On behalf of whose namespace.
    fn namespace(&self) -> Arc<str>;
}

/// Who answers: questions to the same host share its places, and its failures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    /// Whoever listens at that address.
    At(SocketAddr),
    /// Whoever answers for the object of that namespace and name.
    Of(Arc<str>, Arc<str>),
    /// This process itself, for that namespace: what takes too long for a plan.
    Here(Arc<str>),
}

/// Which try of a question this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// Of a host that is not known to be slow: whoever does not begin to answer soon fails as [`AskFault::Slow`] and is asked
    /// again at once among the slow.
    Quick,
    /// Of a slow host: it has all the time that the adapter gives anybody.
    Patient,
}

/// Asks one kind of outside system.
pub trait Adapter<Q: Question>: Send + Sync + 'static {
    /// The answer, or why there is none; ends by itself within the adapter's own deadlines.
    fn ask(&self, question: Q, attempt: Attempt) -> impl Future<Output = Result<Q::Fact, AskError>> + Send;
}

/// Why a question was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AskFault {
    /// Nothing came within the time of a quick try.
    Slow,
    /// Nothing came within all the time there is.
    TimedOut,
    /// Nobody listens there, or the connection broke.
    Unreachable,
    /// It answered, and said no.
    Refused,
    /// What it answered cannot be used.
    Unusable,
    /// Nobody was asked, because this process lacks what it needs for that: no failure of the host, and nothing of it is known by that.
    NotAsked,
}

impl AskFault {
    /// Label value in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AskFault::Slow => "slow",
            AskFault::TimedOut => "timed-out",
            AskFault::Unreachable => "unreachable",
            AskFault::Refused => "refused",
            AskFault::Unusable => "unusable",
            AskFault::NotAsked => "not-asked",
        }
    }
}

/// A question that was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AskError {
    /// In which way.
    pub fault: AskFault,
    /// What people are told.
    pub reason: Reason,
    /// The facts, in at most 512 bytes of printable text: the adapter has seen to that.
    pub message: Box<str>,
}

/// What a plan needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask<Q> {
    /// The question.
    pub question: Q,
    /// An answer that was asked for before this time is too old; monotonic, of the clock of the plans. Zero: any will do.
    pub since: Duration,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact<T> {
    /// What was answered, or why nothing was.
    pub value: Result<T, AskError>,
    /// When it was asked.
    pub asked: Duration,
    /// When it was answered.
    pub at: Duration,
    /// How often in a row there has been no answer, this time included, of those times at which somebody was asked; 0 with an answer.
    pub failures: u32,
}

/// The answers that plans have asked for.
#[derive(Debug)]
pub struct Facts<Q: Question>(std::collections::HashMap<Q, Fact<Q::Fact>>);

impl<Q: Question> Default for Facts<Q> {
    fn default() -> Self {
        Self(std::collections::HashMap::new())
    }
}

impl<Q: Question> Facts<Q> {
    /// The last answer, however old.
    #[must_use]
    pub fn get(&self, question: &Q) -> Option<&Fact<Q::Fact>> {
        self.0.get(question)
    }

    /// The last answer, unless it is too old for that plan.
    #[must_use]
    pub fn fresh(&self, ask: &Ask<Q>) -> Option<&Fact<Q::Fact>> {
        self.get(&ask.question).filter(|fact| fact.asked >= ask.since)
    }

    /// With that answer: for tests of plans.
    #[must_use]
    pub fn with(mut self, question: Q, fact: Fact<Q::Fact>) -> Self {
        self.0.insert(question, fact);
        self
    }
}
