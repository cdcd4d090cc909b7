//! A namespace of BeeAI Agents changes hands and comes back, and no Pod notices: whole, and killed over and over.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::{Access, TestNamespace, programs, wait_for, wait_gone};

use super::{agent, agents, ready, says};
use crate::agents::stage::{agent as kagenti, kubectl, shared};
use crate::builds::stage::api;

const GROUP: &str = keys::GROUP_BEEAI;
const NAMES: [&str; 3] = ["one", "two", "three"];

fn successors(ns: &TestNamespace) -> Api<DynamicObject> {
    api(ns, "agent.kagenti.dev/v1alpha1", "Agent")
}

fn command(who: &Access, ns: &TestNamespace, more: &[&str]) -> Result<tokio::process::Command> {
    let mut command = tokio::process::Command::new(programs::workspace("drawbridge")?);
    command.args(["migrate", "beeai", "--live", "--hand-over", "-n", ns.name(), "-o", "json"]).args(more);
    command.env("KUBECONFIG", who.kubeconfig()).kill_on_drop(true);
    Ok(command)
}

/// The exit code, and what is said of each Agent.
async fn run(who: &Access, ns: &TestNamespace, more: &[&str]) -> Result<(Option<i32>, BTreeMap<String, Value>)> {
    let output = command(who, ns, more)?.output().await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value =
        serde_json::from_str(&text).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let all = report["agents"].as_array().context("a list")?.iter();
    let by_name = all.map(|one| (one["name"].as_str().unwrap_or_default().to_owned(), one.clone()));
    Ok((output.status.code(), by_name.collect()))
}

/// Begins the command again and again and kills it a little later each time, until it comes to its end.
async fn killed_until_it_is_done(who: &Access, ns: &TestNamespace, more: &[&str]) -> Result<usize> {
    for tries in 0..200 {
        let mut child = command(who, ns, more)?.stdout(std::process::Stdio::null()).spawn()?;
        let pause = Duration::from_millis(20 + 15 * tries);
        if let Ok(ended) = tokio::time::timeout(pause, child.wait()).await {
            ensure!(ended?.success(), "it ended badly");
            return Ok(usize::try_from(tries)?);
        }
        child.kill().await?;
    }
    anyhow::bail!("it never ends")
}

/// Everything that must not change: what Pods are made from, the Pods, and how many sets of them there are.
async fn what_runs(ns: &TestNamespace) -> Result<BTreeMap<String, (Value, Vec<Option<String>>, usize)>> {
    let mut all = BTreeMap::new();
    for name in NAMES {
        let selected = ListParams::default().labels(&format!("app={name},controller=agent-operator"));
        let pods = ns.api::<Pod>().list(&selected).await?.items;
        let sets = ns.api::<ReplicaSet>().list(&selected).await?.items.len();
        let template = serde_json::to_value(ns.api::<Deployment>().get(name).await?.spec.map(|spec| spec.template))?;
        all.insert(name.to_owned(), (template, pods.into_iter().map(|pod| pod.metadata.uid).collect(), sets));
    }
    Ok(all)
}

async fn owners(ns: &TestNamespace, name: &str) -> Result<Vec<String>> {
    let owners = ns.api::<Deployment>().get(name).await?.metadata.owner_references.unwrap_or_default();
    Ok(owners.into_iter().map(|owner| owner.api_version).collect())
}

async fn given_over(ns: &TestNamespace) -> Result<()> {
    for name in NAMES {
        wait_gone(&agents(ns, GROUP), name).await?;
        wait_for(&successors(ns), name, |agent| says(agent, "Ready") == "True/DeploymentReady").await?;
        assert_eq!(owners(ns, name).await?, ["agent.kagenti.dev/v1alpha1"]);
    }
    Ok(())
}

