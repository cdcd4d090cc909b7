//! Notices about certificates, and about policies that are lost, as Kubernetes Events, where people look for them.
//!
//! In: notices, as every process with the controllers' role hears them. Out: one Event for each, on the object it is about,
//! written by the holder of the Lease. Promises: the same said again (each replica notices the same, and notices it again
//! when it starts) is one Event; a notice that arose just before leadership changed hands is told by the new holder;
//! nothing here delays a certificate.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::context::{Listener, Notice};
use crate::api::event;
use crate::cluster::lease::{Writer, turned};
use crate::server::shutdown::{Phase, Shutdown};

/// Notices that wait to be told; what comes beyond stands in the log only.
const WAITING: usize = 32;
/// How long a notice waits for this process to lead, or for the API server. Somebody else has told it by then.
const PATIENCE: Duration = Duration::from_secs(300);
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(15);

/// Why an Event came to nothing.
#[derive(Debug, thiserror::Error)]
enum EventError {
    /// The API server's answer, or none.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The Event cannot be put together.
    #[error(transparent)]
    Unbuildable(#[from] serde_json::Error),
}

/// The task that tells. Spawn [`Events::run`].
pub struct Events {
    writer: Option<Writer>,
    notices: mpsc::Receiver<Notice>,
    waiting: VecDeque<(Instant, Notice)>,
    retry: Option<(Instant, Duration)>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl Events {
    /// The task, and the listener for a [`super::Context`] that feeds it.
    #[must_use]
    pub fn new(writer: Writer) -> (Listener, Events) {
        let (sender, notices) = mpsc::channel(WAITING);
        let listener: Listener = Arc::new(move |notice: &Notice| {
            // Full or closed: the log line has been written all the same.
            let _ = sender.try_send(notice.clone());
        });
        (listener, Events { writer: Some(writer), notices, waiting: VecDeque::new(), retry: None })
    }

    /// Works until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            self.waiting.retain(|(arisen, _)| arisen.elapsed() < PATIENCE);
            let leader = self.writer.as_ref().filter(|writer| writer.leads());
            let due = self.retry.map_or_else(Instant::now, |(moment, _)| moment);
            if let (Some(writer), Some((_, notice))) = (leader, self.waiting.front())
                && due <= Instant::now()
            {
                let told = tokio::select! {
                    () = &mut closing => return,
                    told = tell(writer, notice) => told,
                };
                self.after(told);
                continue;
            }
            let wake = if leader.is_some() && !self.waiting.is_empty() { Some(due) } else { None };
            tokio::select! {
                () = &mut closing => return,
                Some(notice) = self.notices.recv() => self.take(notice),
                () = turned(&mut self.writer) => self.retry = None,
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    fn take(&mut self, notice: Notice) {
        if self.waiting.iter().any(|(_, known)| *known == notice) {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((Instant::now(), notice));
    }

    fn after(&mut self, told: Result<(), EventError>) {
        match told {
            Ok(()) => {
                self.waiting.pop_front();
                self.retry = None;
            }
            // The fence stopped it: another process leads by now.
            Err(_) if !self.writer.as_ref().is_some_and(Writer::leads) => {}
            Err(error) => {
                let pause = self.retry.map_or(FIRST_RETRY, |(_, last)| (last * 2).min(LAST_RETRY));
                self.retry = Some((Instant::now() + pause, pause));
                tracing::warn!(%error, "an Event about a certificate or policy could not be written (get and create are needed); trying again");
            }
        }
    }
}

/// Writes the Event, unless the very same one exists.
async fn tell(writer: &Writer, notice: &Notice) -> Result<(), EventError> {
    let moment = format!("{:.0}", jiff::Timestamp::now());
    let said = (notice.reason, notice.message.as_str());
    let event: Event = serde_json::from_value(event::warning(notice.teller, &notice.about, said, &moment))?;
    let api = Api::<Event>::namespaced(writer.client(), notice.about.event_namespace());
    if api.get_opt(event.metadata.name.as_deref().unwrap_or_default()).await?.is_some() {
        return Ok(());
    }
    let params = PostParams { field_manager: Some(notice.teller.to_owned()), ..PostParams::default() };
    match api.create(&params, &event).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error.into()),
    }
}
