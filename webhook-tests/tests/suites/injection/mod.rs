//! Injection on a real API server, by the product as `manifests/` installs it: what people apply, what runs in the end.
//!
//! One installation serves all tests but the one that restarts it; each test has namespaces of its own.

mod fixed;
mod guards;
mod neighbours;
mod stolen;
mod weakened;

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret, ServiceAccount};
use k8s_openapi::{ListableResource, NamespaceResourceScope};
use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, installation, trial, wait_for, wait_until,
};

/// What mode envoy-sidecar adds, in the order of the contract, as native sidecars.
const PARTS: [&str; 4] =
    [keys::CONTAINER_PROXY_INIT, keys::CONTAINER_ENVOY, keys::CONTAINER_SPIFFE_HELPER, keys::CONTAINER_REGISTRATION];

async fn control_plane() -> Result<&'static ControlPlane> {
    installation::shared().await
}

/// The labels of a workload or template, as the two variants have them; every sidecar is asked for.
fn labels(app: &str, enrolled: bool) -> Value {
    if enrolled {
        json!({ "app": app, keys::LABEL_TYPE: "agent", keys::LABEL_CLIENT_REGISTRATION: "true" })
    } else {
        json!({ "app": app })
    }
}

/// A template with an init container of the user's.
fn template(app: &str, restart: &str) -> Value {
    json!({ "metadata": { "labels": labels(app, true) }, "spec": {
        "restartPolicy": restart,
        "initContainers": [{ "name": "setup", "image": "example.com/setup:1" }],
        "containers": [{ "name": "agent", "image": "example.com/agent:1", "ports": [{ "containerPort": 8000 }] }],
    } })
}

fn deployment(name: &str, labelled: bool, replicas: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "labels": labels(name, labelled) },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": template(name, "Always") } })
}

fn job(name: &str, labelled: bool) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name, "labels": labels(name, labelled) },
        "spec": { "template": template(name, "Never") } })
}

fn cron_job(name: &str, labelled: bool) -> Value {
    json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": name, "labels": labels(name, labelled) },
        "spec": { "schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": { "spec": { "template": template(name, "Never") } } } })
}

/// A Pod that nobody owns.
fn pod(name: &str, labels: &Value) -> Value {
    let mut pod = template(name, "Always");
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"] = json!({ "name": name, "labels": labels });
    pod
}

fn init_containers(pod: &Pod) -> Vec<String> {
    let spec = pod.spec.clone().unwrap_or_default();
    spec.init_containers.unwrap_or_default().into_iter().map(|container| container.name).collect()
}

fn containers(pod: &Pod) -> Vec<String> {
    pod.spec.clone().unwrap_or_default().containers.into_iter().map(|container| container.name).collect()
}

fn has_phase(phase: &'static str) -> impl Fn(&Pod) -> bool {
    move |pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(phase)
}

/// Our parts lead, in order, each once and as native sidecars; then come the user's.
fn assert_injected(pod: &Pod) {
    let expected: Vec<&str> = PARTS.into_iter().chain(["setup"]).collect();
    assert_eq!(init_containers(pod), expected, "{pod:?}");
    assert_eq!(containers(pod), ["agent"], "{pod:?}");
    for container in pod.spec.clone().unwrap_or_default().init_containers.unwrap_or_default() {
        let stays = ![keys::CONTAINER_PROXY_INIT, "setup"].contains(&container.name.as_str());
        assert_eq!(container.restart_policy.as_deref(), stays.then_some("Always"), "{}", container.name);
    }
}

fn typed<K: DeserializeOwned>(object: &DynamicObject) -> Result<K> {
    Ok(serde_json::from_value(serde_json::to_value(object)?)?)
}

async fn kubectl(cp: &ControlPlane, ns: &TestNamespace, args: &[&str], input: &str) -> Result<String> {
    let args: Vec<&str> = ["-n", ns.name()].into_iter().chain(args.iter().copied()).collect();
    let output = cp.kubectl(cp.admin(), &args, input).await?;
    ensure!(output.success, "kubectl {args:?}: {output:?}");
    Ok(output.stderr)
}

