//! A collection, followed step by step.
//!
//! In: a client for it, and what of it is asked for. Out: [`Step`]s, one per call. Promises: events that are older than
//! the position are dropped (a lagging API server never moves anybody backwards); a watch is renewed before the client's
//! read timeout would end it; the rule of [`super`] for lists, watches and versions.

use std::fmt::Debug;
use std::time::Duration;

use futures::TryStreamExt as _;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchParams};
use kube::core::{ObjectList, Request, WatchEvent};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{WatchError, Watching, number};

/// A watch that ends sooner than this has not really begun.
const TOO_SHORT: Duration = Duration::from_secs(1);

/// What of a collection is asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Field selector.
    pub fields: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
    /// Objects per page.
    pub page: Option<u32>,
    /// After each failure everything is read again, instead of going on where it stopped: for what is small.
    pub careful: bool,
    /// Nothing but the metadata of the objects is to be sent.
    pub metadata: bool,
}

/// What one step brought.
#[derive(Debug)]
pub enum Step<R> {
    /// A part of a list.
    Page {
        /// The objects.
        items: Vec<R>,
        /// It is not the first list: what is known under the same version may be something else.
        again: bool,
    },
    /// The list is complete: what it lacked is not there.
    Listed,
    /// A watch has begun.
    Begun,
    /// This object is there, or changed.
    Changed(R),
    /// This object, as it was last, is gone.
    Deleted(R),
    /// Nothing has happened, which is certain up to now.
    Alive,
    /// The watch ended in the ordinary way, and another follows.
    Renewed,
}

/// How far the history is known.
#[derive(Debug, Clone)]
struct Position {
    version: String,
    number: u64,
    epoch: u64,
}

enum State<R> {
    /// The next page is to be read; with the token and the epoch in which the list was begun.
    Listing { token: Option<String>, epoch: u64 },
    /// All pages are read; the position is the list's.
    Complete,
    /// The next watch is to be begun.
    Between,
    /// It runs.
    Watching { events: BoxStream<'static, kube::Result<WatchEvent<R>>>, begun: Instant, heard: bool, proved: bool },
}

/// A collection that is followed.
pub struct Following<R> {
    api: Api<R>,
    what: String,
    selection: Selection,
    watching: Watching,
    turns: watch::Receiver<u64>,
    position: Option<Position>,
    state: State<R>,
}

impl<R> Following<R>
where
    R: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// From the beginning. `what` names the collection in the log.
    #[must_use]
    pub fn new(api: Api<R>, what: &str, selection: Selection, watching: Watching) -> Self {
        let (turns, epoch) = (watching.history.turns(), watching.history.epoch());
        let state = State::Listing { token: None, epoch };
        Self { api, what: what.to_owned(), selection, watching, turns, position: None, state }
    }

    /// Everything is read again in the next step.
    pub fn list_again(&mut self) {
        self.state = State::Listing { token: None, epoch: self.watching.history.epoch() };
    }

    /// The next step.
    ///
    /// # Errors
    /// When a request failed. Wait a little, and ask for the next step: it goes on where it stopped.
    pub async fn next(&mut self) -> Result<Step<R>, WatchError> {
        let outcome = self.advance().await;
        if let Err(error) = &outcome {
            // Half a list is no list.
            let listing = matches!(self.state, State::Listing { .. });
            if listing || error.gone() || self.selection.careful || self.position.is_none() {
                self.list_again();
            } else {
                self.state = State::Between;
            }
        }
        outcome
    }

