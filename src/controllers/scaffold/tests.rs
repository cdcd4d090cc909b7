//! The whole loop against an API server in memory: who writes when, and how often.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::apply::{Learned, apply};
use super::check::{Check, Objection};
use super::fixtures::{Cluster, OWN, account, change, workload};
use super::metrics::ControllerMetrics;
use super::plan::{Name, Op};
use super::run::{Deps, run};
use super::runner::Runner;
use crate::cluster::keeper::{Keeper, Keeps};
use crate::controllers::always;
use crate::controllers::scaffold::fixtures::step_map;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::templates::TemplatesView;
use crate::store::{Change, Key, Kind, Reach, Via};

mod costs;
mod lane;
mod lookups;

/// Objects by path; every request is written down; the next answers may be ordered to fail.
#[derive(Clone, Default)]
struct Server {
    objects: Arc<Mutex<BTreeMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
    failures: Arc<Mutex<VecDeque<u16>>>,
    /// What a refusal says.
    says: Option<&'static str>,
    /// Requests by this method whose path has this part are refused with this code.
    forbids: Option<(Method, &'static str, u16)>,
    /// Requests whose path has this part are never answered.
    hangs: Option<&'static str>,
    /// How long each answer takes.
    takes: Duration,
    /// Members of a status that the installed definition does not know.
    prunes: &'static [&'static str],
}

/// How long a 429 asks to be left alone, in seconds.
const RETRY_AFTER: u64 = 20;

impl Server {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let sent = body.collect().await.unwrap().to_bytes();
                let sent = serde_json::from_slice(&sent).unwrap_or(Value::Null);
                tokio::time::sleep(server.takes).await;
                let dry = parts.uri.query().is_some_and(|query| query.contains("dryRun=All"));
                let (code, answer) = server.answer(&parts.method, parts.uri.path(), dry, sent);
                if server.hangs.is_some_and(|part| parts.uri.path().contains(part)) {
                    std::future::pending::<()>().await;
                }
                let bytes = Body::from(answer.to_string().into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(bytes).unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &Method, path: &str, dry: bool, mut sent: Value) -> (u16, Value) {
        let status = |code: u16| {
            let details = if code == 429 { json!({"retryAfterSeconds": RETRY_AFTER}) } else { json!({}) };
            let status = json!({"kind": "Status", "status": "Failure", "code": code, "message": self.says.unwrap_or("m"), "reason": "r", "details": details});
            (code, status)
        };
        let mut objects = self.objects.lock();
        let name = sent.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let at = if *method == Method::POST { format!("{path}/{name}") } else { path.to_owned() };
        let short = at.rsplit('/').take(2).collect::<Vec<_>>();
        let verb = if dry { "TRY" } else { method.as_str() };
        self.asked.lock().push(format!("{verb} {}/{}", short[1], short[0].split('.').next().unwrap_or_default()));
        if let Some(code) = self.failures.lock().pop_front() {
            return status(code);
        }
        if let Some((of, part, code)) = &self.forbids
            && of == method
            && path.contains(*part)
        {
            return status(*code);
        }
        match (method, objects.get(&at)) {
            (&Method::POST, Some(_)) => status(409),
            (&Method::POST, None) if dry => (201, sent),
            (&Method::POST, None) => {
                sent["metadata"]["uid"] = json!(format!("uid-{name}"));
                sent["metadata"]["resourceVersion"] = json!((100 + objects.len()).to_string());
                objects.insert(at, sent.clone());
                (201, sent)
            }
            (&Method::GET, Some(object)) => (200, object.clone()),
            (&Method::PATCH, Some(object)) => {
                let mut object = object.clone();
                if sent.is_array() {
                    let operations: json_patch::Patch = serde_json::from_value(sent).unwrap();
                    if json_patch::patch(&mut object, &operations).is_err() {
                        return status(422);
                    }
                } else {
                    json_patch::merge(&mut object, &sent);
                }
                if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
                    status.retain(|member, _| !self.prunes.contains(&member.as_str()));
                }
                object["metadata"]["resourceVersion"] = json!("900");
                objects.insert(at, object.clone());
                (200, object)
            }
            _ => status(404),
        }
    }

    /// What was asked since the last call, without the ConfigMaps.
    fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock());
        asked.into_iter().filter(|line| !line.contains("configmaps")).collect()
    }
}

