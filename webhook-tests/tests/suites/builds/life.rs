//! A build's life, its failures, and Tekton's definitions coming and going.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use webhook_tests::patience::timeout;
use webhook_tests::{ControlPlane, Drawbridge, Kept, Kubelet, Lent, Options, TestNamespace, wait_for, wait_gone};

use super::stage::{
    NAME, USER, active_run, api, begin, build, builds, define, digest, end, end_task, install, launch, runs, status,
    succeed, tekton,
};

/// A control plane with Tekton's definitions and one leader; what comes first ends first.
pub(crate) struct Led {
    _leader: Drawbridge,
    kubelet: OnceCell<Kubelet>,
    pub(crate) cp: ControlPlane,
}

impl Led {
    /// Who plays the kubelet of its nodes from now on.
    pub(crate) async fn kubelet(&self) -> Result<&Kubelet> {
        self.kubelet.get_or_try_init(|| Kubelet::start(&self.cp)).await
    }
}

/// The one of the tests that leave its leader alone.
pub(crate) async fn shared() -> Result<Lent<Led>> {
    static LED: Kept<Led> = Kept::new();
    LED.lend(led).await
}

async fn led() -> Result<Led> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp).await?;
    let objects = cp.objects().await?;
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let leader = launch(&access, &[])?;
    leader.ready().await?;
    Ok(Led { _leader: leader, kubelet: OnceCell::new(), cp })
}

pub(crate) fn condition<'a>(status: &'a Value, type_: &str) -> &'a Value {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|one| one["type"] == type_).unwrap_or(&Value::Null)
}

pub(crate) async fn patch(ns: &TestNamespace, patch: &Value) -> Result<()> {
    builds(ns).patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// A finished Pod of a task, which no kubelet ever sees.
async fn pod(ns: &TestNamespace, task_run: &str) -> Result<()> {
    let owner = api(ns, "tekton.dev/v1", "TaskRun").get(task_run).await?;
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("{task_run}-pod"), "labels": owner.labels(), "ownerReferences": [{"apiVersion": "tekton.dev/v1",
            "kind": "TaskRun", "name": task_run, "uid": owner.uid(), "controller": true}]},
        "spec": {"schedulingGates": [{"name": "test/hold"}], "containers": [{"name": "step-x", "image": "example.com/x:1"}]},
    });
    ns.accepts(&object).await?;
    let phase = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    ns.api::<Pod>().patch_status(&format!("{task_run}-pod"), &PatchParams::default(), &phase).await?;
    Ok(())
}

/// D-1, D-9, D-16, D-22, D-27, and `kubectl wait`.
#[tokio::test]
async fn a_build_succeeds_is_cleaned_up_builds_again_and_goes() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("life").await?;
    ns.accepts(&build()).await?;
    let run = active_run(&ns).await?;
    assert_eq!(run.owner_references()[0].kind, "AgentBuild");
    begin(&ns, &run).await?;
    let building = status(&ns, |status| status["message"] == "Tasks Completed: 0").await?;
    assert_eq!(
        (&building["phase"], &condition(&building, "BuildSucceeded")["status"]),
        (&json!("Building"), &json!("Unknown"))
    );
    wait_for(&ns.api::<PersistentVolumeClaim>(), "weather-build-workspace", |_| true).await?;
    let done = end_task(&ns, &run, "extra", super::stage::succeeded(json!([]))).await?;
    pod(&ns, &done).await?;
    succeed(&ns, &run).await?;
    let wait = ["wait", "--for=condition=Ready", "agentbuild/weather-build", &timeout(), "-n", ns.name()];
    let waited = cp.kubectl(cp.admin(), &wait, "").await?;
    ensure!(waited.success, "{}", waited.stderr);
    let ended = status(&ns, |status| status["message"] == "Build complete, cleanup done").await?;
    assert_eq!(ended["builtImage"], format!("registry.example.com/weather@{}", digest()));
    assert_eq!((&ended["sourceCommit"], &ended["observedGeneration"]), (&json!("0123456789abcdef"), &json!(1)));
    assert_eq!(condition(&ended, "Ready")["observedGeneration"], json!(1));
    ensure!(condition(&ended, "Ready")["lastTransitionTime"].is_string(), "{ended:#}");
    wait_gone(&ns.api::<PersistentVolumeClaim>(), "weather-build-workspace").await?;
    wait_gone(&ns.api::<Pod>(), &format!("{done}-pod")).await?;
    runs(&ns).get(&run.name_any()).await.context("the run stays")?;

    patch(&ns, &json!({"spec": {"source": {"sourceRevision": "v2.0.0"}}})).await?;
    let next = active_run(&ns).await?;
    assert_ne!(next.name_any(), run.name_any());
    let again = status(&ns, |status| status["phase"] == "Building" && status["observedGeneration"] == 2).await?;
    assert_eq!(again["builtImage"], ended["builtImage"], "the old image until there is a new one");

    builds(&ns).delete(NAME, &DeleteParams::default()).await?;
    wait_gone(&builds(&ns), NAME).await?;
    wait_gone(&runs(&ns), &next.name_any()).await?;
    wait_gone(&ns.api::<PersistentVolumeClaim>(), "weather-build-workspace").await
}

