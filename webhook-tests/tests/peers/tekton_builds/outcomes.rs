//! How builds end: what real Tekton made of the run, read back into the status of the AgentBuild.

use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use webhook_tests::tekton::kubelet;

use super::stage::{
    DIGEST, REPOSITORY, accepted, api, build, ended, patch, reason, runs, saying, team, told, wait, within,
};

/// D-1, D-9, D-22: one run, the image by digest, and afterwards no workspace.
#[tokio::test(flavor = "multi_thread")]
async fn case_d01_a_build_succeeds_with_the_digest_that_a_task_wrote() {
    let ns = team().await;
    ns.accepts(&build("weather")).await.unwrap();
    let (phase, why, status) = ended(&ns, "weather").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Succeeded", "BuildReady"), "{status:#}");
    assert_eq!(status["builtImage"], json!(format!("{REPOSITORY}@{DIGEST}")));
    assert_eq!(status["builtImageTag"], json!(format!("{REPOSITORY}:v0.0.1")));
    assert_eq!((&status["imageDigest"], &status["sourceCommit"]), (&json!(DIGEST), &json!("c".repeat(40))));
    let tasks: Vec<_> = status["tasks"].as_array().unwrap().iter().map(|task| task["name"].as_str().unwrap()).collect();
    assert_eq!(&tasks[..2], ["github-clone", "folder-verification"]);
    let names = runs(&ns, "weather").await;
    assert_eq!(names, [status["pipelineRunName"].as_str().unwrap()]);
    let claims: Api<PersistentVolumeClaim> = ns.api();
    let claim = claims.get("weather-workspace").await.ok().and_then(|claim| claim.metadata.uid);
    if let Some(uid) = claim {
        let gone = await_condition(claims, "weather-workspace", conditions::is_deleted(&uid));
        tokio::time::timeout(within(), gone).await.unwrap().unwrap();
    }
    assert_eq!(runs(&ns, "weather").await, names, "the run stays");
    assert_eq!((told(&ns, "weather", "BuildStarted").await, told(&ns, "weather", "BuildSucceeded").await), (1, 1));
}

/// D-14: task, step and exit code; nothing that a step printed.
#[tokio::test(flavor = "multi_thread")]
async fn case_d14_a_failure_names_task_step_and_code() {
    let ns = team().await;
    let printed = kubelet::results("buildah-build", &[("IMAGE_URL", "printed-by-the-step")]);
    let object = saying(saying(build("broken"), kubelet::exit("buildah-build", 2)), printed);
    ns.accepts(&object).await.unwrap();
    let (phase, why, status) = ended(&ns, "broken").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "StepFailed"), "{status:#}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("task buildah-build, step build: exit 2"), "{message}");
    assert!(message.contains("logs") && !status.to_string().contains("printed-by-the-step"), "{status}");
    assert_eq!((status.get("builtImage"), runs(&ns, "broken").await.len()), (None, 1));
}

/// A green run in which no task told an image has made none.
#[tokio::test(flavor = "multi_thread")]
async fn a_green_run_without_a_result_is_no_image() {
    let ns = team().await;
    let mut object = build("silent");
    object["spec"]["annotations"].as_object_mut().unwrap().remove("kwok.test/results.buildah-build");
    ns.accepts(&object).await.unwrap();
    let (phase, why, status) = ended(&ns, "silent").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "NoImage"), "{status:#}");
    assert_eq!(status.get("builtImage"), None);
}

/// D-12: an image somewhere else is not the one that was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn case_d12_an_image_elsewhere_is_unexpected() {
    let ns = team().await;
    let elsewhere = kubelet::results(
        "buildah-build",
        &[("IMAGE_URL", "evil.example.com/weather:v0.0.1"), ("IMAGE_DIGEST", DIGEST)],
    );
    ns.accepts(&saying(build("elsewhere"), elsewhere)).await.unwrap();
    let (phase, why, status) = ended(&ns, "elsewhere").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "UnexpectedImage"), "{status:#}");
}

/// D-13: Tekton calls the run completed; a gate that vanished makes it a failure all the same.
#[tokio::test(flavor = "multi_thread")]
async fn case_d13_a_skipped_gate_is_a_failure() {
    let ns = team().await;
    let when = |value: &str| json!([{ "input": "$(tasks.detect.results.has-dockerfile)", "operator": "in", "values": [value] }]);
    let mut object = build("trap");
    object["spec"]["mode"] = json!("custom");
    object["spec"]["pipeline"] = json!({ "steps": [
        { "name": "clone", "configMap": "github-clone-step" },
        { "name": "detect", "configMap": "check-dockerfile-step" },
        { "name": "build-a", "configMap": "buildah-build-step", "whenExpressions": when("true") },
        { "name": "build-b", "configMap": "buildpack-step", "whenExpressions": when("false") },
        { "name": "scan", "configMap": "smoke-test-step", "parameters": [{ "name": "image-ref", "value": "$(tasks.build-a.results.IMAGE_URL)" }] },
    ] });
    let object = saying(object, kubelet::results("detect", &[("has-dockerfile", "false"), ("dockerfile-name", "")]));
    let pushed =
        kubelet::results("build-b", &[("IMAGE_URL", &format!("{REPOSITORY}:v0.0.1")), ("IMAGE_DIGEST", DIGEST)]);
    ns.accepts(&saying(object, pushed)).await.unwrap();
    let (phase, why, status) = ended(&ns, "trap").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "GateSkipped"), "{status:#}");
    assert!(status["message"].as_str().unwrap().contains("scan"), "{status:#}");
    assert_eq!(status.get("builtImage"), None);
}

