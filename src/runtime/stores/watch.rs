//! One list-and-watch, for as long as the process lives.
//!
//! ```text
//! list (pages) ─► watch from there ─► ends after 25 s, or 30 s without a byte ─► watch from the last version
//!      ▲                                  │
//!      └───────────── 410 Gone ───────────┘        any failure: pause with jitter, then where it stopped
//! ```
//!
//! In: a source. Out: [`Change`]s, one per object and version; what a new list lacks is reported as gone. Promises: an
//! event older than what is known is dropped (a lagging API server never moves the cache backwards); a duplicate is
//! dropped; a failed read reports nothing, so it never changes a cache. Own loop rather than kube's `watcher`, which
//! keeps bookmarks to itself: without them an idle cluster cannot be told from a stuck watch.

use std::collections::HashMap;
use std::time::Duration;

use futures::TryStreamExt;
use kube::api::{ListParams, WatchParams};
use kube::core::{ApiResource, WatchEvent};
use kube::{Api, Client};
use tokio::time::{Instant, timeout};

use super::backoff;
use super::sources::Source;
use crate::api::observed::wire::Raw;
use crate::api::observed::{Change, Key, Kind};

/// How long the server lets one watch last.
const RENEWAL: u32 = 25;
/// Longest silence, and longest wait for a page.
const SILENCE: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this has not really begun.
const TOO_SHORT: Duration = Duration::from_secs(1);
/// At most one log line per source in this time.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// Where a watch delivers.
pub(super) trait Sink {
    /// Something happened to one object.
    fn change(&mut self, change: Change) -> impl Future<Output = ()> + Send;
    /// The first list is complete.
    fn listed(&mut self) -> impl Future<Output = ()> + Send;
    /// The server has spoken: what is known is current.
    fn alive(&mut self);
    /// A try failed; `relisted` when everything has to be read again.
    fn failed(&mut self, error: &WatchError);
    /// The server answers again after a failure.
    fn recovered(&mut self);
}

/// Why a list or watch ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum WatchError {
    /// The request failed, or the stream broke.
    #[error(transparent)]
    Request(#[from] kube::Error),
    /// The server reported an error within the stream, or refused the version to go on from.
    #[error("{message} ({code})")]
    Status {
        /// HTTP code.
        code: u16,
        /// The server's words.
        message: String,
    },
    /// No answer.
    #[error("no answer within {} s", SILENCE.as_secs())]
    Silent,
    /// The server ends watches at once.
    #[error("the watch ended as soon as it had begun")]
    TooShort,
}

impl WatchError {
    /// Everything has to be read again.
    fn gone(&self) -> bool {
        match self {
            WatchError::Request(kube::Error::Api(status)) => status.code == 410,
            WatchError::Status { code, .. } => *code == 410,
            _ => false,
        }
    }
}

/// The state of one list-and-watch.
struct Watch<'a, S> {
    api: Api<Raw>,
    source: &'a Source,
    sink: &'a mut S,
    known: HashMap<Key, u64>,
    version: Option<String>,
}

/// Lists and watches `source` for ever.
pub(super) async fn run<S: Sink>(client: Client, source: &Source, sink: &mut S) {
    let api = Api::all_with(client, &resource(source.kind));
    let mut watch = Watch { api, source, sink, known: HashMap::new(), version: None };
    let (mut failures, mut logged, mut first) = (0u32, None::<Instant>, true);
    loop {
        let outcome = match watch.version.clone() {
            None => watch.list().await,
            Some(version) => watch.follow(&version, failures > 0).await,
        };
        match outcome {
            Ok(()) => {
                if failures > 0 {
                    tracing::info!(kind = source.kind.as_str(), failures, "the watch works again");
                    watch.sink.recovered();
                }
                failures = 0;
                if std::mem::take(&mut first) {
                    watch.sink.listed().await;
                }
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                watch.sink.failed(&error);
                if error.gone() {
                    watch.version = None;
                }
                if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
                    tracing::warn!(kind = source.kind.as_str(), failures, %error, "cannot watch; the last state is kept");
                    logged = Some(Instant::now());
                }
                tokio::time::sleep(backoff::pause(failures, backoff::jitter())).await;
            }
        }
    }
}

impl<S: Sink> Watch<'_, S> {
    /// Reads everything, page by page, then reports what is no longer there.
    async fn list(&mut self) -> Result<(), WatchError> {
        let mut parameters = ListParams::default().limit(self.source.page);
        parameters.field_selector = self.source.name.map(|name| format!("metadata.name={name}"));
        parameters.label_selector = self.source.labels.map(str::to_owned);
        let mut fresh = HashMap::new();
        loop {
            let page = timeout(SILENCE, self.api.list(&parameters)).await.map_err(|_| WatchError::Silent)??;
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
        let gone: Vec<Key> = self.known.keys().filter(|key| !fresh.contains_key(*key)).cloned().collect();
        self.known = fresh;
        for key in gone {
            self.sink.change(Change { kind: self.source.kind, key, version: 0, listed: true, now: None }).await;
        }
        Ok(())
    }

    /// Follows one watch until it ends in the ordinary way.
    async fn follow(&mut self, version: &str, troubled: bool) -> Result<(), WatchError> {
        let parameters = WatchParams {
            field_selector: self.source.name.map(|name| format!("metadata.name={name}")),
            label_selector: self.source.labels.map(str::to_owned),
            timeout: Some(RENEWAL),
            bookmarks: true,
            send_initial_events: false,
        };
        let begun = Instant::now();
        let events = timeout(SILENCE, self.api.watch(&parameters, version)).await.map_err(|_| WatchError::Silent)??;
        let mut events = std::pin::pin!(events);
        if troubled {
            self.sink.recovered();
        }
        let mut delivered = false;
        while let Some(event) = timeout(SILENCE, events.try_next()).await.map_err(|_| WatchError::Silent)?? {
            delivered = true;
            match event {
                WatchEvent::Added(raw) | WatchEvent::Modified(raw) => {
                    self.advance(raw.metadata.resource_version.clone());
                    self.object(raw, false).await;
                }
                WatchEvent::Deleted(raw) => {
                    self.advance(raw.metadata.resource_version.clone());
                    self.deleted(&raw).await;
                }
                WatchEvent::Bookmark(bookmark) => self.advance(Some(bookmark.metadata.resource_version)),
                WatchEvent::Error(status) => {
                    return Err(WatchError::Status { code: status.code, message: status.message.clone() });
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

    fn advance(&mut self, version: Option<String>) {
        if version.as_ref().is_some_and(|version| !version.is_empty()) {
            self.version = version;
        }
    }

    /// One object as it is now; returns its key and version while it is of interest.
    async fn object(&mut self, raw: Raw, listed: bool) -> Option<(Key, u64)> {
        let wanted = (self.source.keep)(&raw);
        let mut change = raw.into_change(self.source.kind);
        change.listed = listed;
        if !wanted {
            change.now = None;
        }
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

    async fn deleted(&mut self, raw: &Raw) {
        let (key, version) = (raw.key(), raw.version());
        if self.known.get(&key).is_some_and(|known| version == 0 || *known <= version) {
            self.known.remove(&key);
            self.sink.change(Change { kind: self.source.kind, key, version, listed: false, now: None }).await;
        }
    }
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
