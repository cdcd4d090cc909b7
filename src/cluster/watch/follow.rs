//! A collection, followed step by step.
//!
//! In: a client for it, and what of it is asked for. Out: [`Step`]s, one per call. What to ask for, and what of an answer counts, is decided by
//! [`super::machine`], a value without I/O; here is what waits. Promises: events that are older than the position are dropped (a lagging API server
//! never moves anybody backwards); a watch is renewed before the client's read timeout would end it; the rule of [`super`] for lists, watches and
//! versions.

use std::fmt::Debug;
use std::marker::PhantomData;

use futures::{AsyncReadExt as _, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{ListParams, WatchParams};
use kube::core::{Request, WatchEvent};
use kube::{Api, Resource};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::events::{self, Events};
use super::machine::{Ended, Follower, Heard, Next};
use super::pages::Pages;
use super::{WatchError, Watching};
use crate::store::decode::nesting;

/// What of a collection is asked for.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Field selector.
    pub fields: Option<String>,
    /// Label selector.
    pub labels: Option<String>,
    /// Most objects of a page; it begins with fewer.
    pub page: Option<u32>,
    /// After each failure everything is read again, instead of going on where it stopped: for what is small.
    pub careful: bool,
    /// Nothing but the metadata of the objects is to be sent.
    pub metadata: bool,
}

/// What one step brought.
#[derive(Debug)]
pub enum Step<R, I = Vec<R>> {
    /// A part of a list.
    Page {
        /// The objects.
        items: I,
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

/// The objects of a page, each of which is decoded when it is asked for: what is built of one may take a hundred times its text, and of a page of the
/// largest the text alone takes megabytes. Whoever asks for the next one has done with the one before.
#[derive(Debug)]
pub struct Items<R> {
    left: std::vec::IntoIter<Box<RawValue>>,
    of: PhantomData<fn() -> R>,
}

impl<R> Items<R> {
    pub(super) fn of(items: Vec<Box<RawValue>>) -> Self {
        Self { left: items.into_iter(), of: PhantomData }
    }
}

impl<R: DeserializeOwned> Iterator for Items<R> {
    type Item = Result<R, WatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.left.next()?;
        Some(nesting::read(text.get()).map_err(|error| kube::Error::SerdeError(error).into()))
    }
}

impl<R: DeserializeOwned> Step<R, Items<R>> {
    /// The same with all objects at once.
    fn decoded(self) -> Result<Step<R>, WatchError> {
        Ok(match self {
            Step::Page { items, again } => Step::Page { items: items.collect::<Result<_, _>>()?, again },
            Step::Listed => Step::Listed,
            Step::Begun => Step::Begun,
            Step::Changed(object) => Step::Changed(object),
            Step::Deleted(object) => Step::Deleted(object),
            Step::Alive => Step::Alive,
            Step::Renewed => Step::Renewed,
        })
    }
}

/// A page as it comes.
#[derive(Deserialize)]
struct Listing {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(deserialize_with = "texts")]
    items: Vec<Box<RawValue>>,
}

/// A list; null is an empty one, as some servers write it, and without any there is no list.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Box<RawValue>>, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A collection that is followed.
pub struct Following<R> {
    api: Api<R>,
    what: String,
    selection: Selection,
    watching: Watching,
    turns: watch::Receiver<u64>,
    machine: Follower,
    pages: Pages,
    events: Option<Events<R>>,
    base: Instant,
}

