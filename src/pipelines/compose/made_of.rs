//! What a run is made of, as far as it decides the image.
//!
//! In: a request that was looked at; its run. Out: the record that the status holds of it; its recipe. Promises: the recipe is that of
//! everything that the run says but the commit, what waits for it (time, room, whose claim) and what belongs to one attempt; no text of the
//! record is longer than [`TEXT`], and what was left out of it is counted.

use serde_json::{Value, json};

use super::Examined;
use super::task::Task;
use crate::api::agent_kagenti_dev::provenance::{ENTRIES, Provenance, STEPS, StepSource, TEXT};
use crate::api::digest;
use crate::domain::keys;
use crate::pipelines::params::derive::CANDIDATE_IMAGE;
use crate::pipelines::params::{BUILD_ARGS, Traced};
use crate::pipelines::reference::{self, Part, Target};

/// The parameter that names the Dockerfile.
const DOCKERFILE: &str = "DOCKERFILE";
/// Bytes of the recipe's annotation in a run.
pub(super) const ROOM: usize = r#""":"","#.len() + keys::ANNOTATION_RECIPE.len() + 64;
/// What stands before a build argument in the list that a step is passed.
const ARGUMENT: &str = "--build-arg=";
/// What a run is told of a build without a subfolder.
const ROOT: &str = ".";
/// The parameter that names the commit.
pub(super) const REVISION: &str = "revision";

/// The record of a run, but for its recipe.
pub(super) fn of(examined: &Examined<'_>) -> Provenance {
    let source = &examined.request.source;
    let told = |name: &str, otherwise: &str| {
        let given = examined.tasks.iter().find_map(|task| text(task, name));
        Some(given.unwrap_or(otherwise)).filter(|text| !text.is_empty()).map(bounded)
    };
    Provenance {
        build_hash: Some(examined.build_hash.clone()),
        attempt: i32::try_from(examined.request.attempt).ok(),
        repository: told("repo-url", &source.repository),
        revision: told(REVISION, &source.revision),
        subfolder: told("subfolder-path", if source.subfolder.is_empty() { ROOT } else { &source.subfolder }),
        steps: examined.tasks.iter().take(STEPS).map(step).collect(),
        ..Provenance::default()
    }
}

