//! The day of the switch: what the original operator left runs on, kinds that are not there yet or not any more harm nobody, and after
//! `uninstall` nothing waits for us. Numbers are those of docs/cases.md.

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::Agent as KagentiAgent;
use drawbridge::cli::render::{FailureMode, Install, compat};
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{
    ControlPlane, Installation, Installing, Options, TestNamespace, installation, programs, wait_for, wait_gone,
    wait_served,
};

use super::{agent, agents, ready, says};
use crate::agents::stage::{CONTROLLERS, agent as kagenti, kubectl, leads, ready as kagenti_ready};
use crate::builds::stage::api;

const COMPAT: &str = keys::GROUP_BEEAI_COMPAT;
/// The field manager of the original operator.
const GO: &str = "manager";

async fn definitions_of_the_compat_group(cp: &ControlPlane) -> Result<()> {
    let objects = cp.objects().await?;
    let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "");
    for object in compat::objects(&install).iter().filter(|one| one["kind"] == "CustomResourceDefinition") {
        objects.apply(&object.to_string()).await?;
        wait_served(&objects, object["metadata"]["name"].as_str().context("a name")?).await?;
    }
    Ok(())
}

/// An Agent of the original operator and what it made for it: no security context, and an empty name of a pull Secret.
async fn left_by_go(ns: &TestNamespace, name: &str, security: &Value) -> Result<()> {
    let more = json!({"metadata": {"finalizers": [keys::FINALIZER_BEEAI]}});
    ns.accepts(&agent(COMPAT, name, &more)).await?;
    let made = agents(ns, COMPAT);
    let uid = made.get(name).await?.metadata.uid.context("a uid")?;
    let ready = json!({"type": "Ready", "status": "True", "reason": "DeploymentReady", "message": "", "lastTransitionTime": "2026-05-01T00:00:00Z"});
    let status = json!({"status": {"ready": true, "deploymentStatus": "Ready", "conditions": [ready]}});
    let parameters = PatchParams { field_manager: Some(GO.to_owned()), ..PatchParams::default() };
    made.patch_status(name, &parameters, &Patch::Merge(&status)).await?;
    let labels = json!({"app": name, "controller": "agent-operator"});
    let metadata = json!({"name": name, "labels": labels, "ownerReferences": [{
        "apiVersion": format!("{COMPAT}/v1"), "kind": "Agent", "name": name, "uid": uid, "controller": true, "blockOwnerDeletion": true,
    }]});
    let mut pod = json!({
        "containers": [{
            "name": "agent", "image": "example.com/weather:v1", "imagePullPolicy": "IfNotPresent",
            "ports": [{"name": "http", "containerPort": 8000}],
        }],
        "imagePullSecrets": [{"name": ""}],
    });
    json_patch::merge(&mut pod, security);
    let deployment = json!({
        "metadata": metadata,
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    });
    let service = json!({
        "metadata": metadata,
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 8000, "targetPort": 8000}]},
    });
    let as_go = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
    ns.api::<Deployment>().create(&as_go, &serde_json::from_value(deployment)?).await?;
    ns.api::<k8s_openapi::api::core::v1::Service>().create(&as_go, &serde_json::from_value(service)?).await?;
    wait_for(&ns.api::<Deployment>(), name, |one: &Deployment| {
        one.status.as_ref().and_then(|status| status.ready_replicas) == Some(1)
    })
    .await?;
    Ok(())
}

async fn sets(ns: &TestNamespace, name: &str) -> Result<usize> {
    Ok(ns.api::<ReplicaSet>().list(&ListParams::default().labels(&format!("app={name}"))).await?.items.len())
}

/// Objects of BeeAI's kinds that still have our finalizer.
async fn held(cp: &ControlPlane, groups: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for group in groups {
        for kind in ["agents", "agentbuilds"] {
            let all = cp.kubectl(cp.admin(), &["get", &format!("{kind}.{group}"), "-A", "-o", "json"], "").await?;
            ensure!(all.success, "{}", all.stderr);
            let all: Value = serde_json::from_str(&all.stdout)?;
            for object in all["items"].as_array().into_iter().flatten() {
                if object["metadata"]["finalizers"].to_string().contains(keys::FINALIZER_BEEAI) {
                    found.push(format!("{kind}.{group}/{}", object["metadata"]["name"]));
                }
            }
        }
    }
    Ok(found)
}