/// D-5, D-6, D-14, D-20, D-31: what people are told, and that it is told once.
#[tokio::test]
async fn what_is_wrong_stands_on_the_object() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("wrong").await?;
    let mut object = build();
    object["spec"]["source"]["sourceCredentials"] = json!({"name": "git"});
    ns.accepts(&object).await?;
    let missing = status(&ns, |status| condition(status, "Ready")["reason"] == "PrerequisitesMissing").await?;
    let message = missing["message"].as_str().unwrap_or_default();
    ensure!(message.contains("sourceCredentials secret not found"), "{message}");
    // Nobody tells of Secrets: the one that is named is asked for again. Its value is a canary (G2).
    let canary = "canary-6f1d";
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git"}, "stringData": {"token": canary}});
    ns.accepts(&secret).await?;
    let run = active_run(&ns).await?;

    let failed = json!({
        "completionTime": "2026-05-01T00:01:00Z", "podName": "p",
        "conditions": [{"type": "Succeeded", "status": "False", "reason": "Failed", "message": "\"step-build\" exited with code 2"}],
        "steps": [{"name": "build", "terminated": {"exitCode": 2, "reason": "Error", "message": canary}}],
    });
    end_task(&ns, &run, "push", failed).await?;
    end(&ns, &run, json!({"type": "Succeeded", "status": "False", "reason": "Failed", "message": "failed"}), &["push"])
        .await?;
    let failed = status(&ns, |status| condition(status, "Ready")["reason"] == "StepFailed").await?;
    let message = failed["message"].as_str().unwrap_or_default();
    ensure!(message.contains("task push, step build: exit 2") && message.contains("logs p -c step-build"), "{message}");

    // Again, and cancelled this time.
    patch(&ns, &json!({"metadata": {"annotations": {"agent.kagenti.dev/rebuild": "1"}}})).await?;
    let second = active_run(&ns).await?;
    status(&ns, |status| {
        status["pipelineRunName"] == second.name_any() && condition(status, "PipelineRunExists")["status"] == "True"
    })
    .await?;
    patch(&ns, &json!({"metadata": {"annotations": {"agent.kagenti.dev/cancel": "now"}}})).await?;
    wait_for(&runs(&ns), &second.name_any(), |run| run.data["spec"]["status"] == "Cancelled").await?;
    end(
        &ns,
        &second,
        json!({"type": "Succeeded", "status": "False", "reason": "Cancelled", "message": "cancelled"}),
        &[],
    )
    .await?;
    let cancelled = status(&ns, |status| condition(status, "Ready")["reason"] == "Cancelled").await?;
    assert_eq!((&cancelled["handledCancel"], &cancelled["phase"]), (&json!("now"), &json!("Failed")));
    let object = builds(&ns).get(NAME).await?;
    assert_eq!(object.annotations()["agent.kagenti.dev/cancel"], "now", "never removed");

    let events = ns.api::<Event>().list(&ListParams::default()).await?;
    let told = |reason: &str| events.items.iter().filter(|event| event.reason.as_deref() == Some(reason)).count();
    assert_eq!(
        (told("ValidationFailed"), told("BuildStarted"), told("BuildFailed"), told("BuildCancelled")),
        (1, 2, 1, 1)
    );
    let text = serde_json::to_string(&(&events.items, &object, runs(&ns).list(&ListParams::default()).await?.items))?;
    ensure!(!text.contains(canary) && !text.contains("Y2FuYXJ5LTZmMWQ"), "the canary was found");
    ns.api::<Secret>().get("git").await.context("the Secret is left alone")?;
    Ok(())
}

