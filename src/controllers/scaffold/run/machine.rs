//! The loop as a value: whatever comes in is a step, and what it asks for are effects; nothing here waits.
//!
//! In: changes, settings, terms and the ends of plans, each with the time. Out: plans to be carried out, and that those under way are to be
//! given up. Promises: the same inputs at the same times give the same effects, whatever the machine does; nothing is planned without
//! a term, and a plan that ends after its term counts for nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::ended::Outcome;
use crate::config::snapshot::Published;
use crate::controllers::scaffold::memory::Memory;
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Context, Item, Op, Plan};
use crate::controllers::scaffold::queue::{Ending, Priority, Queue};
use crate::controllers::scaffold::runner::Runner;
use crate::controllers::scaffold::waves::Wave;
use crate::store::{Change, Feed, Key, Kind, Reach, Store};

/// Plans carried out at once.
pub(super) const WORKERS: usize = 32;
/// Plans made at once.
const PLANS: usize = 64;
/// How soon a namespace is looked at again whose ConfigMaps have not been read.
const UNREAD: Duration = Duration::from_secs(1);
/// Events that are remembered as told.
const TOLD: usize = 10_000;

/// Something happened.
pub(in crate::controllers) enum Input {
    /// The term of our leadership is another one, or over.
    Term(Option<u64>),
    /// Another configuration is in force.
    Published(Option<Arc<Published>>),
    /// The watches say something.
    Feed(Feed),
    /// The cluster went back so many times by now. Comes before what belongs to the new history.
    Epoch(u64),
    /// A question about an item was answered.
    Answered(Item),
    /// A plan ended; without an outcome when carrying it out panicked.
    Ended(Ticket, Option<Outcome>),
    /// Nothing: what is due is planned.
    Turn,
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an effect is carried out as soon as it is there: none is kept")]
pub(in crate::controllers) enum Effect {
    /// Carry out that plan; [`Input::Ended`] with its ticket is to follow, unless the plan is given up.
    Start(Ticket, Item, Plan),
    /// Give up whatever is under way.
    GiveUp,
    /// There is more to be planned at once.
    More,
}

/// Tells one carrying out of a plan from every other.
pub(in crate::controllers) type Ticket = u64;

/// The loop.
pub(in crate::controllers) struct Loop {
    pub(super) rows: Vec<Box<dyn Runner>>,
    pub(super) metrics: ControllerMetrics,
    pub(super) store: Store,
    pub(super) memory: Memory,
    pub(super) queue: Queue,
    pub(super) facts: Option<Arc<Published>>,
    synced: bool,
    pub(super) term: Option<u64>,
    epoch: u64,
    /// What is carried out, and since when.
    pub(super) under_way: BTreeMap<Ticket, (Item, Duration)>,
    tickets: Ticket,
    wave: Wave,
    pub(super) told: HashSet<(String, &'static str, String)>,
    pub(super) jitter: Box<dyn FnMut() -> f64 + Send>,
    /// Measures how long planning takes, for the metrics alone.
    clock: Box<dyn Fn() -> Duration + Send>,
}

/// What a loop takes from outside that is neither input nor rows.
pub(in crate::controllers) struct Given {
    /// Counters.
    pub(in crate::controllers) metrics: ControllerMetrics,
    /// A number in 0..1, another one each time.
    pub(in crate::controllers) jitter: Box<dyn FnMut() -> f64 + Send>,
    /// The time since the loop began.
    pub(in crate::controllers) clock: Box<dyn Fn() -> Duration + Send>,
}

/// What holds in a namespace is not known yet: whatever is planned there would be planned on a guess.
fn is_unread(facts: &Published, namespace: &str) -> bool {
    facts.snapshot.namespace(namespace).is_some_and(|view| view.resolved.pending)
}

impl Loop {
    /// Nothing is known; `epoch` counts how often the cluster went back before.
    pub(in crate::controllers) fn new(
        rows: Vec<Box<dyn Runner>>,
        (operator_namespace, epoch): (&str, u64),
        Given { metrics, jitter, clock }: Given,
    ) -> Self {
        Self {
            rows,
            metrics,
            clock,
            store: Store::new(operator_namespace),
            memory: Memory::default(),
            queue: Queue::default(),
            facts: None,
            synced: false,
            term: None,
            epoch,
            under_way: BTreeMap::new(),
            tickets: 0,
            wave: Wave::default(),
            told: HashSet::new(),
            jitter,
        }
    }

    /// One step at `now`.
    pub(in crate::controllers) fn step(&mut self, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Term(term) => self.lead(term, &mut effects),
            Input::Published(facts) => self.configure(facts),
            Input::Feed(message) => self.hear(message, now),
            Input::Epoch(epoch) => self.turn(epoch, &mut effects),
            Input::Answered(item) => self.woken(item),
            Input::Ended(ticket, outcome) => self.ended(ticket, outcome, now),
            Input::Turn => self.dispatch(now, &mut effects),
        }
        effects
    }

