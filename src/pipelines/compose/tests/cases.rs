//! C1 to C26.

use serde_json::{Value, json};

use super::kinds;
use crate::domain::reason::Reason;
use crate::pipelines::fixtures::{
    OPERATOR, TEAM, composed, entry, examined, from_template, one_step, parameters, request, step_map, steps, task,
    task_params, task_spec, when,
};
use crate::pipelines::params::Layer;
use crate::pipelines::request::{Parameter, SecretUse};
use crate::pipelines::templates::TemplatesView;

const BUILDAH: &str = "
params:
  - {name: image, type: string}
  - {name: push-image, type: string, default: ''}
  - {name: DOCKERFILE, type: string, default: Dockerfile}
  - {name: subfolder-path, type: string, default: '.'}
  - {name: SKIP_TLS_VERIFY, type: string, default: 'false'}
  - {name: BUILD_ARGS, type: array, default: []}
";
const CHECK: &str = "results: [{name: dockerfile-name}, {name: has-dockerfile}]";

fn dev() -> Value {
    json!({
        "name": "dev",
        "steps": [
            {"name": "dockerfile-check", "configMap": "check"},
            {"name": "buildah-build", "configMap": "buildah", "defaultParameters": [
                {"name": "DOCKERFILE", "value": "$(tasks.dockerfile-check.results.dockerfile-name)"},
                {"name": "SKIP_TLS_VERIFY", "value": "true"}]},
        ],
        "globalParameters": [{"name": "pipeline-timeout", "value": "20m"}],
    })
}

#[test]
fn case_c01_the_worked_example() {
    let (check, buildah) = (task_spec(CHECK), task_spec(BUILDAH));
    let steps = steps(&[("check", &check), ("buildah", &buildah)]);
    let mut request = from_template(request(Vec::new()), &dev());
    request.build_arguments = vec![Parameter::new("PY", "3.13")];
    request.parameters = parameters(&[("DOCKERFILE", "Dockerfile.prod"), ("pipeline-timeout", "45m"), ("FOO", "bar")]);
    let composition = composed(&request, &steps).unwrap();
    let params = task_params(&composition.run, "buildah-build");
    assert_eq!(params["image"], "reg:5000/weather:v1");
    assert_eq!(params["DOCKERFILE"], "Dockerfile.prod");
    assert_eq!(params["SKIP_TLS_VERIFY"], "true");
    assert_eq!(params["subfolder-path"], "a2a/weather");
    assert!(!params.contains_key("push-image"), "the TaskSpec's own default is not listed");
    assert_eq!(params["BUILD_ARGS"], json!(["--build-arg=PY=3.13"]));
    assert_eq!(composition.run["spec"]["timeouts"], json!({"pipeline": "45m"}));
    let run: Vec<_> =
        composition.run["spec"]["params"].as_array().unwrap().iter().map(|one| one["name"].as_str()).collect();
    assert!(run.contains(&Some("FOO")) && !run.contains(&Some("pipeline-timeout")), "{run:?}");
    assert!(composition.notes.iter().any(|note| note.reason == Reason::ParameterUnused && note.text.contains("FOO")));
    let traced = composition.provenance.iter().find(|traced| traced.parameter == "DOCKERFILE").unwrap();
    assert_eq!(traced.origin.layer, Layer::User);
    assert_eq!(traced.origin.path, "spec.pipeline.parameters[0].value");
    let shadowed: Vec<_> = traced.shadowed.iter().map(|origin| origin.layer).collect();
    assert_eq!(shadowed, [Layer::TemplateStep, Layer::TaskDefault]);
}

#[test]
fn case_c02_step_level_beats_pipeline_level() {
    let steps = one_step("params: [{name: A, default: k}]");
    let mut step = entry("a", "one");
    step.parameters = parameters(&[("A", "step")]);
    let mut request = request(vec![step]);
    request.parameters = parameters(&[("A", "pipeline")]);
    let composition = composed(&request, &steps).unwrap();
    assert_eq!(task_params(&composition.run, "a")["A"], "step");
    assert!(composition.notes.iter().any(|note| note.reason == Reason::ValueShadowed));
}

#[test]
fn case_c03_template_default_beats_task_default() {
    let steps = one_step("params: [{name: A, default: k}]");
    let template = json!({"name": "t", "steps": [{"name": "a", "configMap": "one", "defaultParameters": [{"name": "A", "value": "t"}]}]});
    let composition = composed(&from_template(request(Vec::new()), &template), &steps).unwrap();
    assert_eq!(task_params(&composition.run, "a")["A"], "t");
}

