//! The self-managed authority at work: facts in, the plan's steps out.
//!
//! Every turn of the loop makes one plan from what is known now and carries it out: a leaf at once (it needs nothing
//! but memory), a change of the Secret as one request in the background. So an API server that hangs or is away never
//! delays the renewal of a leaf.
//!
//! Who writes: a process without a [`Writer`] (role webhook) never does. With one, the Secret is *changed* by the holder
//! of the Lease only, through the fenced client. *Creation* stands outside of the fence on purpose: it succeeds only
//! where there is nothing, so of any number of racing, stale or resumed processes one makes the authority and the others
//! read it; and a first start need not wait for an election.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::{Future, StreamExt as _};
use k8s_openapi::api::core::v1::Secret as SecretObject;
use kube::{Api, Client, ResourceExt as _};
use tokio::time::{Instant, MissedTickBehavior};

use super::content;
use super::mint::{MintError, SigningAuthority};
use super::plan::{
    self, Authority as _, Change, Complaint, Facts, Generations, Leaf, Lifetimes, Plan, Secret, SecretStep,
};
use super::store::{self, WriteError, Written};
use crate::api::event::Regarding;
use crate::cluster::lease::{Writer, turned};
use crate::cluster::watch::named::{Known, named};
use crate::cluster::watch::number;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::server::certs::bundle::Publisher;
use crate::server::certs::context::{self, Context};
use crate::server::certs::expiry::Announcements;
use crate::server::certs::metrics::{Part, SecretOutcome};
use crate::server::certs::resolver::Resolver;
use crate::server::certs::source::Source;
use crate::server::certs::wanted::Wanted;
use crate::server::shutdown::{Phase, Shutdown};

const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(15);

type Write = Pin<Box<dyn Future<Output = Result<Written, WriteError>> + Send>>;

/// What the authority is told.
#[derive(Debug, Clone)]
pub struct SelfManagedConfig {
    /// Namespace of the Secret and of the Service.
    pub namespace: String,
    /// The Service in front of the webhook port.
    pub service: String,
    /// Further DNS names and addresses, e.g. for a configuration with a URL.
    pub extra_names: Vec<String>,
    /// How long things live.
    pub lifetimes: Lifetimes,
}

impl SelfManagedConfig {
    /// The names of the leaf: the Service's, this host's loopback, and the further ones. API servers ask for the first, whatever
    /// the domain of the cluster; of the others people ask, and the one with a domain is for clusters that kept the usual one.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        let mut names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "::1".to_owned(),
        ];
        names.extend(self.extra_names.iter().filter(|name| !name.is_empty()).cloned());
        names
    }
}

/// The source of the default: our own authority. Spawn [`SelfManaged::run`] and the [`Publisher`]'s.
pub struct SelfManaged {
    source: Source,
    config: SelfManagedConfig,
    names: Vec<String>,
    writer: Option<Writer>,
    object: Option<SecretObject>,
    known: Option<Known>,
    secret: Secret<SigningAuthority>,
    held: Option<Generations<SigningAuthority>>,
    leaf: Option<Leaf<SigningAuthority>>,
    /// What is under way, and the version that was known when it was sent.
    write: Option<(u64, Write)>,
    retry: Option<(Instant, Duration)>,
    complaint: Option<Complaint>,
    announced: [Announcements; 2],
}

impl std::fmt::Debug for SelfManaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfManaged").field("config", &self.config).finish_non_exhaustive()
    }
}

impl SelfManaged {
    /// The authority and the publisher that goes with it.
    #[must_use]
    pub fn new(
        client: &Client,
        config: SelfManagedConfig,
        resolver: Arc<Resolver>,
        context: Context,
    ) -> (SelfManaged, Publisher) {
        let publisher =
            Publisher::new(client.clone(), (config.service.clone(), config.namespace.clone()), context.clone());
        let source = SelfManaged {
            source: Source::new(client, &config.namespace, &publisher, resolver, context),
            names: config.names(),
            config,
            writer: None,
            object: None,
            known: None,
            secret: Secret::Unread,
            held: None,
            leaf: None,
            write: None,
            retry: None,
            complaint: None,
            announced: <[Announcements; 2]>::default(),
        };
        (source, publisher)
    }

    /// Keeps the Secret: creates it when it is absent, and changes it through `writer`. Without this it only reads.
    #[must_use]
    pub fn writing(self, writer: Writer) -> SelfManaged {
        SelfManaged { writer: Some(writer), ..self }
    }

