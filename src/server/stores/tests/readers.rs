//! The readers: what does not end, what cannot be had, and what was overtaken.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use super::{Teller, change, defaults, namespace, text};
use crate::cluster::keeper::Keeps;
use crate::config::gates::Gates;
use crate::config::schema::Platform;
use crate::config::snapshot::{Published, Snapshot};
use crate::domain::reason::Reason;
use crate::server::config_watch::Settings;
use crate::server::health::Readiness;
use crate::server::snapshots::SnapshotCell;
use crate::server::stores::metrics::TextMetrics;
use crate::server::stores::readers::{Ask, Parse, Readers, ask, parse};
use crate::server::stores::rebuild::{Rebuild, Server, Shared};
use crate::server::stores::watch::resource;
use crate::store::{Change, ConfigMapSeen, Key, Kind, What};

/// Long enough for the slowest machine; ends by what happens.
const LONG: Duration = Duration::from_secs(120);

struct Bench {
    shared: Arc<Shared>,
    teller: Teller,
    published: watch::Receiver<Option<Arc<Published>>>,
    readiness: Readiness,
    _settings: watch::Sender<Arc<Settings>>,
}

fn platform() -> Platform {
    Platform::parse("namespaceOverrides: [spire]\n", "config.yaml").unwrap()
}

impl Bench {
    fn start(ask: Ask, parse: Parse) -> Self {
        let (shared, readiness) = (Arc::new(Shared::new(0, "own".into())), Readiness::new());
        let teller = Teller::new(&shared, Keeps::Projections);
        let (sender, settings) = watch::channel(Arc::new(Settings { platform: platform(), gates: Gates::default() }));
        let (published, receives) = watch::channel(None);
        let rebuild = Rebuild {
            shared: shared.clone(),
            keeper: teller.keeper.clone(),
            settings,
            operator_namespace: "own".into(),
            cell: SnapshotCell::new(),
            published,
            latch: Some(readiness.latch("caches")),
            metrics: TextMetrics::default(),
        };
        tokio::spawn(rebuild.run());
        tokio::spawn(Readers { shared: shared.clone(), ask, parse }.run());
        Self { shared, teller, published: receives, readiness, _settings: sender }
    }

    fn apply(&self, change: &Change) {
        self.teller.tell(change);
    }

    /// The first snapshot of which that is so.
    async fn until(&self, what: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
        let mut published = self.published.clone();
        let found = published.wait_for(|one| one.as_ref().is_some_and(|one| what(&one.snapshot)));
        let found = tokio::time::timeout(LONG, found).await.expect("within two minutes").unwrap();
        found.as_ref().unwrap().snapshot.clone()
    }
}

fn nobody() -> Ask {
    Arc::new(|_| Box::pin(async { None }))
}

fn server() -> Server {
    Server { version: (1, 36), openshift: false }
}

fn spire(snapshot: &Snapshot, name: &str) -> Option<&'static str> {
    Some(snapshot.namespace(name)?.resolved.spire.value.as_str())
}

fn is_pending(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.namespace(name).is_some_and(|view| view.resolved.pending)
}

/// The readers of the whole process are two: one hangs for ever, and everything else goes on, readiness first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_01_a_text_whose_reading_does_not_end_holds_up_nobody_else() {
    let (end, ends) = mpsc::channel::<()>();
    let (ends, real) = (Mutex::new(ends), parse());
    let hanging: Parse = Arc::new(move |job, data| {
        if &*job.key.namespace == "hostile" {
            let _ = ends.lock().recv();
        }
        real(job, data)
    });
    let bench = Bench::start(nobody(), hanging);
    for name in ["hostile", "team"] {
        bench.apply(&namespace(name, "true"));
    }
    for name in ["a", "b", "c"] {
        bench.apply(&defaults("hostile", name, "spire: disabled\n"));
    }
    bench.apply(&defaults("team", "a", "spire: disabled\n"));
    bench.shared.server(server());
    let first = bench.until(|snapshot| spire(snapshot, "team") == Some("disabled")).await;
    assert!(is_pending(&first, "hostile") && !is_pending(&first, "team"));
    // It is said right after the snapshot is there.
    let ready = async {
        while !bench.readiness.ready() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(120), ready).await.expect("readiness waits for no text");
    bench.apply(&defaults("team", "a", "spire: required\n"));
    let second = bench.until(|snapshot| spire(snapshot, "team") == Some("required")).await;
    assert!(is_pending(&second, "hostile"));
    bench.apply(&namespace("late", "true"));
    bench.until(|snapshot| snapshot.namespace("late").is_some()).await;
    drop(end);
    bench.until(|snapshot| !is_pending(snapshot, "hostile") && spire(snapshot, "hostile") == Some("disabled")).await;
}

