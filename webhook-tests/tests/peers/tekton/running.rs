//! Composed runs, created for real: Tekton's controller runs them to their end, with kwok as the kubelet.
//!
//! Of 19.5 this shows what needs no container: which tasks run, what they are given, how a run ends. Not shown here,
//! and what it would take: E3, E8–E18 need images, a registry and a kubelet (E9–E15 also the scanners' data); the
//! scripts themselves run under a shell in the library's own tests and in `tests/steps.rs`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use drawbridge::api::agent_kagenti_dev::agent_build;
use drawbridge::domain::keys;
use drawbridge::pipelines::agent_build::MODES;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::tekton::{kubelet, outcome};
use webhook_tests::{ControlPlane, Tekton, TestNamespace, wait_for};

use super::builds::{Platform, build};

pub(crate) const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// How long a run may take on a busy machine.
fn within() -> Duration {
    Duration::from_secs(240).max(patience())
}

/// A namespace on the shared control plane with Tekton, where AgentBuilds can be stored.
pub(crate) async fn namespace(prefix: &str) -> TestNamespace {
    Tekton::shared().await.unwrap();
    let cp = ControlPlane::shared().await.unwrap();
    cp.objects().await.unwrap().apply(&serde_json::to_string(&agent_build::crd()).unwrap()).await.unwrap();
    cp.namespace(prefix).await.unwrap()
}

fn api(ns: &TestNamespace, kind: &str) -> Api<DynamicObject> {
    let gvk = kube::api::GroupVersionKind::gvk("tekton.dev", "v1", kind);
    Api::namespaced_with(ns.client(), ns.name(), &ApiResource::from_gvk(&gvk))
}

/// The same build, whose tasks end as `annotations` say.
pub(crate) fn ending(mut object: Value, annotations: &[(String, String)]) -> Value {
    object["spec"]["annotations"] =
        annotations.iter().cloned().collect::<std::collections::BTreeMap<_, _>>().into_iter().collect();
    object
}

/// Stores the build and creates claim and run for it, as the controller would; gives the run's name.
async fn start(ns: &TestNamespace, platform: &Platform, object: &Value) -> Result<String> {
    start_with(ns, platform, object, Value::clone).await
}

/// The same with another run than the one that was composed.
pub(crate) async fn start_with(
    ns: &TestNamespace,
    platform: &Platform,
    object: &Value,
    write: impl Fn(&Value) -> Value,
) -> Result<String> {
    let (mut completed, findings) = platform.reviewed(object);
    anyhow::ensure!(findings.faults.is_empty(), "{:#?}", findings.faults);
    let stored = retried(|| ns.accepts(&completed)).await?;
    completed["metadata"]["uid"] = json!(stored.metadata.uid);
    let composition = platform.composed(&completed).map_err(|findings| anyhow::anyhow!("{findings:#?}"))?;
    ns.accepts(&composition.claim).await?;
    let run = ns.accepts(&write(&composition.run)).await?;
    run.metadata.name.context("a stored run has a name")
}

/// A definition is served a moment after it was applied.
async fn retried<T, F: Future<Output = Result<T>>>(mut attempt: impl FnMut() -> F) -> Result<T> {
    let deadline = tokio::time::Instant::now() + patience();
    loop {
        match attempt().await {
            Err(_) if tokio::time::Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(100)).await,
            other => return other,
        }
    }
}

/// Waits for the end of a run.
pub(crate) async fn ended(ns: &TestNamespace, name: &str) -> Value {
    let over = |run: Option<&DynamicObject>| run.is_some_and(|run| outcome(&run.data).is_some());
    let waiting = await_condition(api(ns, "PipelineRun"), name, over);
    if let Ok(run) = tokio::time::timeout(within(), waiting).await {
        return run.unwrap().unwrap().data;
    }
    let last = api(ns, "PipelineRun").get(name).await.unwrap();
    panic!("{name} does not end: {:#}", last.data["status"]);
}

/// A run's TaskRuns, each with the name of its task; in no order, because Tekton's times are whole seconds.
async fn tasks(ns: &TestNamespace, run: &str) -> Vec<(String, DynamicObject)> {
    let of_run = ListParams::default().labels(&format!("tekton.dev/pipelineRun={run}"));
    let found = api(ns, "TaskRun").list(&of_run).await.unwrap().items.into_iter();
    let mut found: Vec<_> =
        found.map(|task| (task.metadata.labels.as_ref().unwrap()["tekton.dev/pipelineTask"].clone(), task)).collect();
    found.sort_by_key(|(_, task)| task.data["status"]["startTime"].to_string());
    found
}

