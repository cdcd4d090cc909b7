//! The cluster, the controllers, and who plays Tekton.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use webhook_tests::patience::lease;
use webhook_tests::{Access, ControlPlane, Drawbridge, Objects, TestNamespace, wait_for, wait_served, wait_until};

pub(crate) const OPERATOR: &str = "kagenti-system";
pub(crate) const USER: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
pub(crate) const NAME: &str = "weather-build";
const PLATFORM: &str = "images:\n  envoyProxy: example.com/envoy:1\n  proxyInit: example.com/init:1\n  \
    spiffeHelper: example.com/helper:1\n  clientRegistration: example.com/registration:1\n";

/// Namespace, permissions, our definitions, and two steps.
pub(crate) async fn install(cp: &ControlPlane) -> Result<Access> {
    let objects = cp.objects().await?;
    objects.apply(&format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {OPERATOR}}}")).await?;
    let rendered =
        std::process::Command::new(webhook_tests::programs::workspace("drawbridge")?).args(["render"]).output()?;
    ensure!(rendered.status.success(), "{}", String::from_utf8_lossy(&rendered.stderr));
    for document in webhook_tests::objects::documents(&String::from_utf8(rendered.stdout)?)? {
        let kind = document["kind"].as_str().unwrap_or_default();
        if ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"].contains(&kind) {
            objects.apply(&document.to_string()).await?;
        }
    }
    use drawbridge::api::agent_kagenti_dev::{agent, agent_build};
    for crd in [agent::crd(), agent_build::crd()] {
        define(&objects, &serde_json::to_value(&crd)?).await?;
    }
    for (name, spec) in [
        ("silent", "steps: [{name: run, image: example.com/step:1}]"),
        (
            "tells",
            "results: [{name: IMAGE_URL}, {name: IMAGE_DIGEST}]\nsteps: [{name: build, image: example.com/step:1}]",
        ),
    ] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": OPERATOR, "labels": {"kagenti.operator.dev/tekton": "step"}},
            "data": {"task-spec.yaml": spec},
        });
        objects.apply(&map.to_string()).await?;
    }
    cp.service_account(OPERATOR, "drawbridge-controllers").await
}

/// A definition, until its kind is served.
pub(crate) async fn define(objects: &Objects, crd: &Value) -> Result<()> {
    objects.apply(&crd.to_string()).await?;
    wait_served(objects, crd["metadata"]["name"].as_str().context("a name")?).await
}

/// Tekton's two kinds, with every field and none checked.
pub(crate) fn tekton() -> [Value; 2] {
    [("pipelineruns", "PipelineRun"), ("taskruns", "TaskRun")].map(|(plural, kind)| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.tekton.dev")},
            "spec": {
                "group": "tekton.dev", "scope": "Namespaced",
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        })
    })
}

/// One process with role controllers; `env` is added to its environment.
pub(crate) fn launch(access: &Access, env: &[(&str, &str)]) -> Result<Drawbridge> {
    let disk = &webhook_tests::household::folders()?.disk;
    let file = disk.join("platform-of-builds.yaml");
    // Tests that run side by side start processes by the same file: none may find it half written.
    let whole = tempfile::NamedTempFile::new_in(disk)?;
    std::fs::write(whole.path(), PLATFORM)?;
    whole.persist(&file)?;
    Drawbridge::launch(access, env, |ports| {
        vec![
            "serve".into(),
            "--roles=controllers".into(),
            format!("--namespace={OPERATOR}"),
            format!("--config-path={}", file.display()),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            "--drain-delay=0s".into(),
            "--absence-proof=1s".into(),
            format!("--lease-duration={}s", lease().as_secs()),
        ]
    })
}

/// Takes the Lease away from a process that was killed, so that the next one need not wait for its end.
pub(crate) async fn release(cp: &ControlPlane) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, OPERATOR);
    match leases.delete("drawbridge-controllers", &kube::api::DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An AgentBuild of the user's own steps.
pub(crate) fn build() -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild", "metadata": {"name": NAME},
        "spec": {
            "source": {"sourceRepository": "github.com/acme/weather", "sourceRevision": "v1.0.0"},
            "buildOutput": {"imageRegistry": "registry.example.com", "image": "weather", "imageTag": "v1"},
            "mode": "custom",
            "pipeline": {"namespace": OPERATOR, "steps": [
                {"name": "clone", "configMap": "silent"}, {"name": "push", "configMap": "tells"},
            ]},
        },
    })
}

