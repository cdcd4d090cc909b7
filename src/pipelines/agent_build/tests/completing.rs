//! What the mutating webhook fills in and records.

use serde_json::{Value, json};

use super::*;
use crate::domain::reason::Reason;
use crate::pipelines::fixtures::{step_map, task_spec, template_map};

const DEV: [&str; 5] = ["github-clone", "folder-verification", "dockerfile-check", "buildah-build", "buildpack-step"];

#[test]
fn case_b01_what_is_left_open_is_filled_in() {
    let mut object = minimal();
    object["spec"].as_object_mut().unwrap().remove("mode");
    let stored = completed(&object, None, &shipped());
    assert_eq!(stored["spec"]["mode"], "dev");
    assert_eq!(stored["spec"]["source"]["sourceRevision"], "main");
    assert_eq!(stored["spec"]["pipeline"]["namespace"], OPERATOR);
    assert_eq!(step_names(&stored), DEV);
    let buildah = &stored["spec"]["pipeline"]["steps"][3];
    assert_eq!(buildah["whenExpressions"][0]["values"], json!(["true"]));
    assert_eq!(buildah["parameters"][0]["name"], "DOCKERFILE");
    assert_eq!(origin(&stored), "template/dev");
    let template = stored["metadata"]["annotations"][keys::ANNOTATION_PIPELINE_TEMPLATE].as_str().unwrap();
    assert!(template.starts_with("kagenti-system/pipeline-template-dev@") && template.len() == 37 + 12, "{template}");
    assert_eq!(reviewed(&object, None, &shipped()).faults, []);
}

#[test]
fn case_b02_nothing_derived_is_written() {
    let stored = completed(&minimal(), None, &shipped());
    assert!(stored["spec"]["pipeline"].get("parameters").is_none());
    assert!(stored["spec"].get("buildArgs").is_none());
}

#[test]
fn case_b03_applying_the_same_file_again_changes_nothing() {
    let stored = completed(&minimal(), None, &shipped());
    // Client-side apply: what the file does not name stays.
    assert_eq!(completed(&stored, Some(&stored), &shipped()), stored);
}

#[test]
fn case_b04_a_label_needs_no_template() {
    let stored = completed(&minimal(), None, &shipped());
    let mut labelled = stored.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let empty = TemplatesView::new(OPERATOR, false);
    assert_eq!(completed(&labelled, Some(&stored), &empty), labelled);
    assert_eq!(reviewed(&labelled, Some(&stored), &empty), Findings::default());
}

#[test]
fn case_b05_another_mode_brings_its_steps() {
    let stored = completed(&minimal(), None, &shipped());
    let mut changed = stored.clone();
    changed["spec"]["mode"] = json!("buildpack-dev");
    let changed = completed(&changed, Some(&stored), &shipped());
    assert_eq!(step_names(&changed), ["github-clone", "folder-verification", "buildpack-step"]);
    assert_eq!(origin(&changed), "template/buildpack-dev");
}

/// Another namespace of the pipeline, too.
#[test]
fn another_namespace_brings_its_steps() {
    let own = r#"{"name": "own", "steps": [{"name": "only", "configMap": "mine"}]}"#;
    let view = shipped().with([template_map(TEAM, "dev", own), step_map(TEAM, "mine", &task_spec(""))]);
    let stored = completed(&minimal(), None, &view);
    let mut moved = stored.clone();
    moved["spec"]["pipeline"]["namespace"] = json!(TEAM);
    let moved = completed(&moved, Some(&stored), &view);
    assert_eq!(step_names(&moved), ["only"]);
    let hashes = moved["metadata"]["annotations"][keys::ANNOTATION_STEP_HASHES].as_str().unwrap();
    assert!(hashes.contains(&view.steps(TEAM)["mine"].hash), "{hashes}");
}

