//! A namespace with Deployments that want no Pods, and the AgentRuntimes that enrol them.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::AgentRuntime;
use drawbridge::domain::keys;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::{ControlPlane, TestNamespace};

use super::PATIENCE;

/// Objects that are made at once.
const HANDS: usize = 16;
/// The workload that is enrolled ahead, so that what its namespace needs is there.
const FIRST: &str = "first";

/// See the module.
pub(super) struct Fleet {
    namespace: TestNamespace,
    size: usize,
}

/// An AgentRuntime on the Deployment of its name.
fn agent_runtime(name: &str) -> Value {
    json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime", "metadata": {"name": name},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}})
}

fn deployment(name: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "agent", "image": "registry.example.com/agents/weather:1.4.2",
                "ports": [{"containerPort": 8000}]}]}}}})
}

fn is_ready(art: &AgentRuntime) -> bool {
    let conditions = art.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn is_patched(web: &Deployment) -> bool {
    let template = web.spec.as_ref().and_then(|spec| spec.template.metadata.as_ref());
    let annotations = template.and_then(|metadata| metadata.annotations.as_ref());
    annotations.is_some_and(|annotations| annotations.contains_key(keys::ANNOTATION_CONFIG_HASH))
}

fn is_at_rest(web: &Deployment) -> bool {
    let Some(status) = &web.status else { return false };
    let is_known = |type_: &str| status.conditions.iter().flatten().any(|one| one.type_ == type_);
    status.observed_generation == web.metadata.generation && is_known("Available") && is_known("Progressing")
}

impl Fleet {
    /// The Deployments, nothing else.
    pub(super) async fn make(cp: &ControlPlane, name: &str, size: usize) -> Result<Self> {
        let fleet = Self { namespace: cp.namespace(name).await?, size };
        let names: Vec<String> = (0..size).map(|index| fleet.name(index)).chain([FIRST.to_owned()]).collect();
        let namespace = &fleet.namespace;
        let made = futures::stream::iter(names).map(|name| async move { accepts(namespace, deployment(&name)).await });
        made.buffer_unordered(HANDS).try_collect::<()>().await?;
        Ok(fleet)
    }

    pub(super) fn namespace(&self) -> &str {
        self.namespace.name()
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn name(&self, index: usize) -> String {
        format!("agent-{index:04}")
    }

    /// Enrols one more workload, so that the namespace has what every enrolment needs, and connections are open.
    pub(super) async fn warm(&self) -> Result<()> {
        self.namespace.accepts(&agent_runtime(FIRST)).await?;
        self.until(1).await
    }

    /// Creates the AgentRuntimes.
    pub(super) async fn enrol(&self) -> Result<()> {
        let made = futures::stream::iter(0..self.size)
            .map(|index| async move { accepts(&self.namespace, agent_runtime(&self.name(index))).await });
        made.buffer_unordered(HANDS).try_collect::<()>().await
    }

    /// Waits until all of them are ready.
    pub(super) async fn configured(&self) -> Result<()> {
        self.until(self.size).await
    }

    /// Waits until so many of them are ready, [`FIRST`] counted when it is all there is.
    async fn until(&self, count: usize) -> Result<()> {
        let api = self.namespace.api::<AgentRuntime>();
        let mut ready = BTreeMap::new();
        let watching = async {
            let mut events =
                std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
            while let Some(event) = events.next().await {
                let Ok(art) = event else { continue };
                ready.insert(art.name_any(), is_ready(&art));
                let done = ready.iter().filter(|(name, ready)| **ready && (*name != FIRST || count == 1)).count();
                if done >= count {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, watching).await.with_context(|| format!("not {count} are ever configured"))
    }

    /// Waits until every workload is patched.
    pub(super) async fn patched(&self) -> Result<()> {
        self.all(is_patched, "patched").await
    }

    /// Waits until the Deployments' own controller has nothing left to do about them.
    pub(super) async fn at_rest(&self) -> Result<()> {
        self.all(is_at_rest, "at rest").await
    }

    async fn all(&self, holds: fn(&Deployment) -> bool, words: &str) -> Result<()> {
        let workloads: Api<Deployment> = self.namespace.api();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = workloads.list(&ListParams::default()).await?.items;
            let waiting = all.iter().filter(|web| web.name_any() != FIRST && !holds(web)).count();
            if waiting == 0 {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "{waiting} workloads are not {words}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Creates them one after the other: from the answer until a watch shows the workload patched.
    pub(super) async fn one_by_one(&self) -> Result<Vec<Duration>> {
        let (sender, mut patched) = tokio::sync::mpsc::unbounded_channel();
        let api = self.namespace.api::<Deployment>();
        let watching = tokio::spawn(async move {
            let mut events =
                std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
            while let Some(event) = events.next().await {
                let Ok(web) = event else { continue };
                if is_patched(&web) && sender.send((web.name_any(), Instant::now())).is_err() {
                    return;
                }
            }
        });
        let mut seen: HashMap<String, Instant> = HashMap::new();
        let mut times = Vec::new();
        for index in 0..self.size {
            let name = self.name(index);
            self.namespace.accepts(&agent_runtime(&name)).await?;
            let created = Instant::now();
            while !seen.contains_key(&name) {
                let next = tokio::time::timeout(PATIENCE, patched.recv()).await;
                let (name, at) =
                    next.with_context(|| format!("{name} is never patched"))?.context("the watch ended")?;
                seen.entry(name).or_insert(at);
            }
            times.push(seen[&name].saturating_duration_since(created));
        }
        watching.abort();
        Ok(times)
    }

    /// Takes everything away; finalizers as well where no controller is there to do it.
    pub(super) async fn remove(&self, finalizers: bool) -> Result<()> {
        let runtimes: Api<AgentRuntime> = self.namespace.api();
        if finalizers {
            let names: Vec<_> =
                runtimes.list(&ListParams::default()).await?.items.iter().map(|art| art.name_any()).collect();
            let patch = json!({"metadata": {"finalizers": null}});
            for name in names {
                runtimes.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
            }
        }
        runtimes.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
        let deadline = Instant::now() + PATIENCE;
        while !runtimes.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            ensure!(Instant::now() < deadline, "the AgentRuntimes do not go");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let workloads: Api<Deployment> = self.namespace.api();
        workloads.delete_collection(&DeleteParams::background(), &ListParams::default()).await?;
        // ReplicaSets go with their owners, by the garbage collector, who would otherwise be busy in the next round.
        let sets: Api<k8s_openapi::api::apps::v1::ReplicaSet> = self.namespace.api();
        while !sets.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            ensure!(Instant::now() < deadline, "the ReplicaSets do not go");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

async fn accepts(namespace: &TestNamespace, object: Value) -> Result<()> {
    namespace.accepts(&object).await.map(drop)
}