pub(crate) fn digest() -> String {
    format!("sha256:{}", "a".repeat(64))
}

/// Objects of a kind in a namespace.
pub(crate) fn api(ns: &TestNamespace, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

pub(crate) fn builds(ns: &TestNamespace) -> Api<DynamicObject> {
    api(ns, "agent.kagenti.dev/v1alpha1", "AgentBuild")
}

pub(crate) fn runs(ns: &TestNamespace) -> Api<DynamicObject> {
    api(ns, "tekton.dev/v1", "PipelineRun")
}

/// Waits until the build's status holds; returns it.
pub(crate) async fn status(ns: &TestNamespace, holds: impl Fn(&Value) -> bool) -> Result<Value> {
    let object = wait_for(&builds(ns), NAME, |object| holds(&object.data["status"])).await?;
    Ok(object.data["status"].clone())
}

/// The only run that has not ended.
pub(crate) async fn active_run(ns: &TestNamespace) -> Result<DynamicObject> {
    let active = |run: &DynamicObject| run.data["status"]["completionTime"].is_null();
    let one =
        |all: &std::collections::BTreeMap<String, DynamicObject>| all.values().filter(|run| active(run)).count() == 1;
    let all = wait_until(&runs(ns), watcher::Config::default(), one).await?;
    all.into_iter().find(active).context("there is one")
}

async fn write_status(api: &Api<DynamicObject>, name: &str, status: Value) -> Result<()> {
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
    Ok(())
}

/// Tekton begins a run.
pub(crate) async fn begin(ns: &TestNamespace, run: &DynamicObject) -> Result<()> {
    let condition =
        json!({"type": "Succeeded", "status": "Unknown", "reason": "Running", "message": "Tasks Completed: 0"});
    write_status(&runs(ns), &run.name_any(), json!({"startTime": "2026-05-01T00:00:00Z", "conditions": [condition]}))
        .await
}

/// Tekton ends a task of a run so, with these results.
pub(crate) async fn end_task(ns: &TestNamespace, run: &DynamicObject, task: &str, status: Value) -> Result<String> {
    let name = format!("{}-{task}", run.name_any());
    let mut labels = run.labels().clone();
    labels.insert("tekton.dev/pipelineRun".to_owned(), run.name_any());
    labels.insert("tekton.dev/pipelineTask".to_owned(), task.to_owned());
    let object = json!({
        "apiVersion": "tekton.dev/v1", "kind": "TaskRun",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [{"apiVersion": "tekton.dev/v1",
            "kind": "PipelineRun", "name": run.name_any(), "uid": run.uid(), "controller": true}]},
        "spec": {},
    });
    ns.accepts(&object).await?;
    write_status(&api(ns, "tekton.dev/v1", "TaskRun"), &name, status).await?;
    Ok(name)
}

/// How a task stands that succeeded.
pub(crate) fn succeeded(results: Value) -> Value {
    let condition = json!({"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "done"});
    json!({"startTime": "2026-05-01T00:00:00Z", "completionTime": "2026-05-01T00:01:00Z", "conditions": [condition], "results": results})
}

/// Tekton ends a run so.
pub(crate) async fn end(ns: &TestNamespace, run: &DynamicObject, condition: Value, tasks: &[&str]) -> Result<()> {
    let child = |task: &&str| json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": format!("{}-{task}", run.name_any()), "pipelineTaskName": task});
    let children: Vec<_> = tasks.iter().map(child).collect();
    let status =
        json!({"completionTime": "2026-05-01T00:02:00Z", "conditions": [condition], "childReferences": children});
    write_status(&runs(ns), &run.name_any(), status).await
}

/// Both tasks succeed, the second tells an image, then the run succeeds.
pub(crate) async fn succeed(ns: &TestNamespace, run: &DynamicObject) -> Result<()> {
    end_task(ns, run, "clone", succeeded(json!([{"name": "commit", "type": "string", "value": "0123456789abcdef"}])))
        .await?;
    let image = json!([{"name": "IMAGE_URL", "type": "string", "value": "registry.example.com/weather:v1"},
        {"name": "IMAGE_DIGEST", "type": "string", "value": digest()}]);
    end_task(ns, run, "push", succeeded(image)).await?;
    let condition =
        json!({"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "Tasks Completed: 2"});
    end(ns, run, condition, &["clone", "push"]).await
}
