//! A Deployment as the Go operator leaves it, on a real API server, which fills in what it fills in.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, Installation, Installing, Options, TestNamespace, installation, wait_for};

use super::{environment, objects, ready, value};
use crate::agents::stage::{CONTROLLERS, shared};

fn pending(agent: &DynamicObject) -> Option<&str> {
    let all = agent.data.pointer("/status/conditions")?.as_array()?;
    all.iter().find(|one| one["type"] == "TakeoverPending" && one["status"] == "True")?["message"].as_str()
}

/// What the Go operator writes for that Agent: its manager, its hash, a variable twice, one that nothing asks for, its numbers of probes, its
/// level of logs; and `more` variables.
fn by_go(namespace: &str, image: &str, uid: Option<String>, more: &[Value]) -> Result<Deployment> {
    let labels = json!({"app": "agent", "agent": "old"});
    let url = format!("http://modelapi-m.{namespace}.svc.cluster.local:8000");
    let env = [
        ("AGENT_NAME", "old"),
        ("OLD", "1"),
        ("MODEL_NAME", "before"),
        ("MODEL_API_URL", &*url),
        ("MODEL_NAME", "x"),
        ("LOG_LEVEL", "DEBUG"),
    ];
    let env = env.iter().map(|(name, value)| json!({"name": name, "value": value}));
    let env: Vec<Value> = env.chain(more.iter().cloned()).collect();
    let get = |path: &str| json!({"path": path, "port": 8000, "scheme": "HTTP"});
    Ok(serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "agent-old", "labels": labels, "ownerReferences": [{
            "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "old", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": {"kaos.tools/pod-spec-hash": "0123456789abcdef"}},
            "spec": {"containers": [{
                "name": "agent", "image": image, "imagePullPolicy": "IfNotPresent", "env": env, "resources": {},
                "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}],
                "livenessProbe": {"httpGet": get("/health"), "initialDelaySeconds": 5, "periodSeconds": 10},
                "readinessProbe": {"httpGet": get("/ready"), "initialDelaySeconds": 3, "periodSeconds": 5},
            }]},
        }},
    }))?)
}

/// It means what is wanted, so it runs on as it is, and the status lists what the next change does besides. That change rolls once, and leaves no
/// variable and no manager behind.
#[tokio::test]
async fn ruling_21_what_the_go_operator_made_is_taken_over_with_its_next_change() -> Result<()> {
    let cp = shared().await?;
    let ns = cp.namespace("kaos-takeover").await?;
    let (agents, deployments) = (objects(&ns, "Agent"), ns.api::<Deployment>());
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    // Which image the platform has is what is made for another Agent.
    ns.accepts(&object("ModelAPI", "t", proxy.clone())).await?;
    ns.accepts(&object("Agent", "twin", json!({"modelAPI": "t", "model": "x", "waitForDependencies": false}))).await?;
    let twin = wait_for(&deployments, "agent-twin", |_| true).await?;
    let image = twin.spec.and_then(|spec| spec.template.spec).and_then(|pod| pod.containers[0].image.clone());
    ns.accepts(&object("Agent", "old", json!({"modelAPI": "m", "model": "x"}))).await?;
    let waits = |agent: &DynamicObject| agent.data["status"]["phase"] == "Waiting";
    let stored = wait_for(&agents, "old", waits).await?;
    let by = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    let made = by_go(ns.name(), &image.unwrap_or_default(), stored.metadata.uid, &[])?;
    let log = cp.audit();
    let mark = log.mark()?;
    let made = deployments.create(&by, &made).await?;
    ns.accepts(&object("ModelAPI", "m", proxy)).await?;
    wait_for(&objects(&ns, "ModelAPI"), "m", ready).await?;
    let agent = wait_for(&agents, "old", |agent| ready(agent) && pending(agent).is_some()).await?;
    let told = pending(&agent).unwrap_or_default();
    for part in ["nothing asks for are removed: OLD", "LOG_LEVEL", "livenessProbe.initialDelaySeconds"] {
        ensure!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(agent.data["status"]["takeover"]["generation"], 1);
    let written = log.settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let templates = written.filter(|request| request.resource == "deployments" && request.name == "agent-old");
    ensure!(templates.is_empty(), "{templates}");
    let kept = deployments.get("agent-old").await?;
    assert_eq!((kept.metadata.generation, &kept.spec), (Some(1), &made.spec), "byte for byte");

    let patch = json!({"spec": {"config": {"description": "changed"}}});
    agents.patch("old", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    wait_for(&agents, "old", |agent| ready(agent) && pending(agent).is_none()).await?;
    let env = environment(&ns, "agent-old").await?;
    assert_eq!((value(&env, "AGENT_DESCRIPTION"), value(&env, "OLD")), (Some("changed"), None), "{env:?}");
    assert_eq!(env.iter().filter(|(name, _)| name == "MODEL_NAME").count(), 1, "{env:?}");
    let taken = deployments.get("agent-old").await?;
    assert_eq!(taken.metadata.generation, Some(2), "one rollout");
    let managers = taken.metadata.managed_fields.unwrap_or_default();
    ensure!(!managers.iter().any(|entry| entry.manager.as_deref() == Some("manager")), "{managers:?}");
    Ok(())
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// What Pods of that Deployment were last made again for.
fn rolled_for(deployment: &Deployment) -> Option<&str> {
    let template = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    template.annotations.as_ref()?.get(keys::ANNOTATION_KAOS_REFERENCES).map(String::as_str)
}

/// An Agent `old` whose Deployment the Go operator made, with a variable of Secret `provider`: taken over by meaning, and its references seen.
async fn taken_over_by_meaning(ns: &TestNamespace) -> Result<Deployment> {
    let (agents, deployments) = (objects(ns, "Agent"), ns.api::<Deployment>());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "provider"}, "stringData": {"key": "one"}});
    ns.accepts(&secret).await?;
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    ns.accepts(&object("ModelAPI", "t", &proxy)).await?;
    let twin = json!({"modelAPI": "t", "model": "x", "waitForDependencies": false});
    ns.accepts(&object("Agent", "twin", &twin)).await?;
    let twin = wait_for(&deployments, "agent-twin", |_| true).await?;
    let image = twin.spec.and_then(|spec| spec.template.spec).and_then(|pod| pod.containers[0].image.clone());
    let key = json!({"name": "PROVIDER_KEY", "valueFrom": {"secretKeyRef": {"name": "provider", "key": "key"}}});
    let spec = json!({"modelAPI": "m", "model": "x", "container": {"env": [key.clone()]}});
    ns.accepts(&object("Agent", "old", &spec)).await?;
    let waits = |agent: &DynamicObject| agent.data["status"]["phase"] == "Waiting";
    let stored = wait_for(&agents, "old", waits).await?;
    let by = PostParams { field_manager: Some("manager".to_owned()), ..PostParams::default() };
    let made = by_go(ns.name(), &image.context("an image")?, stored.metadata.uid, &[key])?;
    let made = deployments.create(&by, &made).await?;
    ns.accepts(&object("ModelAPI", "m", &proxy)).await?;
    let seen = |agent: &DynamicObject| {
        ready(agent) && pending(agent).is_some() && agent.data["status"]["references"].is_string()
    };
    wait_for(&agents, "old", seen).await?;
    Ok(made)
}

