//! One process of role controllers as a value: its candidacy, its watches, its loop and what it makes of the namespace's configuration.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use drawbridge_cluster::cluster::keeper::{Keeper, Keeps};
use drawbridge_cluster::cluster::lease::Times;
use drawbridge_cluster::cluster::lease::machine::Candidate;
use drawbridge_cluster::cluster::watch::Pace;
use drawbridge_cluster::cluster::watch::machine::{Follower, Heard, Next};
use k8s_openapi::api::coordination::v1::Lease;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Fault;
use super::random::Random;
use super::server::Server;
use crate::config::inputs::NamespaceInputs;
use crate::config::snapshot::Published;
use crate::config::view::namespace_view;
use crate::controllers::scaffold::apply::Learned;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, change};
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::Plan;
use crate::controllers::scaffold::run::machine::{Effect, Given, Input, Loop, Ticket};
use crate::controllers::scaffold::run::told::ToldLoop;
use crate::controllers::scaffold::runner::Runner;
use crate::controllers::{enrolment, namespace_config, service_account, waiting};
use crate::store::kinds::Kind;
use crate::store::{Change, Key, Reach, SelectionId, Via};

/// The namespace in which everything happens.
pub(super) const TEAM: &str = "team";
/// What is watched.
pub(super) const WATCHED: [Kind; 5] =
    [Kind::Namespace, Kind::Deployment, Kind::AgentRuntime, Kind::ServiceAccount, Kind::ConfigMap];
/// Kinds of which there are none.
const EMPTY: [Kind; 4] = [Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Pod];
/// The controllers that take part.
fn rows() -> Vec<Box<dyn Runner>> {
    vec![
        service_account::plan::ROW.runner(),
        namespace_config::plan::ROW.runner(),
        enrolment::plan::ROW.runner(),
        waiting::plan::ROW.runner(),
    ]
}

/// The configuration of an installation in which nobody set anything.
static BASE: LazyLock<Published> = LazyLock::new(|| Cluster::new().facts);

/// One list-and-watch.
pub(super) struct Watch {
    selection: SelectionId,
    machine: Follower,
    /// History and place in the log from which the watch goes on.
    at: (u64, usize),
    /// A list was complete.
    listed: bool,
}

impl Watch {
    fn new(number: u8) -> Self {
        let machine = Follower::new(false, Pace::default().period, 0);
        Self { selection: SelectionId::new(number), machine, at: (0, 0), listed: false }
    }
}

/// A plan that is being carried out.
pub(super) struct Work {
    pub(super) plan: Plan,
    pub(super) next: usize,
    pub(super) learned: Vec<Learned>,
}

/// One process.
pub(super) struct Replica {
    /// Which process of the replica it is.
    pub(super) incarnation: u32,
    pub(super) candidate: Candidate,
    /// The request for the Lease that is under way.
    pub(super) request: Option<u64>,
    /// The timer of the candidacy that counts.
    pub(super) timer: u64,
    /// Until when it may write.
    pub(super) fence: Duration,
    pub(super) term: Option<u64>,
    pub(super) work: Arc<Mutex<Loop>>,
    keeper: Keeper,
    pub(super) under_way: BTreeMap<Ticket, Work>,
    /// When its loop has its next turn.
    pub(super) turn: Option<Duration>,
    /// It gets no time until then.
    pub(super) frozen: Duration,
    watches: BTreeMap<Kind, Watch>,
    inputs: NamespaceInputs,
    base: Published,
    epoch: u64,
    fault: Fault,
}

impl Replica {
    pub(super) fn start((number, incarnation): (usize, u32), seed: u64, fault: Fault) -> Self {
        let mut random = Random::of(seed);
        let given = Given {
            metrics: ControllerMetrics::default(),
            jitter: Box::new(move || random.fraction()),
            clock: Box::new(|| Duration::ZERO),
        };
        let mut replica = Self {
            incarnation,
            candidate: Candidate::new(&format!("replica-{number}_{incarnation}"), Times::default()),
            request: None,
            timer: 0,
            fence: Duration::ZERO,
            term: None,
            work: Arc::new(Mutex::new(Loop::new(rows(), given))),
            keeper: Keeper::new(OWN, Keeps::Projections),
            under_way: BTreeMap::new(),
            turn: None,
            frozen: Duration::ZERO,
            watches: WATCHED.iter().zip(0..).map(|(kind, number)| (*kind, Watch::new(number))).collect(),
            inputs: NamespaceInputs::default(),
            base: BASE.clone(),
            epoch: 0,
            fault,
        };
        replica.keeper.join(Box::new(ToldLoop { work: replica.work.clone(), wake: Arc::new(Notify::new()) }));
        for kind in EMPTY {
            replica.keeper.reach(kind, Reach::Listed);
        }
        replica.keeper.reach(Kind::Sandbox, Reach::Absent);
        let own = serde_json::json!({"metadata": {"name": OWN, "uid": OWN}});
        replica.keeper.apply(0, &change(Kind::Namespace, own), Duration::ZERO);
        if fault == Fault::AbsenceBeforeTheList {
            for kind in WATCHED {
                replica.keeper.reach(kind, Reach::Listed);
            }
            replica.keeper.listed(0);
        }
        replica.publish(Duration::ZERO);
        replica
    }

