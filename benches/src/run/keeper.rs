//! How long whoever learns something of the cluster waits to tell it, while 1,000 agents are planned anew.
//!
//! In process: a keeper that knows the agents, the controllers, and an API server that refuses every write, so that nothing comes to rest. A term
//! begins again and again, with which everything is enqueued and planned; meanwhile Pods change, a thousand times a second, and each change
//! is timed from before the keeper's lock to after it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use drawbridge::cli::render::platform;
use drawbridge::cluster::keeper::{Keeper, Keeps};
use drawbridge::config::gates::Gates;
use drawbridge::config::inputs::NamespaceInputs;
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::{Published, Snapshot};
use drawbridge::config::view::{ClusterView, namespace_view};
use drawbridge::controllers::{ControllerMetrics, Deps, run};
use drawbridge::domain::keys;
use drawbridge::store::{Kind, Reach, change_of};
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Size;
use crate::table::Row;

/// Agents of a namespace.
const PER_NAMESPACE: usize = 50;
/// Pods of an agent.
const PODS: usize = 10;
/// Terms, in each of which everything is planned.
const TERMS: u64 = 10;
/// How long one lasts.
const TERM: Duration = Duration::from_secs(2);
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(1);

/// What is known of one agent, by kind.
fn objects(namespace: &str, name: &str, running: bool) -> Vec<(Kind, Value)> {
    let owner = |kind: &str, name: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": format!("{namespace}-{name}"), "controller": true}]);
    let metadata = |name: &str, more: Value| {
        let mut metadata = json!({"namespace": namespace, "name": name, "uid": format!("{namespace}-{name}"), "generation": 1,
            "creationTimestamp": "2026-01-02T03:04:05Z", "resourceVersion": "10"});
        if let (Some(all), Some(more)) = (metadata.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        metadata
    };
    let labels = json!({"app": name, "kagenti.io/type": "agent", "pod-template-hash": "1"});
    let spec =
        json!({"serviceAccountName": name, "containers": [{"name": "agent", "image": "registry.example.org/agent:1"}]});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let set = format!("{name}-1");
    let mut all = vec![
        (
            Kind::Deployment,
            json!({"metadata": metadata(name, json!({})), "spec": {"replicas": PODS, "template": template,
                "selector": {"matchLabels": {"app": name}}},
                "status": {"observedGeneration": 1, "replicas": PODS, "updatedReplicas": PODS, "availableReplicas": PODS}}),
        ),
        (
            Kind::ReplicaSet,
            json!({"metadata": metadata(&set, json!({"ownerReferences": owner("Deployment", name)})),
                "spec": {"replicas": PODS, "template": template}, "status": {"replicas": PODS}}),
        ),
        (
            Kind::AgentRuntime,
            json!({"metadata": metadata(&format!("{name}-runtime"), json!({"finalizers": ["kagenti.io/cleanup"]})),
                "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}}),
        ),
    ];
    let phase = if running { "Running" } else { "Pending" };
    all.extend((0..PODS).map(|at| {
        let metadata =
            metadata(&format!("{set}-{at}"), json!({"ownerReferences": owner("ReplicaSet", &set), "labels": labels}));
        (Kind::Pod, json!({"metadata": metadata, "spec": spec, "status": {"phase": phase}}))
    }));
    all
}

/// An API server that has no time.
fn refuses() -> kube::Client {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "reason": "ServiceUnavailable",
        "message": "no time"});
    let service = tower::service_fn(move |_: Request<Body>| {
        let text = status.to_string();
        async move {
            let mut response = Response::new(Body::from(text.into_bytes()));
            *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
            Ok::<_, Infallible>(response)
        }
    });
    kube::Client::new(service, "default")
}

fn published(namespaces: &[String]) -> Result<Published> {
    let platform = Platform::parse(&platform::platform_file(), "config.yaml").context("the shipped platform file")?;
    let view = |name: &str| {
        let view = namespace_view(&platform, name, &NamespaceInputs::default(), None);
        (Arc::from(name), Arc::new(view))
    };
    let own = keys::OPERATOR_NAMESPACE;
    let view = ClusterView {
        operator_namespace: own.into(),
        server_version: (1, 36),
        spiffe_driver: true,
        namespaces: namespaces.iter().map(|name| view(name)).chain([view(own)]).collect::<HashMap<_, _>>(),
    };
    let snapshot = Arc::new(Snapshot::new(&platform, Gates::default(), view));
    Ok(Published { settled: snapshot.clone(), snapshot, platform: Arc::new(platform), spreading: false })
}

/// Tells the keeper of Pods that come and go until `ended`; how long each took.
fn tell(keeper: &Keeper, changes: &[(Kind, Value)], ended: &AtomicBool) -> Result<Vec<Duration>> {
    let mut all = Vec::new();
    let decoded: Vec<_> = changes.iter().map(|(kind, object)| change_of(*kind, &object.to_string())).collect();
    let decoded = decoded.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (mut version, mut at) = (1_000_u64, 0);
    while !ended.load(Ordering::Relaxed) {
        version += 1;
        at = (at + 1) % decoded.len();
        let change = drawbridge::store::Change { version, ..decoded[at].clone() };
        let begun = Instant::now();
        keeper.apply(0, &change, keeper.now());
        all.push(begun.elapsed());
        std::thread::sleep(PAUSE);
    }
    Ok(all)
}

/// The row.
pub(super) async fn row(size: Size) -> Result<Row> {
    let namespaces: Vec<_> = (0..size.agents.div_ceil(PER_NAMESPACE)).map(|number| format!("team-{number}")).collect();
    let keeper = Arc::new(Keeper::new(keys::OPERATOR_NAMESPACE, Keeps::Projections));
    let see = |kind: Kind, object: &Value| -> Result<()> {
        keeper.apply(0, &change_of(kind, &object.to_string())?, keeper.now());
        Ok(())
    };
    for name in namespaces.iter().map(String::as_str).chain([keys::OPERATOR_NAMESPACE]) {
        see(Kind::Namespace, &json!({"metadata": {"name": name, "uid": name}}))?;
    }
    let agent =
        |number: usize, running| objects(&namespaces[number / PER_NAMESPACE], &format!("agent-{number:04}"), running);
    for number in 0..size.agents {
        for (kind, object) in agent(number, true) {
            see(kind, &object)?;
        }
    }
    for kind in Kind::ALL {
        keeper.reach(*kind, Reach::Listed);
    }
    keeper.listed(0);
    let (_settings, published) = watch::channel(Some(Arc::new(published(&namespaces)?)));
    let (terms, held) = watch::channel(None);
    let deps = Deps {
        writer: refuses(),
        keeper: keeper.clone(),
        published,
        terms: held,
        metrics: ControllerMetrics::default(),
    };
    let controllers = tokio::spawn(run(deps, false, Vec::new()));
    let ended = Arc::new(AtomicBool::new(false));
    let pods: Vec<_> = (0..size.agents)
        .flat_map(|number| {
            let is_pod = |(kind, _): &(Kind, Value)| *kind == Kind::Pod;
            agent(number, number % 2 == 0).into_iter().filter(is_pod).take(1)
        })
        .collect();
    let told = {
        let (keeper, ended) = (keeper.clone(), ended.clone());
        tokio::task::spawn_blocking(move || tell(&keeper, &pods, &ended))
    };
    for term in 1..=TERMS {
        terms.send_replace(Some(term));
        tokio::time::sleep(TERM).await;
    }
    ended.store(true, Ordering::Relaxed);
    let mut all = told.await.context("the one who tells")??;
    controllers.abort();
    all.sort_unstable();
    let of = |share: usize| all.get((all.len() * share / 1000).min(all.len().saturating_sub(1))).copied();
    let [p50, p99, p999] = [500, 990, 999].map(of).map(|time| time.unwrap_or_default().as_secs_f64() * 1e3);
    let longest = all.last().copied().unwrap_or_default().as_secs_f64() * 1e3;
    let what = format!("p99 of telling the keeper of a change while {} agents are planned anew", size.agents);
    let words = format!(
        "{} changes of Pods in {TERMS} terms; p50 {p50:.3} ms, p99.9 {p999:.2} ms, the longest {longest:.1} ms; every write is refused",
        all.len()
    );
    Ok(Row::at_most(what, (2.0, 0.5), p99, " ms").here(f64::INFINITY).noted(words))
}