impl<R> Following<R>
where
    R: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// From the beginning. `what` names the collection in the log.
    #[must_use]
    pub fn new(api: Api<R>, what: &str, selection: Selection, watching: Watching) -> Self {
        let (turns, epoch) = (watching.history.turns(), watching.history.epoch());
        let machine = Follower::new(selection.careful, watching.pace.period, epoch);
        let (pages, what) = (Pages::new(selection.page), what.to_owned());
        Self { api, what, selection, watching, turns, machine, pages, events: None, base: Instant::now() }
    }

    /// Everything is read again in the next step.
    pub fn list_again(&mut self) {
        self.machine.list_again(self.watching.history.epoch());
    }

    /// The next step.
    ///
    /// # Errors
    /// When a request failed. Wait a little, and ask for the next step: it goes on where it stopped.
    pub async fn next(&mut self) -> Result<Step<R>, WatchError> {
        loop {
            if let Some(step) = self.next_in_turn().await? {
                return step.decoded().inspect_err(|_| self.list_again());
            }
        }
    }

    /// The next step, for whoever waits for a turn before each page: nothing where a list has become necessary meanwhile, so that no page
    /// is read that [`Following::lists`] has not announced. Of a page one object after the other is decoded; where one cannot be, everything has to be
    /// read again ([`Following::list_again`]).
    ///
    /// # Errors
    /// As those of [`Following::next`].
    pub async fn next_in_turn(&mut self) -> Result<Option<Step<R, Items<R>>>, WatchError> {
        let outcome = self.advance().await;
        if let Err(error) = &outcome {
            self.machine.failed(error.gone(), self.watching.history.epoch());
        }
        outcome
    }

    /// What comes next is a page of a list, with as much in it as anybody has put there.
    #[must_use]
    pub fn lists(&self) -> bool {
        self.machine.lists()
    }

    /// The epoch of the history that the last step belongs to, and the version up to which things are known.
    #[must_use]
    pub fn reached(&self) -> (u64, u64) {
        (self.machine.history(), self.machine.reached())
    }

    async fn advance(&mut self) -> Result<Option<Step<R, Items<R>>>, WatchError> {
        loop {
            let next = self.machine.asks();
            if next != Next::Hear {
                self.events = None;
            }
            match next {
                Next::Page(token) => return self.page(token).await.map(Some),
                Next::Listed => return Ok(Some(Step::Listed)),
                Next::Watch(version) => return self.begin(&version).await.map(Some),
                Next::Hear => {
                    if let Some(step) = self.hear().await? {
                        return Ok(Some(step));
                    }
                    if self.machine.lists() {
                        // Whoever waits for a turn now needs no watch meanwhile.
                        self.events = None;
                        return Ok(None);
                    }
                }
            }
        }
    }

    async fn page(&mut self, token: Option<String>) -> Result<Step<R, Items<R>>, WatchError> {
        if token.is_none() {
            self.pages = Pages::new(self.selection.page);
        }
        let mut parameters = ListParams { continue_token: token, ..ListParams::default() };
        parameters.field_selector.clone_from(&self.selection.fields);
        parameters.label_selector.clone_from(&self.selection.labels);
        let silence = self.watching.pace.silence();
        let page = loop {
            parameters.limit = self.pages.limit();
            let asked = list(self.api.clone(), self.selection.metadata, (&parameters, self.pages.bytes()));
            match timeout(silence, asked).await.map_err(|_| WatchError::Silent(silence))?? {
                Some((page, bytes)) => {
                    self.pages.had(bytes);
                    break page;
                }
                None => self.pages.had_too_many(),
            }
        };
        let version = page.metadata.resource_version.filter(|version| !version.is_empty());
        let version = version.ok_or(WatchError::NoVersion)?;
        let history = &self.watching.history;
        let taken = self.machine.page(&version, page.metadata.continue_, history.epoch());
        if let Some((epoch, versions)) = taken.went_back {
            history.went_back(&self.what, epoch, versions);
        }
        Ok(Step::Page { items: Items::of(page.items), again: taken.again })
    }

    async fn begin(&mut self, version: &str) -> Result<Step<R, Items<R>>, WatchError> {
        let parameters = WatchParams {
            field_selector: self.selection.fields.clone(),
            label_selector: self.selection.labels.clone(),
            timeout: u32::try_from(self.watching.pace.period.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: false,
        };
        let (sent, silence) = (self.base.elapsed(), self.watching.pace.silence());
        let events = timeout(silence, watch(self.api.clone(), self.selection.metadata, (&parameters, version)));
        self.events = Some(events.await.map_err(|_| WatchError::Silent(silence))??);
        self.machine.begun(sent);
        Ok(Step::Begun)
    }

    /// What the watch says next; nothing, when that is of no interest.
    async fn hear(&mut self) -> Result<Option<Step<R, Items<R>>>, WatchError> {
        let Some(events) = &mut self.events else {
            self.list_again();
            return Ok(None);
        };
        let silence = self.watching.pace.silence();
        let event = tokio::select! {
            biased;
            () = turned(&mut self.turns, self.machine.epoch().unwrap_or_default()) => {
                self.list_again();
                return Ok(None);
            }
            event = timeout(silence, events.try_next()) => event.map_err(|_| WatchError::Silent(silence))??,
        };
        let epoch = self.watching.history.epoch();
        let Some(event) = event else {
            return match self.machine.ended(self.base.elapsed(), epoch) {
                Ended::TooShort => Err(WatchError::TooShort),
                Ended::Renewed => Ok(Some(Step::Renewed)),
                Ended::ListAgain => {
                    tracing::debug!(
                        what = self.what,
                        "a watch ended without saying up to where it had come: the objects are listed again"
                    );
                    Ok(None)
                }
            };
        };
        let (version, bookmark) = match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                (object.meta().resource_version.clone().unwrap_or_default(), false)
            }
            WatchEvent::Bookmark(bookmark) => (bookmark.metadata.resource_version.clone(), true),
            WatchEvent::Error(_) => (String::new(), false),
        };
        let heard = self.machine.said(&version, bookmark, epoch);
        Ok(match event {
            WatchEvent::Error(status) => return Err(WatchError::Status(status)),
            _ if heard == Heard::ListAgain => {
                tracing::debug!(
                    what = self.what,
                    "a bookmark is older than what was read: the objects are listed again"
                );
                None
            }
            _ if heard == Heard::Late => None,
            WatchEvent::Bookmark(_) => Some(Step::Alive),
            WatchEvent::Added(object) | WatchEvent::Modified(object) => Some(Step::Changed(object)),
            WatchEvent::Deleted(object) => Some(Step::Deleted(object)),
        })
    }
}

