//! The type label on a workload itself, as people type it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::process::Command;
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, programs, wait_for, wait_gone, wait_until,
};

use super::*;

const LABEL: &str = "kagenti.io/type=agent";
const UNLABEL: &str = "kagenti.io/type-";

/// `kubectl label`; what it printed for people to read.
async fn label(cp: &ControlPlane, ns: &TestNamespace, name: &str, word: &str) -> Result<String> {
    let output = cp.kubectl(cp.admin(), &["-n", ns.name(), "label", "deployment", name, word], "").await?;
    ensure!(output.success, "{output:?}");
    Ok(output.stderr)
}

/// Waits until no ReplicaSet of an app carries an annotation of ours.
async fn no_copies(ns: &TestNamespace, app: &str) -> Result<()> {
    let selected = watcher::Config::default().labels(&format!("app={app}"));
    let clean = |set: &ReplicaSet| set.annotations().keys().all(|key| !key.starts_with(keys::PREFIX));
    wait_until(&ns.api::<ReplicaSet>(), selected, |all| all.values().all(clean)).await.map(drop)
}

#[tokio::test]
async fn mend_17_a_labelled_deployment_is_enrolled_in_one_rollout_and_unlabelled_as_it_was() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("labelled").await?;
    let api = ns.api::<Deployment>();
    ns.accepts(&deployment("web", 2)).await?;
    pods(&ns, "web", 2, false).await?;
    let original = essence(&api.get("web").await?);

    let mark = cp.audit().mark()?;
    let told = label(cp, &ns, "web", LABEL).await?;
    assert!(told.contains("Pods roll once"), "{told}");
    pods(&ns, "web", 2, true).await?;
    assert_eq!(replica_sets(&ns, "web").await?, 2, "the user's, and one for the enrolment");
    let web = api.get("web").await?;
    assert_eq!(web.labels().get(keys::LABEL_MANAGED_BY), None);
    assert_eq!(hash(&web).map(|hash| hash.len()), Some(64));
    let applied = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).resource("deployments").accepted();
    assert_eq!(applied.len(), 1, "one apply:\n{applied}");

    label(cp, &ns, "web", UNLABEL).await?;
    pods(&ns, "web", 2, false).await?;
    assert_eq!(essence(&api.get("web").await?), original);
    assert_eq!(replica_sets(&ns, "web").await?, 2, "back to the user's own ReplicaSet");
    // mend_10: the Deployment controller has copied an annotation of ours, and takes none off.
    no_copies(&ns, "web").await?;
    assert_eq!(essence(&api.get("web").await?), original);
    Ok(())
}

#[tokio::test]
async fn mend_17_an_agent_runtime_governs_a_labelled_deployment_and_gives_it_back() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("gives-back").await?;
    let api = ns.api::<Deployment>();
    ns.accepts(&deployment("web", 1)).await?;
    pods(&ns, "web", 1, false).await?;
    label(cp, &ns, "web", LABEL).await?;
    pods(&ns, "web", 1, true).await?;
    let template = api.get("web").await?.spec.context("a spec")?.template;
    ns.accepts(&art("weather", "Deployment", "web", json!({}))).await?;
    rolled(&ns, "weather", 1).await?;
    let web = api.get("web").await?;
    assert_eq!(web.labels()[keys::LABEL_MANAGED_BY], "drawbridge");
    assert_eq!(web.spec.context("a spec")?.template, template, "nothing rolls by the exchange");
    ns.api::<AgentRuntime>().delete("weather", &DeleteParams::default()).await?;
    wait_gone(&ns.api::<AgentRuntime>(), "weather").await?;
    let web = api.get("web").await?;
    assert_eq!((web.labels().get(keys::LABEL_MANAGED_BY), web.labels()[keys::LABEL_TYPE].as_str()), (None, "agent"));
    assert_eq!(web.spec.context("a spec")?.template, template, "the label keeps it");
    assert_eq!(replica_sets(&ns, "web").await?, 2);
    Ok(())
}

