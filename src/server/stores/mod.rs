//! What the cluster tells us: watches of projections, into the keeper, and the snapshot built from what it tells.
//!
//! ```text
//!                                                         ┌─► texts ─► readers (two threads, fair turns) ─┐
//! sources (table) ─► watch (list, follow, resume) ─► keeper ─┼─► which namespace is dirty ─► rebuild ◄────────┤
//!                                                         │    └─► what it says (gathered from the store) ──┘
//! GET /version at start and after each outage ────────────┼───────────────────────────────┘  └─► SnapshotCell, Published
//!                                                         └─► controllers
//! ```
//!
//! In: a reading client and the settings. Out: [`Stores`]. Promises: nothing is read on behalf of a review; a read
//! error changes nothing; kinds that are not part of Kubernetes may be missing, come and go; nobody waits for one that is missing.

mod builds;
mod metrics;
mod presence;
mod reaches;
mod readers;
mod rebuild;
mod room;
mod sources;
mod texts;
mod thread;
mod turns;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, watch as channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use metrics::WatchMetrics;
pub use thread::WatchThread;

use super::config_watch::Settings;
use super::health::Latch;
use super::snapshots::{Confirmation, SnapshotCell};
use crate::api::refusal;
use crate::cluster::keeper::{Keeper, Keeps};
use crate::cluster::watch::{WatchError, Watching, backoff};
use crate::config::snapshot::Published;
use crate::store::{Change, Kind, Reach, Store, UsedBy};
use reaches::Reaches;
use rebuild::{Rebuild, Server, Shared, ToldSnapshot};
use room::{Account, Room};
use sources::{PageTurns, SOURCES, Source};
use watch::Sink;

/// A kind is read anew no more often than this, however often room is made.
const READ_ANEW: Duration = Duration::from_secs(30);
/// At most one line in this time that the version of the API server cannot be read.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// What only OpenShift serves.
const OPENSHIFT: &str = "config.openshift.io/v1";

/// What to watch, and where to put it.
pub struct Options {
    /// A client for reading.
    pub client: Client,
    /// Where watches run, and the client that they read through, whose connections are read there.
    pub watches: (Handle, Client),
    /// Our own namespace.
    pub operator_namespace: Arc<str>,
    /// The namespaces that are served; none means all.
    pub namespaces: Vec<Arc<str>>,
    /// Kinds that are not served: they are not watched, and have no objects.
    pub left_out: Vec<Kind>,
    /// Platform file and gates.
    pub settings: channel::Receiver<Arc<Settings>>,
    /// Where the snapshot goes.
    pub cell: SnapshotCell,
    /// Released when the first snapshot is in force.
    pub latch: Latch,
    /// How much is watched.
    pub used_by: UsedBy,
    /// How things are watched.
    pub watching: Watching,
    /// Counters of the watches.
    pub metrics: WatchMetrics,
}

/// What comes from the watches.
pub struct Stores {
    /// Every snapshot with its configuration, as it is put in force; `None` before the first.
    pub published: channel::Receiver<Option<Arc<Published>>>,
    /// What is known of the cluster; of a process without controllers, what admission reads.
    pub keeper: Arc<Keeper>,
    /// The tasks: none of them ends while the process lives.
    pub tasks: JoinSet<&'static str>,
}

