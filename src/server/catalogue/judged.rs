//! Whether somebody judges cards: what is verified stays written when nobody does, and counts no more then.
//!
//! In: the Lease of the controllers, looked at now and then. Out: whether it was renewed lately. Promise: the clock of another machine decides nothing but at
//! the first look: from then on what counts is when a renewal was seen.

use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Options;
use crate::domain::keys;

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(30);
/// For so long cards count that nobody judges.
const PATIENCE: Duration = Duration::from_secs(300);

/// When somebody was last seen to judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    renewed: Option<SystemTime>,
    at: Instant,
}

impl Judged {
    /// Nobody has looked yet: as if it had been `now`.
    pub(super) fn new(now: Instant) -> Self {
        Self { renewed: None, at: now }
    }

    /// The Lease says that it was renewed then; `clock` is the time here.
    pub(super) fn seen(&mut self, renewed: SystemTime, clock: SystemTime, now: Instant) {
        if self.renewed == Some(renewed) {
            return;
        }
        let age =
            if self.renewed.is_none() { clock.duration_since(renewed).unwrap_or_default() } else { Duration::ZERO };
        self.at = now.checked_sub(age).unwrap_or(self.at);
        self.renewed = Some(renewed);
    }

    /// Whether that was too long ago.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= PATIENCE
    }
}

/// Looks for ever. What cannot be read says nothing, and too little is said soon enough.
pub(super) async fn look(options: &Options, judged: &Mutex<Judged>) {
    let leases: Api<Lease> = Api::namespaced(options.client.clone(), &options.operator_namespace);
    loop {
        if let Ok(Ok(Some(lease))) = tokio::time::timeout(LOOK, leases.get_opt(keys::LEASE)).await
            && let Some(renewed) = lease.spec.and_then(|spec| spec.renew_time)
        {
            judged.lock().seen(renewed.0.into(), (options.clock)(), Instant::now());
        }
        tokio::time::sleep(LOOK).await;
    }
}
