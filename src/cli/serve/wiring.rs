//! Who is given what: sockets, clients, certificates, watches, leadership and controllers of one process.
//!
//! Preparing can fail and starts nothing; starting spawns. Tasks that end with the process by themselves (servers,
//! certificates, the candidacy) are told apart from those that never do (watches, files, controllers).

use std::sync::Arc;

use anyhow::{Context as _, bail};
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::catalogue::catalogue;
use super::flags::{Args, MetricsAddress, Role};
use super::signed_cards::signed_cards;
use super::tool_servers::tool_servers;
use super::versions::Versions;
use crate::adapters::card::{Cards, InForce, Judging, SignedCards};
use crate::adapters::http::PodAddresses;
use crate::adapters::tools::ToolServers;
use crate::cli::render::{policies, webhooks};
use crate::cluster::client as clients;
use crate::cluster::keeper::Keeper;
use crate::cluster::lease::{self, Writer};
use crate::cluster::watch::Watching;
use crate::controllers::agent_card::metrics::CardMetrics;
use crate::controllers::{self, Deps, Runner, agent_card, kaos_references, tool_discovery};
use crate::crypto::Bundles;
use crate::domain::keys;
use crate::server::certs::{
    CertManagerSecret, CertManagerSecretConfig, CertificateMetrics, ClientAuthorities, ClientVerifier, Context, Events,
    Files, Installed, Lifetimes, Listener, Publication, Publisher, Resolver, SelfManaged, SelfManagedConfig, covered,
};
use crate::server::config_watch::{self, ConfigMetrics, ConfigWatch, Settings};
use crate::server::guards::watch::{Repair, served as served_kind};
use crate::server::guards::{GuardMetrics, Guards};
use crate::server::health::{Latch, Readiness};
use crate::server::listener::{self, Limits, Server, tls};
use crate::server::routes::Reviews;
use crate::server::shutdown::{Phase, Shutdown};
use crate::server::snapshots::SnapshotCell;
use crate::server::stores::{self, WatchMetrics, WatchThread};
use crate::server::tasks::Tasks;
use crate::server::telemetry::metrics::{Metrics, Name};
use crate::server::trust_bundles::{self, BundleMetrics};
use crate::server::{admin, clock, descriptors};
use crate::store::{Kind, UsedBy};

/// How long a root must have been in every bundle before a pair of cert-manager's depends on it, in milliseconds.
const SETTLE: i64 = 10_000;

/// What a process that runs consists of.
pub(super) struct Running {
    /// Tasks that end by themselves once the process closes.
    pub(super) finishing: Tasks,
    /// Tasks that never end while the process lives.
    pub(super) endless: Tasks,
}

/// A process that could start.
pub(super) struct Wiring {
    args: Args,
    roles: Vec<Role>,
    shutdown: Shutdown,
    readiness: Readiness,
    metrics: Arc<Metrics>,
    cell: SnapshotCell,
    settings: watch::Receiver<Arc<Settings>>,
    config_watch: ConfigWatch,
    config: Config,
    client: Client,
    watching: Watching,
    sockets: Sockets,
}

struct Sockets {
    webhook: Option<TcpListener>,
    probes: TcpListener,
    metrics: Option<TcpListener>,
}

/// A candidate for the Lease.
struct Elected {
    writer: Writer,
    terms: watch::Receiver<Option<u64>>,
}

/// Where the certificate comes from, ready to run.
enum Source {
    Own(Box<SelfManaged>),
    CertManager(Box<CertManagerSecret>),
    Files(Box<Files>),
}

impl Wiring {
    /// Reads the files, makes the clients, binds the sockets.
    pub(super) async fn prepare(args: Args, shutdown: Shutdown) -> anyhow::Result<Wiring> {
        let roles = args.roles_in_force(std::env::var("ENABLE_WEBHOOKS").ok().as_deref());
        if roles.is_empty() {
            bail!("no role is left for this process: give --roles, or take ENABLE_WEBHOOKS=false away");
        }
        let metrics = Metrics::new();
        let (settings, config_watch) = settings(&args, &metrics).await?;
        let config = cluster(&args).await?;
        let client = clients::client(&config).context("the client of the API server")?;
        let sockets = Sockets::bind(&args, &roles)?;
        let readiness = Readiness::new();
        let cell = SnapshotCell::new();
        let watching = Watching::new(args.times.pace());
        Ok(Wiring {
            args,
            roles,
            shutdown,
            readiness,
            metrics,
            cell,
            settings,
            config_watch,
            config,
            client,
            watching,
            sockets,
        })
    }

