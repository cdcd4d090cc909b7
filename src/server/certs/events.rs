//! Notices about certificates, and about policies that are lost, as Kubernetes Events, where people look for them.
//!
//! In: notices, as every process with the controllers' role hears them. Out: one Event for each, on the object it is about,
//! written by the holder of the Lease. Promises: the same said again (each replica notices the same, and notices it again
//! when it starts) is one Event; a notice that arose just before leadership changed hands is told by the new holder; one that
//! is refused holds up no other; what is about an object of the cluster is told about our own Deployment where nobody gave us
//! the right to write in namespace `default`; nothing here delays a certificate.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::context::{Listener, Notice};
use crate::api::event::{self, Regarding};
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

impl EventError {
    /// Whether it is about this Event alone, and stays the same for a while: a right that is missing, a policy, a quota, a namespace that goes, a
    /// webhook that does not answer (500). Whoever does not know us, has no time or does not reach what stands behind him says so to every Event.
    fn is_refusal(&self) -> bool {
        match self {
            EventError::Api(kube::Error::Api(status)) => !matches!(status.code, 401 | 429 | 502..=504),
            EventError::Api(_) => false,
            EventError::Unbuildable(_) => true,
        }
    }
}

/// When something is tried again, and the pause before that.
type Retry = (Instant, Duration);

/// The pause after one more failure.
fn again(now: Instant, last: Option<Retry>) -> Retry {
    let pause = last.map_or(FIRST_RETRY, |(_, last)| (last * 2).min(LAST_RETRY));
    (now + pause, pause)
}

/// A notice that waits.
#[derive(Debug)]
struct Waiting {
    arisen: Instant,
    notice: Notice,
    /// It was refused.
    refused: Option<Retry>,
}

/// What waits to be told, and when it is. Pure: the moment is handed in.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// Nobody answered, so that nothing is tried for a while.
    silent: Option<Retry>,
}

impl Queue {
    fn take(&mut self, notice: Notice, now: Instant) {
        if self.waiting.iter().any(|one| one.notice == notice) {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Waiting { arisen: now, notice, refused: None });
    }

    /// Leaves out what has waited for too long.
    fn forget(&mut self, now: Instant) {
        self.waiting.retain(|one| now.duration_since(one.arisen) < PATIENCE);
    }

    /// Which notice is next, and when: the one that is due first, and of those that are due the one that waits longest.
    fn next(&self, now: Instant) -> Option<(usize, Instant)> {
        let due = |one: &Waiting| one.refused.max(self.silent).map_or(now, |(moment, _)| moment.max(now));
        let all = self.waiting.iter().map(due).enumerate();
        all.min_by_key(|(_, due)| *due)
    }

    /// What became of the notice at that place.
    fn answered(&mut self, at: usize, told: Result<(), EventError>, now: Instant) {
        match told {
            Ok(()) => {
                self.waiting.remove(at);
                self.silent = None;
            }
            Err(error) if error.is_refusal() => {
                self.silent = None;
                let Some(one) = self.waiting.get_mut(at) else { return };
                if one.refused.is_none() {
                    tracing::warn!(
                        %error,
                        reason = one.notice.reason.code(),
                        "an Event about a certificate or policy was refused (get and create are needed); it is tried again, and others do not wait for it"
                    );
                }
                one.refused = Some(again(now, one.refused));
            }
            Err(error) => {
                self.silent = Some(again(now, self.silent));
                tracing::warn!(%error, "an Event about a certificate or policy could not be written (get and create are needed); trying again");
            }
        }
    }
}

