//! A fleet of enrolled workloads: waves, restarts, relists, leaders that follow each other or were stopped.
//!
//! Its size is that of variable `DRAWBRIDGE_FLEET` (`make fleet` takes 1,000), or 30, and 100 in `make test-long`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::cli::render::platform;
use futures::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::patience::patience;
use webhook_tests::{
    Drawbridge, Installation, Installing, Mark, Options, Process, Request, Requests, TestNamespace, installation,
    trial, wait_for, wait_until,
};

use super::*;

/// Objects that the test makes at once.
const HANDS: usize = 16;

fn fleet() -> usize {
    std::env::var("DRAWBRIDGE_FLEET").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| trial::size(30, 100))
}

fn name(number: usize) -> String {
    format!("agent-{number:04}")
}

/// The platform file that `render` ships, and more lines, as the kubelet would put it there.
fn configure(installation: &Installation, more: &str) -> Result<()> {
    let (file, new) = (installation.settings().join("config.yaml"), installation.settings().join("new"));
    // Each process looks at the file ten times a second, for itself: none may make Pods by the old one once a wave begins.
    std::fs::write(&new, format!("{}rollout: {{delaySeconds: 2}}\n{more}", platform::platform_file()))?;
    Ok(std::fs::rename(new, file)?)
}

/// Everybody's Deployment and AgentRuntime; those of the second half have run before they are enrolled. They come when the first
/// half is done: the Pods of a thousand Deployments at once are more than the cluster's own controllers make in time.
async fn enrol(ns: &TestNamespace, size: usize) -> Result<()> {
    for (begin, end) in [(0, size / 2), (size / 2, size)] {
        let made = futures::stream::iter(begin..end).map(|number| async move {
            ns.accepts(&deployment(&name(number), 1)).await?;
            if begin > 0 {
                pods(ns, &name(number), 1, false).await?;
            }
            ns.accepts(&art(&name(number), "Deployment", &name(number), json!({}))).await.map(drop)
        });
        made.buffer_unordered(HANDS).try_collect::<()>().await?;
        all_rolled(ns, end).await?;
    }
    Ok(())
}

/// Waits until every AgentRuntime has one Pod with the configuration, and no rollout is left.
async fn all_rolled(ns: &TestNamespace, size: usize) -> Result<()> {
    let done = |art: &AgentRuntime| {
        art.status.as_ref().and_then(|status| status.configured_pods) == Some(1)
            && condition(art, "Ready") == "True/Configured"
            && condition(art, "RolloutProgressing") == "False/RolloutComplete"
    };
    // Waves take their time: as long as something moves, the patience begins anew. It moves in either direction: at first those
    // that a change has not reached yet are done, too.
    let (api, mut before) = (ns.api::<AgentRuntime>(), 0);
    while before < size {
        let found = wait_until(&api, watcher::Config::default(), |all| {
            let count = all.values().filter(|art| done(art)).count();
            all.len() == size && (count == size || count.abs_diff(before) >= 5)
        });
        before = match found.await {
            Ok(all) => all.iter().filter(|art| done(art)).count(),
            Err(error) => bail!("{}\n{error:#}", unfinished(ns).await?),
        };
    }
    Ok(())
}

/// The Deployments that have not rolled, and the Pods of one of them.
async fn unfinished(ns: &TestNamespace) -> Result<String> {
    let all = ns.api::<Deployment>().list(&ListParams::default()).await?.items;
    let stuck =
        all.into_iter().filter(|web| !is_done(web)).map(|web| (web.name_any(), web.metadata.generation, web.status));
    let stuck: Vec<_> = stuck.collect();
    let Some((first, ..)) = stuck.first() else { return Ok("every Deployment has rolled".to_owned()) };
    let selected = ListParams::default().labels(&format!("app={first}"));
    let pods = ns.api::<Pod>().list(&selected).await?.items;
    let pods: Vec<_> =
        pods.into_iter().map(|pod| (pod.name_any(), pod.metadata.deletion_timestamp, pod.status)).collect();
    let sets = ns.api::<ReplicaSet>().list(&selected).await?.items;
    let sets: Vec<_> = sets.into_iter().map(|set| (set.name_any(), set.status)).collect();
    Ok(format!("stuck: {stuck:?}\n{first}: {pods:?}\n{sets:?}"))
}

fn is_done(web: &Deployment) -> bool {
    let status = web.status.clone().unwrap_or_default();
    status.observed_generation == web.metadata.generation
        && [status.updated_replicas, status.replicas, status.available_replicas] == [Some(1); 3]
}

