//! The loop as a value: whatever comes in is a step, and what it asks for are effects; nothing here waits.
//!
//! In: changes, as a [`Witness`](crate::cluster::keeper::Witness) of the keeper; settings, terms and the ends of plans, each with the store and the
//! time. Out: plans to be carried out, and that those under way are to be given up. Promises: the same inputs at the same times give the same effects, whatever the machine does; nothing is planned without
//! a term, and a plan that ends after its term counts for nothing.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::ended::Outcome;
use crate::config::snapshot::Published;
use crate::controllers::scaffold::memory::Memory;
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Item, Op, Plan};
use crate::controllers::scaffold::queue::{Ending, Priority, Queue};
use crate::controllers::scaffold::runner::{Planned, Runner, Scene};
use crate::controllers::scaffold::waves::Wave;
use crate::store::{Change, Key, Kind, Store};

/// Plans carried out at once.
pub(super) const WORKERS: usize = 32;
/// Plans made in one step: whoever learns something waits for no more than these.
const PLANS: usize = 4;
/// How soon a namespace is looked at again whose ConfigMaps have not been read.
const UNREAD: Duration = Duration::from_secs(1);
/// Events that are remembered as told.
const TOLD: usize = 10_000;
/// How long a term waits for everything to have been planned once before it takes what it knows of those that roll for all there is: whoever changes
/// objects without end would keep every change of the fleet waiting.
const SURVEY: Duration = Duration::from_secs(300);
/// So often in a row may an Event keep back what comes after it in its plan.
const IN_VAIN: u32 = 3;

/// Something happened.
pub(in crate::controllers) enum Input {
    /// The term of our leadership is another one, or over.
    Term(Option<u64>),
    /// Another configuration is in force.
    Published(Option<Arc<Published>>),
    /// A question about an item was answered.
    Answered(Item),
    /// A plan ended; without an outcome when carrying it out panicked.
    Ended(Ticket, Option<Outcome>),
    /// Nothing: what is due is planned.
    Turn,
}

/// What is to be done about it.
#[derive(Debug, PartialEq)]
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