/// The task that tells. Spawn [`Events::run`].
pub struct Events {
    writer: Option<Writer>,
    /// What is told about where an object of the cluster cannot be.
    ours: Option<Regarding>,
    notices: mpsc::Receiver<Notice>,
    queue: Queue,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("queue", &self.queue).finish_non_exhaustive()
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
        (listener, Events { writer: Some(writer), ours: None, notices, queue: Queue::default() })
    }

    /// Tells what is about an object of the cluster about the Deployment of the controllers in `namespace`, where Events may not be
    /// written in namespace `default`: an installation for some namespaces has no right there.
    #[must_use]
    pub fn at_home(self, namespace: &str) -> Events {
        Events { ours: Some(Regarding::controllers(namespace)), ..self }
    }

    /// Works until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            let now = Instant::now();
            self.queue.forget(now);
            let leader = self.writer.as_ref().filter(|writer| writer.leads());
            let next = self.queue.next(now).filter(|_| leader.is_some());
            if let (Some(writer), Some((at, due))) = (leader, next)
                && due <= now
                && let Some(one) = self.queue.waiting.get(at)
            {
                let told = tokio::select! {
                    () = &mut closing => return,
                    told = tell(writer.client(), self.ours.as_ref(), &one.notice) => told,
                };
                self.after(at, told);
                continue;
            }
            let wake = next.map(|(_, due)| due);
            tokio::select! {
                () = &mut closing => return,
                Some(notice) = self.notices.recv() => self.queue.take(notice, Instant::now()),
                () = turned(&mut self.writer) => self.queue.silent = None,
                () = tokio::time::sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => {}
            }
        }
    }

    fn after(&mut self, at: usize, told: Result<(), EventError>) {
        // The fence stopped it: another process leads by now.
        let is_fenced = told.is_err() && !self.writer.as_ref().is_some_and(Writer::leads);
        if !is_fenced {
            self.queue.answered(at, told, Instant::now());
        }
    }
}

/// Tells a notice about its object, or about `ours` where that is refused and the object is one of the cluster.
async fn tell(client: Client, ours: Option<&Regarding>, notice: &Notice) -> Result<(), EventError> {
    let told = write(&client, notice, &notice.about).await;
    match (told, ours) {
        (Err(error), Some(ours)) if error.is_refusal() && notice.about.namespace.is_empty() => {
            write(&client, notice, ours).await
        }
        (told, _) => told,
    }
}

