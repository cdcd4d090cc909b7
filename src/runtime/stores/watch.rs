//! One list-and-watch, for as long as the process lives.
//!
//! ```text
//! list (pages) ─► watch from there ─► ends after 25 s, or 30 s without a byte ─► watch from the last version
//!      ▲                                  │
//!      └── 410 Gone, or the server went back ┘      any failure: pause with jitter, then where it stopped
//! ```
//!
//! In: a source. Out: [`Change`]s, one per object and version; what a new list lacks is reported as gone. Promises: an
//! event older than what is known is dropped (a lagging API server never moves the cache backwards); a duplicate is
//! dropped; a failed read reports nothing, so it never changes a cache; a kind that is not served counts as empty once
//! that is certain ([`Presence`]). Own loop rather than kube's `watcher`, which keeps bookmarks to itself: without them
//! an idle cluster cannot be told from a stuck watch.

use std::collections::HashMap;
use std::time::Duration;

use futures::TryStreamExt;
use kube::api::{ListParams, WatchParams};
use kube::core::{ApiResource, Status, WatchEvent};
use kube::{Api, Client};
use tokio::time::{Instant, timeout};

use super::presence::{Presence, Verdict};
use super::sources::Source;
use super::{Needs, backoff};
use crate::api::observed::object::{Decoded, Shape, TektonObject, Whole};
use crate::api::observed::wire::Raw;
use crate::api::observed::{Change, Key, Kind, Pool, Reach};
use crate::api::refusal;
use crate::runtime::watching::Pace;

/// A watch that ends sooner than this has not really begun.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// At most one log line per source in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How long a missing permission may be about to come before others go on without the kind.
const FORBIDDEN: Duration = Duration::from_secs(10);

/// Where a watch delivers.
pub(super) trait Sink {
    /// Something happened to one object.
    fn change(&mut self, change: Change) -> impl Future<Output = ()> + Send;
    /// The first list is complete.
    fn listed(&mut self) -> impl Future<Output = ()> + Send;
    /// The server has spoken: what is known is current.
    fn alive(&mut self);
    /// Whether what is known is all there is has changed.
    fn reach(&mut self, reach: Reach) -> impl Future<Output = ()> + Send;
    /// A try failed.
    fn failed(&mut self, error: &WatchError);
    /// The server answers again after a failure.
    fn recovered(&mut self);
}

/// Why a list or watch ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// The request failed, or the stream broke.
    #[error("{}", refusal::of_error(.0))]
    Request(#[from] kube::Error),
    /// The server reported an error within the stream, or refused the version to go on from.
    #[error("{}", refusal::of_status(.0))]
    Status(Box<Status>),
    /// No answer.
    #[error("no answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// The server is behind where it has been: a restored backup, or another replica that lags.
    #[error("the server went back from version {from} to {to}")]
    WentBack {
        /// Version that was known.
        from: u64,
        /// Version that the server is at.
        to: u64,
    },
    /// The server ends watches at once.
    #[error("the watch ended as soon as it had begun")]
    TooShort,
}

