//! The snapshot as its keeper is told, and the loop against an API server in memory.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::store::Kind;
use crate::store::decode::change_of;

fn change(kind: Kind, object: Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

fn gone(mut change: Change) -> Change {
    change.now = None;
    change
}

fn namespace(name: &str, enabled: &str) -> Change {
    change(Kind::Namespace, json!({"metadata": {"name": name, "labels": {"kagenti-enabled": enabled, "x": "y"}}}))
}

/// A ConfigMap with a text under `key`; `labels` as JSON.
fn text(namespace: &str, name: &str, (key, text): (&str, &str), labels: Value) -> Change {
    let metadata = json!({"name": name, "namespace": namespace, "labels": labels, "resourceVersion": "1"});
    change(Kind::ConfigMap, json!({"metadata": metadata, "data": {key: text}}))
}

fn defaults(namespace: &str, name: &str, yaml: &str) -> Change {
    text(namespace, name, ("config.yaml", yaml), json!({"kagenti.io/defaults": "true"}))
}

fn service_account(namespace: &str, name: &str, ours: bool) -> Change {
    let labels = if ours { json!({"kagenti.io/managed-by": "webhook"}) } else { json!({}) };
    change(Kind::ServiceAccount, json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}}))
}

/// Tells a keeper of changes, each later than the one before, as the watches do; the snapshot follows it.
struct Teller {
    keeper: Arc<Keeper>,
    versions: AtomicU64,
}

impl Teller {
    fn new(shared: &Arc<Shared>, keeps: Keeps) -> Self {
        let keeper = Arc::new(Keeper::new("own", keeps));
        keeper.join(Box::new(ToldSnapshot::new(shared.clone())));
        Self { keeper, versions: AtomicU64::new(1) }
    }

    fn tell(&self, change: &Change) {
        let version = self.versions.fetch_add(1, Ordering::Relaxed);
        self.keeper.apply(0, &Change { version, ..change.clone() }, Duration::ZERO);
    }
}

#[test]
fn versions_are_read_as_clouds_write_them() {
    assert_eq!(parse_version("1", "36"), Some((1, 36)));
    assert_eq!(parse_version("1", "34+"), Some((1, 34)));
    assert_eq!(parse_version("1", ""), None);
    assert_eq!(parse_version("", "$Format"), None);
}

/// The outlet of a watch of Agents in one of several namespaces, which have one room.
fn outlet(room: &Arc<Mutex<Room>>, at: usize) -> Outlet {
    let source = *SOURCES.iter().find(|source| source.kind == Kind::Agent).unwrap();
    let metrics = WatchMetrics::default();
    Outlet {
        source,
        at,
        reaches: Arc::new(Reaches::new([source.kind; 2].into_iter(), metrics.clone())),
        shared: Arc::new(Shared::new(0, "own".into())),
        keeper: Arc::new(Keeper::new("own", Keeps::Projections)),
        current: None,
        missing: Arc::default(),
        reconnected: Arc::new(Notify::new()),
        metrics,
        room: Some(room.clone()),
        reading_anew: ReadingAnew::default(),
        pages: None,
    }
}

/// Where namespaces are listed, each has a watch of its own; the bytes are those of all.
#[tokio::test(start_paused = true)]
async fn room_that_one_namespace_leaves_is_for_the_watches_of_the_others() {
    let room = Arc::default();
    let (mut one, mut other) = (outlet(&room, 0), outlet(&room, 1));
    // 64 KiB of text, and some megabytes of a tree.
    let wide = json!({"a": (0..6_000).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let agent = |namespace: &str, name: &str, spec: &Value| {
        let metadata = json!({"namespace": namespace, "name": name, "uid": name, "resourceVersion": "1"});
        change(Kind::Agent, json!({"metadata": metadata, "spec": spec}))
    };
    let over = |change: &Change| change.now.as_ref().and_then(|now| now.what.over());
    let mut count = 0;
    while over(&one.admitted(agent("one", &format!("a{count}"), &wide))).is_none() {
        count += 1;
        assert!(count < 100, "there is a bound");
    }
    while over(&other.admitted(agent("other", &format!("a{count}"), &wide))).is_none() {
        count += 1;
        assert!(count < 100, "there is a bound");
    }
    assert!(!one.reads_anew() && !other.reads_anew(), "nobody has left room");
    one.admitted(gone(agent("one", "a0", &wide)));
    assert!(one.reads_anew() && other.reads_anew());
    assert!(!one.reads_anew() && !other.reads_anew(), "once");
    one.admitted(gone(agent("one", "a1", &wide)));
    assert!(!other.reads_anew(), "not so soon");
    tokio::time::advance(READ_ANEW).await;
    assert!(one.reads_anew() && other.reads_anew());
}

/// What all kinds share is left by any of them, and is for the watches of those of which somebody waits for it.
#[tokio::test(start_paused = true)]
async fn room_that_one_kind_leaves_is_for_the_watches_of_the_others() {
    let account = Arc::<Mutex<Account>>::default();
    let kinds = [Kind::Agent, Kind::AgentBuild, Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];
    let room = || Arc::new(Mutex::new(Room::sharing(account.clone())));
    let mut outlets = kinds.map(|_| outlet(&room(), 0));
    let wide = json!({"a": (0..6_000).map(|_| json!({"b": 1})).collect::<Vec<_>>()});
    let large = |kind: Kind| {
        let metadata = json!({"namespace": "n", "name": "a0", "uid": "a", "resourceVersion": "1"});
        change(kind, json!({"metadata": metadata, "spec": wide}))
    };
    for (kind, outlet) in kinds.into_iter().zip(&mut outlets) {
        let first = large(kind);
        let mut all =
            (0..100).map(|at| Change { key: crate::store::Key::new("n", &format!("a{at}")), ..first.clone() });
        let left_out = |one: Change| outlet.admitted(one).now.is_some_and(|now| now.what.over().is_some());
        assert!(all.any(left_out), "{kind:?}: there is a bound");
    }
    assert!(outlets.iter_mut().all(|outlet| !outlet.reads_anew()), "nobody has left room");
    outlets[1].admitted(gone(large(Kind::AgentBuild)));
    let read: Vec<_> = outlets.iter_mut().map(Outlet::reads_anew).collect();
    // Of Agents as many are kept as of one kind may be, whatever the others take.
    assert_eq!(read, [false, true, true, true, true]);
    assert!(outlets.iter_mut().all(|outlet| !outlet.reads_anew()), "once");
}

/// Nothing is answered before, and one line at the start is soon far up: the right may be missing, or a proxy in the way, for as long as nobody looks.
#[tokio::test(start_paused = true)]
async fn d7_a_version_that_cannot_be_read_is_told_once_a_minute() {
    let refuses = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::ready(http::Response::builder().status(403).body(kube::client::Body::empty()))
    });
    let (client, shared) = (Client::new(refuses, "default"), Arc::new(Shared::new(0, "own".into())));
    let log = crate::server::testing::lines::Lines::default();
    let guard = log.collect();
    let asking = tokio::time::timeout(Duration::from_secs(200), server_version(client, shared, Arc::default()));
    assert!(asking.await.is_err(), "it is asked for as long as it takes");
    drop(guard);
    let text = log.text();
    let lines = text.lines().filter(|line| line.contains("cannot be read") && line.contains("403")).count();
    assert!((3..=4).contains(&lines), "{text}");
}

mod faults;
mod protocol;
mod readers;
mod snapshot;
