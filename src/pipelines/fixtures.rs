//! Requests and steps for the tests of this room.

use std::collections::BTreeMap;

use serde_json::json;

use super::compose::{Composition, Surroundings, compose, examine};
use super::request::{BuildRequest, ImageParts, KAGENTI, Parameter, Source, StepUse, StepsFrom, When};
use super::settings::Settings;
use super::template::{self, Template};
use super::templates::{ConfigMapText, Steps, TemplatesView};
use crate::api::findings::Findings;
use crate::api::owner::Owner;
use crate::domain::keys;

/// The operator's namespace in tests.
pub(crate) const OPERATOR: &str = "kagenti-system";
/// A tenant's namespace in tests.
pub(crate) const TEAM: &str = "team1";

/// A step ConfigMap.
pub(crate) fn step_map(namespace: &str, name: &str, text: &str) -> ConfigMapText {
    ConfigMapText {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        labels: BTreeMap::from([(keys::LABEL_STEP.to_owned(), keys::LABEL_STEP_VALUE.to_owned())]),
        data: BTreeMap::from([(keys::KEY_TASK_SPEC.to_owned(), text.to_owned())]),
    }
}

/// A template ConfigMap.
pub(crate) fn template_map(namespace: &str, mode: &str, text: &str) -> ConfigMapText {
    ConfigMapText {
        namespace: namespace.to_owned(),
        name: format!("{}{mode}", keys::PREFIX_TEMPLATE),
        labels: BTreeMap::new(),
        data: BTreeMap::from([(keys::KEY_TEMPLATE.to_owned(), text.to_owned())]),
    }
}

/// The smallest TaskSpec, with these members besides its one Tekton step.
pub(crate) fn task_spec(members: &str) -> String {
    format!("{members}\nsteps:\n  - name: run\n    image: alpine:3.22@sha256:0\n    script: 'true'\n")
}

/// Steps in the operator's namespace.
pub(crate) fn steps(texts: &[(&str, &str)]) -> Steps {
    let maps = texts.iter().map(|(name, text)| step_map(OPERATOR, name, text));
    TemplatesView::new(OPERATOR, false).with(maps).steps(OPERATOR).clone()
}

/// A template, as its JSON.
pub(crate) fn template(text: &serde_json::Value) -> Template {
    template::parse("kagenti-system/pipeline-template-test", &text.to_string()).unwrap()
}

/// An enabled step without anything.
pub(crate) fn entry(name: &str, config_map: &str) -> StepUse {
    StepUse { name: name.to_owned(), config_map: config_map.to_owned(), enabled: true, ..StepUse::default() }
}

/// A condition on a step's result.
pub(crate) fn when(input: &str, value: &str) -> When {
    When { input: input.to_owned(), operator: "in".to_owned(), values: vec![value.to_owned()] }
}

/// Parameters from pairs.
pub(crate) fn parameters(pairs: &[(&str, &str)]) -> Vec<Parameter> {
    pairs.iter().map(|(name, value)| Parameter::new(*name, *value)).collect()
}

/// A build of mode custom with these steps of its user's.
pub(crate) fn request(steps: Vec<StepUse>) -> BuildRequest {
    BuildRequest {
        front: KAGENTI,
        owner: Owner { name: "weather-build".to_owned(), namespace: TEAM.to_owned(), uid: "u-1".to_owned() },
        mode: "custom".to_owned(),
        gated: false,
        source: Source {
            repository: "github.com/kagenti/agent-examples.git".to_owned(),
            revision: "main".to_owned(),
            subfolder: "a2a/weather".to_owned(),
            user: String::new(),
        },
        git_auth: None,
        image: Some(ImageParts { registry: "reg:5000".to_owned(), image: "weather".to_owned(), tag: "v1".to_owned() }),
        registry_auth: None,
        login: None,
        derived: Vec::new(),
        template: None,
        steps,
        steps_namespace: OPERATOR.to_owned(),
        steps_from: StepsFrom::User,
        parameters: Vec::new(),
        build_arguments: Vec::new(),
        workspace_size: "1Gi".to_owned(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        identity: json!({"spec": {}, "rebuild": ""}),
        attempt: 1,
        pinned_steps: BTreeMap::new(),
    }
}

/// The same request, with steps and defaults of this template.
pub(crate) fn from_template(mut request: BuildRequest, template: &serde_json::Value) -> BuildRequest {
    let template = self::template(template);
    request.steps = template.steps_of_build();
    request.steps_from = StepsFrom::Template;
    request.template = Some(template.into());
    request
}

/// The composition with built-in settings.
pub(crate) fn composed(request: &BuildRequest, steps: &Steps) -> Result<Composition, Findings> {
    compose(request, Surroundings { steps, settings: &Settings::new(OPERATOR), accounts: None })
}

/// What is found without composing.
pub(crate) fn examined(request: &BuildRequest, steps: &Steps) -> Findings {
    examine(request, Surroundings { steps, settings: &Settings::new(OPERATOR), accounts: None })
}

/// The parameters of the task of that name, by name.
pub(crate) fn task_params(run: &serde_json::Value, task: &str) -> BTreeMap<String, serde_json::Value> {
    let task = self::task(run, task);
    let params = task["params"].as_array().cloned().unwrap_or_default();
    params.iter().map(|one| (one["name"].as_str().unwrap().to_owned(), one["value"].clone())).collect()
}

/// The task of that name.
pub(crate) fn task<'r>(run: &'r serde_json::Value, name: &str) -> &'r serde_json::Value {
    let tasks = run["spec"]["pipelineSpec"]["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["name"] == name).unwrap_or_else(|| panic!("no task {name}"))
}

/// One step `one` with these members, in the operator's namespace.
pub(crate) fn one_step(members: &str) -> Steps {
    steps(&[("one", &task_spec(members))])
}
