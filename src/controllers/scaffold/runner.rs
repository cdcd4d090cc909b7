//! What the loop drives: a controller of the table with what it remembers, whatever it asks of the world.
//!
//! In: a row, and for one that asks, whoever answers. Out: one shape for the loop. Promise: the loop knows no controller's notes, memory or
//! questions, and a controller without any costs nothing more than its functions.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::apply::Learned;
use super::controller::{Controller, Gauges, Own};
use super::lane::{Adapter, Lane, Question};
use super::memory::{Memory, Rollout};
use super::metrics::ControllerMetrics;
use super::plan::{AskingPlan, AskingRow, Context, Item, Name, Op, Plan, Row};
use super::signing::Signing;
use crate::config::snapshot::Published;
use crate::store::{Key, Kind, Store};

/// What a controller is started with.
#[derive(Clone)]
pub struct Start {
    /// When the clock of the plans began.
    pub base: Instant,
    /// Takes the items about which something else is known now.
    pub woken: mpsc::UnboundedSender<Item>,
    /// Counters.
    pub metrics: ControllerMetrics,
}

/// What every controller's plan is made from, whatever it remembers besides.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The cluster.
    pub store: &'a Store,
    /// What is remembered of all items alike.
    pub memory: &'a Memory,
    /// The configuration.
    pub facts: &'a Published,
    /// The item's key.
    pub key: &'a Key,
    /// Monotonic time, comparable with the arrival times in `store`.
    pub now: Duration,
}

impl<'a> Scene<'a> {
    /// The same with what one controller remembers.
    #[must_use]
    pub fn with<C: Controller>(self, own: &'a Own<C>) -> Context<'a, C> {
        let Scene { store, memory, facts, key, now } = self;
        Context { store, memory, facts, key, now, own }
    }
}

/// A plan whose note was taken.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Planned {
    /// What is to be carried out.
    pub plan: Plan,
    /// How its item takes part in what rolls through the fleet.
    pub rollout: Rollout,
    /// How the signature of its card stands.
    pub signing: Option<Signing>,
    /// Nothing is to be done about the item, nothing was noted, and nothing is awaited.
    pub at_rest: bool,
}