/// Waits until so many Deployments have been rolled to the present configuration by a wave; the most that rolled at once.
async fn all_begun(ns: &TestNamespace, size: usize, mark: &BTreeMap<String, Option<String>>) -> Result<usize> {
    let most = std::sync::atomic::AtomicUsize::new(0);
    let begun = |web: &Deployment| {
        let rolled = web.annotations().get("kagenti.io/rolled-for");
        rolled.is_some() && mark.get(&web.name_any()).is_some_and(|old| *old != hash(web))
    };
    let rolling = |web: &&Deployment| begun(web) && !is_done(web);
    let (api, mut before) = (ns.api::<Deployment>(), 0);
    while before < size {
        let found = wait_until(&api, watcher::Config::default(), |all| {
            most.fetch_max(all.values().filter(rolling).count(), std::sync::atomic::Ordering::SeqCst);
            all.values().filter(|web| begun(web)).count() >= (before + 5).min(size)
        });
        before = found.await?.iter().filter(|web| begun(web)).count();
    }
    Ok(most.into_inner())
}

async fn hashes(ns: &TestNamespace) -> Result<BTreeMap<String, Option<String>>> {
    let all = ns.api::<Deployment>().list(&ListParams::default()).await?.items;
    Ok(all.into_iter().map(|web| (web.name_any(), hash(&web))).collect())
}

/// The ReplicaSets once there are so many and everything has rolled: a status may be a moment older than its workload.
async fn settled_replica_sets(ns: &TestNamespace, size: usize, least: usize) -> Result<usize> {
    let api = ns.api::<ReplicaSet>();
    let all = wait_until(&api, watcher::Config::default(), |all| all.len() >= least).await;
    all.with_context(|| format!("there are never {least} ReplicaSets"))?;
    all_rolled(ns, size).await?;
    Ok(api.list(&ListParams::default()).await?.items.len())
}

async fn leader(cp: &ControlPlane, not: Option<&str>) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, "kagenti-system");
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    let held = wait_for(&leases, "drawbridge-controllers", |lease| {
        !holder(lease).is_empty() && Some(holder(lease).as_str()) != not
    });
    Ok(holder(&held.await.context("nobody leads")?))
}

/// Something new is noticed and dealt with: whatever else was to be done has been done before or with it.
async fn pulse(ns: &TestNamespace, name: &str) -> Result<()> {
    ns.accepts(&deployment(name, 0)).await?;
    ns.accepts(&art(name, "Deployment", name, json!({}))).await?;
    says(ns, name, "Ready", "True/Configured").await.map(drop)
}

async fn leads(process: &Drawbridge) -> Result<bool> {
    Ok(process.metrics().await?.sum("leader_election_master_status", &[]) > 0.0)
}

