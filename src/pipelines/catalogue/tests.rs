//! The shipped steps and templates: that they can be used, that they compose, and that their scripts do what they say.

mod archive;
mod clone;
mod place;
mod scripts;
mod shapes;

use serde_json::Value;

use super::{CatalogueError, IMAGES, Values, config_maps};
use crate::domain::keys;
use crate::pipelines::fixtures::OPERATOR;
use crate::pipelines::templates::TemplatesView;

fn shipped() -> TemplatesView {
    TemplatesView::new(OPERATOR, false).with(config_maps(OPERATOR, &Values::default()))
}

/// Every string of a TaskSpec, with its path.
fn strings(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => out.push((path.to_owned(), text.clone())),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| strings(item, &format!("{path}[{i}]"), out))
        }
        Value::Object(members) => members.iter().for_each(|(key, item)| strings(item, &format!("{path}.{key}"), out)),
        _ => {}
    }
}

#[test]
fn every_step_and_template_can_be_used() {
    for config_map in config_maps("anywhere", &Values::default()) {
        // Not even trusted: no step is privileged or takes the node's files.
        if let Some(text) = config_map.data.get(keys::KEY_TASK_SPEC) {
            let step = crate::pipelines::step::parse(&config_map.name, text, false)
                .unwrap_or_else(|faults| panic!("{faults:#?}"));
            assert_eq!(step.notes, [], "{}", config_map.name);
            assert!(step.propagated.is_empty(), "{}: {:?}", config_map.name, step.propagated);
            assert_eq!(config_map.labels[keys::LABEL_STEP], keys::LABEL_STEP_VALUE);
        } else {
            let text = &config_map.data[keys::KEY_TEMPLATE];
            let template = crate::pipelines::template::parse(&config_map.name, text).unwrap();
            for entry in &template.steps {
                assert!(shipped().steps(OPERATOR).contains_key(&entry.step.config_map), "{}", entry.step.config_map);
            }
            assert!(config_map.name.ends_with(&config_map.labels[keys::LABEL_TEMPLATE_MODE]));
        }
    }
}

#[test]
fn images_come_from_the_table_and_nowhere_else() {
    let published: Vec<_> = IMAGES.iter().map(|(_, image, _)| *image).collect();
    let mut used = std::collections::BTreeSet::new();
    for (name, entry) in shipped().steps(OPERATOR) {
        let step = entry.step.as_ref().unwrap();
        let mut all = Vec::new();
        strings(&step.task_spec, "", &mut all);
        assert!(!entry_text(name).contains("@{") || all.iter().all(|(_, text)| !text.contains("@{")), "{name}");
        for (path, image) in all.iter().filter(|(path, _)| path.ends_with(".image")) {
            let is_built = image == "$(params.image-ref)" || image == "$(params.BUILDER_IMAGE)";
            assert!(is_built || published.contains(&image.as_str()), "{name}{path}: {image}");
            used.insert(image.clone());
        }
        used.extend(step.params.iter().filter_map(|param| param.default.as_ref()?.as_str().map(str::to_owned)));
    }
    for (key, image, _) in IMAGES {
        assert!(used.contains(image), "no step uses {key}");
        assert!(!image.ends_with(":latest") && image.rsplit('/').next().unwrap().contains(':'), "{image}");
    }
}

fn entry_text(name: &str) -> &'static str {
    super::STEPS.iter().find(|(step, _)| *step == name).unwrap().1
}

#[test]
fn users_values_never_stand_in_scripts_and_no_parameter_is_a_credential() {
    for (name, entry) in shipped().steps(OPERATOR) {
        let step = entry.step.as_ref().unwrap();
        let mut all = Vec::new();
        strings(&step.task_spec, "", &mut all);
        for (path, text) in all.iter().filter(|(path, _)| path.ends_with(".script")) {
            for word in ["$(params", "$(workspaces", "$(results", "$(context", "$(tasks"] {
                assert!(!text.contains(word), "{name}{path} contains {word}");
            }
            assert!(text.starts_with("#!/bin/sh\nset -eu\n"), "{name}{path}");
        }
        for param in &step.params {
            let lower = param.name.to_lowercase();
            assert!(!["token", "password", "key"].iter().any(|word| lower.contains(word)), "{name}: {}", param.name);
        }
    }
}

/// 13.1: what runs the built image sees no credential and no evidence.
#[test]
fn tasks_that_run_the_image_bind_nothing() {
    for name in ["container-test-step", "smoke-test-step"] {
        let steps = shipped();
        let step = steps.steps(OPERATOR)[name].step.as_ref().unwrap().clone();
        assert!(step.workspaces.is_empty(), "{name}");
    }
}

/// 12.3: what the security context of every container is.
#[test]
fn every_container_is_locked_down() {
    for (name, entry) in shipped().steps(OPERATOR) {
        let spec = &entry.step.as_ref().unwrap().task_spec;
        let shared = spec.pointer("/stepTemplate/securityContext");
        for list in ["steps", "sidecars"] {
            for container in spec.get(list).and_then(Value::as_array).into_iter().flatten() {
                let own = container.get("securityContext");
                let field = |key: &str| {
                    let shared = shared.filter(|_| list == "steps");
                    own.and_then(|own| own.get(key)).or_else(|| shared.and_then(|shared| shared.get(key))).cloned()
                };
                assert_eq!(field("runAsNonRoot"), Some(Value::Bool(true)), "{name}");
                assert!(field("seccompProfile").is_some(), "{name}");
                if ["buildah-build-step", "image-build-archive-step"].contains(&&**name) {
                    assert_eq!(field("allowPrivilegeEscalation"), None, "its id-map helpers have file capabilities");
                } else {
                    assert_eq!(field("allowPrivilegeEscalation"), Some(Value::Bool(false)), "{name}");
                    assert_eq!(field("capabilities").unwrap()["drop"][0], "ALL", "{name}");
                }
            }
        }
    }
}

#[test]
fn values_replace_images_and_users() {
    let digest = format!("mirror.example:5000/alpine@sha256:{}", "0".repeat(64));
    let values = Values::default().with_image("alpine", &digest).unwrap();
    let by_tag = values.images.values().filter(|image| !image.contains("@sha256:")).count();
    assert_eq!(by_tag, IMAGES.len() - 1);
    let maps = config_maps(OPERATOR, &values);
    assert!(maps.iter().any(|map| map.data.values().any(|text| text.contains(&digest))));
    let error = Values::default().with_image("apline", "x").unwrap_err();
    assert_eq!(error.to_string(), "no step uses an image apline; did you mean alpine?");
    let error = Values::default().with_image("alpine", "x\"y").unwrap_err();
    assert!(matches!(error, CatalogueError::NotAnImage { .. }));
    let open = Values { openshift: true, ..Values::default() };
    for map in config_maps(OPERATOR, &open) {
        assert!(map.data.values().all(|text| !text.contains("runAsUser")), "{}", map.name);
        let Some(text) = map.data.get(keys::KEY_TASK_SPEC) else { continue };
        let step = crate::pipelines::step::parse(&map.name, text, false).unwrap_or_else(|faults| panic!("{faults:#?}"));
        assert!(!step.task_spec.to_string().contains(",,"));
    }
}
