//! The snapshot: when it first appears, and what a change costs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Teller, change, namespace, service_account, text};
use crate::cluster::keeper::Keeps;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::config::snapshot::{Published, Snapshot};
use crate::config::view::Ownership;
use crate::server::config_watch::Settings;
use crate::server::health::Readiness;
use crate::server::snapshots::SnapshotCell;
use crate::server::stores::metrics::TextMetrics;
use crate::server::stores::readers::{Readers, parse};
use crate::server::stores::rebuild::{Rebuild, Server, Shared};
use crate::store::{Change, Kind};

struct Bench {
    shared: Arc<Shared>,
    teller: Teller,
    cell: SnapshotCell,
    settings: watch::Sender<Arc<Settings>>,
    published: watch::Receiver<Option<Arc<Published>>>,
    readiness: Readiness,
    task: tokio::task::JoinHandle<()>,
}

fn settings(platform: &str) -> Arc<Settings> {
    Arc::new(Settings { platform: Platform::parse(platform, "config.yaml").unwrap(), gates: Gates::default() })
}

impl Bench {
    fn start(lists: usize) -> Self {
        let shared = Arc::new(Shared::new(lists, "own".into()));
        let teller = Teller::new(&shared, Keeps::Slim);
        let (cell, readiness) = (SnapshotCell::new(), Readiness::new());
        let (sender, receiver) = watch::channel(settings("spire: auto\n"));
        let (published, receives) = watch::channel(None);
        let rebuild = Rebuild {
            shared: shared.clone(),
            keeper: teller.keeper.clone(),
            settings: receiver,
            operator_namespace: "own".into(),
            cell: cell.clone(),
            published,
            latch: Some(readiness.latch("caches")),
            metrics: TextMetrics::default(),
        };
        let readers = Readers { shared: shared.clone(), ask: Arc::new(|_| Box::pin(async { None })), parse: parse() };
        let task = tokio::spawn(async move {
            tokio::join!(rebuild.run(), readers.run());
        });
        Self { shared, teller, cell, settings: sender, published: receives, readiness, task }
    }

    fn apply(&self, change: &Change) {
        self.teller.tell(change);
    }