/// A text that is changed ten times while another is read is read once more, not ten times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_01_what_was_overtaken_is_not_read() {
    let (step, steps) = mpsc::channel::<()>();
    let (count, began) = (Arc::new(AtomicUsize::new(0)), Arc::new(tokio::sync::Notify::new()));
    let (steps, real, counted, begins) = (Mutex::new(steps), parse(), count.clone(), began.clone());
    let counting: Parse = Arc::new(move |job, data| {
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            begins.notify_one();
            let _ = steps.lock().recv();
        }
        real(job, data)
    });
    let bench = Bench::start(nobody(), counting);
    bench.shared.server(server());
    bench.apply(&namespace("team", "true"));
    let edit = |number: u32| {
        let word = if number == 10 { "required" } else { "disabled" };
        defaults("team", "a", &format!("# {number}\nspire: {word}\n"))
    };
    bench.apply(&edit(0));
    tokio::time::timeout(LONG, began.notified()).await.unwrap();
    (1..=10).for_each(|number| bench.apply(&edit(number)));
    drop(step);
    bench.until(|snapshot| spire(snapshot, "team") == Some("required")).await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    let again = Change { version: 99, ..edit(10) };
    bench.apply(&again);
    bench.apply(&namespace("after", "true"));
    bench.until(|snapshot| snapshot.namespace("after").is_some()).await;
    assert_eq!(count.load(Ordering::SeqCst), 2, "the same text in another version");
}

/// Once ConfigMaps go away, those that had no room are read: their text was not kept, so it is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_02_what_had_no_room_is_read_once_there_is_some() {
    let late = defaults("team", "z", "spire: disabled\n");
    let What::ConfigMap(seen) = late.now.as_ref().unwrap().what.clone() else { panic!("a ConfigMap") };
    let seen: Arc<ConfigMapSeen> = Arc::new(seen);
    let asked = Arc::new(AtomicUsize::new(0));
    let ask: Ask = {
        let asked = asked.clone();
        Arc::new(move |key| {
            let (seen, asked) = (seen.clone(), asked.clone());
            Box::pin(async move {
                asked.fetch_add(1, Ordering::SeqCst);
                (&*key.name == "z").then(|| (*seen).clone())
            })
        })
    };
    let bench = Bench::start(ask, parse());
    bench.shared.server(server());
    bench.apply(&namespace("team", "true"));
    let others: Vec<_> = (0..16).map(|at| defaults("team", &format!("a{at:02}"), "trustDomain: x.y\n")).collect();
    others.iter().for_each(|one| bench.apply(one));
    bench.apply(&late);
    let named = |snapshot: &Snapshot| {
        let notices = snapshot.namespace("team").map(|view| view.resolved.notices.clone()).unwrap_or_default();
        notices.iter().any(|one| one.reason == Reason::ConfigOverBound && one.text.contains("team/z is one too many"))
    };
    let full = bench.until(|snapshot| !is_pending(snapshot, "team") && named(snapshot)).await;
    assert_eq!((spire(&full, "team"), asked.load(Ordering::SeqCst)), (Some("auto"), 0));
    bench.apply(&super::gone(others[3].clone()));
    let read = bench.until(|snapshot| spire(snapshot, "team") == Some("disabled")).await;
    assert!(!named(&read) && asked.load(Ordering::SeqCst) == 1);
}

