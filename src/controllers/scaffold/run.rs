//! The loop: changes in, plans made, writes out.
//!
//! ```text
//! feed ────► world ─┐                        ┌─ term of leadership: without one, nothing is planned
//! snapshot ─► facts ─┴─► queue ─► plan (pure) ─► apply (32 at a time) ─► answers back into world
//! ```
//!
//! Promises: every replica keeps the world current, only the leader plans; a lost term ends what is under way and
//! forgets the queue, a new one looks at everything again; plans are made from the world of that moment; answers,
//! changes and plans are taken in turn, a bounded number of each, so that however much there is of one the others go on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::apply::{ApplyError, Learned, apply};
use super::memory::Memory;
use super::metrics::ControllerMetrics;
use super::plan::{Context, Controller, Item, Op, Plan, Row};
use super::queue::{Ending, Priority, Queue};
use super::world::World;
use crate::api::observed::{Change, Feed, Key, Kind, Reach};
use crate::config::snapshot::Published;
use crate::config::view::NamespaceView;

/// Plans carried out at once.
const WORKERS: usize = 32;
/// Messages of the feed taken at once.
const BATCH: usize = 256;
/// Plans made at once.
const PLANS: usize = 64;
/// Events that are remembered as told.
const TOLD: usize = 10_000;

/// What the controllers work with.
pub struct Deps {
    /// The writing client, fenced by the Lease.
    pub writer: Client,
    /// Changes from the watches.
    pub feed: mpsc::Receiver<Feed>,
    /// The configuration in force.
    pub published: watch::Receiver<Option<Arc<Published>>>,
    /// The term of our leadership.
    pub terms: watch::Receiver<Option<u64>>,
    /// Our own namespace.
    pub operator_namespace: Arc<str>,
    /// Counters.
    pub metrics: ControllerMetrics,
}

struct Loop {
    rows: Vec<Row>,
    writer: Client,
    metrics: ControllerMetrics,
    world: World,
    queue: Queue,
    facts: Option<Arc<Published>>,
    synced: bool,
    term: Option<u64>,
    workers: JoinSet<(Item, Outcome)>,
    under_way: Vec<(Id, Item)>,
    told: HashSet<(String, &'static str, String)>,
    base: Instant,
    jitter: fn() -> f64,
}

/// How a plan went: what was learned on the way, and the end: when to look again, and whether fields were applied; or
/// what failed.
type Outcome = (Vec<Learned>, Result<(Ending, bool), (ApplyError, Op)>);

type Views = std::collections::HashMap<Arc<str>, Arc<NamespaceView>>;

/// Runs the controllers `rows` until the watches end.
pub async fn run(rows: Vec<Row>, deps: Deps, jitter: fn() -> f64) {
    let Deps { writer, mut feed, mut published, mut terms, operator_namespace, metrics } = deps;
    let mut work = Loop {
        rows,
        writer,
        metrics,
        world: World::new(&operator_namespace),
        queue: Queue::default(),
        facts: None,
        synced: false,
        term: None,
        workers: JoinSet::new(),
        under_way: Vec::new(),
        told: HashSet::new(),
        base: Instant::now(),
        jitter,
    };
    let mut batch = Vec::with_capacity(BATCH);
    let mut more = false;
    published.mark_changed();
    terms.mark_changed();
    loop {
        let due = work.queue.due().map_or(Duration::from_secs(3600), |due| due.saturating_sub(work.base.elapsed()));
        tokio::select! {
            biased;
            Ok(()) = terms.changed() => work.lead(*terms.borrow_and_update()),
            Some(ended) = work.workers.join_next_with_id() => work.ended(ended),
            Ok(()) = published.changed() => {
                let facts = published.borrow_and_update().clone();
                work.configure(facts);
            }
            count = feed.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
            }
            // While every worker is busy, the end of one of them is what is waited for.
            () = tokio::time::sleep(due), if work.term.is_some() && work.workers.len() < WORKERS => {}
            () = std::future::ready(()), if more => {}
        }
        // Whichever came first: what else is there is taken, too, or the one that always comes first would be all.
        while let Some(ended) = work.workers.try_join_next_with_id() {
            work.ended(ended);
        }
        while batch.len() < BATCH
            && let Ok(message) = feed.try_recv()
        {
            batch.push(message);
        }
        batch.drain(..).for_each(|message| work.hear(message));
        more = work.dispatch();
    }
}

