//! What the validating webhook refuses, all of it at once, and what it merely says.

use serde_json::json;

use super::*;
use crate::domain::reason::Reason;
use crate::pipelines::agent_build::MODES;
use crate::pipelines::fixtures::{step_map, task_spec, template_map};

#[test]
fn every_mode_is_accepted_with_what_it_needs() {
    for mode in MODES.into_iter().filter(|mode| *mode != "custom") {
        let mut members = json!({"mode": mode, "source": {"sourceRevision": "v1.4.2"}});
        if mode == "prod" {
            members["pipeline"] = json!({"parameters": [
                {"name": "test-command", "value": "python -m pytest -q /app/tests"},
                {"name": "signing-secret", "value": "release-signing-key"}]});
        }
        let findings = created(members);
        assert_eq!(findings.faults, [], "{mode}");
        assert_eq!(findings.notes, [], "{mode}");
    }
    let findings = created(json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": custom_steps()}}));
    assert_eq!((findings.faults, findings.notes), (vec![], vec![]));
}

#[test]
fn case_b09_gated_modes_take_no_steps() {
    for mode in ["preprod", "prod"] {
        let findings = created(json!({"mode": mode, "pipeline": {"namespace": OPERATOR, "steps": custom_steps()}}));
        let fault = findings.faults.iter().find(|fault| fault.path == "spec.pipeline.steps").unwrap();
        assert_eq!(fault.reason, Reason::GatedMode);
    }
}

#[test]
fn case_b10_locked_parameters() {
    for name in [
        "FAIL_ON",
        "push-image",
        "SKIP_TLS_VERIFY",
        "BUILDER_IMAGE",
        "image-ref",
        "commit",
        "TLOG_UPLOAD",
        "REGISTRY_INSECURE",
        "image",
    ] {
        let findings = created(json!({"mode": "prod", "pipeline": {"parameters": [
            {"name": "test-command", "value": "x"}, {"name": "signing-secret", "value": "k"}, {"name": name, "value": "x/y:z"}]}}));
        let told = refusal(&findings);
        assert!(told.contains("spec.pipeline.parameters[2].name is a locked parameter"), "{name}: {told}");
        assert_eq!(findings.faults.len(), 1, "{told}");
    }
}

#[test]
fn case_b11_gated_modes_read_the_operators_namespace_only() {
    let view = shipped().with(config_maps(TEAM, &Values::default()));
    let object = with(json!({"mode": "preprod", "pipeline": {"namespace": TEAM}}));
    let findings = reviewed(&object, None, &view);
    assert!(
        findings
            .faults
            .iter()
            .any(|fault| fault.path == "spec.pipeline.namespace" && fault.reason == Reason::GatedMode)
    );
    let object = with(json!({"pipeline": {"namespace": TEAM}}));
    assert_eq!(reviewed(&object, None, &view).faults, []);
    let findings = created(json!({"pipeline": {"namespace": "somebody-elses", "steps": custom_steps()}}));
    assert!(refusal(&findings).contains("spec.pipeline.namespace is neither"), "{findings:?}");
}

#[test]
fn case_b12_custom_needs_steps() {
    let findings = created(json!({"mode": "custom"}));
    assert!(refusal(&findings).contains("spec.pipeline.steps must be given"), "{findings:?}");
    assert_eq!(findings.faults.iter().filter(|fault| fault.path == "spec.pipeline.steps").count(), 1);
}

#[test]
fn case_b13_unknown_modes_are_named_with_the_known() {
    let findings = created(json!({"mode": "prd"}));
    let told = refusal(&findings);
    assert!(
        told.contains("spec.mode is an unsupported value")
            && told.contains("dev-external")
            && told.contains("write prod"),
        "{told}"
    );
}

/// A refusal, not an error, and not by the mutating webhook.
#[test]
fn case_b14_a_missing_template_is_named() {
    let mut view = shipped();
    view.remove(OPERATOR, "pipeline-template-dev");
    let told = refusal(&reviewed(&minimal(), None, &view));
    assert!(
        told.contains("spec.mode dev has no template: ConfigMap kagenti-system/pipeline-template-dev not found"),
        "{told}"
    );
    assert!(told.contains("buildpack-dev, dev-external, dev-local, preprod, prod"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn case_b15_an_unusable_template_is_named() {
    for (text, expected) in [("{", "is not JSON"), ("{\"name\": \"x\"}", "steps is missing or empty")] {
        let view = shipped().with([template_map(OPERATOR, "dev", text)]);
        let told = refusal(&reviewed(&minimal(), None, &view));
        assert!(told.contains("kagenti-system/pipeline-template-dev") && told.contains(expected), "{told}");
    }
    let mut empty = template_map(OPERATOR, "dev", "");
    empty.data.clear();
    let told = refusal(&reviewed(&minimal(), None, &shipped().with([empty])));
    assert!(told.contains("template.json") && told.contains("pipeline-template-dev"), "{told}");
}

#[test]
fn case_b16_an_image_is_required() {
    let told = refusal(&created(json!({"buildOutput": null})));
    assert!(told.contains("image is not provided") && told.contains("fill spec.buildOutput"), "{told}");
}

/// What is refused is not warned of once more for every step that needs it; what is not refused is.
#[test]
fn a_refusal_says_each_thing_once() {
    for (members, lines) in [
        (json!({"buildOutput": null}), 1),
        (json!({"buildOutput": {"image": "", "imageTag": ""}}), 2),
        (json!({"mode": "prod", "source": {"sourceRevision": "v1.4.2"}}), 2),
    ] {
        let findings = created(members);
        assert_eq!(refusal(&findings).lines().count(), lines, "{findings:#?}");
        assert_eq!(findings.notes, []);
    }
    let needs = step_map(TEAM, "needs", "params: [{name: region}]\nsteps: [{name: run, image: i}]\n");
    let members = json!({"buildOutput": {"image": ""}, "mode": "custom", "pipeline": {"namespace": TEAM,
        "steps": [{"name": "a", "configMap": "needs"}]}});
    let findings = reviewed(&with(members), None, &shipped().with([needs]));
    assert_eq!(findings.faults.len(), 1, "{findings:#?}");
    assert!(findings.notes.iter().any(|note| note.text.contains("parameter region has no value")), "{findings:#?}");
}

#[test]
fn case_b17_a_parameter_can_name_the_image() {
    let members = json!({"buildOutput": null, "pipeline": {"parameters": [{"name": "image", "value": "r.io/x:1"}]}});
    assert_eq!(created(members).faults, []);
    let members = json!({"buildOutput": null, "pipeline": {"parameters": [{"name": "image", "value": "--x"}]}});
    assert!(refusal(&created(members)).contains("spec.pipeline.parameters[0].value is not the name of an image"));
}

#[test]
fn case_b18_no_subfolder_is_the_root() {
    assert_eq!(created(json!({"source": {"sourceSubfolder": null}})).faults, []);
}

/// Overridden: the schema lists what it can; an empty tag is what is left for us.
#[test]
fn case_b19_everything_is_listed_at_once() {
    let steps =
        json!([{"name": "a", "configMap": "github-clone-step"}, {"name": "a", "configMap": "check-subfolder-step"}]);
    let findings = created(json!({
        "buildOutput": {"imageTag": "", "imageRegistry": "not a registry"},
        "pipeline": {"steps": steps},
    }));
    let paths: Vec<_> = findings.faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(paths, ["spec.buildOutput.imageRegistry", "spec.buildOutput.imageTag", "spec.pipeline.steps[1].name"]);
    assert_eq!(refusal(&findings).lines().count(), 3);
}

#[test]
fn case_b20_to_b23_reach_this_front_end() {
    let findings = created(json!({
        "source": {"sourceRepository": "https://u:s3cr3t@h/r.git", "sourceRevision": "--x", "sourceSubfolder": "../x", "sourceCredentials": {}},
    }));
    let paths: Vec<_> = findings.faults.iter().map(|fault| fault.path.as_str()).collect();
    let source = ["sourceRepository", "sourceRevision", "sourceSubfolder", "sourceCredentials.name"];
    assert_eq!(paths, source.map(|field| format!("spec.source.{field}")));
    assert!(!format!("{findings:?}").contains("s3cr3t"));
}

/// Overridden: the API server prunes unknown keys before us; no webhook work.
#[test]
fn case_b30_unknown_keys_are_the_api_servers() {
    let findings = created(json!({"model": "prod"}));
    assert_eq!((findings.faults, findings.notes), (vec![], vec![]));
}

#[test]
fn case_b31_an_unused_parameter_is_said() {
    let findings = created(json!({"pipeline": {"parameters": [{"name": "FOO", "value": "bar"}]}}));
    assert_eq!(findings.faults, []);
    assert_eq!(findings.notes.iter().map(|note| note.reason).collect::<Vec<_>>(), [Reason::ParameterUnused]);
    // The common one: upstream's samples named the Secret here, where nothing reads it.
    let findings = created(json!({"pipeline": {"parameters": [{"name": "SOURCE_REPO_SECRET", "value": "token"}]}}));
    assert!(findings.notes[0].text.ends_with("Fill spec.source.sourceCredentials.name instead"), "{findings:?}");
}

/// D-6, overridden: whether Secrets exist is looked at by the controller, again and again.
#[test]
fn case_d06_secrets_are_not_a_reviews_business() {
    let members = json!({
        "source": {"sourceCredentials": {"name": "not-there-yet"}},
        "buildOutput": {"imageRepoCredentials": {"name": "neither-is-this"}},
    });
    let findings = created(members);
    assert_eq!((findings.faults, findings.notes), (vec![], vec![]));
}

/// D-8: a step ConfigMap may come later.
#[test]
fn steps_that_are_missing_or_wrong_are_warnings() {
    let object = |name: &str| {
        with(json!({"mode": "custom", "pipeline": {"namespace": TEAM, "steps": [{"name": "a", "configMap": name}]}}))
    };
    let view = shipped()
        .with([step_map(TEAM, "bad", "steps: [{name: a, resources: {}}]"), step_map(TEAM, "good", &task_spec(""))]);
    for (name, reason) in [("gone", Reason::StepMissing), ("bad", Reason::StepInvalid)] {
        let findings = reviewed(&object(name), None, &view);
        assert_eq!(findings.faults, [], "{name}");
        assert!(findings.notes.iter().any(|note| note.reason == reason), "{findings:?}");
    }
    assert_eq!(reviewed(&object("good"), None, &view).notes, []);
    // Where the step is looked for is where it must be, and the default is seldom one's own namespace.
    let elsewhere = with(json!({"mode": "custom", "pipeline": {"steps": [{"name": "a", "configMap": "good"}]}}));
    let told = reviewed(&elsewhere, None, &view).notes.iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains("create the ConfigMap in namespace kagenti-system"), "{told}");
}

#[test]
fn credentials_go_to_their_repository_only() {
    let members = json!({
        "source": {"sourceCredentials": {"name": "token"}},
        "pipeline": {"parameters": [{"name": "repo-url", "value": "evil.example/x"}]},
    });
    assert!(
        refusal(&created(members)).contains("spec.pipeline.parameters[0].value would send the source's credentials")
    );
    for (name, value) in [("repo-url", "ext::sh -c id"), ("revision", "--upload-pack=x"), ("subfolder-path", "../x")] {
        let findings = created(json!({"pipeline": {"parameters": [{"name": name, "value": value}]}}));
        assert!(refusal(&findings).contains("spec.pipeline.parameters[0].value"), "{name}: {findings:?}");
    }
}

#[test]
fn a_moving_revision_is_said_where_it_matters() {
    for (mode, revision, said) in [("preprod", "main", true), ("preprod", "v1.2.3", false), ("dev", "main", false)] {
        let findings = created(json!({"mode": mode, "source": {"sourceRevision": revision}}));
        let moving = findings.notes.iter().any(|note| note.reason == Reason::MovingReference);
        assert_eq!(moving, said, "{mode} {revision}");
    }
}

#[test]
fn a_template_may_forbid_steps_in_any_mode() {
    let text =
        r#"{"name": "x", "customSteps": "forbidden", "steps": [{"name": "a", "configMap": "github-clone-step"}]}"#;
    let view = shipped().with([template_map(OPERATOR, "dev", text)]);
    let object = with(json!({"pipeline": {"steps": custom_steps()}}));
    assert_eq!(reviewed(&object, None, &view).faults[0].reason, Reason::GatedMode);
}

/// Rows of 6.6 that are the webhook's.
#[test]
fn what_typical_mistakes_are_told() {
    let step =
        |step: serde_json::Value| json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": [step]}});
    for (members, expected) in [
        (json!({"source": {"sourceRepository": ""}}), "spec.source.sourceRepository is required"),
        (json!({"buildOutput": {"imageTag": ""}}), "spec.buildOutput.imageTag is required"),
        (step(json!({"name": "", "configMap": "c"})), "spec.pipeline.steps[0].name is required"),
        (step(json!({"name": "a", "configMap": ""})), "spec.pipeline.steps[0].configMap is required"),
        (step(json!({"name": "Git_Clone", "configMap": "c"})), "spec.pipeline.steps[0].name is not a DNS label"),
        (
            step(
                json!({"name": "a", "configMap": "c", "whenExpressions": [{"input": "x", "operator": "in", "values": []}]}),
            ),
            "spec.pipeline.steps[0].whenExpressions[0].values is empty",
        ),
        (
            json!({"pipeline": {"parameters": [{"name": "A", "value": "$(FOO)"}]}}),
            "spec.pipeline.parameters[0].value contains $(",
        ),
        (json!({"pipeline": {"parameters": [{"name": "candidate-image", "value": "x"}]}}), "is a reserved name"),
        (
            json!({"pipeline": {"parameters": [{"name": "A", "value": 7}]}}),
            "spec.pipeline.parameters[0].value must be a string",
        ),
        (
            json!({"pipeline": {"parameters": [{"name": "pipeline-timeout", "value": "1s"}]}}),
            "is not a duration from 1m to 24h",
        ),
    ] {
        let told = refusal(&created(members));
        assert!(told.contains(expected), "{told:?} does not say {expected:?}");
    }
}

#[test]
fn sizes_that_hurt_are_refused_and_not_repeated() {
    let steps: Vec<_> = (0..1000).map(|index| json!({"name": format!("s{index}"), "configMap": "c"})).collect();
    let told = refusal(&created(json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": steps}})));
    assert!(told.contains("spec.pipeline.steps has 1000 entries") && told.len() < 4000, "{told:.500}");
    let told = refusal(&created(json!({"pipeline": {"parameters": [{"name": "A", "value": "x".repeat(1 << 20)}]}})));
    assert!(told.contains("has 1048576 bytes") && told.len() < 4000);
}

/// Mode custom takes over what the template gave where it is sent along, and takes nothing over by itself.
#[test]
fn mend_13_a_build_that_leaves_its_template_is_told_what_becomes_of_the_steps() {
    let view = shipped();
    let old = completed(&with(json!({"mode": "dev"})), None, &view);
    assert_eq!(origin(&old), "template/dev");
    // As `kubectl apply` and `kubectl patch` send it: the steps that are stored come along.
    let mut along = old.clone();
    along["spec"]["mode"] = json!("custom");
    let findings = reviewed(&along, Some(&old), &view);
    assert_eq!(findings.faults, []);
    let notes: Vec<_> = findings.notes.iter().filter(|note| note.reason == Reason::StepsKept).collect();
    assert!(matches!(&notes[..], [one] if one.path == "spec.pipeline.steps"), "{findings:?}");
    let text = &notes[0].text;
    for part in
        ["kagenti-system/pipeline-template-dev@", "stay as the build's own", "(pipeline-timeout)", "set mode dev"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(origin(&completed(&along, Some(&old), &view)), "user");
    // Replaced as a whole, it has none.
    let told = refusal(&reviewed(&with(json!({"mode": "custom"})), Some(&old), &view));
    assert!(told.contains("the steps that template kagenti-system/pipeline-template-dev@"), "{told}");
    assert!(told.contains("in mode dev do not stay by themselves") && told.contains("stay in mode dev"), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
    // Nothing is said of steps of one's own, nor of a build that never had others.
    for (object, old) in [
        (with(json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": custom_steps()}})), Some(&old)),
        (with(json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": custom_steps()}})), None),
    ] {
        let findings = reviewed(&object, old, &view);
        assert!(findings.faults.is_empty() && findings.notes.iter().all(|note| note.reason != Reason::StepsKept));
    }
    let told = refusal(&created(json!({"mode": "custom"})));
    assert!(told.contains("must be given in mode custom") && !told.contains("do not stay"), "{told}");
}
