//! What the suite's tests stand on: one installation for all of them, and the objects they make.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::api::agent_kagenti_dev::agent::{self, Agent};
use drawbridge::api::agent_kagenti_dev::agent_build::{self, AgentBuild};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, TestNamespace, installation, wait_for, wait_served};

/// User of the processes that write.
pub(crate) const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";

/// A control plane with one installation, for tests that leave its processes alone.
pub(crate) async fn shared() -> Result<&'static ControlPlane> {
    installation::shared().await
}

/// The definitions of Agent and AgentBuild, whose kinds are served.
pub(crate) async fn definitions(cp: &ControlPlane) -> Result<()> {
    let objects = cp.objects().await?;
    for definition in [agent::crd(), agent_build::crd()] {
        let mut object = serde_json::to_value(&definition)?;
        object["apiVersion"] = json!("apiextensions.k8s.io/v1");
        object["kind"] = json!("CustomResourceDefinition");
        objects.apply(&object.to_string()).await?;
        wait_served(&objects, &definition.metadata.name.context("a definition has a name")?).await?;
    }
    Ok(())
}

/// Waits until somebody other than `not` holds the Lease; returns who.
pub(crate) async fn leads(cp: &ControlPlane, not: Option<&str>) -> Result<String> {
    let leases: Api<Lease> = Api::namespaced(cp.client().await?, "kagenti-system");
    let holder = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
    let held = |lease: &Lease| !holder(lease).is_empty() && Some(holder(lease).as_str()) != not;
    Ok(holder(&wait_for(&leases, "drawbridge-controllers", held).await?))
}

/// An Agent with an image of its own; `more` is merged in.
pub(crate) fn agent(name: &str, more: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "metadata": {"name": name},
        "spec": {
            "imageSource": {"image": "example.com/weather:v1"},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
        },
    });
    json_patch::merge(&mut object, more);
    object
}

/// Deployments as they are stored, with fields that are younger than the bindings.
pub(crate) fn deployments(ns: &TestNamespace) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

/// A Deployment of somebody else.
pub(crate) fn foreign_deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "theirs", "image": "example.com/theirs:1"}]},
            },
        },
    })
}

/// The status of a build that made that image.
pub(crate) fn succeeded(image: &str) -> Value {
    json!({"phase": "Succeeded", "builtImage": image})
}

/// What keeps the AgentBuilds of this suite while they are being deleted.
const HELD: &str = "tests.example/held";

/// An AgentBuild in that state. The test plays its controller: the real one lets go of a build that is being deleted,
/// and this one stays, held by a finalizer. It speaks for the controller's account, too: nobody else says which image a build made.
pub(crate) async fn build(ns: &TestNamespace, name: &str, status: &Value) -> Result<()> {
    let builds: Api<AgentBuild> = ns.api();
    if builds.get_opt(name).await?.is_none() {
        step(ns).await?;
        let object = json!({
            "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
            "metadata": {"name": name, "finalizers": [HELD]},
            "spec": {
                "source": {"sourceRepository": "github.com/acme/weather.git", "sourceRevision": "main"},
                "buildOutput": {"image": "w", "imageTag": "v1", "imageRegistry": "registry.example"},
                "mode": "custom",
                "pipeline": {"namespace": ns.name(), "steps": [{"name": "step", "configMap": "step"}]},
            },
        });
        // The webhook learns of the step a moment after it was made.
        let accepted = async {
            while let Err(refusal) = ns.accepts(&object).await {
                ensure!(refusal.to_string().contains("step"), "{refusal}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(patience(), accepted).await.context("the build is not accepted")??;
        builds.delete(name, &DeleteParams::default()).await?;
        let let_go = |build: &AgentBuild| build.finalizers() == [HELD] && build.metadata.deletion_timestamp.is_some();
        wait_for(&builds, name, let_go).await?;
    }
    let patch = Patch::Merge(json!({"status": status}));
    let mut request = kube::core::Request::new(builds.resource_url()).patch_subresource(
        "status",
        name,
        &PatchParams::default(),
        &patch,
    )?;
    request.headers_mut().insert("impersonate-user", CONTROLLERS.parse()?);
    ns.client().request::<Value>(request).await?;
    Ok(())
}

async fn step(ns: &TestNamespace) -> Result<()> {
    let task = "steps:\n- name: run\n  image: example.com/tool:1\n  command: [\"true\"]\n";
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "step", "labels": {"kagenti.operator.dev/tekton": "step"}},
        "data": {"task-spec.yaml": task},
    });
    ns.accepts(&object).await.map(drop)
}

/// A condition as `status/reason`.
pub(crate) fn condition(agent: &Agent, type_: &str) -> String {
    let conditions = agent.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.into_iter().find(|one| one.type_ == type_);
    found.map(|one| format!("{}/{}", one.status, one.reason)).unwrap_or_default()
}

/// Ready, as of what was last written.
pub(crate) fn ready(agent: &Agent) -> bool {
    let status = agent.status.as_ref();
    status.and_then(|status| status.observed_generation) == agent.metadata.generation
        && condition(agent, "Ready").starts_with("True/")
}

/// `status.deploymentStatus.phase`.
pub(crate) fn phase(agent: &Agent) -> String {
    let status = agent.status.as_ref().and_then(|status| status.deployment_status.as_ref());
    status.and_then(|status| status.phase.clone()).unwrap_or_default()
}

/// Image of the first container.
pub(crate) fn image(deployment: &Deployment) -> String {
    let spec = deployment.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    spec.and_then(|spec| spec.containers[0].image.clone()).unwrap_or_default()
}

/// kubectl, as administrator, in the test's namespace.
pub(crate) async fn kubectl(cp: &ControlPlane, ns: &TestNamespace, args: &[&str]) -> Result<()> {
    let all: Vec<&str> = args.iter().copied().chain(["-n", ns.name()]).collect();
    let output = cp.kubectl(cp.admin(), &all, "").await?;
    ensure!(output.success, "{args:?}: {}", output.stderr);
    Ok(())
}