impl WatchError {
    fn code(&self) -> Option<u16> {
        match self {
            WatchError::Request(kube::Error::Api(status)) => Some(status.code),
            WatchError::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Everything has to be read again: a list is the truth whatever was known.
    fn gone(&self) -> bool {
        // A version that the server has not come to yet is a timeout by its own account.
        let ahead = |message: &str| message.contains("Too large resource version");
        match self {
            WatchError::WentBack { .. } => true,
            WatchError::Request(kube::Error::Api(status)) if ahead(&status.message) => true,
            WatchError::Status(status) if ahead(&status.message) => true,
            _ => matches!(self.code(), Some(404 | 410)),
        }
    }

    /// How long the server wants to be left alone.
    fn retry_after(&self) -> Duration {
        let WatchError::Request(kube::Error::Api(status)) = self else { return Duration::ZERO };
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        Duration::from_secs(u64::from(seconds).min(60))
    }
}

/// The state of one list-and-watch.
struct Watch<'a, S, R> {
    api: Api<R>,
    source: &'a Source,
    sink: &'a mut S,
    pace: Pace,
    known: HashMap<Key, u64>,
    pool: Pool,
    version: Option<String>,
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
pub(super) async fn run<S: Sink>(server: (Client, Pace), source: &Source, namespace: Option<&str>, sink: &mut S) {
    match source.kind.shape() {
        Shape::Common => run_as::<S, Raw>(server, source, namespace, sink).await,
        Shape::Whole => run_as::<S, Whole>(server, source, namespace, sink).await,
        Shape::Tekton => run_as::<S, TektonObject>(server, source, namespace, sink).await,
    }
}

async fn run_as<S: Sink, R: Decoded>(
    (client, pace): (Client, Pace),
    source: &Source,
    namespace: Option<&str>,
    sink: &mut S,
) {
    let resource = resource(source.kind);
    let mut watch = Watch {
        api: match namespace {
            Some(namespace) => Api::<R>::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        },
        source,
        sink,
        pace,
        known: HashMap::new(),
        pool: Pool::default(),
        version: None,
        presence: Presence::new(pace.absence),
        reach: Reach::Unknown,
        first: true,
        begun: Instant::now(),
        forbidden: None,
        failures: 0,
        logged: None,
        spoken: false,
    };
    loop {
        let outcome = match watch.version.clone() {
            None => watch.list().await,
            Some(version) => watch.follow(&version, watch.failures > 0).await,
        };
        match outcome {
            Ok(()) => watch.succeeded().await,
            Err(error) => {
                let pause = watch.failed(error).await;
                tokio::time::sleep(pause).await;
            }
        }
    }
}

impl<S: Sink, R: Decoded> Watch<'_, S, R> {
    async fn succeeded(&mut self) {
        let kind = self.source.kind.as_str();
        if self.presence.is_absent() {
            tracing::info!(kind, "the API server serves the kind now");
        }
        if self.failures > 0 {
            if std::mem::take(&mut self.spoken) {
                tracing::info!(kind, failures = self.failures, "the watch works again");
            }
            self.sink.recovered();
        }
        self.presence.served();
        self.forbidden = None;
        self.failures = 0;
        self.reached(Reach::Listed).await;
        self.settled().await;
    }

    /// Takes note of a failure; returns how long to wait.
    async fn failed(&mut self, error: WatchError) -> Duration {
        if error.gone() {
            self.version = None;
        }
        if self.source.optional && error.code() == Some(404) {
            return self.not_served().await;
        }
        self.presence.unclear();
        self.failures = self.failures.saturating_add(1);
        self.sink.failed(&error);
        if self.logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            let (kind, failures) = (self.source.kind.as_str(), self.failures);
            tracing::warn!(kind, failures, %error, "cannot watch; the last state is kept");
            self.logged = Some(Instant::now());
            self.spoken = true;
        }
        if matches!(error.code(), Some(401 | 403)) {
            let since = *self.forbidden.get_or_insert_with(Instant::now);
            if since.elapsed() >= FORBIDDEN {
                self.not_permitted().await;
            }
        } else {
            self.forbidden = None;
        }
        backoff::pause(self.failures, backoff::jitter()).max(error.retry_after())
    }

    /// The collection does not exist. Nobody waits for it; once that is certain, neither do its objects.
    async fn not_served(&mut self) -> Duration {
        self.forbidden = None;
        let known = self.presence.is_absent();
        let verdict = self.presence.missing(self.begun.elapsed());
        if verdict == Verdict::Absent && !known {
            tracing::info!(
                kind = self.source.kind.as_str(),
                "the API server does not serve the kind; it is asked for again"
            );
            self.replace(HashMap::new()).await;
            self.failures = 0;
            self.reached(Reach::Absent).await;
        }
        if verdict == Verdict::Unclear {
            return backoff::pause(1, backoff::jitter());
        }
        if self.known.is_empty() {
            self.sink.alive();
        }
        self.settled().await;
        self.pace.asking().mul_f64(0.5 + backoff::jitter())
    }

    /// Permission is missing for good: what concerns other kinds goes on. Admission never does without what it needs.
    async fn not_permitted(&mut self) {
        self.reached(Reach::Unknown).await;
        if self.source.needs != Needs::Admission {
            self.settled().await;
        }
    }

    async fn reached(&mut self, reach: Reach) {
        if std::mem::replace(&mut self.reach, reach) != reach {
            self.sink.reach(reach).await;
        }
    }

    /// Nobody has to wait for this source any longer.
    async fn settled(&mut self) {
        if std::mem::take(&mut self.first) {
            self.sink.listed().await;
        }
    }

    /// What is known becomes `fresh`; the rest is gone.
    async fn replace(&mut self, fresh: HashMap<Key, u64>) {
        let gone: Vec<Key> = self.known.keys().filter(|key| !fresh.contains_key(*key)).cloned().collect();
        self.known = fresh;
        for key in gone {
            self.sink.change(Change { kind: self.source.kind, key, version: 0, listed: true, now: None }).await;
        }
    }

