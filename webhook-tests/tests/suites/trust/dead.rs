//! Every replica is dead: what has to prove first who it is does not begin, and begins once something cuts it off; and cards that are deleted
//! meanwhile open nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, Pod, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams};
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use webhook_tests::{ControlPlane, Drawbridge, Installation, Installing, Objects, Options, installation, wait_for};

use super::history::{History, Version, matrices, recording};
use super::*;

/// A namespace with its label, and a Pod of each way to make one, as one apply brings them.
fn everything(namespace: &str) -> Vec<Value> {
    let mut enrolled = agent("enrolled");
    enrolled["spec"]["template"]["metadata"]["labels"].as_object_mut().map(|labels| labels.remove("kagenti.io/inject"));
    let mut job = template("job");
    job["spec"]["restartPolicy"] = "Never".into();
    let mut plain = bare("bare");
    plain["metadata"]["labels"].as_object_mut().map(|labels| labels.remove("kagenti.io/inject"));
    let mut all = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {SWITCH: "enforced"}}}),
        agent("disabled"),
        agent("peer"),
        enrolled,
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set"},
            "spec": {"serviceName": "set", "selector": {"matchLabels": {"app": "set"}}, "template": template("set")}}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"backoffLimit": 0, "template": job}}),
        bare("out"),
        plain,
    ];
    all.iter_mut().skip(1).for_each(|object| object["metadata"]["namespace"] = namespace.into());
    all
}

/// The names by which [`everything`] calls its Pods, by their label `app`.
const APPS: [&str; 7] = ["bare", "disabled", "enrolled", "job", "out", "peer", "set"];

/// Those that nobody makes anew.
fn bare_pods() -> impl Iterator<Item = Value> {
    everything("armed").into_iter().filter(|object| object["kind"] == "Pod")
}

/// What makes Pods is taken, the Pods themselves are refused.
async fn apply_all(objects: &Objects) -> Result<()> {
    for object in everything("armed") {
        let (kind, result) = (object["kind"].to_string(), objects.create(&object, false).await?.result);
        ensure!(result.is_err() == (kind == "\"Pod\""), "{kind}: {result:?}");
        if let Err(status) = result {
            let words = ["drawbridge-trust", "failed calling webhook", "service account"];
            ensure!(words.iter().any(|word| status.message.contains(word)), "{}", status.message);
        }
    }
    Ok(())
}

/// Whoever makes Pods has tried, and been refused; and so are Pods that nothing but trust stands in the way of.
async fn all_are_refused(objects: &Objects, failure_mode: FailureMode) -> Result<()> {
    let about = |all: &BTreeMap<String, Event>, kind: &str| {
        all.values().any(|event| {
            event.reason.as_deref() == Some("FailedCreate") && event.involved_object.kind.as_deref() == Some(kind)
        })
    };
    let tried = |all: &BTreeMap<String, _>| ["ReplicaSet", "StatefulSet", "Job"].iter().all(|kind| about(all, kind));
    webhook_tests::wait_until(&objects.api::<Event>(), watcher::Config::default(), tried).await.context("they try")?;
    wait_for(&objects.api::<ServiceAccount>(), "default", |_| true).await?;
    for pod in bare_pods() {
        let status = objects.rejects(&pod).await?;
        // The webhook is asked for one of them, and no replica answers.
        let asked = failure_mode == FailureMode::Fail && pod["metadata"]["name"] == "bare";
        let words = if asked { "failed calling webhook" } else { "drawbridge-trust-pods" };
        ensure!(status.message.contains(words), "{words}: {}", status.message);
    }
    ensure!(objects.api::<Pod>().list(&Default::default()).await?.items.is_empty(), "no Pod is there");
    Ok(())
}

/// By the versions that were stored: each Pod was made, and bound, when its deny was there.
fn nobody_was_before_the_deny(history: &History) -> Result<()> {
    let (mut is_denied, mut bound) = (false, BTreeSet::new());
    for (version, (kind, name, content)) in history.all() {
        if kind == "NetworkPolicy" && name == DENY {
            is_denied = content.is_some();
        } else if kind == "Pod" {
            ensure!(is_denied, "Pod {name} was there at {version}, before its deny");
            bound.extend(content.as_ref().and_then(app_of_bound));
        }
    }
    ensure!(bound.iter().map(String::as_str).eq(APPS), "all begin once they may: {bound:?}");
    Ok(())
}

/// Label `app` of a Pod that is bound to a node.
fn app_of_bound(pod: &Value) -> Option<String> {
    pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty())?;
    Some(pod["metadata"]["labels"]["app"].as_str()?.to_owned())
}

fn processes(installation: &Installation) -> impl Iterator<Item = &Drawbridge> {
    installation.controllers.iter().chain(&installation.webhooks)
}

async fn kill(installation: &Installation) {
    for process in processes(installation) {
        process.kill().await;
    }
}

