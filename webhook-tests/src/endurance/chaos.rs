//! One of two instances is killed again and again, while leaves live for 15 s and authorities for 45, longer on a machine that has just been slow
//! (each replaced after two thirds), under 50 Pods a second and a second client that trusts nothing it has not just read.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use drawbridge::server::certs::{Lifetimes, Millis};
use tokio::time::{Instant, MissedTickBehavior};

use super::dialler::Dialler;
use super::judge::{Evidence, Kill, Report};
use super::load::{Load, injected};
use super::{counted, until_created};
use crate::{Balancer, Installation, Installing, Options, Process, Requests, installation};

/// Pods a second that are aimed at.
pub const RATE: u32 = 50;
/// Audit annotations about webhook calls that failed and were let pass (`mutating/dispatcher.go` of k8s.io/apiserver):
/// behind the prefix come `<round>_index_<place>`, the value is the webhook's name.
const FAILED_OPEN: &str = "failed-open.mutation.webhook.admission.k8s.io/round_";

/// Shortest life of a leaf, in seconds; it is replaced after two thirds of it.
const LEAF: u16 = 15;
/// A leaf lives for so many times what the control plane took to start: what is left once its replacement is due has to be enough for a process that
/// gets as little of the machine as that one did.
const STARTS: u64 = 4;
/// An authority lives for so many times what a leaf does.
const AUTHORITY: u16 = 3;

/// What has to happen before a trial ends, whatever the machine: Pods stored, connections of the second client, bundles it saw.
pub const ENOUGH: (usize, usize, usize) = (100, 50, 2);
/// After so many lives of a leaf a trial in which too little happens is hopeless.
const PATIENCE: u32 = 20;

/// How long a leaf lives in a trial whose control plane took that long to start, in seconds.
fn leaf(start: Duration) -> u16 {
    u16::try_from(start.as_secs() * STARTS).map_or(u16::MAX / AUTHORITY, |life| life.clamp(LEAF, u16::MAX / AUTHORITY))
}

/// The last words of an API server about webhooks that it could not ask: a call that was too slow is no call that met a bad certificate.
fn words(log: &str) -> String {
    let mut said: Vec<_> =
        log.lines().rev().filter(|line| line.contains("failed calling webhook")).take(WORDS).collect();
    said.reverse();
    said.join("\n")
}

/// How many of them are shown.
const WORDS: usize = 5;

/// One trial.
#[derive(Debug, Clone)]
pub struct Chaos {
    /// What happens to enrolled Pods while no replica answers.
    pub failure_mode: FailureMode,
    /// How long Pods are created; longer where [`ENOUGH`] has not happened by then.
    pub duration: Duration,
    /// Between two kills.
    pub kill_every: Duration,
}