    /// Reads everything, page by page, then reports what is no longer there.
    async fn list(&mut self) -> Result<(), WatchError> {
        let mut parameters = ListParams::default().limit(self.source.page);
        parameters.field_selector = self.source.name.map(|name| format!("metadata.name={name}"));
        parameters.label_selector = self.source.labels.map(str::to_owned);
        let mut fresh = HashMap::new();
        let silence = self.pace.silence();
        loop {
            let page =
                timeout(silence, self.api.list(&parameters)).await.map_err(|_| WatchError::Silent(silence))??;
            self.sink.alive();
            for raw in page.items {
                if let Some((key, version)) = self.object(raw, true).await {
                    fresh.insert(key, version);
                }
            }
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                self.version = page.metadata.resource_version;
                break;
            }
        }
        self.replace(fresh).await;
        Ok(())
    }

    /// Follows one watch until it ends in the ordinary way.
    async fn follow(&mut self, version: &str, troubled: bool) -> Result<(), WatchError> {
        let parameters = WatchParams {
            field_selector: self.source.name.map(|name| format!("metadata.name={name}")),
            label_selector: self.source.labels.map(str::to_owned),
            timeout: u32::try_from(self.pace.period.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        let (begun, silence) = (Instant::now(), self.pace.silence());
        let watching = self.api.watch(&parameters, version);
        let events = timeout(silence, watching).await.map_err(|_| WatchError::Silent(silence))??;
        let mut events = std::pin::pin!(events);
        if troubled {
            self.sink.recovered();
        }
        let mut delivered = false;
        while let Some(event) = timeout(silence, events.try_next()).await.map_err(|_| WatchError::Silent(silence))?? {
            delivered = true;
            match event {
                WatchEvent::Added(raw) | WatchEvent::Modified(raw) => {
                    if self.advance(raw.metadata().resource_version.as_deref()).is_ok() {
                        self.object(raw, false).await;
                    }
                }
                WatchEvent::Deleted(raw) => {
                    if self.advance(raw.metadata().resource_version.as_deref()).is_ok() {
                        self.deleted(&raw).await;
                    }
                }
                WatchEvent::Bookmark(bookmark) => {
                    let version = bookmark.metadata.resource_version;
                    self.advance(Some(&version)).map_err(|from| WatchError::WentBack { from, to: number(&version) })?;
                }
                WatchEvent::Error(status) => {
                    return Err(WatchError::Status(status));
                }
            }
            self.sink.alive();
        }
        if !delivered && begun.elapsed() < TOO_SHORT {
            return Err(WatchError::TooShort);
        }
        self.sink.alive();
        Ok(())
    }

    /// Moves the position in the history on. An `Err` with the position: `version` lies before it. Versions of one
    /// kind only grow, so an event that is not newer than the position was delivered before, by this server or another.
    fn advance(&mut self, version: Option<&str>) -> Result<(), u64> {
        let Some(version) = version.filter(|version| !version.is_empty()) else { return Ok(()) };
        let (at, next) = (self.version.as_deref().map_or(0, number), number(version));
        if next != 0 && next < at {
            return Err(at);
        }
        self.version = Some(version.to_owned());
        Ok(())
    }

    /// One object as it is now; returns its key and version while it is of interest.
    async fn object(&mut self, raw: R, listed: bool) -> Option<(Key, u64)> {
        let mut change = raw.into_change(self.source.kind);
        change.listed = listed;
        self.pool.share(&mut change);
        let keep = self.source.keep;
        change.now = change.now.filter(|now| keep(&change.key, &now.what));
        let (key, version) = (change.key.clone(), change.version);
        let known = self.known.get(&key).copied();
        // A list is the truth, even when its versions are smaller (a restored backup); an old event is only late.
        let stale = known.is_some_and(|known| known == version || (!listed && version < known));
        let interesting = change.now.is_some();
        if !stale && (interesting || known.is_some()) {
            if interesting {
                self.known.insert(key.clone(), version);
            } else {
                self.known.remove(&key);
            }
            self.sink.change(change).await;
        }
        interesting.then_some((key, version))
    }

    async fn deleted(&mut self, raw: &R) {
        let (key, version) = (raw.metadata().key(), raw.metadata().version());
        if self.known.get(&key).is_some_and(|known| version == 0 || *known <= version) {
            self.known.remove(&key);
            self.sink.change(Change { kind: self.source.kind, key, version, listed: false, now: None }).await;
        }
    }
}

/// A version as a number; 0 when it is none.
fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: kind.group().to_owned(),
        version: kind.version().to_owned(),
        api_version: kind.api_version(),
        kind: kind.as_str().to_owned(),
        plural: kind.plural().to_owned(),
    }
}
