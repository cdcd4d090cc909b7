//! Cases of builds at admission (docs/cases.md), by number: B1 to B35, B37.
//!
//! Elsewhere: B20 to B29 as fields of any front end in `check`; B36 needs the API server's defaults and a controller.

mod completing;
mod laws;
mod validating;

use std::sync::LazyLock;

use json_patch::patch;
use serde_json::{Value, json};

use super::{Change, complete, drift, unrefreshed, validate};
use crate::api::findings::{Findings, printed};
use crate::domain::keys;
use crate::pipelines::catalogue::{Values, config_maps};
use crate::pipelines::fixtures::{OPERATOR, TEAM};
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

/// The view of a fresh installation; read once, because the laws ask for it hundreds of times.
fn shipped() -> TemplatesView {
    static VIEW: LazyLock<TemplatesView> =
        LazyLock::new(|| TemplatesView::new(OPERATOR, false).with(config_maps(OPERATOR, &Values::default())));
    VIEW.clone()
}

/// B1: the smallest AgentBuild, as the API server has defaulted it.
fn minimal() -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1",
        "kind": "AgentBuild",
        "metadata": {"name": "weather-build", "namespace": TEAM},
        "spec": {
            "source": {"sourceRepository": "github.com/kagenti/agent-examples.git", "sourceSubfolder": "a2a/weather_service"},
            "buildOutput": {"imageRegistry": "registry.cr-system.svc.cluster.local:5000", "image": "weather-service", "imageTag": "v0.0.1"},
            "mode": "dev",
            "cleanupAfterBuild": true,
        },
    })
}

/// The minimal object with other members of its spec; null takes one away.
fn with(members: Value) -> Value {
    let mut object = minimal();
    json_patch::merge(&mut object, &json!({"spec": members}));
    object
}

fn custom_steps() -> Value {
    json!([{"name": "clone", "configMap": "github-clone-step"}])
}

/// What is stored after the mutating webhook.
fn completed(object: &Value, old: Option<&Value>, view: &TemplatesView) -> Value {
    let change = Change { namespace: TEAM, object, old };
    let operations = complete(&change, view, &Settings::new(OPERATOR));
    let mut stored = object.clone();
    patch(&mut stored, &operations).unwrap_or_else(|error| panic!("{error}: {operations:?}"));
    let again = Change { namespace: TEAM, object: &stored, old };
    assert_eq!(complete(&again, view, &Settings::new(OPERATOR)), [], "a second call changes nothing");
    stored
}

/// What the validating webhook says of what the mutating one made.
fn reviewed(object: &Value, old: Option<&Value>, view: &TemplatesView) -> Findings {
    let stored = completed(object, old, view);
    validate(&Change { namespace: TEAM, object: &stored, old }, view, &Settings::new(OPERATOR))
}

fn created(members: Value) -> Findings {
    reviewed(&with(members), None, &shipped())
}

fn refusal(findings: &Findings) -> String {
    printed(&findings.faults)
}

fn step_names(object: &Value) -> Vec<&str> {
    let steps = object["spec"]["pipeline"]["steps"].as_array().map_or(&[][..], Vec::as_slice);
    steps.iter().map(|step| step["name"].as_str().unwrap()).collect()
}

fn origin(object: &Value) -> &str {
    object["metadata"]["annotations"][keys::ANNOTATION_PIPELINE_ORIGIN].as_str().unwrap_or("none")
}

fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    json_patch::merge(&mut object, &json!({"metadata": {"annotations": {key: value}}}));
    object
}