/// D-20 (as corrected): the run is cancelled and the build says so.
#[tokio::test(flavor = "multi_thread")]
async fn case_d20_a_running_build_is_cancelled() {
    let ns = team().await;
    ns.accepts(&saying(build("slow"), (kubelet::HOLD.to_owned(), "true".to_owned()))).await.unwrap();
    wait(&ns, "slow", |status| status["tasks"][0].is_object()).await;
    patch(&ns, "slow", json!({ "metadata": { "annotations": { keys::ANNOTATION_CANCEL: "true" } } })).await.unwrap();
    let (phase, why, status) = ended(&ns, "slow").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "Cancelled"), "{status:#}");
    let run = api(&ns, "PipelineRun").get(&runs(&ns, "slow").await[0]).await.unwrap();
    assert_eq!(run.data["spec"]["status"], "Cancelled");
}

/// D-5, D-6: what is missing is named; once it is there the build starts by itself.
#[tokio::test(flavor = "multi_thread")]
async fn case_d05_and_d06_a_missing_secret_is_named_and_waited_for() {
    let ns = team().await;
    let mut object = build("private");
    object["spec"]["source"]["sourceCredentials"] = json!({ "name": "git-token" });
    ns.accepts(&object).await.unwrap();
    let (phase, why, status) = ended(&ns, "private").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "PrerequisitesMissing"), "{status:#}");
    assert!(status["message"].as_str().unwrap().contains("sourceCredentials secret not found"), "{status:#}");
    assert_eq!(runs(&ns, "private").await, Vec::<String>::new());
    let secret: Secret = serde_json::from_value(json!({
        "metadata": { "name": "git-token" }, "stringData": { "username": "octo", "password": "x" },
    }))
    .unwrap();
    ns.api::<Secret>().create(&Default::default(), &secret).await.unwrap();
    let status = wait(&ns, "private", |status| status["phase"] == "Succeeded").await;
    assert_eq!(status["attempts"], 1);
}

/// D-16: a change of the spec builds anew, and the image stays until there is a new one.
#[tokio::test(flavor = "multi_thread")]
async fn case_d16_a_change_builds_anew_and_keeps_the_image() {
    let ns = team().await;
    ns.accepts(&build("again")).await.unwrap();
    let first = ended(&ns, "again").await.2;
    let image = first["builtImage"].clone();
    let hold =
        json!({ "spec": { "source": { "sourceRevision": "v2.0.0" }, "annotations": { (kubelet::HOLD): "true" } } });
    patch(&ns, "again", hold).await.unwrap();
    let second = wait(&ns, "again", |status| status["phase"] == "Building" && status["tasks"][0].is_object()).await;
    assert_eq!(second["builtImage"], image);
    assert_ne!(second["pipelineRunName"], first["pipelineRunName"]);
    assert_eq!(runs(&ns, "again").await.len(), 2);
    // D-27: deleted while building, nothing stays.
    api(&ns, "AgentBuild").delete("again", &DeleteParams::default()).await.unwrap();
    let build = api(&ns, "AgentBuild");
    let gone = |build: Option<&kube::api::DynamicObject>| build.is_none();
    tokio::time::timeout(within(), await_condition(build, "again", gone)).await.unwrap().unwrap();
    // The garbage collector follows the owner a moment later.
    for claim in ns.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap().items {
        let going = |claim: Option<&PersistentVolumeClaim>| {
            claim.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some())
        };
        let name = claim.metadata.name.as_deref().unwrap();
        tokio::time::timeout(within(), await_condition(ns.api(), name, going)).await.unwrap().unwrap();
    }
}

/// C20 at the controller: Tekton's own words, before a run is claimed.
#[tokio::test(flavor = "multi_thread")]
async fn case_c20_what_tekton_refuses_is_told_before_a_run_is_claimed() {
    let ns = team().await;
    let step = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "mine", "labels": { (keys::LABEL_STEP): keys::LABEL_STEP_VALUE } },
        "data": { (keys::KEY_TASK_SPEC): "steps: [{image: i, futureMember: 1}]" },
    });
    ns.accepts(&step).await.unwrap();
    let mut object = build("future");
    object["spec"]["mode"] = json!("custom");
    object["spec"]["pipeline"] = json!({ "namespace": ns.name(), "steps": [{ "name": "one", "configMap": "mine" }] });
    accepted(&ns, &object).await;
    let status =
        wait(&ns, "future", |status| status["message"].as_str().is_some_and(|text| text.contains("unknown field")))
            .await;
    assert_eq!((&status["phase"], status.get("pipelineRunName")), (&Value::from("Failed"), None), "{status:#}");
    assert_eq!(reason(&status, "Ready"), "RunRefused");
    assert_eq!(runs(&ns, "future").await, Vec::<String>::new());
}
