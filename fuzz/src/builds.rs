//! What ConfigMaps and the platform say about builds, in ways that differ in everything a review or a composition reads.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use drawbridge::config::builds::Settings;
use drawbridge::config::builds::{Builds, Names};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge::pipelines::catalogue::{Values, config_maps};
use drawbridge::pipelines::templates::{ConfigMapText, TemplatesView};
use drawbridge::workloads::settings::Lockdown;
use serde_json::json;

use super::worlds;

/// How many worlds there are.
pub const WORLDS: usize = 4;

/// A TaskSpec of a tenant: parameters of every type, results, a propagated variable, and a member nobody knows.
const SCAN: &str = r#"
params:
- {name: image, type: string}
- {name: tag, default: 1}
- {name: list, type: array, default: [a]}
- {name: BUILD_ARGS, type: array, default: []}
results: [{name: x}, {name: IMAGE_URL}, {name: IMAGE_DIGEST}]
workspaces: [{name: source, optional: true}]
zzFuture: {a: [1.50, null]}
steps:
- name: run
  image: alpine:3.22
  env: [{name: IMAGE, value: $(params.image)}]
  script: echo "$IMAGE"
"#;

/// Steps that cannot be used: privileged, and no TaskSpec at all.
const BROKEN: [(&str, &str); 2] = [
    ("broken-step", "steps: [{name: run, image: 'alpine:3.22', script: 'true', securityContext: {privileged: true}}]"),
    ("no-step", "steps: {"),
];

/// Placeholders in every place that may have one.
const TEMPLATE: &str = r#"{
  "name": "team", "zzFuture": 1,
  "requiredParameters": ["image"],
  "globalParameters": [{"name": "note", "value": "{{.revision}}"}, {"name": "pipeline-timeout", "value": "20m"}],
  "steps": [
    {"name": "clone", "configMap": "github-clone-step", "enabled": true},
    {"name": "scan", "configMap": "scan-step", "defaultParameters": [{"name": "image", "value": "{{.image}}"}, {"name": "tag", "value": "{{.revision}}"}]},
    {"name": "off", "configMap": "missing-step", "enabled": false}
  ]
}"#;

static SNAPSHOTS: LazyLock<Vec<Snapshot>> = LazyLock::new(|| (0..WORLDS).map(snapshot).collect());

/// The world that `selector` stands for.
#[must_use]
pub fn world(selector: u8) -> &'static Snapshot {
    &SNAPSHOTS[usize::from(selector) % WORLDS]
}

/// A step ConfigMap.
#[must_use]
pub fn step(namespace: &str, name: &str, text: &str) -> ConfigMapText {
    config_map(namespace, name, keys::KEY_TASK_SPEC, text)
}

/// A template ConfigMap.
#[must_use]
pub fn template(namespace: &str, mode: &str, text: &str) -> ConfigMapText {
    config_map(namespace, &format!("{}{mode}", keys::PREFIX_TEMPLATE), keys::KEY_TEMPLATE, text)
}

fn config_map(namespace: &str, name: &str, key: &str, text: &str) -> ConfigMapText {
    ConfigMapText {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: BTreeMap::from([(keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned())]),
        data: BTreeMap::from([(key.to_owned(), text.to_owned())]),
    }
}

/// The settings of a world.
#[must_use]
pub fn settings(world: usize) -> Settings {
    let mut settings = Settings::new(if world == 1 { "drawbridge-system" } else { "kagenti-system" });
    if world == 1 {
        settings.workloads.lockdown = Lockdown::Enforce;
        settings.pipelines.openshift = true;
        settings.workloads.openshift = true;
        settings.pipelines.insecure_git = true;
        settings.pipelines.require_git_hosts = true;
        settings.pipelines.privileged_steps = true;
        settings.pipelines.pipeline_namespaces = ["shared".to_owned()].into();
        settings.pipelines.trust_bundle = Some("corporate-ca".to_owned());
        settings.pipelines.environment = BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://proxy:3128".to_owned())]);
        settings.pipelines.node_selector = BTreeMap::from([("pool".to_owned(), "builds".to_owned())]);
        settings.pipelines.tolerations = vec![json!({"key": "builds", "operator": "Exists"})];
        settings.pipelines.resources = Some(json!({"limits": {"memory": "1Gi"}}));
    }
    settings
}

fn snapshot(world: usize) -> Snapshot {
    let settings = settings(world);
    let operator = settings.pipelines.operator_namespace.clone();
    let mut view = TemplatesView::new(&*operator, settings.pipelines.privileged_steps);
    if world != 3 {
        let mut values = Values::default();
        values.openshift = settings.pipelines.openshift;
        view = view.with(config_maps(&operator, &values));
    }
    for namespace in ["team1", "shared", &operator] {
        if world == 1 || world == 2 {
            view.insert(&step(namespace, "scan-step", SCAN));
            view.insert(&template(namespace, "dev-local", TEMPLATE));
            BROKEN.iter().for_each(|(name, text)| view.insert(&step(namespace, name, text)));
        }
    }
    if world == 2 {
        view.insert(&template("team1", "prod", "{\"steps\": 1}"));
    }
    let names = (world != 2).then(|| Names::from([("team1".into(), ["weather-build".to_owned()].into())]));
    worlds::world(0).clone().with_builds(Arc::new(Builds { settings, view, names }))
}
