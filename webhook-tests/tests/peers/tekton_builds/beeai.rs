//! Builds of BeeAI from end to end: the samples, real Tekton Pipelines, and the Agent that is deployed by digest. The results are the test's.
//! Numbers are those of docs/cases.md.

use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::tekton::kubelet;
use webhook_tests::{TestNamespace, wait_gone, wait_until};

use super::stage::{DIGEST, reason, team, told, within};

/// The fuller sample.
const SAMPLE: &str = include_str!("../../../../manifests/samples/beeai-agentbuild-deployed.yaml");
const NAME: &str = "research-agent";
const IMAGE: &str = "ghcr.io/acme/research-agent";

pub(crate) fn api(ns: &TestNamespace, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

/// Creates the Secret of a token.
pub(crate) async fn token(ns: &TestNamespace, name: &str, value: &str) {
    let secret: Secret =
        serde_json::from_value(json!({"metadata": {"name": name}, "stringData": {"token": value}})).unwrap();
    ns.api::<Secret>().create(&Default::default(), &secret).await.unwrap();
}

/// Waits until the build of that name is as wanted; gives its status.
pub(crate) async fn wait(ns: &TestNamespace, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let builds = api(ns, keys::GROUP_BEEAI, "v1", "AgentBuild");
    let holds = |build: Option<&DynamicObject>| build.is_some_and(|build| wanted(&build.data["status"]));
    match tokio::time::timeout(within(), await_condition(builds.clone(), name, holds)).await {
        Ok(found) => found.unwrap().unwrap().data["status"].clone(),
        Err(_) => panic!("{name} is not as wanted: {:#?}", builds.get(name).await.map(|build| build.data)),
    }
}

/// The build of that name starts, and its tasks end as those annotations of its run say: Tekton hands them to each task's Pod.
pub(crate) async fn starts(ns: &TestNamespace, name: &str, says: &[(String, String)]) -> String {
    let runs = api(ns, "tekton.dev", "v1", "PipelineRun");
    let is_of_build = |run: &DynamicObject| {
        let owners = run.metadata.owner_references.iter().flatten();
        owners.into_iter().any(|owner| owner.name == name && owner.api_version.starts_with(keys::GROUP_BEEAI))
    };
    // Before the build says so: Tekton goes on meanwhile.
    let found = wait_until(&runs, Default::default(), |all| all.values().any(is_of_build)).await.unwrap();
    let run = found.into_iter().find(is_of_build).unwrap().name_any();
    let all: serde_json::Map<_, _> = says.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let patch = Patch::Merge(json!({"metadata": {"annotations": all}}));
    runs.patch(&run, &PatchParams::default(), &patch).await.unwrap();
    wait(ns, name, |status| status["pipelineRunName"] == *run).await;
    run
}

/// What the push of the sample says when all is well.
fn pushed() -> (String, String) {
    kubelet::results("push", &[("IMAGE_URL", &format!("{IMAGE}:v0.0.2")), ("IMAGE_DIGEST", DIGEST)])
}

/// Z25, Z31, Z32, Z38, Z40, Z41, Z42: from the fuller sample to an Agent that runs the digest.
#[tokio::test(flavor = "multi_thread")]
async fn case_z32_a_build_becomes_an_agent_by_digest_on_real_tekton() {
    let ns = team().await;
    token(&ns, "github-token-secret", "ghp_of_the_sample").await;
    ns.apply(SAMPLE).await.unwrap();
    let run = starts(&ns, NAME, &[pushed()]).await;
    let claims: Api<PersistentVolumeClaim> = ns.api();
    if let Ok(claim) = claims.get("research-agent-beeai-workspace").await {
        assert_eq!(claim.spec.unwrap().storage_class_name, None, "Z42: the cluster's default");
    }
    let status = wait(&ns, NAME, |status| reason(status, "Ready") == "AgentReady").await;
    assert_eq!(status["buildStatus"], "Completed", "{status:#}");
    assert_eq!(status["builtImage"], json!(format!("{IMAGE}@{DIGEST}")), "Z31");
    assert_eq!(status["builtImageTag"], json!(format!("{IMAGE}:v0.0.2")), "Z31");
    let tasks: Vec<_> = status["tasks"].as_array().unwrap().iter().map(|task| task["name"].clone()).collect();
    assert_eq!(tasks, ["pull", "check-subfolder", "build", "push"], "Z25");
    let agent = api(&ns, keys::GROUP_BEEAI, "v1", "Agent").get(NAME).await.unwrap();
    assert_eq!(agent.metadata.owner_references, None, "Z32");
    assert_eq!(agent.metadata.labels.unwrap()["app.kubernetes.io/created-by"], NAME, "Z32");
    let pod = ns.api::<Deployment>().get(NAME).await.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.containers[0].image, Some(format!("{IMAGE}@{DIGEST}")));
    // Z40: the sample asks for it; the Pods of the agent are none of the run's.
    wait_gone(&claims, "research-agent-beeai-workspace").await.unwrap();
    let of_run = kube::runtime::watcher::Config::default().labels(&format!("tekton.dev/pipelineRun={run}"));
    wait_until(&ns.api::<Pod>(), of_run, |all| all.is_empty()).await.unwrap();
    let runs = api(&ns, "tekton.dev", "v1", "PipelineRun");
    // Z38: who deletes the finished run gets no other.
    runs.delete(&run, &DeleteParams::default()).await.unwrap();
    wait_gone(&runs, &run).await.unwrap();
    ns.apply(&SAMPLE.replace("llama3.2", "llama3.3")).await.unwrap();
    let follows = |deployment: Option<&Deployment>| {
        deployment.is_some_and(|found| serde_json::to_string(found).unwrap().contains("llama3.3"))
    };
    let changed = await_condition(ns.api::<Deployment>(), NAME, follows);
    tokio::time::timeout(within(), changed).await.unwrap().unwrap();
    assert!(runs.list(&ListParams::default()).await.unwrap().items.is_empty(), "Z36, Z38");
    assert_eq!((told(&ns, NAME, "BuildStarted").await, told(&ns, NAME, "BuildSucceeded").await), (1, 1));
}