impl Loop {
    fn lead(&mut self, term: Option<u64>) {
        if self.term == term {
            return;
        }
        self.workers.abort_all();
        self.under_way.clear();
        self.queue.clear();
        self.term = term;
        self.world.proved = None;
        self.world.memory = Memory::default();
        if term.is_some() {
            self.enqueue_all();
        }
    }

    fn hear(&mut self, message: Feed) {
        match message {
            Feed::Change(change) => self.change(&change),
            Feed::Listed(missing) => self.listed(missing),
            Feed::Reach(kind, reach) => self.reach(kind, reach),
        }
    }

    fn listed(&mut self, missing: usize) {
        if missing == 0 && !self.synced {
            self.synced = true;
            self.enqueue_all();
        }
    }

    /// What may be concluded from an object's absence has changed.
    fn reach(&mut self, kind: Kind, reach: Reach) {
        if self.world.set_reach(kind, reach) && self.synced && self.term.is_some() {
            self.enqueue_all();
        }
    }

    fn enqueue_all(&mut self) {
        let names: Vec<_> = self.world.namespaces().cloned().collect();
        for name in names {
            self.enqueue_namespace(&name, Priority::Backlog);
        }
    }

    fn enqueue_namespace(&mut self, name: &str, priority: Priority) {
        for row in &self.rows {
            for key in (row.of_namespace)(&self.world, name) {
                self.queue.add(Item { controller: row.controller, key }, priority);
            }
        }
    }

    fn change(&mut self, change: &Change) {
        // Both before and after: what an object was may matter to others as much as what it is.
        let before = self.touched(change);
        if !self.world.apply(change, self.base.elapsed()) {
            return;
        }
        let after = self.touched(change);
        if self.term.is_some() {
            let priority = if self.synced { Priority::Fresh } else { Priority::Backlog };
            for item in before.into_iter().chain(after) {
                self.queue.add(item, priority);
            }
        }
    }

    fn touched(&self, change: &Change) -> Vec<Item> {
        if self.term.is_none() { Vec::new() } else { self.touched_by(change.kind, &change.key) }
    }

    fn touched_by(&self, kind: Kind, key: &Key) -> Vec<Item> {
        let item = |row: &Row, key: Key| Item { controller: row.controller, key };
        let keys = |row: &Row| (row.touched)(&self.world, kind, key);
        self.rows.iter().flat_map(|row| keys(row).into_iter().map(|key| item(row, key))).collect()
    }

    /// New facts concern the namespaces in which needs may have changed; new settings concern all.
    fn configure(&mut self, facts: Option<Arc<Published>>) {
        let Some(now) = facts else { return };
        let before = self.facts.replace(now.clone());
        if self.term.is_none() {
            return;
        }
        let Some(same) = before.filter(|before| same_fleet(before, &now)) else {
            self.world.memory.epoch += 1;
            return self.enqueue_all();
        };
        // The settings have reached every replica: those that waited for that may go on, by the settings of before.
        if same.spreading != now.spreading {
            return self.enqueue_all();
        }
        let (was, is) = (&same.snapshot.builds, &now.snapshot.builds);
        // Names of builds change with every build, and concern nobody here.
        if !Arc::ptr_eq(was, is) && (was.view != is.view || was.settings != is.settings) {
            self.enqueue_builds();
        }
        let views = &same.snapshot.view.namespaces;
        let changed = now.snapshot.view.namespaces.iter().filter(|(name, view)| {
            views.get(*name).is_none_or(|before| !Arc::ptr_eq(before, view) && !same_needs(before, view))
        });
        for (name, _) in changed {
            self.enqueue_namespace(name, Priority::Fresh);
        }
        self.governed_anew(&same.snapshot.view.namespaces, &now.snapshot.view.namespaces);
    }

    /// Templates, steps or settings are others: a build that waits for them may start.
    fn enqueue_builds(&mut self) {
        let rows = self.rows.iter().filter(|row| row.controller == Controller::AgentBuild);
        let names: Vec<_> = self.world.namespaces().cloned().collect();
        let keys: Vec<_> =
            rows.flat_map(|row| names.iter().flat_map(|name| (row.of_namespace)(&self.world, name))).collect();
        for key in keys {
            self.queue.add(Item { controller: Controller::AgentBuild, key }, Priority::Backlog);
        }
    }