/// Templates and steps go the same way, and a build is refused for a while instead of for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_01_builds_wait_for_what_has_not_been_read() {
    let (end, ends) = mpsc::channel::<()>();
    let (ends, real) = (Mutex::new(ends), parse());
    let hanging: Parse = Arc::new(move |job, data| {
        let _ = ends.lock().recv();
        real(job, data)
    });
    let bench = Bench::start(nobody(), hanging);
    bench.shared.server(server());
    bench.apply(&namespace("team", "true"));
    let template = r#"{"name": "t", "steps": [{"name": "a", "configMap": "b"}]}"#;
    bench.apply(&text("team", "pipeline-template-dev", ("template.json", template), serde_json::json!({})));
    let waits = bench.until(|snapshot| snapshot.builds.view.is_waiting("team")).await;
    assert!(waits.builds.view.template("team", "dev").is_none() && !waits.builds.view.is_waiting("own"));
    drop(end);
    let read = bench.until(|snapshot| !snapshot.builds.view.is_waiting("team")).await;
    assert!(read.builds.view.template("team", "dev").is_some_and(|entry| entry.template.is_ok()));
    let large = format!("{template}{}", " ".repeat(70_000));
    bench.apply(&change(
        Kind::ConfigMap,
        serde_json::json!({"metadata": {"name": "pipeline-template-dev", "namespace": "team", "resourceVersion": "2"},
            "data": {"template.json": large}}),
    ));
    let over = bench.until(|snapshot| {
        let entry = snapshot.builds.view.template("team", "dev");
        entry.is_some_and(|entry| entry.template.as_ref().is_err_and(|faults| faults[0].sentence.contains("64 KiB")))
    });
    over.await;
}

/// A parser that fails on one text is no reason to go without readers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_01_a_reader_that_panics_is_replaced_and_the_namespace_is_told() {
    let real = parse();
    let failing: Parse = Arc::new(move |job, data| {
        assert_ne!(&*job.key.namespace, "odd");
        real(job, data)
    });
    let bench = Bench::start(nobody(), failing);
    bench.shared.server(server());
    for name in ["odd", "team"] {
        bench.apply(&namespace(name, "true"));
        (0..3).for_each(|at| bench.apply(&defaults(name, &format!("a{at}"), "spire: disabled\n")));
    }
    let read = |snapshot: &Snapshot| !is_pending(snapshot, "odd") && spire(snapshot, "team") == Some("disabled");
    let snapshot = bench.until(|snapshot| snapshot.namespace("odd").is_some() && read(snapshot)).await;
    let view = snapshot.namespace("odd").unwrap();
    assert_eq!((view.resolved.spire.value.as_str(), view.resolved.notices.len()), ("auto", 3));
    assert!(view.resolved.notices.iter().all(|one| one.reason == Reason::NamespaceConfigUnreadable));
}

/// Who owns which of its fields is for whoever writes a ConfigMap to say: of one that says so too deep for any decoder the text is had all the same,
/// and not asked for every second for ever.
#[tokio::test]
async fn the_text_of_a_config_map_that_is_too_deep_is_had() {
    let fields = (0..150).fold(json!({}), |below, _| json!({"f:a": below}));
    let metadata =
        json!({"name": "a", "namespace": "team", "resourceVersion": "1", "managedFields": [{"fieldsV1": fields}]});
    let found = json!([{"metadata": metadata, "data": {"config.yaml": "spire: disabled"}}]);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let is_asked_for = request.uri().query().is_some_and(|query| query.ends_with("metadata.name%3Da"));
        let items = if is_asked_for { found.clone() } else { json!([]) };
        let list = json!({"metadata": {"resourceVersion": "9"}, "items": items}).to_string();
        async move { Ok::<_, Infallible>(http::Response::new(Body::from(list.into_bytes()))) }
    });
    let asks = ask(Client::new(service, "default"), resource(Kind::ConfigMap));
    let seen = asks(Key::new("team", "a")).await.expect("it is there");
    assert_eq!(seen.data.get("config.yaml").map(String::as_str), Some("spire: disabled"));
    assert!(asks(Key::new("team", "b")).await.is_none());
}