async fn given_back(ns: &TestNamespace) -> Result<()> {
    for name in NAMES {
        wait_gone(&successors(ns), name).await?;
        let agent = wait_for(&agents(ns, GROUP), name, ready).await?;
        assert_eq!(
            agent.data["spec"],
            json!({"image": "example.com/weather:v1", "env": [{"name": "A", "value": name}]})
        );
        let annotations = agent.metadata.annotations.unwrap_or_default();
        assert_eq!(
            annotations.keys().filter(|key| key.starts_with("agent.kagenti.dev/")).count(),
            0,
            "{annotations:?}"
        );
        assert_eq!(owners(ns, name).await?, ["beeai.dev/v1"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_namespace_is_handed_over_and_given_back_without_a_restart_however_often_it_is_cut_off() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-namespace").await?;
    for name in NAMES {
        let more = json!({"spec": {"env": [{"name": "A", "value": name}]}});
        ns.accepts(&agent(GROUP, name, &more)).await?;
    }
    for name in NAMES {
        wait_for(&agents(&ns, GROUP), name, ready).await?;
    }
    let before = what_runs(&ns).await?;
    ensure!(before.values().all(|(_, pods, sets)| pods.len() == 1 && *sets == 1), "{before:?}");

    let (code, plan) = run(cp.admin(), &ns, &[]).await?;
    assert_eq!((code, plan.len()), (Some(0), 3));
    ensure!(
        plan.values().all(|one| one["outcome"] == "planned" && one["steps"].as_array().map(Vec::len) == Some(6)),
        "{plan:?}"
    );
    assert_eq!(successors(&ns).list(&ListParams::default()).await?.items.len(), 0, "a plan changes nothing");

    let (code, done) = run(cp.admin(), &ns, &["--yes"]).await?;
    ensure!(code == Some(0) && done.values().all(|one| one["outcome"] == "done"), "{done:?}");
    given_over(&ns).await?;
    assert_eq!(what_runs(&ns).await?, before, "neither a Pod nor a template is another one");
    let (code, again) = run(cp.admin(), &ns, &["--yes"]).await?;
    ensure!(code == Some(0) && again.values().all(|one| one["outcome"] == "done"), "{again:?}");

    let (code, done) = run(cp.admin(), &ns, &["--undo", "--yes"]).await?;
    ensure!(code == Some(0) && done.values().all(|one| one["outcome"] == "done"), "{done:?}");
    given_back(&ns).await?;
    assert_eq!(what_runs(&ns).await?, before, "nor on the way back");

    // Both ways once more, with the command killed after every few milliseconds of its life.
    let over = killed_until_it_is_done(cp.admin(), &ns, &["--yes"]).await?;
    given_over(&ns).await?;
    assert_eq!(what_runs(&ns).await?, before);
    let back = killed_until_it_is_done(cp.admin(), &ns, &["--undo", "--yes"]).await?;
    given_back(&ns).await?;
    assert_eq!(what_runs(&ns).await?, before);
    ensure!(over > 0 && back > 0, "it was never cut off: {over} {back}");

    // The Agent that was given back follows its changes again.
    let patch = json!({"spec": {"image": "example.com/weather:v2"}});
    agents(&ns, GROUP).patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let rolled = |deployment: &Deployment| {
        let pod = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
        pod.is_some_and(|pod| pod.containers[0].image.as_deref() == Some("example.com/weather:v2"))
    };
    wait_for(&ns.api::<Deployment>(), "one", rolled).await.map(drop)
}

/// What stands in the way of some keeps no other from it, and is left as it is.
#[tokio::test]
async fn those_that_cannot_be_handed_over_say_why_and_keep_nobody_from_it() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-in-the-way").await?;
    ns.accepts(&kagenti("taken", &json!({}))).await?;
    wait_for(&successors(&ns), "taken", |agent| says(agent, "Ready") == "True/DeploymentReady").await?;
    ns.accepts(&agent(GROUP, "taken", &json!({}))).await?;
    for name in ["free", "built"] {
        ns.accepts(&agent(GROUP, name, &json!({}))).await?;
        wait_for(&agents(&ns, GROUP), name, ready).await?;
    }
    ns.accepts(&json!({
        "apiVersion": "beeai.dev/v1", "kind": "AgentBuild", "metadata": {"name": "keeps"},
        "spec": {
            "repoUrl": "github.com/a/b", "revision": "v1.0.0", "imageRegistry": "reg.example.com", "image": "w", "imageTag": "v1",
            "deployAfterBuild": true, "agent": {"name": "built"},
        },
    }))
    .await?;
    let (code, done) = run(cp.admin(), &ns, &["--yes"]).await?;
    assert_eq!(code, Some(1));
    for (name, outcome, words) in [
        ("free", "done", ""),
        ("built", "blocked", "AgentBuild keeps writes this Agent"),
        ("taken", "blocked", "belongs to Agent taken of agent.kagenti.dev/v1alpha1"),
    ] {
        let one = &done[name];
        ensure!(one["outcome"] == outcome && one["obstacles"].to_string().contains(words), "{name}: {one:#}");
    }
    wait_for(&successors(&ns), "free", |agent| says(agent, "Ready") == "True/DeploymentReady").await?;
    let stays = agents(&ns, GROUP).get("built").await?;
    assert_eq!(
        (stays.metadata.deletion_timestamp, owners(&ns, "built").await?),
        (None, vec!["beeai.dev/v1".to_owned()])
    );

    // Once the new Agent has changed, giving back would restart it: that is said and not done.
    kubectl(
        cp,
        &ns,
        &[
            "patch",
            "agents.agent.kagenti.dev",
            "free",
            "--type=merge",
            "-p",
            r#"{"spec":{"imageSource":{"image":"example.com/weather:v2"}}}"#,
        ],
    )
    .await?;
    let (code, undone) = run(cp.admin(), &ns, &["--undo", "--yes"]).await?;
    ensure!(
        code == Some(1) && undone["free"]["obstacles"].to_string().contains("was changed since the hand-over"),
        "{undone:?}"
    );
    assert_eq!(undone.len(), 1, "what was never handed over is not given back");
    successors(&ns).get("free").await.map(drop).map_err(Into::into)
}

/// What the API server would refuse of the new Agent is said before anything is held still: here a Secret that the person may not have.
#[tokio::test]
async fn what_would_be_refused_half_way_is_refused_before_it_begins() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("beeai-refused").await?;
    let rights = [
        json!({"apiGroups": ["beeai.dev", "beeai.beeai.dev", "agent.kagenti.dev"], "resources": ["agents", "agentbuilds"], "verbs": ["*"]}),
        json!({"apiGroups": ["", "apps"], "resources": ["services", "deployments"], "verbs": ["get", "patch"]}),
    ];
    let tenant = cp.person(&ns, "beeai-hands", &rights).await?;
    let secret = json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "theirs", "key": "token"}}}]);
    ns.accepts(&agent(GROUP, "secretive", &json!({"spec": {"env": secret}}))).await?;
    ns.accepts(&agent(GROUP, "plain", &json!({}))).await?;
    for name in ["secretive", "plain"] {
        wait_for(&agents(&ns, GROUP), name, ready).await?;
    }
    let (code, done) = run(&tenant, &ns, &["--yes"]).await?;
    assert_eq!((code, &done["plain"]["outcome"]), (Some(1), &json!("done")), "{done:?}");
    let refused = &done["secretive"];
    let why = refused["obstacles"].to_string();
    ensure!(
        refused["outcome"] == "blocked" && why.contains("would refuse") && why.contains("Secret theirs"),
        "{refused:#}"
    );
    let stays = agents(&ns, GROUP).get("secretive").await?;
    ensure!(!stays.metadata.annotations.unwrap_or_default().contains_key(keys::ANNOTATION_PAUSED), "it was held still");
    assert_eq!(owners(&ns, "secretive").await?, ["beeai.dev/v1"]);
    Ok(())
}
