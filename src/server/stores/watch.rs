//! What one source of the table delivers, for as long as the process lives.
//!
//! In: a source, followed by [`crate::cluster::watch`], whose rule for lists, watches and versions holds here. Out: [`Change`]s into the
//! [`Keeper`], which knows what is news; what a list lacks is reported as gone. Promises: a failed read reports nothing, so it never changes
//! what is known; half a list takes nothing away; after an event that cannot be decoded everything is read again; of a page no more is built at a time
//! than one object; a kind that is not served counts as empty once that is certain ([`Presence`]).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::core::ApiResource;
use kube::{Api, Client};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::presence::{Presence, Verdict};
use super::sources::Source;
use crate::cluster::keeper::Keeper;
use crate::cluster::watch::follow::{Following, Items, Selection, Step};
use crate::cluster::watch::{History, Pace, WatchError, Watching, backoff};
use crate::store::decode::wire::Raw;
use crate::store::decode::{Bounded, Decoded, Shape, TektonObject, Whole};
use crate::store::{Change, Key, Kind, Pool, Reach, UsedBy, Via};

/// At most one log line per source in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How long a missing permission may be about to come before others go on without the kind.
const FORBIDDEN: Duration = Duration::from_secs(10);

/// Who is told how a watch fares.
pub(super) trait Sink {
    /// The change as there is room for it.
    fn admitted(&mut self, change: Change) -> Change {
        change
    }
    /// The first list is complete.
    fn listed(&mut self);
    /// The turns in which pages are read, where others have to wait meanwhile.
    fn pages(&self) -> Option<Arc<Semaphore>> {
        None
    }
    /// Whether everything is to be read anew now.
    fn reads_anew(&mut self) -> bool {
        false
    }
    /// The server has spoken: what is known is current.
    fn alive(&mut self);
    /// Whether what is known is all there is has changed.
    fn reach(&mut self, reach: Reach);
    /// A try failed.
    fn failed(&mut self, error: &WatchError);
    /// The server answers again after a failure.
    fn recovered(&mut self);
}

/// The state of one list-and-watch.
struct Watch<'a, S> {
    source: &'a Source,
    /// The namespace that is watched; `None`: all of them.
    namespace: Option<&'a str>,
    keeper: &'a Keeper,
    sink: &'a mut S,
    pace: Pace,
    /// What the list that is being read has had so far.
    fresh: HashSet<Key>,
    /// The history of the process.
    epochs: History,
    /// The epoch of the history that the last step belongs to, and up to which version things are known.
    history: (u64, u64),
    pool: Pool,
    presence: Presence,
    reach: Reach,
    first: bool,
    begun: Instant,
    /// Since when every answer was that permission is missing.
    forbidden: Option<Instant>,
    failures: u32,
    logged: Option<Instant>,
    spoken: bool,
}

/// Lists and watches `source` for ever, in one namespace or in all.
pub(super) async fn run<S: Sink>(
    server: (Client, Watching),
    source: &Source,
    namespace: Option<&str>,
    out: (&Keeper, &mut S),
) {
    match source.kind.shape() {
        Shape::Common => run_as::<S, Raw>(server, source, namespace, out).await,
        Shape::Whole => run_as::<S, Whole>(server, source, namespace, out).await,
        Shape::Bounded => run_as::<S, Bounded>(server, source, namespace, out).await,
        Shape::Tekton => run_as::<S, TektonObject>(server, source, namespace, out).await,
    }
}