/// Z29, Z39, Z44, Z48: a failure names the task and its exit code; builds of one name in two groups do not know of each other.
#[tokio::test(flavor = "multi_thread")]
async fn case_z29_a_failure_names_its_task_and_a_build_of_another_group_runs_beside_it() {
    let ns = team().await;
    ns.accepts(&super::stage::build(NAME)).await.unwrap();
    let mut object: Value = serde_saphyr::from_str(SAMPLE).unwrap();
    json_patch::merge(&mut object, &json!({"spec": {"env": null, "cleanupAfterBuild": false}}));
    ns.accepts(&object).await.unwrap();
    let run = starts(&ns, NAME, &[kubelet::exit("check-subfolder", 1)]).await;
    let status = wait(&ns, NAME, |status| status["buildStatus"] == "Failed").await;
    assert_eq!(reason(&status, "Ready"), "StepFailed", "{status:#}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("task check-subfolder") && message.contains("exit 1"), "Z29, Z44: {message}");
    let (phase, why, other) = super::stage::ended(&ns, NAME).await;
    assert_eq!((phase.as_str(), why.as_str()), ("Succeeded", "BuildReady"), "Z48: {other:#}");
    assert_ne!(other["pipelineRunName"], json!(run), "Z48");
    let claims = ns.api::<PersistentVolumeClaim>();
    claims.get("research-agent-beeai-workspace").await.expect("Z39: it stays");
    let of_run = ListParams::default().labels(&format!("tekton.dev/pipelineRun={run}"));
    assert!(!ns.api::<Pod>().list(&of_run).await.unwrap().items.is_empty(), "Z39: its Pods stay");
}
