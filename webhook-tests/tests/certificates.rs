//! Certificates against a real API server: racing replicas, rotation under load, damage, other writers.
//!
//! The replicas are the real sources and publishers, each with a resolver and a TLS server of its own, under a
//! ServiceAccount with exactly the rights that `runtime::certs` names. The judge is a client that opens new TLS
//! connections against the bundles it has just read from the API.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use axum::Router;
use axum::extract::Request;
use drawbridge::domain::keys;
use drawbridge::runtime::certs::{
    CertManagerSecret, CertManagerSecretConfig, CertificateMetrics, Context, Fingerprint, Lifetimes, Publication,
    Publisher, Resolver, SelfManaged, SelfManagedConfig, read_bundle,
};
use drawbridge::runtime::shutdown::{Phase, Shutdown};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
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
use webhook_tests::pki::Authority;
use webhook_tests::{Access, ControlPlane, TestNamespace, wait_for};

/// The configurations have one name in the cluster, so the tests that use them take turns.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: certificates}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [""], resources: [secrets], resourceNames: [drawbridge-webhook-ca, provided], verbs: [get, list, watch, update]}
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
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: certificates}
subjects: [{kind: ServiceAccount, name: default, namespace: NAMESPACE}]
"#;

/// A namespace that plays the operator's, the account the replicas run under, and the turn.
struct Stage {
    cp: &'static ControlPlane,
    ns: TestNamespace,
    account: Access,
    /// Seconds added to the replicas' clock.
    ahead: Arc<AtomicI64>,
    front: u16,
    /// Who answers the API server, in turn.
    resolvers: Arc<Mutex<Vec<Arc<Resolver>>>>,
    _turn: MutexGuard<'static, ()>,
}

struct Replica {
    resolver: Arc<Resolver>,
    publication: tokio::sync::watch::Receiver<Publication>,
    address: SocketAddr,
    shutdown: Shutdown,
    tasks: Vec<JoinHandle<()>>,
}

impl Stage {
    async fn set(entries: &[&str]) -> Result<Stage> {
        let turn = TURN.lock().await;
        let cp = ControlPlane::shared().await?;
        let ns = cp.namespace("certificates").await?;
        ns.apply(&RIGHTS.replace("NAMESPACE", ns.name())).await?;
        let account = cp.service_account(ns.name(), "default").await?;
        let resolvers: Arc<Mutex<Vec<Arc<Resolver>>>> = Arc::default();
        let front = TcpListener::bind("127.0.0.1:0").await?;
        let port = front.local_addr()?.port();
        tokio::spawn(serve(front, Arc::clone(&resolvers)));
        cp.publish_service(ns.name(), keys::SERVICE_WEBHOOK, port).await?;
        let stage = Stage { cp, ns, account, ahead: Arc::default(), front: port, resolvers, _turn: turn };
        stage.remove_configurations().await?;
        stage.install(entries).await?;
        Ok(stage)
    }

    fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.ns.client())
    }

    fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.ns.client())
    }

    fn secrets(&self) -> Api<Secret> {
        self.ns.api()
    }

    async fn remove_configurations(&self) -> Result<()> {
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
    async fn install(&self, entries: &[&str]) -> Result<()> {
        let hooks: Vec<Value> = entries
            .iter()
            .map(|name| {
                json!({
                    "name": name,
                    "clientConfig": { "service": { "name": keys::SERVICE_WEBHOOK, "namespace": self.ns.name(), "path": "/review", "port": self.front } },
                    "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"] }],
                    "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": self.ns.name() } },
                    "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 5,
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

    fn context(&self) -> Context {
        let ahead = Arc::clone(&self.ahead);
        let clock = move || {
            let ahead = Duration::from_secs(ahead.load(Ordering::SeqCst).unsigned_abs());
            #[allow(clippy::disallowed_methods, reason = "the test's own clock")]
            let now = SystemTime::now();
            now + ahead
        };
        Context::new(Arc::new(clock), CertificateMetrics::default(), Arc::new(|_| ()))
    }

    async fn replica(&self, lifetimes: Lifetimes) -> Result<Replica> {
        let config = SelfManagedConfig {
            namespace: self.ns.name().to_owned(),
            service: keys::SERVICE_WEBHOOK.to_owned(),
            extra_names: Vec::new(),
            lifetimes,
        };
        let (resolver, shutdown) = (Resolver::new(), Shutdown::new());
        let client: Client = self.account.client().await?;
        let (source, publisher) = SelfManaged::new(&client, config, Arc::clone(&resolver), self.context());
        let source = tokio::spawn(source.run(shutdown.clone()));
        self.running(resolver, shutdown, source, publisher).await
    }

    async fn running(
        &self,
        resolver: Arc<Resolver>,
        shutdown: Shutdown,
        source: JoinHandle<()>,
        publisher: Publisher,
    ) -> Result<Replica> {
        let publication = publisher.publication();
        let publisher = tokio::spawn(publisher.run(shutdown.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, Arc::new(Mutex::new(vec![Arc::clone(&resolver)]))));
        let mut replica = Replica { resolver, publication, address, shutdown, tasks: vec![source, publisher] };
        replica.published().await?;
        self.resolvers.lock().push(Arc::clone(&replica.resolver));
        Ok(replica)
    }

    async fn bundles(&self) -> Result<Vec<Vec<u8>>> {
        bundles(&self.ns.client()).await
    }

    /// The fingerprints of the Secret's certificates under this key.
    async fn roots(&self, key: &str) -> Result<Vec<Fingerprint>> {
        let secret = self.secrets().get(keys::SECRET_AUTHORITY).await?;
        Ok(roots_of(&secret, key))
    }

    fn host(&self) -> String {
        format!("{}.{}.svc", keys::SERVICE_WEBHOOK, self.ns.name())
    }

    /// Opens new connections to all replicas against the bundle just read, every 100 ms, and sends creations through
    /// the API server, until stopped.
    fn judge(&self, replicas: &[&Replica]) -> Judge {
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
        let creating = (0..4).map(|_| {
            let maps: Api<ConfigMap> = self.ns.api();
            let (calls, failures) = (Arc::clone(&judge.calls), Arc::clone(&judge.failures));
            tokio::spawn(async move {
                let mut tick = tokio::time::interval(Duration::from_millis(20));
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
    async fn published(&mut self) -> Result<()> {
        let published = self.publication.wait_for(|state| *state == Publication::Published);
        let published = tokio::time::timeout(Duration::from_secs(20), published).await;
        published.context("the bundle is published")??;
        Ok(())
    }

    fn root(&self) -> Fingerprint {
        self.resolver.served().borrow().as_ref().unwrap().roots[0]
    }

    async fn serves(&self, root: Fingerprint) -> Result<()> {
        let mut served = self.resolver.served();
        let there = served.wait_for(|served| served.as_ref().is_some_and(|served| served.roots.contains(&root)));
        tokio::time::timeout(Duration::from_secs(20), there).await.context("the root is served")??;
        Ok(())
    }

    async fn stop(self) -> Result<()> {
        self.shutdown.advance(Phase::Closing);
        for task in self.tasks {
            tokio::time::timeout(Duration::from_secs(5), task).await.context("the task ends")??;
        }
        Ok(())
    }
}

struct Judge {
    calls: Arc<AtomicUsize>,
    failures: Arc<Mutex<Vec<String>>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Judge {
    /// The verdict: how many calls there were, none of them failed.
    fn verdict(self) -> Result<usize> {
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
        Ok(calls)
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

fn roots_of(secret: &Secret, key: &str) -> Vec<Fingerprint> {
    let pem = secret.data.as_ref().and_then(|data| data.get(key));
    read_bundle(pem.map(|pem| pem.0.as_slice()).unwrap_or_default())
        .iter()
        .map(|found| found.root.fingerprint)
        .collect()
}

fn fingerprints(bundle: &[u8]) -> Vec<Fingerprint> {
    read_bundle(bundle).iter().map(|found| found.root.fingerprint).collect()
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

/// Long enough that nothing rotates by itself, with a short settling time.
fn calm() -> Lifetimes {
    Lifetimes { settle: 500, ..Lifetimes::new(60_000, 600_000) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c1_replicas_racing_at_first_start_agree_on_one_authority_and_then_send_nothing() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io", "other.kagenti.io"]).await?;
    let from = stage.cp.audit().mark()?;
    let (one, two, three) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()), stage.replica(calm()))?;
    let current = stage.roots("ca.crt").await?;
    assert_eq!([one.root(), two.root(), three.root()], [current[0]; 3]);
    for bundle in stage.bundles().await? {
        assert_eq!(fingerprints(&bundle), current, "one authority in every entry");
    }
    let asked = stage.cp.audit().settled(from).await?.by(stage.account.user());
    let created = asked.clone().verb("create").resource("secrets");
    assert_eq!(created.iter().filter(|request| request.code == Some(201)).count(), 1, "{created}");
    let patched = asked.clone().filter(|request| request.verb == "patch" && request.code == Some(200));
    assert_eq!(patched.len(), 2, "one patch for each configuration: {patched}");

    let quiet = stage.cp.audit().mark()?;
    two.stop().await?;
    let again = stage.replica(calm()).await?;
    assert_eq!(again.root(), current[0]);
    let judge = stage.judge(&[&one, &three, &again]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(judge.verdict()? > 50);
    let asked = stage.cp.audit().settled(quiet).await?.by(stage.account.user());
    assert!(asked.clone().writes().is_empty(), "a restart and steady state write nothing: {asked}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c2_rotating_leaves_every_two_seconds_and_authorities_every_ten_fails_no_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    // Renewal is due at two thirds of life.
    let lifetimes = Lifetimes::new(3_000, 15_000);
    let (one, two, three) =
        tokio::try_join!(stage.replica(lifetimes), stage.replica(lifetimes), stage.replica(lifetimes))?;
    let judge = stage.judge(&[&one, &two, &three]);
    let mut served = one.resolver.served();
    let (mut leaves, mut authorities) = (0, vec![one.root()]);
    let mut overlaps = 0;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        tokio::time::timeout(Duration::from_secs(5), served.changed()).await.context("leaves go on")??;
        leaves += 1;
        let root = served.borrow_and_update().as_ref().unwrap().roots[0];
        if !authorities.contains(&root) {
            let held = fingerprints(&stage.bundles().await?[0]);
            let old = authorities[authorities.len() - 1];
            ensure!(held.contains(&root) && held.contains(&old), "old and new are published together");
            overlaps += 1;
            authorities.push(root);
        }
    }
    let calls = judge.verdict()?;
    ensure!(calls > 1_000, "{calls} calls");
    ensure!(leaves >= 12, "{leaves} leaves in half a minute");
    ensure!(overlaps >= 2, "{overlaps} authorities in half a minute");
    ensure!(fingerprints(&stage.bundles().await?[0]).len() < 8, "expired roots are swept out");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_a_deleted_damaged_or_replaced_secret_fails_no_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let (one, two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let judge = stage.judge(&[&one, &two]);
    let (secrets, name) = (stage.secrets(), keys::SECRET_AUTHORITY);
    let first = one.root();

    // Deleted: the same authority comes back, and its successor takes over with overlap.
    let before = secrets.get(name).await?;
    secrets.delete(name, &DeleteParams::default()).await?;
    let back = wait_for(&secrets, name, |secret: &Secret| secret.metadata.uid != before.metadata.uid).await?;
    assert!([roots_of(&back, "ca.crt"), roots_of(&back, "previous.crt")].concat().contains(&first));
    let promoted = wait_for(&secrets, name, |secret| roots_of(secret, "previous.crt").contains(&first)).await?;
    let second = roots_of(&promoted, "ca.crt")[0];
    assert_ne!(second, first);
    one.serves(second).await?;
    two.serves(second).await?;

    // Damaged: put back as it was.
    for (key, bad) in [("ca.crt", "not a certificate"), ("ca.key", "")] {
        let data = json!({ "data": { key: ByteString(bad.as_bytes().to_vec()) } });
        let damaged = secrets.patch(name, &PatchParams::default(), &Patch::Merge(data)).await?;
        let repaired =
            wait_for(&secrets, name, |s: &Secret| s.metadata.resource_version != damaged.metadata.resource_version);
        assert_eq!(roots_of(&repaired.await?, "ca.crt"), [second], "{key}");
    }

    // Replaced by somebody's good authority: used, once it is trusted.
    let theirs = Authority::new("somebody else")?.pair();
    replace(&secrets, &theirs.certificate, &theirs.key).await?;
    let third = fingerprints(theirs.certificate.as_bytes())[0];
    one.serves(third).await?;
    two.serves(third).await?;

    // Replaced by somebody's bad one: left alone, and serving goes on.
    let refused = replace(&secrets, "garbage", "garbage").await?;
    let mark = stage.cp.audit().mark()?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert!(asked.clone().writes().is_empty(), "{asked}");
    assert_eq!(secrets.get(name).await?.data, refused.data);
    assert_eq!((one.root(), two.root()), (third, third));
    let calls = judge.verdict()?;
    ensure!(calls > 300, "{calls} calls");
    Ok(())
}

/// Puts another content into the Secret, and takes our label away.
async fn replace(secrets: &Api<Secret>, certificate: &str, key: &str) -> Result<Secret> {
    let data = [("ca.crt", certificate), ("ca.key", key)];
    let data = data.map(|(name, text)| (name.to_owned(), ByteString(text.as_bytes().to_vec()))).into();
    let mut known = secrets.get(keys::SECRET_AUTHORITY).await?;
    known.data = Some(data);
    known.metadata.labels = None;
    Ok(secrets.replace(keys::SECRET_AUTHORITY, &PostParams::default(), &known).await?)
}

async fn overwrite(stage: &Stage, bundle: &str) -> Result<()> {
    let patch = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ByteString(bundle.as_bytes().to_vec()) }]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch)?);
    let params = PatchParams { field_manager: Some("cainjector".to_owned()), ..PatchParams::default() };
    stage.mutating().patch(keys::WEBHOOK_CONFIGURATION, &params, &patch).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c6_another_writer_is_answered_once_a_minute_and_an_installer_may_rename_entries() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io", "old.kagenti.io"]).await?;
    let (mut one, two) = tokio::try_join!(stage.replica(calm()), stage.replica(calm()))?;
    let ours = one.root();
    let theirs = Authority::new("cainjector")?.certificate();
    let holds = |object: &MutatingWebhookConfiguration| {
        let hooks = object.webhooks.as_deref().unwrap_or_default();
        let bundle = hooks[0].client_config.ca_bundle.clone().unwrap_or_default();
        fingerprints(&bundle.0).contains(&ours)
    };

    // The first time at once, and what they put in stays.
    overwrite(&stage, &theirs).await?;
    let repaired = wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    let bundle = repaired.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
    assert_eq!(fingerprints(&bundle.0), [ours, fingerprints(theirs.as_bytes())[0]]);
    one.published().await?;

    // The second time within a minute: it waits for the minute, whoever's turn it is.
    let mark = stage.cp.audit().mark()?;
    overwrite(&stage, &theirs).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert!(asked.clone().writes().is_empty(), "{asked}");
    stage.ahead.store(61, Ordering::SeqCst);
    wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    let asked = stage.cp.audit().settled(mark).await?.by(stage.account.user());
    assert_eq!(asked.clone().filter(|request| request.is_write() && request.code == Some(200)).len(), 1, "{asked}");

    // An installer renames one entry, drops nothing else, and is not blocked by what we wrote.
    stage.install(&["inject.kagenti.io", "new.kagenti.io"]).await?;
    let mutating = stage.mutating();
    let renamed = wait_for(&mutating, keys::WEBHOOK_CONFIGURATION, |object| {
        let hooks = object.webhooks.as_deref().unwrap_or_default();
        let trusted = |client: &Option<ByteString>| client.as_ref().is_some_and(|b| fingerprints(&b.0).contains(&ours));
        hooks.iter().all(|hook| trusted(&hook.client_config.ca_bundle))
    });
    let names: Vec<String> = renamed.await?.webhooks.unwrap().into_iter().map(|hook| hook.name).collect();
    assert_eq!(names, ["inject.kagenti.io", "new.kagenti.io"]);

    // A configuration that is deleted and installed again is complete at once.
    stage.remove_configurations().await?;
    stage.install(&["inject.kagenti.io"]).await?;
    wait_for(&stage.mutating(), keys::WEBHOOK_CONFIGURATION, holds).await?;
    assert_eq!(two.root(), ours);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_s_secret_rotates_with_its_authority_without_a_failed_call() -> Result<()> {
    let stage = Stage::set(&["inject.kagenti.io"]).await?;
    let host = stage.host();
    let issue = async |authority: &Authority| -> Result<()> {
        let pair = authority.server("webhook", &[&host])?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "provided" }, "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.certificate() },
        });
        stage.ns.apply(&secret.to_string()).await.map(drop)
    };
    let (old, new) = (Authority::new("old")?, Authority::new("new")?);
    issue(&old).await?;
    let start = async || -> Result<Replica> {
        let config = CertManagerSecretConfig {
            namespace: stage.ns.name().to_owned(),
            name: "provided".to_owned(),
            service: keys::SERVICE_WEBHOOK.to_owned(),
            settle: 500,
        };
        let (resolver, shutdown) = (Resolver::new(), Shutdown::new());
        let client = stage.account.client().await?;
        let (source, publisher) = CertManagerSecret::new(&client, config, Arc::clone(&resolver), stage.context());
        let source = tokio::spawn(source.run(shutdown.clone()));
        stage.running(resolver, shutdown, source, publisher).await
    };
    let (one, two) = tokio::try_join!(start(), start())?;
    let judge = stage.judge(&[&one, &two]);
    let before = one.resolver.served().borrow().clone().unwrap().fingerprint;
    issue(&old).await?;
    let mut served = one.resolver.served();
    let renewed = served.wait_for(|served| served.as_ref().is_some_and(|served| served.fingerprint != before));
    drop(tokio::time::timeout(Duration::from_secs(5), renewed).await.context("within five seconds")??);
    issue(&new).await?;
    let root = fingerprints(new.certificate().as_bytes())[0];
    one.serves(root).await?;
    two.serves(root).await?;
    stage.secrets().delete("provided", &DeleteParams::default()).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let calls = judge.verdict()?;
    ensure!(calls > 50, "{calls} calls");
    Ok(())
}