    /// Whether this process may receive traffic.
    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Spawns everything.
    pub(super) fn start(self) -> anyhow::Result<Running> {
        let mut running = Running { finishing: Tasks::new(), endless: Tasks::new() };
        let resolver = Resolver::new();
        let elected = if self.has(Role::Controllers) { Some(self.start_election(&mut running)?) } else { None };
        let listener = elected.as_ref().map(|elected| self.start_events(&mut running, &elected.writer));
        let context = self.certificate_context(listener.clone())?;
        let clients = self.start_clients(&mut running, &context)?;
        let (source, publisher) = self.certificates(&resolver, elected.as_ref(), context)?;
        let heard_of = publisher.as_ref().map(Publisher::installed);
        self.start_certificates(&mut running, source, publisher, &resolver);
        let keeper = self.start_cluster(&mut running, elected)?;
        self.start_guards(&mut running, listener, (heard_of, &keeper));
        self.start_servers(running, resolver, clients)
    }

    /// Enters the election that decides whose controllers write.
    fn start_election(&self, running: &mut Running) -> anyhow::Result<Elected> {
        let (leadership, candidacy) =
            lease::candidacy(self.client.clone(), &self.args.namespace, &identity(), self.args.times.lease());
        let writer = leadership.writer(&self.config)?;
        let terms = leadership.terms();
        running.endless.spawn("leadership-metric", never_fails(count_terms(self.metrics.clone(), terms.clone())));
        let stop = self.shutdown.clone();
        let candidacy =
            candidacy.watching(self.watching.clone()).run(async move { stop.reached(Phase::Draining).await });
        running.finishing.spawn("leader", never_fails(candidacy));
        Ok(Elected { writer, terms })
    }

    /// Notices about certificates become Events where this process may write some; else they stand in the log.
    fn start_events(&self, running: &mut Running, writer: &Writer) -> Listener {
        let (listener, events) = Events::new(writer.clone());
        let events = events.at_home(&self.args.namespace);
        running.finishing.spawn("certificate-events", never_fails(events.run(self.shutdown.clone())));
        listener
    }

    /// Looks after the policies that the manifests install, those of the compatible group while that is served.
    fn start_guards(
        &self,
        running: &mut Running,
        listener: Option<Listener>,
        (heard_of, keeper): (Option<watch::Receiver<Installed>>, &Keeper),
    ) {
        let metrics = GuardMetrics::default();
        self.metrics.register(|registry| metrics.register(registry));
        let listener = listener.unwrap_or_else(|| Arc::new(|_| {}));
        // What only mode gate has is its controllers' to look after: the others have one manifest in both modes.
        let controls = self.has(Role::Controllers);
        let installed = policies::installed(self.args.install().mode()).into_iter();
        let installed = installed.filter(|(kind, _)| controls || !kind.is_mutating());
        let installed = installed.chain(webhooks::installed()).collect();
        let cluster = (self.client.clone(), self.watching.clone());
        let guards = Guards::new(cluster, (listener, metrics), &self.args.namespace, (installed, self.repair()));
        let guards = guards.hearing(heard_of);
        let guards = guards.with_group(policies::installed_compat(), served_kind(keeper, Kind::BeeaiCompatAgent));
        running.endless.spawn("policies", never_fails(guards.run()));
    }

    /// The command that puts webhook configurations back, for this installation and the platform file that is in force by then.
    fn repair(&self) -> Repair {
        let install = self.args.install();
        let settings = self.settings.clone();
        Box::new(move || webhooks::repair(&install, Some(&settings.borrow().platform.cards().trust)))
    }

    fn certificate_context(&self, listener: Option<Listener>) -> anyhow::Result<Context> {
        let mut counters = None;
        self.metrics.register(|registry: &mut Registry| counters = Some(CertificateMetrics::register(registry)));
        let counters = counters.context("metrics of certificates")?;
        let context = Context::new(Arc::new(clock::now), counters, listener.unwrap_or_else(|| Arc::new(|_| {})));
        Ok(context.watching(self.watching.clone()))
    }

    /// What judges the certificates of callers, where the webhook is served and somebody asked for it.
    fn start_clients(&self, running: &mut Running, context: &Context) -> anyhow::Result<Option<Arc<ClientVerifier>>> {
        let flags = &self.args.certificates;
        let Some(file) = flags.webhook_client_ca.as_ref().filter(|_| self.has(Role::Webhook)) else { return Ok(None) };
        let authorities = ClientAuthorities::open(file, flags.webhook_client_name.clone(), context.clone())
            .context("--webhook-client-ca")?;
        let verifier = authorities.verifier();
        running.finishing.spawn("client-authorities", never_fails(authorities.run(self.shutdown.clone())));
        Ok(Some(verifier))
    }

