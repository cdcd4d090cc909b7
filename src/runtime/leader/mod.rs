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

#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Config};
use tokio::sync::watch;
use tokio::time::Instant;

pub use fence::{Fence, Fenced};
pub use plan::Times;

use super::kube::ClientError;
use crate::domain::keys;
use plan::{Held, LeaseSeen, Moment, Situation, Step, end_of_writing, step};

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
}

/// Enters the election in `namespace`. `name` identifies the process to people (the Pod's name); a random suffix is
/// added, because a restarted process must not pass for its predecessor. `reader` is an unfenced client.
#[must_use]
pub fn candidacy(reader: Client, namespace: &str, name: &str, times: Times) -> (Leadership, Candidacy) {
    let (terms, receiver) = watch::channel(None);
    let fence = Fence::closed();
    let candidacy = Candidacy {
        api: Api::namespaced(reader, namespace),
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
    };
    (Leadership { terms: receiver, fence }, candidacy)
}

impl Candidacy {
    /// Runs for the Lease until `stop`, then hands it over.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", keys::LEASE)).timeout(25);
        let events = watcher(self.api.clone(), config).boxed();
        let mut events = pin!(settled(events));
        let mut stop = pin!(stop);
        // Before the first look nothing can be decided.
        tokio::select! {
            first = events.next() => self.observe(first.flatten()),
            () = &mut stop => return,
        }
        loop {
            let situation =
                Situation { lease: self.seen.as_ref(), deleted: self.deleted.as_ref(), me: &self.me, held: self.held };
            let now = self.now();
            let until = match step(situation, self.times, now) {
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
            tokio::select! {
                event = events.next() => self.observe(event.flatten()),
                () = tokio::time::sleep_until(self.base + until) => {}
                () = &mut stop => break,
            }
        }
        self.hand_over().await;
    }

    fn now(&self) -> Moment {
        self.base.elapsed()
    }

    /// Takes note of the Lease as it is now.
    fn observe(&mut self, lease: Option<Lease>) {
        let Some(lease) = lease else {
            if let Some(gone) = self.seen.take() {
                tracing::warn!(lease = keys::LEASE, "the Lease was deleted");
                self.deleted = Some(gone);
            }
            self.object = None;
            return;
        };
        let older =
            |now: &Lease, known: &Lease| version(now) < version(known) && now.metadata.uid == known.metadata.uid;
        if self.object.as_ref().is_some_and(|known| older(&lease, known)) {
            return;
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
                self.observe(Some(lease));
                self.won(sent);
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                let patience = patience.saturating_sub(self.now().saturating_sub(sent));
                if let Ok(Ok(lease)) = tokio::time::timeout(patience, self.api.get_opt(keys::LEASE)).await {
                    self.observe(lease);
                }
                self.not_before = self.now() + RETRY / 10;
            }
            Ok(Err(error)) => {
                tracing::warn!(lease = keys::LEASE, %error, "the Lease could not be written; trying again");
                self.not_before = self.now() + RETRY;
            }
            Err(_) => {
                tracing::warn!(lease = keys::LEASE, "no answer from the API server in time; trying again");
                self.not_before = self.now() + RETRY;
            }
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
    lease.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// From watch events to the state after each: the Lease, or none. Errors are waited out here.
fn settled(
    events: impl Stream<Item = watcher::Result<Event<Lease>>> + Unpin,
) -> impl Stream<Item = Option<Lease>> + Unpin {
    let start = (events, None::<Lease>);
    Box::pin(futures::stream::unfold(start, |(mut events, mut listed)| async move {
        loop {
            let state = match events.next().await? {
                Ok(Event::Init) => {
                    listed = None;
                    continue;
                }
                Ok(Event::InitApply(lease)) => {
                    listed = Some(lease);
                    continue;
                }
                Ok(Event::InitDone) => listed.take(),
                Ok(Event::Apply(lease)) => Some(lease),
                Ok(Event::Delete(_)) => None,
                Err(error) => {
                    tracing::warn!(lease = keys::LEASE, %error, "the Lease cannot be watched; trying again");
                    tokio::time::sleep(RETRY).await;
                    continue;
                }
            };
            return Some((state, (events, listed)));
        }
    }))
}
