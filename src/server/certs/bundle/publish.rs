//! The publisher at work: two watches in, patches out.

use std::collections::BTreeSet;
use std::fmt;
use std::fmt::Debug;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::{Future, StreamExt as _};
use json_patch::Patch as Operations;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use super::objects::{Failure, Kind, seen, send_patch};
use super::plan::{self, Configuration, Memory, Step};
use super::publication::Publication;
use crate::cluster::lease::{Writer, turned};
use crate::cluster::watch::named::Known;
use crate::cluster::watch::number;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::server::certs::context::{self, Context};
use crate::server::certs::root::Millis;
use crate::server::certs::trust::Observed;
use crate::server::certs::wanted::Wanted;
use crate::server::shutdown::{Phase, Shutdown};

const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// How long patches may fail before people are told.
const PERSISTENT: Duration = Duration::from_secs(5);

type Seen = (Kind, Option<Configuration>);
type Write = Pin<Box<dyn Future<Output = (Kind, Result<Configuration, Failure>)> + Send>>;

/// What is known of one kind.
#[derive(Debug, Default)]
struct State {
    read: bool,
    configuration: Option<Configuration>,
    memory: Memory,
    known: Option<Known>,
    /// The version that was known when the last patch was sent.
    sent: u64,
}

/// Whether our webhook configurations are there; `None` until that was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Installed {
    /// The one that changes objects.
    pub mutating: Option<bool>,
    /// The one that judges them.
    pub validating: Option<bool>,
}

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
    states: [State; 2],
    write: Option<Write>,
    retry: Option<(Instant, Duration)>,
    /// Since when no patch has been accepted, and whether people have been told.
    failing: Option<(Instant, bool)>,
}

