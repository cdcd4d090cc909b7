//! The Pods of an enrolled workload against the configuration that they should run with; pure.
//!
//! Promise: only Pods that the workload controls count, by uid; those that end or have ended do not.

use std::time::Duration;

use crate::controllers::enrolment::note::Eviction;
use crate::domain::keys::HASH_OF_NOTHING;
use crate::store::objects::PodRef;
use crate::store::{PodPhase, Rollout};

/// Pause after Pods were replaced that made nothing better.
const IN_VAIN: Duration = Duration::from_secs(300);

/// What the Pods of one workload run with.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally<'a> {
    /// With the wanted configuration.
    pub(super) configured: usize,
    /// Without our parts, although they should have them.
    pub(super) unprotected: Vec<PodRef<'a>>,
    /// With another configuration.
    pub(super) outdated: Vec<PodRef<'a>>,
    /// Being deleted: their places are about to be filled.
    pub(super) ending: usize,
    /// Behind the gate.
    pub(super) gated: usize,
    /// That run: neither waiting for a node, nor for an image, nor at their end.
    pub(super) live: usize,
    /// From before the workload was enrolled: without the label nobody sends them to us, and their workload keeps them.
    pub(super) unlabelled: usize,
}

impl<'a> Tally<'a> {
    /// Counts `pods`; `wanted` is the hash they should carry.
    pub(super) fn of(pods: impl Iterator<Item = PodRef<'a>>, wanted: &str) -> Self {
        let mut tally = Self::default();
        for pod in pods {
            let seen = pod.seen;
            let ended = matches!(seen.phase, PodPhase::Succeeded | PodPhase::Failed);
            let is_live = !seen.terminating && seen.phase == PodPhase::Running;
            tally.live += usize::from(is_live);
            match () {
                () if seen.terminating => tally.ending += 1,
                // Behind the gate nothing runs yet, and the gate's controller replaces it.
                () if ended => {}
                () if seen.gated => tally.gated += 1,
                () if is_configured(&pod, wanted) => tally.configured += 1,
                () if seen.injected => tally.outdated.push(pod),
                () => tally.unprotected.push(pod),
            }
        }
        tally
    }

    /// Counts Pods with that hash as configured, too.
    pub(super) fn accept(&mut self, hash: Option<&str>) {
        let before = self.outdated.len();
        self.outdated.retain(|pod| hash.is_none() || pod.seen.hash.as_deref() != hash);
        self.configured += before - self.outdated.len();
    }

    /// Counts the Pods of another template that the workload still has and that are not among those seen here.
    pub(super) fn count_unlabelled(&mut self, rollout: Rollout) {
        let seen = i64::try_from(self.running() + self.ending + self.gated).unwrap_or(i64::MAX);
        let (unseen, old) = (rollout.existing - seen, rollout.existing - rollout.updated);
        self.unlabelled = if rollout.is_observed() { usize::try_from(unseen.min(old)).unwrap_or(0) } else { 0 };
    }

    /// Those that are not as they should be.
    pub(super) fn drifted(&self) -> impl Iterator<Item = &PodRef<'a>> {
        self.unprotected.iter().chain(&self.outdated)
    }

    /// When the youngest of these was made.
    pub(super) fn youngest(&self) -> Option<Box<str>> {
        self.drifted().map(|pod| pod.seen.created.clone()).max()
    }

    /// How long to wait where what was made since Pods were last replaced is no better: nobody injects at present, or by
    /// other settings, and to replace it again would only harm.
    pub(super) fn in_vain(&self, last: &Eviction, now: Duration) -> Option<Duration> {
        let waited = now.saturating_sub(last.at);
        let no_better = self.youngest().is_some_and(|made| made > last.youngest);
        (waited < IN_VAIN && no_better).then(|| IN_VAIN.saturating_sub(waited))
    }

    /// Every Pod that runs.
    pub(super) fn running(&self) -> usize {
        self.configured + self.unprotected.len() + self.outdated.len()
    }
}

/// Whether a Pod is what the webhook makes of it under the wanted configuration: a hash that was only inherited from
/// the template proves nothing.
fn is_configured(pod: &PodRef<'_>, wanted: &str) -> bool {
    if wanted == HASH_OF_NOTHING {
        !pod.seen.injected
    } else {
        pod.seen.injected && pod.seen.hash.as_deref() == Some(wanted)
    }
}
