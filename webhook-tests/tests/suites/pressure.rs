//! What a cluster does to the product: others write the same objects, objects arrive by the thousand, etcd hangs, the
//! API server is away. Rows D6, D9, D10 and D16 of the fault list, with the real binary.

#![allow(clippy::print_stdout, reason = "what a run has cost is its result, shown with --nocapture")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use webhook_tests::audit::Mark;
use webhook_tests::dial::{self, Trust};
use webhook_tests::endurance::load::{injected, pod};
use webhook_tests::endurance::soak::{Sample, look};
use webhook_tests::endurance::tenants::Tenants;
use webhook_tests::endurance::until_created;
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Metrics, Options, Process, TestNamespace, installation, trial,
    wait_for, wait_until,
};

/// Under which the controllers write.
const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";

async fn installed() -> Result<(ControlPlane, Installation)> {
    installed_with(&Installing::default()).await
}

async fn installed_with(installing: &Installing) -> Result<(ControlPlane, Installation)> {
    let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
    let installation = Installation::start(&cp, installing).await?;
    Ok((cp, installation))
}

/// A workload whose Pods want a ServiceAccount of its name, and which makes none.
fn workload(kind: &str, name: &str) -> Value {
    let mut template = pod(Some(name));
    let spec = template["spec"].take();
    let template = json!({ "metadata": { "labels": template["metadata"]["labels"] }, "spec": spec });
    let selector = json!({ "matchLabels": { "app": name } });
    let spec = match kind {
        "StatefulSet" => json!({ "replicas": 0, "serviceName": name, "selector": selector, "template": template }),
        _ => json!({ "replicas": 0, "selector": selector, "template": template }),
    };
    json!({ "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// Somebody else, who writes an annotation of one object 50 times a second, wins every conflict, and never rests.
struct Storm {
    written: Arc<AtomicUsize>,
    task: JoinHandle<Result<()>>,
}

impl Storm {
    fn over<K>(api: Api<K>, name: &'static str) -> Self
    where
        K: Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + Sync + 'static,
    {
        let written = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&written);
        let task = tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_millis(20));
            loop {
                tick.tick().await;
                let turn = counted.fetch_add(1, Ordering::Relaxed).to_string();
                let change = json!({ "metadata": { "annotations": { "example.com/turn": turn } } });
                api.patch(name, &PatchParams::default(), &Patch::Merge(change)).await?;
            }
        });
        Self { written, task }
    }

    async fn end(self) -> Result<usize> {
        if self.task.is_finished() {
            self.task.await??;
        } else {
            self.task.abort();
        }
        Ok(self.written.load(Ordering::Relaxed))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d9_what_others_write_50_times_a_second_still_converges_within_5_writes_per_change() -> Result<()> {
    let (cp, _installation) = installed().await?;
    let ns = cp.namespace("storm").await?;
    let (accounts, maps): (Api<ServiceAccount>, Api<ConfigMap>) = (ns.api(), ns.api());
    let templates: Api<ConfigMap> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
    ns.accepts(&workload("Deployment", "web")).await?;
    wait_for(&accounts, "web", |_| true).await?;
    wait_for(&maps, keys::CONFIG_MAP_ROUTES, |_| true).await?;
    let storms =
        [Storm::over(ns.api::<ServiceAccount>(), "web"), Storm::over(ns.api::<ConfigMap>(), keys::CONFIG_MAP_ROUTES)];
    let writes = async |mark, resource: &str| {
        let asked = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
        anyhow::Ok(asked.resource(resource).into_iter().map(|request| request.code).collect::<Vec<_>>())
    };

    // What others write of theirs is none of our business.
    let (mark, seen) = (cp.audit().mark()?, storms[0].written.load(Ordering::Relaxed));
    while storms[0].written.load(Ordering::Relaxed) < seen + 50 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for resource in ["serviceaccounts", "configmaps"] {
        assert_eq!(writes(mark, resource).await?, [], "{resource}");
    }

    // Each of these changes asks for one write of ours, of an object that has changed before it arrives.
    let (mut tries, mut changes) = (0, 0);
    for (owners, kind) in [(2, "StatefulSet"), (3, "DaemonSet"), (4, "ReplicaSet")] {
        let (mark, text) = (cp.audit().mark()?, format!("# {owners}\n[]\n"));
        let mut object = workload(kind, "web");
        if kind == "DaemonSet" {
            object["spec"].as_object_mut().unwrap().remove("replicas");
        }
        ns.accepts(&object).await?;
        let template = json!({ "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": keys::CONFIG_MAP_ROUTES }, "data": { "routes.yaml": text } });
        templates.patch(keys::CONFIG_MAP_ROUTES, &PatchParams::apply("test"), &Patch::Apply(template)).await?;
        let owned = |account: &ServiceAccount| account.metadata.owner_references.as_ref().map(Vec::len) == Some(owners);
        wait_for(&accounts, "web", owned).await?;
        let refreshed = |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("routes.yaml")) == Some(&text);
        wait_for(&maps, keys::CONFIG_MAP_ROUTES, refreshed).await?;
        for resource in ["serviceaccounts", "configmaps"] {
            let codes = writes(mark, resource).await?;
            ensure!(codes.iter().filter(|code| **code == Some(200)).count() == 1, "{resource}: {codes:?}");
            ensure!(codes.len() <= 5, "{resource}: {codes:?}");
            (tries, changes) = (tries + codes.len(), changes + 1);
        }
    }
    let [one, two] = storms;
    println!("{changes} changes in {tries} writes, against {} and {} of others", one.end().await?, two.end().await?);
    Ok(())
}

