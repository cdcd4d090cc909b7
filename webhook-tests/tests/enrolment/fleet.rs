//! A hundred enrolled workloads: waves, restarts, relists, leaders that follow each other or were stopped.

use std::time::Duration;

use anyhow::{Context as _, Result};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::cli::render::platform;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::ResourceExt as _;
use kube::api::ListParams;
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::{ControlPlane, Installation, Installing, Options, Process, TestNamespace, wait_for, wait_until};

use super::*;

const FLEET: usize = 100;

fn name(number: usize) -> String {
    format!("agent-{number:03}")
}

/// The platform file that `render` ships, and more lines, as the kubelet would put it there.
fn configure(installation: &Installation, more: &str) -> Result<()> {
    let (file, new) = (installation.settings().join("config.yaml"), installation.settings().join("new"));
    std::fs::write(&new, format!("{}{more}", platform::platform_file()))?;
    Ok(std::fs::rename(new, file)?)
}

async fn enrol(ns: &TestNamespace) -> Result<()> {
    for number in 0..FLEET {
        ns.accepts(&deployment(&name(number), 1)).await?;
        ns.accepts(&art(&name(number), "Deployment", &name(number), json!({}))).await?;
    }
    all_rolled(ns).await
}

/// Waits until every AgentRuntime has one Pod with the configuration, and no rollout is left.
async fn all_rolled(ns: &TestNamespace) -> Result<()> {
    let done = |art: &AgentRuntime| {
        art.status.as_ref().and_then(|status| status.configured_pods) == Some(1)
            && condition(art, "Ready") == "True/Configured"
            && condition(art, "RolloutProgressing") == "False/RolloutComplete"
    };
    // Waves take their time: as long as something moves, the patience begins anew.
    let mut moved = 0;
    loop {
        let config = watcher::Config::default();
        let before = moved;
        let api = ns.api::<AgentRuntime>();
        let found = wait_until(&api, config, |all| {
            all.len() == FLEET && all.values().filter(|art| done(art)).count() >= (before + 5).min(FLEET)
        });
        moved = found.await?.iter().filter(|art| done(art)).count();
        if moved == FLEET {
            return Ok(());
        }
    }
}

async fn total_replica_sets(ns: &TestNamespace) -> Result<usize> {
    Ok(ns.api::<ReplicaSet>().list(&ListParams::default()).await?.items.len())
}

