//! The installation and Tekton that the tests share, and what they do with a build.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use webhook_tests::patience::patience;
use webhook_tests::tekton::kubelet;
use webhook_tests::{ControlPlane, Installation, Installing, Tekton, TestNamespace};

/// What the tasks of the tests push.
pub(crate) const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Where the builds of the tests push to.
pub(crate) const REPOSITORY: &str = "registry.cr-system.svc:5000/weather";

/// How long a build may take on a busy machine.
pub(crate) fn within() -> Duration {
    Duration::from_secs(240).max(patience())
}

/// A namespace on the control plane of all tests here, which has Tekton and the one installation of the product.
pub(crate) async fn team() -> TestNamespace {
    static INSTALLATION: OnceCell<Installation> = OnceCell::const_new();
    let cp = ControlPlane::shared().await.unwrap();
    Tekton::shared().await.unwrap();
    let start = async || Installation::start(cp, &Installing::default()).await;
    INSTALLATION.get_or_try_init(start).await.unwrap();
    cp.namespace("team").await.unwrap()
}

/// A build of mode dev whose tasks end as they do when all is well.
pub(crate) fn build(name: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
        "metadata": { "name": name },
        "spec": {
            "source": { "sourceRepository": "github.com/acme/agents.git", "sourceRevision": "v1.4.2", "sourceSubfolder": "a2a/weather" },
            "buildOutput": { "imageRegistry": "registry.cr-system.svc:5000", "image": "weather", "imageTag": "v0.0.1" },
            "annotations": well(),
        },
    })
}

/// What the tasks of a build with a Dockerfile say when all is well.
pub(crate) fn well() -> BTreeMap<String, String> {
    let image = format!("{REPOSITORY}:v0.0.1");
    BTreeMap::from([
        kubelet::results("github-clone", &[("commit", &"c".repeat(40)), ("url", "https://github.com/acme/agents.git")]),
        kubelet::results("dockerfile-check", &[("has-dockerfile", "true"), ("dockerfile-name", "Dockerfile")]),
        kubelet::results("buildah-build", &[("IMAGE_URL", &image), ("IMAGE_DIGEST", DIGEST)]),
    ])
}

/// The same build, with something else said by its tasks.
pub(crate) fn saying(mut object: Value, (key, value): (String, String)) -> Value {
    object["spec"]["annotations"][key] = json!(value);
    object
}

/// Creates a build whose step was made just before: the webhook hears of that by a watch of its own, and refuses until then.
pub(crate) async fn accepted(ns: &TestNamespace, object: &Value) {
    let begun = tokio::time::Instant::now();
    while let Err(refusal) = ns.accepts(object).await {
        assert!(refusal.to_string().contains("step ConfigMap") && begun.elapsed() < within(), "{refusal:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Objects of a kind, in the namespace of a test.
pub(crate) fn api(ns: &TestNamespace, kind: &str) -> Api<DynamicObject> {
    let (group, version) =
        if kind.starts_with("Agent") { ("agent.kagenti.dev", "v1alpha1") } else { ("tekton.dev", "v1") };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(ns.client(), ns.name(), &resource)
}

/// Waits until the build of that name is as wanted; gives its status.
pub(crate) async fn wait(ns: &TestNamespace, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let holds = |build: Option<&DynamicObject>| build.is_some_and(|build| wanted(&build.data["status"]));
    let waiting = tokio::time::timeout(within(), await_condition(api(ns, "AgentBuild"), name, holds));
    if let Ok(found) = waiting.await {
        return found.unwrap().unwrap().data["status"].clone();
    }
    let build = api(ns, "AgentBuild").get(name).await.map(|build| build.data["status"].clone());
    let runs = api(ns, "PipelineRun").list(&ListParams::default()).await;
    let runs: Vec<_> = runs.into_iter().flatten().map(|run| run.data["status"]["conditions"].clone()).collect();
    panic!("{name} is not as wanted: {build:#?}; runs: {runs:#?}");
}

/// Waits for the end of a build: its phase and the reason of condition `Ready`.
pub(crate) async fn ended(ns: &TestNamespace, name: &str) -> (String, String, Value) {
    let over = |status: &Value| ["Succeeded", "Failed"].iter().any(|phase| status["phase"] == *phase);
    let status = wait(ns, name, over).await;
    (status["phase"].as_str().unwrap().to_owned(), reason(&status, "Ready"), status)
}

/// The reason of a condition, empty when it is not there.
pub(crate) fn reason(status: &Value, condition: &str) -> String {
    let list = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = list.iter().find(|one| one["type"] == condition);
    one.and_then(|one| one["reason"].as_str()).unwrap_or_default().to_owned()
}

/// Names of the runs of a build.
pub(crate) async fn runs(ns: &TestNamespace, build: &str) -> Vec<String> {
    let of_build = ListParams::default().labels(&format!("{}={build}", keys::LABEL_AGENT_BUILD));
    let found = api(ns, "PipelineRun").list(&of_build).await.unwrap().items;
    found.into_iter().map(|run| run.metadata.name.unwrap()).collect()
}

/// How often Events of that reason were sent about a build.
pub(crate) async fn told(ns: &TestNamespace, build: &str, reason: &str) -> i32 {
    let all = ns.api::<Event>().list(&ListParams::default()).await.unwrap();
    let about = all.items.into_iter().filter(|event| {
        event.involved_object.name.as_deref() == Some(build) && event.reason.as_deref() == Some(reason)
    });
    about.map(|event| event.series.and_then(|series| series.count).or(event.count).unwrap_or(1)).sum()
}

/// Changes a build.
pub(crate) async fn patch(ns: &TestNamespace, name: &str, patch: Value) -> Result<()> {
    api(ns, "AgentBuild").patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}