    /// One step of the loop; plans to be begun.
    pub(super) fn step(&mut self, input: Input, now: Duration) -> Vec<Ticket> {
        let mut begun = Vec::new();
        if let Input::Ended(ticket, Some((learned, _))) = &input
            && let Some(epoch) = self.epoch_of(*ticket)
        {
            for learned in learned {
                if let Learned::Change(change) = learned {
                    self.keeper.apply(epoch, change, now);
                }
            }
        }
        let effects = self.keeper.read(|store| self.work.lock().step(store, input, now));
        for effect in effects {
            match effect {
                Effect::Start(ticket, _, plan) => {
                    begun.push(ticket);
                    self.under_way.insert(ticket, Work { plan, next: 0, learned: Vec::new() });
                }
                Effect::GiveUp => self.under_way.clear(),
                Effect::More => self.turn = Some(now),
            }
        }
        begun
    }

    fn epoch_of(&self, ticket: Ticket) -> Option<u64> {
        self.work.lock().epoch_of(ticket)
    }

    /// The configuration in force, as far as it follows from what was seen.
    fn publish(&mut self, now: Duration) {
        let mut snapshot = (*self.base.snapshot).clone();
        let view = namespace_view(&self.base.platform, TEAM, &self.inputs, None);
        snapshot.view.namespaces.insert(TEAM.into(), Arc::new(view));
        let snapshot = Arc::new(snapshot);
        let settled = Arc::clone(&snapshot);
        let published = Published { snapshot, settled, platform: Arc::clone(&self.base.platform), spreading: false };
        self.step(Input::Published(Some(Arc::new(published))), now);
    }

    fn change(&mut self, epoch: u64, change: &Change, now: Duration) {
        self.keeper.apply(epoch, change, now);
        let inputs = self.keeper.read(|store| NamespaceInputs::of(store, TEAM));
        if self.inputs != inputs {
            self.inputs = inputs;
            self.publish(now);
        }
    }

    /// The watch of a kind breaks, and what it goes on from is not kept any more.
    pub(super) fn expire(&mut self, kind: Kind) {
        if let Some(watch) = self.watches.get_mut(&kind) {
            watch.machine.failed(true, self.epoch);
        }
    }

    /// The watch of a kind says the next thing; whether it has more to say.
    pub(super) fn watch(&mut self, kind: Kind, server: &Server, now: Duration) -> bool {
        let Some(watch) = self.watches.get_mut(&kind) else { return false };
        match watch.machine.asks() {
            Next::Page(_) => {
                self.list(kind, server, now);
                return false;
            }
            Next::Watch(_) => watch.machine.begun(now),
            Next::Hear | Next::Listed => {}
        }
        let (history, at) = watch.at;
        if history != server.history {
            // Another server: it does not know what the watch goes on from.
            watch.machine.failed(true, self.epoch);
            return true;
        }
        let Some(found) = server.log.iter().skip(at).position(|happened| happened.seen.kind == kind) else {
            return false;
        };
        let happened = &server.log[at + found];
        watch.at = (history, at + found + 1);
        let seen = happened.seen.clone();
        if watch.machine.said(&seen.version.to_string(), false, self.epoch) != Heard::News {
            return true;
        }
        let there = seen.now.clone().filter(|_| !happened.gone);
        let seen = Change { via: Via::Watch(watch.selection), now: there, ..seen };
        let epoch = if self.fault == Fault::NewerVersionWins { self.epoch } else { watch.machine.history() };
        self.change(epoch, &seen, now);
        true
    }

    fn list(&mut self, kind: Kind, server: &Server, now: Duration) {
        let newer_wins = self.fault == Fault::NewerVersionWins;
        let Some(watch) = self.watches.get_mut(&kind) else { return };
        let page = watch.machine.page(&server.version().to_string(), None, self.epoch);
        assert_eq!(watch.machine.asks(), Next::Listed, "a list of one page");
        watch.at = (server.history, server.log.len());
        if let Some((epoch, _)) = page.went_back.filter(|_| !newer_wins)
            && epoch == self.epoch
        {
            // Whatever was known of the old history is compared with nothing any more, by no watch of the process.
            self.epoch += 1;
            let others = self.watches.iter_mut().filter(|(other, _)| **other != kind);
            others.for_each(|(_, watch)| watch.machine.list_again(self.epoch));
        }
        let Some(watch) = self.watches.get_mut(&kind) else { return };
        let again = std::mem::replace(&mut watch.listed, true);
        let (selection, reached) = (watch.selection, watch.machine.reached());
        let epoch = if newer_wins { self.epoch } else { watch.machine.history() };
        let via = if newer_wins { Via::Watch(selection) } else { Via::List(selection) };
        self.keeper.turn(epoch);
        let seen: Vec<Change> = server.listed(kind).map(|one| Change { via, ..one }).collect();
        let listed: HashSet<Key> = seen.iter().map(|one| one.key.clone()).collect();
        for one in &seen {
            self.change(epoch, one, now);
        }
        if !newer_wins {
            for one in self.keeper.missing((kind, selection, None), epoch, (&listed, reached)) {
                self.change(epoch, &one, now);
            }
        }
        if !again {
            let missing = self.watches.values().filter(|watch| !watch.listed).count();
            self.keeper.reach(kind, Reach::Listed);
            self.keeper.listed(missing);
        }
    }
}

impl Replica {
    /// The process ends in order: what hands the Lease over, if it holds it and none of its writes may be under way.
    pub(super) fn resign(&mut self) -> Option<Lease> {
        let resignation = self.candidate.resign()?;
        self.under_way.is_empty().then_some(resignation.lease)
    }

    /// A list is to be read next.
    pub(super) fn lists(&self, kind: Kind) -> bool {
        self.watches.get(&kind).is_some_and(|watch| watch.machine.lists())
    }
}