    /// Works until the process closes.
    pub async fn run(mut self, shutdown: Shutdown) {
        let watching = &self.source.context.watching;
        let (known, mut secrets) = named(self.source.api.clone(), keys::SECRET_AUTHORITY, "Secret", watching);
        self.known = Some(known);
        let tick = u64::try_from(self.config.lifetimes.tick()).expect("a tick is at least 20 milliseconds");
        let mut tick = tokio::time::interval(Duration::from_millis(tick));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut closing = pin!(shutdown.reached(Phase::Closing));
        loop {
            self.turn();
            tokio::select! {
                () = &mut closing => return,
                Some(secret) = secrets.next() => self.see(secret),
                (before, answer) = finished(&mut self.write) => self.written(before, answer),
                () = self.source.changed() => {}
                () = turned(&mut self.writer) => self.retry = None,
                _ = tick.tick() => {}
            }
        }
    }

    /// Takes in the Secret as it is now: what is watched or read is the truth.
    fn see(&mut self, secret: Option<SecretObject>) {
        self.secret = secret.as_ref().map_or(Secret::Absent, |secret| Secret::Present(content::read(secret)));
        if let Secret::Present(content) = &self.secret
            && let Some(generations) = content.good()
        {
            self.held = Some(generations);
        }
        self.object = secret;
    }

    /// One plan, carried out.
    fn turn(&mut self) {
        let now = self.source.observe();
        let plan = plan::plan(&Facts {
            now,
            secret: &self.secret,
            held: self.held.as_ref(),
            leaf: self.leaf.as_ref(),
            trust: &self.source.trust,
            lifetimes: &self.config.lifetimes,
        });
        self.complain(&plan);
        if let Some(authority) = &plan.sign {
            self.serve(authority, now);
        }
        self.change(plan.secret, now);
        self.want();
        self.announce(now);
    }

    fn complain(&mut self, plan: &Plan<SigningAuthority>) {
        if self.complaint == plan.complaint {
            return;
        }
        self.complaint = plan.complaint;
        let place = format!("Secret {}/{}", self.config.namespace, keys::SECRET_AUTHORITY);
        let about = self.about();
        match plan.complaint {
            None => {}
            // No Event: it may well be the clock of this one machine.
            Some(Complaint::Early) => tracing::warn!(
                secret = %place,
                "the certificate authority is not valid yet by this machine's clock, so nothing is signed with it, and this replica has \
                 nothing to serve and stays unready; compare the clocks of the nodes: the controllers that lead put another authority \
                 in its place where their clock says the same"
            ),
            Some(Complaint::Repaired(flaw)) => self.source.context.notify(
                Reason::AuthorityRepaired,
                about,
                format!(
                    "the certificate authority in {place} {}; it is being put back. To have a new authority, delete \
                     the Secret; to use your own certificates, use --webhook-cert-path",
                    flaw.words()
                ),
            ),
            Some(Complaint::Refused(flaw)) => self.source.context.notify(
                Reason::AuthorityRefused,
                about,
                format!(
                    "the certificate authority in {place} {}, and the Secret does not carry Drawbridge's label {}={}, so it is \
                     neither used nor changed. Replicas that have a certificate go on serving it, one that starts has \
                     nothing to serve and stays unready. Put a good ca.crt and ca.key (ECDSA P-256) there, or delete the \
                     Secret to get a new authority",
                    flaw.words(),
                    keys::LABEL_APP_MANAGED_BY,
                    keys::MANAGED_BY_DRAWBRIDGE,
                ),
            ),
        }
    }

    fn about(&self) -> Regarding {
        context::secret(
            &self.config.namespace,
            keys::SECRET_AUTHORITY,
            self.object.as_ref().and_then(|secret| secret.uid()),
        )
    }

    fn serve(&mut self, authority: &SigningAuthority, now: i64) {
        match authority.sign(&self.names, &self.config.lifetimes, now) {
            Ok((pair, leaf)) => {
                let root = authority.root();
                if self.leaf.as_ref().is_none_or(|leaf| leaf.issuer.root() != root) {
                    tracing::info!(authority = %root.fingerprint, "serving a certificate of this authority");
                    self.source.context.metrics.in_use(Part::Authority, &root);
                }
                self.source.resolver.store(&pair, vec![root.fingerprint]);
                self.source.context.metrics.in_use(Part::Leaf, &pair.leaf);
                self.leaf = Some(leaf);
            }
            Err(error) => tracing::error!(%error, "a serving certificate could not be signed; serving the last one"),
        }
    }