/// Starts watching.
#[must_use]
pub fn spawn(options: Options) -> Stores {
    let served = SOURCES.iter().filter(|source| !options.left_out.contains(&source.kind));
    let wanted: Vec<Source> = served.filter_map(|source| source.wanted(options.used_by)).collect();
    let own = &options.operator_namespace;
    let places = |source: &Source| source.places(own, &options.namespaces);
    let watches: Vec<(Source, Option<Arc<str>>)> =
        wanted.into_iter().flat_map(|source| places(&source).into_iter().map(move |place| (source, place))).collect();
    let admission = watches.iter().filter(|(source, _)| source.selection.used_by == UsedBy::Every).count();
    let shared = Arc::new(Shared::new(admission, options.operator_namespace.clone()));
    let (published, snapshots) = channel::channel(None);
    let keeps = if options.used_by == UsedBy::Every { Keeps::Slim } else { Keeps::Projections };
    let keeper = Arc::new(Keeper::of(Store::new(own).serving(&options.namespaces), keeps));
    keeper.join(Box::new(ToldSnapshot::new(shared.clone())));
    let reconnected = Arc::new(Notify::new());
    let missing = Arc::new(std::sync::atomic::AtomicUsize::new(watches.len()));
    let reaches = Arc::new(Reaches::new(watches.iter().map(|(source, _)| source.kind), options.metrics.clone()));
    options.left_out.iter().for_each(|kind| keeper.reach(*kind, Reach::Absent));
    let bounded = Kind::ALL.iter().filter(|kind| kind.descriptor().bounded);
    let account = Arc::<Mutex<Account>>::default();
    let room = |kind: &Kind| (*kind, Arc::new(Mutex::new(Room::sharing(account.clone()))));
    let rooms: std::collections::HashMap<_, _> = bounded.map(room).collect();
    let (mut tasks, turns) = (JoinSet::new(), PageTurns::new());
    for (at, (source, place)) in watches.into_iter().enumerate() {
        let mut outlet = Outlet {
            source,
            at,
            reaches: reaches.clone(),
            shared: shared.clone(),
            keeper: keeper.clone(),
            current: (source.selection.used_by == UsedBy::Every).then(|| options.cell.depends()),
            missing: missing.clone(),
            reconnected: reconnected.clone(),
            metrics: options.metrics.clone(),
            room: rooms.get(&source.kind).filter(|_| !source.is_of_names()).cloned(),
            reading_anew: ReadingAnew::default(),
            pages: turns.of(&source),
        };
        let ((runtime, client), watching, keeper) = (&options.watches, options.watching.clone(), keeper.clone());
        let server = (client.clone(), watching);
        let watch = async move {
            watch::run(server, &source, place.as_deref(), (&keeper, &mut outlet)).await;
            source.kind.label()
        };
        tasks.spawn_on(watch, runtime);
    }
    let ask = readers::ask(options.client.clone(), watch::resource(Kind::ConfigMap));
    let readers = readers::Readers { shared: shared.clone(), ask, parse: readers::parse() };
    tasks.spawn(async move {
        readers.run().await;
        "texts"
    });
    tasks.spawn(server_version(options.client, shared.clone(), reconnected));
    let rebuild = Rebuild {
        shared,
        keeper: keeper.clone(),
        settings: options.settings,
        operator_namespace: options.operator_namespace,
        cell: options.cell,
        published,
        latch: Some(options.latch),
        metrics: options.metrics.texts.clone(),
    };
    tasks.spawn(async move {
        rebuild.run().await;
        "snapshot"
    });
    Stores { published: snapshots, keeper, tasks }
}

/// Who is told how one watch fares.
struct Outlet {
    source: Source,
    at: usize,
    reaches: Arc<Reaches>,
    shared: Arc<Shared>,
    keeper: Arc<Keeper>,
    /// Of a watch that the snapshot is made from.
    current: Option<Confirmation>,
    missing: Arc<std::sync::atomic::AtomicUsize>,
    reconnected: Arc<Notify>,
    metrics: WatchMetrics,
    /// Of kinds that people may make as many and as large of as the API server takes.
    room: Option<Arc<Mutex<Room>>>,
    reading_anew: ReadingAnew,
    /// The turns in which pages are read, shared with the watches of other kinds.
    pages: Option<Arc<Semaphore>>,
}

/// Whether everything is to be read anew, because there may be room for what had none. Whichever watch of the kind told of what made it, the
/// room is for the objects of all of them.
#[derive(Debug, Default)]
struct ReadingAnew {
    /// The most that [`Room::made`] was when everything was read anew.
    seen: [u64; 2],
    last: Option<Instant>,
}

