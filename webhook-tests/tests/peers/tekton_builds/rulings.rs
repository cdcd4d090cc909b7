//! Cases D and E (docs/cases.md) that are not answered as the Go operator has it: which Secret goes to which host, and what an image is
//! when nobody tells its digest (11.4 as corrected).

use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use webhook_tests::TestNamespace;
use webhook_tests::tekton::kubelet;

use super::stage::{DIGEST, REPOSITORY, accepted, build, ended, reason, runs, saying, team, told, wait, within};

/// E19: a Secret that lists its hosts goes to no other one: no run begins. Once the list has the host, one does.
#[tokio::test(flavor = "multi_thread")]
async fn case_e19_a_secret_for_another_host_starts_no_run() {
    let ns = team().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "git-token", "annotations": { (keys::ANNOTATION_GIT_HOSTS): "git.acme.example, git.example.com" } },
        "stringData": { "username": "octo", "password": "x" },
    });
    ns.accepts(&secret).await.unwrap();
    let mut object = build("elsewhere");
    object["spec"]["source"]["sourceCredentials"] = json!({ "name": "git-token" });
    ns.accepts(&object).await.unwrap();
    let (phase, why, status) = ended(&ns, "elsewhere").await;
    assert_eq!((phase.as_str(), why.as_str()), ("Failed", "PrerequisitesMissing"), "{status:#}");
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("git-token may only be used for hosts") && message.contains("github.com"), "{message}");
    assert_eq!((runs(&ns, "elsewhere").await, status.get("pipelineRunName")), (Vec::new(), None));
    let hosts =
        json!({ "metadata": { "annotations": { (keys::ANNOTATION_GIT_HOSTS): "git.acme.example,GitHub.com" } } });
    let secrets: Api<Secret> = ns.api();
    secrets.patch("git-token", &PatchParams::default(), &Patch::Merge(hosts)).await.unwrap();
    wait(&ns, "elsewhere", |status| status["phase"] == "Succeeded").await;
    assert_eq!(runs(&ns, "elsewhere").await.len(), 1);
}

/// A build of one step of its own namespace, which declares these results.
async fn of_my_step(ns: &TestNamespace, name: &str, results: Value) -> Value {
    let spec = json!({ "results": results, "steps": [{ "name": "push", "image": "i", "script": "true" }] });
    let step = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { (keys::LABEL_STEP): keys::LABEL_STEP_VALUE } },
        "data": { (keys::KEY_TASK_SPEC): spec.to_string() },
    });
    ns.accepts(&step).await.unwrap();
    let mut object = build(name);
    object["spec"]["mode"] = json!("custom");
    object["spec"]["pipeline"] = json!({ "namespace": ns.name(), "steps": [{ "name": "one", "configMap": name }] });
    object
}

/// Waits for the end of a build that knows its image by tag only.
async fn ends_with_a_tag(ns: &TestNamespace, name: &str) {
    // Not just the first end: a step that the controller does not know yet is waited for.
    let status = wait(ns, name, |status| status["phase"] == "Succeeded").await;
    assert_eq!(status["builtImage"], json!(format!("{REPOSITORY}:v0.0.1")), "{name}: {status:#}");
    assert_eq!(status.get("imageDigest"), None, "{name}: {status:#}");
    // Told after the status was written.
    let moment = tokio::time::Instant::now();
    while told(ns, name, "NoDigest").await == 0 {
        assert!(moment.elapsed() < within(), "{name}: no Event NoDigest");
        tokio::task::yield_now().await;
    }
    assert_eq!(told(ns, name, "NoDigest").await, 1, "{name}");
}

/// D-10: no TaskSpec of the run declares an image, so the run's parameter counts,
/// whether the build's output or a parameter of the user's is where it comes from.
#[tokio::test(flavor = "multi_thread")]
async fn case_d10_without_results_the_parameter_names_the_image() {
    let ns = team().await;
    accepted(&ns, &of_my_step(&ns, "output", json!([])).await).await;
    let mut object = of_my_step(&ns, "parameter", json!([])).await;
    object["spec"].as_object_mut().unwrap().remove("buildOutput");
    let image = format!("{REPOSITORY}:v0.0.1");
    object["spec"]["pipeline"]["parameters"] = json!([{ "name": "image", "value": image }]);
    accepted(&ns, &object).await;
    for name in ["output", "parameter"] {
        ends_with_a_tag(&ns, name).await;
    }
}

/// D-11: what is no digest is ignored, and the image is known by its tag. A task
/// that declares an image must have told one all the same: a digest that is none, alone, is no image.
#[tokio::test(flavor = "multi_thread")]
async fn case_d11_what_is_no_digest_is_ignored() {
    let ns = team().await;
    let results = json!([{ "name": "IMAGE_URL" }, { "name": "IMAGE_DIGEST" }]);
    let image = format!("{REPOSITORY}:v0.0.1");
    let wrong = [
        ("short", "sha256:abc".to_owned()),
        ("upper", DIGEST.to_uppercase()),
        ("other", format!("sha512:{}", &DIGEST[7..])),
    ];
    for (name, digest) in &wrong {
        let says = kubelet::results("one", &[("IMAGE_URL", &image), ("IMAGE_DIGEST", digest)]);
        accepted(&ns, &saying(of_my_step(&ns, name, results.clone()).await, says)).await;
    }
    let alone = kubelet::results("one", &[("IMAGE_DIGEST", "sha256:abc")]);
    accepted(&ns, &saying(of_my_step(&ns, "alone", results).await, alone)).await;
    for (name, _) in &wrong {
        ends_with_a_tag(&ns, name).await;
    }
    let status = wait(&ns, "alone", |status| reason(status, "Ready") == "NoImage").await;
    assert_eq!((&status["phase"], status.get("builtImage")), (&json!("Failed"), None), "{status:#}");
}
