//! The scene of these tests: an operator's namespace, replicas of the real sources and publishers, and the judge.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::Request;
use drawbridge::cluster::lease::{self, Times, Writer};
use drawbridge::domain::keys;
use drawbridge::server::certs::{
    CertificateMetrics, Context, Events, Fingerprint, Lifetimes, Listener, Publication, Publisher, Resolver,
    SelfManaged, SelfManagedConfig, read_bundle,
};
use drawbridge::server::shutdown::{Phase, Shutdown};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use parking_lot::Mutex;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use webhook_tests::dial::{self, Trust};
use webhook_tests::patience::patience;
use webhook_tests::{Access, ControlPlane, Kept, Lent, Options, TestNamespace};

/// The configurations have one name in the cluster, so the tests that use them take turns.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Theirs alone: a bundle is published by whoever holds the Lease.
static PLANE: Kept<ControlPlane> = Kept::new();

const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: certificates}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [""], resources: [secrets], resourceNames: [drawbridge-webhook-ca, provided], verbs: [get, list, watch, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [drawbridge-controllers], verbs: [get, list, watch, update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: certificates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: certificates}
subjects: [{kind: ServiceAccount, name: default, namespace: NAMESPACE}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: certificates}
rules:
- apiGroups: [admissionregistration.k8s.io]
  resources: [mutatingwebhookconfigurations, validatingwebhookconfigurations]
  resourceNames: [drawbridge]
  verbs: [get, list, watch, patch]
- {apiGroups: [""], resources: [events], verbs: [get, create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: certificates}
subjects: [{kind: ServiceAccount, name: default, namespace: NAMESPACE}]
"#;

/// A namespace that plays the operator's, the account the replicas run under, and the turn.
pub(crate) struct Stage {
    pub(crate) cp: Lent<ControlPlane>,
    pub(crate) ns: TestNamespace,
    pub(crate) account: Access,
    /// Seconds added to the replicas' clock.
    pub(crate) ahead: Arc<AtomicI64>,
    front: u16,
    /// Who answers the API server, in turn.
    resolvers: Arc<Mutex<Vec<Arc<Resolver>>>>,
    _turn: MutexGuard<'static, ()>,
}

pub(crate) struct Replica {
    pub(crate) resolver: Arc<Resolver>,
    publication: tokio::sync::watch::Receiver<Publication>,
    address: SocketAddr,
    shutdown: Shutdown,
    tasks: Vec<JoinHandle<()>>,
}

impl Stage {
    pub(crate) async fn set(entries: &[&str]) -> Result<Stage> {
        let turn = TURN.lock().await;
        let cp = PLANE.lend(async || ControlPlane::start(Options::default()).await).await?;
        let ns = cp.namespace("certificates").await?;
        ns.apply(&RIGHTS.replace("NAMESPACE", ns.name())).await?;
        let account = cp.service_account(ns.name(), "default").await?;
        let resolvers: Arc<Mutex<Vec<Arc<Resolver>>>> = Arc::default();
        let front = TcpListener::bind("127.0.0.1:0").await?;
        let port = front.local_addr()?.port();
        tokio::spawn(serve(front, Arc::clone(&resolvers)));
        cp.publish_service(ns.name(), keys::SERVICE_WEBHOOK, port).await?;
        let stage = Stage { cp, ns, account, ahead: Arc::default(), front: port, resolvers, _turn: turn };
        stage.until_it_may_patch(true).await?;
        stage.remove_configurations().await?;
        stage.install(entries).await?;
        Ok(stage)
    }

    /// Waits until the account may patch the configurations, or may not: the API server goes by what is stored about roles a moment later.
    pub(crate) async fn until_it_may_patch(&self, wanted: bool) -> Result<()> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.account.client().await?);
        let review: SelfSubjectAccessReview = serde_json::from_value(json!({"spec": {"resourceAttributes": {
            "group": "admissionregistration.k8s.io", "resource": "mutatingwebhookconfigurations",
            "name": keys::WEBHOOK_CONFIGURATION, "verb": "patch",
        }}}))?;
        let begun = tokio::time::Instant::now();
        while reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed)
            != wanted
        {
            ensure!(begun.elapsed() < patience(), "whether the account may patch is never {wanted}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(crate) fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.ns.client())
    }

    pub(crate) fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.ns.client())
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        self.ns.api()
    }

    pub(crate) async fn remove_configurations(&self) -> Result<()> {
        for (mutating, kind) in [(true, "mutating"), (false, "validating")] {
            let params = DeleteParams::default();
            let gone = if mutating {
                self.mutating().delete(keys::WEBHOOK_CONFIGURATION, &params).await.err()
            } else {
                self.validating().delete(keys::WEBHOOK_CONFIGURATION, &params).await.err()
            };
            match gone {
                None => {}
                Some(kube::Error::Api(status)) if status.code == 404 => {}
                Some(error) => return Err(error).context(kind),
            }
        }
        Ok(())
    }

    /// What an installer applies: no caBundle, never forced.
    pub(crate) async fn install(&self, entries: &[&str]) -> Result<()> {
        let hooks: Vec<Value> = entries
            .iter()
            .map(|name| {
                json!({
                    "name": name,
                    "clientConfig": { "service": { "name": keys::SERVICE_WEBHOOK, "namespace": self.ns.name(), "path": "/review", "port": self.front } },
                    "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] }],
                    "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": self.ns.name() } },
                    "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
                })
            })
            .collect();
        let object = |kind: &str| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": keys::WEBHOOK_CONFIGURATION }, "webhooks": hooks,
            })
        };
        let params = PatchParams::apply("installer");
        let name = keys::WEBHOOK_CONFIGURATION;
        self.mutating().patch(name, &params, &Patch::Apply(object("MutatingWebhookConfiguration"))).await?;
        self.validating().patch(name, &params, &Patch::Apply(object("ValidatingWebhookConfiguration"))).await?;
        Ok(())
    }

    pub(crate) fn context(&self, listener: Listener) -> Context {
        let ahead = Arc::clone(&self.ahead);
        let clock = move || {
            let ahead = Duration::from_secs(ahead.load(Ordering::SeqCst).unsigned_abs());
            #[allow(clippy::disallowed_methods, reason = "the test's own clock")]
            let now = SystemTime::now();
            now + ahead
        };
        Context::new(Arc::new(clock), CertificateMetrics::default(), listener)
    }

    /// A replica that is ready.
    pub(crate) async fn replica(&self, lifetimes: Lifetimes) -> Result<Replica> {
        let replica = self.begin(lifetimes).await?;
        self.ready(replica).await
    }

    /// A replica that has been started.
    pub(crate) async fn begin(&self, lifetimes: Lifetimes) -> Result<Replica> {
        let config = SelfManagedConfig {
            namespace: self.ns.name().to_owned(),
            service: keys::SERVICE_WEBHOOK.to_owned(),
            extra_names: Vec::new(),
            lifetimes,
        };
        let (resolver, shutdown) = (Resolver::new(), Shutdown::new());
        let client: Client = self.account.client().await?;
        let (writer, candidacy) = self.election(&shutdown).await?;
        let (listener, events) = Events::new(writer.clone());
        let events = tokio::spawn(events.run(shutdown.clone()));
        let (source, publisher) = SelfManaged::new(&client, config, Arc::clone(&resolver), self.context(listener));
        let source = tokio::spawn(source.writing(writer.clone()).run(shutdown.clone()));
        self.running((resolver, shutdown), vec![source, candidacy, events], publisher.writing(writer)).await
    }

    /// Waits until the replica is ready, and lets the API server reach it.
    pub(crate) async fn ready(&self, mut replica: Replica) -> Result<Replica> {
        replica.published().await?;
        self.resolvers.lock().push(Arc::clone(&replica.resolver));
        Ok(replica)
    }

    /// Enters a replica into the election.
    pub(crate) async fn election(&self, shutdown: &Shutdown) -> Result<(Writer, JoinHandle<()>)> {
        let reader = self.account.client().await?;
        let (leadership, candidacy) = lease::candidacy(reader, self.ns.name(), "replica", Times::default());
        let writer = leadership.writer(&self.account.config().await?)?;
        let stop = shutdown.clone();
        Ok((writer, tokio::spawn(candidacy.run(async move { stop.reached(Phase::Draining).await }))))
    }

    pub(crate) async fn running(
        &self,
        (resolver, shutdown): (Arc<Resolver>, Shutdown),
        mut tasks: Vec<JoinHandle<()>>,
        publisher: Publisher,
    ) -> Result<Replica> {
        let publication = publisher.publication();
        tasks.push(tokio::spawn(publisher.run(shutdown.clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, Arc::new(Mutex::new(vec![Arc::clone(&resolver)]))));
        Ok(Replica { resolver, publication, address, shutdown, tasks })
    }

    pub(crate) async fn bundles(&self) -> Result<Vec<Vec<u8>>> {
        bundles(&self.ns.client()).await
    }

    /// The fingerprints of the Secret's certificates under this key.
    pub(crate) async fn roots(&self, key: &str) -> Result<Vec<Fingerprint>> {
        let secret = self.secrets().get(keys::SECRET_AUTHORITY).await?;
        Ok(roots_of(&secret, key))
    }

    pub(crate) fn host(&self) -> String {
        format!("{}.{}.svc", keys::SERVICE_WEBHOOK, self.ns.name())
    }

    /// Opens new connections to all replicas against the bundle just read, ten times a second, and sends creations through
    /// the API server, forty times a second, until stopped.
    pub(crate) fn judge(&self, replicas: &[&Replica]) -> Judge {
        let judge = Judge { calls: Arc::default(), failures: Arc::default(), tasks: Vec::new() };
        let dialling = {
            let (host, client) = (self.host(), self.ns.client());
            let addresses: Vec<SocketAddr> = replicas.iter().map(|replica| replica.address).collect();
            let (calls, failures) = (Arc::clone(&judge.calls), Arc::clone(&judge.failures));
            tokio::spawn(async move {
                let mut tick = tokio::time::interval(Duration::from_millis(100));
                loop {
                    tick.tick().await;
                    for bundle in bundles(&client).await.unwrap() {
                        for address in &addresses {
                            let answer = match Trust::new(&host, &bundle) {
                                Ok(trust) => dial::post(*address, &trust, "/review", review()).await.map(drop),
                                Err(error) => Err(error),
                            };
                            calls.fetch_add(1, Ordering::SeqCst);
                            if let Err(error) = answer {
                                failures.lock().push(format!("{address}: {error:#}"));
                            }
                        }
                    }
                }
            })
        };
        let creating = (0..2).map(|_| {
            let maps: Api<ConfigMap> = self.ns.api();
            let (calls, failures) = (Arc::clone(&judge.calls), Arc::clone(&judge.failures));
            tokio::spawn(async move {
                let mut tick = tokio::time::interval(Duration::from_millis(50));
                let params = PostParams { dry_run: true, ..PostParams::default() };
                loop {
                    tick.tick().await;
                    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "x-"}})).unwrap();
                    calls.fetch_add(1, Ordering::SeqCst);
                    if let Err(error) = maps.create(&params, &map).await {
                        failures.lock().push(format!("through the API server: {error}"));
                    }
                }
            })
        });
        let tasks = creating.chain([dialling]).collect();
        Judge { tasks, ..judge }
    }
}