#[test]
fn case_c04_a_task_default_is_left_to_tekton() {
    let steps = one_step("params: [{name: A, default: k}]");
    let composition = composed(&request(vec![entry("a", "one")]), &steps).unwrap();
    assert!(task(&composition.run, "a").get("params").is_none());
    let traced = &composition.provenance[0];
    assert_eq!((traced.origin.layer, traced.origin.value.as_str()), (Layer::TaskDefault, Some("k")));
}

#[test]
fn case_c05_no_value_anywhere_names_step_and_parameter() {
    let steps = one_step("params: [{name: A}, {name: image}]");
    let mut request = request(vec![entry("buildah-build", "one")]);
    request.image = None;
    let findings = composed(&request, &steps).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::ParameterMissing; 2]);
    let text = crate::api::findings::printed(&findings.content);
    assert!(text.contains("step buildah-build: parameter image has no value"), "{text}");
    assert!(text.contains("fill spec.buildOutput"), "{text}");
    assert!(text.contains("add A to spec.pipeline.parameters"), "{text}");
}

#[test]
fn case_c06_a_placeholder_is_replaced_once() {
    let steps = one_step("params: [{name: A}]");
    let template = json!({"name": "t", "steps": [{"name": "a", "configMap": "one",
        "defaultParameters": [{"name": "A", "value": "{{.image}} {{.B}}"}]}]});
    let mut request = from_template(request(Vec::new()), &template);
    request.parameters = parameters(&[("B", "{{.image}}")]);
    let composition = composed(&request, &steps).unwrap();
    assert_eq!(task_params(&composition.run, "a")["A"], "reg:5000/weather:v1 {{.image}}");
    assert!(!composition.notes.iter().any(|note| note.reason == Reason::ParameterUnused), "B is used by the template");
    // A user's own step is never a template.
    let mut step = entry("a", "one");
    step.parameters = parameters(&[("A", "{{.image}}")]);
    let composition = composed(&self::request(vec![step]), &steps).unwrap();
    assert_eq!(task_params(&composition.run, "a")["A"], "{{.image}}");
}

#[test]
fn case_c07_an_unknown_placeholder_is_an_error() {
    let steps = one_step("params: [{name: A}]");
    let template = json!({"name": "t", "steps": [{"name": "a", "configMap": "one",
        "defaultParameters": [{"name": "A", "value": "{{.unknown}}"}]}]});
    let mut request = from_template(request(Vec::new()), &template);
    let findings = composed(&request, &steps).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::PlaceholderUnknown]);
    assert!(findings.content[0].sentence.contains("unknown"));
    request.parameters = parameters(&[("A", "mine")]);
    assert!(composed(&request, &steps).is_ok(), "what is shadowed does no harm");
}

/// What would arrive as a placeholder is told, unless somebody else gives the value.
#[test]
fn a_placeholder_in_what_a_placeholder_stands_for_is_an_error() {
    let steps = one_step("params: [{name: A}]");
    let template = json!({"name": "t", "globalParameters": [{"name": "tag", "value": "{{.revision}}-x"}],
        "steps": [{"name": "a", "configMap": "one", "defaultParameters": [{"name": "A", "value": "{{.tag}}"}]}]});
    let mut request = from_template(request(Vec::new()), &template);
    let findings = composed(&request, &steps).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::PlaceholderUnknown]);
    assert!(findings.content[0].sentence.contains("names tag, whose own value has a placeholder"), "{findings:?}");
    request.parameters = parameters(&[("tag", "{{.x}}")]);
    let params = task_params(&composed(&request, &steps).unwrap().run, "a");
    assert_eq!(params["A"], json!("{{.x}}"), "a user's braces are data");
}