#[test]
fn case_b06_an_edited_step_makes_the_steps_the_users() {
    let stored = completed(&minimal(), None, &shipped());
    let mut edited = stored.clone();
    edited["spec"]["pipeline"]["steps"][1]["enabled"] = json!(false);
    let edited = completed(&edited, Some(&stored), &shipped());
    assert_eq!(step_names(&edited), DEV);
    assert_eq!(edited["spec"]["pipeline"]["steps"][1]["enabled"], false);
    assert_eq!(origin(&edited), "user");
    assert!(edited["metadata"]["annotations"].get(keys::ANNOTATION_PIPELINE_TEMPLATE).is_none());
}

#[test]
fn case_b07_custom_steps_stay_exactly_as_they_are() {
    let object = with(json!({"pipeline": {"namespace": OPERATOR, "steps": custom_steps()}}));
    let stored = completed(&object, None, &shipped());
    assert_eq!(stored["spec"]["pipeline"]["steps"], custom_steps());
    assert_eq!(origin(&stored), "user");
}

#[test]
fn case_b08_a_forged_origin_is_overwritten() {
    let object = annotated(
        with(json!({"mode": "prod", "pipeline": {"steps": custom_steps()}})),
        keys::ANNOTATION_PIPELINE_ORIGIN,
        "template/prod",
    );
    let stored = completed(&object, None, &shipped());
    assert_eq!(origin(&stored), "user");
    let findings = reviewed(&object, None, &shipped());
    assert!(
        findings.faults.iter().any(|fault| fault.reason == Reason::GatedMode && fault.path == "spec.pipeline.steps")
    );
    // Nor later.
    let forged = annotated(stored.clone(), keys::ANNOTATION_PIPELINE_ORIGIN, "template/prod");
    assert_eq!(completed(&forged, Some(&stored), &shipped()), stored);
    let forged = annotated(stored.clone(), keys::ANNOTATION_STEP_HASHES, "{}");
    assert_eq!(completed(&forged, Some(&stored), &shipped()), stored);
}

