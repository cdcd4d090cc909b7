//! Whether a Pod is injected and with which sidecars: cases of the webhook (docs/cases.md) from 1 to 20, and those of modes.
//! A case that a row of docs/deviations.md overrides asserts that row's outcome and names it.

use super::*;
use crate::api::review::{Operation, Phase};
use crate::config::resolved::Unknown;
use crate::domain::keys;

#[test]
fn case_001_another_kind_is_not_registered() {
    // Only what is registered is answered.
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
    let verdict =
        fixtures::review(Phase::Mutate, Operation::Create, ("apps", "Deployment"), &deployment, &fixtures::snapshot());
    assert_eq!((verdict.outcome, verdict.reason), (Outcome::Allow, Reason::NotRegistered));
}

#[test]
fn case_002_a_body_that_is_no_pod() {
    for body in [
        json!("text"),
        json!([]),
        json!(null),
        json!({"kind": "Deployment"}),
        json!({"spec": []}),
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({"spec": {"containers": {}}}),
        json!({"spec": {"containers": [null]}}),
        json!({"spec": {"containers": [{"env": "x"}]}}),
    ] {
        let denial = refusal(&body, &fixtures::snapshot());
        assert_eq!((denial.code, denial.reason), (400, Reason::Undecodable), "{body}");
    }
}

#[test]
fn case_003_no_type_label() {
    for value in ["Agent", "mcp", ""] {
        assert_eq!(skipped(&labelled(&[(keys::LABEL_TYPE, value)]), &fixtures::snapshot()), Reason::NoTypeLabel);
    }
    let mut pod = fixtures::pod();
    pod["metadata"].as_object_mut().unwrap().remove("labels");
    assert_eq!(skipped(&pod, &fixtures::snapshot()), Reason::NoTypeLabel);
}

#[test]
fn case_004_the_kill_switch_beats_every_label() {
    let mut snapshot = fixtures::snapshot();
    snapshot.gates.global_enabled = false;
    let all = labelled(&[
        (keys::LABEL_ENVOY_PROXY, "true"),
        (keys::LABEL_SPIFFE_HELPER, "true"),
        (keys::LABEL_CLIENT_REGISTRATION, "true"),
    ]);
    assert_eq!(skipped(&all, &snapshot), Reason::GlobalDisabled);
}

#[test]
fn case_005_only_disabled_opts_out() {
    let snapshot = fixtures::snapshot();
    assert_eq!(skipped(&labelled(&[(keys::LABEL_INJECT, "disabled")]), &snapshot), Reason::OptedOut);
    for value in ["enabled", "false"] {
        assert_eq!(fixtures::review_pod(&labelled(&[(keys::LABEL_INJECT, value)]), &snapshot).reason, Reason::Injected);
    }
    assert_eq!(warned(&labelled(&[(keys::LABEL_INJECT, "false")]), &snapshot), [Reason::UnknownValue]);
}

#[test]
fn case_006_tools_are_left_alone_by_default() {
    assert_eq!(skipped(&labelled(&[(keys::LABEL_TYPE, "tool")]), &fixtures::snapshot()), Reason::ToolsDisabled);
}

#[test]
fn case_007_tools_get_what_agents_get() {
    let mut snapshot = fixtures::snapshot();
    snapshot.gates.inject_tools = true;
    let tool = injected(&labelled(&[(keys::LABEL_TYPE, "tool")]), &snapshot);
    let agent = injected(&fixtures::pod(), &snapshot);
    assert_eq!(tool["spec"], agent["spec"]);
    assert_eq!(tool["metadata"]["annotations"], agent["metadata"]["annotations"]);
}

#[test]
fn case_008_a_tool_that_is_also_opted_out() {
    let pod = labelled(&[(keys::LABEL_TYPE, "tool"), (keys::LABEL_INJECT, "disabled")]);
    assert!(matches!(skipped(&pod, &fixtures::snapshot()), Reason::ToolsDisabled | Reason::OptedOut));
}

#[test]
fn case_009_without_annotations() {
    let mut pod = fixtures::pod();
    for annotations in [Value::Null, json!({})] {
        pod["metadata"]["annotations"] = annotations;
        assert!(names(&injected(&pod, &fixtures::snapshot())["spec"]["containers"]).contains(&"envoy-proxy"));
    }
}

