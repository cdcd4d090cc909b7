//! Sources that come, change, break and go, against an API server in memory and files, with the clock paused.

#![allow(clippy::unwrap_used, reason = "a test says what is wrong by panicking")]

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SanType};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::*;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::crypto::Trust;
use crate::server::testing::lines::Lines;
use crate::server::testing::server::Server;

const START: u64 = 1_800_000_000;

/// An authority of that trust domain, in PEM.
fn authority(domain: &str) -> String {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.subject_alt_names = vec![SanType::URI(format!("spiffe://{domain}").try_into().unwrap())];
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

fn settings(cards: &str) -> Arc<Settings> {
    let platform = Platform::parse(&format!("cards: {cards}"), "config.yaml").unwrap();
    Arc::new(Settings { platform, gates: Gates::default() })
}

const CONFIG_MAP: &str = "{trustBundle: {configMap: {name: spire-bundle, namespace: spire, key: bundle.crt}}}";

struct Bench {
    server: Server,
    settings: watch::Sender<Arc<Settings>>,
    bundles: watch::Receiver<Arc<Bundles>>,
    metrics: BundleMetrics,
    began: Instant,
    task: JoinHandle<()>,
}

impl Bench {
    fn new(cards: &str) -> Self {
        let server = Server::new("ConfigMap");
        let (sender, receiver) = watch::channel(settings(cards));
        let (began, metrics) = (Instant::now(), BundleMetrics::default());
        let options = Options {
            client: server.client(),
            settings: receiver,
            watching: Watching::default(),
            period: Duration::from_secs(2),
            clock: Arc::new(move || UNIX_EPOCH + Duration::from_secs(START) + began.elapsed()),
            metrics: metrics.clone(),
        };
        let (bundles, task) = follow(options);
        let task = tokio::spawn(task.run());
        Self { server, settings: sender, bundles, metrics, began, task }
    }

    fn put(&self, text: &str) {
        self.server.put("spire-bundle", json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"bundle.crt": text}}));
    }

    /// The authorities once `good` holds of them.
    async fn until(&mut self, good: impl Fn(&Bundles) -> bool) -> Arc<Bundles> {
        let found = timeout(Duration::from_secs(120), self.bundles.wait_for(|bundles| good(bundles))).await;
        found.expect("within two minutes").unwrap().clone()
    }

    /// Lets that time pass; nothing is sent meanwhile.
    async fn quiet(&mut self, seconds: u64) {
        self.bundles.mark_unchanged();
        assert!(timeout(Duration::from_secs(seconds), self.bundles.changed()).await.is_err(), "something changed");
    }

    fn age(&self) -> Option<i64> {
        self.metrics.age(UNIX_EPOCH + Duration::from_secs(START) + self.began.elapsed())
    }

    fn failures(&self, reason: &'static str) -> u64 {
        self.metrics.failures(reason)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn authorities(bundles: &Bundles) -> usize {
    match bundles.trust() {
        Trust::NeverLoaded => 0,
        Trust::Loaded { bundle, .. } => bundle.len(),
    }
}

#[tokio::test(start_paused = true)]
async fn cases_109_to_111_a_config_map_comes_changes_breaks_and_goes() {
    let lines = Lines::default();
    let _guard = lines.collect();
    let mut bench = Bench::new(CONFIG_MAP);
    let none = bench.until(Bundles::configured).await;
    assert!(matches!(none.trust(), Trust::NeverLoaded) && bench.age().is_none(), "case 109: nothing can be said");
    bench.quiet(10).await;
    assert_eq!(bench.failures("configmap_not_found"), 1, "once");
    let (first, second) = (authority("example.org"), authority("example.org"));
    bench.put(&first);
    let one = bench.until(|bundles| authorities(bundles) == 1).await;
    // A private key beside it changes nothing in what is trusted.
    bench.put(&format!("{first}\n-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
    bench.quiet(60).await;
    bench.put(&second);
    let other = bench.until(|bundles| bundles.version() != one.version()).await;
    assert_eq!(authorities(&other), 1, "case 111: the old one counts no longer");
    for (text, reason) in [("", "empty_bundle"), ("canary", "invalid_json"), (r#"{"keys":[]}"#, "empty_bundle")] {
        let before = bench.failures(reason);
        bench.put(text);
        bench.quiet(30).await;
        assert_eq!(bench.failures(reason), before + 1, "{text}");
    }
    bench.server.delete("spire-bundle");
    bench.quiet(3600).await;
    assert_eq!(bench.failures("configmap_not_found"), 2);
    assert_eq!(authorities(&bench.bundles.borrow()), 1, "case 110: the last good stays");
    assert!(bench.age().unwrap() >= 3690, "and grows old: {:?}", bench.age());
    assert!(!lines.text().contains("canary"), "{}", lines.text());
    bench.put(&second);
    bench.quiet(10).await;
    assert!(bench.age().unwrap() <= 10, "{:?}", bench.age());
}

/// A12: counted from when it was last readable, not from when it last changed; and never while the API server is silent.
#[tokio::test(start_paused = true)]
async fn an_unchanged_bundle_stays_young_while_the_watch_hears_and_grows_old_while_it_does_not() {
    let mut bench = Bench::new(CONFIG_MAP);
    bench.put(&authority("example.org"));
    bench.until(|bundles| authorities(bundles) == 1).await;
    for _ in 0..40 {
        bench.quiet(90).await;
        assert!(bench.age().unwrap() <= 30, "after an hour of silence: {:?}", bench.age());
    }
    bench.server.breaks(&[http::Method::GET]);
    bench.server.restart();
    bench.quiet(600).await;
    assert!(bench.age().unwrap() >= 560, "{:?}", bench.age());
    assert_eq!(bench.failures("refresh_failed"), 1);
    bench.server.breaks(&[]);
    bench.quiet(60).await;
    assert!(bench.age().unwrap() <= 40, "{:?}", bench.age());
}

#[tokio::test(start_paused = true)]
async fn a_file_is_followed_beside_the_config_map_and_a_source_that_is_too_old_leaves_the_other_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("bundle.pem");
    let (of_file, of_map) = (authority("a.org"), authority("b.org"));
    let map = "configMap: {name: spire-bundle, namespace: spire, key: bundle.crt}";
    let both = format!("{{trustBundle: {{file: {}, {map}, maxAgeSeconds: 600}}}}", path.display());
    let mut bench = Bench::new(&both);
    bench.until(Bundles::configured).await;
    std::fs::write(&path, &of_file).unwrap();
    bench.until(|bundles| authorities(bundles) == 1).await;
    bench.put(&of_map);
    let joined = bench.until(|bundles| authorities(bundles) == 2).await;
    std::fs::remove_file(&path).unwrap();
    bench.quiet(500).await;
    assert_eq!(authorities(&bench.bundles.borrow()), 2);
    let map_alone = bench.until(|bundles| authorities(bundles) == 1).await;
    let age = bench.age().unwrap();
    assert!(age <= 30 && map_alone.version() != joined.version(), "{age}");
    std::fs::write(&path, &of_file).unwrap();
    let again = bench.until(|bundles| authorities(bundles) == 2).await;
    assert_eq!(again.version(), joined.version());
    // One that is larger than anything that is read.
    std::fs::write(&path, " ".repeat(limits::BUNDLE_BYTES + 1)).unwrap();
    bench.quiet(10).await;
    assert_eq!(bench.failures("too_large"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_the_settings_no_longer_name_counts_no_longer_and_what_they_still_name_stays() {
    let mut bench = Bench::new("{}");
    bench.put(&authority("example.org"));
    bench.quiet(60).await;
    assert!(!bench.bundles.borrow().configured() && bench.server.asked().is_empty(), "nobody asked");
    bench.settings.send_replace(settings(CONFIG_MAP));
    let one = bench.until(|bundles| authorities(bundles) == 1).await;
    let longer = CONFIG_MAP.replace("}}}", "}, maxAgeSeconds: 60}}");
    bench.settings.send_replace(settings(&longer));
    bench.quiet(60).await;
    let elsewhere = longer.replace("maxAgeSeconds", "trustDomain: other.org, maxAgeSeconds");
    bench.settings.send_replace(settings(&elsewhere));
    let other = bench.until(|bundles| bundles.version() != one.version() && authorities(bundles) == 1).await;
    let Trust::Loaded { bundle, .. } = other.trust() else { panic!("not loaded") };
    assert_eq!(bundle.domains().next().unwrap().as_str(), "other.org", "the setting names whose it is");
    bench.settings.send_replace(settings("{}"));
    let none = bench.until(|bundles| !bundles.configured()).await;
    assert!(matches!(none.trust(), Trust::NeverLoaded) && bench.age().is_none());
}
