//! Agents of BeeAI beside a bare loop that makes the same writes; and what a restart costs with those and with builds that wait.
//!
//! The bare loop applies what ours was seen to apply for one Agent, under the same account and with the same concurrency; both are waited for
//! in the same way. Nothing is scheduled, so that Pods are made and run nowhere.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Service};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use webhook_tests::{ControlPlane, TestNamespace, wait_for};

use super::{ACCOUNT, PATIENCE, ROUNDS, Stage, USER, real};
use crate::table::{Row, median};

/// Objects that are made at once.
const HANDS: usize = 16;
/// As many at once as the controllers work on.
const WORKERS: usize = 32;
/// Builds that wait for a Secret.
const WAITING: usize = 10;
/// The Agent that policies look for; the bare loop leaves it alone.
const MARK: &str = "mark";
/// The Agent that shows what ours applies.
const FIRST: &str = "first";

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(keys::GROUP_BEEAI, "v1", kind))
}

fn agents(client: Client, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client, namespace, &resource("Agent"))
}

fn agent(name: &str) -> Value {
    json!({"apiVersion": "beeai.dev/v1", "kind": "Agent", "metadata": {"name": name},
        "spec": {"image": "registry.example.com/agents/weather:1.4.2", "env": [{"name": "LLM_MODEL", "value": "llama3.2"}]}})
}

fn name(index: usize) -> String {
    format!("agent-{index:04}")
}

/// Waits until so many objects of that kind are there, besides that of [`FIRST`].
async fn there<K>(api: Api<K>, count: usize) -> Result<()>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let watching = async {
        let mut seen = BTreeSet::new();
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
        while let Some(event) = events.next().await {
            let Ok(object) = event else { continue };
            if object.name_any().starts_with("agent-") {
                seen.insert(object.name_any());
            }
            if seen.len() >= count {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, watching).await.with_context(|| format!("not {count} are ever there"))
}

/// What ours applies for one Agent: Service and Deployment without what the API server adds.
async fn applied(stage: &Stage) -> Result<[Value; 2]> {
    let ns = stage.cp.namespace("beeai-first").await?;
    ns.accepts(&agent(FIRST)).await?;
    let bare = |object: Value, group: &str, kind: &str| {
        let mut spec = object["spec"].clone();
        for assigned in
            ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "sessionAffinity"]
        {
            spec.as_object_mut().map(|spec| spec.remove(assigned));
        }
        json!({"apiVersion": group, "kind": kind,
            "metadata": {"name": FIRST, "labels": object["metadata"]["labels"], "annotations": object["metadata"]["annotations"]}, "spec": spec})
    };
    let service = wait_for(&ns.api::<Service>(), FIRST, |_: &Service| true).await?;
    let deployment = wait_for(&ns.api::<Deployment>(), FIRST, |_: &Deployment| true).await?;
    Ok([
        bare(serde_json::to_value(service)?, "v1", "Service"),
        bare(serde_json::to_value(deployment)?, "apps/v1", "Deployment"),
    ])
}

