//! The verified catalogue: which agents are verified, and their cards, for whoever shows a token of a ServiceAccount.
//!
//! ```text
//! AgentCards (watched while cards.catalogue.enabled) ─► listed ─► shelf ─┐
//! Lease of the controllers (looked at) ─► judged ─────────────────────────┼─► GET /.well-known/ai-catalog.json?skill=…
//! snapshot (which namespaces are shared, who is in quarantine) ───────────┤   GET /agents/NAMESPACE/NAME/agent-card.json
//! token ─► tokens (TokenReview, remembered, bounded) ─────────────────────┘
//! ```
//!
//! In: AgentCards, the snapshot, tokens. Out: the catalogue in the form of AI Catalog, and single cards. Promises: only what is verified, judged as for the labels on
//! Pods, and only while somebody judges; a caller sees its own namespace and those that are shared; every replica answers from memory, and nothing of it is asked of the API
//! server but whose a token is; cards are kept while the platform file asks for it and no longer, within bounds; it has a port, limits and
//! questions of its own, so that no review waits for it; of a page of a list one object is built after the other, and no member of a status that is larger
//! than anybody of ours writes; few pages are read at once. No connection of a caller is ever proven (see [`super::listener::quota`]): a tenant who holds many gives way to others.
//!
//! A watch of its own, since a card may have 64 KiB and nobody else needs it: what is kept of AgentCards for all others leaves it out.

mod caller;
mod judged;
mod listed;
pub mod metrics;
pub(super) mod rate;
mod routes;
mod shelf;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use futures::future::join_all;
use kube::core::ApiResource;
use kube::{Api, Client};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::config_watch::Settings;
use super::listener::{self, Server};
use super::shutdown::Phase;
use super::snapshots::SnapshotCell;
use crate::api::agent_kagenti_dev as api;
use crate::cluster::watch::follow::{Following, Selection, Step};
use crate::cluster::watch::{Trouble, WatchError, Watching};
use crate::domain::keys;
use crate::store::decode::{Small, Whole};
use judged::Judged;
use listed::Listed;
pub use metrics::CatalogueMetrics;
use shelf::Shelf;
use tokens::Tokens;

/// AgentCards in one page of a list: each may have 64 KiB and more.
const CARDS_IN_A_PAGE: u32 = 25;
/// Pages that are read at once, where namespaces are listed and each has a watch of its own.
const PAGES: usize = 2;
/// Least time between two lists that are read because there may be room again.
const AGAIN: Duration = Duration::from_secs(30);
/// For so long what was read last is answered while the watch says nothing.
const SILENCE: Duration = Duration::from_secs(300);
/// Pause after a port that could not be had.
const PAUSE: Duration = Duration::from_secs(10);

/// What this room needs.
pub struct Options {
    /// For AgentCards, tokens and the Lease.
    pub client: Client,
    /// The operator's own namespace.
    pub operator_namespace: String,
    /// Namespaces that are served; none means all.
    pub namespaces: Vec<String>,
    /// Whether there is a catalogue.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// What is known of namespaces.
    pub snapshots: SnapshotCell,
    /// How AgentCards are watched.
    pub watching: Watching,
    /// The wall clock.
    pub clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Counters.
    pub metrics: CatalogueMetrics,
}

/// The catalogue of one process. Clones share it.
#[derive(Clone)]
pub struct Catalogue(Arc<Shared>);

struct Shared {
    options: Options,
    tokens: Tokens,
    /// Below what cards are answered.
    base: String,
    shelf: RwLock<Shelf>,
    /// The turns in which pages are read.
    pages: Semaphore,
    judged: Mutex<Judged>,
    /// When each watch was last heard of, once its first list was complete.
    heard: Mutex<Vec<Option<Instant>>>,
}

/// Why there is no catalogue at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Closed {
    /// The platform file does not ask for it.
    #[error("there is no catalogue: cards.catalogue.enabled of the platform file is false")]
    Off,
    /// The AgentCards were not read yet.
    #[error("the AgentCards have not been read yet; ask another replica, or try again in a second")]
    Unread,
    /// They are not heard of any more.
    #[error(
        "the AgentCards have not been heard of for five minutes, so nobody knows who is still verified; drawbridge doctor shows what keeps Drawbridge from the API server"
    )]
    Deaf,
    /// Nobody judges cards.
    #[error(
        "no controller of Drawbridge has held the Lease for five minutes, so nobody judges who is still verified; look at Deployment drawbridge-controllers"
    )]
    Unjudged,
}

