//! From the store to the snapshot in force.
//!
//! In: which namespaces are dirty, what the store has of them, what was read of their ConfigMaps, and the settings. Out: a new snapshot in the
//! cell, at most one per 5 ms. Promises: only dirty namespaces are resolved anew, the others keep their view by pointer; the first snapshot
//! appears when every first list is in, whatever is still to be read; an error changes nothing; namespaces are resolved on a
//! thread of their own, and the store is held for copies of pointers alone. The keeper's lock is never asked for under the one here.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::builds::{self, News};
use super::metrics::TextMetrics;
use super::texts::{Concerns, Job, Outcome, Texts};
use crate::cluster::keeper::{Keeper, Witness};
use crate::config::builds::Builds;
use crate::config::gather::{self, Touched};
use crate::config::inputs::ConfigMapInput;
use crate::config::namespace::LastGood;
use crate::config::reading::Known;
use crate::config::schema::Platform;
use crate::config::settle::Surroundings;
use crate::config::snapshot::{Published, Snapshot};
use crate::config::view::{ClusterView, NamespaceView, resolved_view};
use crate::server::config_watch::Settings;
use crate::server::health::Latch;
use crate::server::snapshots::SnapshotCell;
use crate::store::{Change, Kind, Store, Taken};

/// Changes that arrive within this time share one snapshot.
const DEBOUNCE: Duration = Duration::from_millis(5);

/// What is other than in the last snapshot, and the texts; shared by all watches.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Notify,
    /// Something is to be read.
    texts: Notify,
}

/// What the keeper tells, into what has to be made anew.
pub(super) struct ToldSnapshot {
    shared: Arc<Shared>,
    /// By the change that is about to be taken.
    touched: Touched,
}

impl ToldSnapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, touched: Touched::Nothing }
    }
}

impl Witness for ToldSnapshot {
    fn before(&mut self, store: &Store, change: &Change, _: bool) {
        self.touched = gather::touched(store, change);
    }

    fn after(&mut self, _: &Store, change: &Change, _: Taken) {
        self.shared.apply(change, std::mem::replace(&mut self.touched, Touched::Nothing));
    }
}

/// What the API server says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Server {
    /// Major and minor version.
    pub(super) version: (u32, u32),
    /// It serves OpenShift's configuration: the cluster assigns users and groups itself.
    pub(super) openshift: bool,
}

#[derive(Debug)]
struct State {
    texts: Texts,
    /// Namespaces whose view is to be made anew.
    dirty: BTreeSet<Arc<str>>,
    /// Namespaces that have other AgentBuilds.
    builds: BTreeSet<Arc<str>>,
    server: Option<Server>,
    lists_missing: usize,
}

impl Shared {
    /// Nothing is known, and that many first lists are waited for; `own` is the operator's namespace.
    pub(super) fn new(lists: usize, own: Arc<str>) -> Self {
        let state = State {
            texts: Texts::new(own),
            dirty: BTreeSet::new(),
            builds: BTreeSet::new(),
            server: None,
            lists_missing: lists,
        };
        Self { state: Mutex::new(state), wake: Notify::new(), texts: Notify::new() }
    }

    /// Takes note of a change, and of what it touches.
    fn apply(&self, change: &Change, touched: Touched) {
        if touched == Touched::Nothing && change.kind != Kind::ConfigMap {
            return;
        }
        let mut state = self.state.lock();
        if change.kind == Kind::ConfigMap {
            let concerns = state.texts.apply(change);
            if touched == Touched::Cluster {
                self.wake.notify_one();
            }
            return self.concerned(state, &change.key.namespace, concerns);
        }
        match touched {
            Touched::Namespace(name) => drop(state.dirty.insert(name)),
            Touched::Builds(name) => drop(state.builds.insert(name)),
            Touched::Cluster | Touched::Nothing => {}
        }
        drop(state);
        self.wake.notify_one();
    }

    fn concerned(&self, mut state: MutexGuard<'_, State>, namespace: &Arc<str>, concerns: Concerns) {
        if concerns.config {
            state.dirty.insert(namespace.clone());
        }
        drop(state);
        if concerns.config || concerns.builds {
            self.wake.notify_one();
        }
        if concerns.reading {
            self.texts.notify_one();
        }
    }

    /// The next text to be read, at `now` by the readers' clock; [`Shared::text_read`] has to follow.
    pub(super) fn next_text(&self, now: Duration) -> Option<Job> {
        self.state.lock().texts.next(now)
    }

    /// When the next turn comes, where that is a matter of time alone.
    pub(super) fn text_due(&self) -> Option<Duration> {
        self.state.lock().texts.due()
    }

