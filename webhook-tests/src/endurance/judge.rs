//! What a chaos trial has shown, and whether that is what was promised: a value in, a verdict out.
//!
//! The promise: nothing fails but calls that were in flight on an instance when it was killed. What was in flight is
//! taken from the balancer's own record, never guessed: a connection counts when the killed instance ended it while it
//! owed an answer, or refused it while it was still an endpoint, that is, before a probe could tell of its death. Over
//! HTTP/1.1 each such connection costs at most one call. A loss at any other time or instance excuses nothing and fails
//! the trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use tokio::time::Instant;

use super::dialler::Dialled;
use super::load::{Fate, Tally};
use crate::balancer::{How, Loss};

/// One killed instance.
#[derive(Debug, Clone, Copy)]
pub struct Kill {
    /// Which.
    pub backend: SocketAddr,
    /// Just before the kill.
    pub from: Instant,
    /// When it was an endpoint again.
    pub until: Instant,
    /// How long the balancer sent connections to it after its death.
    pub known: Duration,
}

/// Everything that was recorded.
#[derive(Debug)]
pub struct Evidence {
    /// What happens to enrolled Pods while no replica answers.
    pub failure_mode: FailureMode,
    /// How long Pods were created.
    pub took: Duration,
    /// In order.
    pub kills: Vec<Kill>,
    /// Connections of the API server that were lost with an instance.
    pub losses: Vec<Loss>,
    /// Connections of the API server for which there was no endpoint.
    pub unserved: u64,
    /// `webhook_rejection_count{error_type="calling_webhook_error"}`.
    pub rejected: f64,
    /// `webhook_fail_open_count`.
    pub open: f64,
    /// Created Pods for which calls failed open, and in which rounds (0 or 1, the reinvocation), by the audit log.
    pub open_rounds: BTreeMap<String, BTreeSet<u32>>,
    /// What became of the Pods.
    pub tally: Tally,
    /// What the second client saw.
    pub dialled: Dialled,
    /// Its connections that were lost with an instance.
    pub dial_losses: Vec<Loss>,
    /// Its connections for which there was no endpoint.
    pub dial_unserved: u64,
}

/// The numbers of a trial that held; its text is for people.
#[derive(Debug)]
pub struct Report(Evidence);

impl Evidence {
    /// Holds the trial against the promise.
    ///
    /// # Errors
    /// At the first thing that is not as promised; the message has all numbers.
    pub fn judge(self) -> Result<Report> {
        let numbers = self.to_string();
        self.holds().with_context(|| numbers)?;
        Ok(Report(self))
    }

    fn holds(&self) -> Result<()> {
        for loss in self.losses.iter().chain(&self.dial_losses) {
            ensure!(self.excuses(loss), "a connection was lost with an instance that nobody had killed: {loss:?}");
        }
        ensure!(self.unserved + self.dial_unserved == 0, "connections without an endpoint");
        let unprotected = self.tally.with(Fate::Unprotected);
        ensure!(unprotected.is_empty(), "stored without sidecars, free to run: {unprotected:?}");
        let in_flight = self.losses.len();
        let (refused, rejected, open) = (&self.tally.refused, self.rejected, self.open);
        match self.failure_mode {
            FailureMode::Fail => {
                ensure!(open == 0.0 && self.open_rounds.is_empty(), "let pass: {:?}", self.open_rounds);
                ensure!(self.tally.with(Fate::Protected).len() == self.tally.stored.len(), "gated under `fail`");
                ensure!(refused.len() as f64 == rejected, "{rejected} calls failed, but refused: {refused:#?}");
                ensure!(refused.len() <= in_flight, "beyond the {in_flight} calls in flight: {refused:#?}");
            }
            FailureMode::Gate => {
                ensure!(refused.is_empty() && rejected == 0.0, "refused: {refused:#?}");
                let audited: usize = self.open_rounds.values().map(BTreeSet::len).sum();
                ensure!(audited as f64 == open, "{open} counted, but by the audit log: {:?}", self.open_rounds);
                ensure!(audited <= in_flight, "beyond the {in_flight} calls in flight: {:?}", self.open_rounds);
                self.gate_holds()?;
            }
        }
        // One connection at a time, so each loss costs it at most one call; and none is ever lost to a certificate.
        let (failures, lost) = (&self.dialled.failures, self.dial_losses.len());
        let untrusted = failures.iter().any(|failure| failure.contains("certificate"));
        ensure!(failures.len() <= lost && !untrusted, "{lost} new connections were in flight, failed: {failures:#?}");
        Ok(())
    }