/// Until the API server's clock is past that of an object, in whole seconds, as it writes them.
async fn later_than(ns: &TestNamespace, time: &str) -> Result<()> {
    let maps = ns.api::<ConfigMap>();
    let clock = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clock"}});
    let deadline = tokio::time::Instant::now() + patience();
    loop {
        ns.accepts(&clock).await?;
        let made = serde_json::to_value(maps.get("clock").await?)?["metadata"]["creationTimestamp"].clone();
        maps.delete("clock", &DeleteParams::default()).await?;
        if made.as_str().is_some_and(|made| made > time) {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < deadline, "the API server's clock stands still");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// What `drawbridge` prints as JSON, and its exit code.
async fn drawbridge(cp: &ControlPlane, args: &[&str]) -> Result<(Value, Option<i32>)> {
    let mut command = Command::new(programs::workspace("drawbridge")?);
    command.args(args).args(["-o", "json"]).arg("--kubeconfig").arg(cp.admin().kubeconfig()).kill_on_drop(true);
    let output = command.output().await?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((serde_json::from_slice(&output.stdout).context(said)?, output.status.code()))
}

/// The one row of `drawbridge status` about a Deployment.
async fn row(cp: &ControlPlane, ns: &TestNamespace, name: &str) -> Result<Value> {
    let (report, _) = drawbridge(cp, &["status", "-n", ns.name()]).await?;
    let mut rows = report["workloads"].as_array().into_iter().flatten();
    rows.find(|row| row["name"] == name).cloned().with_context(|| format!("no row for {name}: {report:#}"))
}

#[tokio::test]
async fn mend_17_labels_from_before_the_installation_roll_nobody_and_a_restart_writes_nothing() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let ns = cp.namespace("taken-over").await?;
    let api: Api<Deployment> = ns.api();
    for name in ["old", "new"] {
        ns.accepts(&deployment(name, 1)).await?;
        pods(&ns, name, 1, false).await?;
    }
    label(&cp, &ns, "old", LABEL).await?;
    let labelled = serde_json::to_value(api.get("old").await?)?;
    let entries = labelled["metadata"]["managedFields"].as_array().context("managedFields")?;
    let times = entries.iter().filter_map(|entry| entry["time"].as_str());
    later_than(&ns, times.max().context("a time")?).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;

    // What is labelled now is enrolled at once, and by then the other one has been looked at as well.
    label(&cp, &ns, "new", LABEL).await?;
    pods(&ns, "new", 1, true).await?;
    assert_eq!(hash(&api.get("old").await?), None, "an upgrade rolls nobody");
    let said = row(&cp, &ns, "old").await?;
    assert_eq!((&said["reason"], &said["enrolledBy"]["by"]), (&json!("EnrolmentPending"), &json!("workloadLabel")));
    let (checks, _) = drawbridge(&cp, &["doctor", "-n", ns.name()]).await?;
    let listed = |check: &&Value| check["name"] == "labels on workloads themselves";
    let check = checks.as_array().into_iter().flatten().find(listed).cloned().context("doctor says nothing")?;
    assert!(check["status"] == "finding" && check["seen"].to_string().contains("Deployment/old in"), "{check}");

    let mark = cp.audit().mark()?;
    for process in &installation.controllers {
        process.stop(patience()).await?;
        process.start_again()?;
        process.ready().await?;
    }
    let pulses = cp.namespace("pulse").await?;
    ns_pulse(&pulses).await?;
    let made = writes(cp.audit().settled(mark).await?).in_namespace(ns.name()).accepted();
    assert!(made.is_empty(), "a restart: {made}");
    assert_eq!(hash(&api.get("old").await?), None, "nor does a restart");

    for word in [UNLABEL, LABEL] {
        label(&cp, &ns, "old", word).await?;
    }
    pods(&ns, "old", 1, true).await?;
    assert_eq!(replica_sets(&ns, "old").await?, 2);
    let settled = |web: &Deployment| hash(web).is_some();
    wait_for(&api, "old", settled).await?;
    assert_eq!(row(&cp, &ns, "old").await?["reason"], "Injected");
    Ok(())
}

/// Something new is dealt with by the controllers that have started again.
async fn ns_pulse(ns: &TestNamespace) -> Result<()> {
    ns.accepts(&deployment("pulse", 0)).await?;
    ns.accepts(&art("pulse", "Deployment", "pulse", json!({}))).await?;
    says(ns, "pulse", "Ready", "True/Configured").await.map(drop)
}