/// A running loop.
struct Bench {
    server: Server,
    keeper: Arc<Keeper>,
    terms: watch::Sender<Option<u64>>,
    /// Of the cluster's history.
    epoch: AtomicU64,
    task: tokio::task::JoinHandle<()>,
}

impl Bench {
    async fn start(server: Server, first: Vec<Change>) -> Self {
        Self::with(server, first, Vec::new()).await
    }

    /// With controllers that ask, besides those that always run.
    async fn with(server: Server, first: Vec<Change>, asking: Vec<Box<dyn Runner>>) -> Self {
        let mut cluster = Cluster::new();
        let mut snapshot = (*cluster.facts.snapshot).clone();
        let view = Arc::clone(&snapshot.view.namespaces["team"]);
        snapshot.view.namespaces.insert("others".into(), view);
        let mut builds = (*snapshot.builds).clone();
        let step = step_map(OWN, "tells", "results: [{name: IMAGE_URL}]\nsteps: [{name: build, image: i}]\n");
        builds.view = TemplatesView::new(OWN, false).with([step]);
        cluster.facts.snapshot = Arc::new(snapshot.with_builds(Arc::new(builds)));
        cluster.facts.settled = Arc::clone(&cluster.facts.snapshot);
        let keeper = Arc::new(Keeper::new(OWN, Keeps::Projections));
        let (terms, held) = watch::channel(None);
        let (sender, published) = watch::channel(Some(Arc::new(cluster.facts)));
        let deps = Deps {
            writer: server.client(),
            keeper: keeper.clone(),
            published,
            terms: held,
            metrics: ControllerMetrics::default(),
        };
        let task = tokio::spawn(async move {
            let rows = always().into_iter();
            run(rows.chain(asking).collect(), deps, || 0.5).await;
            drop(sender);
        });
        let bench = Self { server, keeper, terms, epoch: AtomicU64::new(0), task };
        for name in ["team", "others", OWN] {
            bench.see(change(Kind::Namespace, json!({"metadata": {"name": name, "uid": name}}))).await;
        }
        for one in first {
            bench.see(one).await;
        }
        bench.keeper.listed(0);
        bench.settle().await;
        bench
    }

    async fn see(&self, change: Change) {
        self.keeper.apply(self.epoch.load(Ordering::Relaxed), &change, self.keeper.now());
        tokio::task::yield_now().await;
    }

    /// Time is paused, so this passes when every task waits.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    async fn lead(&self, term: Option<u64>) {
        self.terms.send_replace(term);
        self.settle().await;
    }
}