fn step(task: &Task<'_>) -> StepSource {
    let arguments: Vec<&str> = traced(task, BUILD_ARGS)
        .and_then(|traced| traced.origin.value.as_array())
        .map(|items| items.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let omitted = i32::try_from(arguments.len().saturating_sub(ENTRIES)).ok().filter(|count| *count > 0);
    StepSource {
        name: bounded(task.name()),
        config_map: Some(bounded(&task.step.config_map)),
        content_hash: Some(task.step.hash.clone()),
        dockerfile: text(task, DOCKERFILE).map(bounded),
        build_arguments: arguments.into_iter().take(ENTRIES).map(argument).collect(),
        build_arguments_omitted: omitted,
        images: images(task).into_iter().take(ENTRIES).map(|image| bounded(&image)).collect(),
        ..StepSource::default()
    }
}

fn traced<'t>(task: &'t Task<'_>, name: &str) -> Option<&'t Traced> {
    task.parameters.traced.iter().find(|traced| traced.parameter == name)
}

fn text<'t>(task: &'t Task<'_>, name: &str) -> Option<&'t str> {
    traced(task, name)?.origin.value.as_str().filter(|text| !text.is_empty())
}

/// `NAME=VALUE`, or the digest of a value that is too long for a record.
fn argument(passed: &str) -> String {
    let pair = passed.strip_prefix(ARGUMENT).unwrap_or(passed);
    match pair.split_once('=') {
        Some((name, value)) if pair.len() > TEXT => {
            bounded(&format!("{name}=sha256:{}", digest::of_bytes(value.as_bytes())))
        }
        _ => bounded(pair),
    }
}

/// The text, or its beginning.
fn bounded(text: &str) -> String {
    let mut end = text.len().min(TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// The images of a task's containers, with its parameters filled in.
pub(super) fn images(task: &Task<'_>) -> Vec<String> {
    let spec = &task.step.task_spec;
    let of_list = |list: &str| {
        let all = spec.get(list).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(|one| one.get("image")?.as_str()).collect::<Vec<_>>()
    };
    let template = spec.pointer("/stepTemplate/image").and_then(Value::as_str);
    let all = of_list("steps").into_iter().chain(of_list("sidecars")).chain(template);
    all.map(|image| filled(task, image)).collect()
}

/// Whether each of a task's containers has an image that is named by digest.
pub(super) fn is_pinned(task: &Task<'_>) -> bool {
    let spec = &task.step.task_spec;
    let own = |one: &Value| one.get("image").and_then(Value::as_str).map(|image| by_digest(&filled(task, image)));
    let template = spec.get("stepTemplate").and_then(own);
    let of_list = |list: &str, otherwise: Option<bool>| {
        let all = spec.get(list).and_then(Value::as_array).into_iter().flatten();
        // What is neither named here nor by the template comes from elsewhere.
        all.into_iter().all(|one| one.get("ref").is_none() && own(one).or(otherwise).unwrap_or(false))
    };
    of_list("steps", template) && of_list("sidecars", None)
}

fn by_digest(image: &str) -> bool {
    let digest = image.rsplit_once("@sha256:").map_or("", |(_, hex)| hex);
    digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// The image with the parameters of its task filled in, once: what a parameter says is no reference any more.
fn filled(task: &Task<'_>, image: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(image.len()), image);
    for one in reference::in_text(image) {
        let Target::Param { name, part: Part::Whole } = one.target else { continue };
        let Some(value) = traced(task, name).and_then(|traced| traced.origin.value.as_str()) else { continue };
        if let Some((before, after)) = rest.split_once(one.text) {
            text = text + before + value;
            rest = after;
        }
    }
    text + rest
}

/// The digest of everything in a run's spec that decides the image, but the commit. What only decides when, in how much room and under which
/// attempt it is built does not count; everything else does, known or not.
pub(super) fn recipe(run: &Value) -> String {
    let mut spec = run.get("spec").cloned().unwrap_or_default();
    if let Some(members) = spec.as_object_mut() {
        for member in ["timeouts", "taskRunSpecs", "status"] {
            members.remove(member);
        }
    }
    blank(spec.get_mut("params"));
    for path in ["/pipelineSpec/tasks", "/pipelineSpec/finally"] {
        for task in spec.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten() {
            blank(task.get_mut("params"));
        }
    }
    for workspace in spec.get_mut("workspaces").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(claim) = workspace.get_mut("persistentVolumeClaim") {
            claim["claimName"] = Value::Null;
        }
    }
    digest::of_json(&spec)
}

fn blank(parameters: Option<&mut Value>) {
    for one in parameters.and_then(Value::as_array_mut).into_iter().flatten() {
        let name = one.get("name").and_then(Value::as_str);
        if name.is_some_and(|name| [REVISION, CANDIDATE_IMAGE].contains(&name)) {
            one["value"] = json!(null);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TEXT, argument, bounded, recipe};
    use crate::api::digest;
    use crate::pipelines::compose::{Composition, Surroundings, compose};
    use crate::pipelines::fixtures::{entry, parameters, request, steps};
    use crate::pipelines::request::BuildRequest;
    use crate::pipelines::settings::Settings;

    const CLONE: &str = "params: [{name: repo-url}, {name: revision}]\nsteps: [{name: clone, image: git:1}]\n";
    const BUILD: &str = "params: [{name: DOCKERFILE, default: Dockerfile}, {name: BUILDER, default: \"buildah@sha256:1\"}, \
        {name: BUILD_ARGS, type: array, default: []}]\nsteps: [{name: build, image: $(params.BUILDER)}]\n\
        sidecars: [{name: cache, image: cache:1}]\n";

    fn composed(change: impl FnOnce(&mut BuildRequest)) -> Composition {
        let mut request = request(vec![entry("clone", "clone"), entry("build", "build")]);
        change(&mut request);
        let steps = steps(&[("clone", CLONE), ("build", BUILD)]);
        let settings = Settings::new("kagenti-system");
        compose(&request, Surroundings { steps: &steps, settings: &settings, accounts: None }).unwrap().recorded()
    }

    #[test]
    fn a_record_says_what_the_run_was_told_and_by_which_images_it_is_built() {
        let made = composed(|request| {
            request.parameters = parameters(&[("revision", "override"), ("DOCKERFILE", "docker/Agent")]);
            request.build_arguments = parameters(&[("PIP", "internal"), ("LONG", &"x".repeat(TEXT))]);
        });
        let inputs = &made.inputs;
        assert_eq!(inputs.build_hash.as_deref(), Some(&*made.build_hash));
        assert_eq!(
            (inputs.revision.as_deref(), inputs.attempt),
            (Some("override"), Some(1)),
            "the run's, not the field"
        );
        let [clone, build] = &inputs.steps[..] else { panic!("{inputs:?}") };
        assert_eq!((&clone.images, &clone.dockerfile), (&vec!["git:1".to_owned()], &None));
        assert_eq!(build.images, ["buildah@sha256:1", "cache:1"]);
        assert_eq!(
            (build.dockerfile.as_deref(), build.config_map.as_deref()),
            (Some("docker/Agent"), Some("kagenti-system/build"))
        );
        let long = format!("LONG=sha256:{}", digest::of_bytes("x".repeat(TEXT).as_bytes()));
        assert_eq!(build.build_arguments, ["PIP=internal".to_owned(), long]);
        assert_eq!(made.run["metadata"]["annotations"]["agent.kagenti.dev/recipe"], json!(inputs.recipe));
    }

    #[test]
    fn what_is_left_out_is_counted_and_no_text_is_longer_than_it_may_be() {
        let many: Vec<_> = (0..40).map(|number| (format!("A{number}"), "é".repeat(TEXT))).collect();
        let many: Vec<_> = many.iter().map(|(name, value)| (&**name, &**value)).collect();
        let made = composed(|request| request.build_arguments = parameters(&many));
        let build = &made.inputs.steps[1];
        assert_eq!((build.build_arguments.len(), build.build_arguments_omitted), (32, Some(8)));
        assert!(build.build_arguments.iter().all(|one| one.len() <= TEXT));
        assert_eq!(bounded(&"é".repeat(TEXT)).len(), TEXT);
        assert_eq!(argument("--build-arg=FLAG"), "FLAG");
    }

    #[test]
    fn images_are_named_with_the_parameters_of_their_task() {
        let text = "params: [{name: A, default: one}, {name: B, default: two}]\n\
            steps: [{name: a, image: $(params.A)/x-$(params.B):$(params.A)}, {name: b, image: \"reg/$(params['B']):$(params.C)\"}]\n";
        let mut request = request(vec![entry("clone", "clone")]);
        request.parameters = parameters(&[("C", "of the run")]);
        let (steps, settings) = (steps(&[("clone", text)]), Settings::new("kagenti-system"));
        let around = Surroundings { steps: &steps, settings: &settings, accounts: None };
        assert_eq!(compose(&request, around).unwrap().inputs.steps[0].images, ["one/x-two:one", "reg/two:$(params.C)"]);
    }

    /// An image by tag is another one tomorrow, wherever it is named.
    #[test]
    fn only_images_by_digest_are_content() {
        let digest = format!("reg/x@sha256:{}", "a".repeat(64));
        let pinned = |text: &str, builder: &str| {
            let mut request = request(vec![entry("clone", "clone")]);
            request.parameters = parameters(&[("BUILDER", builder)]);
            let text = format!("params: [{{name: BUILDER, default: x}}]\n{}", text.replace("DIGEST", &digest));
            let steps = steps(&[("clone", &text)]);
            let settings = Settings { by_content: true, ..Settings::new("kagenti-system") };
            compose(&request, Surroundings { steps: &steps, settings: &settings, accounts: None }).unwrap().pinned
        };
        assert!(pinned("steps: [{name: a, image: DIGEST}, {name: b, image: $(params.BUILDER)}]", &digest));
        assert!(pinned("stepTemplate: {image: DIGEST}\nsteps: [{name: a, script: x}]", ""));
        for (text, builder) in [
            ("steps: [{name: a, image: \"reg/x:1\"}]", ""),
            ("steps: [{name: a, image: DIGEST}, {name: b, image: $(params.BUILDER)}]", "reg/x:1"),
            ("steps: [{name: a, image: DIGEST}]\nsidecars: [{name: s, image: \"reg/x:1\"}]", ""),
            ("steps: [{name: a, image: DIGEST0}]", ""),
        ] {
            assert!(!pinned(text, builder), "{text}");
        }
    }

    /// The recipe knows every input but the commit, the attempt, and what only says when and where it is built.
    #[test]
    fn the_recipe_is_that_of_everything_but_the_commit() {
        let of = |change: fn(&mut BuildRequest)| composed(change).inputs.recipe;
        let plain = of(|_| {});
        for same in [
            of(|request| request.source.revision = "f".repeat(40)),
            of(|request| request.attempt = 3),
            of(|request| request.owner.uid = "another".into()),
            of(|request| request.owner.name = "another".into()),
            of(|request| request.identity = json!({"rebuild": "now"})),
            of(|request| request.parameters = parameters(&[("pipeline-timeout", "45m"), ("workspace-size", "9Gi")])),
        ] {
            assert_eq!(same, plain);
        }
        for other in [
            of(|request| request.source.repository = "github.com/evil/agent.git".into()),
            of(|request| request.source.subfolder = "other".into()),
            of(|request| request.parameters = parameters(&[("DOCKERFILE", "Other")])),
            of(|request| request.parameters = parameters(&[("BUILDER", "buildah@sha256:2")])),
            of(|request| request.build_arguments = parameters(&[("A", "b")])),
            of(|request| request.image.as_mut().unwrap().image = "other".into()),
            of(|request| request.image.as_mut().unwrap().tag = "other".into()),
            of(|request| request.steps[1].enabled = false),
            of(|request| request.steps[1].config_map = "clone".into()),
        ] {
            assert_ne!(other, plain);
        }
        for none in [json!(null), json!({"spec": 1}), json!({"spec": {"params": {}, "workspaces": [1]}})] {
            assert_ne!(Some(recipe(&none)), plain);
        }
    }
}