/// A copy of a stored object is what the original was; nothing about it can be forged, because the steps are equal.
#[test]
fn a_restored_object_is_the_templates_again() {
    let stored = completed(&minimal(), None, &shipped());
    let mut copy = stored.clone();
    copy["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(completed(&copy, None, &shipped()), stored);
}

#[test]
fn an_explicit_empty_list_is_filled_in_too() {
    for steps in [json!([]), Value::Null] {
        let mut object = minimal();
        object["spec"]["pipeline"] = json!({"steps": steps});
        assert_eq!(step_names(&completed(&object, None, &shipped())), DEV);
    }
    let mut object = minimal();
    object["spec"]["pipeline"] = Value::Null;
    assert_eq!(step_names(&completed(&object, None, &shipped())), DEV);
}

#[test]
fn case_b32_nothing_stands_in_the_way_of_a_deletion() {
    let mut object = minimal();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["spec"]["mode"] = json!("staging");
    let empty = TemplatesView::new(OPERATOR, false);
    assert_eq!(completed(&object, None, &empty), object);
    assert_eq!(reviewed(&object, Some(&minimal()), &empty), Findings::default());
}

/// Overridden: templates come from the watch, so there is no look-up that could time out; a
/// template that is not there is a refusal that names it, never an error.
#[test]
fn case_b33_there_is_no_look_up_that_can_fail() {
    let empty = TemplatesView::new(OPERATOR, false);
    let stored = completed(&minimal(), None, &empty);
    assert_eq!(step_names(&stored), Vec::<&str>::new());
    assert_eq!(stored["spec"]["source"]["sourceRevision"], "main", "what can be completed is");
    let findings = reviewed(&minimal(), None, &empty);
    assert_eq!(findings.faults[0].reason, Reason::TemplateMissing);
}

/// Overridden: the webhook never asks for the requester's rights; it records whose the
/// steps are, and a policy in the API server decides by that.
#[test]
fn case_b34_the_origin_is_what_the_policy_reads() {
    let custom = with(json!({"mode": "custom", "pipeline": {"namespace": OPERATOR, "steps": custom_steps()}}));
    assert_eq!(reviewed(&custom, None, &shipped()).faults, []);
    assert_eq!(origin(&completed(&custom, None, &shipped())), "user");
    assert_eq!(origin(&completed(&minimal(), None, &shipped())), "template/dev");
    // An object from before the webhook counts as the user's.
    let stored = completed(&minimal(), None, &shipped());
    let mut before = stored.clone();
    before["metadata"].as_object_mut().unwrap().remove("annotations");
    assert_eq!(origin(&completed(&before, Some(&before), &shipped())), "user");
}

/// Overridden: any new value acts once and stays in the object.
#[test]
fn case_b35_a_refresh_acts_once_per_value() {
    let old_view = shipped();
    let stored = completed(&minimal(), None, &old_view);
    let newer = r#"{"name": "dev", "steps": [{"name": "only", "configMap": "github-clone-step"}]}"#;
    let view = shipped().with([template_map(OPERATOR, "dev", newer)]);
    let asked = annotated(stored.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "true");
    let refreshed = completed(&asked, Some(&stored), &view);
    assert_eq!(step_names(&refreshed), ["only"]);
    let annotations = &refreshed["metadata"]["annotations"];
    assert_eq!(annotations[keys::ANNOTATION_REFRESH_TEMPLATE], "true", "never removed");
    assert_eq!(annotations[keys::ANNOTATION_REFRESH_HANDLED], "true");
    assert_ne!(
        annotations[keys::ANNOTATION_PIPELINE_TEMPLATE],
        stored["metadata"]["annotations"][keys::ANNOTATION_PIPELINE_TEMPLATE]
    );
    // Left in the manifest it does nothing more, whatever becomes of the template.
    assert_eq!(completed(&refreshed, Some(&refreshed), &old_view), refreshed);
    let again = annotated(refreshed.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "again");
    assert_eq!(step_names(&completed(&again, Some(&refreshed), &old_view)), DEV);
    // Steps of the user's own are nobody's to refresh.
    let custom = completed(&with(json!({"pipeline": {"steps": custom_steps()}})), None, &view);
    let asked = annotated(custom.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "true");
    assert_eq!(completed(&asked, Some(&custom), &view)["spec"]["pipeline"]["steps"], custom_steps());
}

/// A wish that comes to nothing is said to whoever utters it: the review of what is wrong does not look at an update that leaves the spec alone.
#[test]
fn a_refresh_without_a_template_is_said_to_have_no_effect() {
    let settings = Settings::new(OPERATOR);
    let stored = completed(&minimal(), None, &shipped());
    let asked = annotated(stored.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "1");
    let told = |object: &Value, old: Option<&Value>, view: &TemplatesView| {
        unrefreshed(&Change { namespace: TEAM, object, old }, view, &settings)
    };
    let empty = TemplatesView::new(OPERATOR, false);
    let broken = shipped().with([template_map(OPERATOR, "dev", "{")]);
    for (view, reason, why) in
        [(&empty, Reason::TemplateMissing, "is not there"), (&broken, Reason::TemplateInvalid, "cannot be used")]
    {
        let note = told(&asked, Some(&stored), view).unwrap();
        let path = "metadata.annotations[agent.kagenti.dev/refresh-template]";
        assert_eq!((note.reason, note.path.as_str()), (reason, path));
        assert!(note.text.contains("kagenti-system/pipeline-template-dev") && note.text.contains(why), "{}", note.text);
        // It counts as acted on, and is said once.
        let after = completed(&asked, Some(&stored), view);
        assert_eq!(after["spec"], stored["spec"]);
        assert_eq!(told(&after, Some(&after), view), None);
    }
    assert_eq!(told(&asked, Some(&stored), &shipped()), None, "it has an effect");
    assert_eq!(told(&stored, Some(&stored), &empty), None, "nobody asks");
    assert_eq!(told(&asked, None, &empty), None, "a new build has no steps to be taken anew");
    let custom = completed(&with(json!({"pipeline": {"steps": custom_steps()}})), None, &shipped());
    let asked = annotated(custom.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "1");
    assert_eq!(told(&asked, Some(&custom), &empty), None, "the user's own");
}

/// G4: the global parameters of a tenant's template are read when the build starts, so the template is pinned as its
/// steps are; the operator's own is trusted as it is.
#[test]
fn a_tenants_template_is_pinned_as_its_steps_are() {
    let template = |timeout: &str| {
        let globals = json!([{"name": "pipeline-timeout", "value": timeout}]);
        let steps = json!([{"name": "only", "configMap": "mine"}]);
        template_map(TEAM, "dev", &json!({"name": "own", "steps": steps, "globalParameters": globals}).to_string())
    };
    let view = |timeout| shipped().with([template(timeout), step_map(TEAM, "mine", &task_spec(""))]);
    let own = with(json!({"pipeline": {"namespace": TEAM}}));
    let stored = completed(&own, None, &view("20m"));
    assert_eq!(drift(&stored, &view("20m")), None);
    let gone = shipped().with([step_map(TEAM, "mine", &task_spec(""))]);
    let mut broken = template("20m");
    broken.data.insert(keys::KEY_TEMPLATE.to_owned(), "{".to_owned());
    let broken = view("20m").with([broken]);
    for (swapped, told) in [(&view("24h"), "changed since the review"), (&gone, "is gone"), (&broken, "changed since")]
    {
        let fault = drift(&stored, swapped).unwrap();
        assert_eq!(fault.reason, Reason::TemplateDrift);
        assert!(fault.sentence.contains(told) && fault.remedy.contains("refresh-template"), "{fault}");
    }
    // An edit of something else keeps the pin, and says what the build will wait for.
    let mut edited = stored.clone();
    edited["spec"]["source"]["sourceRevision"] = json!("v2.0.0");
    let edited = completed(&edited, Some(&stored), &view("24h"));
    assert!(drift(&edited, &view("24h")).is_some());
    let notes = reviewed(&edited, Some(&stored), &view("24h")).notes;
    assert!(notes.iter().any(|note| note.reason == Reason::TemplateDrift), "{notes:#?}");
    // A refresh accepts what is there; with nothing to accept, what comes later has still not been seen.
    let asked = annotated(stored.clone(), keys::ANNOTATION_REFRESH_TEMPLATE, "1");
    assert_eq!(drift(&completed(&asked, Some(&stored), &view("24h")), &view("24h")), None);
    for nothing in [&gone, &broken] {
        assert!(drift(&completed(&asked, Some(&stored), nothing), &view("24h")).is_some());
    }
    // Steps that have become the user's own read no template.
    let mut users = stored.clone();
    users["spec"]["pipeline"]["steps"][0]["enabled"] = json!(true);
    assert_eq!(drift(&completed(&users, Some(&stored), &view("20m")), &view("24h")), None);
    let operators = completed(&minimal(), None, &shipped());
    assert_eq!(drift(&operators, &TemplatesView::new(OPERATOR, false)), None);
}

#[test]
fn case_b37_the_file_without_steps_converges() {
    let stored = completed(&minimal(), None, &shipped());
    // Server-side apply and a full replace send the object without what the webhook added.
    let sent = minimal();
    let again = completed(&sent, Some(&stored), &shipped());
    assert_eq!(again["spec"], stored["spec"]);
    assert_eq!(again["metadata"]["annotations"], stored["metadata"]["annotations"]);
    // Also when the template has changed since: an upgrade of the platform rebuilds nothing.
    let newer = r#"{"name": "dev", "steps": [{"name": "only", "configMap": "github-clone-step"}]}"#;
    let view = shipped().with([template_map(OPERATOR, "dev", newer)]);
    assert_eq!(completed(&sent, Some(&stored), &view)["spec"], stored["spec"]);
    let empty = TemplatesView::new(OPERATOR, false);
    assert_eq!(completed(&sent, Some(&stored), &empty)["spec"], stored["spec"]);
    // But with another mode the steps are that mode's.
    let sent = with(json!({"mode": "buildpack-dev"}));
    assert_eq!(step_names(&completed(&sent, Some(&stored), &view)).len(), 3);
}

#[test]
fn steps_taken_away_from_a_users_own_come_from_the_template() {
    let stored = completed(&with(json!({"pipeline": {"steps": custom_steps()}})), None, &shipped());
    let again = completed(&minimal(), Some(&stored), &shipped());
    assert_eq!((step_names(&again), origin(&again)), (DEV.to_vec(), "template/dev"));
}

#[test]
fn choosing_custom_makes_the_shown_steps_the_users() {
    let stored = completed(&minimal(), None, &shipped());
    let mut custom = stored.clone();
    custom["spec"]["mode"] = json!("custom");
    let custom = completed(&custom, Some(&stored), &shipped());
    assert_eq!((step_names(&custom), origin(&custom)), (DEV.to_vec(), "user"));
}

#[test]
fn a_mode_without_template_keeps_what_is_there_and_is_refused() {
    let stored = completed(&minimal(), None, &shipped());
    let mut view = shipped();
    view.remove(OPERATOR, "pipeline-template-prod");
    let mut prod = stored.clone();
    prod["spec"]["mode"] = json!("prod");
    let kept = completed(&prod, Some(&stored), &view);
    assert_eq!((step_names(&kept), origin(&kept)), (DEV.to_vec(), "template/dev"));
    let findings = reviewed(&prod, Some(&stored), &view);
    assert!(refusal(&findings).contains("pipeline-template-prod not found"), "{findings:?}");
}

/// D-20, overridden: `cancel` is the user's annotation and stays.
#[test]
fn case_d20_cancel_is_not_taken_away() {
    let stored = completed(&minimal(), None, &shipped());
    let asked = annotated(stored.clone(), "agent.kagenti.dev/cancel", "please");
    assert_eq!(completed(&asked, Some(&stored), &shipped()), asked);
}

#[test]
fn members_nobody_knows_and_broken_objects_stay_as_they_are() {
    let mut object = with(json!({"future": {"deep": [1, 2.50]}, "pipeline": {"future": true}}));
    object["metadata"]["annotations"] = json!({"a/b~c": "x"});
    let stored = completed(&object, None, &shipped());
    assert_eq!(stored["spec"]["future"], object["spec"]["future"]);
    assert_eq!(stored["spec"]["pipeline"]["future"], true);
    assert_eq!(stored["metadata"]["annotations"]["a/b~c"], "x");
    let odd = json!({"mode": 7, "pipeline": "x", "source": 1});
    for broken in [
        json!({}),
        json!({"metadata": {}, "spec": []}),
        json!({"metadata": {}, "spec": odd}),
        json!({"spec": odd}),
        json!({"metadata": null, "spec": {}}),
        json!(null),
    ] {
        let change = Change { namespace: TEAM, object: &broken, old: None };
        let operations = complete(&change, &shipped(), &Settings::new(OPERATOR));
        let mut patched = broken.clone();
        assert!(patch(&mut patched, &operations).is_ok(), "{operations:?}");
        let _ = validate(&change, &shipped(), &Settings::new(OPERATOR));
    }
}

#[test]
fn kagenti_system_is_allowed_wherever_the_operator_lives() {
    let maps = config_maps("drawbridge", &Values::default());
    let view = TemplatesView::new("drawbridge", false).with(maps);
    let settings = Settings::new("drawbridge");
    let object = with(
        json!({"pipeline": {"namespace": "kagenti-system"}, "mode": "preprod", "source": {"sourceRevision": "v1.0.0"}}),
    );
    let change = Change { namespace: TEAM, object: &object, old: None };
    let mut stored = object.clone();
    patch(&mut stored, &complete(&change, &view, &settings)).unwrap();
    assert!(!step_names(&stored).is_empty());
    let change = Change { namespace: TEAM, object: &stored, old: None };
    assert_eq!(validate(&change, &view, &settings).faults, []);
}

/// 13.1: a namespace that is called so and holds templates of its own is not the operator's.
#[test]
fn a_gated_mode_takes_nothing_from_somebody_elses_kagenti_system() {
    let own = r#"{"name": "own", "steps": [{"name": "only", "configMap": "mine"}]}"#;
    let theirs = [template_map(OPERATOR, "preprod", own), step_map(OPERATOR, "mine", &task_spec(""))];
    let view = TemplatesView::new("drawbridge", false).with(config_maps("drawbridge", &Values::default())).with(theirs);
    let settings = Settings::new("drawbridge");
    let judged = |mode: &str, namespace: &str| {
        let mut object =
            with(json!({"pipeline": {"namespace": namespace}, "mode": mode, "source": {"sourceRevision": "v1.0.0"}}));
        let change = Change { namespace: TEAM, object: &object, old: None };
        let operations = complete(&change, &view, &settings);
        patch(&mut object, &operations).unwrap();
        validate(&Change { namespace: TEAM, object: &object, old: None }, &view, &settings).faults
    };
    let faults = judged("preprod", OPERATOR);
    assert!(
        faults.iter().any(|one| one.path == "spec.pipeline.namespace" && one.reason == Reason::GatedMode),
        "{faults:?}"
    );
    assert_eq!(judged("preprod", "drawbridge"), []);
}

/// What a template of the platform names is nobody's choice: it is used by the Secret's own consent.
#[test]
fn mend_06_what_a_template_of_the_platform_brings_is_left_to_consent() {
    let steps = json!([{"name": "push", "configMap": "github-clone-step", "defaultParameters": [
        {"name": "registry-secret", "value": "team-push"}, {"name": "image", "value": "i"}]}]);
    let template = json!({"name": "t", "steps": steps}).to_string();
    let view = |namespace: &str| shipped().with([template_map(namespace, "dev", &template)]);
    let listed = |object: &Value| object["metadata"]["annotations"][keys::ANNOTATION_SECRETS_BY_CONSENT].clone();
    let stored = completed(&minimal(), None, &view(OPERATOR));
    assert_eq!(listed(&stored), "team-push");
    let mut own = minimal();
    own["metadata"]["annotations"] = json!({keys::ANNOTATION_SECRETS_BY_CONSENT: "mine"});
    assert_eq!(listed(&completed(&own, None, &view(OPERATOR))), "mine,team-push");
    // Applied again without it, and edited by its author: it stays.
    assert_eq!(listed(&completed(&minimal(), Some(&stored), &view(OPERATOR))), "team-push");
    let mut edited = stored.clone();
    edited["metadata"]["annotations"][keys::ANNOTATION_SECRETS_BY_CONSENT] = json!("");
    assert_eq!(listed(&completed(&edited, Some(&stored), &view(OPERATOR))), "team-push");
    // A tenant's template and a person's own steps are the choice of whoever brings them.
    let mut tenants = minimal();
    tenants["spec"]["pipeline"] = json!({"namespace": TEAM});
    let stored = completed(&tenants, None, &view(TEAM));
    assert_eq!((stored["spec"]["pipeline"]["steps"][0]["name"].as_str(), listed(&stored)), (Some("push"), Value::Null));
    let own = with(json!({"mode": "custom", "pipeline": {"steps": [{"name": "push", "configMap": "github-clone-step",
        "parameters": [{"name": "registry-secret", "value": "team-push"}]}]}}));
    assert_eq!(listed(&completed(&own, None, &view(OPERATOR))), Value::Null);
    assert_eq!(listed(&completed(&minimal(), None, &shipped())), Value::Null);
}