impl Catalogue {
    /// Nothing is known yet; [`Catalogue::follow`] fills it.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let tokens = Tokens::new(options.client.clone(), options.metrics.clone());
        let (service, namespace) = (keys::SERVICE_WEBHOOK, &options.operator_namespace);
        let base = format!("https://{service}.{namespace}.svc:{}", keys::PORT_CATALOGUE);
        Self(Arc::new(Shared {
            options,
            tokens,
            base,
            shelf: RwLock::default(),
            pages: Semaphore::new(PAGES),
            judged: Mutex::new(Judged::new(Instant::now())),
            heard: Mutex::default(),
        }))
    }

    /// What is answered.
    pub fn router(&self) -> Router {
        routes::router(self.clone())
    }

    /// Keeps verified cards while the platform file asks for it. Never ends.
    pub async fn follow(self) {
        let mut settings = self.0.options.settings.clone();
        loop {
            is(&mut settings, true).await;
            *self.0.judged.lock() = Judged::new(Instant::now());
            tokio::select! {
                () = is(&mut settings, false) => {}
                () = self.0.follow() => {}
            }
            *self.0.shelf.write() = Shelf::default();
            self.0.heard.lock().clear();
            self.0.options.metrics.kept((0, 0, 0));
        }
    }

    /// Serves at `address` from the moment when the platform file first asks for it, until the process ends. Returns how many connections were cut off.
    pub async fn serve(self, address: SocketAddr, server: Server) -> usize {
        let mut settings = self.0.options.settings.clone();
        let shutdown = server.shutdown.clone();
        let bound = async {
            is(&mut settings, true).await;
            bound(address).await
        };
        tokio::select! {
            socket = bound => server.serve(socket).await,
            () = shutdown.reached(Phase::Closing) => 0,
        }
    }
}

/// Waits until the platform file asks for a catalogue, or no longer does.
async fn is(settings: &mut watch::Receiver<Arc<Settings>>, wanted: bool) {
    if settings.wait_for(|settings| settings.platform.cards().catalogue == wanted).await.is_err() {
        // The files are followed no longer: what they said last holds.
        std::future::pending::<()>().await;
    }
}