/// Waits for the Pod of an app, which is injected, has a ServiceAccount of its own that exists, and reached the phase.
async fn comes_up(ns: &TestNamespace, app: &str, phase: &'static str) -> Result<()> {
    let selected = watcher::Config::default().labels(&format!("app={app}"));
    let api = ns.api::<Pod>();
    let pods = wait_until(&api, selected, |pods| !pods.is_empty() && pods.values().all(has_phase(phase)));
    for pod in pods.await? {
        assert_injected(&pod);
        let account = pod.spec.and_then(|spec| spec.service_account_name).unwrap_or_default();
        assert_eq!(account, app);
        wait_for(&ns.api::<ServiceAccount>(), &account, |_| true).await?;
    }
    Ok(())
}

/// Waits for the ConfigMaps that our containers mount or read.
async fn is_furnished(ns: &TestNamespace) -> Result<()> {
    let all = |found: &BTreeMap<String, ConfigMap>| {
        keys::NAMESPACE_CONFIG_MAPS.iter().all(|name| found.contains_key(&format!("{}/{name}", ns.name())))
    };
    wait_until(&ns.api::<ConfigMap>(), watcher::Config::default(), all).await.map(drop)
}

async fn both_kinds_run(labelled: bool) -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace(if labelled { "labelled" } else { "template" }).await?;
    for workload in [deployment("served", labelled, 1), job("once", labelled), cron_job("timed", labelled)] {
        kubectl(cp, &ns, &["apply", "-f", "-"], &workload.to_string()).await?;
    }
    kubectl(cp, &ns, &["create", "job", "by-hand", "--from=cronjob/timed"], "").await?;
    is_furnished(&ns).await?;
    comes_up(&ns, "served", "Running").await?;
    let succeeded = |job: &Job| job.status.as_ref().and_then(|status| status.succeeded) == Some(1);
    for name in ["once", "by-hand"] {
        wait_for(&ns.api::<Job>(), name, succeeded).await.with_context(|| name.to_owned())?;
        let selected = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={name}"));
        for pod in ns.api::<Pod>().list(&selected).await? {
            assert_injected(&pod);
        }
    }
    Ok(())
}

#[tokio::test]
async fn workloads_with_labels_on_themselves_and_their_template_run_and_jobs_complete() -> Result<()> {
    both_kinds_run(true).await
}

#[tokio::test]
async fn workloads_with_labels_on_their_template_only_run_and_jobs_complete() -> Result<()> {
    both_kinds_run(false).await
}

/// `resourceVersion`s of all objects of a kind in a namespace.
async fn versions<K>(ns: &TestNamespace, into: &mut BTreeMap<String, String>) -> Result<()>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
    K: ListableResource,
{
    for object in ns.api::<K>().list(&ListParams::default()).await? {
        let version = object.resource_version().context("a stored object has a version")?;
        into.insert(format!("{}/{}", K::KIND, object.name_any()), version);
    }
    Ok(())
}

async fn state(ns: &TestNamespace) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    versions::<Pod>(ns, &mut all).await?;
    versions::<ServiceAccount>(ns, &mut all).await?;
    versions::<ConfigMap>(ns, &mut all).await?;
    versions::<Secret>(ns, &mut all).await?;
    versions::<Event>(ns, &mut all).await?;
    versions::<Deployment>(ns, &mut all).await?;
    versions::<ReplicaSet>(ns, &mut all).await?;
    versions::<Job>(ns, &mut all).await?;
    Ok(all)
}

