//! Many agents: at rest nothing is written although every answer is signed anew, neither after a restart; and who answers at once waits for nobody who does not.
//!
//! Short in `make test-peers`, at full size by `make test-cards`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use webhook_tests::network::Network;
use webhook_tests::svid::Authority;
use webhook_tests::{ControlPlane, Installation, Installing, Mark, Options, TestNamespace, trial};

use super::fleet::{self, ACCOUNT, DOMAIN, Fleet, Manner, cards, condition};

/// User of the processes that write.
const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
/// How many times as long healthy agents may wait beside others as alone.
const RATIO: u32 = 3;
/// Agents of a namespace, of which no more than 1,024 cards are judged.
const OF_NAMESPACE: usize = 500;
/// Slow or hostile ones of the namespace of the healthy.
const BESIDE: usize = 900;
/// Below this a delay is one of the machine.
const FLOOR: Duration = Duration::from_millis(500);

/// Time for `count` agents to come up, and to be asked.
fn patience(count: usize) -> Duration {
    webhook_tests::patience::patience() + Duration::from_millis(500) * u32::try_from(count).unwrap_or(u32::MAX)
}

/// A control plane on which Drawbridge believes `authority`, and the agents that answer there.
struct Stage {
    cp: ControlPlane,
    installation: Installation,
    fleet: Fleet,
    authority: Authority,
    /// The processes that write are in it.
    _network: Arc<Network>,
}

impl Stage {
    async fn set() -> Result<Self> {
        let cp = ControlPlane::start(Options::default()).await?;
        let network = Arc::new(Network::new().await?.with_pods().await?);
        let (fleet, authority) = (Fleet::start(&network).await?, Authority::new(DOMAIN)?);
        let bundles = cp.namespace("bundles").await?;
        let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bundle"},
            "data": {"bundle.crt": authority.pem()}});
        bundles.accepts(&bundle).await?;
        let platform = format!(
            "cards: {{audit: false, minimumPeriodSeconds: 5, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: bundle, namespace: {}, key: bundle.crt}}}}}}\n",
            bundles.name()
        );
        let installing = Installing { network: Some(network.clone()), platform, ..Installing::default() };
        let installation = Installation::start(&cp, &installing).await?;
        Ok(Self { cp, installation, fleet, authority, _network: network })
    }

    /// A namespace whose agents sign as its account from now on.
    async fn namespace(&self, prefix: &str) -> Result<TestNamespace> {
        let ns = self.cp.namespace(prefix).await?;
        fleet::account(&ns).await?;
        self.fleet.signed_by(ns.name(), self.authority.signer(&format!("/ns/{}/sa/{ACCOUNT}", ns.name()))?);
        Ok(ns)
    }

    /// Kills the process that writes.
    async fn kill(&self) -> Result<()> {
        self.installation.controllers.first().context("controllers")?.kill().await;
        Ok(())
    }

    async fn start_again(&self) -> Result<()> {
        let controllers = self.installation.controllers.first().context("controllers")?;
        controllers.start_again()?;
        controllers.ready().await
    }

    /// What our process wrote since a mark, but its Lease.
    async fn written(&self, mark: Mark) -> Result<Vec<String>> {
        let requests = self.cp.audit().settled(mark).await?.by(CONTROLLERS).writes();
        Ok(requests.filter(|request| request.resource != "leases").iter().map(ToString::to_string).collect())
    }
}