/// The objects of a collection that are selected so, all in one page: for one of them, or a few.
///
/// # Errors
/// When the request failed, or one of them cannot be read.
pub async fn objects<R>(api: Api<R>, parameters: &ListParams) -> Result<Vec<R>, WatchError>
where
    R: Resource + DeserializeOwned,
{
    let page = list(api, false, (parameters, None)).await?;
    Items::<R>::of(page.map(|(page, _)| page.items).unwrap_or_default()).collect()
}

/// A page of a collection, or of its metadata alone, and how many bytes it has; nothing, where those are more than `most`.
async fn list<R>(
    api: Api<R>,
    metadata: bool,
    (parameters, most): (&ListParams, Option<u64>),
) -> kube::Result<Option<(Listing, u64)>>
where
    R: Resource,
{
    let request = Request::new(api.resource_url());
    let request = if metadata { request.list_metadata(parameters) } else { request.list(parameters) };
    let request = request.map_err(kube::Error::BuildRequest)?;
    let mut body = std::pin::pin!(api.into_client().request_stream(request).await?);
    let (mut text, most) = (Vec::new(), most.unwrap_or(u64::MAX));
    let read = body.as_mut().take(most.saturating_add(1)).read_to_end(&mut text).await;
    let bytes = read.map_err(kube::Error::ReadEvents)? as u64;
    if bytes > most {
        return Ok(None);
    }
    serde_json::from_slice(&text).map(|page| Some((page, bytes))).map_err(kube::Error::SerdeError)
}

/// A watch of a collection from that version on, or of its metadata alone.
async fn watch<R>(api: Api<R>, metadata: bool, (parameters, version): (&WatchParams, &str)) -> kube::Result<Events<R>>
where
    R: Resource + DeserializeOwned + Send + 'static,
{
    let request = Request::new(api.resource_url());
    let request =
        if metadata { request.watch_metadata(parameters, version) } else { request.watch(parameters, version) };
    events::of(api.into_client(), request.map_err(kube::Error::BuildRequest)?).await
}

/// Waits for a later epoch than that.
async fn turned(turns: &mut watch::Receiver<u64>, epoch: u64) {
    if turns.wait_for(|now| *now > epoch).await.is_err() {
        // Nobody is left who could turn it.
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The API server takes it, wherever a definition lets people write what they like; its kind is listed all the same.
    #[test]
    fn an_object_that_is_too_deep_is_read_and_so_are_those_behind_it() {
        let deep = format!("{}{}", "{\"a\":".repeat(1_000), "1".to_owned() + &"}".repeat(1_000));
        let named = |name: &str, spec: &str| {
            RawValue::from_string(format!("{{\"metadata\":{{\"name\":\"{name}\"}},\"spec\":{spec}}}")).unwrap()
        };
        assert!(serde_json::from_str::<Value>(&deep).is_err(), "no decoder goes that deep");
        let items = Items::<Value>::of(vec![named("a", &deep), named("b", "{\"c\":1}")]);
        let read = items.collect::<Result<Vec<_>, _>>().unwrap();
        assert_eq!(read.iter().map(|one| &one["metadata"]["name"]).collect::<Vec<_>>(), ["a", "b"]);
        assert!(read[0]["spec"]["a"]["a"].is_object());
        assert_eq!(read[1]["spec"], json!({"c": 1}));
        // What is wrong in another way stays wrong.
        let wrong = Items::<Vec<u8>>::of(vec![named("a", "1")]).next().unwrap();
        assert!(matches!(wrong, Err(WatchError::Request(kube::Error::SerdeError(_)))));
    }
}
