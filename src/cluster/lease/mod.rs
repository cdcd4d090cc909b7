//! Leadership by Lease: one replica's controllers write at a time.
//!
//! In: the Lease `drawbridge-controllers` of the operator namespace, watched. Out: [`Leadership`]: the term as a watch
//! channel, and a client for writing that is fenced by it. What happens is
//! decided by [`machine`], a value without I/O; here is what waits for its inputs and carries out its effects.
//!
//! Guarantees: no request leaves the writing client after the end of the term that this process could know of, also
//! when the process was stopped and resumed; time is observed locally, so clock skew is harmless; a graceful end hands
//! the Lease over at once. Assumes: monotonic clocks run at the same speed within the margin.
//!
//! Own code rather than kube-lease-manager, because of two requirements that it leaves to its caller: the fence inside
//! the writing client, which has to know when each renewal was *sent*, and local observation of a deleted Lease.

mod client;
mod fence;
pub mod machine;
mod plan;
mod silence;

#[cfg(test)]
mod tests;

use std::future::Future;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::pin;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{Either, select};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::PostParams;
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
use machine::{Candidate, Effect, Input, Write};
use plan::Moment;

/// Field manager of the Lease.
const MANAGER: &str = "drawbridge/leader";
/// How long a graceful end waits for the answer to a write of the Lease, and then for other writes under way, before it gives the Lease away; one that
/// takes longer keeps it until it runs out.
const DRAIN: Duration = Duration::from_secs(2);

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
    machine: Candidate,
    fence: Fence,
    terms: watch::Sender<Option<u64>>,
    base: Instant,
}

/// A request that is to be sent.
enum Request {
    Write(Box<Write>),
    Read(Duration),
}

/// Whether a refusal says that the Lease is another than was known: changed, made or deleted in between. That there is no place to create it in
/// (no such namespace) is none: nothing that could be read would tell more.
fn is_conflict(creates: bool, code: u16) -> bool {
    code == 409 || (code == 404 && !creates)
}