/// Waits until that many Pods of a namespace are Ready.
async fn ready(ns: &TestNamespace, count: usize) -> Result<()> {
    let (deadline, pods): (_, Api<Pod>) = (Instant::now() + patience(count), ns.api());
    let is_ready = |pod: &&Pod| {
        let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
    };
    loop {
        let now = pods.list(&ListParams::default()).await?.items.iter().filter(is_ready).count();
        if now == count {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{now} of {count} Pods are Ready");
        sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_that_are_signed_anew_at_every_answer_are_written_once() -> Result<()> {
    let count = trial::size(12, 2_000);
    let period = Duration::from_secs(if count > 100 { 30 } else { 5 });
    let stage = Stage::set().await?;
    let mut namespaces = Vec::new();
    for first in (0..count).step_by(OF_NAMESPACE) {
        let ns = stage.namespace("rest").await?;
        let of_it = OF_NAMESPACE.min(count - first);
        for number in 0..of_it {
            fleet::make(&ns, &format!("healthy-{number}"), period).await?;
        }
        namespaces.push((ns, of_it));
    }
    let verified = |card: &Value| condition(card, "Verified") == "True" && condition(card, "Bound") == "True";
    for (ns, of_it) in &namespaces {
        cards(ns, "healthy-", *of_it, patience(count), verified).await?;
    }
    let asked_again = async |more: usize| {
        let of_all =
            namespaces.iter().map(|(ns, _)| stage.fleet.asked_again("healthy-", ns.name(), more, patience(count)));
        futures::future::try_join_all(of_all).await.map(drop)
    };
    // Whoever was verified first has been asked anew meanwhile; what is told late is told by the second look.
    asked_again(1).await?;

    let process = || stage.installation.controllers[0].pid().context("controllers run");
    let mark = stage.cp.audit().mark()?;
    let (begun, before) = (Instant::now(), processor_time(process()?)?);
    asked_again(2).await?;
    let (took, at_rest) = (begun.elapsed(), processor_time(process()?)?.saturating_sub(before));
    let written = stage.written(mark).await?;
    assert!(written.is_empty(), "at rest: {written:#?}");

    stage.kill().await?;
    let mark = stage.cp.audit().mark()?;
    stage.start_again().await?;
    asked_again(2).await?;
    let written = stage.written(mark).await?;
    assert!(written.is_empty(), "after a restart: {written:#?}");
    let asked = stage.fleet.asked().values().sum::<usize>();
    let since = processor_time(process()?)?;
    let share = 100.0 * at_rest.as_secs_f64() / took.as_secs_f64();
    eprintln!(
        "{count} cards at a period of {period:?}, each signed anew at every one of {asked} answers: 0 writes at rest and after a restart; at rest \
         {share:.1} % of a core ({at_rest:.1?} of processor time in {took:.1?}), {since:.1?} of processor time since the restart"
    );
    Ok(())
}

/// Processor time of a process, in hundredths of a second as the kernel counts it.
fn processor_time(pid: i32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name, which may hold anything: the state is the first of these, time in user mode the twelfth.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let of = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    let ticks = of(11).zip(of(12)).map(|(user, system)| user + system).context("the kernel tells no times")?;
    Ok(Duration::from_millis(10 * ticks))
}

/// When `count` healthy cards of a namespace are read, from now on; nobody knows them yet.
async fn cold(stage: &Stage, ns: &TestNamespace, count: usize) -> Result<Duration> {
    let begun = Instant::now();
    stage.start_again().await?;
    cards(ns, "healthy-", count, patience(count), |card| condition(card, "Synced") == "True").await?;
    Ok(begun.elapsed())
}

/// When all of them are read again, after a person asked for it.
async fn warm(ns: &TestNamespace, count: usize, token: &str) -> Result<Duration> {
    let api: Api<drawbridge::api::agent_kagenti_dev::agent_card::AgentCard> = ns.api();
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"agentcard.kagenti.dev/refresh": token}}}));
    let begun = Instant::now();
    for number in 0..count {
        api.patch(&format!("healthy-{number}"), &PatchParams::default(), &patch).await?;
    }
    cards(ns, "healthy-", count, patience(count), |card| card["status"]["handledRefresh"] == token).await?;
    Ok(begun.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_answers_at_once_waits_for_nobody_who_does_not() -> Result<()> {
    let (healthy, bad) = (trial::size(10, 100), trial::size(50, 1_000));
    let period = Duration::from_secs(30);
    let stage = Stage::set().await?;
    stage.kill().await?;
    let alone = stage.namespace("alone").await?;
    for number in 0..healthy {
        fleet::make(&alone, &format!("healthy-{number}"), period).await?;
    }
    ready(&alone, healthy).await?;
    let cold_alone = cold(&stage, &alone, healthy).await?;
    let warm_alone = warm(&alone, healthy, "one").await?;

    // The others are in the same namespace, as far as it takes them, and come first by name.
    stage.kill().await?;
    let (beside, elsewhere) = (stage.namespace("beside").await?, stage.namespace("elsewhere").await?);
    for number in 0..bad {
        let manner = Manner::BAD[number % Manner::BAD.len()];
        let ns = if number < BESIDE { &beside } else { &elsewhere };
        fleet::make(ns, &format!("{}{number}", manner.prefix()), period).await?;
    }
    for number in 0..healthy {
        fleet::make(&beside, &format!("healthy-{number}"), period).await?;
    }
    ready(&beside, healthy + bad.min(BESIDE)).await?;
    ready(&elsewhere, bad.saturating_sub(BESIDE)).await?;
    let cold_beside = cold(&stage, &beside, healthy).await?;
    let warm_beside = warm(&beside, healthy, "two").await?;
    for (what, beside, alone) in [("cold", cold_beside, cold_alone), ("warm", warm_beside, warm_alone)] {
        let ratio = beside.as_secs_f64() / alone.as_secs_f64();
        eprintln!(
            "{healthy} healthy agents beside {bad} slow or hostile ones, {} of them of their namespace, {what}: {ratio:.2} times as long as alone (must ≤ {RATIO}): \
             {beside:.1?} where alone it takes {alone:.1?}",
            bad.min(BESIDE)
        );
        ensure!(beside <= RATIO * alone.max(FLOOR), "{what}: {beside:?} beside {bad} others, {alone:?} alone");
    }
    Ok(())
}