/// What our own account may not write of it, though it may write what rolls it.
async fn the_rest_is_fenced(cp: &ControlPlane, ns: &TestNamespace) -> Result<()> {
    let ours = cp.service_account("kagenti-system", "drawbridge-controllers").await?.client().await?;
    let ours: Api<Deployment> = Api::namespaced(ours, ns.name());
    let tried = PatchParams { dry_run: true, ..PatchParams::default() };
    let template = |template: Value| json!({"spec": {"template": template}});
    for (what, patch) in [
        ("an image", template(json!({"spec": {"containers": [{"name": "agent", "image": "example.com/evil:1"}]}}))),
        ("another annotation", template(json!({"metadata": {"annotations": {"kaos.tools/pod-spec-hash": "other"}}}))),
        ("the annotation elsewhere", json!({"metadata": {"annotations": {keys::ANNOTATION_KAOS_REFERENCES: "a.b"}}})),
    ] {
        let answer = ours.patch("agent-old", &tried, &Patch::Merge(&patch)).await;
        ensure!(answer.is_err_and(|error| error.to_string().contains("drawbridge-own-workloads")), "{what} was taken");
    }
    Ok(())
}

/// Ruling 17 of what ruling 21 leaves as it is: its Pods follow their Secret, under the policies that fence our own account, and nothing else of it
/// changes.
#[tokio::test]
async fn rulings_17_and_21_what_the_go_operator_made_follows_its_secret_and_stays_as_it_is_besides() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let platform = "kaos:\n  rollOnSecretChange: true\n".to_owned();
    let installation = Installation::start(&cp, &Installing { platform, ..Installing::default() }).await?;
    let ns = cp.namespace("kaos-follows").await?;
    let made = taken_over_by_meaning(&ns).await?;
    let (agents, deployments) = (objects(&ns, "Agent"), ns.api::<Deployment>());
    let before = deployments.get("agent-old").await?;
    assert_eq!((before.metadata.generation, &before.spec), (Some(1), &made.spec), "what is seen first rolls nothing");

    // A process that begins asks at once; one that runs asks once a minute.
    let controllers = installation.controllers.first().context("a process with role controllers")?;
    controllers.stop(patience()).await?;
    let changed = json!({"stringData": {"key": "two"}});
    ns.api::<Secret>().patch("provider", &PatchParams::default(), &Patch::Merge(&changed)).await?;
    controllers.start_again()?;
    let rolled = wait_for(&deployments, "agent-old", |deployment| rolled_for(deployment).is_some()).await?;
    let (labels, seen) = (rolled.metadata.labels.clone().unwrap_or_default(), rolled_for(&rolled).map(str::to_owned));
    ensure!(!labels.contains_key("app.kubernetes.io/managed-by"), "it is not marked as ours: {labels:?}");
    let follows = |agent: &DynamicObject| {
        ready(agent) && pending(agent).is_some() && agent.data["status"]["references"].as_str() == seen.as_deref()
    };
    wait_for(&agents, "old", follows).await.context("it is said once it was done")?;
    let mut after = deployments.get("agent-old").await?;
    assert_eq!(after.metadata.generation, Some(2), "one rollout");
    let annotations = after.spec.as_mut().and_then(|spec| spec.template.metadata.as_mut()?.annotations.as_mut());
    annotations.context("annotations")?.remove(keys::ANNOTATION_KAOS_REFERENCES);
    assert_eq!(after.spec, made.spec, "that annotation alone");
    the_rest_is_fenced(&cp, &ns).await
}