#[test]
fn with_required_namespace_labels_nothing_is_concluded_about_a_namespace_that_is_not_known_yet() {
    let mut snapshot = fixtures::snapshot();
    snapshot.require_namespace_label = true;
    assert_eq!(skipped(&fixtures::pod(), &snapshot), Reason::NamespaceNotEnrolled, "known, and without the label");
    snapshot.view.namespaces.clear();
    let denial = refusal(&fixtures::pod(), &snapshot);
    assert_eq!((denial.code, denial.reason), (409, Reason::NamespacePending));
    // What would be left alone in any namespace is no guess.
    assert_eq!(skipped(&labelled(&[(keys::LABEL_INJECT, "disabled")]), &snapshot), Reason::OptedOut);
    snapshot.require_namespace_label = false;
    assert_eq!(fixtures::review_pod(&fixtures::pod(), &snapshot).reason, Reason::ServiceAccountPending);
}

/// Sidecars without the namespace's own settings might let through what it forbids.
#[test]
fn mend_02_a_namespace_of_which_a_config_map_is_over_a_bound_and_unknown_is_refused_and_no_other() {
    let unknown = Unknown { place: "ConfigMap team1/d".to_owned(), bound: "is larger than 64 KiB".to_owned() };
    let snapshot = fixtures::snapshot_with(
        |_| {},
        |view| std::sync::Arc::make_mut(&mut view.resolved).unknown = Some(unknown.clone()),
    );
    let denial = refusal(&fixtures::pod(), &snapshot);
    assert_eq!((denial.code, denial.reason), (422, Reason::ConfigUnknown));
    assert!(denial.sentence.starts_with("ConfigMap team1/d is larger than 64 KiB"), "{}", denial.sentence);
    assert_eq!(skipped(&labelled(&[(keys::LABEL_INJECT, "disabled")]), &snapshot), Reason::OptedOut);
    assert_eq!(skipped(&labelled(&[(keys::LABEL_TYPE, "no")]), &snapshot), Reason::NoTypeLabel);
}

/// What holds in a namespace is not guessed while one of its ConfigMaps is still to be read; nobody else is asked to wait.
#[test]
fn mend_01_a_namespace_that_has_not_been_read_answers_409_there_only() {
    let pending = fixtures::snapshot_with(|_| {}, |view| std::sync::Arc::make_mut(&mut view.resolved).pending = true);
    let denial = refusal(&fixtures::pod(), &pending);
    assert_eq!((denial.code, denial.reason), (409, Reason::ConfigPending));
    assert!(denial.remedy.starts_with("nothing, the controller of the Pod tries again"), "{}", denial.remedy);
    assert_eq!(skipped(&labelled(&[(keys::LABEL_INJECT, "disabled")]), &pending), Reason::OptedOut);
    assert_eq!(skipped(&labelled(&[(keys::LABEL_TYPE, "no")]), &pending), Reason::NoTypeLabel);
    let mut elsewhere = fixtures::snapshot();
    let view = pending.view.namespaces["team1"].clone();
    elsewhere.view.namespaces.insert("other".into(), view);
    assert!(names(&injected(&fixtures::pod(), &elsewhere)["spec"]["containers"]).contains(&"envoy-proxy"));
}

#[test]
fn case_012_a_dry_run_gets_the_same_patch() {
    // The verdict carries no writes at all (law 1); dryRun is not even read.
    let raw = serde_json::value::to_raw_value(&fixtures::pod()).unwrap();
    let answer = |dry_run| {
        let request = Request { dry_run, ..fixtures::request(&raw) };
        crate::admission::evaluate(&request, &fixtures::snapshot())
    };
    assert_eq!(answer(Some(true)), answer(None));
}

/// One row of the truth table 3.4.
struct Row<'a> {
    kind: &'a str,
    gates: [bool; 5], // global, tools, envoy, spiffe, registration
    labels: Vec<(&'a str, &'a str)>,
    parts: Option<[bool; 5]>, // envoy, init, helper, registration, ServiceAccount with fsGroup
}

fn row<'a>(kind: &'a str, gates: [bool; 5], labels: &[(&'a str, &'a str)], parts: Option<[bool; 5]>) -> Row<'a> {
    Row { kind, gates, labels: labels.to_vec(), parts }
}

