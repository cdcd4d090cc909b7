//! A bare loop that runs beside a round of a benchmark.
//!
//! In: what it does until it is stopped. Out: whether the API server took every write, or the first that it refused.

use anyhow::{Result, bail};
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::task::JoinHandle;

/// One that runs.
pub(super) struct Running {
    task: JoinHandle<Result<()>>,
    stop: Sender<()>,
}

impl Running {
    /// Begins it; it ends when it is told to, or with an error.
    pub(super) fn begin<F>(work: impl FnOnce(Receiver<()>) -> F) -> Self
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        Self { task: tokio::spawn(work(stopped)), stop }
    }

    /// Waits until a write is refused: nobody need wait for the others then.
    pub(super) async fn refused(&mut self) -> Result<()> {
        (&mut self.task).await?.and_then(|()| bail!("the bare loop ended by itself"))
    }

    /// Stops it, and says whether every write was taken.
    pub(super) async fn end(self) -> Result<()> {
        // A task that ended already did so with an error, which comes next.
        let _ = self.stop.send(());
        self.task.await?
    }
}
