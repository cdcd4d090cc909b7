//! Reviews of builds and agents through `evaluate`, as the server calls it.

use std::borrow::Cow;

use json_patch::patch;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::admission::evaluate;
use crate::admission::inject::fixtures::snapshot_with;
use crate::admission::verdict::{Outcome, Verdict};
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::config::builds::{Builds, Names};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::catalogue::{Values, config_maps};

fn snapshot() -> Snapshot {
    let snapshot = snapshot_with(|_| (), |_| ());
    let mut builds = Builds::clone(&snapshot.builds);
    builds.view = builds.view.with(config_maps("kagenti-system", &Values::default()));
    builds.names = Some(Names::from([("team1".into(), ["weather".to_owned()].into())]));
    snapshot.with_builds(builds.into())
}

fn asked(phase: Phase, kind: &str, object: &Value, old: Option<&Value>) -> Verdict {
    let raw = to_raw_value(object).unwrap();
    let old = old.map(|old| to_raw_value(old).unwrap());
    let request = Request {
        phase,
        uid: Cow::Borrowed("u"),
        kind: GroupVersionKind { group: "agent.kagenti.dev".into(), version: "v1alpha1".into(), kind: kind.into() },
        sub_resource: None,
        name: object["metadata"]["name"].as_str().map(Into::into),
        namespace: Some("team1".into()),
        operation: if old.is_some() { Operation::Update } else { Operation::Create },
        dry_run: None,
        object: Some((&*raw).into()),
        old_object: old.as_deref().map(Into::into),
    };
    evaluate(&request, &snapshot())
}

fn build() -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild",
        "metadata": {"name": "weather", "namespace": "team1", "managedFields": [{"manager": "kubectl"}]},
        "spec": {
            "source": {"sourceRepository": "github.com/kagenti/agent-examples.git", "sourceSubfolder": "a2a/weather_service"},
            "buildOutput": {"imageRegistry": "ghcr.io/acme", "image": "weather", "imageTag": "v1"},
            "mode": "dev",
        },
    })
}

#[test]
fn an_agent_build_is_completed_then_accepted_and_the_audit_log_knows_from_where() {
    let first = asked(Phase::Mutate, "AgentBuild", &build(), None);
    assert_eq!(first.reason, Reason::Completed);
    assert!(first.audit.contains(&("origin", "template/dev".to_owned())), "{:?}", first.audit);
    assert!(
        first
            .audit
            .iter()
            .any(|(key, value)| *key == "template" && value.starts_with("kagenti-system/pipeline-template-dev@"))
    );
    let mut stored = build();
    patch(&mut stored, &first.operations()).unwrap();
    assert_eq!(stored["spec"]["pipeline"]["steps"].as_array().unwrap().len(), 5);
    assert_eq!(stored["metadata"]["managedFields"], build()["metadata"]["managedFields"]);
    assert_eq!(asked(Phase::Mutate, "AgentBuild", &stored, None).reason, Reason::AlreadyComplete);
    let judged = asked(Phase::Validate, "AgentBuild", &stored, None);
    assert_eq!((judged.reason, judged.allowed()), (Reason::Accepted, true), "{judged:?}");
}

#[test]
fn every_fault_stands_in_one_refusal_a_line_each() {
    let mut wrong = build();
    wrong["metadata"]["name"] = json!("a.b");
    wrong["spec"]["buildOutput"]["imageTag"] = json!("");
    wrong["spec"]["source"]["sourceSubfolder"] = json!("../x");
    let mut stored = wrong.clone();
    patch(&mut stored, &asked(Phase::Mutate, "AgentBuild", &wrong, None).operations()).unwrap();
    let verdict = asked(Phase::Validate, "AgentBuild", &stored, None);
    let Outcome::Deny(denial) = &verdict.outcome else { panic!("{verdict:?}") };
    assert_eq!(denial.code, 403);
    let text = denial.to_string();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].ends_with("AgentBuild a.b is not accepted:"), "{text}");
    assert_eq!(lines.len(), 4, "{text}");
    for path in ["metadata.name ", "spec.buildOutput.imageTag ", "spec.source.sourceSubfolder "] {
        assert!(lines[1..].iter().any(|line| line.starts_with(path)), "{path}: {text}");
    }
}

