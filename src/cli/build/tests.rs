//! What `explain` makes of an AgentBuild, with the shipped catalogue.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::explain::{Known, beeai, report, table};
use super::is_judged;
use crate::pipelines::agent_build::{Change, complete};
use crate::pipelines::beeai_build::front;
use crate::pipelines::catalogue::{self, Values};
use crate::pipelines::settings::Settings;
use crate::pipelines::templates::TemplatesView;

const OPERATOR: &str = "kagenti-system";

fn known() -> Known {
    let settings = Settings::new(OPERATOR);
    let view = TemplatesView::new(OPERATOR, false).with(catalogue::config_maps(OPERATOR, &Values::default()));
    Known { settings, view, accounts: BTreeSet::new() }
}

/// An AgentBuild as the webhook completes it.
fn build(known: &Known, more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": "weather", "namespace": "team1", "uid": "u"},
        "spec": {
            "source": {"sourceRepository": "github.com/acme/weather.git", "sourceSubfolder": "a"},
            "buildOutput": {"image": "weather", "imageTag": "v1", "imageRegistry": "registry.example"},
            "mode": "dev",
        },
    });
    json_patch::merge(&mut object, &more);
    let change = Change { namespace: "team1", object: &object, old: None };
    let operations = complete(&change, &known.view, &known.settings);
    json_patch::patch(&mut object, &operations).unwrap();
    object
}

fn explained(more: Value) -> Value {
    let known = known();
    serde_json::to_value(report(&build(&known, more), "team1", &known)).unwrap()
}