    /// The source and its publisher, in every role: the webhook serves the certificate and only reads; the controllers
    /// keep the authority and publish what the webhook waits for, while they lead. Nothing of somebody else's files without the webhook.
    fn certificates(
        &self,
        resolver: &Arc<Resolver>,
        elected: Option<&Elected>,
        context: Context,
    ) -> anyhow::Result<(Option<Source>, Option<Publisher>)> {
        let flags = &self.args.certificates;
        let (namespace, service) = (self.args.namespace.clone(), keys::SERVICE_WEBHOOK.to_owned());
        if let Some(folder) = &flags.webhook_cert_path {
            // Files are for who serves with them: without the webhook they may well not be mounted.
            if !self.has(Role::Webhook) {
                return Ok((None, None));
            }
            let names = (flags.webhook_cert_name.as_str(), flags.webhook_cert_key.as_str());
            let files = Files::open(folder, names, resolver.clone(), context)?.dialled_as((&service, &namespace));
            return Ok((Some(Source::Files(Box::new(files))), None));
        }
        if let Some(name) = flags.webhook_cert_secret.clone() {
            let config = CertManagerSecretConfig { namespace, name, service, settle: SETTLE };
            let (source, publisher) = CertManagerSecret::new(&self.client, config, resolver.clone(), context);
            let publisher = match elected {
                Some(elected) => publisher.writing(elected.writer.clone()),
                None => publisher,
            };
            return Ok((Some(Source::CertManager(Box::new(source))), Some(publisher)));
        }
        let lifetimes = Lifetimes::new(flags.cert_lifetime.millis(), flags.ca_lifetime.millis());
        let config = SelfManagedConfig { namespace, service, extra_names: Vec::new(), lifetimes };
        let (source, publisher) = SelfManaged::new(&self.client, config, resolver.clone(), context);
        let (source, publisher) = match elected.map(|elected| elected.writer.clone()) {
            Some(writer) => (source.writing(writer.clone()), publisher.writing(writer)),
            None => (source, publisher),
        };
        Ok((Some(Source::Own(Box::new(source))), Some(publisher)))
    }

    fn start_certificates(
        &self,
        running: &mut Running,
        source: Option<Source>,
        publisher: Option<Publisher>,
        resolver: &Arc<Resolver>,
    ) {
        let shutdown = self.shutdown.clone();
        let serves = self.has(Role::Webhook);
        if serves {
            let latch = self.readiness.latch("certificate");
            release_when(&mut running.finishing, &self.shutdown, resolver.served(), Option::is_some, latch);
        }
        let finishing = &mut running.finishing;
        match source {
            Some(Source::Own(source)) => finishing.spawn("certificates", never_fails(source.run(shutdown.clone()))),
            Some(Source::CertManager(source)) => {
                finishing.spawn("certificates", never_fails(source.run(shutdown.clone())));
            }
            Some(Source::Files(source)) => finishing.spawn("certificates", never_fails(source.run(shutdown.clone()))),
            None => {}
        }
        let Some(publisher) = publisher else { return };
        if serves {
            let latch = self.readiness.latch("bundle");
            release_when(finishing, &self.shutdown, publisher.publication(), Publication::is_settled, latch);
            let trusted = covered(publisher.publication(), self.readiness.condition("trust"));
            finishing.spawn("trust", never_fails(trusted));
        }
        finishing.spawn("bundle", never_fails(publisher.run(shutdown)));
    }