    /// The API server reviews a creation a second time only when the first review changed the Pod and its own plugins
    /// then did as well (the token mount of our containers). So a call that fails in the first round leaves the Pod as
    /// the policy made it, gated and not injected, and there is no second round; one that fails in the second round
    /// leaves what the first one made, injected and free.
    fn gate_holds(&self) -> Result<()> {
        for (name, rounds) in &self.open_rounds {
            ensure!(rounds.len() == 1, "{name} was reviewed again after nobody had answered: {rounds:?}");
            ensure!(self.tally.stored.contains_key(name), "{name} was let pass and is not stored");
        }
        for (name, fate) in &self.tally.stored {
            let first_failed = self.open_rounds.get(name).is_some_and(|rounds| rounds.contains(&0));
            let expected = if first_failed { Fate::Gated } else { Fate::Protected };
            ensure!(*fate == expected, "{name} is {fate:?}; rounds that failed: {:?}", self.open_rounds.get(name));
        }
        Ok(())
    }

    fn excuses(&self, loss: &Loss) -> bool {
        self.kills.iter().any(|kill| kill.backend == loss.backend && (kill.from..=kill.until).contains(&loss.at))
    }

    fn rate(&self) -> f64 {
        self.tally.stored.len() as f64 / self.took.as_secs_f64()
    }

    fn rounds(&self, round: u32) -> usize {
        self.open_rounds.values().filter(|rounds| rounds.contains(&round)).count()
    }
}

/// How many of these were refused, and how many went without an answer.
fn split(losses: &[Loss]) -> (usize, usize) {
    let refused = losses.iter().filter(|loss| loss.how == How::Refused).count();
    (refused, losses.len() - refused)
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((refused, unanswered), (dial_refused, dial_unanswered)) = (split(&self.losses), split(&self.dial_losses));
        let slowest = self.kills.iter().map(|kill| kill.known).max().unwrap_or_default();
        writeln!(
            f,
            "{:?}: {} Pods in {:.0} s ({:.1}/s of {} aimed at, {} not tried); {} kills, each known within {slowest:.0?}",
            self.failure_mode,
            self.tally.stored.len(),
            self.took.as_secs_f64(),
            self.rate(),
            super::chaos::RATE,
            self.tally.skipped,
            self.kills.len(),
        )?;
        writeln!(
            f,
            "  in flight on killed instances: {unanswered} connections without their answer, {refused} refused before \
             a probe could tell; calls that failed: {} refused the Pod, {} were let pass ({} in the first round, {} in \
             the second)",
            self.rejected,
            self.open,
            self.rounds(0),
            self.rounds(1),
        )?;
        writeln!(
            f,
            "  Pods refused: {}; left gated: {}; stored unprotected: {}",
            self.tally.refused.len(),
            self.tally.with(Fate::Gated).len(),
            self.tally.with(Fate::Unprotected).len(),
        )?;
        write!(
            f,
            "  second client: {} new TLS connections against {} bundles, {} failed ({dial_unanswered} without their \
             answer, {dial_refused} refused by killed instances), {} too late to count",
            self.dialled.calls,
            self.dialled.bundles.len(),
            self.dialled.failures.len(),
            self.dialled.late,
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