    fn change(&mut self, step: SecretStep, now: i64) {
        let Some(writer) = &self.writer else { return };
        let (change, api) = match step {
            SecretStep::Create(change) => (change, self.source.api.clone()),
            SecretStep::Replace(change) if writer.leads() => {
                (change, Api::namespaced(writer.client(), &self.config.namespace))
            }
            SecretStep::Keep | SecretStep::Replace(_) => return,
        };
        if self.write.is_some() || self.retry.is_some_and(|(moment, _)| Instant::now() < moment) {
            return;
        }
        match self.changed(change, now) {
            Ok(Some(secret)) => {
                tracing::info!(?change, "changing the authority's Secret");
                let before = self.known.as_ref().map_or(0, Known::version);
                self.write = Some((before, Box::pin(store::write(api, secret))));
            }
            Ok(None) => tracing::error!(?change, "the plan asked for a change that does not fit"),
            Err(error) => {
                tracing::error!(%error, "a certificate authority could not be made");
                self.postpone();
            }
        }
    }

    fn changed(&self, change: Change, now: i64) -> Result<Option<SecretObject>, MintError> {
        let seen = match &self.secret {
            Secret::Present(content) => Some(content),
            Secret::Unread | Secret::Absent => None,
        };
        let fresh = SigningAuthority::found(&self.config.lifetimes, now)?;
        let generations = plan::apply(change, seen, self.held.as_ref(), fresh, now);
        Ok(generations.map(|generations| content::write(self.object.as_ref(), &self.config.namespace, &generations)))
    }

    fn written(&mut self, before: u64, answer: Result<Written, WriteError>) {
        self.write = None;
        match answer {
            Ok(Written::Ours(secret)) => {
                self.retry = None;
                let created = self.object.is_none();
                self.source.context.metrics.secret(if created {
                    SecretOutcome::Created
                } else {
                    SecretOutcome::Replaced
                });
                if let Some(known) = &self.known {
                    known.wrote(before, secret.resource_version().as_deref());
                }
                self.see(Some(*secret));
                self.want();
            }
            Ok(Written::Theirs(secret)) => {
                self.retry = None;
                self.source.context.metrics.secret(SecretOutcome::Lost);
                tracing::info!(
                    "the authority's Secret is not what it was: another replica changed it, or a backup was put back"
                );
                let version = secret.as_ref().map_or(0, |secret| number(secret.resource_version().as_deref()));
                if self.known.as_ref().is_none_or(|known| known.read(before, version)) {
                    self.see(secret.map(|secret| *secret));
                }
            }
            // The fence stopped it: another process leads by now, and its turn it is.
            Err(_) if self.object.is_some() && !self.writer.as_ref().is_some_and(Writer::leads) => {}
            Err(error) => {
                self.source.context.metrics.secret(SecretOutcome::Failed);
                tracing::warn!(
                    %error,
                    namespace = self.config.namespace,
                    secret = keys::SECRET_AUTHORITY,
                    "the Secret of the certificate authority cannot be written (rights to create, get, list, watch and update it are needed); it is tried again within a minute"
                );
                self.postpone();
            }
        }
    }

    fn postpone(&mut self) {
        let pause = self.retry.map_or(FIRST_RETRY, |(_, last)| (last * 2).min(LAST_RETRY));
        self.retry = Some((Instant::now() + pause, pause));
    }

    /// Tells the publisher which roots must be trusted: what the Secret holds (or what is remembered of it), and
    /// what is being served.
    fn want(&self) {
        let mut wanted = Wanted::default();
        if let Some(held) = &self.held {
            wanted.add(held.current.certificate());
            held.next.iter().for_each(|next| wanted.add(next.certificate()));
            held.previous.iter().for_each(|previous| wanted.add(previous));
        }
        if let Some(leaf) = &self.leaf {
            wanted.add(leaf.issuer.certificate());
            wanted.serving = Some(vec![leaf.issuer.root().fingerprint]);
        }
        self.source.want(wanted);
    }

    fn announce(&mut self, now: i64) {
        let Some(leaf) = &self.leaf else { return };
        let served = self.source.resolver.served().borrow().clone();
        let about = self.about();
        let [of_leaf, of_authority] = &mut self.announced;
        let authority = leaf.issuer.root();
        if let Some(threshold) = of_authority.next(&authority, now) {
            self.source.context.expiring(Part::Authority, about.clone(), &authority, threshold);
        }
        let leaf = served.map(|served| crate::server::certs::root::Root {
            fingerprint: served.fingerprint,
            not_before: leaf.issued,
            not_after: leaf.not_after,
        });
        if let Some(leaf) = leaf
            && let Some(threshold) = of_leaf.next(&leaf, now)
        {
            self.source.context.expiring(Part::Leaf, about, &leaf, threshold);
        }
    }
}

/// The write's answer; never, when there is none under way.
async fn finished(write: &mut Option<(u64, Write)>) -> (u64, Result<Written, WriteError>) {
    match write {
        Some((before, write)) => (*before, write.await),
        None => futures::future::pending().await,
    }
}