/// Without what the API server draws anew for each answer.
fn settled(object: &DynamicObject) -> Result<Value> {
    let mut value = serde_json::to_value(object)?;
    let metadata = value["metadata"].as_object_mut().context("metadata is an object")?;
    for drawn in ["uid", "creationTimestamp", "managedFields"] {
        metadata.remove(drawn);
    }
    let token = value["spec"]["volumes"].as_array().into_iter().flatten();
    let token = token.filter_map(|volume| volume["name"].as_str()).find(|name| name.starts_with("kube-api-access-"));
    let Some(token) = token.map(str::to_owned) else { return Ok(value) };
    Ok(serde_json::from_str(&value.to_string().replace(&token, "token"))?)
}

/// Applies a Deployment of no Pods and waits until nobody has anything left to do about it; returns its ReplicaSet.
async fn at_rest(ns: &TestNamespace, name: &str) -> Result<ReplicaSet> {
    ns.apply(&deployment(name, true, 0).to_string()).await?;
    let complete = |deployment: &Deployment| {
        let conditions = deployment.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|c| c.reason.as_deref() == Some("NewReplicaSetAvailable"))
    };
    wait_for(&ns.api::<Deployment>(), name, complete).await?;
    is_furnished(ns).await?;
    // The cluster gives every namespace one, too, when it gets to it.
    wait_for(&ns.api::<ConfigMap>(), "kube-root-ca.crt", |_| true).await?;
    wait_for(&ns.api::<ServiceAccount>(), name, |_| true).await?;
    let observed = |set: &ReplicaSet| set.status.as_ref().is_some_and(|status| status.observed_generation.is_some());
    let api = ns.api::<ReplicaSet>();
    let sets = wait_until(&api, watcher::Config::default(), |sets| sets.len() == 1 && sets.values().all(observed));
    sets.await?.pop().context("one was seen")
}

/// Waits until such a Pod is admitted: the webhook learns of its owner and of its ServiceAccount by watches of its own, and only its answer tells
/// that it has.
async fn admitted(ns: &TestNamespace, pod: &Value) -> Result<()> {
    let deadline = tokio::time::Instant::now() + patience();
    while let Err(refusal) = ns.create(pod, true).await?.result {
        ensure!(tokio::time::Instant::now() < deadline, "still refused: {}", refusal.message);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    Ok(())
}

#[tokio::test]
async fn a8_a_dry_run_of_an_owned_pod_shows_the_injected_pod_each_time_and_changes_nothing() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("dry").await?;
    let set = at_rest(&ns, "weather").await?;
    let mut owned = pod("weather-x", &labels("weather", true));
    owned["metadata"]["labels"][keys::LABEL_POD_TEMPLATE_HASH] = json!(set.labels()[keys::LABEL_POD_TEMPLATE_HASH]);
    owned["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
        "name": set.name_any(), "uid": set.uid() }]);
    admitted(&ns, &owned).await?;
    let before = state(&ns).await?;
    assert!(before.contains_key("ServiceAccount/weather"), "{before:?}");
    let answer = async || match ns.create(&owned, true).await?.result {
        Ok(object) => Ok(object),
        Err(status) => Err(anyhow::anyhow!("refused: {}", status.message)),
    };
    let (first, second) = (answer().await?, answer().await?);
    assert_eq!(settled(&first)?, settled(&second)?);
    let first: Pod = typed(&first)?;
    assert_injected(&first);
    assert_eq!(first.spec.and_then(|spec| spec.service_account_name).as_deref(), Some("weather"));
    assert_eq!(state(&ns).await?, before);
    Ok(())
}

