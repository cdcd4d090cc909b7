//! Leadership by Lease: one replica's controllers write at a time.
//!
//! In: the Lease `drawbridge-controllers` of the operator namespace, watched. Out: [`Leadership`]: the term as a watch
//! channel, and a client for writing that is fenced by it. What to do next is decided by [`plan`], which is pure.
//!
//! Guarantees: no request leaves the writing client after the end of the term that this process could know of, also
//! when the process was stopped and resumed; time is observed locally, so clock skew is harmless; a graceful end hands
//! the Lease over at once. Assumes: monotonic clocks run at the same speed within the margin.
//!
//! Own code rather than kube-lease-manager, because of two requirements that it leaves to its caller: the fence inside
//! the writing client, which has to know when each renewal was *sent*, and local observation of a deleted Lease.

mod client;
mod fence;
mod plan;
mod silence;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Config};
use tokio::sync::watch;
use tokio::time::Instant;

pub use fence::{Fence, Fenced};
pub use plan::Times;

use super::client::ClientError;
use super::watch::named::{Known, named};
use super::watch::{Watching, number};
use crate::api::refusal;
use crate::domain::keys;
use plan::{Held, LeaseSeen, Moment, Situation, Step, end_of_writing, led_until, step};
use silence::Silence;

/// Field manager of the Lease.
const MANAGER: &str = "drawbridge/leader";
/// Pause after a try that failed.
const RETRY: Duration = Duration::from_millis(500);
/// How long a graceful end waits for writes under way before it gives the Lease away.
const DRAIN: Duration = Duration::from_millis(300);

/// What the rest of the process knows of leadership. Clones share it.
#[derive(Debug, Clone)]
pub struct Leadership {
    terms: watch::Receiver<Option<u64>>,
    fence: Fence,
}

impl Leadership {
    /// The number of our term while we lead, `None` while we do not. A new number means that others may have written
    /// in between.
    #[must_use]
    pub fn terms(&self) -> watch::Receiver<Option<u64>> {
        self.terms.clone()
    }

    /// Whether this process leads now.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.terms.borrow().is_some() && self.fence.left().is_ok()
    }

    /// The fence, for whoever wants to know why a write failed.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The only client that may write: its requests are refused with [`Fenced`] unless this process leads.
    ///
    /// # Errors
    /// When `config` cannot be used.
    pub fn writer(&self, config: &Config) -> Result<Writer, ClientError> {
        let client = client::writing(config, &self.fence).map_err(|source| ClientError::Unusable {
            server: config.cluster_url.to_string(),
            source: Box::new(source),
        })?;
        Ok(Writer { client, leadership: self.clone() })
    }
}

/// The writing client, together with what tells whether it would be let through. Clones share the fence.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    leadership: Leadership,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("leadership", &self.leadership).finish_non_exhaustive()
    }
}

impl Writer {
    /// The fenced client.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether this process leads now. Ask before planning a write; the client asks again.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.leadership.leads()
    }
}

