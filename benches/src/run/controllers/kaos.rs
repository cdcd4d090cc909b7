//! Agents, MCPServers and one ModelAPI of KAOS, made at once, beside a bare loop that writes the same objects.
//!
//! Both arms have the same concurrency and the same waiting: a Deployment of a dependency becomes ready by a patch of its status, which the same
//! hand gives in both, and an Agent's Deployment is written once what it names is ready.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::domain::keys;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use webhook_tests::{ControlPlane, TestNamespace};

use super::running::Running;
use super::{ACCOUNT, PATIENCE};

/// Objects that are made at once.
const HANDS: usize = 16;
/// As many at once as the controllers work on.
const WORKERS: usize = 32;
/// What the policies that fence the account look for, one of each kind; the bare loop leaves it alone.
const MARK: &str = "mark";
/// The one ModelAPI.
const API: &str = "models";

/// A namespace with a ModelAPI, MCPServers, and as many Agents, each of which uses one of them.
pub(super) struct Team {
    namespace: TestNamespace,
    size: usize,
}

fn resource(kind: &str) -> ApiResource {
    let gvk = GroupVersionKind::gvk("kaos.tools", "v1alpha1", kind);
    ApiResource { plural: format!("{}s", kind.to_lowercase()), ..ApiResource::from_gvk(&gvk) }
}

fn objects(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(kind))
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn spec(kind: &str, name: &str) -> Value {
    match kind {
        "ModelAPI" => json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}),
        "MCPServer" => json!({"runtime": "python-string", "params": "def f(): pass"}),
        _ => json!({"modelAPI": API, "model": "openai/x", "mcpServers": [name]}),
    }
}

/// Names of Deployment and Service.
fn made(kind: &str, name: &str) -> String {
    format!("{}-{name}", kind.to_lowercase())
}

impl Team {
    pub(super) async fn make(cp: &ControlPlane, name: &str, size: usize) -> Result<Self> {
        Ok(Self { namespace: cp.namespace(name).await?, size })
    }

    pub(super) fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// Objects of ours, and as many Deployments.
    pub(super) fn all(&self) -> usize {
        2 * self.size + 1
    }

    fn names(&self) -> Vec<(&'static str, String)> {
        let numbered = |kind: &'static str| (0..self.size).map(move |number| (kind, format!("n{number:04}")));
        std::iter::once(("ModelAPI", API.to_owned())).chain(numbered("MCPServer")).chain(numbered("Agent")).collect()
    }

    /// One object of each kind that policies look for, as ours marks one of those that it is given.
    pub(super) async fn mark(&self) -> Result<()> {
        for kind in ["ModelAPI", "MCPServer", "Agent"] {
            let mut mark = object(kind, MARK, &spec(kind, MARK));
            mark["metadata"]["labels"] = json!({keys::LABEL_POLICY_PARAMETER: keys::POLICY_PARAMETER});
            self.namespace.accepts(&mark).await?;
        }
        Ok(())
    }

    /// Creates every object.
    async fn create(&self) -> Result<()> {
        let one = |(kind, name): (&'static str, String)| {
            let spec = spec(kind, &name);
            async move { self.namespace.accepts(&object(kind, &name, &spec)).await.map(drop) }
        };
        futures::stream::iter(self.names()).map(one).buffer_unordered(HANDS).try_collect::<()>().await
    }

    /// As many ModelAPIs more as there are Agents, until what runs them is there; how many objects there are then.
    pub(super) async fn grow(&self) -> Result<usize> {
        let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
        let one = |number: usize| {
            let more = object("ModelAPI", &format!("more{number:04}"), &spec);
            async move { self.namespace.accepts(&more).await.map(drop) }
        };
        futures::stream::iter(0..self.size).map(one).buffer_unordered(HANDS).try_collect::<()>().await?;
        let all = self.all() + self.size;
        self.built(all).await?;
        Ok(all)
    }

