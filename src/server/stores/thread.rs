//! The thread on which the cluster is followed: connections of watches are read, events decoded and kept, one after the other.
//!
//! In: nothing. Out: where to spawn watches and the client they ask through ([`WatchThread::enter`]). Promises: none of that work is done by the
//! workers that answer reviews, however much there is of it; an event is read, decoded and kept by one thread, so it wakes no other unless
//! somebody has something to do because of it. Ends with its value.

use std::io;

use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;

/// The thread, which runs until this is dropped.
#[derive(Debug)]
pub struct WatchThread {
    runtime: Handle,
    /// Dropped with the value: that is what ends the thread.
    _runs: oneshot::Sender<()>,
}

impl WatchThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread or no descriptor to wait with.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (runs, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        let follow = move || {
            // Nobody sends: it ends when the other end is dropped.
            let _ = runtime.block_on(ended);
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("watches".to_owned()).spawn(follow)?;
        Ok(Self { runtime: handle, _runs: runs })
    }

    /// What is spawned while the guard lives runs there; so a client that is made meanwhile reads its connections there.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Where tasks are spawned.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Option<String> {
        std::thread::current().name().map(str::to_owned)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_is_spawned_there_runs_there_and_ends_with_the_value() {
        let thread = WatchThread::start().unwrap();
        let (inner, outer) = {
            let _there = thread.enter();
            (
                tokio::spawn(async { tokio::spawn(async { name() }).await.unwrap() }),
                tokio::spawn(std::future::pending::<()>()),
            )
        };
        assert_eq!(inner.await.unwrap().as_deref(), Some("watches"));
        assert_ne!(tokio::spawn(async { name() }).await.unwrap().as_deref(), Some("watches"));
        drop(thread);
        assert!(outer.await.unwrap_err().is_cancelled());
    }
}