#[test]
fn case_020_the_truth_table() {
    let (e, s, c, i) =
        (keys::LABEL_ENVOY_PROXY, keys::LABEL_SPIFFE_HELPER, keys::LABEL_CLIENT_REGISTRATION, keys::LABEL_INJECT);
    let on = [true, false, true, true, true];
    let usual = Some([true, true, true, false, true]);

    let table = [
        row("agent", on, &[], usual),
        row("agent", on, &[(c, "true")], Some([true; 5])),
        row("agent", on, &[(e, "false")], Some([false, false, true, false, true])),
        row("agent", on, &[(s, "false")], Some([true, true, false, false, false])),
        row("agent", on, &[(e, "false"), (s, "false"), (c, "true")], Some([false, false, false, true, false])),
        row("agent", on, &[(e, "false"), (s, "false")], None),
        row("agent", [true, false, false, true, true], &[(e, "true")], Some([false, false, true, false, true])),
        row("agent", [true, false, true, false, true], &[(s, "true")], Some([true, true, false, false, false])),
        row("agent", [true, false, true, true, false], &[(c, "true")], usual),
        row("agent", [false, false, true, true, true], &[(c, "true")], None),
        row("agent", on, &[(i, "disabled")], None),
        row("agent", on, &[(i, "enabled")], usual),
        row("tool", on, &[], None),
        row("tool", [true, true, true, true, true], &[], usual),
        row("Agent", [true, true, true, true, true], &[], None),
    ];
    for (number, row) in table.iter().enumerate() {
        let mut snapshot = fixtures::snapshot();
        let gates = &mut snapshot.gates;
        [gates.global_enabled, gates.inject_tools, gates.envoy_proxy, gates.spiffe_helper, gates.client_registration] =
            row.gates;
        let mut pod = labelled(&row.labels);
        pod["metadata"]["labels"][keys::LABEL_TYPE] = json!(row.kind);
        let verdict = fixtures::review_pod(&pod, &snapshot);
        assert_eq!(row.parts.is_some(), !verdict.operations().is_empty(), "row {}", number + 1);
        let seen = fixtures::applied(&pod, &verdict);
        let has = |list: &str, name| names(&seen["spec"][list]).contains(&name);
        let dedicated = seen["spec"]["serviceAccountName"] == "weather-agent";
        assert_eq!(dedicated, seen["spec"]["securityContext"]["fsGroup"] == 0);
        let parts = [
            has("containers", "envoy-proxy"),
            has("initContainers", "proxy-init"),
            has("containers", "spiffe-helper"),
            has("containers", "kagenti-client-registration"),
            dedicated,
        ];
        assert_eq!(parts, row.parts.unwrap_or_default(), "row {}", number + 1);
    }
}

#[test]
fn case_046_an_unknown_mode_is_the_default_one() {
    let pod = annotated(&[(keys::ANNOTATION_MODE, "proxy-sidecart")]);
    assert_eq!(warned(&pod, &fixtures::snapshot()), [Reason::UnknownMode]);
    assert!(names(&injected(&pod, &fixtures::snapshot())["spec"]["containers"]).contains(&"envoy-proxy"));
}

/// Nothing is injected, so nothing is said to be: by no sidecar's line, and by no warning about one. What is said is that no waypoint is seen.
#[test]
fn case_047_waypoint() {
    let mut without_spire = fixtures::snapshot();
    without_spire.view.spiffe_driver = false;
    let mut gated = fixtures::snapshot();
    gated.gates = crate::config::gates::Gates { envoy_proxy: false, spiffe_helper: false, ..gated.gates };
    for snapshot in [fixtures::snapshot(), without_spire, gated] {
        let mut pod = annotated(&[(keys::ANNOTATION_MODE, "waypoint"), (keys::ANNOTATION_CREDENTIALS, "given")]);
        pod["metadata"]["labels"][keys::LABEL_CLIENT_REGISTRATION] = json!("true");
        assert_eq!(skipped(&pod, &snapshot), Reason::ModeWaypoint);
        assert_eq!(warned(&pod, &snapshot), [Reason::NotIntercepted]);
        let raw = serde_json::value::to_raw_value(&pod).unwrap();
        let (_, tree) = crate::admission::explain(&fixtures::request(&raw), &snapshot);
        let told: Vec<_> = tree.sidecars.iter().map(|line| (line.injected, line.layer.as_str())).collect();
        assert_eq!(told, [(false, "mode"); 4], "{:?}", tree.sidecars);
    }
}