#[test]
fn a_template_that_is_missing_is_not_refused_by_the_first_webhook_but_by_the_second() {
    let mut object = build();
    object["spec"]["pipeline"] = json!({"namespace": "team1"});
    let first = asked(Phase::Mutate, "AgentBuild", &object, None);
    assert!(first.allowed());
    patch(&mut object, &first.operations()).unwrap();
    let second = asked(Phase::Validate, "AgentBuild", &object, None);
    assert_eq!(second.reason, Reason::TemplateMissing, "{second:?}");
}

/// The second webhook does not look at an update that leaves the spec alone.
#[test]
fn a_refresh_that_has_no_effect_is_warned_of() {
    let mut old = build();
    old["spec"]["pipeline"] = json!({"namespace": "team1", "steps": [{"name": "only", "configMap": "mine"}]});
    old["metadata"]["annotations"] = json!({keys::ANNOTATION_PIPELINE_ORIGIN: "template/dev"});
    let mut now = old.clone();
    now["metadata"]["annotations"][keys::ANNOTATION_REFRESH_TEMPLATE] = json!("1");
    let verdict = asked(Phase::Mutate, "AgentBuild", &now, Some(&old));
    assert!(verdict.allowed(), "{verdict:?}");
    let told: Vec<_> = verdict.warnings.iter().map(|warning| warning.reason).collect();
    assert_eq!(told, [Reason::TemplateMissing], "{verdict:?}");
    assert!(asked(Phase::Mutate, "AgentBuild", &old, Some(&old)).warnings.is_empty());
}

#[test]
fn case_b32_what_is_on_its_way_out_and_what_leaves_the_spec_alone_is_never_refused() {
    let mut wrong = build();
    wrong["spec"]["mode"] = json!("staging");
    for (phase, kind) in [(Phase::Mutate, "AgentBuild"), (Phase::Validate, "AgentBuild"), (Phase::Validate, "Agent")] {
        let mut leaving = wrong.clone();
        leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(asked(phase, kind, &leaving, Some(&wrong)).reason, Reason::BeingDeleted);
        if phase == Phase::Validate {
            assert_eq!(asked(phase, kind, &wrong, Some(&wrong)).reason, Reason::SpecUnchanged);
        }
    }
}

#[test]
fn what_cannot_be_read_is_a_bad_request() {
    for object in [json!(null), json!([]), json!("x")] {
        for (phase, kind) in
            [(Phase::Mutate, "AgentBuild"), (Phase::Validate, "AgentBuild"), (Phase::Validate, "Agent")]
        {
            let verdict = asked(phase, kind, &object, None);
            let Outcome::Deny(denial) = &verdict.outcome else { panic!("{verdict:?}") };
            assert_eq!((denial.reason, denial.code), (Reason::Undecodable, 400));
        }
    }
}

#[test]
fn an_agent_hears_of_a_build_that_does_not_exist_yet() {
    let agent = |build: &str| {
        json!({"metadata": {"name": "weather", "namespace": "team1"}, "spec": {
            "imageSource": {"buildRef": {"name": build}},
            "podTemplateSpec": {"spec": {"containers": [{"name": "agent"}]}},
            "servicePorts": [{"name": "http", "port": 8080, "targetPort": 8000}]}})
    };
    let known = asked(Phase::Validate, "Agent", &agent("weather"), None);
    assert_eq!((known.reason, known.warnings.len()), (Reason::Accepted, 0), "{known:?}");
    let unknown = asked(Phase::Validate, "Agent", &agent("other"), None);
    assert!(unknown.allowed());
    assert_eq!(unknown.warnings[0].reason, Reason::BuildUnknown);
    let mut both = agent("weather");
    both["spec"]["imageSource"]["image"] = json!("a/b:1");
    assert!(!asked(Phase::Validate, "Agent", &both, None).allowed());
}

#[test]
fn status_and_other_operations_are_not_ours() {
    let object = build();
    let raw = to_raw_value(&object).unwrap();
    let mut request = Request {
        phase: Phase::Mutate,
        uid: Cow::Borrowed("u"),
        kind: GroupVersionKind {
            group: keys::GROUP_AGENT.into(),
            version: "v1alpha1".into(),
            kind: "AgentBuild".into(),
        },
        sub_resource: Some("status".into()),
        name: None,
        namespace: Some("team1".into()),
        operation: Operation::Update,
        dry_run: None,
        object: Some((&*raw).into()),
        old_object: None,
    };
    assert_eq!(evaluate(&request, &snapshot()).reason, Reason::NotRegistered);
    request.sub_resource = None;
    request.operation = Operation::Delete;
    assert_eq!(evaluate(&request, &snapshot()).reason, Reason::NotRegistered);
}
