//! Losing replicas, with the real binary behind a balancer that plays kube-proxy: killed, rolled, all away.
//!
//! The judge is the API server: its counts of webhook calls that failed, and the Pods it stored. A call that is in
//! flight on an instance when that instance is killed cannot be saved; the load sends at most [`WORKERS`] calls at a
//! time, so that is the bound per kill. Nothing else may fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]
#![allow(clippy::print_stdout, reason = "what a run has cost is its result, shown with --nocapture")]

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};
use webhook_tests::dial::{self, Trust};
use webhook_tests::installation::FAREWELL;
use webhook_tests::{
    BalancerOptions, ControlPlane, Installation, Installing, Metrics, Options, TestNamespace, wait_for, wait_until,
};

/// Calls that are under way at once.
const WORKERS: usize = 8;
/// Pause of one worker between two creations: 50 a second over all.
const PACE: Duration = Duration::from_millis(160);
/// How long a created Pod stays.
const LIFE: Duration = Duration::from_secs(5);
/// Instances killed in a chaos run.
const KILLS: usize = 3;

/// Each of these keeps a small machine busy; together they would measure each other.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn pod(name: Option<&str>) -> Value {
    let mut metadata = json!({ "labels": { "app": name.unwrap_or("load"), keys::LABEL_TYPE: "agent" } });
    match name {
        Some(name) => metadata["name"] = name.into(),
        None => metadata["generateName"] = "load-".into(),
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": { "containers": [{ "name": "app", "image": "example.com/app:1" }] } })
}

fn workload(kind: &str, name: &str) -> Value {
    let mut template = pod(Some(name));
    template["metadata"].as_object_mut().unwrap().remove("name");
    let mut template = json!({ "metadata": template["metadata"], "spec": template["spec"] });
    let selector = json!({ "matchLabels": { "app": name } });
    let (api, spec) = match kind {
        "Job" => {
            template["spec"]["restartPolicy"] = "Never".into();
            ("batch/v1", json!({ "backoffLimit": 0, "template": template }))
        }
        "StatefulSet" => ("apps/v1", json!({ "serviceName": name, "selector": selector, "template": template })),
        _ => ("apps/v1", json!({ "selector": selector, "template": template })),
    };
    json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn injected(pod: &Pod) -> bool {
    let spec = pod.spec.clone().unwrap_or_default();
    let all = spec.init_containers.unwrap_or_default().into_iter().chain(spec.containers);
    all.into_iter().any(|container| keys::OUR_CONTAINERS.contains(&container.name.as_str()))
}

fn gated(pod: &Pod) -> bool {
    let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_deref()).unwrap_or_default();
    gates.iter().any(|gate| gate.name == keys::SCHEDULING_GATE)
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// What became of the Pods of a load.
#[derive(Default)]
struct Tally {
    created: usize,
    /// Answers of the API server to creations that it refused.
    refused: Vec<String>,
    /// Pods stored without our containers, behind the gate.
    gated: Vec<String>,
    /// Pods stored without our containers, free to run.
    unprotected: Vec<String>,
}

/// Pods created at 50 a second and deleted after [`LIFE`], until told to end.
struct Load {
    tally: Arc<Mutex<Tally>>,
    end: tokio::sync::watch::Sender<bool>,
    workers: Vec<JoinHandle<Result<()>>>,
}

impl Load {
    fn start(ns: &TestNamespace) -> Self {
        let tally: Arc<Mutex<Tally>> = Arc::default();
        let end = tokio::sync::watch::Sender::new(false);
        let workers = (0..WORKERS).map(|_| tokio::spawn(create(ns.api(), Arc::clone(&tally), end.subscribe())));
        let workers = workers.collect();
        Self { tally, end, workers }
    }

    async fn end(self) -> Result<Tally> {
        self.end.send_replace(true);
        for worker in self.workers {
            worker.await??;
        }
        Ok(std::mem::take(&mut *self.tally.lock()))
    }
}

async fn create(pods: Api<Pod>, tally: Arc<Mutex<Tally>>, end: tokio::sync::watch::Receiver<bool>) -> Result<()> {
    let wanted: Pod = serde_json::from_value(pod(None))?;
    let mut alive: VecDeque<(Instant, String)> = VecDeque::new();
    let mut tick = tokio::time::interval(PACE);
    tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !*end.borrow() {
        tick.tick().await;
        match pods.create(&PostParams::default(), &wanted).await {
            Ok(stored) => {
                let name = stored.name_any();
                let mut tally = tally.lock();
                tally.created += 1;
                match (injected(&stored), gated(&stored)) {
                    (true, false) => {}
                    (_, true) => tally.gated.push(name.clone()),
                    (false, false) => tally.unprotected.push(name.clone()),
                }
                alive.push_back((Instant::now(), name));
            }
            Err(error) => tally.lock().refused.push(error.to_string()),
        }
        while let Some((_, name)) = alive.pop_front_if(|(since, _)| since.elapsed() > LIFE) {
            pods.delete(&name, &DeleteParams::default().grace_period(0)).await.map(drop)?;
        }
    }
    Ok(())
}

/// New TLS connections every 100 ms, each against the bundle just read.
struct Dialler {
    seen: Arc<Mutex<Dialled>>,
    task: JoinHandle<Result<()>>,
}

#[derive(Default)]
struct Dialled {
    calls: usize,
    bundles: BTreeSet<Vec<u8>>,
    failures: Vec<String>,
}

impl Dialler {
    fn start(client: Client, address: SocketAddr) -> Self {
        let seen: Arc<Mutex<Dialled>> = Arc::default();
        let task = tokio::spawn(dialling(client, address, Arc::clone(&seen)));
        Self { seen, task }
    }

    fn end(self) -> Result<Dialled> {
        ensure!(!self.task.is_finished(), "the second client has ended by itself");
        self.task.abort();
        Ok(std::mem::take(&mut *self.seen.lock()))
    }
}

async fn dialling(client: Client, address: SocketAddr, seen: Arc<Mutex<Dialled>>) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client);
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": { "uid": "by-hand" } });
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tick.tick().await;
        let stored = configurations.get(keys::WEBHOOK_CONFIGURATION).await?;
        for hook in stored.webhooks.unwrap_or_default() {
            let bundle = hook.client_config.ca_bundle.context("the entry has no caBundle")?.0;
            let trust = Trust::new(&host, &bundle)?;
            let answer = dial::post(address, &trust, keys::PATH_INJECT, review.to_string().into_bytes()).await;
            let mut seen = seen.lock();
            seen.calls += 1;
            seen.bundles.insert(bundle);
            seen.failures.extend(answer.err().map(|error| format!("{error:#}")));
        }
    }
}