fn deployment(version: u64) -> Change {
    let version = json!({"metadata": {"resourceVersion": version.to_string()}});
    change(Kind::Deployment, workload(Kind::Deployment, "a", version))
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_writes_and_a_settled_world_is_never_written() {
    let bench = Bench::start(Server::default(), vec![deployment(10)]).await;
    assert!(bench.server.asked.lock().is_empty(), "not the leader");
    bench.lead(Some(1)).await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/a"]);
    assert_eq!(bench.server.objects.lock().len(), 5, "the account and four ConfigMaps");

    // Events before the watch has delivered what we made, a new term, and an hour: nothing.
    bench.see(deployment(11)).await;
    bench.lead(None).await;
    bench.lead(Some(2)).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(bench.server.asked.lock().is_empty(), "{:?}", bench.server.asked.lock());

    bench.lead(None).await;
    let other = change(Kind::Job, workload(Kind::Job, "b", json!({})));
    bench.see(other).await;
    bench.settle().await;
    assert!(bench.server.asked.lock().is_empty(), "no longer the leader");
    bench.lead(Some(3)).await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/b"]);
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_with_growing_pauses_and_do_not_hold_others_up() {
    let bench = Bench::start(Server::default(), Vec::new()).await;
    bench.lead(Some(1)).await;
    bench.server.failures.lock().extend([500, 500]);
    bench.see(deployment(10)).await;
    bench.settle().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let asked = bench.server.asked();
    assert!(asked.len() <= 3 && asked.iter().any(|line| line == "POST serviceaccounts/a"), "{asked:?}");
    assert!(bench.server.objects.lock().contains_key("/api/v1/namespaces/team/serviceaccounts/a"));
    bench.task.abort();
}

/// The first minute of an installation: a refusal that will be over tells nobody anything, and what was refused is made a moment after it is.
#[tokio::test(start_paused = true)]
async fn a_write_before_the_api_server_has_looked_up_every_definition_is_no_failure() {
    let says = "serviceaccounts \"a\" is forbidden: ValidatingAdmissionPolicy 'drawbridge-own-agents' with binding 'drawbridge-own-agents' \
                denied request: failed to configure binding: failed to find resource referenced by paramKind: \
                'agent.kagenti.dev/v1alpha1, Kind=Agent'";
    let bench = Bench::start(Server { says: Some(says), ..Server::default() }, Vec::new()).await;
    bench.lead(Some(1)).await;
    bench.server.failures.lock().extend([422; 1000]);
    bench.see(deployment(10)).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    let asked = bench.server.asked();
    assert!(asked.iter().all(|line| line == "POST serviceaccounts/a") && asked.len() <= 12, "no Event: {asked:?}");
    bench.server.failures.lock().clear();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(bench.server.objects.lock().contains_key("/api/v1/namespaces/team/serviceaccounts/a"), "within seconds");
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn d7_a_server_that_asks_for_time_gets_it_and_others_do_not_wait() {
    let bench = Bench::start(Server::default(), Vec::new()).await;
    bench.lead(Some(1)).await;
    // The namespace's ConfigMaps are asked for as well; the account is what is looked at.
    bench.server.failures.lock().extend([429, 429]);
    bench.see(deployment(10)).await;
    bench.settle().await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/a"]);
    // Neither a change nor the time of an ordinary failure brings it back; another item is none of its business.
    bench.see(deployment(11)).await;
    bench.see(change(Kind::Deployment, workload(Kind::Deployment, "b", json!({})))).await;
    tokio::time::sleep(Duration::from_secs(RETRY_AFTER - 1)).await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/b"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/a"]);
    assert_eq!(bench.server.objects.lock().len(), 6, "two accounts and the ConfigMaps");
    bench.task.abort();
}

/// A connection to a machine that is gone says nothing of it, in the middle of an answer least of all.
#[tokio::test(start_paused = true)]
async fn d7_an_answer_that_does_not_end_costs_neither_the_worker_nor_the_item() {
    let server = Server { hangs: Some("/serviceaccounts"), ..Server::default() };
    let bench = Bench::start(server, Vec::new()).await;
    bench.lead(Some(1)).await;
    bench.see(deployment(10)).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let asked = bench.server.asked();
    let tries = asked.iter().filter(|line| **line == "POST serviceaccounts/a").count();
    assert!((2..=3).contains(&tries), "{asked:?}");
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn d7_whatever_the_server_answers_nothing_is_lost() {
    for code in [409, 410, 429, 500, 503, 504] {
        let bench = Bench::start(Server::default(), Vec::new()).await;
        bench.lead(Some(1)).await;
        bench.server.failures.lock().extend([code; 12]);
        bench.see(deployment(10)).await;
        tokio::time::sleep(Duration::from_secs(900)).await;
        assert_eq!(bench.server.objects.lock().len(), 5, "{code}: the account and four ConfigMaps");
        assert!(bench.server.asked.lock().len() <= 12 + 5, "{code}: no more often than it failed");
        bench.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_whose_requests_hang_does_not_starve_the_others() {
    let server = Server { hangs: Some("/namespaces/team/"), ..Server::default() };
    let slow =
        (0..100).map(|number| change(Kind::Deployment, workload(Kind::Deployment, &format!("w{number}"), json!({}))));
    let bench = Bench::start(server, slow.collect()).await;
    bench.lead(Some(1)).await;
    let begun = bench.server.asked();
    assert!((1..32).contains(&begun.len()), "a worker stays free: {}", begun.len());
    let elsewhere = json!({"metadata": {"namespace": "others"}});
    for name in ["a", "b", "c"] {
        bench.see(change(Kind::Deployment, workload(Kind::Deployment, name, elsewhere.clone()))).await;
        bench.settle().await;
        assert_eq!(bench.server.asked(), [format!("POST serviceaccounts/{name}")], "at once");
    }
    bench.task.abort();
}

/// G8: what others wait for is the API server, which a flood would keep busy with half of the workers.
#[tokio::test(start_paused = true)]
async fn g8_a_namespace_beside_others_that_work_asks_for_little_at_once() {
    let server = Server { hangs: Some("/namespaces/team/"), ..Server::default() };
    let bench = Bench::start(server, Vec::new()).await;
    bench.lead(Some(1)).await;
    let elsewhere = json!({"metadata": {"namespace": "others"}});
    bench.see(change(Kind::Deployment, workload(Kind::Deployment, "a", elsewhere))).await;
    for number in 0..100 {
        bench.see(change(Kind::Deployment, workload(Kind::Deployment, &format!("w{number}"), json!({})))).await;
    }
    bench.settle().await;
    let mut begun = bench.server.asked();
    begun.retain(|line| line != "POST serviceaccounts/a");
    // What is made for the namespace itself hangs, too, and counts.
    assert!((1..=2).contains(&begun.len()), "{begun:?}");
    bench.task.abort();
}

/// Builds of one template, and the paths of their status on `server`.
fn flood(
    server: &Server,
    builds: usize,
    step: &str,
    credentials: impl Fn(usize) -> Value,
) -> (Vec<String>, Vec<Change>) {
    let (mut paths, mut first) = (Vec::new(), Vec::new());
    for number in 0..builds {
        let name = format!("b{number}");
        let mut build = json!({
            "metadata": {"name": name, "namespace": "team", "uid": name, "generation": 1, "resourceVersion": "10",
                "finalizers": ["agent.kagenti.dev/finalizer"]},
            "spec": {
                "source": {"sourceRepository": "github.com/a/b"}, "mode": "custom",
                "buildOutput": {"imageRegistry": "reg.io:5000", "image": "weather", "imageTag": "v1"},
                "pipeline": {"namespace": OWN, "steps": [{"name": "push", "configMap": step}]},
            },
        });
        build["spec"]["source"]["sourceCredentials"] = credentials(number);
        paths.push(format!("/apis/agent.kagenti.dev/v1alpha1/namespaces/team/agentbuilds/{name}/status"));
        server.objects.lock().insert(paths[number].clone(), build.clone());
        first.push(change(Kind::AgentBuild, build));
    }
    (paths, first)
}

/// A loop that leads, to which the builds come before that or after it.
async fn leading(server: &Server, before: Vec<Change>, after: Vec<Change>) -> Bench {
    let bench = Bench::start(server.clone(), before).await;
    for kind in [Kind::PipelineRun, Kind::TaskRun] {
        bench.keeper.reach(kind, Reach::Listed);
    }
    bench.lead(Some(1)).await;
    for one in after {
        bench.see(one).await;
    }
    bench
}

/// G8: a round over all builds takes longer than an answer is good for, and each is finished all the same.
#[tokio::test(start_paused = true)]
async fn g8_a_flood_is_worked_off_however_slow_the_server_is() {
    const FLOOD: usize = 300;
    let server = Server { takes: Duration::from_millis(500), ..Server::default() };
    let (paths, builds) = flood(&server, FLOOD, "c", |number| json!({"name": format!("absent-{number}")}));
    let bench = leading(&server, builds, Vec::new()).await;
    // A question, a status and an Event, 16 at once.
    tokio::time::sleep(Duration::from_secs(60)).await;
    let objects = bench.server.objects.lock().clone();
    let told = paths.iter().filter(|path| objects[*path]["status"]["phase"] == "Failed").count();
    let asked = bench.server.asked().iter().filter(|line| line.starts_with("GET secrets/")).count();
    assert_eq!(told, FLOOD);
    assert!(asked <= FLOOD + 20 * 60, "{asked} questions in a minute: once each, then twenty a second");
    bench.task.abort();
}

/// Who judges runs is asked by those that begin together and not by the rest, however long the flood takes, and every run
/// comes before anything more is said of those that exist.
#[tokio::test(start_paused = true)]
async fn the_runs_of_a_flood_are_made_first_and_their_judge_is_asked_once() {
    const FLOOD: usize = 300;
    let server = Server { takes: Duration::from_millis(200), ..Server::default() };
    let (_, builds) = flood(&server, FLOOD, "tells", |_| Value::Null);
    let bench = leading(&server, Vec::new(), builds).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = bench.server.asked();
    let are =
        |part: &str| asked.iter().enumerate().filter(|(_, line)| line.starts_with(part)).map(|(at, _)| at).collect();
    let (tried, made, told): (Vec<_>, Vec<_>, Vec<_>) =
        (are("TRY pipelineruns/"), are("POST pipelineruns/"), are("POST events/"));
    assert_eq!((made.len(), told.len()), (FLOOD, FLOOD));
    assert!((1..=32).contains(&tried.len()), "no more than are under way at once: {}", tried.len());
    let last = made[FLOOD - 1];
    let early = told.iter().filter(|at| **at < last).count();
    assert!(early <= 32, "{early} were told about before the last run was made");
    bench.task.abort();
}

/// The API server answers 404 where a definition has no subresource `status`, and leaves out what a definition does not know.
#[tokio::test(start_paused = true)]
async fn a_run_is_made_only_after_its_claim_is_kept() {
    let cases: [&'static [&'static str]; 2] = [&[], &["attempts", "buildHash"]];
    for prunes in cases {
        let server = Server { prunes, ..Server::default() };
        let (paths, builds) = flood(&server, 1, "tells", |_| Value::Null);
        if prunes.is_empty() {
            let build = server.objects.lock().remove(&paths[0]).unwrap();
            let collection = Kind::AgentBuild.path("team");
            server.objects.lock().insert(collection, json!({"metadata": {"resourceVersion": "20"}, "items": [build]}));
        }
        let bench = leading(&server, Vec::new(), builds).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let asked = bench.server.asked();
        let count = |part: &str| asked.iter().filter(|line| line.starts_with(part)).count();
        assert_eq!((count("POST pipelineruns/"), count("POST events/")), (0, 1), "{prunes:?}: {asked:?}");
        assert!((2..=20).contains(&count("PATCH b0/status")), "{prunes:?}: {asked:?}");
        bench.task.abort();
    }
}

/// A watch shows what carries a label, and what it says of anything else counts for nothing.
#[tokio::test(start_paused = true)]
async fn what_is_read_by_its_name_is_known_whatever_a_watch_shows() {
    let run = |labels: Value| json!([{"metadata": {"name": "r", "namespace": "team", "uid": "u", "resourceVersion": "7", "labels": labels}}]);
    let find = Op::Find { kind: Kind::PipelineRun, key: Key::new("team", "r") };
    let server = Server::default();
    let mut found = Vec::new();
    for items in [json!([]), run(json!({keys::LABEL_AGENT_BUILD: "b"})), run(json!({}))] {
        let list = json!({"metadata": {"resourceVersion": "30"}, "items": items});
        server.objects.lock().insert(Kind::PipelineRun.path("team"), list);
        let learned = apply(&server.client(), Name::new("x"), &find, false).await;
        let Ok(Learned::Change(change)) = &learned else { panic!("{learned:?}") };
        found.push((change.now.is_some(), change.version, change.via));
    }
    assert_eq!(found, [(false, 30, Via::Answer), (true, 7, Via::Answer), (true, 7, Via::File)]);
}

/// What is written on condition is read whole before. Where there is nothing to be read, or nobody to ask, what is written says more about it.
#[tokio::test(start_paused = true)]
async fn what_does_not_pass_its_check_is_not_sent() {
    let (server, path) = (Server::default(), Kind::Deployment.path("team"));
    let (free, paused) = (json!({}), json!({"spec": {"paused": true}}));
    let [free, paused] = [free, paused].map(|more| workload(Kind::Deployment, "a", more));
    server.objects.lock().insert(format!("{path}/a"), free.clone());
    let check = Check::new(|object| {
        let (brief, message) = ("spec.paused".to_owned(), "it is paused".to_owned());
        (object["spec"]["paused"] == true).then_some(Objection { reason: Reason::PortCollision, brief, message })
    });
    let body = json!({"metadata": {"name": "a", "namespace": "team", "uid": "deployments-a"}});
    let key = Key::new("team", "a");
    let op = Op::Apply { kind: Kind::Deployment, key, body, seen: 10, check: Some(check) };
    for (items, is_sent) in
        [(Some(json!([paused])), false), (Some(json!([free])), true), (Some(json!([])), true), (None, true)]
    {
        let list = items.clone().map(|items| json!({"metadata": {"resourceVersion": "30"}, "items": items}));
        match list {
            Some(list) => drop(server.objects.lock().insert(path.clone(), list)),
            None => drop(server.objects.lock().remove(&path)),
        }
        let learned = apply(&server.client(), Name::new("x"), &op, false).await;
        assert_eq!(learned.is_ok(), is_sent, "{items:?}: {learned:?}");
        let sent: &[&str] =
            if is_sent { &["GET team/deployments", "PATCH deployments/a"] } else { &["GET team/deployments"] };
        assert_eq!(server.asked(), sent, "{items:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn d13_g6_one_that_somebody_else_made_first_is_not_adopted_and_told_about_once() {
    let server = Server::default();
    let path = "/api/v1/namespaces/team/serviceaccounts/a".to_owned();
    server.objects.lock().insert(path.clone(), account("a", false, json!([])));
    let bench = Bench::start(server.clone(), vec![deployment(10)]).await;
    bench.lead(Some(1)).await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/a"], "409: looked at again when the watch has told");
    bench.see(change(Kind::ServiceAccount, account("a", false, json!([])))).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.server.asked(), ["GET events/a", "POST events/a"]);
    assert_eq!(bench.server.objects.lock()[&path], account("a", false, json!([])));
    bench.task.abort();

    // Another process, or this one after a restart.
    let first = vec![deployment(10), change(Kind::ServiceAccount, account("a", false, json!([])))];
    let again = Bench::start(server, first).await;
    again.lead(Some(2)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(again.server.asked(), ["GET events/a"], "the Event exists: nothing is written");
    again.task.abort();
}

/// An AgentRuntime whose target is missing, before an API server that answers every Event so: its status after a minute, and how often Events were
/// asked for or written.
async fn without_events(method: &Method, code: u16) -> (Value, usize) {
    const STATUS: &str = "/apis/agent.kagenti.dev/v1alpha1/namespaces/team/agentruntimes/art/status";
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone"});
    let runtime = json!({
        "metadata": {"name": "art", "namespace": "team", "uid": "art", "generation": 1, "resourceVersion": "10",
            "creationTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kagenti.io/cleanup"]},
        "spec": {"type": "agent", "targetRef": target},
    });
    let server = Server { forbids: Some((method.clone(), "/events", code)), ..Server::default() };
    server.objects.lock().insert(STATUS.to_owned(), runtime.clone());
    let bench = Bench::start(server, vec![change(Kind::AgentRuntime, runtime)]).await;
    bench.lead(Some(1)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let status = bench.server.objects.lock()[STATUS]["status"].clone();
    let asked = bench.server.asked();
    bench.task.abort();
    (status, asked.iter().filter(|line| line.contains(" events/")).count())
}

fn says_not_ready(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "False")
}

/// A quota of Events that is full, a policy against them, a right that is missing: what is told before something is written does not stand in its
/// way.
#[tokio::test(start_paused = true)]
async fn an_event_that_the_api_server_refuses_keeps_nothing_from_being_written() {
    let (get, post) = (Method::GET, Method::POST);
    for (method, code) in [(&post, 400), (&post, 403), (&post, 404), (&post, 422), (&get, 403)] {
        let (status, tried) = without_events(method, code).await;
        assert!(says_not_ready(&status), "{code}: {status}");
        assert!((1..=2).contains(&tried), "{code}: asked for, and written, once: {tried}");
    }
}

/// A webhook for Events that is down, or an etcd of their own that is: that passes, and the Event is tried again, but the rest waits for it for
/// seconds alone.
#[tokio::test(start_paused = true)]
async fn events_that_come_to_nothing_again_and_again_hold_nothing_else_up() {
    let (get, post) = (Method::GET, Method::POST);
    for (method, code) in [(&post, 500), (&post, 503), (&post, 504), (&get, 500)] {
        let (status, tried) = without_events(method, code).await;
        assert!(says_not_ready(&status), "{code}: {status}");
        assert!((3..=8).contains(&tried), "{code}: a few times: {tried}");
    }
}

/// Whoever may make Roles in a namespace of his own decides whether ours is taken there: that costs a request in minutes, not all that the API server
/// answers.
#[tokio::test(start_paused = true)]
async fn g8_what_is_refused_is_not_asked_for_as_fast_as_it_is_answered() {
    let sign = json!({"spec": {"template": {"metadata": {"annotations": {keys::ANNOTATION_SIGN: "true"}}}}});
    let forbids = Some((Method::POST, "/roles", 403));
    let server = Server { forbids, takes: Duration::from_millis(10), ..Server::default() };
    let first = vec![change(Kind::Deployment, workload(Kind::Deployment, "a", sign))];
    let bench = Bench::start(server, first).await;
    for kind in [Kind::SignedCard, Kind::Role, Kind::RoleBinding] {
        bench.keeper.reach(kind, Reach::Listed);
    }
    bench.lead(Some(1)).await;
    for tries in 0..2 {
        tokio::time::sleep(Duration::from_secs(295)).await;
        let asked = bench.server.asked();
        let roles = asked.iter().filter(|line| line.starts_with("POST roles/")).count();
        assert_eq!(roles, 1, "{tries}: {asked:?}");
    }
    bench.task.abort();
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_what_somebody_else_has_changed_does_nothing_until_the_watch_has_told() {
    let path = "/api/v1/namespaces/team/serviceaccounts/a".to_owned();
    let owner = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Other", "name": name, "uid": name});
    let known = account("a", true, json!([owner("x")]));
    let mut stored = account("a", true, json!([owner("x"), owner("y")]));
    stored["metadata"]["resourceVersion"] = json!("800");
    let server = Server::default();
    server.objects.lock().insert(path.clone(), stored.clone());
    let bench = Bench::start(server, vec![deployment(10), change(Kind::ServiceAccount, known)]).await;
    bench.lead(Some(1)).await;
    assert_eq!(bench.server.asked(), ["PATCH serviceaccounts/a"]);
    assert_eq!(bench.server.objects.lock()[&path], stored, "nobody's owner is taken away");

    bench.see(change(Kind::ServiceAccount, stored)).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bench.server.asked(), ["PATCH serviceaccounts/a"]);
    let owners = bench.server.objects.lock()[&path]["metadata"]["ownerReferences"].clone();
    assert_eq!(owners.as_array().map(Vec::len), Some(3), "{owners}");
    bench.task.abort();
}

/// What was deleted in the other history is made again in this one, under a number of before its deletion.
#[tokio::test(start_paused = true)]
async fn mend_03_after_the_cluster_went_back_deletions_of_before_hide_nothing() {
    let at = |version: u64| {
        let version = json!({"metadata": {"resourceVersion": version.to_string()}});
        change(Kind::Deployment, workload(Kind::Deployment, "c", version))
    };
    let bench = Bench::start(Server::default(), vec![]).await;
    bench.lead(Some(1)).await;
    bench.see(at(1100)).await;
    bench.settle().await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/c"]);
    let mut gone = at(1200);
    gone.now = None;
    bench.see(gone).await;
    let account = json!({"metadata": {"name": "c", "namespace": "team", "uid": "gone"}});
    let mut without = change(Kind::ServiceAccount, account);
    (without.now, without.via) = (None, Via::File);
    bench.see(without).await;
    bench.settle().await;
    bench.server.objects.lock().clear();
    bench.server.asked();
    bench.see(at(940)).await;
    bench.settle().await;
    assert!(bench.server.asked().is_empty(), "an answer that comes late");
    bench.epoch.store(1, Ordering::Relaxed);
    bench.see(at(941)).await;
    bench.settle().await;
    assert_eq!(bench.server.asked(), ["POST serviceaccounts/c"]);
    bench.task.abort();
}

/// A term that ends while an Event is on its way, as it does for a process that got no time for a while: the next term
/// tells.
#[tokio::test(start_paused = true)]
async fn mend_03_what_did_not_get_out_before_a_term_ended_is_told_in_the_next() {
    let server = Server { hangs: Some("events"), ..Server::default() };
    let first = vec![deployment(10), change(Kind::ServiceAccount, account("a", false, json!([])))];
    let bench = Bench::start(server, first).await;
    for term in 1..4 {
        bench.lead(Some(term)).await;
        assert_eq!(bench.server.asked(), ["GET events/a"], "term {term}");
        bench.lead(None).await;
    }
    bench.task.abort();
}

/// A term that ends while writes are on their way, as in a graceful end: what was sent goes to its end and is known, and nothing more is sent.
#[tokio::test(start_paused = true)]
async fn what_was_sent_when_a_term_ends_is_known_and_nothing_comes_after_it() {
    let server = Server { takes: Duration::from_millis(100), ..Server::default() };
    let bench = Bench::start(server, vec![deployment(10)]).await;
    bench.lead(Some(1)).await;
    bench.lead(None).await;
    assert!(bench.server.asked.lock().is_empty(), "they are on their way");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut asked = std::mem::take(&mut *bench.server.asked.lock());
    asked.sort();
    let kinds: Vec<_> = asked.iter().map(|line| line.split('/').next().unwrap_or_default()).collect();
    assert_eq!(kinds, ["POST configmaps", "POST serviceaccounts"], "the first of each plan");
    let known = bench.keeper.read(|store| store.kept(Kind::ServiceAccount, "team", "a").is_some());
    assert!(known, "what became of it is known");
    // The next term repeats none of it.
    bench.lead(Some(2)).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let asked = bench.server.asked.lock();
    assert!(!asked.is_empty() && asked.iter().all(|line| line.contains("configmaps")), "{asked:?}");
    bench.task.abort();
}