/// The ReplicaSets once there are so many and everything has rolled: a status may be a moment older than its workload.
async fn settled_replica_sets(ns: &TestNamespace, least: usize) -> Result<usize> {
    wait_until(&ns.api::<ReplicaSet>(), watcher::Config::default(), |all| all.len() >= least).await?;
    all_rolled(ns).await?;
    total_replica_sets(ns).await
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

/// Waits until the leader has looked at everything.
async fn idle(installation: &Installation) -> Result<()> {
    let deadline = tokio::time::Instant::now() + webhook_tests::objects::PATIENCE;
    loop {
        let mut done = false;
        for process in &installation.controllers {
            let metrics = process.metrics().await?;
            let leads = metrics.sum("leader_election_master_status", &[]) > 0.0;
            done |= leads && metrics.sum("drawbridge_controller_ready_items", &[]) == 0.0;
        }
        if done {
            return Ok(());
        }
        anyhow::ensure!(tokio::time::Instant::now() < deadline, "the leader is never done");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One story on one control plane: every step leaves the state that the next one needs.
#[tokio::test]
async fn a_hundred_workloads_roll_in_waves_and_restarts_write_nothing() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing { controllers: 2, ..Installing::default() }).await?;
    let (ns, pulses) = (cp.namespace("fleet").await?, cp.namespace("pulse").await?);
    enrol(&ns).await?;
    // One ReplicaSet per enrolment, and the user's, where the Deployment's controller was faster than we.
    let sets = total_replica_sets(&ns).await?;
    assert!((FLEET..=2 * FLEET).contains(&sets), "one rollout per enrolment at most: {sets}");

    // A change without effect: nothing. A change with one: each rolls once, ten at a time.
    let mark = cp.audit().mark()?;
    configure(&installation, "observability: {logLevel: debug}\n")?;
    pulse(&pulses, "ineffective").await?;
    idle(&installation).await?;
    configure(&installation, "proxy: {uid: 2000}\n")?;
    let deployments = ns.api::<Deployment>();
    let most = std::sync::atomic::AtomicUsize::new(0);
    let rolling = |web: &Deployment| {
        let (meta, status) = (&web.metadata, web.status.clone().unwrap_or_default());
        let rolled = web.annotations().contains_key("kagenti.io/rolled-for");
        let done = status.observed_generation == meta.generation
            && status.updated_replicas == Some(1)
            && status.replicas == Some(1)
            && status.available_replicas == Some(1);
        rolled && !done
    };
    let begun = |web: &Deployment| web.annotations().contains_key("kagenti.io/rolled-for");
    let watching = async {
        let mut before = 0;
        while before < FLEET {
            let found = wait_until(&deployments, watcher::Config::default(), |all| {
                most.fetch_max(all.values().filter(|web| rolling(web)).count(), std::sync::atomic::Ordering::SeqCst);
                all.values().filter(|web| begun(web)).count() >= (before + 5).min(FLEET)
            });
            before = found.await?.iter().filter(|web| begun(web)).count();
        }
        anyhow::Ok(())
    };
    let (seen, rolled) = tokio::join!(watching, all_rolled(&ns));
    rolled?;
    seen?;
    let most = most.into_inner();
    assert!((1..=10).contains(&most), "{most} at once");
    assert_eq!(settled_replica_sets(&ns, sets + FLEET).await?, sets + FLEET);
    let applied = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments");
    assert_eq!(applied.len(), FLEET, "one write per workload");

    // Restart of both roles, another leader, an API server that goes away and comes back, lists that begin anew.
    let mark = cp.audit().mark()?;
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        process.stop(Duration::from_secs(30)).await?;
        process.start_again()?;
        process.ready().await?;
    }
    pulse(&pulses, "restarted").await?;
    cp.restart(Process::ApiServer).await?;
    pulse(&pulses, "outage").await?;
    leader(&cp, None).await?;
    idle(&installation).await?;
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name());
    assert_eq!(made.len(), 0, "after restarts:\n{made}");

    stopped_leader(&cp, &installation, (&ns, &pulses), sets + 2 * FLEET).await
}

/// The leader is stopped in the middle of a wave and resumed after another one has taken over.
async fn stopped_leader(
    cp: &ControlPlane,
    installation: &Installation,
    (ns, pulses): (&TestNamespace, &TestNamespace),
    sets: usize,
) -> Result<()> {
    let holder = leader(cp, None).await?;
    configure(installation, "proxy: {uid: 3000}\n")?;
    let begun = |all: &std::collections::BTreeMap<String, AgentRuntime>| {
        all.values().any(|art| condition(art, "Ready") == "False/RolloutPending")
    };
    wait_until(&ns.api::<AgentRuntime>(), watcher::Config::default(), begun).await?;
    let mut stopped = None;
    for process in &installation.controllers {
        let leads = process.metrics().await?.sum("leader_election_master_status", &[]) > 0.0;
        if leads {
            process.pause();
            stopped = Some(process);
        }
    }
    let stopped = stopped.context("no process says that it leads")?;
    leader(cp, Some(&holder)).await?;
    let mark = cp.audit().mark()?;
    stopped.resume();
    all_rolled(ns).await?;
    pulse(pulses, "resumed").await?;
    assert_eq!(settled_replica_sets(ns, sets).await?, sets, "each rolled once more, whoever led");
    let applied = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments");
    let mut names: Vec<_> = applied.iter().map(|request| request.name.clone()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "one writer: nothing twice");
    Ok(())
}
