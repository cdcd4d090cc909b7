//! Labels, types and settings that change on an enrolled workload: cases of AgentRuntimes (docs/cases.md) that plans decide.

use serde_json::json;

use super::bench::{Bench, WEB, deployment, enrolled};
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

#[test]
fn case_027_a_label_that_was_taken_off_comes_back() {
    let mut bench = enrolled();
    bench.change(
        Kind::Deployment,
        "web",
        json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}}),
    );
    assert_eq!(bench.converge().iter().filter(|op| matches!(op, Op::Apply { .. })).count(), 1);
    assert_eq!(
        bench.object(Kind::Deployment, "web")["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE],
        "agent"
    );
}

#[test]
fn case_028_another_type_changes_both_labels_and_the_hash_at_once() {
    let mut bench = enrolled();
    let before = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"type": "tool"}}));
    assert_eq!(bench.converge().iter().filter(|op| matches!(op, Op::Apply { .. })).count(), 1);
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert_eq!(web["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert_ne!(bench.hash(Kind::Deployment, "web").unwrap(), before);
}

#[test]
fn a_type_label_of_the_users_with_another_value_is_a_conflict_that_nobody_forces() {
    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({"metadata": {"labels": {keys::LABEL_TYPE: "tool"}}}));
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    assert!(!ops.iter().any(|op| matches!(op, Op::Apply { .. })));
    assert_eq!(bench.condition("art", "Ready"), "False/LabelConflict");
    assert_eq!(bench.condition("art", "Stalled"), "True/LabelConflict");
    let message = bench.message("art", "Ready");
    assert!(message.contains("kagenti.io/type=tool") && message.contains("spec.type"), "{message}");
    bench.change(Kind::Deployment, "web", json!({"metadata": {"labels": {keys::LABEL_TYPE: null}}}));
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), &*bench.condition("art", "Stalled")), ("True/Configured", ""));
}

/// The manager of every operator that gives it no other name is called as the Go operator's is: what it writes is no enrolment of before.
#[test]
fn a_type_label_of_another_operator_called_manager_is_a_conflict_that_nobody_forces() {
    for own in [json!({}), json!({"f:app.kubernetes.io/managed-by": {}})] {
        let mut bench = Bench::new();
        let theirs = json!({
            "metadata": {
                "labels": {keys::LABEL_APP_MANAGED_BY: "their-operator"},
                "managedFields": [{"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": own},
                    "f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}}],
            },
            "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}},
        });
        bench.change(Kind::Deployment, "web", theirs);
        bench.runtime("art", WEB, json!({"spec": {"type": "tool"}}));
        let ops = bench.converge();
        assert!(!ops.iter().any(|op| matches!(op, Op::Apply { .. } | Op::Edit { .. })), "{own}: {ops:?}");
        assert_eq!(bench.condition("art", "Ready"), "False/LabelConflict", "{own}");
    }
}

/// A label that the selector wants cannot be taken out of the template, so nobody is told to.
#[test]
fn mend_12_a_conflict_about_a_label_of_the_selector_names_the_way_out_that_exists() {
    let label = json!({keys::LABEL_TYPE: "tool"});
    let expression = json!([{"key": keys::LABEL_TYPE, "operator": "In", "values": ["tool"]}]);
    for (selector, selected) in [
        (json!({"matchLabels": label}), true),
        (json!({"matchExpressions": expression}), true),
        (json!({"matchExpressions": [{"key": keys::LABEL_TYPE, "operator": "NotIn", "values": ["agent"]}]}), false),
        (json!({}), false),
    ] {
        let mut bench = Bench::new();
        let spec = json!({"selector": selector, "template": {"metadata": {"labels": label}}});
        bench.change(Kind::Deployment, "web", json!({"spec": spec}));
        bench.runtime("art", WEB, json!({}));
        bench.converge();
        assert_eq!(bench.condition("art", "Ready"), "False/LabelConflict");
        let message = bench.message("art", "Ready");
        assert_eq!(
            message.contains("Change spec.type to tool: the label is in the workload's selector"),
            selected,
            "{message}"
        );
        assert_eq!(message.contains("Take the label out"), !selected, "{message}");
    }
}

#[test]
fn case_029_and_031_every_field_that_reaches_the_pod_changes_the_hash() {
    // Not as the Go operator has it: the mode selects the plan, so it counts; the trust domain does where it reaches the Pod.
    for (spec, field) in [
        (json!({"authBridgeMode": "proxy-sidecar"}), "mode"),
        (json!({"trace": {"endpoint": "otel:4317"}}), "trace.endpoint"),
        (json!({"trace": {"sampling": {"rate": 0}}}), "trace.samplingRatio"),
    ] {
        let mut bench = enrolled();
        let before = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
        bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": spec}));
        bench.converge();
        assert_ne!(bench.hash(Kind::Deployment, "web").unwrap(), before, "{field}");
        let values = bench.object(Kind::AgentRuntime, "art")["status"]["effective"]["values"].clone();
        assert_eq!((&values[0]["field"], &values[0]["from"]), (&json!(field), &json!("AgentRuntime art")), "{values}");
    }
    let mut bench = enrolled();
    let spec = json!({"identity": {"spiffe": {"trustDomain": "custom.example.com"}}});
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": spec}));
    bench.converge();
    let effective = &bench.object(Kind::AgentRuntime, "art")["status"]["effective"];
    assert_eq!(effective["spiffeID"], "spiffe://custom.example.com/ns/team/sa/web");
}

#[test]
fn a_mode_that_does_not_exist_is_refused_and_rolls_nothing() {
    let mut bench = enrolled();
    let before = bench.object(Kind::Deployment, "web").clone();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "lite"}}));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/ModeNotAvailable");
    assert_eq!(bench.object(Kind::Deployment, "web"), &before);
}

#[test]
fn case_032_equal_agent_runtimes_give_equal_hashes() {
    let mut bench = enrolled();
    bench.put(Kind::Deployment, deployment("twin"));
    bench.runtime("twin", (Kind::Deployment, "twin"), json!({}));
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), bench.hash(Kind::Deployment, "twin"));
}