/// An Event that people were told: about whom, its reason, its words.
pub(super) type Told = (String, &'static str, String);

/// The loop.
pub(in crate::controllers) struct Loop {
    pub(super) rows: Vec<Box<dyn Runner>>,
    pub(super) metrics: ControllerMetrics,
    pub(super) memory: Memory,
    pub(super) queue: Queue,
    pub(super) facts: Option<Arc<Published>>,
    synced: bool,
    pub(super) term: Option<u64>,
    /// Since when this term has planned.
    plans_since: Option<Duration>,
    /// What a change that is being taken concerns, by what was before it.
    before: Vec<Item>,
    /// What is to be done beside what the next step asks for.
    pending: Vec<Effect>,
    /// Everything is to be looked at again: too much for whoever says so, who holds the store.
    anew: bool,
    /// What is carried out.
    pub(super) under_way: BTreeMap<Ticket, Begun>,
    tickets: Ticket,
    wave: Wave,
    pub(super) told: HashSet<Told>,
    pub(super) jitter: Box<dyn FnMut() -> f64 + Send>,
    /// Measures how long planning takes, for the metrics alone.
    clock: Box<dyn Fn() -> Duration + Send>,
}

/// A plan that is carried out.
pub(super) struct Begun {
    pub(super) item: Item,
    /// Since when.
    pub(super) at: Duration,
    /// In which epoch of the cluster's history.
    epoch: u64,
    /// What it tells: when it comes to nothing, that is still to be told.
    pub(super) tells: Vec<Told>,
    /// Its Events come after everything else, because they have come to nothing again and again.
    pub(super) tells_last: bool,
    /// When to look again.
    pub(super) again: Option<Duration>,
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
    /// Nothing is known.
    pub(in crate::controllers) fn new(rows: Vec<Box<dyn Runner>>, Given { metrics, jitter, clock }: Given) -> Self {
        Self {
            rows,
            metrics,
            clock,
            memory: Memory::default(),
            queue: Queue::default(),
            facts: None,
            synced: false,
            term: None,
            plans_since: None,
            before: Vec::new(),
            pending: Vec::new(),
            anew: false,
            under_way: BTreeMap::new(),
            tickets: 0,
            wave: Wave::default(),
            told: HashSet::new(),
            jitter,
        }
    }

    /// One step at `now`.
    pub(in crate::controllers) fn step(&mut self, store: &Store, input: Input, now: Duration) -> Vec<Effect> {
        let mut effects = std::mem::take(&mut self.pending);
        if let Input::Term(term) = &input {
            self.lead(*term, &mut effects);
        }
        if std::mem::take(&mut self.anew) && self.term.is_some() {
            self.enqueue_all(store);
        }
        match input {
            Input::Term(_) => {}
            Input::Published(facts) => self.configure(store, facts),
            Input::Answered(item) => self.woken(item),
            Input::Ended(ticket, outcome) => self.ended(ticket, outcome, now),
            Input::Turn => self.dispatch(store, now, &mut effects),
        }
        effects
    }

    /// The epoch in which that plan was begun, while its end counts: what was learned on the way is told to the keeper then, before
    /// [`Input::Ended`].
    pub(in crate::controllers) fn epoch_of(&self, ticket: Ticket) -> Option<u64> {
        self.under_way.get(&ticket).map(|begun| begun.epoch)
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
        self.plans_since = None;
        self.memory.next_term();
        // What was about to be told when the last term ended may not have got out.
        self.told.clear();
        for row in &mut self.rows {
            row.forget();
        }
        self.anew = true;
    }

    /// A question about an item has been answered.
    fn woken(&mut self, item: Item) {
        if self.term.is_some() {
            self.queue.add(item, Priority::Fresh);
        }
    }

    /// What was known before the cluster went back is compared with nothing any more, and everything is looked at again.
    pub(in crate::controllers) fn turned(&mut self) {
        if let Some(term) = self.term.take() {
            let mut effects = std::mem::take(&mut self.pending);
            self.lead(Some(term), &mut effects);
            self.pending = effects;
        }
    }

    /// So many first lists are missing.
    pub(in crate::controllers) fn listed(&mut self, missing: usize) {
        if missing == 0 && !self.synced {
            (self.synced, self.anew) = (true, true);
        }
    }

    /// What may be concluded from an object's absence has changed.
    pub(in crate::controllers) fn reach(&mut self) {
        self.anew |= self.synced;
    }

    pub(super) fn enqueue_all(&mut self, store: &Store) {
        for name in store.namespaces() {
            self.enqueue_namespace(store, name, Priority::Backlog);
        }
    }

    pub(super) fn enqueue_namespace(&mut self, store: &Store, name: &str, priority: Priority) {
        for row in &self.rows {
            for key in row.of_namespace(store, name) {
                self.queue.add(Item { controller: row.controller(), key }, priority);
            }
        }
    }

    /// A change is about to be taken. What an object was may matter to others as much as what it is.
    pub(in crate::controllers) fn before(&mut self, store: &Store, change: &Change) {
        self.before = self.touched(store, change);
    }

    /// It was taken, and something is other than before.
    pub(in crate::controllers) fn after(&mut self, store: &Store, change: &Change) {
        let (before, after) = (std::mem::take(&mut self.before), self.touched(store, change));
        if self.term.is_some() {
            let priority = if self.synced { Priority::Fresh } else { Priority::Backlog };
            for item in before.into_iter().chain(after) {
                self.queue.add(item, priority);
            }
        }
    }

    fn touched(&self, store: &Store, change: &Change) -> Vec<Item> {
        if self.term.is_none() { Vec::new() } else { self.touched_by(store, change.kind, &change.key) }
    }

    pub(super) fn touched_by(&self, store: &Store, kind: Kind, key: &Key) -> Vec<Item> {
        let mut items = Vec::new();
        for row in &self.rows {
            let controller = row.controller();
            let touched = row.touched(store, kind, key);
            items.extend(touched.into_iter().map(|key| Item { controller, key }));
        }
        items
    }

    /// The controller of an item.
    pub(super) fn row_of(&mut self, item: &Item) -> Option<&mut Box<dyn Runner>> {
        self.rows.iter_mut().find(|row| row.controller() == item.controller)
    }

    /// Starts as many plans as there are workers, and says whether there are more to be made at once.
    fn dispatch(&mut self, store: &Store, now: Duration, effects: &mut Vec<Effect>) {
        self.metrics.gated(store.gatings(), store.gated().map(|(_, pod, _)| &*pod.created));
        let Some(facts) = self.facts.clone().filter(|_| self.term.is_some() && self.synced) else {
            return;
        };
        let mut plans = 0;
        while self.under_way.len() < WORKERS && plans < PLANS {
            let Some(item) = self.queue.pop(WORKERS - self.under_way.len(), now) else { break };
            plans += 1;
            let Some(row) = self.rows.iter_mut().find(|row| row.controller() == item.controller) else { continue };
            if is_unread(&facts, &item.key.namespace) {
                self.queue.done(&item, Ending::Done(Some(UNREAD)), now, (self.jitter)());
                continue;
            }
            let begun = (self.clock)();
            let Planned { plan, rollout, signing, at_rest } =
                row.plan(Scene { store, memory: &self.memory, facts: &facts, key: &item.key, now });
            if at_rest {
                self.memory.at_rest(&item);
            }
            self.memory.is_signed(&item, signing);
            let (mut plan, tells) = self.untold(plan);
            for woken in self.memory.takes_part(&item, rollout) {
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
            let tells_last = self.tells_in_vain(&item);
            if tells_last {
                plan.ops.sort_by_key(|op| matches!(op, Op::Report(_)));
            }
            let (epoch, again) = (store.epoch(), plan.again);
            let begun = Begun { item: item.clone(), at: now, epoch, tells, tells_last, again };
            self.under_way.insert(self.tickets, begun);
            effects.push(Effect::Start(self.tickets, item, plan));
        }
        self.survey(now);
        self.metrics.queue(self.queue.ready(), self.queue.depths());
        self.metrics.fleet(&self.memory);
        for row in &self.rows {
            row.gauges(&mut |family, state, count| self.metrics.gauge(family, state, count));
        }
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
    fn survey(&mut self, now: Duration) {
        let planned = now.saturating_sub(*self.plans_since.get_or_insert(now));
        let is_over = self.queue.ready() == 0 || planned >= SURVEY;
        if !is_over || std::mem::replace(&mut self.memory.surveyed, true) {
            return;
        }
        let waiting: Vec<_> = self.memory.waiters().cloned().collect();
        for item in waiting {
            self.queue.add(item, Priority::Backlog);
        }
    }

    /// `plan` without what people have been told already, and what it tells.
    fn untold(&mut self, mut plan: Plan) -> (Plan, Vec<Told>) {
        if self.told.len() > TOLD {
            self.told.clear();
        }
        let (told, mut tells) = (&mut self.told, Vec::new());
        plan.ops.retain(|op| match op {
            Op::Report(report) => {
                let said = format!("{} {}", report.since, report.message);
                let one = (report.uid.clone(), report.reason.code(), said);
                let is_new = told.insert(one.clone());
                if is_new {
                    tells.push(one);
                }
                is_new
            }
            _ => true,
        });
        (plan, tells)
    }

    /// Whether what came to nothing about an item last, again and again, is an Event: what else is to be done about it does not wait any more.
    fn tells_in_vain(&self, item: &Item) -> bool {
        let trouble = self.memory.trouble(item);
        trouble.is_some_and(|trouble| matches!(trouble.op, Op::Report(_)) && trouble.times >= IN_VAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::fixtures::Cluster;
    use crate::controllers::scaffold::plan::{Context, Name, Row};

    /// Always has something to ask.
    fn plan(cx: Context<'_>) -> Plan {
        Plan::of(vec![Op::Look { key: cx.key.clone() }])
    }

    /// More than there are workers for, in one namespace, and none of it ends.
    #[test]
    fn who_rolls_counts_as_known_after_a_while_however_much_there_is_to_be_looked_at() {
        let cluster = Cluster::new();
        let row: Row = Row {
            controller: Name::new("busy"),
            touched: |_, _, _, _| Vec::new(),
            of_namespace: |_, namespace| {
                let count = if namespace == "team" { 100 } else { 0 };
                (0..count).map(|number: u32| Key::new(namespace, &number.to_string())).collect()
            },
            plan,
        };
        let given = Given {
            metrics: ControllerMetrics::default(),
            jitter: Box::new(|| 0.5),
            clock: Box::new(|| Duration::ZERO),
        };
        let mut work = Loop::new(vec![row.runner()], given);
        work.listed(0);
        let mut knows = |term: u64, at: Duration| {
            work.step(&cluster.store, Input::Term(Some(term)), at);
            work.step(&cluster.store, Input::Published(Some(Arc::new(cluster.facts.clone()))), at);
            for _ in 0..WORKERS {
                work.step(&cluster.store, Input::Turn, at);
            }
            work.memory.surveyed
        };
        let begin = Duration::from_secs(1000);
        for (term, after, known) in [
            (1, Duration::ZERO, false),
            (1, SURVEY / 2, false),
            (1, SURVEY, true),
            (2, SURVEY, false),
            (2, SURVEY + SURVEY / 2, false),
            (2, 2 * SURVEY, true),
        ] {
            assert_eq!(knows(term, begin + after), known, "term {term} after {after:?}");
        }
    }
}