#[test]
fn case_c08_lists_from_text() {
    let steps = one_step(
        "params: [{name: A, type: array}, {name: B, type: array}, {name: O, type: object, properties: {k: {type: string}}}]",
    );
    let mut request = request(vec![entry("a", "one")]);
    request.parameters = parameters(&[("A", r#"["a","b"]"#), ("B", "x"), ("O", r#"{"k":"v"}"#)]);
    let params = task_params(&composed(&request, &steps).unwrap().run, "a");
    assert_eq!(params["A"], json!(["a", "b"]));
    assert_eq!(params["B"], json!(["x"]));
    assert_eq!(params["O"], json!({"k": "v"}));
    request.parameters[2].value = "v".to_owned();
    assert_eq!(kinds(&composed(&request, &steps).unwrap_err()), [Reason::FieldInvalid]);
}

#[test]
fn case_c09_build_arguments_in_order_where_declared() {
    let (with, without) = (task_spec(BUILDAH), task_spec("params: [{name: BUILD_ARGS, default: x}]"));
    let steps = steps(&[("with", &with), ("without", &without)]);
    let mut request = request(vec![entry("a", "with"), entry("b", "without")]);
    request.build_arguments = parameters(&[("Z", "1"), ("A", "two words"), ("M", "")]);
    let run = composed(&request, &steps).unwrap().run;
    let expected = json!(["--build-arg=Z=1", "--build-arg=A=two words", "--build-arg=M="]);
    assert_eq!(task_params(&run, "a")["BUILD_ARGS"], expected);
    assert!(task_params(&run, "b").is_empty(), "a string of that name is another parameter");
    request.parameters = parameters(&[("BUILD_ARGS", r#"["--x"]"#)]);
    assert_eq!(task_params(&composed(&request, &steps).unwrap().run, "a")["BUILD_ARGS"], json!(["--x"]));
}

/// Of two `$` in the arguments of a container the kubelet leaves one (kubernetes/kubernetes#101137), after Tekton has put the parameter there; in a
/// script nobody does. What arrives is what was written.
#[test]
fn two_dollars_of_a_build_argument_arrive_as_two() {
    let list = "params: [{name: BUILD_ARGS, type: array, default: []}]\nsteps:\n  - name: run\n    image: i\n";
    let in_args = format!("{list}    args: [\"$(params.BUILD_ARGS[*])\"]\n    script: 'buildah \"$@\"'\n");
    let in_script = format!("{in_args}  - name: say\n    image: i\n    script: echo '$(params.BUILD_ARGS[0])'\n");
    let steps = steps(&[("args", &in_args), ("script", &in_script)]);
    let mut request = request(vec![entry("a", "args"), entry("b", "script")]);
    for (written, passed) in [("$$5", "$$$$5"), ("$5", "$5"), ("a$$$", "a$$$$$"), ("$$$$", "$$$$$$$$")] {
        request.build_arguments = parameters(&[("PRICE", written)]);
        let run = composed(&request, &steps).unwrap().run;
        let of = |task: &str| task_params(&run, task)["BUILD_ARGS"].clone();
        assert_eq!(of("a"), json!([format!("--build-arg=PRICE={passed}")]), "{written}");
        assert_eq!(of("b"), json!([format!("--build-arg=PRICE={written}")]), "{written}");
    }
}

/// The same of every other parameter; and of one that a TaskSpec reads from the run without declaring it, unless a condition reads it, too.
#[test]
fn two_dollars_of_any_parameter_arrive_as_two() {
    let text = "params: [{name: A}, {name: B}, {name: M, type: object, properties: {k: {type: string}}}]\nsteps:\n  - name: run\n    image: i\n    \
        env: [{name: A, value: $(params.A)}, {name: R, value: $(params.R)}]\n    args: [\"$(params.M.k)\"]\n    script: echo '$(params.B)'\n";
    let steps = steps(&[("one", text)]);
    let given = [("A", "a$$b"), ("B", "a$$b"), ("M", r#"{"k":"$$"}"#), ("R", "a$$b"), ("S", "a$$b")];
    let of_run = |run: &Value, name: &str| {
        let all = run["spec"]["params"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].clone()
    };
    let mut request = request(vec![entry("a", "one")]);
    request.parameters = parameters(&given);
    let run = composed(&request, &steps).unwrap().run;
    let passed = task_params(&run, "a");
    assert_eq!((&passed["A"], &passed["B"]), (&json!("a$$$$b"), &json!("a$$b")));
    assert_eq!(passed["M"], json!({"k": "$$$$"}));
    assert_eq!((of_run(&run, "R"), of_run(&run, "S")), (json!("a$$$$b"), json!("a$$b")));
    request.steps[0].when = vec![when("$(params.R)", "x")];
    assert_eq!(of_run(&composed(&request, &steps).unwrap().run, "R"), json!("a$$b"));
}

#[test]
fn case_c10_a_disabled_step_is_jumped_over() {
    let steps = one_step("");
    let mut middle = entry("b", "missing");
    middle.enabled = false;
    let run = composed(&request(vec![entry("a", "one"), middle, entry("c", "one")]), &steps).unwrap().run;
    assert_eq!(run["spec"]["pipelineSpec"]["tasks"].as_array().unwrap().len(), 2);
    assert!(task(&run, "a").get("runAfter").is_none());
    assert_eq!(task(&run, "c")["runAfter"], json!(["a"]));
}

#[test]
fn case_c11_a_task_spec_is_passed_on_as_it_is() {
    let text = "
stepTemplate: {env: [{name: A, value: b}]}
sidecars: [{name: s, image: i}]
params: [{name: o, type: object, description: d, properties: {k: {type: string}}, default: {k: v}}]
futureMember: {deep: [1, 2.5, null, true]}
displayName: shown
steps: [{name: run, image: i, script: 'true', futureToo: 7}]
";
    let steps = steps(&[("one", text)]);
    let run = composed(&request(vec![entry("a", "one")]), &steps).unwrap().run;
    let expected = crate::api::yaml::parse(text).unwrap().to_json();
    assert_eq!(task(&run, "a")["taskSpec"], expected);
}

#[test]
fn case_c12_no_workspace_no_binding() {
    let run = composed(&request(vec![entry("a", "one")]), &one_step("")).unwrap().run;
    assert!(task(&run, "a").get("workspaces").is_none());
}

#[test]
fn case_c13_a_workspace_that_nothing_fills() {
    let findings = composed(&request(vec![entry("a", "one")]), &one_step("workspaces: [{name: foo}]")).unwrap_err();
    assert!(crate::api::findings::printed(&findings.content).contains("foo"));
    assert!(
        composed(&request(vec![entry("a", "one")]), &one_step("workspaces: [{name: foo, optional: true}]")).is_ok()
    );
    let findings =
        composed(&request(vec![entry("a", "one")]), &one_step("workspaces: [{name: registry-auth}]")).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::WorkspaceUnknown]);
    assert!(findings.content[0].remedy.contains("spec.buildOutput.imageRepoCredentials.name"));
}

/// `010` is reported, not converted.
#[test]
fn case_c14_scalars_without_quotes() {
    let steps = one_step("params: [{name: a, default: 8000}, {name: b, default: true}, {name: c, default: yes}]");
    let composition = composed(&request(vec![entry("a", "one")]), &steps).unwrap();
    let spec = &task(&composition.run, "a")["taskSpec"];
    let defaults: Vec<_> = spec["params"].as_array().unwrap().iter().map(|param| param["default"].clone()).collect();
    assert_eq!(defaults, [json!("8000"), json!("true"), json!("yes")]);
    let notes: Vec<_> = composition.notes.iter().filter(|note| note.reason == Reason::SpellingAmbiguous).collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].path.ends_with("params[2].default") && notes[0].text.contains("yes"), "{notes:?}");
    for bad in ["010", "3.10", "1e3", "0x1F", "+5", "[1.50]"] {
        let findings =
            composed(&request(vec![entry("a", "one")]), &one_step(&format!("params: [{{name: a, default: {bad}}}]")));
        assert_eq!(kinds(&findings.unwrap_err()), [Reason::StepInvalid], "{bad}");
    }
}

#[test]
fn case_c15_the_users_timeout_wins() {
    let (check, buildah) =
        (task_spec(CHECK), task_spec(&format!("{BUILDAH}  - {{name: pipeline-timeout, default: k}}\n")));
    let steps = steps(&[("check", &check), ("buildah", &buildah)]);
    let mut request = from_template(request(Vec::new()), &dev());
    assert_eq!(composed(&request, &steps).unwrap().run["spec"]["timeouts"]["pipeline"], "20m");
    request.parameters = parameters(&[("pipeline-timeout", "45m")]);
    let composition = composed(&request, &steps).unwrap();
    assert_eq!(composition.run["spec"]["timeouts"]["pipeline"], "45m");
    assert!(!task_params(&composition.run, "buildah-build").contains_key("pipeline-timeout"));
    let traced = composition.provenance.iter().find(|one| one.step.is_none()).unwrap();
    assert_eq!((traced.parameter.as_str(), traced.shadowed.len()), ("pipeline-timeout", 1));
}

#[test]
fn case_c17_the_same_request_gives_the_same_bytes() {
    let steps = one_step("params: [{name: A, default: k}]");
    let request = request(vec![entry("a", "one")]);
    let (one, two) = (composed(&request, &steps).unwrap(), composed(&request, &steps).unwrap());
    assert_eq!(one.run.to_string(), two.run.to_string());
    assert_eq!(one.claim.to_string(), two.claim.to_string());
    let mut other = request.clone();
    other.attempt = 2;
    let other = composed(&other, &steps).unwrap();
    assert_ne!(one.run["metadata"]["name"], other.run["metadata"]["name"]);
    assert_eq!(one.build_hash, other.build_hash);
}

/// The half that needs no Tekton: the fault says what Tekton would say, before any run exists.
#[test]
fn case_c20_members_of_an_earlier_api() {
    let text = "steps: [{name: a, image: i, resources: {}}]";
    let findings = composed(&request(vec![entry("a", "one")]), &steps(&[("one", text)])).unwrap_err();
    let text = crate::api::findings::printed(&findings.content);
    assert!(
        text.contains("steps[0].resources") && text.contains("unknown field") && text.contains("computeResources"),
        "{text}"
    );
}

#[test]
fn case_c21_everything_is_embedded() {
    let run = composed(&request(vec![entry("a", "one")]), &one_step("results: [{name: r}]")).unwrap().run;
    let pipeline = &run["spec"]["pipelineSpec"];
    assert!(pipeline.get("results").is_none() && pipeline.get("params").is_none() && pipeline.get("finally").is_none());
    assert!(run["spec"].get("pipelineRef").is_none());
    assert!(task(&run, "a").get("taskRef").is_none());
}

#[test]
fn case_c22_node_paths_and_privilege_belong_to_the_platform() {
    for text in [
        "volumes: [{name: v, hostPath: {path: /}}]\nsteps: [{name: a, image: i}]",
        "steps: [{name: a, image: i, securityContext: {privileged: true}}]",
        "steps: [{name: a, image: i}]\nsidecars: [{name: s, image: i, securityContext: {privileged: true}}]",
        "stepTemplate: {securityContext: {privileged: true}}\nsteps: [{name: a, image: i}]",
    ] {
        for (namespace, allowed, fits) in [(TEAM, false, false), (TEAM, true, true), (OPERATOR, false, true)] {
            let view = TemplatesView::new(OPERATOR, allowed).with([step_map(namespace, "one", text)]);
            let result = composed(&request(vec![entry("a", "one")]), view.steps(namespace));
            assert_eq!(result.is_ok(), fits, "{text} in {namespace}, allowed {allowed}");
        }
    }
}

#[test]
fn case_c23_only_sign_may_have_the_signing_key() {
    let steps = one_step("workspaces: [{name: signing-key}]");
    let mut request = request(vec![entry("sign", "one"), entry("other", "one")]);
    request.parameters = parameters(&[("signing-secret", "release-key")]);
    let findings = composed(&request, &steps).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::WorkspaceUnknown]);
    assert!(findings.content[0].sentence.contains("other"));
    request.steps.pop();
    let run = composed(&request, &steps).unwrap().run;
    let expected = json!({"name": "signing-key", "secret": {"secretName": "release-key", "items": [{"key": "cosign.key", "path": "cosign.key"}]}});
    assert!(run["spec"]["workspaces"].as_array().unwrap().contains(&expected));
    request.parameters.clear();
    assert_eq!(kinds(&composed(&request, &steps).unwrap_err()), [Reason::WorkspaceUnknown]);
    let optional = one_step("workspaces: [{name: signing-key, optional: true}]");
    assert!(composed(&self::request(vec![entry("other", "one")]), &optional).is_err(), "optional makes no difference");
}

#[test]
fn case_c24_dotted_parameter_names() {
    let text = "params: [{name: a.b}]\nsteps: [{name: a, image: i, args: [\"$(params['a.b'])\"]}]";
    let mut request = request(vec![entry("a", "one")]);
    request.parameters = parameters(&[("a.b", "x")]);
    assert_eq!(task_params(&composed(&request, &steps(&[("one", text)])).unwrap().run, "a")["a.b"], "x");
}

#[test]
fn case_c25_gated_runs_pull_the_image_and_show_no_secret() {
    let steps = one_step("params: [{name: image}]");
    let mut request = request(vec![entry("a", "one")]);
    request.gated = true;
    request.registry_auth =
        Some(SecretUse { secret: "ghcr-secret".to_owned(), items: Vec::new(), as_parameter: true, optional: false });
    let run = composed(&request, &steps).unwrap().run;
    assert_eq!(run["spec"]["taskRunTemplate"]["podTemplate"]["imagePullSecrets"], json!([{"name": "ghcr-secret"}]));
    assert!(task(&run, "a").get("workspaces").is_none());
    request.gated = false;
    let run = composed(&request, &steps).unwrap().run;
    assert!(run["spec"]["taskRunTemplate"]["podTemplate"].get("imagePullSecrets").is_none());
}

#[test]
fn case_c26_candidate_image_is_reserved() {
    let mut request = request(vec![entry("a", "one")]);
    request.parameters = parameters(&[("candidate-image", "x")]);
    let findings = examined(&request, &one_step(""));
    assert_eq!(kinds(&findings), [Reason::ParameterLocked]);
    assert_eq!(findings.faults[0].path, "spec.pipeline.parameters[0].name");
}