/// How many reviews the API server has asked of webhooks.
async fn reviews(cp: &ControlPlane) -> Result<f64> {
    let counted = Metrics::of_api_server(&cp.client().await?).await?;
    Ok(counted.sum("apiserver_admission_webhook_request_total", &[]))
}

async fn samples(installation: &Installation) -> Result<[Sample; 2]> {
    let at = Duration::ZERO;
    Ok([look(&installation.webhooks[0], at).await?, look(&installation.controllers[0], at).await?])
}

fn bounded(before: [Sample; 2], after: [Sample; 2]) -> Result<()> {
    for (role, (before, after)) in ["webhook", "controllers"].into_iter().zip(before.into_iter().zip(after)) {
        ensure!(after.resident <= 2.0 * before.resident, "{role}: {before:?}, then {after:?}");
        // Connections of the client library come and go; a task or file per object would be thousands.
        ensure!(
            after.tasks <= before.tasks + 20.0 && after.files <= before.files + 20.0,
            "{role}: {before:?}, {after:?}"
        );
    }
    Ok(())
}

/// The row asks for 100,000 objects in 60 s; what a test machine's API server takes is far below, so the rate is its
/// own, all connections of this client at once, and the bounds are the row's, twice the memory of before, and what shows
/// a process that keeps the objects themselves: these are large, and what is known of each is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d16_objects_arriving_as_fast_as_the_api_server_takes_them_do_not_double_the_memory() -> Result<()> {
    /// Length of what nobody looks at, in every object.
    const NOTE: usize = 32 << 10;
    let objects = trial::size(1_000, 4_000);
    // How much memory may grow, in MiB: half of what the notes alone would take.
    let kept = (objects * NOTE) as f64 / (2 << 20) as f64;
    let (cp, installation) = installed().await?;
    let ns = cp.namespace("flood").await?;
    until_created(&ns, injected).await?;
    let before = samples(&installation).await?;
    let accounts: Api<ServiceAccount> = ns.api();
    let make = |number: usize| {
        let accounts = accounts.clone();
        let account = json!({ "metadata": { "name": format!("flood-{number}"),
            "labels": { "a-label-of-some-length": "with a value".replace(' ', "-") },
            "annotations": { "example.com/note": "n".repeat(NOTE) } } });
        async move { accounts.create(&PostParams::default(), &serde_json::from_value(account)?).await.context("flood") }
    };
    let begun = Instant::now();
    let flood = futures::stream::iter(0..objects).map(make).buffer_unordered(32).try_for_each(async |_| Ok(()));
    let over = AtomicBool::new(false);
    let peak = async {
        let mut peak = before;
        while !over.load(Ordering::Relaxed) {
            for (peak, now) in peak.iter_mut().zip(samples(&installation).await?) {
                peak.resident = peak.resident.max(now.resident);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        anyhow::Ok(peak)
    };
    let flood = async {
        let ended = flood.await;
        over.store(true, Ordering::Relaxed);
        ended
    };
    let (flooded, peak) = tokio::join!(flood, peak);
    flooded?;
    let peak = peak?;
    let took = begun.elapsed();
    // Whoever comes last is served next: nothing has piled up.
    let (begun, mark) = (Instant::now(), cp.audit().mark()?);
    ns.accepts(&workload("Deployment", "last")).await?;
    wait_for(&accounts, "last", |_| true).await?;
    until_created(&ns, injected).await?;
    let served = begun.elapsed();
    let written = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let before_it = written.iter().take_while(|request| request.name != "last").count();
    let now = samples(&installation).await?;
    println!("{objects} objects in {took:?}, the next served after {served:?}; {before:?}, peak {peak:?}, {now:?}");
    ensure!(before_it < written.len() && before_it <= 5, "{before_it} writes came first: {written}");
    for (index, role) in ["webhook", "controllers"].into_iter().enumerate() {
        ensure!(peak[index].resident <= 2.0 * before[index].resident, "{role}: {before:?}, peak {peak:?}");
        let grown = peak[index].resident - before[index].resident;
        ensure!(grown <= kept, "{role} keeps what it does not need: {grown} MiB more, {before:?}, peak {peak:?}");
    }
    bounded(before, now)
}

/// Reviews by hand, straight to one instance, until told to end: how many, and the slowest.
struct Asking {
    end: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    task: JoinHandle<Result<(usize, Duration)>>,
}

impl Asking {
    async fn start(ns: &TestNamespace, webhook: SocketAddr) -> Result<Self> {
        let configurations: Api<MutatingWebhookConfiguration> = Api::all(ns.client());
        let hooks = configurations.get(keys::WEBHOOK_CONFIGURATION).await?.webhooks.unwrap_or_default();
        let bundle = hooks.into_iter().next().and_then(|hook| hook.client_config.ca_bundle).context("no caBundle")?.0;
        let trust = Trust::new(&format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE), &bundle)?;
        let review = json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "by-hand", "operation": "CREATE", "namespace": ns.name(), "object": pod(Some("by-hand")),
            "kind": { "group": "", "version": "v1", "kind": "Pod" },
            "resource": { "group": "", "version": "v1", "resource": "pods" } } });
        let (end, answered) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (ended, counted) = (Arc::clone(&end), Arc::clone(&answered));
        let task = tokio::spawn(async move {
            let (mut asked, mut slowest) = (0, Duration::ZERO);
            while !ended.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let body = review.to_string().into_bytes();
                let (status, answer) = dial::post(webhook, &trust, keys::PATH_INJECT, body).await?;
                let answer: Value = serde_json::from_slice(&answer)?;
                ensure!(status == 200 && answer["response"]["patch"].is_string(), "{status}: {answer}");
                (asked, slowest) = (asked + 1, slowest.max(begun.elapsed()));
                counted.store(asked, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok((asked, slowest))
        });
        Ok(Self { end, answered, task })
    }

    /// Waits for so many more answers: whatever is the matter meanwhile does not keep them up.
    async fn more(&self, answers: usize) -> Result<()> {
        // The one that is on its way may have been answered before.
        let enough = self.answered.load(Ordering::Relaxed) + 1 + answers;
        until("reviews are answered", || async {
            Ok(self.task.is_finished() || self.answered.load(Ordering::Relaxed) >= enough)
        })
        .await
    }

    async fn end(self) -> Result<(usize, Duration)> {
        self.end.store(true, Ordering::Relaxed);
        self.task.await?
    }
}