impl Replica {
    pub(crate) async fn published(&mut self) -> Result<()> {
        let published = self.publication.wait_for(|state| *state == Publication::Published);
        let published = tokio::time::timeout(patience(), published).await;
        published.context("the bundle is published")??;
        Ok(())
    }

    pub(crate) fn root(&self) -> Fingerprint {
        self.resolver.served().borrow().as_ref().unwrap().roots[0]
    }

    pub(crate) async fn serves(&self, root: Fingerprint) -> Result<()> {
        let mut served = self.resolver.served();
        let there = served.wait_for(|served| served.as_ref().is_some_and(|served| served.roots.contains(&root)));
        tokio::time::timeout(patience(), there).await.context("the root is served")??;
        Ok(())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.shutdown.advance(Phase::Closing);
        for task in self.tasks {
            tokio::time::timeout(patience(), task).await.context("the task ends")??;
        }
        Ok(())
    }
}

pub(crate) struct Judge {
    calls: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Judge {
    /// Waits for so many more calls: what happened before is judged by them.
    pub(crate) async fn more(&self, calls: usize) -> Result<()> {
        let enough = self.calls.load(Ordering::SeqCst) + calls;
        let called = async {
            while self.calls.load(Ordering::SeqCst) < enough {
                ensure!(self.tasks.iter().all(|task| !task.is_finished()), "the judge died");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        tokio::time::timeout(patience(), called).await.context("the judge's calls are not answered")?
    }

    /// The verdict: none of the calls failed.
    pub(crate) fn verdict(self) -> Result<()> {
        for task in &self.tasks {
            ensure!(!task.is_finished(), "the judge died");
            task.abort();
        }
        let (calls, failures) = (self.calls.load(Ordering::SeqCst), self.failures.lock());
        ensure!(
            failures.is_empty(),
            "{} of {calls} calls failed: {:#?}",
            failures.len(),
            &failures[..failures.len().min(5)]
        );
        Ok(())
    }
}

/// Every bundle of every entry, as stored now.
async fn bundles(client: &Client) -> Result<Vec<Vec<u8>>> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let validating =
        Api::<ValidatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let mutating = mutating.webhooks.into_iter().flatten().map(|hook| hook.client_config);
    let validating = validating.webhooks.into_iter().flatten().map(|hook| hook.client_config);
    Ok(mutating.chain(validating).map(|client| client.ca_bundle.unwrap_or_default().0).collect())
}

pub(crate) fn roots_of(secret: &Secret, key: &str) -> Vec<Fingerprint> {
    let pem = secret.data.as_ref().and_then(|data| data.get(key));
    read_bundle(pem.map(|pem| pem.0.as_slice()).unwrap_or_default())
        .certificates
        .iter()
        .map(|found| found.root.fingerprint)
        .collect()
}

pub(crate) fn fingerprints(bundle: &[u8]) -> Vec<Fingerprint> {
    read_bundle(bundle).certificates.iter().map(|found| found.root.fingerprint).collect()
}

fn review() -> Vec<u8> {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "by-hand"}})
        .to_string()
        .into_bytes()
}

/// A webhook that allows everything, with the certificate of each resolver in turn.
async fn serve(listener: TcpListener, resolvers: Arc<Mutex<Vec<Arc<Resolver>>>>) {
    webhook_tests::install_crypto();
    let allow = |request: Request| async move {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let review: Value = serde_json::from_slice(&body).unwrap();
        let answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": review["request"]["uid"], "allowed": true},
        });
        ([("content-type", "application/json")], answer.to_string())
    };
    let app = Router::new().fallback(allow);
    let mut turn = 0;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        turn += 1;
        let resolver = {
            let resolvers = resolvers.lock();
            if resolvers.is_empty() {
                continue;
            }
            Arc::clone(&resolvers[turn % resolvers.len()])
        };
        let config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(resolver);
        let (acceptor, app) = (TlsAcceptor::from(Arc::new(config)), app.clone());
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                let service = TowerToHyperService::new(app);
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                drop(server.serve_connection(TokioIo::new(stream), service).await);
            }
        });
    }
}