/// Enters the election in `namespace`. `name` identifies the process to people (the Pod's name); a random suffix is
/// added, because a restarted process must not pass for its predecessor. `reader` is an unfenced client.
#[must_use]
pub fn candidacy(reader: Client, namespace: &str, name: &str, times: Times) -> (Leadership, Candidacy) {
    let (terms, receiver) = watch::channel(None);
    let fence = Fence::closed();
    let me = format!("{name}_{:016x}", RandomState::new().build_hasher().finish());
    let candidacy = Candidacy {
        api: Api::namespaced(reader, namespace),
        watching: Watching::default(),
        machine: Candidate::new(&me, times),
        fence: fence.clone(),
        terms,
        base: Instant::now(),
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
        let mut stop = pin!(stop);
        let mut input = Input::Time;
        let last = loop {
            let (wake, request) = self.step(input);
            input = match request {
                Some(request) => match select(pin!(self.send(request, &known)), &mut stop).await {
                    Either::Left((answer, _)) => answer,
                    // It is stored all the same, perhaps, and then what is handed over has to be of that version.
                    Either::Right(((), sending)) => break tokio::time::timeout(DRAIN, sending).await.ok(),
                },
                None => tokio::select! {
                    event = events.next() => Input::Seen(event.flatten().map(Box::new)),
                    () = tokio::time::sleep_until(self.base + wake) => Input::Time,
                    () = &mut stop => break None,
                },
            };
        };
        if let Some(answer) = last {
            // It is taken note of, and nothing else comes of it: this process ends.
            let now = self.now();
            drop(self.machine.step(answer, now));
        }
        self.hand_over().await;
    }

    fn now(&self) -> Moment {
        self.base.elapsed()
    }

    /// Carries out what asks for no answer; when to go on, and what is to be sent.
    fn step(&mut self, input: Input) -> (Moment, Option<Request>) {
        let (mut wake, mut request) = (self.now(), None);
        for effect in self.machine.step(input, self.now()) {
            let identity = self.machine.identity();
            match effect {
                Effect::Write(write) => request = Some(Request::Write(write)),
                Effect::Read { patience } => request = Some(Request::Read(patience)),
                Effect::Wake(at) => wake = at,
                Effect::MayWrite(until) => self.fence.open_until(self.base + until),
                Effect::Closed => self.fence.close(),
                Effect::Term(term) => {
                    match term {
                        Some(term) => {
                            tracing::info!(identity, term, "this process holds the Lease: its controllers write");
                        }
                        None => {
                            let term = self.machine.term();
                            tracing::warn!(
                                identity,
                                term,
                                "this process no longer holds the Lease: its controllers write nothing"
                            );
                        }
                    }
                    self.terms.send_replace(term);
                }
                Effect::Deleted => tracing::warn!(lease = keys::LEASE, "the Lease was deleted"),
                Effect::NobodyLeads(last) => tracing::warn!(
                    lease = keys::LEASE,
                    last,
                    "nobody leads, as far as this process can see: no controller writes, and certificates are not renewed. It \
                     tries to take the Lease (get, list, watch, create and update of leases are needed); earlier lines say why it could not"
                ),
                // Told once a minute: it is tried twice a second.
                Effect::Complain(error) => {
                    tracing::warn!(lease = keys::LEASE, error, "the Lease could not be written; trying again");
                }
            }
        }
        (wake, request)
    }

    /// Sends a request; what the server says of it.
    async fn send(&self, request: Request, known: &Known) -> Input {
        // What is known is what the machine has seen: the answer is compared with that.
        let before = known.version();
        match request {
            Request::Write(write) => {
                let Write { creates, acquires, mut lease, patience } = *write;
                // Wall-clock times are for people; nobody here reads them.
                let now = MicroTime(jiff::Timestamp::now());
                if let Some(spec) = &mut lease.spec {
                    spec.acquire_time = if acquires { Some(now.clone()) } else { spec.acquire_time.clone() };
                    spec.renew_time = Some(now);
                }
                let answer = tokio::time::timeout(patience, self.put(creates, &lease)).await;
                match answer {
                    Ok(Ok(lease)) => {
                        known.wrote(before, lease.metadata.resource_version.as_deref());
                        Input::Stored(Box::new(lease))
                    }
                    Ok(Err(kube::Error::Api(status))) if is_conflict(creates, status.code) => Input::Conflict,
                    Ok(Err(error)) => Input::Failed(refusal::of_error(&error)),
                    Err(_) => Input::Failed("no answer from the API server in time".to_owned()),
                }
            }
            Request::Read(patience) => {
                let Ok(Ok(lease)) = tokio::time::timeout(patience, self.api.get_opt(keys::LEASE)).await else {
                    return Input::Read(None);
                };
                let version = lease.as_ref().map_or(0, |lease| number(lease.metadata.resource_version.as_deref()));
                known.read(before, version);
                Input::Read(Some(lease.map(Box::new)))
            }
        }
    }

    async fn put(&self, creates: bool, lease: &Lease) -> kube::Result<Lease> {
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        if creates {
            return self.api.create(&parameters, lease).await;
        }
        self.api.replace(keys::LEASE, &parameters, lease).await
    }

    /// Stops writing, waits for what is under way, and empties the holder, so that another replica takes over at once.
    async fn hand_over(mut self) {
        let resignation = self.machine.resign();
        self.fence.close();
        self.terms.send_if_modified(|term| term.take().is_some());
        let Some(mut resignation) = resignation else { return };
        if !self.fence.drained(DRAIN).await {
            tracing::warn!("a write is still under way: the Lease is left to run out instead of being handed over");
            return;
        }
        if let Some(spec) = &mut resignation.lease.spec {
            spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        }
        let patience = resignation.patience(self.now());
        let identity = self.machine.identity();
        match tokio::time::timeout(patience, self.put(false, &resignation.lease)).await {
            Ok(Ok(_)) => tracing::info!(identity, "the Lease was handed over"),
            _ => tracing::warn!(identity, "the Lease could not be handed over and will run out"),
        }
    }
}