/// Waits until this process begins or ceases to lead; for ever without a writer, or when the candidacy has ended.
pub async fn turned(writer: &mut Option<Writer>) {
    let changed = match writer {
        Some(writer) => writer.leadership.terms.changed().await,
        None => std::future::pending().await,
    };
    if changed.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The candidacy of this process, to be run for as long as it lives.
pub struct Candidacy {
    api: Api<Lease>,
    watching: Watching,
    known: Option<Known>,
    me: String,
    times: Times,
    fence: Fence,
    terms: watch::Sender<Option<u64>>,
    base: Instant,
    object: Option<Lease>,
    seen: Option<LeaseSeen>,
    deleted: Option<LeaseSeen>,
    held: Option<Held>,
    elected: u64,
    not_before: Moment,
    silence: Silence,
}

/// Enters the election in `namespace`. `name` identifies the process to people (the Pod's name); a random suffix is
/// added, because a restarted process must not pass for its predecessor. `reader` is an unfenced client.
#[must_use]
pub fn candidacy(reader: Client, namespace: &str, name: &str, times: Times) -> (Leadership, Candidacy) {
    let (terms, receiver) = watch::channel(None);
    let fence = Fence::closed();
    let candidacy = Candidacy {
        api: Api::namespaced(reader, namespace),
        watching: Watching::default(),
        known: None,
        me: format!("{name}_{:016x}", RandomState::new().build_hasher().finish()),
        times,
        fence: fence.clone(),
        terms,
        base: Instant::now(),
        object: None,
        seen: None,
        deleted: None,
        held: None,
        elected: 0,
        not_before: Duration::ZERO,
        silence: Silence::default(),
    };
    (Leadership { terms: receiver, fence }, candidacy)
}

impl Candidacy {
    /// Watches as the rest of the process does.
    #[must_use]
    pub fn watching(self, watching: Watching) -> Self {
        Self { watching, ..self }
    }

    /// Runs for the Lease until `stop`, then hands it over.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let (known, mut events) = named(self.api.clone(), keys::LEASE, "Lease", &self.watching);
        self.known = Some(known);
        let mut stop = pin!(stop);
        // Before the first look nothing can be decided.
        loop {
            let due = self.silence.due(None, self.times, self.now());
            tokio::select! {
                first = events.next() => {
                    self.observe(first.flatten());
                    break;
                }
                () = tokio::time::sleep_until(self.base + due) => self.nobody_leads(),
                () = &mut stop => return,
            }
        }
        loop {
            let now = self.now();
            let until = match step(self.situation(), self.times, now) {
                Step::Lose => {
                    self.lose();
                    continue;
                }
                Step::Wait(until) => until,
                Step::Create | Step::Take | Step::Renew if now < self.not_before => self.not_before,
                step @ (Step::Create | Step::Take | Step::Renew) => {
                    tokio::select! {
                        () = self.write(step) => {}
                        () = &mut stop => break,
                    }
                    continue;
                }
            };
            let due = self.silence.due(self.led(), self.times, self.now());
            tokio::select! {
                event = events.next() => self.observe(event.flatten()),
                () = tokio::time::sleep_until(self.base + until) => {}
                () = tokio::time::sleep_until(self.base + due) => self.nobody_leads(),
                () = &mut stop => break,
            }
        }
        self.hand_over().await;
    }

    fn situation(&self) -> Situation<'_> {
        Situation { lease: self.seen.as_ref(), deleted: self.deleted.as_ref(), me: &self.me, held: self.held }
    }

    fn now(&self) -> Moment {
        self.base.elapsed()
    }

    /// Until when, as far as can be known here, somebody leads: this process, or another.
    fn led(&self) -> Option<Moment> {
        led_until(self.situation(), self.times)
    }

    fn nobody_leads(&mut self) {
        let last = self.seen.as_ref().map(|seen| seen.holder.as_str()).unwrap_or_default();
        self.silence.told(self.now());
        tracing::warn!(
            lease = keys::LEASE,
            last,
            "nobody leads, as far as this process can see: no controller writes, and certificates are not renewed. It \
             tries to take the Lease (get, list, watch, create and update of leases are needed); earlier lines say why it could not"
        );
    }

    /// Takes note of the Lease as it is now: what is watched or read is the truth.
    fn observe(&mut self, lease: Option<Lease>) {
        let Some(lease) = lease else {
            if let Some(gone) = self.seen.take() {
                tracing::warn!(lease = keys::LEASE, "the Lease was deleted");
                self.deleted = Some(gone);
            }
            self.object = None;
            return;
        };
        if self.object.as_ref().is_some_and(|known| version(&lease) < version(known)) && self.held.is_none() {
            // The cluster went back, and who has not heard of it yet may write until their time is over: also when that is
            // what this process was before.
            self.not_before = self.now() + self.times.duration;
        }
        if self.object.as_ref().and_then(|known| known.spec.as_ref()) != lease.spec.as_ref() || self.seen.is_none() {
            let spec = lease.spec.clone().unwrap_or_default();
            let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            self.seen = Some(LeaseSeen {
                holder: spec.holder_identity.unwrap_or_default(),
                duration: seconds.map_or(self.times.duration, Duration::from_secs),
                changed: self.now(),
            });
        }
        self.object = Some(lease);
        self.deleted = None;
    }

    /// Creates, takes or renews. What the server says is observed; a conflict is answered by reading again.
    async fn write(&mut self, step: Step) {
        let sent = self.now();
        let before = self.known.as_ref().map_or(0, Known::version);
        let patience = match &mut self.held {
            Some(held) => {
                held.tried = sent;
                end_of_writing(held.sent, self.times).saturating_sub(sent)
            }
            None => self.times.duration,
        };
        let lease = self.desired(step);
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let request = async {
            if step == Step::Create {
                self.api.create(&parameters, &lease).await
            } else {
                self.api.replace(keys::LEASE, &parameters, &lease).await
            }
        };
        match tokio::time::timeout(patience, request).await {
            Ok(Ok(lease)) => {
                if let Some(known) = &self.known {
                    known.wrote(before, lease.metadata.resource_version.as_deref());
                }
                self.observe(Some(lease));
                self.won(sent);
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                let patience = patience.saturating_sub(self.now().saturating_sub(sent));
                self.not_before = self.now() + RETRY / 10;
                if let Ok(Ok(lease)) = tokio::time::timeout(patience, self.api.get_opt(keys::LEASE)).await {
                    if let Some(known) = &self.known {
                        known.read(before, lease.as_ref().map_or(0, version));
                    }
                    self.observe(lease);
                }
            }
            Ok(Err(error)) => self.failed(&refusal::of_error(&error)),
            Err(_) => self.failed("no answer from the API server in time"),
        }
    }

    /// Told once a minute: it is tried twice a second.
    fn failed(&mut self, error: &str) {
        let now = self.now();
        self.not_before = now + RETRY;
        if self.silence.may_complain(now) {
            tracing::warn!(lease = keys::LEASE, error, "the Lease could not be written; trying again");
        }
    }

    /// The Lease with us as holder, renewed now. Wall-clock times in it are for people; nobody here reads them.
    fn desired(&self, step: Step) -> Lease {
        let now = MicroTime(jiff::Timestamp::now());
        let old = self.object.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let ours = old.holder_identity.as_deref() == Some(&self.me);
        let renewal = step == Step::Renew && ours;
        let spec = LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: i32::try_from(self.times.duration.as_secs()).ok(),
            acquire_time: if renewal { old.acquire_time.clone() } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(old.lease_transitions.unwrap_or(-1).saturating_add(i32::from(!ours))),
            ..old
        };
        let mut metadata = match &self.object {
            Some(lease) if step != Step::Create => lease.metadata.clone(),
            _ => ObjectMeta { name: Some(keys::LEASE.to_owned()), ..ObjectMeta::default() },
        };
        metadata.managed_fields = None;
        Lease { metadata, spec: Some(spec) }
    }

    /// A write of ours that was sent at `sent` has succeeded.
    fn won(&mut self, sent: Moment) {
        let first = self.held.is_none();
        self.held = Some(Held { sent, tried: sent });
        self.fence.open_until(self.base + end_of_writing(sent, self.times));
        if first {
            self.elected += 1;
            tracing::info!(identity = self.me, term = self.elected, "leading: the controllers of this process write");
            self.terms.send_replace(Some(self.elected));
        }
    }

    fn lose(&mut self) {
        self.fence.close();
        self.held = None;
        tracing::warn!(identity = self.me, term = self.elected, "no longer leading: the controllers write nothing");
        self.terms.send_replace(None);
    }

    /// Stops writing, waits for what is under way, and empties the holder, so that another replica takes over at once.
    async fn hand_over(mut self) {
        let Some(held) = self.held.take() else { return };
        self.fence.close();
        self.terms.send_replace(None);
        if !self.fence.drained(DRAIN).await {
            tracing::warn!("a write is still under way: the Lease is left to run out instead of being handed over");
            return;
        }
        let mut lease = self.desired(Step::Renew);
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some(String::new());
            spec.lease_duration_seconds = Some(1);
        }
        let patience = end_of_writing(held.sent, self.times).saturating_sub(self.now()).min(Duration::from_secs(2));
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match tokio::time::timeout(patience, self.api.replace(keys::LEASE, &parameters, &lease)).await {
            Ok(Ok(_)) => tracing::info!(identity = self.me, "the Lease was handed over"),
            _ => tracing::warn!(identity = self.me, "the Lease could not be handed over and will run out"),
        }
    }
}

fn version(lease: &Lease) -> u64 {
    number(lease.metadata.resource_version.as_deref())
}