/// Waits until the leader has looked at everything.
async fn idle(installation: &Installation) -> Result<()> {
    let deadline = tokio::time::Instant::now() + patience();
    loop {
        for process in &installation.controllers {
            let metrics = process.metrics().await?;
            let leads = metrics.sum("leader_election_master_status", &[]) > 0.0;
            if leads && metrics.sum("drawbridge_controller_ready_items", &[]) == 0.0 {
                return Ok(());
            }
        }
        ensure!(tokio::time::Instant::now() < deadline, "the leader is never done");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Nothing but Leases was written since `mark`, in the namespace of the fleet.
async fn nothing_written(cp: &ControlPlane, ns: &TestNamespace, mark: Mark, after: &str) -> Result<()> {
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name());
    ensure!(made.is_empty(), "after {after}: {made}");
    Ok(())
}

/// The controllers changed each Deployment of the fleet once since `mark`, when they had these generations. A write that was stored too late for its
/// answer counts as well: whoever made it sees what it stored, or writes the same again, which changes nothing.
async fn one_write_each(
    cp: &ControlPlane,
    ns: &TestNamespace,
    mark: Mark,
    before: BTreeMap<String, i64>,
) -> Result<()> {
    let all = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments");
    let names = |requests: &Requests| requests.iter().map(|one| one.name.clone()).collect::<BTreeSet<_>>();
    let accepted = all.clone().accepted();
    let heard = accepted.clone().filter(|one| is_heard(one).unwrap_or(true));
    let late = all.clone().filter(|one| one.code.is_none_or(|code| code == 504));
    // Who wrote, and how long that took: a second write may be of another term than the first.
    let told =
        |one: &Request| format!("{} {}..{} {:?} {}", one.name, one.received, one.answered, one.code, one.credential);
    let told = || all.iter().map(told).collect::<Vec<_>>();
    ensure!(heard.len() == names(&heard).len(), "one write for each, nothing twice: {:#?}", told());
    let written = names(&accepted).union(&names(&late)).count();
    ensure!(written == before.len(), "{written} of {} were written: {all}", before.len());
    let once: BTreeMap<_, _> = before.into_iter().map(|(name, generation)| (name, generation + 1)).collect();
    let now = generations(ns).await?;
    ensure!(now == once, "each is changed once: {now:?}, not {once:?}: {:#?}", told());
    Ok(())
}

/// Whether the answer came while its writer still waited for it: a write of a term that ends soon gets a second.
fn is_heard(request: &Request) -> Result<bool> {
    let (from, to): (Timestamp, Timestamp) = (request.received.parse()?, request.answered.parse()?);
    Ok(to.as_millisecond() - from.as_millisecond() < 1_000)
}

/// How often what a Deployment is to be was changed, by name.
async fn generations(ns: &TestNamespace) -> Result<BTreeMap<String, i64>> {
    let all = ns.api::<Deployment>().list(&ListParams::default()).await?.items;
    Ok(all.into_iter().map(|web| (web.name_any(), web.metadata.generation.unwrap_or_default())).collect())
}

/// One story on one control plane: every step leaves the state that the next one needs.
#[tokio::test]
async fn case_033_a_fleet_rolls_in_waves_and_restarts_relists_and_leaders_write_nothing() -> Result<()> {
    let size = fleet();
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing { controllers: 2, ..Installing::default() }).await?;
    let (ns, pulses) = (cp.namespace("fleet").await?, cp.namespace("pulse").await?);
    let mark = cp.audit().mark()?;
    enrol(&ns, size).await?;
    // One ReplicaSet per enrolment, and the user's, where the Deployment's controller was faster than we.
    let sets = settled_replica_sets(&ns, size, size + size / 2).await?;
    assert!(sets <= 2 * size, "one rollout per enrolment at most: {sets}");
    // Whoever makes a Deployment makes its first generation.
    let made = (0..size).map(|number| (name(number), 1)).collect();
    one_write_each(&cp, &ns, mark, made).await.context("enrolment")?;

    // A change without effect: nothing. A change with one: each rolls once, so many at a time.
    let (mark, old, before) = (cp.audit().mark()?, hashes(&ns).await?, generations(&ns).await?);
    configure(&installation, "observability: {logLevel: debug}\n")?;
    pulse(&pulses, "ineffective").await?;
    idle(&installation).await?;
    configure(&installation, "proxy: {uid: 2000}\n")?;
    let most = all_begun(&ns, size, &old).await?;
    // The pulses are enrolled, too.
    let budget = 5.max((size + 1) / 10);
    assert!((1..=budget).contains(&most), "{most} at once, {budget} may");
    assert_eq!(settled_replica_sets(&ns, size, sets + size).await?, sets + size, "one more for each");
    one_write_each(&cp, &ns, mark, before).await.context("a change of the configuration")?;

    // Restart of both roles, another leader with each.
    let mark = cp.audit().mark()?;
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        process.stop(patience()).await?;
        process.start_again()?;
        process.ready().await?;
        leader(&cp, None).await?;
    }
    pulse(&pulses, "restarted").await?;
    idle(&installation).await?;
    nothing_written(&cp, &ns, mark, "restarts").await?;

    // An API server that goes away and comes back: what it can still tell begins with its start, so watches that resume from
    // before get 410 and lists begin anew.
    let mark = cp.audit().mark()?;
    cp.restart(Process::ApiServer).await?;
    pulse(&pulses, "outage").await?;
    leader(&cp, None).await?;
    idle(&installation).await?;
    let asked = cp.audit().settled(mark).await?.by(USER).verb("list");
    for resource in ["deployments", "agentruntimes", "pods"] {
        assert!(!asked.clone().resource(resource).is_empty(), "{resource} were not listed anew: {asked}");
    }
    nothing_written(&cp, &ns, mark, "an outage of the API server").await?;

    stopped_leader(&cp, &installation, (&ns, &pulses), (size, sets + 2 * size)).await
}

/// The leader is stopped in the middle of a wave and resumed after another one has taken over: what it wrote ends before the
/// other one begins, and nothing comes after.
async fn stopped_leader(
    cp: &ControlPlane,
    installation: &Installation,
    (ns, pulses): (&TestNamespace, &TestNamespace),
    (size, sets): (usize, usize),
) -> Result<()> {
    let (holder, began, old) = (leader(cp, None).await?, cp.audit().mark()?, hashes(ns).await?);
    let before = generations(ns).await?;
    configure(installation, "proxy: {uid: 3000}\n")?;
    let begun = |web: &Deployment| old.get(&web.name_any()).is_some_and(|old| *old != hash(web));
    wait_until(&ns.api::<Deployment>(), watcher::Config::default(), |all| all.values().any(begun)).await?;
    let mut stopped = None;
    for process in &installation.controllers {
        if leads(process).await? {
            process.pause();
            stopped = Some(process);
        }
    }
    let stopped = stopped.context("no process says that it leads")?;
    // Whoever patched workloads until now was that process.
    let patched = writes(cp.audit().since(began)?).in_namespace(ns.name()).resource("deployments");
    let credential = patched.last().context("no wave had begun")?.credential.clone();
    ensure!(!credential.is_empty() && patched.iter().all(|one| one.credential == credential), "two wrote: {patched}");
    leader(cp, Some(&holder)).await?;
    let mark = cp.audit().mark()?;
    stopped.resume();
    all_rolled(ns, size).await?;
    pulse(pulses, "resumed").await?;
    assert_eq!(settled_replica_sets(ns, size, sets).await?, sets, "each rolled once more, whoever led");
    let after = writes(cp.audit().settled(mark).await?);
    let by_it = after.clone().filter(|request| request.credential == credential);
    assert!(by_it.is_empty(), "the resumed process wrote: {by_it}");
    one_write_each(cp, ns, began, before).await.context("two leaders")
}