    /// What is known of the cluster is in the keeper.
    fn start_cluster(&self, running: &mut Running, elected: Option<Elected>) -> anyhow::Result<Arc<Keeper>> {
        let gate = self.args.gates();
        let needs = match (self.has(Role::Controllers), gate) {
            (false, _) => UsedBy::Every,
            (true, false) => UsedBy::Controllers,
            (true, true) => UsedBy::Gate,
        };
        let watches = WatchMetrics::default();
        self.metrics.register(|registry| watches.register(registry));
        let thread = WatchThread::start().context("the thread of the watches")?;
        let reading = {
            let _there = thread.enter();
            clients::client(&self.config).context("the client of the watches")?
        };
        let stores = stores::spawn(stores::Options {
            client: self.client.clone(),
            watches: (thread.runtime().clone(), reading),
            operator_namespace: self.args.namespace.as_str().into(),
            namespaces: self.args.watch_namespaces.0.iter().map(|name| Arc::from(name.as_str())).collect(),
            left_out: self.args.kinds.left_out().collect(),
            settings: self.settings.clone(),
            cell: self.cell.clone(),
            latch: self.readiness.latch("caches"),
            used_by: needs,
            watching: self.watching.clone(),
            metrics: watches,
        });
        if let Some(Elected { writer, terms }) = elected.filter(|_| needs != UsedBy::Every) {
            let keeper = stores.keeper.clone();
            let metrics = controllers::metrics();
            self.metrics.register(|registry| metrics.register(registry));
            let writer = writer.client();
            let published = stores.published.clone();
            let bundles = self.start_trust_bundles(running);
            let cards = CardMetrics::default();
            self.metrics.register(|registry| cards.register(registry));
            let versions = Versions(self.client.clone());
            let mut asking = asking(bundles, self.settings.clone(), signed_cards(self.client.clone()), cards);
            asking.push(kaos_references::plan::ROW.runner(versions));
            let tools = ToolServers::new(PodAddresses, tool_servers(self.client.clone()));
            asking.push(tool_discovery::plan::ROW.runner(tools));
            let deps = Deps { writer, keeper, published, terms, metrics };
            running.endless.spawn("controllers", never_fails(controllers::run(deps, gate, asking)));
        }
        let mut watching = stores.tasks;
        running.endless.spawn("watches", async move {
            let _runs = thread;
            match watching.join_next().await {
                Some(Ok(name)) => Err(format!("{name} is no longer watched")),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("nothing is watched".to_owned()),
            }
        });
        Ok(stores.keeper)
    }

    /// Follows the authorities whose SVIDs sign agent cards.
    fn start_trust_bundles(&self, running: &mut Running) -> watch::Receiver<Arc<Bundles>> {
        let metrics = BundleMetrics::default();
        self.metrics.register(|registry| metrics.register(registry));
        let (bundles, task) = trust_bundles::follow(trust_bundles::Options {
            client: self.client.clone(),
            settings: self.settings.clone(),
            watching: self.watching.clone(),
            period: self.args.times.config_poll.0,
            clock: Arc::new(clock::now),
            metrics,
        });
        running.endless.spawn("trust-bundles", never_fails(task.run()));
        bundles
    }

    fn start_servers(
        self,
        mut running: Running,
        resolver: Arc<Resolver>,
        clients: Option<Arc<ClientVerifier>>,
    ) -> anyhow::Result<Running> {
        let catalogue = self.has(Role::Webhook).then(|| {
            let follows = (self.settings.clone(), self.cell.clone(), self.watching.clone());
            catalogue(&self.args, self.client.clone(), follows, &self.metrics)
        });
        let descriptors = descriptors::raise();
        running.endless.spawn("settings", never_fails(self.config_watch.run(self.args.times.config_poll.0)));
        let server = |name, router, tls, limits: Limits| Server {
            name,
            router,
            tls,
            limits: limits.within(descriptors),
            shutdown: self.shutdown.clone(),
            metrics: self.metrics.clone(),
        };
        if let (Some(socket), Some(catalogue)) = (self.sockets.webhook, catalogue) {
            let router = Reviews::new(self.cell.clone(), self.metrics.clone()).router();
            // Who calls the catalogue shows a token: the certificates that are asked for at the webhook are those of API servers.
            let own = tls::server_config(resolver.clone())?;
            let tls = match clients {
                Some(clients) => tls::mutual_server_config(resolver, clients)?,
                None => own.clone(),
            };
            let webhook = server("webhook", router, Some(tls), Limits::default());
            running.finishing.spawn("webhook", served(webhook, socket));
            let answers = server("catalogue", catalogue.router(), Some(own), Limits::catalogue());
            let address = self.args.sockets.catalogue_bind_address.0;
            running
                .finishing
                .spawn("catalogue", never_fails(cut(catalogue.clone().serve(address, answers), "catalogue")));
            running.endless.spawn("verified-cards", never_fails(catalogue.follow()));
        }
        let mut probes = admin::probes(self.readiness.clone());
        let metrics = admin::metrics(self.metrics.clone(), self.cell.clone());
        match (self.args.sockets.metrics_bind_address, self.sockets.metrics) {
            (MetricsAddress::WithProbes, _) => probes = probes.merge(metrics),
            (_, Some(socket)) => {
                running.finishing.spawn("metrics", served(server("metrics", metrics, None, Limits::admin()), socket))
            }
            (_, None) => {}
        }
        running.finishing.spawn("probes", served(server("probes", probes, None, Limits::admin()), self.sockets.probes));
        tracing::info!(version = env!("CARGO_PKG_VERSION"), roles = ?self.roles, "started");
        Ok(running)
    }
}