#[tokio::test]
async fn a_created_pod_costs_one_review() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("once").await?;
    let set = at_rest(&ns, "weather").await?;
    let mark = cp.audit().mark()?;
    for (name, mode) in [("envoy", "envoy-sidecar"), ("proxy", "proxy-sidecar")] {
        let mut alone = pod(name, &labels("weather", true));
        alone["metadata"]["annotations"] = json!({ keys::ANNOTATION_MODE: mode });
        alone["spec"]["serviceAccountName"] = json!("weather");
        alone["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true,
            "name": set.name_any(), "uid": set.uid() }]);
        let mut tried = alone.clone();
        tried["metadata"]["name"] = json!("tried");
        admitted(&ns, &tried).await?;
        let created = ns.create(&alone, false).await?.result;
        let created: Pod = typed(&created.map_err(|status| anyhow::anyhow!("refused: {}", status.message))?)?;
        let spec = created.spec.context("a Pod has a spec")?;
        let mut all = spec.init_containers.into_iter().flatten().chain(spec.containers);
        let has_token = |container: &k8s_openapi::api::core::v1::Container| {
            let mut mounts = container.volume_mounts.iter().flatten();
            mounts.any(|mount| mount.mount_path == "/var/run/secrets/kubernetes.io/serviceaccount")
        };
        assert!(
            all.all(|container| has_token(&container)),
            "{mode}: the API server gives its token to every container"
        );
    }
    let created = cp.audit().settled(mark).await?.in_namespace(ns.name()).resource("pods").verb("create").accepted();
    let created =
        created.filter(|request| request.subresource.is_empty() && ["envoy", "proxy"].contains(&request.name.as_str()));
    assert_eq!(created.len(), 2);
    for request in created.iter() {
        let ours = request.annotations.iter().filter(|(key, value)| {
            key.starts_with("mutation.webhook.admission.k8s.io/") && value.contains("drawbridge")
        });
        let rounds: Vec<_> = ours.collect();
        assert!(
            matches!(&rounds[..], [(_, value)] if value.contains(r#""mutated":true"#)),
            "{}: {rounds:?}",
            request.name
        );
    }
    Ok(())
}

#[tokio::test]
async fn answers_14_that_pods_will_be_injected_is_no_warning_in_a_dry_run_or_when_applied() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("told").await?;
    for (labelled, name) in [(true, "both"), (false, "template")] {
        let manifest = deployment(name, labelled, 0).to_string();
        let tells =
            |printed: &str| printed.lines().any(|line| line.starts_with("Warning:") && line.contains("Injected"));
        let printed = kubectl(cp, &ns, &["apply", "--dry-run=server", "-f", "-"], &manifest).await?;
        assert!(!tells(&printed), "{printed}");
        assert!(ns.get("apps/v1", "Deployment", name).await.is_err(), "a dry run stored the Deployment");
        let printed = kubectl(cp, &ns, &["apply", "-f", "-"], &manifest).await?;
        assert!(!tells(&printed), "{printed}");
    }
    let mut plain = deployment("plain", false, 0);
    plain["spec"]["template"]["metadata"]["labels"] = labels("plain", false);
    assert_eq!(kubectl(cp, &ns, &["apply", "-f", "-"], &plain.to_string()).await?, "");
    Ok(())
}

/// Waits until the controllers have done all there is to do so far: a workload that comes last is served last.
async fn caught_up(cp: &ControlPlane) -> Result<TestNamespace> {
    let ns = cp.namespace("last").await?;
    ns.apply(&deployment("last", true, 1).to_string()).await?;
    is_furnished(&ns).await?;
    comes_up(&ns, "last", "Running").await?;
    Ok(ns)
}