    /// Waits until so many Deployments and Services are there.
    async fn built(&self, all: usize) -> Result<()> {
        let deployments = there(self.namespace.api::<Deployment>(), all);
        let services = there(self.namespace.api::<Service>(), all);
        let both = async {
            tokio::try_join!(deployments, services)?;
            Ok(())
        };
        tokio::time::timeout(PATIENCE, both).await.context("they are never all there")?
    }

    /// From the first object until every Deployment and Service is there.
    pub(super) async fn timed(&self) -> Result<Duration> {
        let hand = give_readiness(self.namespace.api());
        let began = Instant::now();
        let (created, built) = tokio::join!(self.create(), self.built(self.all()));
        let took = began.elapsed();
        hand.abort();
        created?;
        built?;
        Ok(took)
    }

    /// Waits until every Agent's status says that it is ready.
    pub(super) async fn ready(&self) -> Result<()> {
        let hand = give_readiness(self.namespace.api());
        let agents = objects(&self.namespace.client(), self.namespace(), "Agent");
        let waiting = async {
            let mut ready = HashSet::new();
            let mut events =
                std::pin::pin!(watcher(agents, watcher::Config::default()).default_backoff().applied_objects());
            while let Some(event) = events.next().await {
                let Ok(agent) = event else { continue };
                if agent.data["status"]["ready"] == true {
                    ready.insert(agent.name_any());
                }
                if ready.len() >= self.size {
                    return;
                }
            }
        };
        let ended = tokio::time::timeout(PATIENCE, waiting).await.context("not every Agent becomes ready");
        hand.abort();
        ended
    }