/// What the API server counted so far: webhook calls that failed and cost the request, and those it let pass.
async fn counted(client: &Client) -> Result<(f64, f64)> {
    let metrics = Metrics::of_api_server(client).await?;
    let failed = &[("name", keys::WEBHOOK_INJECT), ("error_type", "calling_webhook_error")];
    let open = &[("name", keys::WEBHOOK_INJECT)];
    let rejected = metrics.sum("apiserver_admission_webhook_rejection_count", failed);
    Ok((rejected, metrics.sum("apiserver_admission_webhook_fail_open_count", open)))
}

/// Tries a creation (nothing is stored) until its answer is as wanted: the API server learns of configurations,
/// policies and their parameters by watches of its own, and offers nothing to await.
async fn until_created(ns: &TestNamespace, wanted: impl Fn(&Pod) -> bool) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let answer = ns.create(&pod(None), true).await?;
        if let Ok(stored) = &answer.result
            && wanted(&stored.clone().try_parse()?)
        {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the last answer was {:?}", answer.result);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One of two instances is killed every 8 s, while leaves live for 3 s and authorities for 15 s.
async fn chaos(failure_mode: FailureMode) -> Result<()> {
    let _turn = TURN.lock().await;
    let cp = ControlPlane::start(Options::default()).await?;
    let installing = Installing {
        failure_mode,
        webhooks: 2,
        flags: ["--drain-delay=500ms", "--cert-lifetime=3s", "--ca-lifetime=15s"].map(str::to_owned).to_vec(),
        // A dead instance leaves the rotation with the first connection it refuses: what is left to fail is in flight.
        balancer: BalancerOptions { next_when_refused: true, ..BalancerOptions::default() },
        ..Installing::default()
    };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("chaos").await?;
    let client = ns.client();
    until_created(&ns, injected).await?;

    let before = counted(&client).await?;
    let dialler = Dialler::start(client.clone(), installation.balancer.address());
    let load = Load::start(&ns);
    let begun = Instant::now();
    for kill in 0..KILLS {
        tokio::time::sleep(Duration::from_secs(8)).await;
        let victim = &installation.webhooks[kill % 2];
        victim.kill().await;
        installation.balancer.wait_for_endpoints(1).await?;
        victim.start_again()?;
        victim.ready().await?;
        installation.balancer.wait_for_endpoints(2).await?;
    }
    let took = begun.elapsed();
    let tally = load.end().await?;
    let dialled = dialler.end()?;
    let after = counted(&client).await?;

    let (rejected, open) = (after.0 - before.0, after.1 - before.1);
    let in_flight = KILLS * WORKERS;
    println!(
        "{} Pods in {took:?}, {KILLS} kills: {} refused, {} gated, {rejected} rejections and {open} fail-opens counted \
         (at most {in_flight} in flight); {} TLS connections against {} bundles, {} lost",
        tally.created,
        tally.refused.len(),
        tally.gated.len(),
        dialled.calls,
        dialled.bundles.len(),
        dialled.failures.len(),
    );
    // A fifth of the wanted rate is enough: machines that do other things as well are slow, not wrong.
    ensure!(tally.created as f64 > took.as_secs_f64() * 10.0, "{} Pods in {took:?} are no load", tally.created);
    ensure!(tally.unprotected.is_empty(), "stored without sidecars: {:?}", tally.unprotected);
    let lost = match failure_mode {
        FailureMode::Fail => {
            ensure!(tally.gated.is_empty() && open == 0.0, "let through: {:?}, {open} counted", tally.gated);
            ensure!(tally.refused.len() as f64 == rejected, "{rejected} counted, but refused: {:#?}", tally.refused);
            tally.refused
        }
        FailureMode::Gate => {
            ensure!(tally.refused.is_empty() && rejected == 0.0, "refused: {:#?}, {rejected} counted", tally.refused);
            // Fewer are gated than calls failed: the API server may review a creation twice, and one answer is enough.
            ensure!(tally.gated.len() as f64 <= open, "{open} counted, but gated: {:?}", tally.gated);
            ensure!(open <= in_flight as f64, "{open} of at most {in_flight} calls in flight");
            tally.gated
        }
    };
    ensure!(lost.len() <= in_flight, "{} of at most {in_flight} calls in flight: {lost:#?}", lost.len());
    // This client has one connection at a time, so a kill can cost it one; and never one for its certificate.
    let untrusted = dialled.failures.iter().any(|failure| failure.contains("certificate"));
    ensure!(dialled.failures.len() <= KILLS && !untrusted, "new connections: {:#?}", dialled.failures);
    ensure!(dialled.calls > 50 && dialled.bundles.len() > 2, "{} calls, too few rotations", dialled.calls);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_replicas_under_rotation_cost_only_what_was_in_flight() -> Result<()> {
    chaos(FailureMode::Fail).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_replicas_in_gate_mode_leave_only_what_was_in_flight_behind_the_gate() -> Result<()> {
    chaos(FailureMode::Gate).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rolling_restart_costs_nothing_and_losing_all_replicas_costs_only_enrolled_pods() -> Result<()> {
    let _turn = TURN.lock().await;
    let cp = ControlPlane::start(Options::default()).await?;
    let installing = Installing {
        webhooks: 2,
        flags: vec!["--drain-delay=2s".to_owned()],
        // New connections still arrive for a while after the instance has said that it is leaving.
        balancer: BalancerOptions { endpoint_delay: Duration::from_millis(500), ..BalancerOptions::default() },
        ..Installing::default()
    };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("rolling").await?;
    let client = ns.client();
    until_created(&ns, injected).await?;

    let before = counted(&client).await?;
    let load = Load::start(&ns);
    for webhook in &installation.webhooks {
        let ended = webhook.stop(FAREWELL).await?;
        ensure!(ended.success(), "a drain ended with {ended}:\n{}", webhook.log());
        installation.balancer.wait_for_endpoints(1).await?;
        webhook.start_again()?;
        webhook.ready().await?;
        installation.balancer.wait_for_endpoints(2).await?;
    }
    let tally = load.end().await?;
    ensure!(tally.refused.is_empty(), "{} of {}: {:#?}", tally.refused.len(), tally.created, tally.refused);
    ensure!(tally.created > 100 && tally.gated.is_empty() && tally.unprotected.is_empty(), "{:?}", tally.unprotected);
    assert_eq!(counted(&client).await?, before, "counted by the API server");

    // Nobody is left: whoever is not enrolled does not notice, and the judge's counts do move.
    for webhook in &installation.webhooks {
        webhook.kill().await;
    }
    let refused = ns.rejects(&pod(Some("enrolled"))).await?;
    assert!(refused.message.contains(keys::WEBHOOK_INJECT), "{}", refused.message);
    let mut other = pod(Some("other"));
    other["metadata"]["labels"].as_object_mut().unwrap().remove(keys::LABEL_TYPE);
    ns.accepts(&other).await?;
    assert_eq!(counted(&client).await?, (before.0 + 1.0, before.1), "counted by the API server");
    Ok(())
}

/// The answer to a change of a Pod that must not be made.
async fn refused(pods: &Api<Pod>, name: &str, change: &Value) -> Result<String> {
    match pods.patch(name, &PatchParams::default(), &Patch::Merge(change)).await {
        Err(kube::Error::Api(status)) => Ok(status.message.clone()),
        Err(error) => Err(error.into()),
        Ok(_) => anyhow::bail!("{change} was accepted"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_the_gate_nothing_runs_unprotected_and_all_that_has_a_controller_comes_back() -> Result<()> {
    let _turn = TURN.lock().await;
    let cp = ControlPlane::start(Options::default()).await?;
    let installing = Installing { failure_mode: FailureMode::Gate, webhooks: 2, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("gated").await?;
    let pods: Api<Pod> = ns.api();
    until_created(&ns, |pod| injected(pod) && !gated(pod)).await?;

    for webhook in &installation.webhooks {
        webhook.kill().await;
    }
    installation.balancer.wait_for_endpoints(0).await?;
    until_created(&ns, gated).await?;
    let before = counted(&ns.client()).await?;
    for (kind, name) in [("Deployment", "web"), ("StatefulSet", "store"), ("Job", "once")] {
        ns.accepts(&workload(kind, name)).await?;
    }
    ns.accepts(&pod(Some("bare"))).await?;
    let waiting = |pod: &Pod| gated(pod) && !injected(pod) && phase(pod) == "Pending";
    let all = wait_until(&pods, watcher::Config::default(), |all| all.len() == 4 && all.values().all(waiting)).await?;
    ensure!(all.iter().all(|pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none())), "bound: {all:?}");
    ensure!(counted(&ns.client()).await?.1 >= before.1 + 4.0, "the API server let them pass without the webhook");
    let told = |event: &Event| {
        event.reason.as_deref() == Some("GatedWithoutController")
            && event.involved_object.name.as_deref() == Some("bare")
    };
    wait_until(&ns.api::<Event>(), watcher::Config::default(), |all| all.values().any(told)).await?;

    let message = refused(&pods, "bare", &json!({ "spec": { "schedulingGates": null } })).await?;
    ensure!(message.contains(keys::SCHEDULING_GATE), "{message}");

    for webhook in &installation.webhooks {
        webhook.start_again()?;
        webhook.ready().await?;
    }
    installation.balancer.wait_for_endpoints(2).await?;
    for name in ["web", "store"] {
        let ours = watcher::Config::default().labels(&format!("app={name}"));
        let runs = |pod: &Pod| injected(pod) && !gated(pod) && phase(pod) == "Running";
        wait_until(&pods, ours, |all| all.len() == 1 && all.values().all(runs)).await?;
    }
    let over = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
    let job = wait_for(&ns.api::<Job>(), "once", over).await?;
    ensure!(job.status.as_ref().and_then(|status| status.failed).unwrap_or_default() == 0, "failed: {:?}", job.status);
    let ours = watcher::Config::default().labels("app=once");
    wait_until(&pods, ours, |all| all.len() == 1 && all.values().all(|pod| injected(pod) && !gated(pod))).await?;
    ensure!(waiting(&pods.get("bare").await?), "the bare Pod is only reported");

    let web = wait_until(&pods, watcher::Config::default().labels("app=web"), |all| all.len() == 1).await?;
    let name = web[0].name_any();
    let edit = json!({ "metadata": { "annotations": { keys::ANNOTATION_RUNTIME_CONFIG: "mode: waypoint" } } });
    let message = refused(&pods, &name, &edit).await?;
    ensure!(message.contains(keys::ANNOTATION_RUNTIME_CONFIG), "{message}");
    // Every other change of the same Pod is the user's business.
    let edit = json!({ "metadata": { "annotations": { "example.com/seen": "yes" } } });
    pods.patch(&name, &PatchParams::default(), &Patch::Merge(&edit)).await?;
    Ok(())
}