impl Sink for Outlet {
    fn admitted(&mut self, change: Change) -> Change {
        let Some(room) = &self.room else { return change };
        let mut room = room.lock();
        let (change, _) = room.admit(change);
        self.metrics.objects(change.kind, &room);
        change
    }

    fn pages(&self) -> Option<Arc<Semaphore>> {
        self.pages.clone()
    }

    fn listed(&mut self) {
        if self.source.selection.used_by == UsedBy::Every {
            self.shared.listed();
        }
        let before = self.missing.fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
        self.keeper.listed(before.saturating_sub(1));
    }

    fn reads_anew(&mut self) -> bool {
        let Some(room) = &self.room else { return false };
        let (made, anew) = (room.lock().made(), &mut self.reading_anew);
        let is_made = made.iter().zip(&anew.seen).any(|(made, seen)| made > seen);
        let is_due = is_made && anew.last.is_none_or(|last| last.elapsed() >= READ_ANEW);
        if is_due {
            let seen = [made[0].max(anew.seen[0]), made[1].max(anew.seen[1])];
            *anew = ReadingAnew { seen, last: Some(Instant::now()) };
        }
        is_due
    }

    fn alive(&mut self) {
        if let Some(current) = &self.current {
            current.now();
        }
    }

    fn reach(&mut self, reach: Reach) {
        if let Some(reach) = self.reaches.set(self.at, reach) {
            self.keeper.reach(self.source.kind, reach);
        }
    }

    fn failed(&mut self, error: &WatchError) {
        self.metrics.failed(self.source.kind, error.into());
    }

    fn recovered(&mut self) {
        self.reconnected.notify_one();
    }
}

impl From<&WatchError> for metrics::Cause {
    fn from(error: &WatchError) -> Self {
        match error {
            WatchError::Request(kube::Error::Api(status)) => metrics::Cause::of_code(status.code),
            WatchError::Status(status) => metrics::Cause::of_code(status.code),
            WatchError::Request(_) => metrics::Cause::Connection,
            WatchError::Silent(_) => metrics::Cause::Silent,
            WatchError::TooShort => metrics::Cause::TooShort,
            WatchError::NoVersion => metrics::Cause::Refused,
        }
    }
}

/// Asks for the API server's version at start and after every outage: an upgrade interrupts every watch.
async fn server_version(client: Client, shared: Arc<Shared>, again: Arc<Notify>) -> &'static str {
    let (mut failures, mut said) = (0, None::<Instant>);
    loop {
        match server(&client).await {
            Ok(Some(server)) => {
                (failures, said) = (0, None);
                shared.server(server);
                again.notified().await;
                // Watches come back one by one: one question for all of them.
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            other => {
                failures += 1;
                // Readiness waits for the first answer: as long as there is none, the log has to say why.
                if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) {
                    said = Some(Instant::now());
                    let error =
                        other.err().map_or_else(|| "not a version".to_owned(), |error| refusal::of_error(&error));
                    tracing::warn!(
                        error,
                        failures,
                        "the version of the API server cannot be read (/version, and /apis/config.openshift.io/v1); it is asked for again, and \
                         no review is answered before it was read once"
                    );
                }
                tokio::time::sleep(backoff::pause(failures, backoff::jitter())).await;
            }
        }
    }
}

/// What the API server says of itself; `None` when its version is none.
async fn server(client: &Client) -> kube::Result<Option<Server>> {
    let info = client.apiserver_version().await?;
    let Some(version) = parse_version(&info.major, &info.minor) else { return Ok(None) };
    // Any answer but yes or no is tried again: a wrong guess would change the users of every agent.
    let openshift = match client.list_api_group_resources(OPENSHIFT).await {
        Ok(_) => true,
        Err(kube::Error::Api(status)) if status.code == 404 => false,
        Err(error) => return Err(error),
    };
    Ok(Some(Server { version, openshift }))
}

/// `1` and `36+` as numbers.
fn parse_version(major: &str, minor: &str) -> Option<(u32, u32)> {
    let number = |text: &str| text.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().ok();
    Some((number(major)?, number(minor)?))
}
