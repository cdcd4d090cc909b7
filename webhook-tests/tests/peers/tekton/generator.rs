//! Generated AgentBuilds of every mode, mostly right, sometimes not, and the platform that they are built on.

use std::collections::BTreeMap;

use drawbridge::domain::keys;
use drawbridge::pipelines::catalogue::{Values, config_maps};
use drawbridge::pipelines::settings::Settings;
use drawbridge::pipelines::templates::{ConfigMapText, TemplatesView};
use serde_json::{Value, json};

use super::builds::{Platform, build};
use super::dice::Dice;
use super::specs;

/// Texts that mean something to a shell, to git, to YAML, to a template or to Tekton.
pub(crate) const HOSTILE: &[&str] = &[
    "$(id)",
    "$(params.image)",
    "$(tasks.github-clone.results.commit)",
    "$(context.pipelineRun.name)",
    "`id`",
    "${HOME}",
    "; touch x",
    "'",
    "\"",
    "\\",
    "a\nb",
    "-x",
    "--upload-pack=x",
    "{{.image}}",
    "{{",
    "$$",
    "$",
    "é",
    "\u{1}",
    " ",
    "../..",
    "*",
    "yes",
    "0755",
    "null",
    "[]",
    "{}",
    "[\"a\", \"b\"]",
    "{\"key\":\"a\",\"other\":\"b\"}",
    "[1]",
    "$((",
    "$(params['x'])",
];
const NAMES: &[&str] = &[
    "image",
    "repo-url",
    "revision",
    "subfolder-path",
    "DOCKERFILE",
    "SKIP_TLS_VERIFY",
    "BUILD_ARGS",
    "PYTHON_VERSION",
    "START_COMMAND",
    "BUILDER_IMAGE",
    "depth",
    "submodules",
    "repo-user",
    "FLAGS",
    "opts",
    "a.b",
    "_x",
    "test-command",
    "signing-secret",
    "registry-secret",
    "SOURCE_REPO_SECRET",
    "card-path",
    "port",
];

/// Step ConfigMaps besides those that are shipped.
const STEPS: usize = 900;

/// The platform: shipped and generated steps, and settings of one of a few kinds.
pub(crate) fn platform(dice: &mut Dice) -> Platform {
    let generated: Vec<ConfigMapText> =
        (0..STEPS).map(|number| specs::config_map(dice, format!("step-{number}"))).collect();
    let operator = keys::OPERATOR_NAMESPACE;
    let shipped = config_maps(operator, &Values::default());
    let view = TemplatesView::new(operator, false).with(shipped.into_iter().chain(generated));
    Platform { view, settings: Settings::new(operator) }
}

/// Other settings, as a platform file may have them.
pub(crate) fn settings(dice: &mut Dice) -> Settings {
    let mut settings = Settings::new(keys::OPERATOR_NAMESPACE);
    settings.insecure_git = dice.chance(20);
    settings.openshift = dice.chance(20);
    if dice.chance(30) {
        settings.trust_bundle = Some("authorities".to_owned());
    }
    if dice.chance(30) {
        let hostile = dice.pick(HOSTILE).to_owned();
        settings.environment = BTreeMap::from([
            ("HTTPS_PROXY".to_owned(), "http://proxy:3128".to_owned()),
            ("NO_PROXY".to_owned(), hostile),
        ]);
    }
    if dice.chance(20) {
        settings.node_selector = BTreeMap::from([("kubernetes.io/arch".to_owned(), "amd64".to_owned())]);
    }
    if dice.chance(20) {
        settings.tolerations = vec![json!({ "key": "build", "operator": "Exists", "effect": "NoSchedule" })];
    }
    if dice.chance(20) {
        settings.resources =
            Some(json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "memory": "2Gi" } }));
    }
    settings
}

/// A custom build of one step for every generated step that can be used.
pub(crate) fn one_step_each(dice: &mut Dice, namespace: &str, platform: &Platform) -> Vec<Value> {
    let steps = platform.view.steps(keys::OPERATOR_NAMESPACE).iter();
    let usable = steps.filter(|(name, entry)| name.starts_with("step-") && entry.step.is_ok());
    let one = |(name, _): (&String, _)| {
        let mut object = build(namespace, name, "custom");
        object["spec"]["pipeline"] = json!({ "steps": [{ "name": "only", "configMap": name, "parameters": parameters(dice, platform, name, &[]) }] });
        object
    };
    usable.map(one).collect()
}

