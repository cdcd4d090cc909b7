//! The loop: changes in, plans made, writes out.
//!
//! ```text
//! keeper ───► queue ─┐                      ┌─ term of leadership: without one, nothing is planned
//! snapshot ─► facts ─┴─► plan (pure, of the store) ─► apply (32 at a time) ─► answers, into the keeper like any event
//! ```
//!
//! What is decided is decided by [`machine`], which awaits nothing; here is what waits for its inputs and carries out its effects.
//! Promises: only the leader plans; a lost term ends what is under way and forgets the queue, a new one looks at everything again; what was sent is not
//! taken back, since nobody would know what became of it: it is waited for until its time is over, and its answer is known like any other; plans
//! are made from the store of that moment, a few at a time, so that whoever learns something waits for no more than these; answers and
//! plans are taken in turn, a bounded number of each, so that however much there is of one the others go on.

mod configured;
mod ended;
pub(in crate::controllers) mod machine;
pub(in crate::controllers) mod told;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::Client;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};

use super::apply::Learned;
use super::metrics::ControllerMetrics;
use super::runner::{Runner, Start};
use crate::cluster::keeper::Keeper;
use crate::config::snapshot::Published;
use crate::store::Key;
use crate::workloads::kaos::settings::Settings;
use ended::Outcome;
use machine::{Effect, Given, Input, Loop, Ticket};
use told::ToldLoop;

/// Steps of planning before anything else has its turn.
const STEPS: usize = 16;
/// How long nothing is due, where nothing is.
const LONG: Duration = Duration::from_secs(3600);

/// What the controllers work with.
pub struct Deps {
    /// The writing client, fenced by the Lease.
    pub writer: Client,
    /// What is known of the cluster.
    pub keeper: Arc<Keeper>,
    /// The configuration in force.
    pub published: watch::Receiver<Option<Arc<Published>>>,
    /// The term of our leadership.
    pub terms: watch::Receiver<Option<u64>>,
    /// Counters.
    pub metrics: ControllerMetrics,
}

/// What carries out the effects of the loop.
struct Shell {
    work: Arc<Mutex<Loop>>,
    keeper: Arc<Keeper>,
    writer: Client,
    metrics: ControllerMetrics,
    workers: JoinSet<Outcome>,
    /// Which worker carries out what, and in which epoch that was planned.
    tickets: HashMap<Id, (Ticket, u64)>,
    /// Nothing more of what was planned so far is to be sent.
    given_up: Arc<AtomicBool>,
    /// There is more to be planned at once.
    more: bool,
}

/// Says once of each Lease of the operator of KAOS before us that nothing waits for it, because of where it is.
fn tell_of_leases(keeper: &Keeper, kaos: &Settings, told: &mut BTreeSet<Key>) {
    let found = keeper.read(|store| {
        let believed = kaos.believed(store.operator_namespace());
        store.not_believed(&believed).cloned().collect::<BTreeSet<_>>()
    });
    for Key { namespace, name } in found.difference(told) {
        tracing::warn!(
            namespace = &**namespace,
            name = &**name,
            "Lease not believed: the controllers of KAOS's kinds do not wait for it. If the Go operator runs there, name the namespace in \
             kaos.operatorNamespaces of the platform file"
        );
    }
    *told = found;
}

/// Runs the controllers `rows` for ever.
pub async fn run(mut rows: Vec<Box<dyn Runner>>, deps: Deps, jitter: fn() -> f64) {
    let Deps { writer, keeper, mut published, mut terms, metrics } = deps;
    let (woken, mut answered) = mpsc::unbounded_channel();
    for row in &mut rows {
        row.start(Start { base: keeper.base(), woken: woken.clone(), metrics: metrics.clone() });
    }
    let clock = keeper.clone();
    let given = Given { metrics: metrics.clone(), jitter: Box::new(jitter), clock: Box::new(move || clock.now()) };
    let (work, wake) = (Arc::new(Mutex::new(Loop::new(rows, given))), Arc::new(Notify::new()));
    keeper.join(Box::new(ToldLoop { work: work.clone(), wake: wake.clone() }));
    let (workers, tickets) = (JoinSet::new(), HashMap::new());
    let mut shell = Shell { work, keeper, writer, metrics, workers, tickets, given_up: Arc::default(), more: false };
    let mut told = BTreeSet::new();
    published.mark_changed();
    terms.mark_changed();
    loop {
        let due = shell.work.lock().due().map(|due| due.saturating_sub(shell.keeper.now()));
        tokio::select! {
            biased;
            Ok(()) = terms.changed() => {
                let term = *terms.borrow_and_update();
                shell.step(Input::Term(term));
            }
            Some(ended) = shell.workers.join_next_with_id() => shell.ended(ended),
            Ok(()) = published.changed() => {
                let facts = published.borrow_and_update().clone();
                if let Some(facts) = &facts {
                    let kaos = facts.platform.kaos();
                    shell.keeper.set_registry_namespace(kaos.registry_namespace.as_deref());
                    tell_of_leases(&shell.keeper, kaos, &mut told);
                }
                shell.step(Input::Published(facts));
            }
            Some(item) = answered.recv() => shell.step(Input::Answered(item)),
            () = wake.notified() => {}
            // While every worker is busy, the end of one of them is what is waited for.
            () = tokio::time::sleep(due.unwrap_or(LONG)), if due.is_some() => {}
            () = std::future::ready(()), if shell.more => {}
        }
        // Whichever came first: what else is there is taken, too, or the one that always comes first would be all.
        while let Some(ended) = shell.workers.try_join_next_with_id() {
            shell.ended(ended);
        }
        while let Ok(item) = answered.try_recv() {
            shell.step(Input::Answered(item));
        }
        for _ in 0..STEPS {
            shell.more = false;
            shell.step(Input::Turn);
            if !shell.more {
                break;
            }
        }
        // Others of this thread have their turn, however much there is.
        tokio::task::yield_now().await;
    }
}

impl Shell {
    fn step(&mut self, input: Input) {
        let now = self.keeper.now();
        let effects = self.keeper.read(|store| self.work.lock().step(store, input, now));
        for effect in effects {
            match effect {
                Effect::Start(ticket, item, plan) => {
                    let (writer, metrics, given_up) =
                        (self.writer.clone(), self.metrics.clone(), self.given_up.clone());
                    let epoch = self.work.lock().epoch_of(ticket).unwrap_or_default();
                    let worker = self
                        .workers
                        .spawn(async move { ended::carry_out(&writer, (&metrics, &given_up), &item, &plan).await });
                    self.tickets.insert(worker.id(), (ticket, epoch));
                }
                Effect::GiveUp => std::mem::take(&mut self.given_up).store(true, Ordering::Release),
                Effect::More => self.more = true,
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, Some(outcome)),
            Err(error) => (error.id(), None),
        };
        let Some((ticket, epoch)) = self.tickets.remove(&id) else { return };
        if let Some((learned, _)) = &outcome {
            for learned in learned {
                if let Learned::Change(change) = learned {
                    self.keeper.apply(epoch, change, self.keeper.now());
                }
            }
        }
        self.step(Input::Ended(ticket, outcome));
    }
}
