//! The loop: changes in, plans made, writes out.
//!
//! ```text
//! feed ────► store ─┐                        ┌─ term of leadership: without one, nothing is planned
//! snapshot ─► facts ─┴─► queue ─► plan (pure) ─► apply (32 at a time) ─► answers back into store
//! ```
//!
//! What is decided is decided by [`machine`], which awaits nothing; here is what waits for its inputs and carries out its effects.
//! Promises: every replica keeps its store current, only the leader plans; a lost term ends what is under way and
//! forgets the queue, a new one looks at everything again; plans are made from the store of that moment; answers,
//! changes and plans are taken in turn, a bounded number of each, so that however much there is of one the others go on.

mod configured;
mod ended;
pub(in crate::controllers) mod machine;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;

use super::metrics::ControllerMetrics;
use super::runner::{Runner, Start};
use crate::config::snapshot::Published;
use crate::store::Feed;
use ended::Outcome;
use machine::{Effect, Given, Input, Loop, Ticket};

/// Messages of the feed taken at once.
const BATCH: usize = 256;
/// How long nothing is due, where nothing is.
const LONG: Duration = Duration::from_secs(3600);

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

/// What carries out the effects of the loop.
struct Shell {
    work: Loop,
    base: Instant,
    writer: Client,
    metrics: ControllerMetrics,
    epochs: watch::Receiver<u64>,
    workers: JoinSet<Outcome>,
    /// Which worker carries out what.
    tickets: HashMap<Id, Ticket>,
    /// There is more to be planned at once.
    more: bool,
}

/// Runs the controllers `rows` until the watches end.
pub async fn run(mut rows: Vec<Box<dyn Runner>>, deps: Deps, jitter: fn() -> f64) {
    let Deps { writer, mut feed, mut published, mut terms, operator_namespace, epochs, metrics } = deps;
    let epoch = *epochs.borrow();
    let base = Instant::now();
    let (woken, mut answered) = mpsc::unbounded_channel();
    for row in &mut rows {
        row.start(Start { base, woken: woken.clone(), metrics: metrics.clone() });
    }
    let given = Given { metrics: metrics.clone(), jitter: Box::new(jitter), clock: Box::new(move || base.elapsed()) };
    let work = Loop::new(rows, (&operator_namespace, epoch), given);
    let (workers, tickets) = (JoinSet::new(), HashMap::new());
    let mut shell = Shell { work, base, writer, metrics, epochs, workers, tickets, more: false };
    let mut batch = Vec::with_capacity(BATCH);
    published.mark_changed();
    terms.mark_changed();
    loop {
        let due = shell.work.due().map(|due| due.saturating_sub(base.elapsed()));
        tokio::select! {
            biased;
            Ok(()) = terms.changed() => {
                let term = *terms.borrow_and_update();
                shell.step(Input::Term(term));
            }
            Some(ended) = shell.workers.join_next_with_id() => shell.ended(ended),
            Ok(()) = published.changed() => {
                let facts = published.borrow_and_update().clone();
                shell.step(Input::Published(facts));
            }
            Some(item) = answered.recv() => shell.step(Input::Answered(item)),
            count = feed.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
            }
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
        while batch.len() < BATCH
            && let Ok(message) = feed.try_recv()
        {
            batch.push(message);
        }
        for message in batch.drain(..) {
            // Before each message: those of the new history come after its beginning.
            let epoch = *shell.epochs.borrow();
            shell.step(Input::Epoch(epoch));
            shell.step(Input::Feed(message));
        }
        shell.more = false;
        shell.step(Input::Turn);
    }
}

impl Shell {
    fn step(&mut self, input: Input) {
        for effect in self.work.step(input, self.base.elapsed()) {
            match effect {
                Effect::Start(ticket, item, plan) => {
                    let (writer, metrics) = (self.writer.clone(), self.metrics.clone());
                    let worker =
                        self.workers.spawn(async move { ended::carry_out(&writer, &metrics, &item, &plan).await });
                    self.tickets.insert(worker.id(), ticket);
                }
                Effect::GiveUp => self.workers.abort_all(),
                Effect::More => self.more = true,
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Outcome), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, outcome)) => (id, Some(outcome)),
            Err(error) => {
                let id = error.id();
                if error.is_cancelled() {
                    self.tickets.remove(&id);
                    return;
                }
                (id, None)
            }
        };
        if let Some(ticket) = self.tickets.remove(&id) {
            self.step(Input::Ended(ticket, outcome));
        }
    }
}