/// An AgentBuild of a mode; its number makes its name its own.
pub(crate) fn agent_build(
    dice: &mut Dice,
    namespace: &str,
    (mode, number): (&str, usize),
    platform: &Platform,
) -> Value {
    let mut object = build(namespace, &name(dice, number), mode);
    source(dice, &mut object["spec"]["source"]);
    output(dice, &mut object["spec"]);
    let mut parameters =
        object.pointer("/spec/pipeline/parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    for parameter in dice.some(2, parameter) {
        if dice.chance(5) || parameters.iter().all(|other| other["name"] != parameter["name"]) {
            parameters.push(parameter);
        }
    }
    if !parameters.is_empty() {
        object["spec"]["pipeline"]["parameters"] = Value::Array(parameters);
    }
    if mode == "custom" || (!matches!(mode, "preprod" | "prod") && dice.chance(10)) {
        object["spec"]["pipeline"]["steps"] = steps(dice, platform);
    }
    if dice.chance(30) {
        let arguments = dice.some(3, |dice| json!({ "name": dice.text(&["PY", "A_1", "_b"], &["1", "a-b"], 5), "value": dice.text(&["3.13", "", "a b", "--x", "'"], HOSTILE, 30) }));
        object["spec"]["buildArgs"] = json!(arguments);
    }
    if dice.chance(30) {
        object["spec"]["labels"] = json!(map(dice, &["x", "", "a-b_c.d", "1"]));
    }
    if dice.chance(30) {
        object["spec"]["annotations"] = json!(map(dice, HOSTILE));
    }
    if dice.chance(10) {
        object["metadata"]["annotations"] = json!({ keys::ANNOTATION_REBUILD: dice.pick(HOSTILE) });
    }
    object
}

fn name(dice: &mut Dice, number: usize) -> String {
    let name = match dice.below(6) {
        0 => format!("{number}-{}", "x".repeat(dice.below(46))),
        1 => format!("{}-{number}", "a--b".repeat(dice.below(11))),
        2 => number.to_string(),
        _ => format!("weather-{number}"),
    };
    name.trim_start_matches('-').chars().take(48).collect::<String>().trim_end_matches('-').to_owned()
}

fn source(dice: &mut Dice, source: &mut Value) {
    source["sourceRepository"] = json!(dice.text(
        &[
            "github.com/acme/agents.git",
            "https://git.example.com:8443/a/b",
            "ssh://git@git.example.com:2222/a/b",
            "git@git.example.com:a/b.git",
            "https://[2001:db8::1]/a",
            "http://git.example.com/a"
        ],
        &["https://u:t@h/r", "file:///etc", "ext::sh", "-x", "", "github.com"],
        4,
    ));
    source["sourceRevision"] = json!(dice.text(
        &["main", "v1.4.2", "feature/x", "0123456789012345678901234567890123456789", "refs/pull/1/head"],
        HOSTILE,
        4
    ));
    source["sourceSubfolder"] = json!(dice.text(&["", ".", "a2a/weather", "a b/c", "é"], HOSTILE, 4));
    if dice.chance(40) {
        source["sourceCredentials"] = json!({ "name": dice.text(&["git-token", "a.b-c"], &["", "A_B"], 5) });
    }
    if dice.chance(20) {
        source["repoUser"] = json!(dice.text(&["octo", "first.last@example.com"], HOSTILE, 20));
    }
}

fn output(dice: &mut Dice, spec: &mut Value) {
    if dice.chance(4) {
        spec.as_object_mut().unwrap().remove("buildOutput");
        return;
    }
    let output = &mut spec["buildOutput"];
    output["imageRegistry"] = json!(dice.text(
        &["ghcr.io/acme", "localhost:5000", "r.example.com:443/a/b", "10.0.0.1:5000"],
        &["ghcr", "GHCR.io", "a/$(id)"],
        4
    ));
    output["image"] = json!(dice.text(&["weather", "a/b/c", "a.b_c-d"], &["A", "a:b", ""], 4));
    output["imageTag"] = json!(dice.text(&["v0.0.1", "latest", "_x", &"t".repeat(128)], &["", "-x", "a b"], 4));
    if dice.chance(40) {
        output["imageRepoCredentials"] = json!({ "name": "ghcr-secret" });
    }
}

fn parameter(dice: &mut Dice) -> Value {
    match dice.below(5) {
        0 => {
            let (name, values): (_, &[&str]) = match dice.below(4) {
                0 => ("pipeline-timeout", &["45m", "1h0m0s", "24h", "1m", "90s", "1.5h", "soon", "0s"]),
                1 => ("workspace-size", &["5Gi", "1", "1.5Gi", "500M", "much"]),
                2 => ("workspace-storage-class", &["fast", "a.b", "A B"]),
                _ => ("service-account", &["builder", "A_B"]),
            };
            json!({ "name": name, "value": dice.pick(values) })
        }
        _ => {
            json!({ "name": dice.text(NAMES, &["1a", "a b", "candidate-image", "push-image", "FAIL_ON"], 6), "value": dice.text(&["x", "", "true", "Dockerfile.prod", "a b"], HOSTILE, 25) })
        }
    }
}