/// Writes the Event, unless the very same one exists.
async fn write(client: &Client, notice: &Notice, about: &Regarding) -> Result<(), EventError> {
    let moment = format!("{:.0}", jiff::Timestamp::now());
    let said = (notice.reason, notice.message.as_str());
    let event: Event = serde_json::from_value(event::warning(notice.teller, about, said, &moment))?;
    let api = Api::<Event>::namespaced(client.clone(), about.event_namespace());
    if api.get_opt(event.metadata.name.as_deref().unwrap_or_default()).await?.is_some() {
        return Ok(());
    }
    let params = PostParams { field_manager: Some(notice.teller.to_owned()), ..PostParams::default() };
    match api.create(&params, &event).await {
        Ok(_) => Ok(()),
        // A quota that others change at the same moment is a conflict, too, and nothing was written.
        Err(kube::Error::Api(status)) if status.code == 409 && status.reason == "AlreadyExists" => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use http::{Method, Request, Response};
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::super::context::configuration;
    use super::*;
    use crate::domain::keys;
    use crate::domain::reason::Reason;

    const OWN: &str = "kagenti-system";
    /// Where an installation for some namespaces may write Events, and one for all.
    const SOME: &[&str] = &[OWN];
    const ALL: &[&str] = &[OWN, "default"];

    /// A bundle was overwritten: about an object of the cluster.
    fn overwritten() -> Notice {
        notice(Reason::BundleOverwritten, configuration("MutatingWebhookConfiguration", Some("u".to_owned())))
    }

    /// A policy is missing: about our own Deployment.
    fn missing() -> Notice {
        notice(Reason::PolicyMissing, Regarding::controllers(OWN))
    }

    fn notice(reason: Reason, about: Regarding) -> Notice {
        Notice { teller: keys::MANAGER_CERTIFICATES, reason, about, message: reason.code().to_owned() }
    }

    /// Namespace of an Event, and kind of the object that it is about.
    type Sent = (String, String);

    /// An API server that lets Events be written in these namespaces and answers in others with that code (where that is 403, also to whoever
    /// reads); and the namespace and kind of object of what was written.
    fn server(open: &'static [&'static str], refusal: u16) -> (Client, Arc<Mutex<Vec<Sent>>>) {
        let written: Arc<Mutex<Vec<(String, String)>>> = Arc::default();
        let seen = Arc::clone(&written);
        let service = tower::service_fn(move |request: Request<Body>| {
            let seen = Arc::clone(&seen);
            async move {
                let is_post = *request.method() == Method::POST;
                let namespace = request.uri().path().split('/').nth(4).unwrap_or_default().to_owned();
                let status = |code: u16, reason: &str| {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                        "code": code, "reason": reason, "message": "no"});
                    (code, status)
                };
                let is_open = open.contains(&namespace.as_str());
                let (code, answer) = if !is_open && (is_post || refusal == 403) {
                    status(refusal, "Refused")
                } else if is_post {
                    let bytes = request.into_body().collect_bytes().await.unwrap();
                    let event: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    let kind = event["involvedObject"]["kind"].as_str().unwrap_or_default().to_owned();
                    seen.lock().push((namespace, kind));
                    (201, event)
                } else {
                    status(404, "NotFound")
                };
                let body = Body::from(answer.to_string().into_bytes());
                Ok::<_, tower::BoxError>(Response::builder().status(code).body(body).unwrap())
            }
        });
        (Client::new(service, "default"), written)
    }

    #[tokio::test]
    async fn a_notice_that_is_refused_holds_up_no_other() {
        // A conflict is one of a quota, and 500 what a webhook that is down comes to.
        for refusal in [400, 403, 404, 409, 422, 500] {
            refused_with(refusal).await;
        }
    }

    async fn refused_with(refusal: u16) {
        let (client, written) = server(SOME, refusal);
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.take(overwritten(), now);
        queue.take(missing(), now);
        assert_eq!(queue.next(now), Some((0, now)), "in the order in which they arose");
        let refused = tell(client.clone(), None, &queue.waiting[0].notice).await;
        assert!(refused.as_ref().is_err_and(EventError::is_refusal), "{refusal}: {refused:?}");
        queue.answered(0, refused, now);
        assert_eq!(queue.next(now), Some((1, now)), "{refusal}: the next one is told at once");
        let told = tell(client, None, &queue.waiting[1].notice).await;
        queue.answered(1, told, now);
        assert_eq!(*written.lock(), [(OWN.to_owned(), "Deployment".to_owned())]);
        assert_eq!(queue.next(now), Some((0, now + FIRST_RETRY)), "the refused one is tried again");
        // One that comes meanwhile does not wait for it, and it does not wait for ever.
        queue.take(notice(Reason::WebhookMissing, Regarding::controllers(OWN)), now);
        assert_eq!(queue.next(now), Some((1, now)));
        queue.forget(now + PATIENCE);
        assert_eq!(queue.next(now + PATIENCE), None);
    }

    /// Whoever is asked says these to every Event.
    #[tokio::test]
    async fn who_is_busy_or_does_not_know_us_is_left_alone_for_a_while() {
        for code in [401, 429, 502, 503, 504] {
            let (client, _) = server(&[], code);
            let (mut queue, now) = (Queue::default(), Instant::now());
            queue.take(overwritten(), now);
            queue.take(missing(), now);
            let told = tell(client, None, &queue.waiting[0].notice).await;
            assert!(told.as_ref().is_err_and(|error| !error.is_refusal()), "{code}: {told:?}");
            queue.answered(0, told, now);
            assert_eq!(queue.next(now), Some((0, now + FIRST_RETRY)), "{code}: both of them wait");
        }
    }

    #[test]
    fn while_nobody_answers_nothing_is_tried_but_after_a_pause() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.take(overwritten(), now);
        queue.take(missing(), now);
        let nobody = || Err(EventError::Api(kube::Error::Service("nobody answers".into())));
        queue.answered(0, nobody(), now);
        assert_eq!(queue.next(now), Some((0, now + FIRST_RETRY)), "the same first, for both of them wait");
        let then = now + FIRST_RETRY;
        queue.answered(0, nobody(), then);
        assert_eq!(queue.next(then), Some((0, then + FIRST_RETRY * 2)));
        queue.answered(0, Ok(()), then + FIRST_RETRY * 2);
        assert_eq!(queue.next(then), Some((0, then)), "somebody answers again");
    }

    #[tokio::test]
    async fn what_may_not_be_told_in_default_is_told_about_our_own_deployment() {
        let ours = Regarding::controllers(OWN);
        for (open, refusal, namespace, kind) in [
            (SOME, 403, OWN, "Deployment"),
            (SOME, 500, OWN, "Deployment"),
            (ALL, 403, "default", "MutatingWebhookConfiguration"),
        ] {
            let (client, written) = server(open, refusal);
            tell(client, Some(&ours), &overwritten()).await.unwrap();
            assert_eq!(*written.lock(), [(namespace.to_owned(), kind.to_owned())]);
        }
        // What has a namespace stays where people look for it.
        let (client, written) = server(&[], 403);
        assert!(tell(client, Some(&ours), &missing()).await.is_err_and(|error| error.is_refusal()));
        assert!(written.lock().is_empty());
    }
}