async fn uninstall(cp: &ControlPlane) -> Result<()> {
    let mut command = tokio::process::Command::new(programs::workspace("drawbridge")?);
    command.args(["uninstall", "--yes", "--kubeconfig"]).arg(cp.admin().kubeconfig());
    let output = command.output().await?;
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    ensure!(output.status.success(), "{said}");
    Ok(())
}

fn build(group: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"), "kind": "AgentBuild", "metadata": {"name": name},
        "spec": {"repoUrl": "github.com/a/b", "revision": "v1.0.0", "imageRegistry": "reg.example.com", "image": "w", "imageTag": "v1"},
    })
}

/// A build of the original operator that has ended, and the Agent of its name that its deploy step made: labelled, owned, and without a mark.
async fn built_by_go(ns: &TestNamespace, name: &str) -> Result<()> {
    let mut object = build(COMPAT, name);
    object["metadata"]["finalizers"] = json!([keys::FINALIZER_BEEAI]);
    object["spec"]["deployAfterBuild"] = json!(true);
    let uid = ns.accepts(&object).await?.metadata.uid.context("a uid")?;
    let status = json!({"status": {
        "buildStatus": "Completed", "builtImage": "example.com/weather:v1", "pipelineRunName": format!("{name}-8f3c5d0a"), "observedGeneration": 1,
    }});
    let as_go = PatchParams { field_manager: Some(GO.to_owned()), ..PatchParams::default() };
    api(ns, &format!("{COMPAT}/v1"), "AgentBuild").patch_status(name, &as_go, &Patch::Merge(&status)).await?;
    left_by_go(ns, name, &json!({})).await?;
    let metadata = json!({"metadata": {
        "labels": {
            keys::LABEL_PART_OF: keys::BEEAI_CONTROLLER, keys::LABEL_APP_MANAGED_BY: keys::BEEAI_BUILD_CONTROLLER, keys::LABEL_CREATED_BY: name,
        },
        "ownerReferences": [{"apiVersion": format!("{COMPAT}/v1"), "kind": "AgentBuild", "name": name, "uid": uid}],
    }});
    agents(ns, COMPAT).patch(name, &as_go, &Patch::Merge(&metadata)).await?;
    Ok(())
}

/// The build says what lets it keep that Agent, which then follows; the owner that the original operator wrote stays, and takes the Agent along.
async fn the_build_follows_once_it_is_told(cp: &ControlPlane, ns: &TestNamespace, name: &str) -> Result<()> {
    let builds = api(ns, &format!("{COMPAT}/v1"), "AgentBuild");
    let left = |build: &DynamicObject| says(build, "Deployed") == "False/AgentExists";
    let build = wait_for(&builds, name, left).await?;
    let uid = build.metadata.uid.clone().context("a uid")?;
    let command = format!("annotate agents.{COMPAT} {name} beeai.dev/created-by-uid={uid} --overwrite");
    let told = build.data["status"]["conditions"].to_string();
    ensure!(told.contains(&command) && told.contains("by an earlier operator") && !told.contains("delete"), "{told}");
    kubectl(cp, ns, &command.split(' ').collect::<Vec<_>>()).await?;
    let env = json!({"spec": {"agent": {"env": [{"name": "A", "value": "b"}]}}});
    builds.patch(name, &PatchParams::default(), &Patch::Merge(&env)).await?;
    wait_for(&builds, name, |build| says(build, "Deployed") == "True/AgentUpdated").await?;
    let follows = |agent: &DynamicObject| agent.data["spec"]["env"][0]["name"] == "A" && ready(agent);
    wait_for(&agents(ns, COMPAT), name, follows).await?;
    kubectl(cp, ns, &["delete", &format!("agentbuilds.{COMPAT}/{name}"), &timeout()]).await?;
    wait_gone(&agents(ns, COMPAT), name).await
}