/// The port, as soon as it is to be had: that somebody else has it is no reason to end a process that answers reviews.
async fn bound(address: SocketAddr) -> TcpListener {
    loop {
        match listener::bind(address) {
            Ok(socket) => return socket,
            Err(error) => {
                tracing::warn!(%error, "the catalogue cannot be served; it is tried again (--catalogue-bind-address)");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Shared {
    /// Seconds since 1970.
    fn now(&self) -> i64 {
        let since = (self.options.clock)().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }

    fn is_on(&self) -> bool {
        self.options.settings.borrow().platform.cards().catalogue
    }

    /// Whether what is known may be answered.
    fn open(&self) -> Result<(), Closed> {
        if !self.is_on() {
            return Err(Closed::Off);
        }
        let heard = self.heard.lock();
        // Of each watch, and of one at least.
        let oldest = heard.iter().copied().min().flatten().ok_or(Closed::Unread)?;
        match () {
            () if oldest.elapsed() >= SILENCE => Err(Closed::Deaf),
            () if self.judged.lock().is_over(Instant::now()) => Err(Closed::Unjudged),
            () => Ok(()),
        }
    }

    async fn follow(&self) {
        let resource = ApiResource {
            group: api::GROUP.to_owned(),
            version: api::VERSION.to_owned(),
            api_version: format!("{}/{}", api::GROUP, api::VERSION),
            kind: "AgentCard".to_owned(),
            plural: "agentcards".to_owned(),
        };
        let client = || self.options.client.clone();
        let apis: Vec<(String, Api<Whole>)> = match &*self.options.namespaces {
            [] => vec![(String::new(), Api::all_with(client(), &resource))],
            names => names.iter().map(|name| (name.clone(), Api::namespaced_with(client(), name, &resource))).collect(),
        };
        *self.heard.lock() = vec![None; apis.len()];
        let cards = join_all(apis.into_iter().enumerate().map(|(place, (scope, api))| self.cards(place, scope, api)));
        tokio::join!(cards, judged::look(&self.options, &self.judged));
    }

    /// Follows the cards of one namespace, or of all.
    async fn cards(&self, place: usize, scope: String, api: Api<Whole>) {
        let selection = Selection { page: Some(CARDS_IN_A_PAGE), ..Selection::default() };
        let mut following =
            Following::new(api, "AgentCards of the catalogue", selection, self.options.watching.clone());
        let mut trouble = Trouble::new("AgentCards of the catalogue", &scope);
        let mut listed = HashSet::new();
        let (mut room, mut read) = (false, Instant::now());
        loop {
            // Held until nothing of the page is left.
            let turn = if following.lists() { self.pages.acquire().await.ok() } else { None };
            let told = match following.next_in_turn().await {
                Ok(None) => continue,
                Ok(Some(step)) => {
                    let complete = matches!(step, Step::Listed);
                    let taken = self.step(&scope, step, &mut listed).inspect_err(|_| following.list_again());
                    taken.map(|more| (more, complete))
                }
                Err(error) => Err(error),
            };
            match told {
                Ok((more, complete)) => {
                    trouble.works();
                    room |= more;
                    self.is_heard(place, complete);
                }
                Err(error) => {
                    drop(turn);
                    listed.clear();
                    tokio::time::sleep(trouble.failed(&error)).await;
                }
            }
            if room && !following.lists() && read.elapsed() >= AGAIN {
                (room, read) = (false, Instant::now());
                following.list_again();
            }
        }
    }

    /// A watch was heard of; before its first list is complete that says nothing.
    fn is_heard(&self, place: usize, complete: bool) {
        if let Some(heard) = self.heard.lock().get_mut(place)
            && (complete || heard.is_some())
        {
            *heard = Some(Instant::now());
        }
    }

    /// Takes in one step; whether cards may have room now that had none. An error: an object of a page cannot be read.
    fn step(
        &self,
        scope: &str,
        step: Step<Whole, impl Iterator<Item = Result<Whole, WatchError>>>,
        listed: &mut HashSet<(String, String)>,
    ) -> Result<bool, WatchError> {
        let room = match step {
            Step::Page { items, .. } => {
                let mut room = false;
                for object in items {
                    let object = object?;
                    listed.insert(key(&object));
                    room |= self.put(object);
                }
                room
            }
            Step::Listed => {
                let of_list = std::mem::take(listed);
                let mut shelf = self.shelf.write();
                let gone: Vec<_> = shelf
                    .names()
                    .map(|(namespace, name)| (namespace.to_string(), name.to_string()))
                    .filter(|key| (scope.is_empty() || scope == key.0) && !of_list.contains(key))
                    .collect();
                gone.iter().fold(false, |room, (namespace, name)| shelf.forget(namespace, name) || room)
            }
            Step::Changed(object) => self.put(object),
            Step::Deleted(object) => {
                let (namespace, name) = key(&object);
                self.shelf.write().forget(&namespace, &name)
            }
            Step::Begun | Step::Alive | Step::Renewed => return Ok(false),
        };
        self.options.metrics.kept(self.shelf.read().counts());
        Ok(room)
    }

    /// Read before the lock is taken: whoever asks meanwhile is answered.
    fn put(&self, object: Whole) -> bool {
        let (namespace, name) = key(&object);
        let card = Listed::of(&as_written(object), &self.base);
        self.shelf.write().put(&namespace, &name, card)
    }
}

/// What is read of an object, as it is written.
fn as_written(object: Whole) -> Value {
    let Whole { metadata, spec, status, .. } = object;
    let mut read = json!({"metadata": {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "generation": metadata.generation,
        "deletionTimestamp": metadata.deletion_timestamp,
    }});
    // What may be large is moved.
    read["spec"] = spec.and_then(Small::into_value).unwrap_or_default();
    read["status"] = Value::Object(status.unwrap_or_default().into_members());
    read
}

fn key(object: &Whole) -> (String, String) {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}