    /// Workloads whose AgentRuntime the snapshot knows in another version than before, or only now: few of many.
    fn governed_anew(&mut self, before: &Views, now: &Views) {
        let mut touched = Vec::new();
        for (name, view) in now {
            let Some(before) = before.get(name).filter(|before| !Arc::ptr_eq(before, view)) else { continue };
            for (kind, workload) in view.governors.differences(&before.governors) {
                let Some(kind) = Kind::of_workload(kind) else { continue };
                touched.extend(self.touched_by(kind, &Key::new(name, &workload)));
            }
        }
        for item in touched {
            self.queue.add(item, Priority::Fresh);
        }
    }

    /// Starts as many plans as there are workers; whether there are more to be made at once.
    fn dispatch(&mut self) -> bool {
        self.metrics.gated(self.world.gatings(), self.world.gated().map(|(_, pod, _)| &*pod.created));
        let Some(facts) = self.facts.clone().filter(|_| self.term.is_some() && self.synced) else {
            return false;
        };
        let mut plans = 0;
        while self.workers.len() < WORKERS && plans < PLANS {
            let now = self.base.elapsed();
            let Some(item) = self.queue.pop(WORKERS - self.workers.len(), now) else { break };
            plans += 1;
            let Some(row) = self.rows.iter().find(|row| row.controller == item.controller) else { continue };
            let plan = (row.plan)(Context { world: &self.world, facts: &facts, key: &item.key, now });
            if plan == Plan::nothing() {
                self.world.memory.at_rest(&item);
            }
            let mut plan = self.untold(plan);
            for woken in self.world.memory.note(&item, std::mem::take(&mut plan.note)) {
                self.queue.add(woken, Priority::Fresh);
            }
            if plan.ops.is_empty() {
                self.queue.done(&item, Ending::Done(plan.again), now, (self.jitter)());
                continue;
            }
            let (writer, metrics, worked) = (self.writer.clone(), self.metrics.clone(), item.clone());
            let handle = self.workers.spawn(async move {
                let outcome = carry_out(&writer, &metrics, &worked, &plan).await;
                (worked, outcome)
            });
            self.under_way.push((handle.id(), item));
        }
        self.survey();
        self.metrics.queue(self.queue.ready());
        self.metrics.fleet(&self.world.memory);
        plans == PLANS
    }

    /// Once everything was planned, it is known who rolls; those that waited for that may go on.
    fn survey(&mut self) {
        if self.queue.ready() > 0 || std::mem::replace(&mut self.world.memory.surveyed, true) {
            return;
        }
        let waiting: Vec<_> = self.world.memory.waiters().cloned().collect();
        for item in waiting {
            self.queue.add(item, Priority::Backlog);
        }
    }

    /// `plan` without what people have been told already.
    fn untold(&mut self, mut plan: Plan) -> Plan {
        if self.told.len() > TOLD {
            self.told.clear();
        }
        plan.ops.retain(|op| match op {
            Op::Report(report) => {
                let said = format!("{} {}", report.since, report.message);
                self.told.insert((report.uid.clone(), report.reason.code(), said))
            }
            _ => true,
        });
        plan
    }