    async fn advance(&mut self) -> Result<Step<R>, WatchError> {
        loop {
            match self.state {
                State::Listing { .. } => return self.page().await,
                State::Complete => {
                    self.state = State::Between;
                    return Ok(Step::Listed);
                }
                State::Between => return self.begin().await,
                State::Watching { .. } => {
                    if let Some(step) = self.event().await? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    /// What comes next is a page of a list, with as much in it as anybody has put there.
    #[must_use]
    pub fn lists(&self) -> bool {
        matches!(self.state, State::Listing { .. })
    }

    async fn page(&mut self) -> Result<Step<R>, WatchError> {
        let State::Listing { token, epoch } = &mut self.state else { return Ok(Step::Alive) };
        let (token, epoch) = (token.take(), *epoch);
        let mut parameters = ListParams { limit: self.selection.page, ..ListParams::default() };
        parameters.field_selector.clone_from(&self.selection.fields);
        parameters.label_selector.clone_from(&self.selection.labels);
        parameters.continue_token = token;
        let silence = self.watching.pace.silence();
        let page = timeout(silence, list(self.api.clone(), self.selection.metadata, &parameters))
            .await
            .map_err(|_| WatchError::Silent(silence))??;
        let version = page.metadata.resource_version.filter(|version| !version.is_empty());
        let version = version.ok_or(WatchError::NoVersion)?;
        let next = Position { number: number(Some(&version)), version, epoch };
        let again = self.position.is_some();
        if let Some(known) = self.position.as_ref().filter(|known| next.number != 0 && next.number < known.number) {
            self.watching.history.went_back(&self.what, known.epoch, (known.number, next.number));
            // What this list says is of the new history.
            let epoch = self.watching.history.epoch();
            self.position = Some(Position { epoch, ..next.clone() });
        }
        let epoch = self.position.as_ref().map_or(epoch, |position| position.epoch.max(epoch));
        self.state = match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => State::Listing { token: Some(token), epoch },
            None => {
                self.position = Some(Position { epoch, ..next });
                State::Complete
            }
        };
        Ok(Step::Page { items: page.items, again })
    }

    async fn begin(&mut self) -> Result<Step<R>, WatchError> {
        let version = self.position.as_ref().map(|position| position.version.clone()).ok_or(WatchError::NoVersion)?;
        let parameters = WatchParams {
            field_selector: self.selection.fields.clone(),
            label_selector: self.selection.labels.clone(),
            timeout: u32::try_from(self.watching.pace.period.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        let (begun, silence) = (Instant::now(), self.watching.pace.silence());
        let events = timeout(silence, watch(self.api.clone(), self.selection.metadata, (&parameters, &version)));
        let events = events.await.map_err(|_| WatchError::Silent(silence))??;
        self.state = State::Watching { events, begun, heard: false, proved: false };
        Ok(Step::Begun)
    }

    /// What the watch says next; nothing, when that is of no interest.
    async fn event(&mut self) -> Result<Option<Step<R>>, WatchError> {
        let State::Watching { events, begun, heard, proved } = &mut self.state else { return Ok(None) };
        let Some(position) = &mut self.position else { return Ok(None) };
        let (silence, epoch) = (self.watching.pace.silence(), position.epoch);
        let event = tokio::select! {
            biased;
            () = turned(&mut self.turns, epoch) => {
                self.list_again();
                return Ok(None);
            }
            event = timeout(silence, events.try_next()) => event.map_err(|_| WatchError::Silent(silence))??,
        };
        let Some(event) = event else {
            let (too_short, mut proved) = (!*heard && begun.elapsed() < TOO_SHORT, *proved);
            // Before its time: the server goes, and another may come.
            proved &= !self.selection.careful || begun.elapsed() + TOO_SHORT >= self.watching.pace.period;
            if too_short {
                return Err(WatchError::TooShort);
            }
            if proved {
                self.state = State::Between;
                return Ok(Some(Step::Renewed));
            }
            tracing::debug!(what = self.what, "a watch ended in silence: a list tells what is true");
            self.list_again();
            return Ok(None);
        };
        *heard = true;
        let version = match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                object.meta().resource_version.clone().unwrap_or_default()
            }
            WatchEvent::Bookmark(bookmark) => bookmark.metadata.resource_version.clone(),
            WatchEvent::Error(_) => String::new(),
        };
        let reached = number(Some(&version));
        let late = reached != 0 && reached < position.number;
        if !late {
            *proved = true;
            if !version.is_empty() {
                (position.version, position.number) = (version, reached);
            }
        }
        Ok(match event {
            WatchEvent::Error(status) => return Err(WatchError::Status(status)),
            WatchEvent::Bookmark(_) if late => {
                tracing::debug!(what = self.what, "a bookmark lies before the position: a list tells what is true");
                self.list_again();
                None
            }
            _ if late => None,
            WatchEvent::Bookmark(_) => Some(Step::Alive),
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(Step::Changed(object)),
            WatchEvent::Deleted(object) => Some(Step::Deleted(object)),
        })
    }
}

/// A page of a collection, or of its metadata alone.
async fn list<R>(api: Api<R>, metadata: bool, parameters: &ListParams) -> kube::Result<ObjectList<R>>
where
    R: Resource + Clone + DeserializeOwned + Debug,
{
    if !metadata {
        return api.list(parameters).await;
    }
    let request = Request::new(api.resource_url()).list_metadata(parameters);
    api.into_client().request(request.map_err(kube::Error::BuildRequest)?).await
}

/// A watch of a collection from that version on, or of its metadata alone.
async fn watch<R>(
    api: Api<R>,
    metadata: bool,
    (parameters, version): (&WatchParams, &str),
) -> kube::Result<BoxStream<'static, kube::Result<WatchEvent<R>>>>
where
    R: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    if !metadata {
        return Ok(Box::pin(api.watch(parameters, version).await?));
    }
    let request = Request::new(api.resource_url()).watch_metadata(parameters, version);
    let request = request.map_err(kube::Error::BuildRequest)?;
    Ok(Box::pin(api.into_client().request_events::<R>(request).await?))
}

/// Waits for a later epoch than that.
async fn turned(turns: &mut watch::Receiver<u64>, epoch: u64) {
    if turns.wait_for(|now| *now > epoch).await.is_err() {
        // Nobody is left who could turn it.
        std::future::pending::<()>().await;
    }
}