fn skipped(run: &Value) -> Vec<(&str, &str)> {
    let all = run["status"]["skippedTasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|task| (task["name"].as_str().unwrap(), task["reason"].as_str().unwrap())).collect()
}

/// What the tasks of a build with a Dockerfile say.
pub(crate) fn with_dockerfile() -> Vec<(String, String)> {
    let pushed = [("IMAGE_URL", "ghcr.io/acme/weather:v0.0.1"), ("IMAGE_DIGEST", DIGEST)];
    let reference = format!("ghcr.io/acme/weather@{DIGEST}");
    vec![
        kubelet::results("github-clone", &[("commit", &"c".repeat(40)), ("url", "https://github.com/acme/agents.git")]),
        kubelet::results("dockerfile-check", &[("has-dockerfile", "true"), ("dockerfile-name", "Dockerfile")]),
        kubelet::results("detect", &[("has-dockerfile", "true"), ("dockerfile-name", "Dockerfile")]),
        kubelet::results("buildah-build", &pushed),
        kubelet::results("build", &pushed),
        kubelet::results("buildpack-step", &pushed),
        kubelet::results("image-reference", &[pushed[0], pushed[1], ("IMAGE_REF", &reference)]),
        kubelet::results("sbom", &[("sbom-sha256", &"5".repeat(64))]),
        kubelet::results("promote", &pushed),
    ]
}

/// The first half of item 3: every mode, created for real, reaches its end on the claim that composition made.
#[tokio::test(flavor = "multi_thread")]
async fn every_mode_runs_to_its_end() {
    let ns = namespace("running").await;
    let platform = Platform::shipped();
    let mut runs = Vec::new();
    for mode in MODES {
        let object = ending(build(ns.name(), &format!("weather-{mode}"), mode), &with_dockerfile());
        runs.push((mode, start(&ns, &platform, &object).await.unwrap_or_else(|error| panic!("{mode}: {error:#}"))));
    }
    for (mode, name) in runs {
        let run = ended(&ns, &name).await;
        let (succeeded, reason) = outcome(&run).unwrap();
        assert!(succeeded, "{mode}: {reason}: {:#}", run["status"]["conditions"]);
        let wanted: Vec<_> = run["spec"]["pipelineSpec"]["tasks"].as_array().unwrap().iter().collect();
        let buildpack = if ["buildpack-dev", "custom"].contains(&mode) { vec![] } else { vec!["buildpack-step"] };
        let seen = skipped(&run);
        assert_eq!(
            seen,
            buildpack.iter().map(|name| (*name, "When Expressions evaluated to false")).collect::<Vec<_>>(),
            "{mode}"
        );
        let ran = tasks(&ns, &name).await;
        assert_eq!(ran.len() + seen.len(), wanted.len(), "{mode}");
        let pushing = ran.iter().filter(|(_, task)| task.data["status"]["results"].to_string().contains(DIGEST));
        assert!(pushing.count() >= 1, "{mode}: no task reports the digest");
        let claim = format!("weather-{mode}-workspace");
        let bound = |claim: &PersistentVolumeClaim| {
            claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound")
        };
        wait_for(&ns.api::<PersistentVolumeClaim>(), &claim, bound).await.unwrap();
    }
    // 9.3: what a build's Pods are given, as far as it can be seen without running them.
    for pod in ns.api::<Pod>().list(&ListParams::default().labels("tekton.dev/taskRun")).await.unwrap() {
        let spec = pod.spec.unwrap();
        let labels = pod.metadata.labels.unwrap();
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.security_context.unwrap().fs_group, Some(keys::BUILD_FS_GROUP));
        let task = &labels["tekton.dev/pipelineTask"];
        let volumes = serde_json::to_string(&spec.volumes).unwrap();
        let runs_the_image = ["smoke-test", "container-test"].contains(&task.as_str());
        assert!(
            !runs_the_image || (!volumes.contains("ghcr-secret") && !volumes.contains("release-key")),
            "{task}: {volumes}"
        );
        assert!(task == "sign" || !volumes.contains("release-key"), "{task}: {volumes}");
    }
}