impl Chaos {
    /// Runs the trial on a control plane of its own.
    ///
    /// # Errors
    /// When something failed that was not in flight on a killed instance; the message has all numbers.
    pub async fn run(&self) -> Result<Report> {
        // Pods need not be bound to be admitted; what nobody judges would only take the machine's time.
        let starting = Instant::now();
        let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
        let leaf = leaf(starting.elapsed());
        let authority = leaf * AUTHORITY;
        let installing = Installing {
            failure_mode: self.failure_mode,
            webhooks: 2,
            flags: [
                "--drain-delay=500ms".to_owned(),
                format!("--cert-lifetime={leaf}s"),
                format!("--ca-lifetime={authority}s"),
            ]
            .to_vec(),
            ..Installing::default()
        };
        let installation = Installation::start(&cp, &installing).await?;
        // The second client comes from elsewhere: what its connections meet is on a record of its own.
        let elsewhere = Balancer::start(installing.balancer.clone()).await?;
        for webhook in &installation.webhooks {
            elsewhere.add(webhook.webhook(), webhook.health());
        }
        elsewhere.wait_for_endpoints(2).await?;
        let ns = cp.namespace("chaos").await?;
        let client = ns.client();
        until_created(&ns, injected).await?;

        let (before, mark) = (counted(&client).await?, cp.audit().mark()?);
        let (losses, dial_losses) = (installation.balancer.losses().len(), elsewhere.losses().len());
        let lifetimes = Lifetimes::new(1000 * Millis::from(leaf), 1000 * Millis::from(authority));
        let dialler = Dialler::start(client.clone(), elsewhere.address(), &lifetimes);
        let load = Load::start(&ns, RATE);
        let begun = Instant::now();
        let kills = self.kill(&installation, &elsewhere, begun).await?;
        loop {
            let happened = (load.stored(), dialler.calls(), dialler.bundles());
            if enough(happened) {
                break;
            }
            ensure!(
                begun.elapsed() < PATIENCE * Duration::from_secs(leaf.into()),
                "too little happens: (Pods, connections, bundles) are {happened:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let took = begun.elapsed();
        let tally = load.end().await?;
        let dialled = dialler.end().await?;
        let after = counted(&client).await?;

        let asked = cp.audit().settled(mark).await?.in_namespace(ns.name()).resource("pods").verb("create");
        Evidence {
            failure_mode: self.failure_mode,
            took,
            kills,
            losses: installation.balancer.losses().split_off(losses),
            unserved: installation.balancer.unserved(),
            rejected: after.0 - before.0,
            open: after.1 - before.1,
            open_rounds: open_rounds(asked),
            tally,
            dialled,
            dial_losses: elsewhere.losses().split_off(dial_losses),
            dial_unserved: elsewhere.unserved(),
        }
        .judge()
        .with_context(|| words(&cp.log(Process::ApiServer)))
    }

    /// Kills one instance after the other until the time is over; both are back at the end. None is started again before either balancer knows
    /// that it is gone: one that does not would send connections to a process that listens and has no certificate yet.
    async fn kill(&self, installation: &Installation, elsewhere: &Balancer, begun: Instant) -> Result<Vec<Kill>> {
        let mut kills = Vec::new();
        let mut tick = tokio::time::interval_at(begun + self.kill_every, self.kill_every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while begun.elapsed() + self.kill_every <= self.duration {
            tick.tick().await;
            let victim = &installation.webhooks[kills.len() % installation.webhooks.len()];
            let from = Instant::now();
            victim.kill().await;
            installation.balancer.wait_for_endpoints(1).await?;
            let known = from.elapsed();
            elsewhere.wait_for_endpoints(1).await?;
            victim.start_again()?;
            victim.ready().await?;
            installation.balancer.wait_for_endpoints(2).await?;
            elsewhere.wait_for_endpoints(2).await?;
            kills.push(Kill { backend: victim.webhook(), from, until: Instant::now(), known });
        }
        tokio::time::sleep_until(begun + self.duration).await;
        ensure!(!kills.is_empty(), "no instance was killed in {:?}", self.duration);
        Ok(kills)
    }
}

/// Whether a trial in which that happened (Pods stored, connections, bundles) shows anything.
fn enough((stored, calls, bundles): (usize, usize, usize)) -> bool {
    stored >= ENOUGH.0 && calls >= ENOUGH.1 && bundles >= ENOUGH.2
}

/// Names of the created Pods for which calls of our webhook failed and were let pass, and in which rounds.
fn open_rounds(creations: Requests) -> BTreeMap<String, BTreeSet<u32>> {
    let mut all: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for creation in creations {
        for (key, webhook) in &creation.annotations {
            let round = key.strip_prefix(FAILED_OPEN).and_then(|rest| rest.split('_').next()?.parse().ok());
            if let Some(round) = round.filter(|_| webhook == keys::WEBHOOK_INJECT) {
                all.entry(creation.name.clone()).or_default().insert(round);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_live_longer_on_a_slow_machine_and_authorities_fit_in_what_counts_them() {
        let lives = [0, 3, 4, 40, 10_000, u64::MAX / STARTS].map(|start| leaf(Duration::from_secs(start)));
        assert_eq!(lives, [15, 15, 16, 160, 21_845, 21_845]);
        assert!(lives.iter().all(|life| life.checked_mul(AUTHORITY).is_some()));
    }

    #[test]
    fn a_trial_in_which_little_happened_shows_nothing() {
        let (stored, calls, bundles) = ENOUGH;
        assert!(enough(ENOUGH) && enough((usize::MAX, calls, bundles)));
        for little in [(stored - 1, calls, bundles), (stored, calls - 1, bundles), (stored, calls, bundles - 1)] {
            assert!(!enough(little), "{little:?}");
        }
    }
}