/// A restart over builds at rest writes nothing: steady state is what the cluster says, not what was remembered.
#[tokio::test]
async fn a_restart_writes_nothing() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp).await?;
    let objects = cp.objects().await?;
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let first = launch(&access, &[])?;
    first.ready().await?;
    let ns = cp.namespace("rest").await?;
    ns.accepts(&build()).await?;
    let run = active_run(&ns).await?;
    begin(&ns, &run).await?;
    succeed(&ns, &run).await?;
    status(&ns, |status| status["message"] == "Build complete, cleanup done").await?;
    wait_gone(&ns.api::<PersistentVolumeClaim>(), "weather-build-workspace").await?;
    first.kill().await;
    super::stage::release(&cp).await?;
    let mark = cp.audit().mark()?;
    first.start_again()?;
    first.ready().await?;
    // Another build comes to its end after everything else was looked at.
    let witness = cp.namespace("witness").await?;
    witness.accepts(&build()).await?;
    let run = active_run(&witness).await?;
    begin(&witness, &run).await?;
    status(&witness, |status| status["message"] == "Tasks Completed: 0").await?;
    let asked = cp.audit().settled(mark).await?.by(USER).in_namespace(ns.name());
    let shown: Vec<String> = asked.iter().map(ToString::to_string).collect();
    ensure!(shown.is_empty(), "{shown:#?}");
    Ok(())
}

/// D-28: without Tekton a named condition; with it the build follows by itself, and so does a removal.
#[tokio::test]
async fn tekton_comes_goes_and_comes_back() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp).await?;
    let objects = cp.objects().await?;
    let controllers = launch(&access, &[])?;
    controllers.ready().await?;
    let ns = cp.namespace("tekton").await?;
    ns.accepts(&build()).await?;
    let is = |reason: &'static str| move |status: &Value| condition(status, "TektonAvailable")["reason"] == reason;
    // The conditions may come in two writes.
    let absent = status(&ns, |status| {
        is("TektonAbsent")(status) && condition(status, "Ready")["reason"] == json!("TektonAbsent")
    });
    assert_eq!(absent.await?["phase"], json!("Pending"));
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let run = active_run(&ns).await?;
    status(&ns, |status| condition(status, "PipelineRunExists")["status"] == "True").await?;

    let definitions: Api<CustomResourceDefinition> = Api::all(cp.client().await?);
    for crd in tekton() {
        let name = crd["metadata"]["name"].as_str().context("a name")?.to_owned();
        definitions.delete(&name, &DeleteParams::default()).await?;
        wait_gone(&definitions, &name).await?;
    }
    let gone = match status(&ns, is("TektonAbsent")).await {
        Ok(gone) => gone,
        Err(_) => status(&ns, is("TektonAbsent")).await?,
    };
    assert_ne!(gone["phase"], "Failed", "{gone:#}");
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let next = match active_run(&ns).await {
        Ok(next) => next,
        Err(_) => active_run(&ns).await?,
    };
    ensure!(next.uid() != run.uid());
    begin(&ns, &next).await?;
    succeed(&ns, &next).await?;
    let ended = status(&ns, |status| status["phase"] == "Succeeded").await?;
    assert_eq!(condition(&ended, "TektonAvailable")["status"], "True");
    Ok(())
}
