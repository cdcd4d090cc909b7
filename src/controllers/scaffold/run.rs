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

mod configured;
mod ended;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use super::apply::{ApplyError, Learned};
use super::memory::Memory;
use super::metrics::ControllerMetrics;
use super::plan::{Context, Item, Op, Plan};
use super::queue::{Ending, Priority, Queue};
use super::runner::{Runner, Start};
use super::world::World;
use crate::config::snapshot::Published;
use crate::store::{Change, Feed, Key, Kind, Reach};

/// Plans carried out at once.
const WORKERS: usize = 32;
/// Messages of the feed taken at once.
const BATCH: usize = 256;
/// Plans made at once.
const PLANS: usize = 64;
/// How soon a namespace is looked at again whose ConfigMaps have not been read.
const UNREAD: Duration = Duration::from_secs(1);
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
    /// Grows each time that the cluster went back to an earlier state.
    pub epochs: watch::Receiver<u64>,
    /// Counters.
    pub metrics: ControllerMetrics,
}

struct Loop {
    rows: Vec<Box<dyn Runner>>,
    writer: Client,
    metrics: ControllerMetrics,
    world: World,
    queue: Queue,
    facts: Option<Arc<Published>>,
    synced: bool,
    term: Option<u64>,
    epochs: watch::Receiver<u64>,
    epoch: u64,
    workers: JoinSet<(Item, Outcome)>,
    /// What is carried out, and since when.
    under_way: Vec<(Id, Item, Duration)>,
    told: HashSet<(String, &'static str, String)>,
    base: Instant,
    jitter: fn() -> f64,
}

/// How a plan went: what was learned on the way, and the end: when to look again, and whether fields were applied; or
/// what failed.
type Outcome = (Vec<Learned>, Result<(Ending, bool), (ApplyError, Op)>);

/// Runs the controllers `rows` until the watches end.
pub async fn run(mut rows: Vec<Box<dyn Runner>>, deps: Deps, jitter: fn() -> f64) {
    let Deps { writer, mut feed, mut published, mut terms, operator_namespace, epochs, metrics } = deps;
    let epoch = *epochs.borrow();
    let base = Instant::now();
    let (woken, mut answered) = mpsc::unbounded_channel();
    for row in &mut rows {
        row.start(Start { base, woken: woken.clone(), metrics: metrics.clone() });
    }
    let mut work = Loop {
        rows,
        writer,
        metrics,
        world: World::new(&operator_namespace),
        queue: Queue::default(),
        facts: None,
        synced: false,
        term: None,
        epoch,
        epochs,
        workers: JoinSet::new(),
        under_way: Vec::new(),
        told: HashSet::new(),
        base,
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
            Some(item) = answered.recv() => work.woken(item),
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
        while let Ok(item) = answered.try_recv() {
            work.woken(item);
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

/// What holds in a namespace is not known yet: whatever is planned there would be planned on a guess.
fn is_unread(facts: &Published, namespace: &str) -> bool {
    facts.snapshot.namespace(namespace).is_some_and(|view| view.resolved.pending)
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
        // What was about to be told when the last term ended may not have got out.
        self.told.clear();
        for row in &self.rows {
            row.forget();
        }
        if term.is_some() {
            self.enqueue_all();
        }
    }

    /// A question about an item has been answered.
    fn woken(&mut self, item: Item) {
        if self.term.is_some() {
            self.queue.add(item, Priority::Fresh);
        }
    }

    /// What was known before the cluster went back is compared with nothing any more, and everything is looked at again.
    fn turn(&mut self) {
        let epoch = *self.epochs.borrow();
        if std::mem::replace(&mut self.epoch, epoch) == epoch {
            return;
        }
        self.world.forget_versions();
        if let Some(term) = self.term.take() {
            self.lead(Some(term));
        }
    }

    fn hear(&mut self, message: Feed) {
        // Before each message: those of the new history come after its beginning.
        self.turn();
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
            for key in row.of_namespace(&self.world, name) {
                self.queue.add(Item { controller: row.controller(), key }, priority);
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
        let mut items = Vec::new();
        for row in &self.rows {
            let controller = row.controller();
            items.extend(row.touched(&self.world, kind, key).into_iter().map(|key| Item { controller, key }));
        }
        items
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
            let Some(row) = self.rows.iter().find(|row| row.controller() == item.controller) else { continue };
            if is_unread(&facts, &item.key.namespace) {
                self.queue.done(&item, Ending::Done(Some(UNREAD)), now, (self.jitter)());
                continue;
            }
            let plan = row.plan(Context { world: &self.world, facts: &facts, key: &item.key, now });
            if plan == Plan::nothing() {
                self.world.memory.at_rest(&item);
            }
            let mut plan = self.untold(plan);
            for woken in self.world.memory.note(&item, std::mem::take(&mut plan.note)) {
                self.queue.add(woken, Priority::Fresh);
            }
            if plan.ops.is_empty() {
                let ending = Ending::Done(plan.again);
                self.metrics.reconciled(item.controller, ending, self.base.elapsed().saturating_sub(now));
                self.queue.done(&item, ending, now, (self.jitter)());
                continue;
            }
            self.queue.begun(&item, now);
            let (writer, metrics, worked) = (self.writer.clone(), self.metrics.clone(), item.clone());
            let handle = self.workers.spawn(async move {
                let outcome = ended::carry_out(&writer, &metrics, &worked, &plan).await;
                (worked, outcome)
            });
            self.under_way.push((handle.id(), item, now));
        }
        self.survey();
        self.metrics.queue(self.queue.ready(), self.queue.depths());
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
}