async fn leads(installation: &Installation) -> Result<()> {
    let patience = tokio::time::Instant::now() + patience();
    loop {
        let metrics = installation.controllers[0].metrics().await?;
        if metrics.sum("leader_election_master_status", &[]) == 1.0 {
            return Ok(());
        }
        ensure!(tokio::time::Instant::now() < patience, "nobody leads:\n{}", installation.controllers[0].log());
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn the_webhook_only_watches_and_a_restart_writes_nothing_but_leases() -> Result<()> {
    let creations = trial::size(100, 500);
    let cp = installation::plane(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let ns = cp.namespace("watched").await?;
    ns.apply(&deployment("served", false, 1).to_string()).await?;
    ns.apply(&job("once", false).to_string()).await?;
    comes_up(&ns, "served", "Running").await?;
    let account = |role: &str| format!("system:serviceaccount:{}:drawbridge-{role}", keys::OPERATOR_NAMESPACE);

    let from = cp.audit().mark()?;
    let made = futures::stream::iter(0..creations).map(|number| {
        let wanted = pod(&format!("bare-{number}"), &labels("bare", true));
        let ns = &ns;
        async move { ns.accepts(&wanted).await.and_then(|stored| typed::<Pod>(&stored)) }
    });
    let stored: Vec<Result<Pod>> = made.buffer_unordered(8).collect().await;
    stored.into_iter().try_for_each(|pod| pod.map(|pod| assert_injected(&pod)))?;
    let asked = cp.audit().settled(from).await?.by(&account("webhook"));
    let beyond = asked.clone().filter(|request| !["get", "list", "watch"].contains(&request.verb.as_str()));
    assert!(beyond.is_empty(), "{beyond}");
    // Watches are renewed, and kinds that nobody serves asked for again, as time goes by, however many Pods come.
    let asked =
        asked.filter(|request| request.verb != "watch" && !(request.verb == "list" && request.code == Some(404)));
    assert!(asked.len() < creations / 4, "the webhook asks the API server per Pod: {asked}");

    caught_up(&cp).await?;
    let processes = || installation.webhooks.iter().chain(&installation.controllers);
    for process in processes() {
        process.stop(patience()).await?;
    }
    let from = cp.audit().mark()?;
    for process in processes() {
        process.start_again()?;
    }
    for process in processes() {
        process.ready().await?;
    }
    installation.balancer.wait_for_endpoints(1).await?;
    leads(&installation).await?;
    let last = caught_up(&cp).await?;
    let asked = cp.audit().settled(from).await?;
    for role in ["webhook", "controllers"] {
        let asked = asked.clone().by(&account(role));
        assert!(!asked.is_empty(), "{role} asked for nothing after its restart");
        let written = asked.writes().filter(|request| request.resource != "leases" && request.namespace != last.name());
        assert!(written.is_empty(), "{role}: {written}");
    }
    Ok(())
}

#[tokio::test]
async fn who_is_not_enrolled_stays_untouched() -> Result<()> {
    let cp = control_plane().await?;
    let open = cp.namespace("open").await?;
    let out = cp.namespace_with("out", &[(keys::LABEL_NAMESPACE_ENABLED, "false")]).await?;
    let system = webhook_tests::Objects::new(cp.client().await?, "kube-system");
    wait_for(&system.api::<ServiceAccount>(), "default", |_| true).await?;
    let agent = labels("agent", true);
    let tool = json!({ keys::LABEL_TYPE: "tool" });
    let opted_out = json!({ keys::LABEL_TYPE: "agent", keys::LABEL_INJECT: keys::INJECT_DISABLED });
    for (place, name, labels) in [
        (&*out, "namespace-opted-out", &agent),
        (&system, "system-namespace", &agent),
        (&*open, "pod-opted-out", &opted_out),
        (&*open, "without-type", &labels("plain", false)),
        (&*open, "tool", &tool),
    ] {
        let stored: Pod = typed(&place.accepts(&pod(name, labels)).await?)?;
        assert_eq!(init_containers(&stored), ["setup"], "{name}");
        assert_eq!(containers(&stored), ["agent"], "{name}");
        assert_eq!(stored.metadata.annotations, None, "{name}");
        let spec = stored.spec.context("a stored Pod has a spec")?;
        let volumes: Vec<String> = spec.volumes.unwrap_or_default().into_iter().map(|volume| volume.name).collect();
        assert!(volumes.iter().all(|name| name.starts_with("kube-api-access-")), "{name}: {volumes:?}");
        assert_eq!(spec.service_account_name.as_deref(), Some("default"), "{name}");
    }
    // The same Pod, enrolled: so the installation was at work.
    assert_injected(&typed(&open.accepts(&pod("enrolled", &agent)).await?)?);
    Ok(())
}