/// The writes of one Agent, in the controllers' order.
async fn writes(client: &Client, namespace: &str, agent: &DynamicObject, wanted: &[Value; 2]) -> Result<()> {
    let name = agent.name_any();
    let custom = agents(client.clone(), namespace);
    let finalizer = json!({"metadata": {"finalizers": [keys::FINALIZER_BEEAI]}});
    custom.patch(&name, &PatchParams::default(), &Patch::Merge(finalizer)).await?;
    let owner =
        json!([{"apiVersion": "beeai.dev/v1", "kind": "Agent", "name": name, "uid": agent.uid(), "controller": true}]);
    let own = |one: &Value| -> Result<Value> {
        let mut own: Value =
            serde_json::from_str(&one.to_string().replace(&format!("\"{FIRST}\""), &format!("\"{name}\"")))?;
        own["metadata"]["ownerReferences"] = owner.clone();
        Ok(own)
    };
    let apply = PatchParams::apply("bare").force();
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let told = async |reason: &str| {
        let about = json!({"apiVersion": "beeai.dev/v1", "kind": "Agent", "name": name, "namespace": namespace, "uid": agent.uid()});
        let event = json!({"metadata": {"name": format!("{name}.{}", reason.to_lowercase())}, "involvedObject": about, "reason": reason,
            "message": "made", "type": "Normal", "reportingComponent": "drawbridge/bare", "reportingInstance": "bare"});
        events.create(&PostParams::default(), &serde_json::from_value(event)?).await?;
        anyhow::Ok(())
    };
    Api::<Service>::namespaced(client.clone(), namespace).patch(&name, &apply, &Patch::Apply(own(&wanted[0])?)).await?;
    told("ServiceCreated").await?;
    Api::<Deployment>::namespaced(client.clone(), namespace)
        .patch(&name, &apply, &Patch::Apply(own(&wanted[1])?))
        .await?;
    told("DeploymentCreated").await?;
    let condition = |type_: &str| {
        json!({"type": type_, "status": "False", "reason": "DeploymentNotReady", "message": "not ready",
        "lastTransitionTime": "2026-05-01T00:00:00Z", "observedGeneration": 1})
    };
    let status = json!({"status": {"deploymentStatus": "Creating", "ready": false, "observedGeneration": 1,
        "image": "registry.example.com/agents/weather:1.4.2", "conditions": [condition("Ready"), condition("Reconciling")]}});
    custom.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(())
}

/// The bare loop: a watch on Agents that makes the writes for each new one, and asks nothing.
async fn bare(cp: &ControlPlane, namespace: String, wanted: [Value; 2]) -> Result<()> {
    let client = cp.service_account(keys::OPERATOR_NAMESPACE, ACCOUNT).await?.client().await?;
    let (free, wanted) = (Arc::new(Semaphore::new(WORKERS)), Arc::new(wanted));
    let mut known = HashSet::from([MARK.to_owned()]);
    let mut workers: JoinSet<Result<()>> = JoinSet::new();
    let watching = watcher(agents(client.clone(), &namespace), watcher::Config::default());
    let mut events = std::pin::pin!(watching.default_backoff().applied_objects());
    loop {
        tokio::select! {
            Some(ended) = workers.join_next() => ended??,
            Some(Ok(object)) = events.next() => {
                if known.insert(object.name_any()) {
                    let (client, namespace) = (client.clone(), namespace.clone());
                    let (free, wanted) = (free.clone(), wanted.clone());
                    workers.spawn(async move {
                        let _one = free.acquire().await?;
                        writes(&client, &namespace, &object, &wanted).await
                    });
                }
            }
        }
    }
}

/// One round: from the first Agent until every Deployment and every Service is there.
async fn round(stage: &Stage, count: usize, wanted: Option<&[Value; 2]>) -> Result<(Duration, TestNamespace)> {
    let ns = stage.cp.namespace(if wanted.is_some() { "beeai-bare" } else { "beeai-ours" }).await?;
    if wanted.is_some() {
        // What the policies that fence the account look for; ours marks one of those that it is given.
        let mut mark = agent(MARK);
        mark["metadata"]["labels"] = json!({keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER});
        ns.accepts(&mark).await?;
    }
    let looping = async {
        match wanted {
            Some(wanted) => bare(&stage.cp, ns.name().to_owned(), wanted.clone()).await,
            None => std::future::pending().await,
        }
    };
    let making = async {
        let made = futures::stream::iter(0..count).map(|index| {
            let ns = &ns;
            async move { ns.accepts(&agent(&name(index))).await.map(drop) }
        });
        made.buffer_unordered(HANDS).try_collect::<()>().await
    };
    let began = Instant::now();
    let done = async {
        let (made, deployments, services) =
            tokio::join!(making, there(ns.api::<Deployment>(), count), there(ns.api::<Service>(), count));
        made.and(deployments).and(services)
    };
    tokio::select! { ended = looping => ended?, ended = done => ended? }
    Ok((began.elapsed(), ns))
}

