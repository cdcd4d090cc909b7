//! How the process ends: running, draining, closing; the second signal aborts.
//!
//! ```text
//! running ──first signal──► draining ──drain delay──► closing ──connections gone or grace over──► exit
//!    readiness on           readiness off, serving    no new connections
//! ```
//!
//! In: SIGTERM and SIGINT. Out: the phase, to be awaited from anywhere. Promises: phases only go forward; whoever
//! awaits a phase that has passed continues at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::health::Readiness;

/// Where the process is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Serving.
    Running,
    /// Still serving, but no longer ready: endpoints are being taken away.
    Draining,
    /// No new connections; requests under way are answered.
    Closing,
}

/// The phase of this process. Clones share it.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: Arc<watch::Sender<Phase>>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// Running.
    #[must_use]
    pub fn new() -> Self {
        Self { phase: Arc::new(watch::Sender::new(Phase::Running)) }
    }

    /// The phase now.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Goes forward to `phase`; going back is ignored.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|current| {
            let forward = phase > *current;
            if forward {
                *current = phase;
            }
            forward
        });
    }

    /// Returns once `phase` or a later one is reached.
    pub async fn reached(&self, phase: Phase) {
        let mut receiver = self.phase.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(receiver.wait_for(|current| *current >= phase).await);
    }
}

/// The signals that end the process.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes over SIGTERM and SIGINT. To be called early: until then they kill the process (or, for process 1, do
    /// nothing).
    ///
    /// # Errors
    /// When the handlers cannot be registered.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The next one; returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Waits for the first signal, takes readiness away, keeps serving for `delay` and then closes; returns when a second
/// signal arrives: the caller then exits at once.
pub async fn drive(mut signals: Signals, shutdown: Shutdown, readiness: Readiness, delay: Duration) {
    let name = signals.next().await;
    tracing::info!(
        signal = name,
        delay_seconds = delay.as_secs_f64(),
        "the process is ending: it is no longer ready and still answers"
    );
    readiness.drain();
    shutdown.advance(Phase::Draining);
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        again = signals.next() => {
            tracing::warn!(signal = again, "second signal to end: the process ends at once");
            return;
        }
    }
    tracing::info!("the process is ending: it takes no new connections");
    shutdown.advance(Phase::Closing);
    let again = signals.next().await;
    tracing::warn!(signal = again, "second signal to end: the process ends at once");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn phases_go_forward_only_and_can_be_awaited_late() {
        let shutdown = Shutdown::new();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.reached(Phase::Draining).await }
        });
        shutdown.advance(Phase::Closing);
        shutdown.advance(Phase::Draining);
        waiting.await.unwrap();
        assert_eq!(shutdown.phase(), Phase::Closing);
        shutdown.reached(Phase::Draining).await;
    }
}