    /// Returns when something is to be read.
    pub(super) async fn texts_changed(&self) {
        self.texts.notified().await;
    }

    /// A text was read, or could not be had (`None`); with the time it took, and the present one.
    pub(super) fn text_read(&self, job: &Job, outcome: Option<Outcome>, (spent, now): (Duration, Duration)) {
        let mut state = self.state.lock();
        let concerns = state.texts.done((&job.key, &job.content), outcome, (spent, now));
        self.concerned(state, &job.key.namespace, concerns);
    }

    /// One more first list is in.
    pub(super) fn listed(&self) {
        let mut state = self.state.lock();
        state.lists_missing = state.lists_missing.saturating_sub(1);
        drop(state);
        self.wake.notify_one();
    }

    /// The API server says what it is.
    pub(super) fn server(&self, server: Server) {
        let changed = self.state.lock().server.replace(server) != Some(server);
        if changed {
            self.wake.notify_one();
        }
    }
}

/// Builds snapshots for ever.
pub(super) struct Rebuild {
    pub(super) shared: Arc<Shared>,
    /// Whose store is read.
    pub(super) keeper: Arc<Keeper>,
    pub(super) settings: watch::Receiver<Arc<Settings>>,
    pub(super) operator_namespace: Arc<str>,
    pub(super) cell: SnapshotCell,
    pub(super) published: watch::Sender<Option<Arc<Published>>>,
    pub(super) latch: Option<Latch>,
    pub(super) metrics: TextMetrics,
}

/// When `Surroundings` are asked what counts, and how far settings have spread.
struct Clock {
    begun: Instant,
    surroundings: Option<Surroundings>,
    /// When every replica will have read the settings in force.
    spread: Option<Instant>,
}

impl Clock {
    fn start() -> Self {
        Self { begun: Instant::now(), surroundings: None, spread: None }
    }

