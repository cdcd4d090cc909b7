//! What the view knows of which ConfigMap.

use super::{ConfigMapText, TemplatesView};
use crate::pipelines::fixtures::{OPERATOR, TEAM, step_map, task_spec, template_map};

const TEMPLATE: &str = r#"{"name": "t", "steps": [{"name": "a", "configMap": "c"}]}"#;

#[test]
fn templates_by_mode_and_steps_by_label() {
    let text = task_spec("");
    let unlabelled = |namespace| ConfigMapText { labels: Default::default(), ..step_map(namespace, "plain", &text) };
    let mut view = TemplatesView::new(OPERATOR, false).with([
        template_map(OPERATOR, "dev", TEMPLATE),
        template_map(TEAM, "own", "{"),
        step_map(TEAM, "labelled", &text),
        unlabelled(TEAM),
        unlabelled(OPERATOR),
        ConfigMapText { namespace: OPERATOR.to_owned(), name: "something".to_owned(), ..ConfigMapText::default() },
    ]);
    assert!(view.template(OPERATOR, "dev").is_some_and(|entry| entry.template.is_ok() && entry.hash.len() == 64));
    assert!(view.template(TEAM, "own").is_some_and(|entry| entry.template.is_err()));
    assert_eq!(view.modes(OPERATOR).collect::<Vec<_>>(), ["dev"]);
    assert_eq!(view.steps(TEAM).keys().collect::<Vec<_>>(), ["labelled"]);
    assert_eq!(view.steps(OPERATOR).keys().collect::<Vec<_>>(), ["plain"]);
    view.remove(OPERATOR, "pipeline-template-dev");
    view.remove(TEAM, "labelled");
    assert!(view.template(OPERATOR, "dev").is_none() && view.steps(TEAM).is_empty());
}

#[test]
fn a_missing_key_names_key_and_config_map() {
    let empty = |mut map: ConfigMapText| {
        map.data.clear();
        map
    };
    let view = TemplatesView::new(OPERATOR, false)
        .with([empty(template_map(OPERATOR, "dev", "")), empty(step_map(OPERATOR, "clone", ""))]);
    let template = view.template(OPERATOR, "dev").unwrap().template.clone().unwrap_err();
    assert!(
        template[0].to_string().contains("template.json") && template[0].to_string().contains("pipeline-template-dev")
    );
    let step = view.steps(OPERATOR)["clone"].step.clone().unwrap_err();
    assert!(step[0].to_string().contains("task-spec.yaml not found in ConfigMap clone"));
}

/// Upstream's users had to write kagenti-system, wherever the operator lives.
#[test]
fn kagenti_system_means_the_operators_namespace_when_it_is_empty() {
    let mut view = TemplatesView::new("drawbridge", false).with([template_map("drawbridge", "dev", TEMPLATE)]);
    assert_eq!(view.namespace("kagenti-system"), "drawbridge");
    assert!(view.template("kagenti-system", "dev").is_some());
    view.insert(&template_map("kagenti-system", "prod", TEMPLATE));
    assert_eq!(view.namespace("kagenti-system"), "kagenti-system");
    assert_eq!(view.namespace("team1"), "team1");
}
