//! Builds and agents at the door of a real API server, by the product as `manifests/` installs it: the cases of
//! Cases of builds, and those of agents and of scope that speak of admission (docs/cases.md), by number.
//!
//! One installation serves all tests but those that change its settings; each test has namespaces of its own.

mod agent_pods;
mod agents;
mod bad_input;
mod builds;
mod changes;
mod kaos;
mod mends;
mod people;
mod policy;
mod process;
mod refusals;
mod scope;
mod secrets;

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use drawbridge::domain::keys;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use webhook_tests::patience::patience;
use webhook_tests::{ControlPlane, TestNamespace, installation};

async fn control_plane() -> Result<&'static ControlPlane> {
    installation::shared().await
}

/// A namespace that the webhooks serve.
async fn team() -> Result<TestNamespace> {
    control_plane().await?.namespace("team").await
}

/// B1: the smallest AgentBuild.
fn minimal(name: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentBuild",
        "metadata": {"name": name},
        "spec": {
            "source": {"sourceRepository": "github.com/kagenti/agent-examples.git", "sourceSubfolder": "a2a/weather_service"},
            "buildOutput": {"imageRegistry": "registry.cr-system.svc.cluster.local:5000", "image": "weather-service", "imageTag": "v0.0.1"},
        },
    })
}

/// The smallest AgentBuild with other members of its spec; null takes one away.
fn with(name: &str, members: Value) -> Value {
    let mut object = minimal(name);
    json_patch::merge(&mut object, &json!({"spec": members}));
    object
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("agent.kagenti.dev", "v1alpha1", kind))
}

fn builds(ns: &TestNamespace) -> Api<DynamicObject> {
    Api::namespaced_with(ns.client(), ns.name(), &resource("AgentBuild"))
}

/// A merge patch, as `kubectl patch --type=merge` sends it.
async fn merge(ns: &TestNamespace, name: &str, patch: Value) -> kube::Result<DynamicObject> {
    builds(ns).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
}

fn annotation<'o>(object: &'o DynamicObject, key: &str) -> &'o str {
    object.metadata.annotations.iter().flatten().find(|(name, _)| *name == key).map_or("", |(_, value)| value)
}

fn origin(object: &DynamicObject) -> &str {
    annotation(object, keys::ANNOTATION_PIPELINE_ORIGIN)
}

fn step_names(object: &DynamicObject) -> Vec<&str> {
    let steps = object.data["spec"]["pipeline"]["steps"].as_array().map_or(&[][..], Vec::as_slice);
    steps.iter().map(|step| step["name"].as_str().unwrap_or("?")).collect()
}

/// The answer to a dry run once it `holds`: what a test has just written is known to the webhook after a moment.
async fn settled(
    ns: &TestNamespace,
    object: &Value,
    holds: impl Fn(&Result<DynamicObject, String>) -> bool,
) -> Result<()> {
    let begun = Instant::now();
    loop {
        let answer = ns.create(object, true).await?.result.map_err(|status| status.message);
        if holds(&answer) {
            return Ok(());
        }
        if begun.elapsed() > patience() {
            bail!("not within {:?}; last answer: {answer:?}", patience());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// A ConfigMap with one key.
fn config_map(name: &str, labels: Value, key: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {key: text}})
}

fn template(mode: &str, text: &str) -> Value {
    config_map(&format!("{}{mode}", keys::PREFIX_TEMPLATE), json!({}), keys::KEY_TEMPLATE, text)
}

fn step(name: &str, text: &str) -> Value {
    config_map(name, json!({keys::LABEL_STEP: keys::LABEL_STEP_VALUE}), keys::KEY_TASK_SPEC, text)
}

/// A TaskSpec that needs nothing.
const TASK: &str = "steps:\n  - name: run\n    image: \"docker.io/library/alpine:3.22\"\n    script: \"true\"\n";
/// A template of one step, `only`, from ConfigMap `own-step`.
const TEMPLATE: &str = r#"{"name": "own", "steps": [{"name": "only", "configMap": "own-step"}]}"#;

/// Takes steps and template from the namespace itself.
fn own(ns: &TestNamespace, name: &str, members: Value) -> Value {
    let mut object = with(name, members);
    object["spec"]["pipeline"]["namespace"] = json!(ns.name());
    object
}

/// The namespace has a template of mode dev and its step, and the webhook knows both.
async fn own_template(ns: &TestNamespace) -> Result<()> {
    ns.accepts(&step("own-step", TASK)).await?;
    ns.accepts(&template("dev", TEMPLATE)).await?;
    let object = own(ns, "probe", json!({}));
    let known = |answer: &Result<DynamicObject, String>| {
        answer.as_ref().is_ok_and(|object| annotation(object, keys::ANNOTATION_STEP_HASHES).contains("own-step"))
    };
    settled(ns, &object, known).await
}

/// Refused, with all of these texts in the message.
async fn refused(ns: &TestNamespace, case: &str, object: &Value, says: &[&str]) -> Result<String> {
    let answer = ns.create(object, true).await?;
    let Err(status) = answer.result else { bail!("{case}: accepted: {object}") };
    for text in says {
        ensure!(status.message.contains(text), "{case}: {text:?} is missing in: {}", status.message);
    }
    Ok(status.message)
}

/// Accepted; returns the object as it would be stored, and the warnings.
async fn accepted(ns: &TestNamespace, case: &str, object: &Value) -> Result<(DynamicObject, Vec<String>)> {
    let answer = ns.create(object, true).await?;
    match answer.result {
        Ok(object) => Ok((object, answer.warnings)),
        Err(status) => bail!("{case}: refused: {}", status.message),
    }
}