/// 0 writes on the day of the switch, one rollout when the Agent changes, and no finalizer after
/// `uninstall`, with the definitions of the compat group and without, and where its controllers never ran.
#[tokio::test]
async fn what_the_original_operator_left_is_taken_over_and_let_go() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    definitions_of_the_compat_group(&cp).await?;
    let ns = cp.namespace("beeai-switched").await?;
    left_by_go(&ns, "plain", &json!({})).await?;
    left_by_go(&ns, "as-root", &json!({"securityContext": {"runAsUser": 0}})).await?;
    built_by_go(&ns, "built").await?;
    let login = json!({
        "metadata": {"name": "old-docker"}, "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": "{\"auths\":{\"ghcr.io\":{\"username\":\"old\",\"auth\":\"eA==\"}}}"},
    });
    ns.api::<Secret>().create(&PostParams::default(), &serde_json::from_value(login)?).await?;
    let secret = ns.api::<Secret>().get("old-docker").await?.metadata.resource_version;
    let deployments = ns.api::<Deployment>();
    let generations = async || -> Result<Vec<Option<i64>>> {
        let mut all = Vec::new();
        for name in ["plain", "as-root"] {
            all.push(deployments.get(name).await?.metadata.generation);
        }
        Ok(all)
    };
    let (before, mark) = (generations().await?, cp.audit().mark()?);

    let installation = Installation::start(&cp, &Installing::default()).await?;
    let objects = cp.objects().await?;
    for object in compat::objects(&Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "")) {
        objects.apply(&object.to_string()).await?;
    }
    let keeps = |object: &DynamicObject| says(object, "LockdownPending") == "True/LockdownPending" && ready(object);
    for name in ["plain", "as-root"] {
        let kept = wait_for(&agents(&ns, COMPAT), name, keeps).await?;
        ensure!(kept.data["status"].to_string().contains("beeai.dev/lockdown: now"), "{}", kept.data["status"]);
    }
    assert_eq!(generations().await?, before, "0 writes of a template");
    let asked = cp.audit().settled(mark).await?.by(CONTROLLERS);
    let ours = asked
        .writes()
        .filter(|one| one.namespace == ns.name() && one.resource != "events" && one.subresource != "status");
    let written: Vec<_> = ours.iter().map(ToString::to_string).collect();
    assert_eq!(written, Vec::<String>::new(), "nor of anything else than status");

    the_build_follows_once_it_is_told(&cp, &ns, "built").await?;

    // One Agent changes, the other asks: one rollout each, locked down.
    let image = json!({"spec": {"image": "example.com/weather:v2"}});
    let asks = json!({"metadata": {"annotations": {"beeai.dev/lockdown": "now"}}});
    for (name, patch, runs) in [("plain", image, "example.com/weather:v2"), ("as-root", asks, "example.com/weather:v1")]
    {
        agents(&ns, COMPAT).patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        let locked = |object: &DynamicObject| says(object, "LockdownPending") == "/" && ready(object);
        wait_for(&agents(&ns, COMPAT), name, locked).await?;
        let pod = deployments.get(name).await?.spec.context("a spec")?.template.spec.context("a Pod")?;
        assert_eq!(pod.containers[0].image.as_deref(), Some(runs));
        let security = pod.security_context.context("a security context")?;
        assert_eq!(
            (security.run_as_non_root, pod.automount_service_account_token),
            (Some(true), Some(false)),
            "{name}"
        );
        assert_ne!(security.run_as_user, Some(0), "{name}: what the original operator wrote is gone");
        assert_eq!(pod.image_pull_secrets.unwrap_or_default(), [], "{name}: an empty name is none");
        assert_eq!(sets(&ns, name).await?, 2, "{name}: one rollout");
    }
    assert_eq!(ns.api::<Secret>().get("old-docker").await?.metadata.resource_version, secret);

    // What carries our finalizer, of both groups and both kinds.
    ns.accepts(&agent(keys::GROUP_BEEAI, "ours", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "ours", ready).await?;
    let both = [keys::GROUP_BEEAI, COMPAT];
    for group in both {
        ns.accepts(&build(group, "waits")).await?;
        let carries = |object: &DynamicObject| {
            object.metadata.finalizers.iter().flatten().any(|one| one == keys::FINALIZER_BEEAI)
        };
        wait_for(&api(&ns, &format!("{group}/v1"), "AgentBuild"), "waits", carries).await?;
    }
    assert_eq!(held(&cp, &both).await?.len(), 5);
    uninstall(&cp).await?;
    assert_eq!(held(&cp, &both).await?, Vec::<String>::new());
    drop(installation);

    // Nobody of ours ever saw this one.
    let stray = agent(COMPAT, "stray", &json!({"metadata": {"finalizers": [keys::FINALIZER_BEEAI]}}));
    ns.accepts(&stray).await?;
    uninstall(&cp).await?;
    assert_eq!(held(&cp, &both).await?, Vec::<String>::new());
    let gone = ["delete", "crd", "agents.beeai.beeai.dev", "agentbuilds.beeai.beeai.dev", &timeout()];
    let deleted = cp.kubectl(cp.admin(), &gone, "").await?;
    ensure!(deleted.success, "{}", deleted.stderr);
    let left = agent(keys::GROUP_BEEAI, "left", &json!({"metadata": {"finalizers": [keys::FINALIZER_BEEAI]}}));
    ns.accepts(&left).await?;
    uninstall(&cp).await?;
    assert_eq!(held(&cp, &[keys::GROUP_BEEAI]).await?, Vec::<String>::new());
    Ok(())
}