#[test]
fn every_parameter_says_where_it_came_from_and_what_it_won_over() {
    let user = json!({"spec": {"pipeline": {"parameters": [{"name": "pipeline-timeout", "value": "45m"}]}}});
    let told = explained(user.clone());
    assert_eq!(told["faults"], json!([]), "{told:#}");
    let parameters = told["parameters"].as_array().unwrap();
    let of =
        |name: &str| parameters.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {told:#}"));
    let timeout = of("pipeline-timeout");
    assert_eq!(
        (&timeout["value"], &timeout["step"], &timeout["from"]),
        (&json!("45m"), &json!(""), &json!("the pipeline's parameters"))
    );
    assert_eq!(timeout["path"], "spec.pipeline.parameters[0].value");
    assert_eq!(timeout["shadowed"][0]["from"], "the template's global parameters");
    assert!(parameters.iter().any(|one| one["from"] == "another field"), "{told:#}");
    assert_eq!(
        (&told["stepsFrom"], &told["mode"], &told["current"]),
        (&json!("template/dev"), &json!("dev"), &json!(false))
    );
    assert_eq!(told["pipelineRun"]["kind"], "PipelineRun");
    // Once built, the status speaks of these very inputs, and of no others.
    let mut built = json!({"status": {"buildHash": told["buildHash"]}});
    assert_eq!(explained(built.clone())["current"], false);
    json_patch::merge(&mut built, &user);
    assert_eq!(explained(built)["current"], true);
}

/// Where images by content are wanted and the steps are named by tag, nothing ever is known: that is said.
#[test]
fn steps_by_tag_are_no_content_and_the_build_says_so() {
    let mut known = known();
    let told = |known: &Known| serde_json::to_value(report(&build(known, json!({})), "team1", known)).unwrap();
    assert!(!told(&known)["warnings"].to_string().contains("builds.byContent"));
    known.settings.by_content = true;
    assert!(told(&known)["warnings"].to_string().contains("builds.byContent has no effect"), "{:#}", told(&known));
}

/// What a build says stands on its line, and moves no cursor.
#[test]
fn no_value_passes_for_a_line_of_the_report() {
    let known = known();
    let forged = "x\nfault: none\u{1b}[2J\u{202e}";
    let parameters = json!([{"name": "DOCKERFILE", "value": forged}, {"name": "A\nB", "value": forged}]);
    let labels = json!({"a\nfault: none": "v v"});
    let more = json!({"spec": {"pipeline": {"parameters": parameters}, "labels": labels}});
    for more in [more, json!({"spec": {"pipeline": {"parameters": [{"name": "DOCKERFILE", "value": forged}]}}})] {
        let mut out = Vec::new();
        table(&mut out, &report(&build(&known, more), "team1", &known)).unwrap();
        let text = String::from_utf8(out).unwrap();
        let people = text.split("its PipelineRun:").next().unwrap();
        assert!(!people.contains("\nfault: none") && !people.contains(['\u{1b}', '\u{202e}']), "{people}");
    }
}

#[test]
fn what_cannot_be_composed_says_why_and_shows_no_run() {
    let told =
        explained(json!({"spec": {"pipeline": {"parameters": [{"name": "pipeline-timeout", "value": "soon"}]}}}));
    assert!(told["faults"][0].as_str().is_some_and(|fault| fault.contains("spec.pipeline.parameters[0]")), "{told:#}");
    assert_eq!((&told["pipelineRun"], &told["buildHash"]), (&Value::Null, &json!("")));
}

/// What the controller would not start is not shown as if it were built, whoever finds it.
#[test]
fn what_the_controller_would_not_start_is_a_fault_here_too() {
    let known = known();
    let mut object = build(&known, json!({"spec": {"mode": "preprod", "source": {"sourceRevision": "v1.0.0"}}}));
    let told = |object: &Value| serde_json::to_value(report(object, "team1", &known)).unwrap();
    assert_eq!(told(&object)["faults"], json!([]));
    object["spec"]["pipeline"]["steps"].as_array_mut().unwrap().remove(2);
    let drifted = told(&object);
    assert!(drifted["faults"].to_string().contains("refresh-template"), "{drifted:#}");
    assert_eq!((&drifted["pipelineRun"], &drifted["buildHash"]), (&Value::Null, &json!("")));
    let elsewhere = explained(json!({"spec": {"pipeline": {"namespace": "elsewhere"}}}));
    assert!(elsewhere["faults"].to_string().contains("spec.pipeline.namespace"), "{elsewhere:#}");
}

/// The arguments of a build of BeeAI stand among other variables: what is wrong with one is said once, at its own place.
#[test]
fn a_bad_argument_of_beeai_is_named_once() {
    let known = known();
    let object = json!({
        "metadata": {"name": "weather", "namespace": "team1", "uid": "u"},
        "spec": {
            "repoUrl": "github.com/a/b.git", "revision": "v1.0.0", "imageRegistry": "ghcr.io/acme", "image": "weather", "imageTag": "v1",
            "env": [
                {"name": "GITHUB_TOKEN", "valueFrom": {"secretKeyRef": {"name": "git", "key": "token"}}},
                {"name": "BAD-NAME", "value": "x"}, {"name": "OTHER", "value": "$(x)"},
            ],
        },
    });
    let told = serde_json::to_value(beeai(&object, (front("beeai.dev"), "team1"), &known)).unwrap();
    let faults: Vec<&str> = told["faults"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let of_arguments: Vec<_> = faults.iter().filter(|fault| fault.contains("spec.env")).collect();
    assert_eq!(of_arguments.len(), 2, "{faults:?}");
    for place in ["spec.env[1].name", "spec.env[2].value"] {
        assert!(of_arguments.iter().any(|fault| fault.contains(place)), "{place}: {faults:?}");
    }
    assert_eq!(told["pipelineRun"], Value::Null);
}

/// The attempts of the status are those at the inputs that it names, not at others.
#[test]
fn other_inputs_begin_with_the_first_attempt() {
    let attempt = |told: &Value| told["pipelineRun"]["metadata"]["annotations"]["agent.kagenti.dev/attempt"].clone();
    let hash = explained(json!({}))["buildHash"].clone();
    assert_eq!(attempt(&explained(json!({"status": {"attempts": 3, "buildHash": hash}}))), "3");
    assert_eq!(attempt(&explained(json!({"status": {"attempts": 3, "buildHash": "of before"}}))), "1");
}

#[test]
fn a_build_is_judged_once_it_says_how_it_ended() {
    let says =
        |status: &str| is_judged(&json!({"status": {"conditions": [{"type": "BuildSucceeded", "status": status}]}}));
    assert_eq!((says("Unknown"), says("True"), says("False"), is_judged(&json!({}))), (false, true, true, false));
}
