//! What follows certificates when the cluster goes back to a backup, against an API server in memory, with the clock paused.
//!
//! Versions that were given before are given again, to other things: each follower believes what is there, however low its version.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::Future;
use prometheus_client::registry::Registry;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::authority::content;
use super::authority::mint::SigningAuthority;
use super::authority::plan::{Authority as _, Generations};
use super::*;
use crate::cluster::watch::Watching;
use crate::domain::keys;
use crate::server::shutdown::Shutdown;
use crate::server::testing::lines::Lines;
use crate::server::testing::server::Server;

const NAMESPACE: &str = "kagenti-system";
const NOW: Millis = 1_795_000_000_000;
/// What a cache may take to follow the truth.
const LIMIT: Duration = Duration::from_secs(30);

/// A task that ends with the test.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn running(task: impl Future<Output = ()> + Send + 'static) -> Running {
    Running(tokio::spawn(task))
}

fn context(watching: &Watching) -> Context {
    let clock = Arc::new(|| SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.unsigned_abs()));
    let metrics = CertificateMetrics::register(&mut Registry::default());
    Context::new(clock, metrics, Arc::new(|_| {})).watching(watching.clone())
}

/// Waits until `so`; how long that took.
async fn until(what: &str, so: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

/// The first state is followed, then the second one, and then, from a backup, the first one again; and what comes after that.
async fn there_and_back(server: &Server, name: &str, states: [Value; 2], is: impl Fn(usize) -> bool) {
    let lines = Lines::default();
    let _guard = lines.collect();
    let [first, second] = states;
    server.put(name, first);
    let backup = server.backup();
    until("the first", || is(0)).await;
    server.put(name, second.clone());
    until("the second", || is(1)).await;
    server.pass(1000);
    // The positions are where the last bookmarks were.
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.restore(backup, true);
    let took = until("the first, restored", || is(0)).await;
    assert!(took < LIMIT, "after {took:?}");
    assert_eq!(lines.text().matches("the cluster went back").count(), 1, "{}", lines.text());
    server.put(name, second);
    let took = until("the second, under a version that was given before", || is(1)).await;
    assert!(took < LIMIT, "after {took:?}");
}

#[tokio::test(start_paused = true)]
async fn mend_03_the_authority_follows_a_secret_that_went_back() {
    let (server, watching, resolver) = (Server::new("Secret"), Watching::default(), Resolver::new());
    let [old, new] = [(); 2].map(|()| SigningAuthority::found(&Lifetimes::default(), NOW).unwrap());
    let roots = [&old, &new].map(|authority| authority.root().fingerprint);
    let secret = |generations: &Generations<SigningAuthority>| {
        serde_json::to_value(content::write(None, NAMESPACE, generations)).unwrap()
    };
    let first = secret(&Generations { current: old.clone(), next: None, previous: Vec::new() });
    let second = secret(&Generations { current: new, next: None, previous: vec![old.certificate().clone()] });
    let config = SelfManagedConfig {
        namespace: NAMESPACE.into(),
        service: keys::SERVICE_WEBHOOK.into(),
        extra_names: Vec::new(),
        lifetimes: Lifetimes::default(),
    };
    let (source, publisher) = SelfManaged::new(&server.client(), config, resolver, context(&watching));
    let wanted = publisher.wanted().subscribe();
    let _running = running(source.run(Shutdown::new()));
    let wants = |root: Fingerprint| wanted.borrow().roots.iter().any(|wanted| wanted.root.fingerprint == root);
    there_and_back(&server, keys::SECRET_AUTHORITY, [first, second], |state| {
        wants(roots[0]) && wants(roots[1]) == (state == 1)
    })
    .await;
    assert_eq!(watching.history.epoch(), 1);
}

#[tokio::test(start_paused = true)]
async fn mend_03_a_secret_of_cert_manager_that_went_back_is_served_as_it_is() {
    let (server, watching, resolver) = (Server::new("Secret"), Watching::default(), Resolver::new());
    let issued = [(); 2].map(|()| {
        let key = KeyPair::generate().unwrap();
        let host = format!("{}.{NAMESPACE}.svc", keys::SERVICE_WEBHOOK);
        let leaf = CertificateParams::new(vec![host]).unwrap().self_signed(&key).unwrap();
        let data = json!({"tls.crt": STANDARD.encode(leaf.pem()), "tls.key": STANDARD.encode(key.serialize_pem())});
        (json!({"apiVersion": "v1", "kind": "Secret", "data": data}), Fingerprint::of(leaf.der()))
    });
    let config = CertManagerSecretConfig {
        namespace: NAMESPACE.into(),
        name: "pair".into(),
        service: keys::SERVICE_WEBHOOK.into(),
        settle: 0,
    };
    let (source, _publisher) =
        CertManagerSecret::new(&server.client(), config, Arc::clone(&resolver), context(&watching));
    let _running = running(source.run(Shutdown::new()));
    let served = resolver.served();
    let leaves = issued.each_ref().map(|(_, leaf)| *leaf);
    let is = |state: usize| served.borrow().as_ref().is_some_and(|served| served.fingerprint == leaves[state]);
    there_and_back(&server, "pair", issued.map(|(secret, _)| secret), is).await;
}

/// Both kinds are the same object here: each watch of the publisher follows it for itself.
#[tokio::test(start_paused = true)]
async fn mend_03_the_publisher_sees_bundles_that_went_back() {
    let (server, watching) = (Server::new("WebhookConfiguration"), Watching::default());
    let authorities = [(); 2].map(|()| SigningAuthority::found(&Lifetimes::default(), NOW).unwrap());
    let roots = authorities.each_ref().map(|authority| authority.root().fingerprint);
    let configurations = authorities.map(|authority| {
        let bundle = STANDARD.encode(write_bundle([authority.certificate()]));
        let client = json!({"url": "https://drawbridge.example.com/", "caBundle": bundle});
        json!({"webhooks": [{"name": "a.example.com", "clientConfig": client, "sideEffects": "None",
            "admissionReviewVersions": ["v1"]}]})
    });
    let service = (keys::SERVICE_WEBHOOK.to_owned(), NAMESPACE.to_owned());
    let publisher = Publisher::new(server.client(), service, context(&watching));
    let observed = publisher.observed();
    let _running = running(publisher.run(Shutdown::new()));
    let is = |state: usize| {
        let observed = observed.borrow();
        let holds = observed.entries.iter().all(|entry| entry.iter().eq([&roots[state]]));
        observed.synced && observed.entries.len() == 2 && holds
    };
    there_and_back(&server, keys::WEBHOOK_CONFIGURATION, configurations, is).await;
}