impl Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("service", &self.service)
            .field("states", &self.states)
            .finish_non_exhaustive()
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
            publication: watch::Sender::new(Publication::Unknown),
            states: <[State; 2]>::default(),
            write: None,
            retry: None,
            failing: None,
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

    /// Whether the configurations are there, now and at every change: who wants to know that does not watch them once more.
    #[must_use]
    pub fn installed(&self) -> watch::Receiver<Installed> {
        self.installed.subscribe()
    }

    /// Whether those who call us trust what we serve, now and at every change. Readiness waits for the first
    /// [`Publication::Published`].
    #[must_use]
    pub fn publication(&self) -> watch::Receiver<Publication> {
        self.publication.subscribe()
    }

    /// Works until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let watching = self.context.watching.clone();
        let mutating = seen::<MutatingWebhookConfiguration>(self.service.clone(), &self.client, &watching);
        let validating = seen::<ValidatingWebhookConfiguration>(self.service.clone(), &self.client, &watching);
        let (known, streams) = ([mutating.0, validating.0], (mutating.1, validating.1));
        for (state, known) in self.states.iter_mut().zip(known) {
            state.known = Some(known);
        }
        let mutating = streams.0.map(|configuration| (Kind::Mutating, configuration));
        let validating = streams.1.map(|configuration| (Kind::Validating, configuration));
        let mut events = pin!(futures::stream::select(mutating, validating));
        let mut wanted = self.wanted.subscribe();
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            let wake = self.turn(&wanted.borrow_and_update().clone());
            tokio::select! {
                () = &mut closing => return,
                Some(event) = events.next() => self.see(event),
                (kind, answer) = finished(&mut self.write) => self.answered(kind, answer),
                Ok(()) = wanted.changed() => {}
                () = turned(&mut self.writer) => self.retry = None,
                () = wake_at(wake) => {}
            }
        }
    }

    /// Takes in a configuration as it is now: what is watched or read is the truth.
    fn see(&mut self, (kind, configuration): Seen) {
        let state = &mut self.states[kind as usize];
        let known = state.configuration.as_ref().map(|known| &known.damaged);
        let damaged = configuration.iter().flat_map(|new| &new.damaged);
        for (entry, section) in damaged.filter(|section| known.is_none_or(|known| !known.contains(section))) {
            tracing::warn!(
                entry,
                %section,
                kind = kind.words(),
                name = keys::WEBHOOK_CONFIGURATION,
                "caBundle has a section that cannot be read; it is left out, and the others are kept"
            );
        }
        let is_there = Some(configuration.is_some());
        state.read = true;
        state.configuration = configuration;
        self.installed.send_if_modified(|known| {
            let known = match kind {
                Kind::Mutating => &mut known.mutating,
                Kind::Validating => &mut known.validating,
            };
            std::mem::replace(known, is_there) != is_there
        });
    }

    /// Observes, reports and, when it is time, sends one patch. Returns when to look again.
    fn turn(&mut self, wanted: &Wanted) -> Option<Instant> {
        let now = self.context.now();
        self.report(wanted, now);
        let writer = self.writer.as_ref().filter(|writer| writer.leads())?;
        let mut wait: Option<Millis> = None;
        let mut send: Option<(Kind, Operations)> = None;
        for kind in Kind::ALL {
            let state = &self.states[kind as usize];
            let Some(configuration) = &state.configuration else { continue };
            if configuration.published_by_other && self.by_agreement {
                continue;
            }
            match plan::step(configuration, &wanted.roots, &state.memory, now) {
                Step::Keep => {}
                Step::Wait(moment) => wait = Some(wait.map_or(moment, |wait: Millis| wait.min(moment))),
                Step::Send(patch) => send = send.or(Some((kind, patch))),
            }
        }
        let Some((kind, patch)) = send else {
            // The moment is one of the wall clock, which may be set meanwhile: it is looked at once a second.
            let pause = wait.map(|moment| Duration::from_millis(u64::try_from(moment - now).unwrap_or(0)));
            return pause.map(|pause| Instant::now() + pause.min(Duration::from_secs(1)));
        };
        if self.write.is_some() {
            return None;
        }
        if let Some((moment, _)) = self.retry
            && Instant::now() < moment
        {
            return Some(moment);
        }
        let client = writer.client();
        let state = &mut self.states[kind as usize];
        state.memory.sent(now);
        state.sent = state.known.as_ref().map_or(0, Known::version);
        self.write = Some(Box::pin(send_patch(client, kind, patch, self.service.clone())));
        None
    }

    /// Tells the source, readiness and people what is there.
    fn report(&mut self, wanted: &Wanted, now: Millis) {
        for kind in Kind::ALL {
            let state = &mut self.states[kind as usize];
            let Some(configuration) = &state.configuration else { continue };
            for lost in state.memory.observe(configuration, &wanted.roots, now) {
                self.context.metrics.bundle_overwritten();
                self.context.notify(
                    Reason::BundleOverwritten,
                    context::configuration(kind.words(), Some(configuration.uid.clone())),
                    format!(
                        "{} took Drawbridge's certificate authority out of caBundle in entry {} of {} {}; until it is back the API \
                            server cannot call Drawbridge. It is put back at once, and then at most once a minute: stop the other \
                         writer, or give it the bundle to keep",
                        lost.writer.as_deref().unwrap_or("somebody"),
                        lost.entry,
                        kind.words(),
                        keys::WEBHOOK_CONFIGURATION,
                    ),
                );
            }
        }
        let observed = self.observation();
        self.observed.send_if_modified(|known| set(known, observed));
        let publication = self.judge(wanted);
        let contested = self.states.iter().filter(|state| state.memory.contested()).count();
        // A configuration that is not there trusts nobody.
        let complete = self.states.iter().all(|state| state.configuration.is_some());
        self.context.metrics.bundle_state(complete && publication == Publication::Published, contested);
        self.publication.send_if_modified(|known| {
            if *known != publication {
                tracing::info!(state = %publication, "trust in the certificate that the webhook serves");
            }
            set(known, publication)
        });
    }

    fn observation(&self) -> Observed {
        let entries = self.states.iter().filter_map(|state| state.configuration.as_ref());
        let entries = entries.flat_map(|configuration| &configuration.entries);
        Observed {
            synced: self.states.iter().all(|state| state.read),
            entries: entries
                .map(|entry| entry.roots.iter().map(|certificate| certificate.root.fingerprint).collect())
                .collect(),
        }
    }

    fn judge(&self, wanted: &Wanted) -> Publication {
        if !self.states.iter().all(|state| state.read) || wanted.serving.is_empty() {
            return Publication::Unknown;
        }
        let serving: BTreeSet<_> = wanted.serving.iter().collect();
        let mut exists = false;
        for kind in Kind::ALL {
            let Some(configuration) = &self.states[kind as usize].configuration else { continue };
            exists = true;
            for entry in &configuration.entries {
                let held: BTreeSet<_> = entry.roots.iter().map(|certificate| &certificate.root.fingerprint).collect();
                if !serving.is_subset(&held) {
                    return Publication::Incomplete { kind: kind.words(), entry: entry.name.clone() };
                }
            }
        }
        if exists { Publication::Published } else { Publication::NoConfiguration }
    }

    fn answered(&mut self, kind: Kind, answer: Result<Configuration, Failure>) {
        self.write = None;
        match answer {
            Ok(configuration) => {
                (self.retry, self.failing) = (None, None);
                self.context.metrics.bundle_written();
                tracing::info!(kind = kind.words(), name = keys::WEBHOOK_CONFIGURATION, "caBundle published");
                let state = &self.states[kind as usize];
                if let Some(known) = &state.known {
                    known.wrote(state.sent, Some(&configuration.resource_version));
                }
                self.see((kind, Some(configuration)));
            }
            Err(Failure::Changed(configuration)) => {
                self.retry = Some((Instant::now() + FIRST_RETRY, FIRST_RETRY));
                let version = configuration.as_ref().map(|configuration| configuration.resource_version.as_str());
                let state = &self.states[kind as usize];
                if state.known.as_ref().is_none_or(|known| known.read(state.sent, number(version))) {
                    self.see((kind, configuration.map(|configuration| *configuration)));
                }
            }
            // The fence stopped it: another process leads by now, and its turn it is.
            Err(Failure::Failed(_)) if !self.writer.as_ref().is_some_and(Writer::leads) => {}
            Err(Failure::Failed(error)) => {
                self.context.metrics.bundle_failed();
                let pause = self.retry.map_or(FIRST_RETRY, |(_, last)| (last * 2).min(LAST_RETRY));
                self.retry = Some((Instant::now() + pause, pause));
                tracing::warn!(
                    error = error.as_str(),
                    kind = kind.words(),
                    name = keys::WEBHOOK_CONFIGURATION,
                    "the caBundle of a webhook configuration cannot be written (the right to patch it is needed), so the API server does not trust this webhook; it is tried again within a minute"
                );
                self.despair(kind, &error);
            }
        }
    }

    /// Tells people, once, when publishing has failed for a while.
    fn despair(&mut self, kind: Kind, error: &str) {
        let (since, told) = self.failing.get_or_insert((Instant::now(), false));
        if *told || since.elapsed() < PERSISTENT {
            return;
        }
        *told = true;
        let uid = self.states[kind as usize].configuration.as_ref().map(|configuration| configuration.uid.clone());
        self.context.notify(
            Reason::BundleUnpublished,
            context::configuration(kind.words(), uid),
            format!(
                "caBundle of {} {} cannot be written, so the API server does not trust every certificate that the webhook serves: \
                    {error}. Drawbridge keeps trying: give the controllers' ServiceAccount the right to patch it (the \
                 install manifests do), and look at other admission webhooks",
                kind.words(),
                keys::WEBHOOK_CONFIGURATION,
            ),
        );
    }
}

/// Replaces the value; says whether it is another one.
fn set<T: PartialEq>(known: &mut T, new: T) -> bool {
    let changed = *known != new;
    if changed {
        *known = new;
    }
    changed
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