    /// The snapshot 10 ms later: nobody waits longer for a change.
    async fn soon(&self) -> Option<Arc<Snapshot>> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.cell.load()
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_snapshot_waits_for_every_list_and_the_version() {
    let bench = Bench::start(2);
    bench.apply(&namespace("a", "true"));
    bench.shared.listed();
    assert!(bench.soon().await.is_none());
    bench.shared.listed();
    assert!(bench.soon().await.is_none() && !bench.readiness.ready());
    bench.shared.server(Server { version: (1, 36), openshift: false });
    let snapshot = bench.soon().await.unwrap();
    assert!(bench.readiness.ready());
    assert_eq!((snapshot.view.server_version, snapshot.view.namespaces.len()), ((1, 36), 1));
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn only_what_changed_is_resolved_anew() {
    let bench = Bench::start(0);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    for name in ["a", "b", "own"] {
        bench.apply(&namespace(name, "true"));
    }
    let before = bench.soon().await.unwrap();
    bench.apply(&service_account("a", "x", true));
    bench.apply(&service_account("own", "y", false));
    let after = bench.soon().await.unwrap();
    assert_eq!(after.namespace("a").unwrap().service_accounts["x"], Ownership::Ours);
    assert!(Arc::ptr_eq(after.namespace("b").unwrap(), before.namespace("b").unwrap()));

    bench.apply(&change(Kind::CsiDriver, serde_json::json!({"metadata": {"name": "csi.spiffe.io"}})));
    let driven = bench.soon().await.unwrap();
    assert!(driven.view.spiffe_driver && !after.view.spiffe_driver);
    assert!(Arc::ptr_eq(driven.namespace("a").unwrap(), after.namespace("a").unwrap()));
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn settings_and_the_template_of_our_namespace_reach_every_namespace() {
    let bench = Bench::start(0);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    for name in ["a", "own"] {
        bench.apply(&namespace(name, "true"));
    }
    let mode = |snapshot: &Snapshot| snapshot.namespace("a").unwrap().resolved.mode.value.as_str();
    assert_eq!(mode(&bench.soon().await.unwrap()), "envoy-sidecar");
    let template = |yaml: &str| text("own", "authbridge-runtime-config", ("config.yaml", yaml), serde_json::json!({}));
    bench.apply(&template("mode: proxy-sidecar\n"));
    assert_eq!(mode(&bench.soon().await.unwrap()), "proxy-sidecar");
    bench.apply(&template("mode: [\n"));
    assert_eq!(mode(&bench.soon().await.unwrap()), "proxy-sidecar", "unreadable: the last good content");
    bench.settings.send_replace(settings("requireNamespaceLabel: true\nbuilds: {insecureGit: true}\n"));
    let snapshot = bench.soon().await.unwrap();
    assert!(snapshot.require_namespace_label && mode(&snapshot) == "proxy-sidecar");
    assert!(snapshot.builds.settings.pipelines.insecure_git && !snapshot.builds.settings.pipelines.openshift);
    assert_eq!(snapshot.builds.settings.pipelines.operator_namespace, "own");
    bench.shared.server(Server { version: (1, 36), openshift: true });
    assert!(bench.soon().await.unwrap().builds.settings.pipelines.openshift);
    bench.task.abort();
}

/// A ConfigMap that cannot be read holds changes back only where nobody can know what it said before: from the start on.
#[tokio::test(start_paused = true)]
async fn what_a_namespace_said_before_is_unknown_only_at_the_start() {
    let bench = Bench::start(0);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    let broken = |namespace: &str| {
        text(namespace, "authbridge-runtime-config", ("config.yaml", "mode: ["), serde_json::json!({}))
    };
    let unread = |snapshot: &Snapshot, name: &str| snapshot.namespace(name).unwrap().resolved.unread;
    for name in ["broken", "empty"] {
        bench.apply(&namespace(name, "true"));
    }
    bench.apply(&broken("broken"));
    let start = bench.soon().await.unwrap();
    assert!(unread(&start, "broken") && !unread(&start, "empty"));
    bench.apply(&broken("empty"));
    bench.apply(&broken("new"));
    bench.apply(&namespace("new", "true"));
    bench.settings.send_replace(settings("requireNamespaceLabel: true\n"));
    let later = bench.soon().await.unwrap();
    assert_eq!(["broken", "empty", "new"].map(|name| unread(&later, name)), [true, false, false]);
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn new_settings_spread_for_as_long_as_they_say_and_a_comment_does_not() {
    let bench = Bench::start(0);
    let spreading = || bench.published.borrow().as_ref().is_some_and(|published| published.spreading);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    bench.soon().await.unwrap();
    assert!(spreading(), "what a process starts with may be as new as the process");
    tokio::time::sleep(Duration::from_secs(120)).await;
    bench.soon().await.unwrap();
    assert!(!spreading());
    bench.settings.send_replace(settings("spire: auto # as before\n"));
    bench.soon().await.unwrap();
    assert!(!spreading());
    bench.settings.send_replace(settings("spire: disabled\nrollout: {delaySeconds: 60}\n"));
    bench.soon().await.unwrap();
    assert!(spreading());
    tokio::time::sleep(Duration::from_secs(59)).await;
    // Others' changes neither end nor prolong it.
    bench.apply(&namespace("late", "true"));
    bench.soon().await.unwrap();
    assert!(spreading());
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.soon().await.unwrap();
    assert!(!spreading(), "it ends by itself");
    bench.settings.send_replace(settings("rollout: {delaySeconds: 0}\n"));
    bench.soon().await.unwrap();
    assert!(!spreading());
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_went_away_counts_for_hashes_when_it_has_been_gone_for_five_minutes() {
    let bench = Bench::start(0);
    let driver = change(Kind::CsiDriver, serde_json::json!({"metadata": {"name": "csi.spiffe.io"}}));
    bench.apply(&driver);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    let first = bench.soon().await.unwrap();
    let counts = || {
        let published = bench.published.borrow().clone().unwrap();
        (published.snapshot.view.spiffe_driver, published.settled.view.spiffe_driver)
    };
    assert!(first.view.spiffe_driver && counts() == (true, true));
    bench.apply(&super::gone(driver.clone()));
    assert!(!bench.soon().await.unwrap().view.spiffe_driver, "admission knows at once");
    assert_eq!(counts(), (false, true));
    tokio::time::sleep(Duration::from_secs(200)).await;
    bench.apply(&driver);
    bench.soon().await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    assert_eq!(counts(), (true, true), "an upgrade of SPIRE");
    bench.apply(&super::gone(driver));
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(counts(), (false, true));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counts(), (false, false), "without any other change");
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn templates_and_steps_reach_the_snapshot_and_nothing_else_of_it() {
    let bench = Bench::start(0);
    bench.shared.server(Server { version: (1, 36), openshift: false });
    bench.apply(&namespace("a", "true"));
    let before = bench.soon().await.unwrap();
    let template = |text: &str| {
        let data = serde_json::json!({"template.json": text});
        let metadata = serde_json::json!({"name": "pipeline-template-dev", "namespace": "a"});
        change(Kind::ConfigMap, serde_json::json!({"metadata": metadata, "data": data}))
    };
    bench.apply(&template(r#"{"name": "t", "steps": [{"name": "a", "configMap": "b"}]}"#));
    let after = bench.soon().await.unwrap();
    assert!(after.builds.view.template("a", "dev").is_some_and(|entry| entry.template.is_ok()));
    assert!(Arc::ptr_eq(before.namespace("a").unwrap(), after.namespace("a").unwrap()));
    bench.apply(&template("{"));
    let broken = bench.soon().await.unwrap();
    assert!(
        broken.builds.view.template("a", "dev").is_some_and(|entry| entry.template.is_err()),
        "nothing stale serves"
    );
    bench.task.abort();
}
