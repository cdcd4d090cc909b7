//! From the model to the snapshot in force.
//!
//! In: which namespaces changed, what was read of their ConfigMaps, and the settings. Out: a new snapshot in the cell, at most
//! one per 5 ms. Promises: only changed namespaces are resolved anew, the others keep their view by pointer; the first snapshot
//! appears when every first list is in, whatever is still to be read; an error changes nothing; namespaces are resolved on a
//! thread of their own and outside of the lock that the watches need.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::metrics::TextMetrics;
use super::model::{Model, Touched};
use super::pipelines::{self, News, Pipelines};
use super::texts::{Concerns, Job, Outcome, Texts};
use crate::cluster::keeper::Witness;
use crate::config::builds::Builds;
use crate::config::inputs::{ConfigMapInput, NamespaceInputs};
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

/// The model and what has changed in it since the last snapshot; shared by all watches.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Notify,
    /// Something is to be read.
    texts: Notify,
}

/// What the keeper tells, into what the snapshot is built from.
pub(super) struct ToldSnapshot(pub(super) Arc<Shared>);

impl Witness for ToldSnapshot {
    fn before(&mut self, _: &Store, _: &Change) {}

    fn after(&mut self, _: &Store, change: &Change, _: Taken) {
        self.0.apply(change);
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
    model: Model,
    texts: Texts,
    pipelines: Pipelines,
    dirty: BTreeSet<Arc<str>>,
    server: Option<Server>,
    lists_missing: usize,
}

impl Shared {
    /// An empty model that waits for that many first lists; `own` is the operator's namespace.
    pub(super) fn new(lists: usize, own: Arc<str>) -> Self {
        let state = State {
            model: Model::default(),
            texts: Texts::new(own),
            pipelines: Pipelines::default(),
            dirty: BTreeSet::new(),
            server: None,
            lists_missing: lists,
        };
        Self { state: Mutex::new(state), wake: Notify::new(), texts: Notify::new() }
    }

    /// Takes note of a change.
    pub(super) fn apply(&self, change: &Change) {
        let mut state = self.state.lock();
        if change.kind == Kind::ConfigMap {
            let concerns = state.texts.apply(change);
            if state.model.apply(change) == Touched::Cluster {
                self.wake.notify_one();
            }
            return self.concerned(state, &change.key.namespace, concerns);
        }
        let builds = state.pipelines.apply(change);
        let wake = match state.model.apply(change) {
            Touched::Nothing => builds,
            Touched::Namespace(name) => {
                state.dirty.insert(name);
                true
            }
            Touched::Cluster => true,
        };
        drop(state);
        if wake {
            self.wake.notify_one();
        }
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
        let Some((server, mut dirty, templates)) = self.shared.begin() else { return last };
        let spreading = clock.spreads(&settings, last.as_ref());
        // A namespace that comes after the first snapshot is new: whatever its ConfigMaps say, they said nothing before.
        let new = last.as_ref().map(|_| LastGood::new());
        let builds = last.as_ref().map(|last| last.builds.clone());
        // The templates of our own namespace lie below every other namespace's configuration.
        let same = last.as_ref().filter(|last| Arc::ptr_eq(&last.settings, &settings) && last.templates == templates);
        let (platform, mut namespaces) = match same {
            Some(last) => (last.platform.clone(), last.namespaces.clone()),
            None => {
                dirty.extend(self.shared.existing());
                let before = last.as_ref().map(|last| &*last.platform);
                let platform = settings.platform.clone().with_templates(&templates, before);
                (Arc::new(platform), last.map(|last| last.namespaces).unwrap_or_default())
            }
        };
        for name in dirty {
            let before = namespaces.get(&name).cloned();
            let said = before.as_ref().map(|before| &before.last_good).or(new.as_ref());
            let view = self
                .shared
                .inputs(&name)
                .map(|(inputs, known)| resolved_view(&platform, &name, (&inputs, &known), said));
            match view {
                Some(view) if before.as_deref() == Some(&view) => {}
                Some(view) => drop(namespaces.insert(name, Arc::new(view))),
                None => drop(namespaces.remove(&name)),
            }
        }
        let of_builds = platform.builds(&self.operator_namespace, server.openshift);
        let (news, spiffe_driver, installed) = self.shared.news(pipelines::is_other(&of_builds, builds.as_ref()));
        let builds = pipelines::builds(of_builds, builds.as_ref(), news);
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
    /// What a snapshot is made from: the server, the namespaces that changed, the templates of our own; `None` while one of them is not
    /// known.
    fn begin(&self) -> Option<(Server, BTreeSet<Arc<str>>, Templates)> {
        let mut state = self.state.lock();
        let server = state.server.filter(|_| state.lists_missing == 0)?;
        let dirty = std::mem::take(&mut state.dirty);
        Some((server, dirty, state.texts.templates()))
    }

    fn existing(&self) -> BTreeSet<Arc<str>> {
        self.state.lock().model.existing()
    }

    fn inputs(&self, namespace: &str) -> Option<(NamespaceInputs, BTreeMap<Arc<str>, Known>)> {
        let state = self.state.lock();
        Some((state.model.inputs(namespace)?, state.texts.known(namespace)))
    }

    /// What is new about builds, whether the driver is there, and when this installation was made; with `all`, everything that was read.
    fn news(&self, all: bool) -> (News, bool, Option<Arc<str>>) {
        let mut state = self.state.lock();
        let entries = state.texts.entries(all);
        let names = state.pipelines.names();
        let unread = state.texts.unread_builds().clone();
        let installed = state.model.installed(state.texts.own());
        (News { entries, names, unread }, state.model.spiffe_driver(), installed)
    }

    fn measure(&self, metrics: &TextMetrics) {
        let ((kept, over), waiting) = {
            let state = self.state.lock();
            (state.texts.totals(), state.texts.waiting())
        };
        metrics.set((kept, waiting), &over);
    }
}