fn map(dice: &mut Dice, values: &[&str]) -> BTreeMap<String, String> {
    let one = |dice: &mut Dice| {
        (
            dice.text(
                &["team", "example.com/a", "a_b.c", "tekton.dev/pipeline", "app.kubernetes.io/name", "kagenti.io/type"],
                &["a b", "-x", "x/y/z", ""],
                4,
            ),
            dice.pick(values).to_owned(),
        )
    };
    dice.some(3, one).into_iter().collect()
}

/// Steps of the user's: a pipeline of one to six, most of them referring to what is there.
fn steps(dice: &mut Dice, platform: &Platform) -> Value {
    let known: Vec<&String> = platform.view.steps(keys::OPERATOR_NAMESPACE).keys().collect();
    let mut steps: Vec<Value> = Vec::new();
    for number in 0..=dice.below(5) {
        let mut map = known[dice.below(known.len())];
        // A few throws for one that can be used: else hardly a pipeline could.
        for _ in 0..dice.below(12) {
            if platform.view.steps(keys::OPERATOR_NAMESPACE)[map].step.is_err() || map.starts_with("sign") {
                map = known[dice.below(known.len())];
            }
        }
        let mut step = json!({ "name": dice.text(&[&format!("s{number}")], &["s0", "A", "a.b", &"x".repeat(64), &"x".repeat(63)], 3), "configMap": map });
        let parameters = parameters(dice, platform, map, &steps);
        if !parameters.is_empty() {
            step["parameters"] = Value::Array(parameters);
        }
        if dice.chance(20) {
            let values = dice.some(2, |dice| dice.text(&["true", "", "a b"], HOSTILE, 20));
            step["whenExpressions"] = json!([{ "input": reference(dice, platform, &steps), "operator": dice.pick(&["in", "notin"]), "values": values }]);
        }
        if dice.chance(10) {
            step["enabled"] = json!(dice.chance(30));
        }
        if dice.chance(5) {
            step["requiredParameters"] = json!([dice.pick(NAMES)]);
        }
        steps.push(step);
    }
    Value::Array(steps)
}

/// A value for most parameters that the step declares without default, and for some others.
fn parameters(dice: &mut Dice, platform: &Platform, map: &str, before: &[Value]) -> Vec<Value> {
    let Ok(step) = &platform.view.steps(keys::OPERATOR_NAMESPACE)[map].step else { return Vec::new() };
    let mut parameters = Vec::new();
    for declared in &step.params {
        if dice.chance(if declared.default.is_none() { 90 } else { 25 }) {
            let value = match declared.kind.as_str() {
                "array" => dice.text(&["[\"a\",\"b\"]", "x", "[]"], HOSTILE, 20),
                "object" => dice.text(&["{\"key\":\"a\",\"other\":\"b\"}", "{\"key\":\"a\"}"], HOSTILE, 10),
                _ => dice.text(&["x", "", "a b"], HOSTILE, 20),
            };
            let value = if dice.chance(25) { reference(dice, platform, before) } else { value };
            parameters.push(json!({ "name": declared.name, "value": value }));
        }
    }
    parameters
}

/// A reference to what an earlier step says, most of the time.
fn reference(dice: &mut Dice, platform: &Platform, before: &[Value]) -> String {
    let fallback = |dice: &mut Dice| {
        dice.pick(&[
            "$(params.image)",
            "$(params.revision)",
            "$(context.pipelineRun.name)",
            "$(context.pipelineRun.uid)",
            "x",
            "$(params.nothing)",
        ])
        .to_owned()
    };
    if before.is_empty() || dice.chance(20) {
        return fallback(dice);
    }
    let step = &before[dice.below(before.len())];
    let entry = &platform.view.steps(keys::OPERATOR_NAMESPACE)[step["configMap"].as_str().unwrap()];
    let Ok(used) = &entry.step else { return fallback(dice) };
    let results: Vec<_> = used.results.iter().collect();
    if results.is_empty() {
        return fallback(dice);
    }
    let (result, kind) = results[dice.below(results.len())];
    let task = step["name"].as_str().unwrap();
    match (kind.as_str(), dice.below(10)) {
        (_, 0) => format!("$(tasks.{task}.results['{result}'])"),
        (_, 1) => format!("$(tasks.{task}.results[\"{result}\"])"),
        (_, 2) => format!("a-$(tasks.{task}.results.{result})-b"),
        ("array", 3..6) => format!("$(tasks.{task}.results.{result}[0])"),
        ("array", _) => format!("$(tasks.{task}.results.{result}[*])"),
        ("object", 3..8) => format!("$(tasks.{task}.results.{result}.key)"),
        ("object", _) => format!("$(tasks.{task}.results.{result}[*])"),
        _ => format!("$(tasks.{task}.results.{result})"),
    }
}
