//! Rules of composition that have no number: references, the skip trap, drift, what the platform adds.

use serde_json::json;

use super::kinds;
use crate::domain::reason::Reason;
use crate::pipelines::compose::{Surroundings, compose};
use crate::pipelines::fixtures::{
    OPERATOR, composed, entry, examined, from_template, one_step, parameters, request, steps, task_spec, when,
};
use crate::pipelines::request::{Parameter, SecretUse};
use crate::pipelines::settings::Settings;

#[test]
fn results_must_be_declared_earlier_and_of_a_fitting_type() {
    let first = task_spec(
        "results: [{name: r}, {name: l, type: array}, {name: o, type: object, properties: {k: {type: string}}}]",
    );
    let second = task_spec("params: [{name: T, default: ''}, {name: L, type: array, default: []}]");
    let steps = steps(&[("first", &first), ("second", &second)]);
    let with = |name: &str, value: &str| {
        let mut step = entry("b", "second");
        step.parameters = parameters(&[(name, value)]);
        composed(&request(vec![entry("a", "first"), step]), &steps)
    };
    for (name, value) in [
        ("T", "x-$(tasks.a.results.r)-$(context.pipelineRun.name)"),
        ("T", "$(tasks.a.results.l[0])"),
        ("T", "$(tasks.a.results.o.k)"),
        ("L", "$(tasks.a.results.l[*])"),
        ("L", r#"["x","$(tasks.a.results.r)"]"#),
    ] {
        assert!(with(name, value).is_ok(), "{name}={value}: {:?}", with(name, value));
    }
    for (name, value) in [
        ("T", "$(tasks.a.results.missing)"),
        ("T", "$(tasks.a.results.l)"),
        ("T", "$(tasks.a.results.l[*])"),
        ("T", "$(tasks.a.results.r.k)"),
        ("L", "x$(tasks.a.results.l[*])"),
        ("T", "$(tasks.c.results.r)"),
        ("T", "$(tasks.b.results.r)"),
        ("T", "$(tasks.a.status)"),
        ("T", "$(params.image)"),
        ("T", "$(workspaces.x.path)"),
        ("T", "$(FOO)"),
        ("T", "open $("),
    ] {
        let findings = with(name, value).unwrap_err();
        assert_eq!(kinds(&findings), [Reason::ReferenceInvalid], "{name}={value}");
    }
}

/// Two addresses are two hosts, though both begin with a bracket.
#[test]
fn credentials_for_one_address_go_to_no_other() {
    let spec = task_spec("params: [{name: repo-url}]\nworkspaces: [{name: git-auth, optional: true}]");
    let steps = steps(&[("clone", &spec)]);
    let with = |given: &str| {
        let parameters = json!([{"name": "repo-url", "value": given}]);
        let step = json!({"name": "a", "configMap": "clone", "defaultParameters": parameters});
        let mut request = from_template(request(Vec::new()), &json!({"name": "own", "steps": [step]}));
        request.source.repository = "https://[fd00::1]/x/y".to_owned();
        request.git_auth = Some(SecretUse { secret: "s".to_owned(), ..SecretUse::default() });
        composed(&request, &steps)
    };
    assert!(with("https://[fd00::1]:8443/x/z").is_ok());
    assert_eq!(kinds(&with("https://[fd00::2]/x/y").unwrap_err()), [Reason::FieldInvalid]);
}

/// A step's own parameter is no way round what the platform says of http.
#[test]
fn credentials_do_not_travel_over_http() {
    let spec = task_spec("params: [{name: repo-url}]\nworkspaces: [{name: git-auth, optional: true}]");
    let steps = steps(&[("clone", &spec)]);
    let with = |given: &str, insecure: bool, auth: bool| {
        let mut step = entry("a", "clone");
        step.parameters = parameters(&[("repo-url", given)]);
        let mut request = request(vec![step]);
        request.git_auth = auth.then(|| SecretUse { secret: "s".to_owned(), ..SecretUse::default() });
        let settings = Settings { insecure_git: insecure, ..Settings::new(OPERATOR) };
        compose(&request, Surroundings { steps: &steps, settings: &settings, accounts: None })
    };
    assert!(with("https://github.com/x/y", false, true).is_ok());
    for given in ["http://github.com/x/y", "HTTP://github.com/x/y"] {
        let findings = with(given, false, true).unwrap_err();
        assert_eq!(kinds(&findings), [Reason::FieldInvalid], "{given}");
        assert!(findings.content[0].sentence.contains("for github.com, over http"), "{findings:?}");
        assert!(with(given, true, true).is_ok() && with(given, false, false).is_ok(), "{given}");
    }
}

/// A template's global parameters, and its placeholders, reach a step without standing in its entry.
#[test]
fn references_of_a_templates_global_parameters_obey_the_same_rules() {
    let first = task_spec("results: [{name: r}, {name: l, type: array}]");
    let second = task_spec("params: [{name: T, default: ''}]");
    let steps = steps(&[("first", &first), ("second", &second)]);
    let with = |value: &str, gated: bool, own: &str| {
        let template = json!({
            "name": "own",
            "steps": [
                {"name": "a", "configMap": "first"},
                {"name": "maybe", "configMap": "first",
                    "whenExpressions": [{"input": "$(tasks.a.results.r)", "operator": "in", "values": ["x"]}]},
                {"name": "off", "configMap": "first", "enabled": false},
                {"name": "b", "configMap": "second", "defaultParameters": if own.is_empty() { json!([]) } else { json!([{"name": "T", "value": own}]) }},
                {"name": "later", "configMap": "first"},
            ],
            "globalParameters": [{"name": "T", "value": value}, {"name": "unused", "value": "$(tasks.gone.results.r)"}],
        });
        let mut request = from_template(request(Vec::new()), &template);
        request.gated = gated;
        composed(&request, &steps)
    };
    for own in ["", "x-{{.T}}"] {
        let run = with("$(tasks.a.results.r)", true, own).unwrap().run;
        assert!(
            crate::pipelines::fixtures::task_params(&run, "b")["T"].as_str().unwrap().ends_with("$(tasks.a.results.r)")
        );
        for (value, told) in [
            ("$(tasks.gone.results.r)", "names step gone, which does not exist"),
            ("$(tasks.off.results.r)", "names step off, which does not exist"),
            ("$(tasks.later.results.r)", "names step later, which runs later"),
            ("$(tasks.b.results.r)", "names a result of the step itself"),
            ("$(FOO)", "is neither $(tasks.STEP.results.NAME)"),
            ("$(tasks.maybe.results.r)", "would then be skipped silently"),
        ] {
            let findings = with(value, true, own).unwrap_err();
            assert_eq!(kinds(&findings), [Reason::ReferenceInvalid], "{value}: {findings:#?}");
            assert!(findings.faults[0].to_string().contains(told), "{value}: {findings:#?}");
        }
    }
    let told = with("$(tasks.gone.results.r)", false, "").unwrap_err().faults[0].to_string();
    assert!(told.starts_with("the template's globalParameters[0].value names step gone"), "{told}");
    assert!(told.contains("correct the template"), "{told}");
    let notes = with("$(tasks.maybe.results.r)", false, "").unwrap().notes;
    assert!(notes.iter().any(|note| note.reason == Reason::GuardMissing), "{notes:#?}");
    assert_eq!(kinds(&with("$(tasks.a.results.l)", false, "").unwrap_err()), [Reason::ReferenceInvalid]);
}

/// Tekton pools parameters by name; its webhook ends without an answer when an object meets a string.
#[test]
fn a_parameter_has_one_type_in_all_tasks() {
    let object = "params: [{name: opts, properties: {k: {type: string}}}]";
    let other = "params: [{name: opts, properties: {j: {type: string}}}]";
    let list = "params: [{name: opts, type: array}]\nstepTemplate: {}";
    let text = |members: &str| format!("{members}\nsteps: [{{image: i, script: 'x $(params.opts)'}}]");
    let all = steps(&[
        ("object", &task_spec(object)),
        ("other", &task_spec(other)),
        ("list", &task_spec(list)),
        ("text", &text("params: [{name: opts, default: x}]")),
        ("silent", &task_spec("params: [{name: opts, default: x}]")),
        ("image", &task_spec("params: [{name: image, properties: {k: {type: string}}}]")),
    ]);
    let build = |first: &str, second: &str| {
        let mut steps = vec![entry("one", first), entry("two", second)];
        for step in &mut steps {
            let value = match step.config_map.as_str() {
                "object" => "{\"k\":\"v\"}",
                "other" => "{\"j\":\"v\"}",
                _ => "x",
            };
            step.parameters = parameters(&[("opts", value)]);
        }
        composed(&request(steps), &all)
    };
    for (first, second) in
        [("object", "text"), ("silent", "object"), ("object", "other"), ("list", "object"), ("list", "text")]
    {
        let told = build(first, second).unwrap_err().content;
        assert!(told[0].sentence.contains("Tekton takes one type for a name"), "{first} {second}: {told:?}");
    }
    for (first, second) in [("object", "object"), ("text", "list"), ("list", "silent")] {
        build(first, second).unwrap_or_else(|findings| panic!("{first} {second}: {findings:#?}"));
    }
    let mut one = request(vec![entry("one", "image")]);
    one.steps[0].parameters = parameters(&[("image", "{\"k\":\"v\"}")]);
    assert!(composed(&one, &all).unwrap_err().content[0].sentence.contains("the run has it with type string"));
    // The user's own value for an object reaches its task, and no string of that name the run.
    let mut own = request(vec![entry("one", "object")]);
    own.parameters = parameters(&[("opts", "{\"k\":\"v\"}")]);
    let run = composed(&own, &all).unwrap().run;
    assert!(!run["spec"]["params"].to_string().contains("opts"), "{run}");
    assert_eq!(run["spec"]["pipelineSpec"]["tasks"][0]["params"], json!([{"name": "opts", "value": {"k": "v"}}]));
}

/// A value for an object is no parameter of the run, where another step or a condition would read it as text.
#[test]
fn what_a_step_takes_as_an_object_is_read_by_nobody_as_text() {
    let all = steps(&[
        ("object", &task_spec("params: [{name: opts, properties: {k: {type: string}}}]")),
        ("reads", "steps: [{image: i, script: 'x $(params.opts)'}]"),
        ("silent", &task_spec("")),
    ]);
    let with = |config_map: &str, input: &str| {
        let mut second = entry("two", config_map);
        second.when = if input.is_empty() { Vec::new() } else { vec![when(input, "x")] };
        let mut request = request(vec![entry("one", "object"), second]);
        request.parameters = parameters(&[("opts", "{\"k\":\"v\"}")]);
        composed(&request, &all)
    };
    for (config_map, input, path) in [
        ("reads", "", "ConfigMap kagenti-system/reads: steps[0].script"),
        ("silent", "$(params.opts)", "spec.pipeline.steps[1].whenExpressions[0]"),
    ] {
        let told = with(config_map, input).unwrap_err().content;
        assert_eq!((told.len(), &*told[0].path), (1, path), "{told:?}");
        assert!(told[0].sentence.contains("step one declares it with type object"), "{told:?}");
    }
    assert!(with("silent", "").is_ok() && with("silent", "$(params.revision)").is_ok());
}

/// Tekton admits a run in which an object lacks a member, and fails the task.
#[test]
fn an_object_has_each_member_that_its_task_spec_names() {
    let properties = "properties: {a: {type: string}, b: {type: string}}";
    let steps = steps(&[
        ("none", &task_spec(&format!("params: [{{name: opts, {properties}}}]"))),
        ("some", &task_spec(&format!("params: [{{name: opts, {properties}, default: {{a: x}}}}]"))),
    ]);
    let with = |config_map: &str, value: &str| {
        let mut request = request(vec![entry("one", config_map)]);
        request.parameters = if value.is_empty() { Vec::new() } else { parameters(&[("opts", value)]) };
        composed(&request, &steps)
    };
    for (config_map, value) in
        [("none", r#"{"a":"1","b":"2"}"#), ("none", r#"{"a":"1","b":"","c":"3"}"#), ("some", r#"{"b":"2"}"#)]
    {
        assert!(with(config_map, value).is_ok(), "{config_map} {value}: {:?}", with(config_map, value));
    }
    for (config_map, value, path, lacking) in [
        ("none", r#"{"a":"1"}"#, "spec.pipeline.parameters[0].value", "no value for b,"),
        ("none", "{}", "spec.pipeline.parameters[0].value", "no value for a, b,"),
        ("some", r#"{"a":"1"}"#, "spec.pipeline.parameters[0].value", "no value for b,"),
        ("some", "", "ConfigMap some", "no value for b,"),
    ] {
        let told = with(config_map, value).unwrap_err().content;
        assert_eq!((told.len(), &*told[0].path), (1, path), "{config_map} {value}: {told:?}");
        assert!(told[0].sentence.contains(lacking), "{told:?}");
    }
}

/// 10.3: what reads a step that may be skipped is skipped itself.
#[test]
fn unguarded_results_of_conditional_steps() {
    let first = task_spec("results: [{name: r}]");
    let second = task_spec("params: [{name: T}]");
    let steps = steps(&[("first", &first), ("second", &second)]);
    let mut conditional = entry("b", "first");
    conditional.when = vec![when("$(tasks.a.results.r)", "true")];
    let mut reader = entry("c", "second");
    reader.parameters = parameters(&[("T", "$(tasks.b.results.r)")]);
    let mut request = request(vec![entry("a", "first"), conditional.clone(), reader]);
    let composition = composed(&request, &steps).unwrap();
    assert!(composition.notes.iter().any(|note| note.reason == Reason::GuardMissing));
    request.gated = true;
    assert_eq!(kinds(&composed(&request, &steps).unwrap_err()), [Reason::ReferenceInvalid]);
    request.steps[2].when = conditional.when;
    let composition = composed(&request, &steps).unwrap();
    assert!(!composition.notes.iter().any(|note| note.reason == Reason::GuardMissing));
}

/// Without its label a tenant's ConfigMap is no step, and that is what is said first; the operator's own need none.
#[test]
fn mend_12_a_step_config_map_that_lacks_the_label_says_that_first() {
    let told = |namespace: &str| {
        let mut build = request(vec![entry("a", "gone")]);
        build.steps_namespace = namespace.to_owned();
        composed(&build, &one_step("")).unwrap_err().content[0].to_string()
    };
    let own = told("team1");
    let label = "lacks label kagenti.operator.dev/tekton=step";
    assert!(own.find(label).is_some_and(|at| at < own.find("not found").unwrap()), "{own}");
    assert!(own.contains("kubectl -n team1 label configmap gone kagenti.operator.dev/tekton=step"), "{own}");
    let platform = told("kagenti-system");
    assert!(!platform.contains("label") && platform.contains("task-spec.yaml"), "{platform}");
}

#[test]
fn a_step_that_is_not_there_or_not_what_it_was() {
    let findings = composed(&request(vec![entry("a", "gone")]), &one_step("")).unwrap_err();
    assert_eq!(kinds(&findings), [Reason::StepMissing]);
    assert!(findings.content[0].to_string().contains("step ConfigMap gone not found"));
    let mut request = request(vec![entry("a", "one")]);
    request.pinned_steps.insert("one".to_owned(), "0".repeat(64));
    assert_eq!(kinds(&composed(&request, &one_step("")).unwrap_err()), [Reason::StepDrift]);
    let steps = one_step("");
    request.pinned_steps.insert("one".to_owned(), steps["one"].hash.clone());
    assert!(composed(&request, &steps).is_ok());
}

#[test]
fn what_the_platform_adds() {
    let mut settings = Settings::new(OPERATOR);
    settings.openshift = true;
    settings.trust_bundle = Some("corporate-ca".to_owned());
    settings.environment.insert("HTTPS_PROXY".to_owned(), "http://proxy:3128".to_owned());
    settings.node_selector.insert("pool".to_owned(), "builds".to_owned());
    settings.tolerations = vec![json!({"key": "builds", "operator": "Exists"})];
    settings.resources = Some(json!({"requests": {"cpu": "1"}}));
    let steps = one_step("workspaces: [{name: trust-bundle, optional: true}]");
    let mut request = request(vec![entry("a", "one")]);
    request.parameters =
        parameters(&[("service-account", "builder"), ("workspace-size", "5Gi"), ("workspace-storage-class", "fast")]);
    let accounts = std::collections::BTreeSet::from(["builder".to_owned()]);
    let around =
        crate::pipelines::compose::Surroundings { steps: &steps, settings: &settings, accounts: Some(&accounts) };
    let composition = crate::pipelines::compose::compose(&request, around).unwrap();
    let spec = &composition.run["spec"];
    let pod = &spec["taskRunTemplate"]["podTemplate"];
    assert!(pod.get("securityContext").is_none(), "OpenShift assigns the group");
    assert_eq!(pod["env"], json!([{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}]));
    assert_eq!(pod["nodeSelector"], json!({"pool": "builds"}));
    assert_eq!(spec["taskRunTemplate"]["serviceAccountName"], "builder");
    assert_eq!(
        spec["taskRunSpecs"],
        json!([{"pipelineTaskName": "a", "computeResources": {"requests": {"cpu": "1"}}}])
    );
    assert!(
        spec["workspaces"]
            .as_array()
            .unwrap()
            .contains(&json!({"name": "trust-bundle", "configMap": {"name": "corporate-ca"}}))
    );
    assert_eq!(composition.claim["spec"]["resources"]["requests"]["storage"], "5Gi");
    assert_eq!(composition.claim["spec"]["storageClassName"], "fast");
    let nobody = std::collections::BTreeSet::new();
    let around = crate::pipelines::compose::Surroundings { accounts: Some(&nobody), ..around };
    assert_eq!(kinds(&crate::pipelines::compose::compose(&request, around).unwrap_err()), [Reason::FieldInvalid]);
}

#[test]
fn reserved_labels_never_reach_the_pods() {
    let mut request = request(vec![entry("a", "one")]);
    for key in
        ["kagenti.io/type", "tekton.dev/task", "x.tekton.dev/y", "app.kubernetes.io/managed-by", "team", "acme.io/x"]
    {
        request.labels.insert(key.to_owned(), "agent".to_owned());
        request.annotations.insert(key.to_owned(), "agent".to_owned());
    }
    let composition = composed(&request, &one_step("")).unwrap();
    for object in [&composition.run, &composition.claim] {
        for map in ["labels", "annotations"] {
            let map = &object["metadata"][map];
            assert!(
                map.get("kagenti.io/type").is_none()
                    && map.get("tekton.dev/task").is_none()
                    && map.get("x.tekton.dev/y").is_none()
            );
            assert_eq!((&map["team"], &map["acme.io/x"]), (&json!("agent"), &json!("agent")));
        }
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "drawbridge");
    }
    assert_eq!(composition.notes.iter().filter(|note| note.reason == Reason::MetadataDropped).count(), 8);
}

/// Parameters count as often as they are passed; each part is named where it was written, the largest first.
#[test]
fn mend_12_too_large_a_run_names_its_largest_parts() {
    let takes = task_spec("params: [{name: TEXT, default: ''}, {name: MORE, default: ''}]");
    let large = |kilobytes: usize| format!("description: {}\n{}", "x".repeat(kilobytes * 1024), task_spec(""));
    let refused = |build: &crate::pipelines::request::BuildRequest, of_task: usize| {
        let findings = composed(build, &steps(&[("takes", &takes), ("large", &large(of_task))])).unwrap_err();
        assert_eq!(kinds(&findings), [Reason::RunTooLarge]);
        findings.content[0].to_string()
    };
    let text = |kilobytes: usize| "y".repeat(kilobytes * 1024);
    let mut build = request(vec![entry("a", "takes"), entry("b", "large"), entry("c", "takes")]);
    build.parameters = parameters(&[("OTHER", "x"), ("TEXT", &text(60))]);
    let told = refused(&build, 700);
    assert!(told.starts_with("ConfigMap kagenti-system/large is the largest part (716"), "{told}");
    assert!(told.contains("; then spec.pipeline.parameters[1].value (TEXT, 61442 bytes, 3 times), "), "{told}");
    assert!(told.contains("all TaskSpecs have 71") && told.contains("all parameters 18"), "{told}");
    assert!(told.contains("shorten the scripts"), "{told}");
    // Five times to tasks, and once to the run.
    build.steps.extend(["d", "e", "f"].map(|name| entry(name, "takes")));
    let told = refused(&build, 350);
    assert!(
        told.starts_with("spec.pipeline.parameters[1].value is the largest part (TEXT, 61442 bytes, 6 times)"),
        "{told}"
    );
    assert!(
        told.contains("; then ConfigMap kagenti-system/large (358") && told.contains("keep long values in"),
        "{told}"
    );
    // What is given to single steps, and to no run.
    let mut build = request((0..12).map(|number| entry(&format!("s{number}"), "takes")).collect());
    for step in &mut build.steps {
        step.parameters = parameters(&[("TEXT", &text(60))]);
    }
    build.steps[3].parameters = parameters(&[("MORE", &text(62))]);
    let told = refused(&build, 1);
    assert!(
        told.starts_with("spec.pipeline.steps[3].parameters[0].value is the largest part (MORE, 63490 bytes)"),
        "{told}"
    );
    let mut build = request(vec![entry("a", "takes"), entry("b", "large")]);
    build.parameters = parameters(&[("TEXT", &text(60)), ("MORE", &text(60))]);
    build.annotations.insert("acme.io/story".to_owned(), text(250));
    assert!(refused(&build, 240).starts_with("spec.annotations is the largest part ("));
}

/// A template and a TaskSpec of a tenant's are as long as they may be, and every step may name the same one: each of their parameters is looked for,
/// and not all of them for each.
#[test]
fn many_parameters_of_many_steps_cost_no_more_than_their_number() {
    const MANY: usize = 1_000;
    let names: Vec<String> = (0..MANY).map(|number| format!("p{number}")).collect();
    let all = |of: &dyn Fn(&String) -> String| names.iter().map(of).collect::<Vec<_>>().join(", ");
    let declared = all(&|name| format!("{{name: {name}}}"));
    let read = all(&|name| format!("'$(params.{name})'"));
    let text = format!("params: [{declared}]\nsteps: [{{name: run, image: i, args: [{read}]}}]\n");
    let entries: Vec<_> = (0..32).map(|number| json!({"name": format!("s{number}"), "configMap": "one"})).collect();
    let globals: Vec<_> = names.iter().map(|name| json!({"name": name, "value": "{{.revision}}$$"})).collect();
    let template = json!({"name": "t", "steps": entries, "globalParameters": globals, "requiredParameters": names});
    let mut build = from_template(request(Vec::new()), &template);
    build.parameters = names.iter().map(|name| Parameter::new(format!("{name}x"), "$$")).collect();
    let found = examined(&build, &steps(&[("one", &text)]));
    assert_eq!((found.faults, found.content), (Vec::new(), Vec::new()));
    assert!(found.notes.iter().all(|note| note.reason == Reason::ParameterUnused), "{:?}", found.notes);
}

/// No accepted field is dead: arguments that no task takes are said, and so is what takes their place.
#[test]
fn build_arguments_that_reach_no_task() {
    let (with, without) = (task_spec("params: [{name: BUILD_ARGS, type: array, default: []}]"), task_spec(""));
    let steps = steps(&[("with", &with), ("without", &without)]);
    let notes = |config_map: &str, own: &[(&str, &str)]| {
        let mut request = request(vec![entry("a", config_map)]);
        request.build_arguments = parameters(&[("PY", "3.13")]);
        request.parameters = parameters(own);
        let notes = composed(&request, &steps).unwrap().notes;
        notes.into_iter().filter(|note| note.path == "spec.buildArgs").map(|note| note.reason).collect::<Vec<_>>()
    };
    assert_eq!(notes("with", &[]), []);
    assert_eq!(notes("without", &[]), [Reason::ParameterUnused]);
    assert_eq!(notes("with", &[("BUILD_ARGS", "[\"--x\"]")]), [Reason::ValueShadowed]);
}

/// 8.4, 8.5: a template's control parameter that cannot be used is told, unless the user gives another.
#[test]
fn control_parameters_of_a_template_are_judged_too() {
    let steps = one_step("");
    for (name, value, reason) in [
        ("pipeline-timeout", "2d", Reason::TemplateInvalid),
        ("pipeline-timeout", "{{.unknown}}", Reason::PlaceholderUnknown),
        ("workspace-size", "big", Reason::TemplateInvalid),
    ] {
        let template = json!({"name": "t", "steps": [{"name": "a", "configMap": "one"}],
            "globalParameters": [{"name": name, "value": value}]});
        let mut build = from_template(request(Vec::new()), &template);
        let findings = composed(&build, &steps).unwrap_err();
        assert_eq!(kinds(&findings), [reason], "{name}={value}");
        assert!(findings.content[0].path.contains("globalParameters[0]"), "{findings:?}");
        build.parameters = parameters(&[(name, if name == "workspace-size" { "2Gi" } else { "30m" })]);
        assert!(composed(&build, &steps).is_ok(), "what is shadowed does no harm");
    }
}

/// 14.4: the Secret whose name the step that signs is given is the one that is bound for it.
#[test]
fn the_signing_key_is_the_one_that_the_step_is_given() {
    let text = task_spec("params: [{name: signing-secret, default: ''}]\nworkspaces: [{name: signing-key}]");
    let steps = steps(&[("one", &text)]);
    let bound = |build: &crate::pipelines::request::BuildRequest| {
        let run = composed(build, &steps).unwrap().run;
        let all = run["spec"]["workspaces"].as_array().unwrap().clone();
        all.into_iter().find(|one| one["name"] == "signing-key").unwrap()["secret"]["secretName"].clone()
    };
    let mut own = request(vec![entry("sign", "one")]);
    own.steps[0].parameters = parameters(&[("signing-secret", "step-key")]);
    assert_eq!(bound(&own), "step-key");
    own.parameters = parameters(&[("signing-secret", "run-key")]);
    assert_eq!(bound(&own), "step-key", "as the parameter itself: the step wins");
    own.steps[0].parameters = parameters(&[("signing-secret", "$(tasks.a.results.b)")]);
    assert!(composed(&own, &steps).is_err(), "a workspace cannot be a reference");
    let template = json!({"name": "t", "steps": [{"name": "sign", "configMap": "one",
        "defaultParameters": [{"name": "signing-secret", "value": "release"}]}]});
    let mut build = from_template(request(Vec::new()), &template);
    assert_eq!(bound(&build), "release");
    build.parameters = parameters(&[("signing-secret", "mine")]);
    assert_eq!(bound(&build), "mine", "unless the template locks it");
    // Bound, and so not without effect, also where the TaskSpec reads no parameter of that name.
    let text = task_spec("workspaces: [{name: signing-key}]");
    let mut silent = request(vec![entry("sign", "one")]);
    silent.parameters = parameters(&[("signing-secret", "run-key")]);
    let notes = composed(&silent, &self::steps(&[("one", &text)])).unwrap().notes;
    assert!(notes.iter().all(|note| note.reason != Reason::ParameterUnused), "{notes:?}");
}