    /// When something is due though nothing happens; nothing is without a term, or while every worker is busy.
    pub(in crate::controllers) fn due(&self) -> Option<Duration> {
        self.queue.due().filter(|_| self.term.is_some() && self.under_way.len() < WORKERS)
    }

    fn lead(&mut self, term: Option<u64>, effects: &mut Vec<Effect>) {
        if self.term == term {
            return;
        }
        effects.push(Effect::GiveUp);
        self.under_way.clear();
        self.queue.clear();
        self.term = term;
        self.memory.next_term();
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
    fn turn(&mut self, epoch: u64, effects: &mut Vec<Effect>) {
        if std::mem::replace(&mut self.epoch, epoch) == epoch {
            return;
        }
        self.store.forget_versions();
        if let Some(term) = self.term.take() {
            self.lead(Some(term), effects);
        }
    }

    fn hear(&mut self, message: Feed, now: Duration) {
        match message {
            Feed::Change(change) => self.change(&change, now),
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
        if self.store.set_reach(kind, reach) && self.synced && self.term.is_some() {
            self.enqueue_all();
        }
    }

    pub(super) fn enqueue_all(&mut self) {
        let names: Vec<_> = self.store.namespaces().cloned().collect();
        for name in names {
            self.enqueue_namespace(&name, Priority::Backlog);
        }
    }

    pub(super) fn enqueue_namespace(&mut self, name: &str, priority: Priority) {
        for row in &self.rows {
            for key in row.of_namespace(&self.store, name) {
                self.queue.add(Item { controller: row.controller(), key }, priority);
            }
        }
    }

    pub(super) fn change(&mut self, change: &Change, now: Duration) {
        // Both before and after: what an object was may matter to others as much as what it is.
        let before = self.touched(change);
        if !self.store.apply(change, now) {
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

    pub(super) fn touched_by(&self, kind: Kind, key: &Key) -> Vec<Item> {
        let mut items = Vec::new();
        for row in &self.rows {
            let controller = row.controller();
            items.extend(
                row.touched(&self.store, &self.memory, kind, key).into_iter().map(|key| Item { controller, key }),
            );
        }
        items
    }

    /// Starts as many plans as there are workers, and says whether there are more to be made at once.
    fn dispatch(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.metrics.gated(self.store.gatings(), self.store.gated().map(|(_, pod, _)| &*pod.created));
        let Some(facts) = self.facts.clone().filter(|_| self.term.is_some() && self.synced) else {
            return;
        };
        let mut plans = 0;
        while self.under_way.len() < WORKERS && plans < PLANS {
            let Some(item) = self.queue.pop(WORKERS - self.under_way.len(), now) else { break };
            plans += 1;
            let Some(row) = self.rows.iter().find(|row| row.controller() == item.controller) else { continue };
            if is_unread(&facts, &item.key.namespace) {
                self.queue.done(&item, Ending::Done(Some(UNREAD)), now, (self.jitter)());
                continue;
            }
            let begun = (self.clock)();
            let plan =
                row.plan(Context { store: &self.store, memory: &self.memory, facts: &facts, key: &item.key, now });
            if plan == Plan::nothing() {
                self.memory.at_rest(&item);
            }
            let mut plan = self.untold(plan);
            for woken in self.memory.note(&item, std::mem::take(&mut plan.note)) {
                self.queue.add(woken, Priority::Fresh);
            }
            if plan.ops.is_empty() {
                let ending = Ending::Done(plan.again);
                self.metrics.reconciled(item.controller, ending, (self.clock)().saturating_sub(begun));
                self.queue.done(&item, ending, now, (self.jitter)());
                continue;
            }
            self.queue.begun(&item, now);
            self.tickets += 1;
            self.under_way.insert(self.tickets, (item.clone(), now));
            effects.push(Effect::Start(self.tickets, item, plan));
        }
        self.survey();
        self.metrics.queue(self.queue.ready(), self.queue.depths());
        self.metrics.fleet(&self.memory);
        match self.wave.step(&self.memory) {
            Some((true, words)) => tracing::warn!("{words}"),
            Some((false, words)) => tracing::info!("{words}"),
            None => {}
        }
        if plans == PLANS {
            effects.push(Effect::More);
        }
    }

    /// Once everything was planned, it is known who rolls; those that waited for that may go on.
    fn survey(&mut self) {
        if self.queue.ready() > 0 || std::mem::replace(&mut self.memory.surveyed, true) {
            return;
        }
        let waiting: Vec<_> = self.memory.waiters().cloned().collect();
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