async fn in_mode(failure_mode: FailureMode) -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { failure_mode, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    if failure_mode == FailureMode::Gate {
        // Until somebody leads for the first time, the gate does not know whom to let wait, and refuses everybody in words of the API server's.
        let parameters: Api<ServiceAccount> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
        wait_for(&parameters, keys::GATE, |account: &ServiceAccount| account.metadata.annotations.is_some()).await?;
    }
    kill(&installation).await;
    let objects = Objects::new(cp.client().await?, "armed");
    let (history, mut tasks) = (Arc::new(History::default()), JoinSet::new());
    recording(&mut tasks, objects.api::<Pod>(), "Pod", &history);
    recording(&mut tasks, policies(&objects), "NetworkPolicy", &history);
    apply_all(&objects).await?;
    all_are_refused(&objects, failure_mode).await?;

    for process in processes(&installation) {
        process.start_again()?;
    }
    // Once their Pods are there, whoever is asked knows of the deny.
    for workload in ["disabled", "enrolled", "peer"] {
        running(&objects, workload).await?;
    }
    for pod in bare_pods() {
        objects.accepts(&pod).await?;
    }
    let all_bound = |versions: &BTreeMap<u64, Version>| {
        let contents =
            versions.values().filter(|(kind, ..)| *kind == "Pod").filter_map(|(.., content)| content.as_ref());
        contents.filter_map(app_of_bound).collect::<BTreeSet<_>>().len() == APPS.len()
    };
    history.until(all_bound).await.context("Pods that are made")?;
    nobody_was_before_the_deny(&history)?;
    let done = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
    let job = wait_for(&objects.api::<Job>(), "job", done).await?;
    ensure!(job.status.and_then(|status| status.failed).unwrap_or_default() == 0, "the Job lost no try");

    cards_that_go_open_nobody(&cp, &installation, &objects, &history).await
}

/// Every card is deleted, and a Pod made anew, while every replica is dead: nobody is reached who was not before, then or when they are back.
async fn cards_that_go_open_nobody(
    cp: &ControlPlane,
    installation: &Installation,
    objects: &Objects,
    history: &History,
) -> Result<()> {
    let verified = ["disabled", "peer"];
    for name in verified {
        card_says(cp, objects, name, true).await?;
        labelled(objects, name, true).await?;
        wait_for(&policies(objects), &format!("{name}-signature-policy"), opens).await?;
    }
    objects.accepts(&marker("begin")).await?;
    history.until(|versions| is_marked(versions, "begin")).await?;
    let all = matrices("armed", history);
    let (begun, before) = (all.len(), all.last().cloned().context("a matrix")?);
    let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    ensure!(before.contains(&pair("disabled", "peer")), "who is verified is reached: {before:?}");
    ensure!(!before.contains(&pair("bare", "peer")), "who is not is cut off: {before:?}");

    kill(installation).await;
    objects.api::<AgentCard>().delete_collection(&DeleteParams::default(), &Default::default()).await?;
    // The webhook is not asked for its successor, so it comes.
    let old = running(objects, "disabled").await?;
    objects.api::<Pod>().delete(&old.name_any(), &DeleteParams::default()).await?;
    let is_new =
        |pod: &Value| pod["metadata"]["labels"]["app"] == "disabled" && pod["metadata"]["uid"] != json!(old.uid());
    let successor = |versions: &BTreeMap<u64, Version>| {
        versions.values().any(|(_, _, content)| {
            content
                .as_ref()
                .is_some_and(|pod| is_new(pod) && app_of_bound(pod).is_some() && !pod["status"]["podIP"].is_null())
        })
    };
    history.until(successor).await.context("the successor of a Pod of a verified agent")?;
    ensure!(!is_verified(&running(objects, "disabled").await?), "what it has is not inherited");

    for process in processes(installation) {
        process.start_again()?;
    }
    for name in verified {
        wait_for(&policies(objects), &format!("{name}-signature-policy"), |policy| !opens(policy)).await?;
        labelled(objects, name, false).await?;
    }
    objects.accepts(&marker("end")).await?;
    history.until(|versions| is_marked(versions, "end")).await?;
    for (at, matrix) in matrices("armed", history).iter().enumerate().skip(begun) {
        let more: Vec<_> = matrix.iter().filter(|pair| !before.contains(pair)).collect();
        ensure!(more.is_empty(), "after write {at} somebody is reached who was not: {more:?}");
    }
    Ok(())
}

/// A policy that selects nobody: once it is seen, so is what came before it.
fn marker(round: &str) -> Value {
    json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": format!("marker-{round}")},
        "spec": {"podSelector": {"matchLabels": {"no": "body"}}}})
}

fn is_marked(versions: &BTreeMap<u64, Version>, round: &str) -> bool {
    versions.values().any(|(_, name, _)| *name == format!("marker-{round}"))
}

#[tokio::test]
async fn g7_while_every_replica_is_dead_no_agents_pod_begins_in_mode_fail() -> Result<()> {
    in_mode(FailureMode::Fail).await
}

#[tokio::test]
async fn g7_while_every_replica_is_dead_no_agents_pod_begins_in_mode_gate() -> Result<()> {
    in_mode(FailureMode::Gate).await
}