/// C18: without a Dockerfile the other builder runs, and the run completes.
#[tokio::test(flavor = "multi_thread")]
async fn case_c18_without_a_dockerfile_buildpacks_build() {
    let ns = namespace("buildpacks").await;
    let mut says = with_dockerfile();
    says.push(kubelet::results("dockerfile-check", &[("has-dockerfile", "false"), ("dockerfile-name", "")]));
    let name = start(&ns, &Platform::shipped(), &ending(build(ns.name(), "plain", "dev"), &says)).await.unwrap();
    let run = ended(&ns, &name).await;
    assert_eq!(outcome(&run), Some((true, "Completed".to_owned())));
    assert_eq!(skipped(&run), [("buildah-build", "When Expressions evaluated to false")]);
    assert!(tasks(&ns, &name).await.iter().any(|(task, _)| task == "buildpack-step"));
}

/// What a failure looks like: the controller's summary reads task, step and exit code from here (D-14).
#[tokio::test(flavor = "multi_thread")]
async fn a_failing_step_ends_the_run_and_says_which() {
    let ns = namespace("failing").await;
    let mut says = with_dockerfile();
    says.push(kubelet::exit("buildah-build", 2));
    let name = start(&ns, &Platform::shipped(), &ending(build(ns.name(), "broken", "dev"), &says)).await.unwrap();
    let run = ended(&ns, &name).await;
    assert_eq!(outcome(&run), Some((false, "Failed".to_owned())));
    let ran = tasks(&ns, &name).await;
    let (_, task) = ran.iter().find(|(name, _)| name == "buildah-build").unwrap();
    assert_eq!(outcome(&task.data), Some((false, "StepFailed".to_owned())));
    let step = &task.data["status"]["steps"][0];
    assert_eq!((&step["terminated"]["exitCode"], &step["name"]), (&json!(2), &json!("build")), "{step}");
    assert!(ran.iter().all(|(task, _)| task != "buildpack-step"), "nothing runs after a failure");
}

/// 10.3: a task that reads the result of a skipped one is skipped with all that follow, and the run is green. This is
/// what the success rule of 11.4 (D-13) must see through.
#[tokio::test(flavor = "multi_thread")]
async fn the_skip_trap_is_real() {
    let ns = namespace("trap").await;
    let mut object = build(ns.name(), "trap", "custom");
    let condition = |value: &str| json!([{ "input": "$(tasks.detect.results.has-dockerfile)", "operator": "in", "values": [value] }]);
    object["spec"]["pipeline"]["steps"] = json!([
        { "name": "clone", "configMap": "github-clone-step" },
        { "name": "detect", "configMap": "check-dockerfile-step" },
        { "name": "build-a", "configMap": "buildah-build-step", "whenExpressions": condition("true") },
        { "name": "build-b", "configMap": "buildpack-step", "whenExpressions": condition("false") },
        { "name": "scan", "configMap": "smoke-test-step", "parameters": [{ "name": "image-ref", "value": "$(tasks.build-a.results.IMAGE_URL)" }] },
        { "name": "gate", "configMap": "check-subfolder-step" },
    ]);
    let says = [kubelet::results("detect", &[("has-dockerfile", "false"), ("dockerfile-name", "")])];
    let name = start(&ns, &Platform::shipped(), &ending(object, &says)).await.unwrap();
    let run = ended(&ns, &name).await;
    assert_eq!(outcome(&run), Some((true, "Completed".to_owned())));
    let expected = [
        ("build-a", "When Expressions evaluated to false"),
        ("scan", "Results were missing"),
        ("gate", "Parent Tasks were skipped"),
    ];
    assert_eq!(skipped(&run), expected);
}

/// What cancelling does (D-19, D-20): the run ends with Tekton's own reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_by_its_spec() {
    let ns = namespace("cancelled").await;
    let hold = [(kubelet::HOLD.to_owned(), "true".to_owned())];
    let name = start(&ns, &Platform::shipped(), &ending(build(ns.name(), "slow", "dev"), &hold)).await.unwrap();
    let begun =
        |run: Option<&DynamicObject>| run.is_some_and(|run| run.data["status"]["childReferences"][0].is_object());
    tokio::time::timeout(within(), await_condition(api(&ns, "PipelineRun"), &name, begun)).await.unwrap().unwrap();
    let cancel = Patch::Merge(json!({ "spec": { "status": "Cancelled" } }));
    api(&ns, "PipelineRun").patch(&name, &PatchParams::default(), &cancel).await.unwrap();
    assert_eq!(outcome(&ended(&ns, &name).await), Some((false, "Cancelled".to_owned())));
}
