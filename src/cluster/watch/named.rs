//! One object by name, as it is now.
//!
//! In: a client for its collection. Out: the object, or that there is none, at every change. Promises: what comes out is
//! never older than what whoever asks has learned from the answers to their own writes ([`Known`]), unless the cluster
//! went back, and then it is the truth; each list is followed by a read of the object itself, which is the truth also
//! where lists come from a cache that stopped; trouble is told once a minute, and a pause never exceeds 15 s.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::stream::BoxStream;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::follow::{Following, Selection, Step};
use super::{History, Trouble, WatchError, Watching, number};

/// The newest version of the object that is known. Clones share it.
#[derive(Debug, Clone)]
pub struct Known {
    what: Arc<str>,
    version: Arc<AtomicU64>,
    /// The epoch in which it was learned.
    epoch: Arc<AtomicU64>,
    /// How often the API server was heard.
    heard: Arc<AtomicU64>,
    history: History,
}

impl Known {
    pub(super) fn new(what: &str, history: History) -> Self {
        let epoch = Arc::new(AtomicU64::new(history.epoch()));
        Self { what: what.into(), version: Arc::default(), epoch, heard: Arc::default(), history }
    }

    /// The version, to be taken before a request.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// An event, or the answer to a write of ours that was sent when `before` was known. What is stored gets a higher version
    /// than everything before: an answer that is lower means that the cluster went back.
    pub fn wrote(&self, before: u64, version: Option<&str>) {
        let version = number(version);
        if version < before {
            self.read(before, version);
        } else {
            self.version.fetch_max(version, Ordering::AcqRel);
        }
    }

    /// The answer to a read by name that was sent when `before` was known; 0 when there is no such object. It is the
    /// truth: one that is lower means that the cluster went back. Returns whether it still is: something newer may have
    /// been learned while it was under way.
    pub fn read(&self, before: u64, version: u64) -> bool {
        let epoch = self.epoch.load(Ordering::Acquire);
        let back = version != 0 && version < before;
        if back {
            self.history.went_back(&self.what, epoch, (before, version));
        }
        self.epoch.store(self.history.epoch(), Ordering::Release);
        let now = self.version();
        let current = back || now == before || (version != 0 && version >= now);
        if current {
            self.version.store(version, Ordering::Release);
        }
        current
    }

    /// How often the API server was heard, in silence, too: while it goes up, what came out last is still so.
    #[must_use]
    pub fn heard(&self) -> u64 {
        self.heard.load(Ordering::Acquire)
    }

    fn gone(&self) {
        self.version.store(0, Ordering::Release);
    }
}

/// Follows the object `name`; what it is called in the log is `what`.
pub fn named<K>(
    api: Api<K>,
    name: &str,
    what: &'static str,
    watching: &Watching,
) -> (Known, BoxStream<'static, Option<K>>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let selection = Selection { fields: Some(format!("metadata.name={name}")), careful: true, ..Selection::default() };
    let known = Known::new(what, watching.history.clone());
    let watch = Watch {
        following: Following::new(api.clone(), what, selection, watching.clone()),
        api,
        name: name.to_owned(),
        silence: watching.pace.silence(),
        known: known.clone(),
        trouble: Trouble::new(what, name),
    };
    let objects = futures::stream::unfold(watch, |mut watch| async move {
        let object = watch.next().await;
        Some((object, watch))
    });
    (known, Box::pin(objects))
}

struct Watch<K> {
    following: Following<K>,
    api: Api<K>,
    name: String,
    silence: Duration,
    known: Known,
    trouble: Trouble,
}

impl<K> Watch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    async fn next(&mut self) -> Option<K> {
        loop {
            match self.step().await {
                Ok(Some(object)) => return object,
                Ok(None) => {}
                Err(error) => tokio::time::sleep(self.trouble.failed(&error)).await,
            }
        }
    }

    /// One step; the object, when the step tells of it.
    async fn step(&mut self) -> Result<Option<Option<K>>, WatchError> {
        let told = match self.following.next().await? {
            Step::Page { .. } | Step::Begun => return Ok(None),
            Step::Listed => Some(self.read().await?),
            Step::Changed(object) => {
                let version = number(object.resource_version().as_deref());
                // The same as known is the echo of a write of ours.
                let news = version == 0 || version > self.known.version();
                self.known.wrote(0, object.resource_version().as_deref());
                news.then_some(Some(object))
            }
            Step::Deleted(object) => {
                let version = number(object.resource_version().as_deref());
                let news = version == 0 || version >= self.known.version();
                if news {
                    self.known.gone();
                }
                news.then_some(None)
            }
            Step::Alive | Step::Renewed => None,
        };
        self.trouble.works();
        self.known.heard.fetch_add(1, Ordering::AcqRel);
        Ok(told)
    }

    /// The object itself. While somebody writes meanwhile, the answer may be older than theirs: it is read again.
    async fn read(&mut self) -> Result<Option<K>, WatchError> {
        loop {
            let before = self.known.version();
            let answer = timeout(self.silence, self.api.get_opt(&self.name)).await;
            let answer = answer.map_err(|_| WatchError::Silent(self.silence)).and_then(|answer| Ok(answer?));
            // Without the object the list is worth nothing.
            let object = answer.inspect_err(|_| self.following.list_again())?;
            let version = object.as_ref().map_or(0, |object| number(object.resource_version().as_deref()));
            if self.known.read(before, version) {
                return Ok(object);
            }
        }
    }
}
