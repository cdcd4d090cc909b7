//! What carries out the effects of the publisher: two watches in, patches and words out. What is decided is decided by [`machine`].

use std::fmt;
use std::fmt::Debug;
use std::pin::{Pin, pin};

use futures::{Future, StreamExt as _};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::machine::{Effect, Input, Installed, Machine, Now};
use super::objects::{Failure, Kind, seen, send_patch};
use super::plan::{Configuration, Overwritten};
use super::publication::Publication;
use crate::cluster::lease::{Writer, turned};
use crate::cluster::watch::named::Known;
use crate::cluster::watch::number;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::server::certs::context::{self, Context};
use crate::server::certs::trust::Observed;
use crate::server::certs::wanted::Wanted;
use crate::server::shutdown::{Phase, Shutdown};

type Write = Pin<Box<dyn Future<Output = (Kind, Result<Configuration, Failure>)> + Send>>;

/// Publishes what a source wants, and observes.
pub struct Publisher {
    client: Client,
    service: (String, String),
    context: Context,
    by_agreement: bool,
    writer: Option<Writer>,
    wanted: watch::Sender<Wanted>,
    observed: watch::Sender<Observed>,
    installed: watch::Sender<Installed>,
    publication: watch::Sender<Publication>,
}

impl Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("service", &self.service).finish_non_exhaustive()
    }
}

impl Publisher {
    /// For entries that call `service` (name, namespace).
    pub(in crate::server::certs) fn new(client: Client, service: (String, String), context: Context) -> Publisher {
        Publisher {
            client,
            service,
            context,
            by_agreement: false,
            writer: None,
            wanted: watch::Sender::new(Wanted::default()),
            observed: watch::Sender::new(Observed::default()),
            installed: watch::Sender::new(Installed::default()),
            publication: watch::Sender::new(Publication::default()),
        }
    }

    /// Leaves configurations to cert-manager's injector that ask for it by annotation.
    #[must_use]
    pub(in crate::server::certs) fn by_agreement(self) -> Publisher {
        Publisher { by_agreement: true, ..self }
    }

    /// Publishes through `writer` while that leads. Without this it only observes: another process, with the rights
    /// for it, publishes what this one waits for.
    #[must_use]
    pub fn writing(self, writer: Writer) -> Publisher {
        Publisher { writer: Some(writer), ..self }
    }

    /// Where a source says what it wants.
    pub(in crate::server::certs) fn wanted(&self) -> watch::Sender<Wanted> {
        self.wanted.clone()
    }

    /// What the configurations hold.
    pub(in crate::server::certs) fn observed(&self) -> watch::Receiver<Observed> {
        self.observed.subscribe()
    }

    /// As if the configurations held that.
    #[cfg(test)]
    pub(in crate::server::certs) fn shows(&self, observed: Observed) {
        self.observed.send_replace(observed);
    }

    /// Whether the configurations are there, now and at every change: who wants to know that does not watch them once more.
    #[must_use]
    pub fn installed(&self) -> watch::Receiver<Installed> {
        self.installed.subscribe()
    }

    /// Whether those who call us trust what we serve, now and at every change. Readiness waits for the first that
    /// [is settled](Publication::is_settled).
    #[must_use]
    pub fn publication(&self) -> watch::Receiver<Publication> {
        self.publication.subscribe()
    }

    /// Works until the process closes.
    pub async fn run(self, shutdown: Shutdown) {
        let watching = self.context.watching.clone();
        let mutating = seen::<MutatingWebhookConfiguration>(self.service.clone(), &self.client, &watching);
        let validating = seen::<ValidatingWebhookConfiguration>(self.service.clone(), &self.client, &watching);
        let mut wanted = self.wanted.subscribe();
        let mut shell = Shell {
            machine: Machine::new(self.by_agreement),
            base: Instant::now(),
            known: [(mutating.0, 0), (validating.0, 0)],
            write: None,
            wake: None,
            publisher: self,
        };
        let mutating = mutating.1.map(|configuration| (Kind::Mutating, configuration));
        let validating = validating.1.map(|configuration| (Kind::Validating, configuration));
        let mut events = pin!(futures::stream::select(mutating, validating));
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        wanted.mark_changed();
        loop {
            let input = tokio::select! {
                () = &mut closing => return,
                Some((kind, configuration)) = events.next() => Input::Seen(kind, configuration),
                (kind, answer) = finished(&mut shell.write) => shell.answered(kind, answer),
                Ok(()) = wanted.changed() => Input::Wanted(wanted.borrow_and_update().clone()),
                () = turned(&mut shell.publisher.writer) => Input::Turned,
                () = wake_at(shell.wake) => Input::Time,
            };
            shell.step(input);
        }
    }

