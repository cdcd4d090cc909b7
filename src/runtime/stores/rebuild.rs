//! From the model to the snapshot in force.
//!
//! In: which namespaces changed, and the settings. Out: a new snapshot in the cell, at most one per 5 ms. Promises:
//! only changed namespaces are resolved anew, the others keep their view by pointer; the first snapshot appears when
//! every first list is in; an error changes nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::model::{Model, Touched};
use super::pipelines::Pipelines;
use crate::config::builds::Builds;
use crate::config::inputs::ConfigMapInput;
use crate::config::namespace::LastGood;
use crate::config::schema::Platform;
use crate::config::settle::Surroundings;
use crate::config::snapshot::{Published, Snapshot};
use crate::config::view::{ClusterView, NamespaceView, namespace_view};
use crate::runtime::config_watch::Settings;
use crate::runtime::health::Latch;
use crate::runtime::snapshots::SnapshotCell;

/// Changes that arrive within this time share one snapshot.
const DEBOUNCE: Duration = Duration::from_millis(5);

/// The model and what has changed in it since the last snapshot; shared by all watches.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Notify,
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
    pipelines: Pipelines,
    dirty: BTreeSet<Arc<str>>,
    server: Option<Server>,
    lists_missing: usize,
}

impl Shared {
    /// An empty model that waits for that many first lists.
    pub(super) fn new(lists: usize) -> Self {
        let state = State {
            model: Model::default(),
            pipelines: Pipelines::default(),
            dirty: BTreeSet::new(),
            server: None,
            lists_missing: lists,
        };
        Self { state: Mutex::new(state), wake: Notify::new() }
    }

    /// Takes note of a change.
    pub(super) fn apply(&self, change: &crate::api::observed::Change) {
        let mut state = self.state.lock();
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

/// What is kept from one snapshot to the next.
struct Last {
    settings: Arc<Settings>,
    templates: BTreeMap<String, ConfigMapInput>,
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
            last = self.rebuild(last, &mut clock);
        }
    }

    /// One new snapshot, once everything needed for it is known.
    fn rebuild(&mut self, last: Option<Last>, clock: &mut Clock) -> Option<Last> {
        let settings = Arc::clone(&self.settings.borrow_and_update());
        let mut state = self.shared.state.lock();
        let State { model, pipelines, dirty, server, lists_missing } = &mut *state;
        let (Some(server), 0) = (*server, *lists_missing) else { return last };
        let mut dirty = std::mem::take(dirty);
        let spreading = clock.spreads(&settings, last.as_ref());
        // A namespace that comes after the first snapshot is new: whatever its ConfigMaps say, they said nothing before.
        let new = last.as_ref().map(|_| LastGood::new());
        // The templates of our own namespace lie below every other namespace's configuration.
        let templates = model.config_maps(&self.operator_namespace);
        let builds = last.as_ref().map(|last| last.builds.clone());
        let same = last.as_ref().filter(|last| Arc::ptr_eq(&last.settings, &settings) && last.templates == templates);
        let (platform, mut namespaces) = match same {
            Some(last) => (last.platform.clone(), last.namespaces.clone()),
            None => {
                dirty.extend(model.existing());
                let before = last.as_ref().map(|last| &*last.platform);
                let platform = settings.platform.clone().with_templates(&templates, before);
                (Arc::new(platform), last.map(|last| last.namespaces).unwrap_or_default())
            }
        };
        for name in dirty {
            let before = namespaces.get(&name).cloned();
            let said = before.as_ref().map(|before| &before.last_good).or(new.as_ref());
            match model.resolve(&name, |inputs| namespace_view(&platform, &name, inputs, said)) {
                Some(view) if before.as_deref() == Some(&view) => {}
                Some(view) => drop(namespaces.insert(name, Arc::new(view))),
                None => drop(namespaces.remove(&name)),
            }
        }
        let view = ClusterView {
            operator_namespace: self.operator_namespace.clone(),
            server_version: server.version,
            spiffe_driver: model.spiffe_driver(),
            namespaces: namespaces.clone(),
        };
        let builds = pipelines.builds(platform.builds(&self.operator_namespace, server.openshift), builds.as_ref());
        let installed = model.installed(&self.operator_namespace);
        drop(state);
        let snapshot = Snapshot::new(&platform, settings.gates, view).installed(installed);
        self.cell.store(snapshot.with_builds(builds.clone()));
        if let Some(snapshot) = self.cell.load() {
            let settled = clock.settle(&snapshot);
            let published = Published { snapshot, settled, platform: platform.clone(), spreading };
            self.published.send_replace(Some(Arc::new(published)));
        }
        if let Some(latch) = self.latch.take() {
            tracing::info!(namespaces = namespaces.len(), "the cluster has been read once: reviews can be answered");
            latch.release();
        }
        Some(Last { settings, templates, platform, namespaces, builds })
    }
}