    fn ended(&mut self, ended: Result<(Id, (Item, Outcome)), tokio::task::JoinError>) {
        let now = self.base.elapsed();
        let id = match &ended {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let at = self.under_way.iter().position(|(known, _)| *known == id);
        let Some((_, item)) = at.map(|at| self.under_way.swap_remove(at)) else { return };
        let (item, (learned, result)) = match ended {
            Ok((_, ended)) => ended,
            Err(error) if error.is_cancelled() => return,
            Err(_) => {
                tracing::error!(
                    controller = item.controller.as_str(),
                    "a defect in Drawbridge: carrying out a plan panicked"
                );
                self.queue.done(&item, Ending::Failed(Duration::ZERO), now, (self.jitter)());
                return;
            }
        };
        for learned in learned {
            match learned {
                Learned::Change(change) => self.change(&change),
                Learned::Back(back) => {
                    self.world.proved = back.then_some(now);
                    self.world.probes = self.world.probes.wrapping_add(1);
                }
                Learned::Evicted => self.world.memory.was_evicted(&item, now),
                Learned::Blocked => self.world.memory.blocked(&item, now),
                Learned::Secret(key, fact) => self.world.memory.secret(key, fact, now),
                Learned::Taken(namespace, shape) => self.world.memory.taken(namespace, shape, now),
                Learned::Nothing => {}
            }
        }
        let ending = match result {
            Ok((ending, applied)) => {
                self.world.memory.success(&item, applied);
                if ending == Ending::Made {
                    self.world.memory.made(&item.key.namespace, now);
                }
                ending
            }
            Err((ApplyError::Refused { what, reason, brief, message }, op)) => {
                tracing::warn!(controller = item.controller.as_str(), what, reason = reason.code(), brief, "refused");
                self.world.memory.failure(&item, now, (op, Some(reason), message));
                // The plan knows of it now, and says so.
                Ending::Done(Some(Duration::ZERO))
            }
            Err((error, op)) => {
                tracing::warn!(controller = item.controller.as_str(), %error, cause = error.brief(), "will be tried again");
                let source = std::error::Error::source(&error).map(ToString::to_string);
                let message = source.unwrap_or_else(|| error.to_string());
                self.world.memory.failure(&item, now, (op, None, message));
                // A report that did not get out is still to be told.
                self.told.clear();
                let conflict = matches!(error, ApplyError::Conflict { .. });
                if conflict { Ending::Conflict } else { Ending::Failed(retry_after(&error)) }
            }
        };
        self.queue.done(&item, ending, now, (self.jitter)());
    }
}

/// How long the server wants to be left alone.
fn retry_after(error: &ApplyError) -> Duration {
    let ApplyError::Request { source, .. } = error else { return Duration::ZERO };
    let kube::Error::Api(status) = &**source else { return Duration::ZERO };
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    Duration::from_secs(u64::from(seconds).min(300))
}

/// Whether both are the same configuration of the whole fleet, whatever they say of single namespaces.
fn same_fleet(before: &Published, now: &Published) -> bool {
    Arc::ptr_eq(&before.platform, &now.platform)
        && before.snapshot.gates == now.snapshot.gates
        && before.snapshot.builds.settings == now.snapshot.builds.settings
        && before.snapshot.view.spiffe_driver == now.snapshot.view.spiffe_driver
        && before.settled.view.spiffe_driver == now.settled.view.spiffe_driver
        && before.settled.view.server_version == now.settled.view.server_version
}

/// Whether workloads need the same under both views: ServiceAccounts and Jobs are followed object by object.
fn same_needs(before: &NamespaceView, now: &NamespaceView) -> bool {
    before.enabled_label == now.enabled_label
        && before.pod_security == now.pod_security
        && before.authbridge_config == now.authbridge_config
        && before.mounted == now.mounted
        && before.resolved == now.resolved
}

async fn carry_out(writer: &Client, metrics: &ControllerMetrics, item: &Item, plan: &Plan) -> Outcome {
    let mut learned = Vec::new();
    for op in &plan.ops {
        let result = apply(writer, item.controller, op).await;
        metrics.wrote(item.controller, op, &result);
        match result {
            Ok(one) => learned.push(one),
            Err(error) => return (learned, Err((error, op.clone()))),
        }
    }
    let applied = plan.ops.iter().any(Op::settles);
    let ending = if plan.makes() { Ending::Made } else { Ending::Done(plan.again) };
    (learned, Ok((ending, applied)))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::Cluster;
    use super::*;

    /// An AgentRuntime that is edited while the delay of a rollout ends is not taken for a change of the fleet.
    #[test]
    fn the_end_of_a_rollouts_delay_is_no_new_configuration_of_the_fleet() {
        let cluster = Cluster::new();
        let spreading = Published { spreading: true, ..cluster.facts.clone() };
        assert!(same_fleet(&spreading, &cluster.facts));
        let others: [fn(&mut Cluster); 3] = [
            |cluster| cluster.configure("proxy: {uid: 3000}\n"),
            |cluster| cluster.spiffe_driver(false),
            |cluster| Arc::make_mut(&mut cluster.facts.snapshot).gates.inject_tools ^= true,
        ];
        for change in others {
            let mut changed = Cluster { world: World::new("x"), facts: cluster.facts.clone() };
            change(&mut changed);
            assert!(!same_fleet(&cluster.facts, &changed.facts));
        }
    }
}
