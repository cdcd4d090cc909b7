//! Every replica is dead: what has to prove first who it is does not begin, and begins once something cuts it off.

use std::collections::BTreeMap;
use std::pin::pin;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::FailureMode;
use drawbridge::domain::keys;
use futures::TryStreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::ResourceExt as _;
use kube::api::Api;
use kube::runtime::watcher;
use serde_json::{Value, json};
use webhook_tests::{Installation, Installing, Objects, Options, installation, wait_for};

use super::{DENY, SWITCH, agent, bare, template};

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

async fn in_mode(failure_mode: FailureMode) -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let installing = Installing { failure_mode, ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    if failure_mode == FailureMode::Gate {
        // Until somebody leads for the first time, the gate does not know whom to let wait, and refuses everybody in words of the API server's.
        let parameters: Api<ConfigMap> = Api::namespaced(cp.client().await?, keys::OPERATOR_NAMESPACE);
        wait_for(&parameters, keys::CONFIG_MAP_GATE, |map: &ConfigMap| map.data.is_some()).await?;
    }
    for process in installation.controllers.iter().chain(&installation.webhooks) {
        process.kill().await;
    }
    let client = cp.client().await?;
    let objects = Objects::new(client.clone(), "armed");
    let mut made = Vec::new();
    for object in everything("armed") {
        made.push((object["kind"].to_string(), objects.create(&object, false).await?.result));
    }
    for (kind, result) in &made {
        let is_pod = kind == "\"Pod\"";
        ensure!(result.is_err() == is_pod, "{kind}: {result:?}");
        if let Err(status) = result {
            let words = &status.message;
            ensure!(
                words.contains("drawbridge-trust")
                    || words.contains("failed calling webhook")
                    || words.contains("service account"),
                "{words}"
            );
        }
    }
    // Whoever makes Pods has tried, and been refused.
    let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(client.clone(), "armed");
    let about = |all: &BTreeMap<String, k8s_openapi::api::core::v1::Event>, kind: &str| {
        all.values().any(|event| {
            event.reason.as_deref() == Some("FailedCreate") && event.involved_object.kind.as_deref() == Some(kind)
        })
    };
    let tried = |all: &BTreeMap<String, _>| ["ReplicaSet", "StatefulSet", "Job"].iter().all(|kind| about(all, kind));
    webhook_tests::wait_until(&events, watcher::Config::default(), tried).await.context("they try")?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "armed");
    ensure!(pods.list(&Default::default()).await?.items.is_empty(), "no Pod is there");

    for process in installation.controllers.iter().chain(&installation.webhooks) {
        process.start_again()?;
    }
    let seen = {
        let mut events = pin!(watcher(pods.clone(), watcher::Config::default()));
        let mut seen: BTreeMap<String, u64> = BTreeMap::new();
        let watching = async {
            loop {
                let event = events.try_next().await?.context("the watch ended")?;
                let (watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) = event else { continue };
                let version = pod.resource_version().unwrap_or_default().parse()?;
                let owner = pod.owner_references().first().map_or_else(|| pod.name_any(), |owner| owner.kind.clone());
                seen.entry(owner).or_insert(version);
                if ["StatefulSet", "Job"].iter().all(|kind| seen.contains_key(*kind)) && seen.contains_key("ReplicaSet")
                {
                    return anyhow::Ok(());
                }
            }
        };
        tokio::time::timeout(webhook_tests::objects::PATIENCE, watching).await.context("Pods that are made")??;
        seen
    };
    let policies: Api<k8s_openapi::api::networking::v1::NetworkPolicy> = Api::namespaced(client.clone(), "armed");
    let deny: u64 = policies.get(DENY).await?.resource_version().unwrap_or_default().parse()?;
    ensure!(seen.values().all(|version| *version > deny), "{seen:?} and the policy at {deny}");
    let done = |job: &Job| job.status.as_ref().is_some_and(|status| status.succeeded == Some(1));
    let job = wait_for(&Api::<Job>::namespaced(client, "armed"), "job", done).await?;
    ensure!(job.status.and_then(|status| status.failed).unwrap_or_default() == 0, "the Job lost no try");
    Ok(())
}

#[tokio::test]
async fn g7_while_every_replica_is_dead_no_agents_pod_begins_in_mode_fail() -> Result<()> {
    in_mode(FailureMode::Fail).await
}

#[tokio::test]
async fn g7_while_every_replica_is_dead_no_agents_pod_begins_in_mode_gate() -> Result<()> {
    in_mode(FailureMode::Gate).await
}