    /// Returns when something will count that does not yet.
    async fn due(&self) {
        let settles = self.surroundings.and_then(|surroundings| surroundings.due()).map(|due| self.begun + due);
        match settles.into_iter().chain(self.spread).min() {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Takes note of the settings in force and of those before; whether other replicas may still serve by the old ones. A process
    /// that starts does not know for how long its settings have been in force: an upgrade brings new ones and new processes at once.
    fn spreads(&mut self, settings: &Arc<Settings>, last: Option<&Last>) -> bool {
        let now = Instant::now();
        if last.is_none_or(|last| !Arc::ptr_eq(&last.settings, settings) && last.settings != *settings) {
            self.spread = Some(now + settings.platform.rollout_delay());
        }
        self.spread = self.spread.filter(|at| *at > now);
        self.spread.is_some()
    }

    fn settle(&mut self, snapshot: &Arc<Snapshot>) -> Arc<Snapshot> {
        let surroundings = self.surroundings.get_or_insert_with(|| Surroundings::of(snapshot));
        surroundings.settle(snapshot, self.begun.elapsed())
    }
}

/// The ConfigMaps of our own namespace that serve as templates, by name.
type Templates = BTreeMap<String, ConfigMapInput>;

/// What a snapshot is begun with.
struct Begun {
    server: Server,
    /// Namespaces whose view is to be made anew.
    dirty: BTreeSet<Arc<str>>,
    /// Namespaces that have other AgentBuilds.
    with_builds: BTreeSet<Arc<str>>,
    /// The templates of our own.
    templates: Templates,
}

/// What is kept from one snapshot to the next.
struct Last {
    settings: Arc<Settings>,
    templates: Templates,
    platform: Arc<Platform>,
    namespaces: HashMap<Arc<str>, Arc<NamespaceView>>,
    builds: Arc<Builds>,
}

impl Rebuild {
    /// Runs until the settings' sender is gone.
    pub(super) async fn run(mut self) {
        let mut last = None;
        let mut clock = Clock::start();
        loop {
            tokio::select! {
                () = self.shared.wake.notified() => {}
                () = clock.due() => {}
                changed = self.settings.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            tokio::time::sleep(DEBOUNCE).await;
            // Settings of the platform concern every namespace: too much for a worker that reviews wait for.
            let made = tokio::task::spawn_blocking(move || {
                last = self.rebuild(last, &mut clock);
                (self, last, clock)
            });
            match made.await {
                Ok(made) => (self, last, clock) = made,
                // The process ends with this task.
                Err(error) => {
                    tracing::error!(%error, "no snapshot of the cluster can be made any more: the process ends");
                    return;
                }
            }
        }
    }

    /// One new snapshot, once everything needed for it is known.
    fn rebuild(&mut self, last: Option<Last>, clock: &mut Clock) -> Option<Last> {
        let settings = Arc::clone(&self.settings.borrow_and_update());
        let Some(Begun { server, mut dirty, with_builds, templates }) = self.shared.begin() else { return last };
        let spreading = clock.spreads(&settings, last.as_ref());
        // A namespace that comes after the first snapshot is new: whatever its ConfigMaps say, they said nothing before.
        let new = last.as_ref().map(|_| LastGood::new());
        let builds = last.as_ref().map(|last| last.builds.clone());
        // The templates of our own namespace lie below every other namespace's configuration.
        let same = last.as_ref().filter(|last| Arc::ptr_eq(&last.settings, &settings) && last.templates == templates);
        let (platform, mut namespaces) = match same {
            Some(last) => (last.platform.clone(), last.namespaces.clone()),
            None => {
                dirty.extend(self.keeper.read(|store| gather::existing(store).cloned().collect::<Vec<_>>()));
                let before = last.as_ref().map(|last| &*last.platform);
                let platform = settings.platform.clone().with_templates(&templates, before);
                (Arc::new(platform), last.map(|last| last.namespaces).unwrap_or_default())
            }
        };
        for name in dirty {
            let before = namespaces.get(&name).cloned();
            let said = before.as_ref().map(|before| &before.last_good).or(new.as_ref());
            let gathered = self.keeper.read(|store| gather::gather(store, &name));
            let view = gathered.exists().then(|| {
                let (inputs, known) = (gathered.inputs(), self.shared.known(&name));
                resolved_view(&platform, &name, (&inputs, &known), said)
            });
            match view {
                Some(view) if before.as_deref() == Some(&view) => {}
                Some(view) => drop(namespaces.insert(name, Arc::new(view))),
                None => drop(namespaces.remove(&name)),
            }
        }
        let of_builds = platform.builds(&self.operator_namespace, server.openshift);
        let mut news = self.shared.news(builds::is_other(&of_builds, builds.as_ref()));
        for name in with_builds {
            let names = self.keeper.read(|store| gather::builds(store, &name));
            news.names.insert(name, names);
        }
        let builds = builds::builds(of_builds, builds.as_ref(), news);
        let gather::ClusterInputs { spiffe_driver, installed } = self.keeper.read(gather::cluster);
        let view = ClusterView {
            operator_namespace: self.operator_namespace.clone(),
            server_version: server.version,
            spiffe_driver,
            namespaces: namespaces.clone(),
        };
        let snapshot = Snapshot::new(&platform, settings.gates, view).installed(installed);
        self.cell.store(snapshot.with_builds(builds.clone()));
        if let Some(snapshot) = self.cell.load() {
            let settled = clock.settle(&snapshot);
            let published = Published { snapshot, settled, platform: platform.clone(), spreading };
            self.published.send_replace(Some(Arc::new(published)));
        }
        self.shared.measure(&self.metrics);
        // The platform's own templates are no tenant's: every build needs them, so readiness waits for these alone.
        let own = builds.view.is_waiting(&self.operator_namespace);
        if let Some(latch) = self.latch.take_if(|_| !own) {
            tracing::info!(namespaces = namespaces.len(), "the cluster has been read once: reviews can be answered");
            latch.release();
        }
        Some(Last { settings, templates, platform, namespaces, builds })
    }
}

impl Shared {
    /// What the next snapshot is made from; `None` while something of it is not known.
    fn begin(&self) -> Option<Begun> {
        let mut state = self.state.lock();
        let server = state.server.filter(|_| state.lists_missing == 0)?;
        let (dirty, with_builds) = (std::mem::take(&mut state.dirty), std::mem::take(&mut state.builds));
        Some(Begun { server, dirty, with_builds, templates: state.texts.templates() })
    }

    /// What was read of the ConfigMaps of a namespace.
    fn known(&self, namespace: &str) -> BTreeMap<Arc<str>, Known> {
        self.state.lock().texts.known(namespace)
    }

    /// What is new about templates and steps; with `all`, everything that was read.
    fn news(&self, all: bool) -> News {
        let mut state = self.state.lock();
        let entries = state.texts.entries(all);
        News { entries, unread: state.texts.unread_builds().clone(), ..News::default() }
    }

    fn measure(&self, metrics: &TextMetrics) {
        let ((kept, over), waiting) = {
            let state = self.state.lock();
            (state.texts.totals(), state.texts.waiting())
        };
        metrics.set((kept, waiting), &over);
    }
}