    /// Flaps the ModelAPI's status so often a second for so long; how often it was.
    pub(super) async fn flap(&self, a_second: u32, lasts: Duration) -> Result<u32> {
        let api = objects(&self.namespace.client(), self.namespace(), "ModelAPI");
        let mut tick = tokio::time::interval(Duration::from_secs(1) / a_second);
        let began = Instant::now();
        let mut times = 0;
        while began.elapsed() < lasts {
            tick.tick().await;
            times += 1;
            let patch = json!({"status": {"message": format!("turn {times}")}});
            api.patch_status(API, &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok(times)
    }

    /// Waits until the last turn of [`Team::flap`] was put right.
    pub(super) async fn put_right(&self) -> Result<()> {
        let api = objects(&self.namespace.client(), self.namespace(), "ModelAPI");
        let deadline = Instant::now() + PATIENCE;
        while api.get(API).await?.data["status"]["message"].as_str().is_some_and(|text| text.starts_with("turn ")) {
            ensure!(Instant::now() < deadline, "the status that flapped is not put right");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Takes everything away; finalizers as well where no controller is there to do it.
    pub(super) async fn remove(&self, finalizers: bool) -> Result<()> {
        let client = self.namespace.client();
        for (kind, name) in self.names() {
            let api = objects(&client, self.namespace(), kind);
            if finalizers {
                let patch = json!({"metadata": {"finalizers": null}});
                api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            }
            api.delete(&name, &kube::api::DeleteParams::background()).await?;
        }
        for kind in ["ModelAPI", "MCPServer", "Agent"].into_iter().filter(|_| finalizers) {
            objects(&client, self.namespace(), kind).delete(MARK, &kube::api::DeleteParams::background()).await?;
        }
        let deployments: Api<Deployment> = self.namespace.api();
        let deadline = Instant::now() + PATIENCE;
        while !deployments.list(&kube::api::ListParams::default().limit(1)).await?.items.is_empty() {
            ensure!(Instant::now() < deadline, "the Deployments do not go");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

async fn there<K>(api: Api<K>, wanted: usize) -> Result<()>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut names = HashSet::new();
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
    while let Some(event) = events.next().await {
        let Ok(one) = event else { continue };
        names.insert(one.name_any());
        if names.len() >= wanted {
            return Ok(());
        }
    }
    bail!("the watch ended")
}

/// The hand that makes Deployments ready as they come.
fn give_readiness(api: Api<Deployment>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut known = HashSet::new();
        let watching = watcher(api.clone(), watcher::Config::default());
        let mut events = std::pin::pin!(watching.default_backoff().applied_objects());
        while let Some(event) = events.next().await {
            let Ok(one) = event else { continue };
            if known.insert(one.name_any()) {
                let (api, name, generation) = (api.clone(), one.name_any(), one.metadata.generation);
                tokio::spawn(async move {
                    let status = json!({"status": {"observedGeneration": generation, "replicas": 1, "updatedReplicas": 1,
                        "readyReplicas": 1, "availableReplicas": 1}});
                    // One that fails shows as a row that is never measured.
                    let _ = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
                });
            }
        }
    })
}

#[derive(Clone)]
struct Hands {
    client: Client,
    namespace: String,
}

/// Begins the bare loop: it watches, under the account of the controllers.
pub(super) async fn bare(cp: &ControlPlane, team: &Team) -> Result<Running> {
    let client = cp.service_account(keys::OPERATOR_NAMESPACE, ACCOUNT).await?.client().await?;
    let hands = Hands { client, namespace: team.namespace().to_owned() };
    Ok(Running::begin(|mut stopped| async move {
        let free = Arc::new(Semaphore::new(WORKERS));
        let mut workers: JoinSet<Result<()>> = JoinSet::new();
        let watch = |kind: &'static str| {
            let api = objects(&hands.client, &hands.namespace, kind);
            let watching = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
            watching.map(move |event| event.map(|object| (kind, object))).boxed()
        };
        let mut events = futures::stream::select_all(["ModelAPI", "MCPServer", "Agent"].map(watch));
        let deployments: Api<Deployment> = Api::namespaced(hands.client.clone(), &hands.namespace);
        let mut came =
            std::pin::pin!(watcher(deployments, watcher::Config::default()).default_backoff().applied_objects());
        let (mut begun, mut ready, mut said) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut waiting: HashMap<String, DynamicObject> = HashMap::new();
        loop {
            tokio::select! {
                _ = &mut stopped => break,
                Some(ended) = workers.join_next() => ended??,
                Some(Ok((kind, object))) = events.next() => {
                    let name = object.name_any();
                    if kind != "Agent" && object.data["status"]["ready"] == true {
                        ready.insert((kind, name.clone()));
                    }
                    if name != MARK && begun.insert((kind, name.clone())) {
                        if kind == "Agent" {
                            waiting.insert(name, object.clone());
                        }
                        hands.spawn(&mut workers, &free, move |hands| async move { hands.begin(kind, &object).await });
                    }
                }
                Some(Ok(deployment)) = came.next() => {
                    let serves = deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0) > 0;
                    let name = deployment.name_any();
                    let kind = ["ModelAPI", "MCPServer", "Agent"].into_iter().find(|kind| name.starts_with(&made(kind, "")));
                    if let Some(kind) = kind.filter(|_| serves && said.insert(name.clone())) {
                        let name = name[made(kind, "").len()..].to_owned();
                        hands.spawn(&mut workers, &free, move |hands| async move { hands.status(kind, &name, "Ready").await });
                    }
                }
            }
            let free_now: Vec<String> = waiting
                .keys()
                .filter(|name| {
                    ready.contains(&("ModelAPI", API.to_owned())) && ready.contains(&("MCPServer", (*name).clone()))
                })
                .cloned()
                .collect();
            for name in free_now {
                if let Some(agent) = waiting.remove(&name) {
                    hands.spawn(&mut workers, &free, move |hands| async move { hands.build("Agent", &agent).await });
                }
            }
        }
        while let Some(ended) = workers.join_next().await {
            ended??;
        }
        Ok(())
    }))
}

impl Hands {
    fn spawn<F>(&self, workers: &mut JoinSet<Result<()>>, free: &Arc<Semaphore>, work: impl FnOnce(Hands) -> F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let (free, work) = (free.clone(), work(self.clone()));
        workers.spawn(async move {
            let _one = free.acquire().await?;
            work.await
        });
    }

    /// The finalizer, and either what runs it or that it waits.
    async fn begin(&self, kind: &'static str, object: &DynamicObject) -> Result<()> {
        let name = object.name_any();
        let patch = json!({"metadata": {"finalizers": [format!("kaos.tools/{}-finalizer", kind.to_lowercase())]}});
        let api = objects(&self.client, &self.namespace, kind);
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        if kind == "Agent" { self.status(kind, &name, "Waiting").await } else { self.build(kind, object).await }
    }

    /// ConfigMap, Service and Deployment, two Events, and the status.
    async fn build(&self, kind: &'static str, object: &DynamicObject) -> Result<()> {
        let name = object.name_any();
        let (called, word) = (made(kind, &name), kind.to_lowercase());
        let labels = json!({"app": word, word.clone(): name});
        let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "name": name, "uid": object.uid(),
            "controller": true, "blockOwnerDeletion": true}]);
        // By these labels the policies that fence the account know what it may make.
        let mut marked = labels.clone();
        marked[keys::LABEL_APP_MANAGED_BY] = json!(keys::MANAGED_BY_DRAWBRIDGE);
        marked[keys::LABEL_KAOS_KIND] = json!(word);
        let metadata = |name: &str| json!({"name": name, "labels": marked, "ownerReferences": owner});
        let by = PatchParams::apply("bare").force();
        if kind == "ModelAPI" {
            let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(&format!("litellm-config-{name}")),
                "data": {"config.yaml": "model_list: []\n"}});
            api.patch(&format!("litellm-config-{name}"), &by, &Patch::Apply(body)).await?;
        }
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        let port = json!([{"name": "http", "port": 8000, "targetPort": 8000, "protocol": "TCP"}]);
        let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(&called),
            "spec": {"selector": labels, "ports": port, "type": "ClusterIP"}});
        services.patch(&called, &by, &Patch::Apply(body)).await?;
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        let env: Vec<Value> =
            (0..8).map(|number| json!({"name": format!("V{number}"), "value": "a value of some length"})).collect();
        let probe =
            json!({"httpGet": {"path": "/health", "port": 8000}, "initialDelaySeconds": 30, "periodSeconds": 10});
        let container = json!({"name": word, "image": "example.com/kaos:1", "env": env, "livenessProbe": probe, "readinessProbe": probe,
            "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]});
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata(&called), "spec": {
            "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        deployments.patch(&called, &by, &Patch::Apply(body)).await?;
        let events: Api<k8s_openapi::api::core::v1::Event> = Api::namespaced(self.client.clone(), &self.namespace);
        for reason in ["ServiceCreated", "DeploymentCreated"] {
            let about = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "name": name, "namespace": self.namespace, "uid": object.uid()});
            let event = json!({"metadata": {"name": format!("{called}.{}", reason.to_lowercase())}, "involvedObject": about,
                "reason": reason, "message": format!("{called} was made"), "type": "Normal",
                "reportingComponent": "drawbridge/bare", "reportingInstance": "bare"});
            events.create(&PostParams::default(), &serde_json::from_value(event)?).await?;
        }
        self.status(kind, &name, "Pending").await
    }

    async fn status(&self, kind: &'static str, name: &str, phase: &str) -> Result<()> {
        let moment = "2026-05-01T00:00:00Z";
        let condition = json!({"type": "Ready", "status": if phase == "Ready" { "True" } else { "False" }, "reason": "Bare",
            "message": "as the bare loop has it", "lastTransitionTime": moment});
        let status = json!({"status": {"phase": phase, "ready": phase == "Ready", "message": phase, "observedGeneration": 1,
            "conditions": [condition]}});
        let api = objects(&self.client, &self.namespace, kind);
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}