/// Z45, Z47: without BeeAI's definitions the operator starts and serves everything else; once they are there it serves them, in the namespaces
/// that it watches and in no other.
#[tokio::test]
async fn case_z45_and_z47_definitions_come_later_and_other_namespaces_are_left_alone() -> Result<()> {
    let cp = installation::plane(Options::default()).await?;
    let (ns, other) = (cp.namespace("beeai-watched").await?, cp.namespace("beeai-unwatched").await?);
    let installing = Installing { namespaces: ns.name().to_owned(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let definitions = ["agents.beeai.dev", "agentbuilds.beeai.dev"];
    let deleted = cp.kubectl(cp.admin(), &["delete", "crd", definitions[0], definitions[1], &timeout()], "").await?;
    ensure!(deleted.success, "{}", deleted.stderr);
    let process = &installation.controllers[0];
    let holder = leads(&cp, None).await?;
    process.stop(patience()).await?;
    process.start_again()?;
    process.ready().await?;
    leads(&cp, Some(&holder)).await?;
    ns.accepts(&kagenti("weather", &json!({}))).await?;
    wait_for(&ns.api::<KagentiAgent>(), "weather", kagenti_ready).await.context("Z45")?;

    let objects = cp.objects().await?;
    for text in [
        include_str!("../../../../manifests/crds/agents.beeai.dev.yaml"),
        include_str!("../../../../manifests/crds/agentbuilds.beeai.dev.yaml"),
    ] {
        objects.apply(text).await?;
    }
    for name in definitions {
        wait_served(&objects, name).await?;
    }
    other.accepts(&agent(keys::GROUP_BEEAI, "theirs", &json!({}))).await?;
    other.accepts(&build(keys::GROUP_BEEAI, "theirs")).await?;
    ns.accepts(&agent(keys::GROUP_BEEAI, "late", &json!({}))).await?;
    wait_for(&agents(&ns, keys::GROUP_BEEAI), "late", ready).await?;
    ns.accepts(&build(keys::GROUP_BEEAI, "late")).await?;
    let builds = |ns: &TestNamespace| api(ns, "beeai.dev/v1", "AgentBuild");
    let seen = |object: &DynamicObject| says(object, "TektonAvailable") == "False/TektonAbsent";
    wait_for(&builds(&ns), "late", seen).await?;
    for theirs in [agents(&other, keys::GROUP_BEEAI).get("theirs").await?, builds(&other).get("theirs").await?] {
        assert_eq!((theirs.metadata.finalizers, theirs.data.get("status")), (None, None), "Z47");
    }
    let made = other.api::<Deployment>().list(&ListParams::default()).await?.items;
    assert!(made.is_empty(), "Z47: {}", made.len());
    agents(&ns, keys::GROUP_BEEAI).delete("late", &Default::default()).await?;
    wait_gone(&agents(&ns, keys::GROUP_BEEAI), "late").await
}