    /// Tells whoever is meant.
    pub(super) fn tell(&self, effect: Effect) {
        let (metrics, name) = (&self.context.metrics, keys::WEBHOOK_CONFIGURATION);
        match effect {
            Effect::Send(..) | Effect::Wake(_) => {}
            Effect::Installed(installed) => _ = self.installed.send_replace(installed),
            Effect::Observed(observed) => _ = self.observed.send_replace(observed),
            Effect::Publication(publication) => {
                tracing::info!(state = %publication, "trust in the certificate that the webhook serves");
                self.publication.send_replace(publication);
            }
            Effect::State { trusted, contested } => metrics.bundle_state(trusted, contested),
            Effect::Damaged(kind, entry, section) => tracing::warn!(
                entry,
                %section,
                kind = kind.words(),
                name,
                "caBundle has a section that cannot be read; it is left out, and the others are kept"
            ),
            Effect::Overwritten(kind, uid, lost) => {
                metrics.bundle_overwritten();
                self.overwritten(kind, uid, &lost);
            }
            Effect::Published(kind) => {
                metrics.bundle_written();
                tracing::info!(kind = kind.words(), name, "caBundle published");
            }
            Effect::NotPublished(kind, error) => {
                metrics.bundle_failed();
                tracing::warn!(
                    error,
                    kind = kind.words(),
                    name,
                    "the caBundle of a webhook configuration cannot be written, so the API server does not trust this \
                     webhook; the controllers need the right to patch it, and every admission policy on webhook \
                     configurations has to allow that; it is tried again within a minute"
                );
            }
            Effect::StillNotPublished(kind, uid, error) => self.context.notify(
                Reason::BundleUnpublished,
                context::configuration(kind.words(), uid),
                format!(
                    "caBundle of {} {name} cannot be written, so the API server does not trust every certificate that the webhook serves: \
                        {error}. Drawbridge keeps trying: give the controllers' ServiceAccount the right to patch it (the \
                     install manifests do), and have every admission policy on webhook configurations allow that",
                    kind.words(),
                ),
            ),
        }
    }

    fn overwritten(&self, kind: Kind, uid: String, lost: &Overwritten) {
        let next = match (lost.injected, self.by_agreement) {
            (true, true) => {
                "Drawbridge leaves it to cert-manager's injector, as an annotation cert-manager.io/inject-* asks: take \
                 the annotation off the configuration, and Drawbridge publishes the Secret's ca.crt itself"
            }
            (true, false) => {
                "It is put back at once, and then at most once a minute: take the annotation cert-manager.io/inject-* \
                 off the configuration, since Drawbridge publishes here"
            }
            (false, _) => {
                "It is put back at once, and then at most once a minute: stop the other writer, or give it the bundle \
                 to keep"
            }
        };
        self.context.notify(
            Reason::BundleOverwritten,
            context::configuration(kind.words(), Some(uid)),
            format!(
                "{} took Drawbridge's certificate authority out of caBundle in entry {} of {} {}; until it is back the \
                 API server cannot call Drawbridge. {next}",
                lost.writer.as_deref().unwrap_or("somebody"),
                lost.entry,
                kind.words(),
                keys::WEBHOOK_CONFIGURATION,
            ),
        );
    }
}

/// What a publisher works with while it runs.
struct Shell {
    publisher: Publisher,
    machine: Machine,
    base: Instant,
    /// What is known of each kind's version, and the version when its last patch was sent.
    known: [(Known, u64); 2],
    write: Option<Write>,
    wake: Option<Instant>,
}

impl Shell {
    fn step(&mut self, input: Input) {
        let leads = self.publisher.writer.as_ref().is_some_and(Writer::leads);
        let now = Now { at: self.base.elapsed(), wall: self.publisher.context.now(), leads };
        self.wake = None;
        for effect in self.machine.step(input, now) {
            match effect {
                Effect::Send(kind, patch) => {
                    let Some(writer) = &self.publisher.writer else { continue };
                    let (known, sent) = &mut self.known[kind as usize];
                    *sent = known.version();
                    let service = self.publisher.service.clone();
                    self.write = Some(Box::pin(send_patch(writer.client(), kind, patch, service)));
                }
                Effect::Wake(moment) => self.wake = Some(self.base + moment),
                told => self.publisher.tell(told),
            }
        }
    }

    /// What the answer to a patch says, compared with what was learned while it was under way.
    fn answered(&mut self, kind: Kind, answer: Result<Configuration, Failure>) -> Input {
        self.write = None;
        let (known, sent) = &self.known[kind as usize];
        match answer {
            Ok(configuration) => {
                known.wrote(*sent, Some(&configuration.resource_version));
                Input::Written(kind, configuration)
            }
            Err(Failure::Changed(configuration)) => {
                let version = configuration.as_ref().map(|configuration| configuration.resource_version.as_str());
                let is_current = known.read(*sent, number(version));
                Input::Changed(kind, is_current.then(|| configuration.map(|configuration| *configuration)))
            }
            Err(Failure::Failed(error)) => Input::Failed(kind, error),
        }
    }
}

async fn wake_at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => futures::future::pending().await,
    }
}

async fn finished(write: &mut Option<Write>) -> (Kind, Result<Configuration, Failure>) {
    match write {
        Some(write) => write.await,
        None => futures::future::pending().await,
    }
}
