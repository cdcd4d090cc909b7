//! ConfigMaps of builds. In: texts, divided by lines of `%%`: a `template.json`, then the `task-spec.yaml` of any number of steps. Laws: equal texts
//! are read equally; a fault names the ConfigMap, has a remedy and is told once; the platform's own ConfigMaps may do all that a tenant's may; a
//! TaskSpec is kept as it was written, but for parameters' defaults that are numbers; a template gives no step that it has not; what composes
//! embeds the TaskSpecs that were read, and leaves no placeholder.
#![no_main]

use drawbridge::api::yaml;
use drawbridge::pipelines::agent_build::{Change, complete, read};
use drawbridge::pipelines::compose::{Surroundings, compose};
use drawbridge::api::findings::Fault;
use drawbridge::pipelines::templates::TemplatesView;
use drawbridge::pipelines::{step, template};
use drawbridge_fuzz::builds;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let text = drawbridge_fuzz::text(data);
    let mut texts = text.split("\n%%\n");
    let of_template = texts.next().unwrap_or_default();
    let steps: Vec<&str> = texts.take(6).collect();
    read_template(of_template);
    steps.iter().for_each(|text| read_step(text));
    composed(of_template, &steps);
});

fn told(faults: &[Fault], config_map: &str) {
    assert!(!faults.is_empty(), "refused without a word");
    for (index, fault) in faults.iter().enumerate() {
        assert!(fault.path.starts_with(&format!("ConfigMap {config_map}: ")), "{}", fault.path);
        assert!(!fault.remedy.is_empty() && !fault.sentence.is_empty(), "{fault}");
        assert!(!faults[..index].contains(fault), "told twice: {fault}");
    }
}

fn read_template(text: &str) {
    let read = template::parse("team1/pipeline-template-dev", text);
    assert_eq!(read, template::parse("team1/pipeline-template-dev", text));
    match read {
        Err(faults) => told(&faults, "team1/pipeline-template-dev"),
        Ok(template) => {
            assert!(template.steps.len() <= template::MAX_STEPS);
            assert!(
                template
                    .steps_of_build()
                    .iter()
                    .all(|step| step.enabled && !step.name.is_empty() && !step.config_map.is_empty())
            );
        }
    }
}

fn read_step(text: &str) {
    let read = step::parse("team1/one", text, false);
    assert_eq!(read, step::parse("team1/one", text, false));
    let trusted = step::parse("team1/one", text, true);
    match read {
        Err(faults) => told(&faults, "team1/one"),
        Ok(step) => {
            assert_eq!(trusted, Ok(step), "what a tenant may do the platform may not, or is read differently");
        }
    }
    let Ok(step) = trusted else { return };
    let mut written = yaml::parse(text).expect("what was read is YAML").to_json();
    let mut kept = step.task_spec.clone();
    for spec in [&mut written, &mut kept] {
        for param in
            spec.get_mut("params").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
        {
            param.remove("default");
        }
    }
    assert_eq!(written, kept, "the TaskSpec was changed");
    assert_eq!(step.size, text.len());
}

/// A build whose steps are the template's, in mode `dev` of its own namespace.
fn composed(of_template: &str, steps: &[&str]) {
    let settings = builds::settings(0).pipelines;
    let mut view = TemplatesView::new(&*settings.operator_namespace, false);
    view.insert(&builds::template("team1", "dev", of_template));
    for (index, text) in steps.iter().enumerate() {
        view.insert(&builds::step("team1", &format!("step-{index}"), text));
    }
    let mut object = json!({
        "metadata": {"name": "weather-build", "namespace": "team1", "uid": "u-1"},
        "spec": {
            "mode": "dev",
            "source": {"sourceRepository": "github.com/acme/agent.git", "sourceRevision": "v1", "sourceSubfolder": "a"},
            "buildOutput": {"imageRegistry": "registry.example", "image": "weather", "imageTag": "v1"},
            "pipeline": {"namespace": "team1"},
        },
    });
    let operations = complete(&Change { namespace: "team1", object: &object, old: None }, &view, &settings);
    json_patch::patch(&mut object, &operations).expect("what completes an object applies to it");
    assert_eq!(
        complete(&Change { namespace: "team1", object: &object, old: None }, &view, &settings),
        [],
        "completed twice"
    );
    let (request, _) = read(&object, "team1", &view, 1);
    let around = Surroundings { steps: view.steps("team1"), settings: &settings, accounts: None };
    let composed = compose(&request, around);
    assert_eq!(composed, compose(&request, around));
    let Ok(composition) = composed else { return };
    let tasks = composition.run.pointer("/spec/pipelineSpec/tasks").and_then(Value::as_array).expect("a run has tasks");
    assert!(!tasks.is_empty() && tasks.len() <= request.steps.len());
    for task in tasks {
        let used = request.steps.iter().find(|step| step.name == task["name"]).expect("a task is a step of the build");
        let entry = &view.steps("team1")[&used.config_map];
        let step = entry.step.as_ref().expect("what composes was read");
        for (key, value) in step.task_spec.as_object().into_iter().flatten() {
            // The platform adds to these where it has something to add.
            let added_to =
                ["params", "steps", "stepTemplate", "workspaces", "volumes", "sidecars"].contains(&key.as_str());
            assert!(added_to || task["taskSpec"].get(key) == Some(value), "{key} of the TaskSpec is changed");
        }
        // A default of a TaskSpec is passed on as it is; values of templates are filled in.
        let defaults = step.task_spec.get("params").map(Value::to_string).unwrap_or_default();
        let left =
            task["params"].as_array().into_iter().flatten().find(|param| param["value"].to_string().contains("{{."));
        assert!(left.is_none() || defaults.contains("{{"), "a placeholder is left: {left:?}");
    }
}