/// Asks again and again until it is so.
async fn until<F: Future<Output = Result<bool>>>(what: &str, mut so: impl FnMut() -> F) -> Result<()> {
    let asking = async {
        while !so().await? {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    };
    tokio::time::timeout(patience(), asking).await.with_context(|| format!("{what}: not within {:?}", patience()))?
}

async fn staleness(process: &Drawbridge) -> Result<f64> {
    Ok(process.metrics().await?.sum("drawbridge_snapshot_staleness_seconds", &[]))
}

/// Waits until a new workload is served and a Pod injected; returns how long that took.
async fn recovered(ns: &TestNamespace, name: &str, since: Instant) -> Result<Duration> {
    ns.accepts(&workload("Deployment", name)).await?;
    wait_for(&ns.api::<ServiceAccount>(), name, |_| true).await?;
    until_created(ns, injected).await?;
    Ok(since.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d6_d10_while_etcd_hangs_or_the_api_server_is_away_reviews_are_answered_and_then_all_goes_on() -> Result<()> {
    /// At least, and until so many reviews were answered.
    const AWAY: Duration = Duration::from_secs(3);
    const REVIEWS: usize = 20;
    /// Created at once.
    const LATE: usize = 20;
    let (cp, installation) = installed().await?;
    let ns = cp.namespace("away").await?;
    let (webhook, controllers) = (&installation.webhooks[0], &installation.controllers[0]);
    recovered(&ns, "first", Instant::now()).await?;
    let (before, pids) = (samples(&installation).await?, [webhook.pid(), controllers.pid()]);
    let asked_before = reviews(&cp).await?;

    let asking = Asking::start(&ns, webhook.webhook()).await?;
    cp.pause(Process::Etcd);
    let late = (0..LATE).map(|number| workload("Deployment", &format!("late-{number}"))).collect::<Vec<_>>();
    let late = futures::future::try_join_all(late.iter().map(|one| ns.accepts(one)));
    let resume = async {
        tokio::time::sleep(AWAY).await;
        asking.more(REVIEWS).await?;
        let (ready, during) = (dial::get(webhook.health(), "/readyz").await?.0, samples(&installation).await?);
        cp.resume(Process::Etcd);
        anyhow::Ok((ready, during))
    };
    let (late, resumed) = tokio::join!(late, resume);
    let since = Instant::now();
    late.context("the API server gave up on etcd")?;
    let (ready, during) = resumed?;
    ensure!(ready == 200, "a webhook that knows the cluster stays ready: {ready}");
    // The API server asks over HTTP/1.1 and opens a connection for a review at most; one is that of `Asking`.
    let (opened, asked) = (during[0].accepted - before[0].accepted, reviews(&cp).await? - asked_before);
    ensure!(asked >= LATE as f64 && opened <= asked + 1.0, "{opened} connections opened for {asked} reviews");
    bounded(before, during)?;
    made(&ns, 1 + LATE).await?;
    let took = recovered(&ns, "after-etcd", since).await?;
    let (asked, slowest) = asking.end().await?;
    println!("etcd hung: {asked} reviews answered, the slowest in {slowest:?}; recovered in {took:?}");

    let asking = Asking::start(&ns, webhook.webhook()).await?;
    cp.kill(Process::ApiServer).await;
    asking.more(REVIEWS).await?;
    until("the snapshot grows stale", || async { Ok(staleness(webhook).await? >= AWAY.as_secs_f64()) }).await?;
    let ready = dial::get(webhook.health(), "/readyz").await?.0;
    ensure!(ready == 200, "a webhook that knows the cluster stays ready: {ready}");
    cp.start_again(Process::ApiServer).await?;
    let since = Instant::now();
    let took = recovered(&ns, "after-api-server", since).await?;
    // Every watch has to be heard of again; one of a kind that nothing happens to is when the server ends it, after 25 s.
    until("the snapshot is fresh", || async { Ok(staleness(webhook).await? < since.elapsed().as_secs_f64()) }).await?;
    let (asked, slowest) = asking.end().await?;
    println!("the API server was away: {asked} reviews answered, the slowest in {slowest:?}; recovered in {took:?}");
    ensure!([webhook.pid(), controllers.pid()] == pids, "a process was restarted");
    bounded(before, samples(&installation).await?)
}

/// Waits until so many ServiceAccounts were made in the namespace.
async fn made(ns: &TestNamespace, count: usize) -> Result<()> {
    let selected =
        watcher::Config::default().labels(&format!("{}={}", keys::LABEL_MANAGED_BY, keys::MANAGED_BY_WEBHOOK));
    wait_until(&ns.api::<ServiceAccount>(), selected, |all| all.len() == count).await.map(drop)
}

/// The writes of the controllers since then: how many the API server could not store, and the most for one object.
async fn failed_writes(cp: &ControlPlane, ns: &TestNamespace, mark: Mark) -> Result<(usize, usize)> {
    let asked = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let mut of_object = BTreeMap::<String, usize>::new();
    for request in asked.filter(|request| request.code.is_some_and(|code| code >= 500)).iter() {
        *of_object.entry(format!("{} {}", request.resource, request.name)).or_default() += 1;
    }
    Ok((of_object.values().sum(), of_object.values().copied().max().unwrap_or_default()))
}

/// How often one object may have been tried: at once, then after pauses that double from 1 s, each up to a quarter shorter; one
/// more for luck.
fn at_most(time: Duration) -> usize {
    let ends = (1..).map(|tries| 0.75 * f64::from((1 << tries) - 1));
    2 + ends.take_while(|end| *end <= time.as_secs_f64()).count()
}

/// etcd takes half a second for everything, then refuses everything that needs room. What could not be written is tried
/// again after a pause that doubles, no faster; nothing is lost, and nobody else waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d10_while_etcd_is_slow_or_has_no_room_writes_are_tried_rarely_and_made_up_for_afterwards() -> Result<()> {
    const SLOW: Duration = Duration::from_millis(500);
    /// What is waited for while there is no room: each was tried, and one so often.
    const AGAIN: usize = 3;
    const WORKLOADS: usize = 20;
    const REVIEWS: usize = 20;
    // Nothing can be written, the Lease neither: one that runs out meanwhile is another story, as is the wait for one that nobody has seen.
    let mut installing = Installing::default();
    installing.flags.retain(|flag| !flag.starts_with("--lease-duration"));
    installing.flags.push("--lease-duration=300s".to_owned());
    let (cp, installation) = installed_with(&installing).await?;
    let ns = cp.namespace("full").await?;
    let (webhook, controllers) = (&installation.webhooks[0], &installation.controllers[0]);
    recovered(&ns, "first", Instant::now()).await?;
    let workloads = |name: &str| {
        (0..WORKLOADS).map(|number| workload("Deployment", &format!("{name}-{number}"))).collect::<Vec<_>>()
    };
    let create =
        async |late: Vec<Value>| futures::future::try_join_all(late.iter().map(|one| ns.accepts(one))).await.map(drop);

    let asking = Asking::start(&ns, webhook.webhook()).await?;
    let served_slowly = async |name: &str, served: usize| {
        let over = AtomicBool::new(false);
        let slow = async {
            while !over.load(Ordering::Relaxed) {
                cp.pause(Process::Etcd);
                tokio::time::sleep(SLOW).await;
                cp.resume(Process::Etcd);
                tokio::time::sleep(SLOW / 20).await;
            }
            anyhow::Ok(())
        };
        let served = async {
            let served = async {
                create(workloads(name)).await?;
                made(&ns, 1 + served).await
            };
            let served = served.await;
            over.store(true, Ordering::Relaxed);
            served
        };
        tokio::try_join!(slow, served, asking.more(REVIEWS)).context("etcd is slow").map(drop)
    };
    // Requests that wait for each other have a connection each, and keep it for a while: the first round opens them, and only what comes up
    // after it is bounded.
    served_slowly("first-slow", WORKLOADS).await?;
    let before = samples(&installation).await?;
    let begun = Instant::now();
    served_slowly("slow", 2 * WORKLOADS).await?;
    println!("{WORKLOADS} workloads served in {:?} while etcd took {SLOW:?} for everything", begun.elapsed());

    // What comes up while nobody looks cannot be written once somebody does.
    controllers.pause();
    create(workloads("late")).await?;
    cp.set_storage_full(true).await?;
    let (mark, full) = (cp.audit().mark()?, Instant::now());
    controllers.resume();
    until("writes are refused", || async {
        let (failed, most) = failed_writes(&cp, &ns, mark).await?;
        Ok(failed >= WORKLOADS && most >= AGAIN)
    })
    .await?;
    asking.more(REVIEWS).await?;
    let during = samples(&installation).await?;
    let (failed, most) = failed_writes(&cp, &ns, mark).await?;
    let (away, tries) = (full.elapsed(), at_most(full.elapsed()));
    cp.set_storage_full(false).await?;
    let since = Instant::now();
    ensure!(most <= tries, "one object was tried {most} times in {away:?}, {failed} writes were refused in all");
    bounded(before, during)?;
    made(&ns, 1 + 3 * WORKLOADS).await?;
    let took = recovered(&ns, "after", since).await?;
    let (asked, slowest) = asking.end().await?;
    println!("{asked} reviews answered, the slowest in {slowest:?}");
    let after = samples(&installation).await?;
    println!(
        "etcd was full for {away:?}: {failed} refused writes, {most} of one object; recovered in {took:?}; {before:?}, {during:?}, {after:?}"
    );
    bounded(before, after)
}

/// The short form of `endurance tenants`: one namespace writes 4 ConfigMaps of 560 KB and 10 of 20 KB twice a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_01_a_tenant_who_edits_large_config_maps_holds_no_creation_up_elsewhere() -> Result<()> {
    println!("{}", Tenants { namespaces: 1, creations: 150 }.run().await?);
    Ok(())
}