/// Takes everything away, so that the next round has the API server to itself; finalizers where no controller is there to do it.
async fn remove(ns: &TestNamespace) -> Result<()> {
    let custom = agents(ns.client(), ns.name());
    let patch = json!({"metadata": {"finalizers": null}});
    for object in custom.list(&ListParams::default()).await? {
        custom.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await?;
    }
    custom.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    ns.api::<Deployment>().delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
    let deadline = Instant::now() + PATIENCE;
    while !ns.api::<ReplicaSet>().list(&ListParams::default().limit(1)).await?.items.is_empty() {
        ensure!(Instant::now() < deadline, "the ReplicaSets do not go");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// A definition of Tekton's that takes everything: builds that wait for a Secret need Tekton to be there.
pub(super) fn tekton(kind: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.tekton.dev")},
        "spec": {
            "group": "tekton.dev", "scope": "Namespaced",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
        },
    })
}

/// A restart with nothing changed, and with builds that wait for a Secret: what is written, and which Secrets are read.
async fn quiet(stage: &Stage, ns: &TestNamespace, count: usize) -> Result<Row> {
    let objects = stage.cp.objects().await?;
    for kind in ["PipelineRun", "TaskRun"] {
        objects.apply(&tekton(kind).to_string()).await?;
    }
    let builds: Api<DynamicObject> = Api::namespaced_with(ns.client(), ns.name(), &resource("AgentBuild"));
    let token = json!([{"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "later", "key": "token"}}}]);
    let waits = |build: &DynamicObject| build.data["status"].to_string().contains("PrerequisitesMissing");
    for index in 0..WAITING {
        let build = json!({"apiVersion": "beeai.dev/v1", "kind": "AgentBuild", "metadata": {"name": format!("waits-{index}")},
            "spec": {"repoUrl": "github.com/a/b", "revision": "v1.0.0", "imageRegistry": "reg.example.com", "image": "w", "imageTag": "v1",
                "env": token}});
        ns.accepts(&build).await?;
    }
    for index in 0..WAITING {
        wait_for(&builds, &format!("waits-{index}"), waits).await?;
    }
    let mark = stage.cp.audit().mark()?;
    stage.halt().await?;
    stage.resume().await?;
    stage.pulse("beeai-restarted").await?;
    let asked = stage.cp.audit().settled(mark).await?.by(USER).in_namespace(ns.name());
    let reads = asked.filter(|request| request.resource == "secrets").len();
    let written = stage.writes(mark).await?.in_namespace(ns.name()).len();
    let what =
        format!("writes after a restart with {count} Agents of BeeAI and {WAITING} builds that wait for a Secret");
    Ok(Row::at_most(what, (0.0, 0.0), real(written), "")
        .noted(format!("audit log; {reads} reads of Secrets, each by its name")))
}

/// Every row about BeeAI.
pub(super) async fn rows(stage: &Stage, count: usize) -> Result<Vec<Row>> {
    stage.resume().await?;
    let wanted = applied(stage).await?;
    let (mut ratios, mut note, mut last) = (Vec::new(), String::new(), None);
    for turn in 0..ROUNDS {
        stage.halt().await?;
        let (bare, ns) = round(stage, count, Some(&wanted)).await?;
        remove(&ns).await?;
        stage.resume().await?;
        let (ours, ns) = round(stage, count, None).await?;
        ratios.push(ours.as_secs_f64() / bare.as_secs_f64());
        note = format!("last of {ROUNDS} rounds: {:.2} ÷ {:.2} s", ours.as_secs_f64(), bare.as_secs_f64());
        if turn + 1 < ROUNDS {
            remove(&ns).await?;
        } else {
            last = Some(ns);
        }
    }
    let what =
        format!("{count} Agents of BeeAI, all Deployments and Services there ÷ a bare loop writing the same objects");
    let quiet = quiet(stage, &last.context("there is a round")?, count).await?;
    Ok(vec![Row::at_most(what, (1.5, 1.1), median(ratios), "").noted(note), quiet])
}