async fn run_as<S: Sink, R: Decoded>(
    (client, watching): (Client, Watching),
    source: &Source,
    namespace: Option<&str>,
    (keeper, sink): (&Keeper, &mut S),
) {
    let resource = resource(source.kind);
    let asking = client.clone();
    let api = match namespace {
        Some(namespace) => Api::<R>::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let selection = Selection {
        fields: source.selection.name.map(|name| format!("metadata.name={name}")),
        labels: source.selection.labels.map(str::to_owned),
        page: Some(source.selection.page),
        careful: false,
        metadata: source.selection.metadata,
    };
    let mut watch = Watch {
        source,
        namespace,
        keeper,
        sink,
        pace: watching.pace,
        fresh: HashSet::new(),
        epochs: watching.history.clone(),
        history: (0, 0),
        pool: Pool::default(),
        presence: Presence::new(watching.pace.absence),
        reach: Reach::Unknown,
        first: true,
        begun: Instant::now(),
        forbidden: None,
        failures: 0,
        logged: None,
        spoken: false,
    };
    let mut following = Following::new(api, source.kind.label(), selection, watching);
    loop {
        // What nobody defined may not be read either: one question is enough.
        if source.is_compat() && watch.presence.is_absent() && !is_served(&asking, source.kind).await {
            tokio::time::sleep(watch.presence_denied()).await;
            continue;
        }
        // Held until nothing of the page is left.
        let turns = if following.lists() {
            (source.page_turn().await, turn_of(watch.sink.pages()).await)
        } else {
            (None, None)
        };
        let told = match following.next_in_turn().await {
            Ok(step) => {
                watch.history = following.reached();
                step.map_or(Ok(()), |step| watch.step(step)).inspect_err(|_| following.list_again())
            }
            Err(error) => Err(error),
        };
        match told {
            Ok(()) => {
                if !following.lists() && watch.sink.reads_anew() {
                    following.list_again();
                }
            }
            Err(error) => {
                drop(turns);
                let pause = if source.is_compat() && error.code() == Some(403) && !is_served(&asking, source.kind).await
                {
                    watch.presence_denied()
                } else {
                    watch.failed(error)
                };
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// Waits for a turn.
async fn turn_of(pages: Option<Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    pages?.acquire_owned().await.ok()
}

/// Whether the API server serves the group and version of a kind: what it serves, it tells everybody who is known to it. Without an answer
/// it may.
async fn is_served(client: &Client, kind: Kind) -> bool {
    match client.list_api_group_resources(&kind.api_version()).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) => status.code != 404,
        Err(_) => true,
    }
}

impl<S: Sink> Watch<'_, S> {
    /// Nobody may read the kind, because it is not served: its rights come with its definition.
    fn presence_denied(&mut self) -> Duration {
        self.fresh.clear();
        self.not_served()
    }

    fn step<R: Decoded>(&mut self, step: Step<R, Items<R>>) -> Result<(), WatchError> {
        match step {
            Step::Page { items, .. } => {
                self.keeper.turn(self.history.0);
                for raw in items {
                    self.object(raw?, true);
                }
                self.sink.alive();
                return Ok(());
            }
            Step::Begun => {
                if self.failures > 0 {
                    self.sink.recovered();
                }
                return Ok(());
            }
            Step::Listed => {
                self.complete(self.history.1);
                if self.failures > 0 {
                    self.sink.recovered();
                }
                self.succeeded();
                return Ok(());
            }
            Step::Changed(raw) => {
                self.object(raw, false);
            }
            Step::Deleted(raw) => self.deleted(&raw),
            Step::Alive | Step::Renewed => {}
        }
        self.sink.alive();
        self.succeeded();
        Ok(())
    }

    fn succeeded(&mut self) {
        let kind = self.source.kind.label();
        if self.presence.is_absent() {
            tracing::info!(kind, "the API server serves the kind now");
        }
        if self.failures > 0 && std::mem::take(&mut self.spoken) {
            tracing::info!(kind, failures = self.failures, "the watch works again");
        }
        self.presence.served();
        self.forbidden = None;
        self.failures = 0;
        self.reached(Reach::Listed);
        self.settled();
    }

    /// Takes note of a failure; returns how long to wait.
    fn failed(&mut self, error: WatchError) -> Duration {
        self.fresh.clear();
        if self.source.optional && error.code() == Some(404) {
            return self.not_served();
        }
        self.presence.unclear();
        self.failures = self.failures.saturating_add(1);
        self.sink.failed(&error);
        if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            let (kind, failures) = (self.source.kind.label(), self.failures);
            tracing::warn!(kind, failures, %error, "the watch of a kind is interrupted; what was read last is used until it works again");
            self.logged = Some(Instant::now());
            self.spoken = true;
        }
        if matches!(error.code(), Some(401 | 403)) {
            let since = *self.forbidden.get_or_insert_with(Instant::now);
            if since.elapsed() >= FORBIDDEN {
                self.not_permitted();
            }
        } else {
            self.forbidden = None;
        }
        backoff::pause(self.failures, backoff::jitter()).max(error.retry_after())
    }

    /// The collection does not exist. Nobody waits for it; once that is certain, neither do its objects.
    fn not_served(&mut self) -> Duration {
        self.forbidden = None;
        let known = self.presence.is_absent();
        let verdict = self.presence.missing(self.begun.elapsed());
        if verdict == Verdict::Absent && !known {
            tracing::info!(
                kind = self.source.kind.label(),
                "the API server does not serve the kind; it is asked for again"
            );
            self.fresh.clear();
            // No step says so: it holds of the cluster as it is now, also where that went back since the last one.
            self.history.0 = self.epochs.epoch();
            self.complete(u64::MAX);
            self.failures = 0;
            self.reached(Reach::Absent);
        }
        if verdict == Verdict::Unclear {
            return backoff::pause(1, backoff::jitter());
        }
        let of = (self.source.kind, self.source.id, self.namespace);
        if !self.keeper.read(|store| store.delivers(of)) {
            self.sink.alive();
        }
        self.settled();
        self.pace.asking(verdict == Verdict::Absent).mul_f64(0.5 + backoff::jitter())
    }

    /// Permission is missing for good: what concerns other kinds goes on. Admission never does without what it needs.
    fn not_permitted(&mut self) {
        self.reached(Reach::Unknown);
        if self.source.selection.used_by != UsedBy::Every {
            self.settled();
        }
    }

    fn reached(&mut self, reach: Reach) {
        if std::mem::replace(&mut self.reach, reach) != reach {
            self.sink.reach(reach);
        }
    }

    /// Nobody has to wait for this source any longer.
    fn settled(&mut self) {
        if std::mem::take(&mut self.first) {
            self.sink.listed();
        }
    }

    /// What was listed is all there is at that version.
    fn complete(&mut self, version: u64) {
        let (listed, (epoch, _)) = (std::mem::take(&mut self.fresh), self.history);
        let of = (self.source.kind, self.source.id, self.namespace);
        for gone in self.keeper.missing(of, epoch, (&listed, version)) {
            self.tell(gone);
        }
    }

    /// One object as it is now, from a list or an event.
    fn object<R: Decoded>(&mut self, raw: R, listed: bool) {
        let mut change = raw.into_change(self.source.kind);
        self.pool.share(&mut change);
        let keep = self.source.selection.keep;
        change.now = change.now.filter(|now| keep(&change.key, &now.what));
        change.via = if listed { Via::List(self.source.id) } else { Via::Watch(self.source.id) };
        if listed {
            if change.now.is_none() {
                // If it was of interest before, the list lacks it.
                return;
            }
            self.fresh.insert(change.key.clone());
        }
        self.tell(change);
    }

    fn deleted<R: Decoded>(&mut self, raw: &R) {
        let (key, version) = (raw.metadata().key(), raw.metadata().version());
        self.tell(Change { kind: self.source.kind, key, version, via: Via::Watch(self.source.id), now: None });
    }

    fn tell(&mut self, change: Change) {
        let change = self.sink.admitted(change);
        self.keeper.apply(self.history.0, &change, self.keeper.now());
    }
}

pub(super) fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}