/// One controller in the loop.
pub trait Runner: Send {
    /// Which.
    fn controller(&self) -> Name;
    /// Before anything else, once.
    fn start(&mut self, start: Start);
    /// The items that a change of an object may concern.
    fn touched(&self, store: &Store, kind: Kind, key: &Key) -> Vec<Key>;
    /// The items of one namespace.
    fn of_namespace(&self, store: &Store, namespace: &str) -> Vec<Key>;
    /// What to do about one item; the note of it is taken.
    fn plan(&mut self, scene: Scene<'_>) -> Planned;
    /// That came of an operation about an item.
    fn answered(&mut self, key: &Key, learned: &Learned, now: Duration);
    /// That operation about an item came to nothing.
    fn failed(&mut self, key: &Key, op: &Op);
    /// The object that an item is about was made, and asks for no other look.
    fn made(&mut self, key: &Key, now: Duration);
    /// Every item is to be looked at again because of a change of the configuration that is none of the whole fleet.
    fn is_affected(&self, before: &Published, now: &Published) -> bool;
    /// Publishes what is counted.
    fn gauges(&self, set: Gauges<'_>);
    /// A term of leadership begins or ends.
    fn forget(&mut self);
}

/// How a controller comes to a plan: of what is known, or of that and of answers.
trait Plans<C: Controller>: Send {
    /// Before anything else, once.
    fn start(&mut self, _: Name, _: Start) {}
    /// What to do about one item.
    fn plan(&self, scene: Scene<'_>, own: &Own<C>) -> Plan<C::Note>;
    /// A term of leadership begins or ends.
    fn forget(&mut self) {}
}

impl<C: Controller> Plans<C> for fn(Context<'_, C>) -> Plan<C::Note> {
    fn plan(&self, scene: Scene<'_>, own: &Own<C>) -> Plan<C::Note> {
        self(scene.with(own))
    }
}

/// By answers, and who gives them.
struct Asking<Q: Question, A, C: Controller> {
    plan: AskingPlan<Q, C>,
    adapter: Arc<A>,
    lane: Option<Lane<Q>>,
}

impl<Q: Question, A: Adapter<Q>, C: Controller> Plans<C> for Asking<Q, A, C> {
    fn start(&mut self, controller: Name, start: Start) {
        let Start { base, woken, metrics } = start;
        self.lane = Some(Lane::start(controller, self.adapter.clone(), base, woken, metrics));
    }

    fn plan(&self, scene: Scene<'_>, own: &Own<C>) -> Plan<C::Note> {
        match &self.lane {
            Some(lane) => lane.plan(scene.key, scene.now, |facts| (self.plan)(scene.with(own), facts)),
            // Not started: nobody would answer, and nothing is planned on a guess.
            None => Plan::nothing(),
        }
    }

    fn forget(&mut self) {
        if let Some(lane) = &self.lane {
            lane.forget();
        }
    }
}

/// A controller with what it remembers.
struct Remembering<C: Controller, P> {
    controller: Name,
    touched: fn(&Store, &Own<C>, Kind, &Key) -> Vec<Key>,
    of_namespace: fn(&Store, &str) -> Vec<Key>,
    plans: P,
    own: Own<C>,
}

impl<C: Controller> Row<C> {
    /// The row in the loop; nothing is remembered yet.
    #[must_use]
    pub fn runner(self) -> Box<dyn Runner> {
        let Row { controller, touched, of_namespace, plan } = self;
        Box::new(Remembering { controller, touched, of_namespace, plans: plan, own: Own::default() })
    }
}

impl<Q: Question, C: Controller> AskingRow<Q, C> {
    /// The row in the loop, answered by that adapter; nothing is remembered and nothing was asked yet.
    #[must_use]
    pub fn runner<A: Adapter<Q>>(self, adapter: A) -> Box<dyn Runner> {
        let AskingRow { controller, touched, of_namespace, plan } = self;
        let plans = Asking { plan, adapter: Arc::new(adapter), lane: None };
        Box::new(Remembering { controller, touched, of_namespace, plans, own: Own::default() })
    }
}

impl<C: Controller, P: Plans<C>> Runner for Remembering<C, P> {
    fn controller(&self) -> Name {
        self.controller
    }

    fn start(&mut self, start: Start) {
        self.plans.start(self.controller, start);
    }

    fn touched(&self, store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
        (self.touched)(store, &self.own, kind, key)
    }

    fn of_namespace(&self, store: &Store, namespace: &str) -> Vec<Key> {
        (self.of_namespace)(store, namespace)
    }

    fn plan(&mut self, scene: Scene<'_>) -> Planned {
        let plan = self.plans.plan(scene, &self.own);
        let at_rest = plan == Plan::nothing();
        let (plan, note) = plan.apart();
        let (rollout, signing) = (C::rollout(&note), C::signing(&note).cloned());
        self.own.note(scene.key, note);
        Planned { plan, rollout, signing, at_rest }
    }

    fn answered(&mut self, key: &Key, learned: &Learned, now: Duration) {
        C::answered(&mut self.own, key, learned, now);
    }

    fn failed(&mut self, key: &Key, op: &Op) {
        C::failed(&mut self.own, key, op);
    }

    fn made(&mut self, key: &Key, now: Duration) {
        C::made(&mut self.own, key, now);
    }

    fn is_affected(&self, before: &Published, now: &Published) -> bool {
        C::is_affected(before, now)
    }

    fn gauges(&self, set: Gauges<'_>) {
        C::gauges(&self.own.memory, set);
    }

    fn forget(&mut self) {
        self.own.next_term();
        self.plans.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::scaffold::fixtures::{Cluster, s};

    /// Notes how often an item was planned, and remembers what it was told.
    #[derive(Debug, Clone, Copy)]
    struct Counting;

    impl Controller for Counting {
        type Note = u32;
        type Memory = Vec<String>;

        fn rollout(note: &u32) -> Rollout {
            Rollout { rolling: *note == 1, waits: *note > 1, ..Rollout::default() }
        }

        fn noted(memory: &mut Vec<String>, key: &Key, before: &u32, now: &u32) {
            memory.push(format!("{} {before}..{now}", key.name));
        }

        fn answered(own: &mut Own<Self>, key: &Key, learned: &Learned, _: Duration) {
            own.memory.push(format!("{} {learned:?}", key.name));
        }

        fn failed(own: &mut Own<Self>, key: &Key, op: &Op) {
            own.memory.push(format!("{} failed {}", key.name, op.asks().0));
        }

        fn made(own: &mut Own<Self>, key: &Key, _: Duration) {
            own.memory.push(format!("{} made", key.name));
        }

        fn next_term(memory: Vec<String>) -> Vec<String> {
            memory.into_iter().take(1).collect()
        }

        fn gauges(memory: &Vec<String>, set: Gauges<'_>) {
            set("lines", "all", memory.len());
        }
    }

    const fn row(name: &'static str) -> Row<Counting> {
        Row {
            controller: Name::new(name),
            touched: |_, own, _, key| own.of(key).map(|_| key.clone()).into_iter().collect(),
            of_namespace: |_, namespace| vec![Key::new(namespace, "a")],
            plan: |cx| Plan { note: cx.note().copied().unwrap_or_default() + 1, ..Plan::nothing() },
        }
    }

    #[test]
    fn each_row_remembers_its_own_until_the_term_ends() {
        let (cluster, key) = (Cluster::new(), Key::new("team", "a"));
        let (mut one, mut other) = (row("one").runner(), row("other").runner());
        let plan = |row: &mut Box<dyn Runner>| {
            let (store, memory, facts) = (&cluster.store, &cluster.memory, &cluster.facts);
            row.plan(Scene { store, memory, facts, key: &key, now: s(1) })
        };
        let touched = |row: &dyn Runner| row.touched(&cluster.store, Kind::Pod, &key).len();
        let lines = |row: &dyn Runner| {
            let mut all = 0;
            row.gauges(&mut |_, _, count| all += count);
            all
        };
        assert_eq!((touched(&*one), lines(&*one)), (0, 0));
        let planned = plan(&mut one);
        assert!(planned.rollout.rolling && !planned.at_rest, "{planned:?}");
        assert!(plan(&mut one).rollout.waits, "the second plan knows of the first");
        assert!(plan(&mut other).rollout.rolling, "which is nothing to another row of the same controller");
        one.answered(&key, &Learned::Evicted, s(2));
        one.failed(&key, &Op::Look { key: key.clone() });
        one.made(&key, s(3));
        assert_eq!((touched(&*one), lines(&*one), lines(&*other)), (1, 5, 1));
        one.forget();
        assert_eq!((touched(&*one), lines(&*one)), (0, 1), "a memory may keep something beyond its term, a note never");
        assert!(plan(&mut one).rollout.rolling);
    }
}
