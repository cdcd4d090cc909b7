//! What awaits around the pure [`State`]: tasks that ask, and the end of each told to the loop.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::state::Begun;
use super::{Adapter, Ask, AskError, AskFault, Facts, Question, State};
use crate::controllers::scaffold::metrics::ControllerMetrics;
use crate::controllers::scaffold::plan::{Item, Name};
use crate::domain::reason::Reason;
use crate::store::Key;

/// The state of one term.
#[derive(Debug)]
struct Term<Q: Question> {
    state: State<Q>,
    /// Grows with each term: the end of a question of an earlier one is nobody's any more.
    number: u64,
}

/// The lane of one controller. Dropping it ends its tasks.
#[derive(Debug)]
pub struct Lane<Q: Question> {
    shared: Arc<Mutex<Term<Q>>>,
    news: Arc<Notify>,
    task: JoinHandle<()>,
}

impl<Q: Question> Drop for Lane<Q> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<Q: Question> Lane<Q> {
    /// Starts it: times are counted from `base`, items that have a new answer are sent to `woken`.
    pub fn start<A: Adapter<Q>>(
        controller: Name,
        adapter: Arc<A>,
        base: Instant,
        woken: mpsc::UnboundedSender<Item>,
        metrics: ControllerMetrics,
    ) -> Self {
        let shared = Arc::new(Mutex::new(Term { state: State::default(), number: 0 }));
        let news = Arc::new(Notify::new());
        let running = Running {
            controller,
            adapter,
            base,
            woken,
            metrics,
            shared: shared.clone(),
            news: news.clone(),
            asking: JoinSet::new(),
            number: 0,
        };
        Self { shared, news, task: tokio::spawn(running.run()) }
    }

    /// Makes a plan of the facts, and takes what it asks.
    pub fn plan<T>(&self, item: &Key, now: Duration, plan: impl FnOnce(&Facts<Q>) -> (T, Vec<Ask<Q>>)) -> T {
        let mut term = self.shared.lock();
        let (plan, asks) = plan(&term.state.facts);
        term.state.ask(item, asks, now);
        drop(term);
        self.news.notify_one();
        plan
    }

    /// A term begins or ends: what was asked and known is forgotten.
    pub fn forget(&self) {
        let mut term = self.shared.lock();
        *term = Term { state: State::default(), number: term.number + 1 };
        drop(term);
        self.news.notify_one();
    }
}

type Ended<Q> = (u64, Begun<Q>, Result<<Q as Question>::Fact, AskError>);

struct Running<Q: Question, A> {
    controller: Name,
    adapter: Arc<A>,
    base: Instant,
    woken: mpsc::UnboundedSender<Item>,
    metrics: ControllerMetrics,
    shared: Arc<Mutex<Term<Q>>>,
    news: Arc<Notify>,
    asking: JoinSet<Ended<Q>>,
    number: u64,
}

impl<Q: Question, A: Adapter<Q>> Running<Q, A> {
    async fn run(mut self) {
        loop {
            let due = self.begin();
            let later = self.base + due.unwrap_or(Duration::from_secs(3600));
            tokio::select! {
                () = self.news.notified() => {}
                Some(ended) = self.asking.join_next() => self.ended(ended),
                () = tokio::time::sleep_until(later) => {}
            }
        }
    }

    /// Begins what may be begun; when there may be more, where that is known.
    fn begin(&mut self) -> Option<Duration> {
        let mut term = self.shared.lock();
        if std::mem::replace(&mut self.number, term.number) != term.number {
            self.asking.abort_all();
        }
        let now = self.base.elapsed();
        while let Some(begun) = term.state.next(now) {
            let (adapter, number) = (self.adapter.clone(), self.number);
            self.asking.spawn(async move {
                // A task of its own, so that a defect in an adapter is the failure of one question.
                let (question, attempt) = (begun.question.clone(), begun.attempt);
                let asked = AbortOnDrop(tokio::spawn(async move { adapter.ask(question, attempt).await }));
                let value = asked.await;
                (number, begun, value)
            });
        }
        let (running, waiting) = term.state.load();
        self.metrics.questions(self.controller, running, waiting);
        term.state.due()
    }

    fn ended(&mut self, ended: Result<Ended<Q>, tokio::task::JoinError>) {
        // Only an aborted one ends without a value, and that one is of an earlier term.
        let Ok((number, begun, value)) = ended else { return };
        let mut term = self.shared.lock();
        if number != term.number {
            return;
        }
        self.metrics.answered(self.controller, value.as_ref().err().map(|error| error.fault));
        let woken = term.state.ended(&begun, value, self.base.elapsed());
        drop(term);
        for key in woken {
            // The loop is gone when nobody receives, and this task is about to be.
            drop(self.woken.send(Item { controller: self.controller, key }));
        }
    }
}

/// The task ends with whoever waits for it.
struct AbortOnDrop<T>(JoinHandle<Result<T, AskError>>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, AskError>;

    fn poll(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        std::pin::Pin::new(&mut self.0).poll(cx).map(|joined| {
            joined.unwrap_or_else(|_| {
                tracing::error!("a defect in Drawbridge: asking a question panicked");
                Err(AskError {
                    fault: AskFault::Unusable,
                    reason: Reason::InternalError,
                    message: "Drawbridge failed to ask: a defect, whose trace is in its log".into(),
                })
            })
        })
    }
}