impl Sockets {
    fn bind(args: &Args, roles: &[Role]) -> anyhow::Result<Sockets> {
        let webhook = roles
            .contains(&Role::Webhook)
            .then(|| listener::bind(args.sockets.webhook_bind_address.0))
            .transpose()
            .context("--webhook-bind-address")?;
        let probes = listener::bind(args.sockets.health_probe_bind_address.0).context("--health-probe-bind-address")?;
        let metrics = match args.sockets.metrics_bind_address {
            MetricsAddress::Own(address) => Some(listener::bind(address).context("--metrics-bind-address")?),
            MetricsAddress::Off | MetricsAddress::WithProbes => None,
        };
        Ok(Sockets { webhook, probes, metrics })
    }
}

/// The settings files, refused when they have faults or name no image for a sidecar.
async fn settings(args: &Args, metrics: &Metrics) -> anyhow::Result<(watch::Receiver<Arc<Settings>>, ConfigWatch)> {
    let counters = ConfigMetrics::default();
    metrics.register(|registry| counters.register(registry));
    let files = config_watch::Files {
        platform: Some(args.settings.config_path.clone()),
        gates: Some(args.settings.feature_gates_path.clone()),
    };
    let (settings, watch) = config_watch::load(files, counters).await?;
    let missing = settings.borrow().platform.missing_images();
    if !missing.is_empty() {
        bail!(
            "{}: no image for {}; there are no built-in images: name each one, or mount the ConfigMap {} that \
             install.yaml ships",
            args.settings.config_path.display(),
            missing.join(", "),
            keys::CONFIG_MAP_PLATFORM,
        );
    }
    Ok((settings, watch))
}

async fn cluster(args: &Args) -> anyhow::Result<Config> {
    let mut config = args.cluster.configuration().await?;
    clients::harden(&mut config);
    Ok(config)
}

/// Who this process is to people: the Pod's name.
fn identity() -> String {
    ["POD_NAME", "HOSTNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .unwrap_or_else(|| "drawbridge".to_owned())
}

/// The controllers that ask others than the API server, each with whom it asks.
fn asking(
    bundles: watch::Receiver<Arc<Bundles>>,
    settings: watch::Receiver<Arc<Settings>>,
    signed: SignedCards,
    metrics: CardMetrics,
) -> Vec<Box<dyn Runner>> {
    let under = move || {
        let cards = settings.borrow().platform.cards();
        InForce { bundles: bundles.borrow().clone(), policy: cards.policy(), audit: cards.audit, proof: cards.proof }
    };
    let now = || {
        let since = clock::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    };
    let judging = Judging { under: Arc::new(under), now: Arc::new(now) };
    let cards = Cards::new(PodAddresses, judging, signed, metrics);
    vec![agent_card::plan::ROW.runner(cards)]
}

async fn never_fails(task: impl Future<Output = ()>) -> Result<(), std::convert::Infallible> {
    task.await;
    Ok(())
}

async fn served(server: Server, socket: TcpListener) -> Result<(), std::convert::Infallible> {
    let name = server.name;
    never_fails(cut(server.serve(socket), name)).await
}

/// Tells how many connections a server cut off in the end.
async fn cut(serving: impl Future<Output = usize>, name: &'static str) {
    let cut_off = serving.await;
    if cut_off > 0 {
        tracing::warn!(server = name, cut_off, "connections were cut off at the end of the grace period");
    }
}

/// Releases `latch` once `reached` holds of the value; ends with the process.
fn release_when<T: Send + Sync + 'static>(
    tasks: &mut Tasks,
    shutdown: &Shutdown,
    mut value: watch::Receiver<T>,
    reached: impl Fn(&T) -> bool + Send + Sync + 'static,
    latch: Latch,
) {
    let shutdown = shutdown.clone();
    tasks.spawn("latch", async move {
        tokio::select! {
            Ok(_) = value.wait_for(|value| reached(value)) => latch.release(),
            () = shutdown.reached(Phase::Draining) => {}
        }
        shutdown.reached(Phase::Draining).await;
        Ok::<(), std::convert::Infallible>(())
    });
}

/// Keeps the gauge of leadership in step with the term.
async fn count_terms(metrics: Arc<Metrics>, mut terms: watch::Receiver<Option<u64>>) {
    loop {
        let leads = terms.borrow_and_update().is_some();
        metrics.leader.get_or_create(&Name { name: keys::LEASE }).set(i64::from(leads));
        if terms.changed().await.is_err() {
            // The candidacy has ended, which is an event of its own.
            std::future::pending::<()>().await;
        }
    }
}
