//! The type label on a workload itself, in the warn-only review: what will become of it, by the rule of the controllers.

use super::*;
use crate::api::review::{Phase, parse};
use crate::config::enrolment::WorkloadLabels;

/// A workload in namespace `team1` with that label on itself, as it is sent.
fn workload(kind: &str, more: Value) -> Value {
    let api_version = if matches!(kind, "Job" | "CronJob") { "batch/v1" } else { "apps/v1" };
    let template = json!({"metadata": {"labels": {"app": "w"}},
        "spec": {"containers": [{"name": "agent", "image": "i", "ports": [{"containerPort": 8000}]}]}});
    let spec = match kind {
        "CronJob" => json!({"jobTemplate": {"spec": {"template": template}}}),
        _ => json!({"template": template}),
    };
    let metadata = json!({"name": "weather-agent", "namespace": "team1", "labels": {keys::LABEL_TYPE: "agent"}});
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
    json_patch::merge(&mut object, &more);
    object
}

/// Reason and warnings of the review.
fn said(object: &Value, snapshot: &Snapshot) -> (Reason, Vec<String>) {
    let (group, version) = text(object, "apiVersion").split_once('/').unwrap();
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "kind": {"group": group, "version": version, "kind": object["kind"]}, "namespace": "team1",
        "operation": "CREATE", "object": object}});
    let bytes = serde_json::to_vec(&review).unwrap();
    let request = parse(&bytes, Phase::Validate).unwrap();
    let verdict = crate::admission::evaluate(&request, snapshot);
    assert!(verdict.allowed() && verdict.operations().is_empty(), "it only warns");
    let tree = crate::admission::explain(&request, snapshot).1;
    assert_eq!(tree.parts.is_empty(), verdict.reason != Reason::Injected, "explain says the same");
    (verdict.reason, verdict.warnings.iter().map(ToString::to_string).collect())
}

#[test]
fn mend_17_who_applies_a_labelled_workload_is_told_that_its_pods_roll_once() {
    let snapshot = fixtures::snapshot();
    for (kind, words) in [
        ("Deployment", "its Pods roll once"),
        ("StatefulSet", "its Pods roll once"),
        ("DaemonSet", "its Pods roll once"),
        ("CronJob", "the next Job has it"),
    ] {
        let (reason, told) = said(&workload(kind, json!({})), &snapshot);
        assert_eq!(reason, Reason::Injected, "{kind}");
        assert!(told[0].contains("get envoy-proxy") || told[0].contains("envoy-proxy"), "{told:?}");
        assert!(told[0].contains(words), "{kind}: {told:?}");
    }
    let in_template = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}}});
    let (reason, told) = said(&workload("Deployment", in_template), &snapshot);
    assert!(reason == Reason::Injected && told.iter().all(|text| !text.contains("roll once")), "{told:?}");
}

#[test]
fn mend_17_what_the_label_does_not_do_is_told_with_the_way_out() {
    let mut snapshot = fixtures::snapshot();
    let (reason, told) = said(&workload("Job", json!({})), &snapshot);
    assert_eq!(reason, Reason::LabelIgnored);
    assert!(told[0].contains("write kagenti.io/type: agent under spec.template.metadata.labels"), "{told:?}");
    let odd = json!({"metadata": {"labels": {keys::LABEL_TYPE: "Agent"}}});
    let (reason, told) = said(&workload("Deployment", odd), &snapshot);
    assert_eq!(reason, Reason::UnknownValue);
    assert!(told[0].contains("\"Agent\"") && told[0].contains("write agent or tool"), "{told:?}");
    let tool = json!({"metadata": {"labels": {keys::LABEL_TYPE: "tool"}}});
    assert_eq!(said(&workload("Deployment", tool), &snapshot).0, Reason::ToolsDisabled);
    let refused = json!({"spec": {"template": {"spec": {"hostNetwork": true}}}});
    let (reason, told) = said(&workload("Deployment", refused), &snapshot);
    assert!(reason == Reason::HostNetwork && told[0].contains("will be refused"), "{told:?}");
    snapshot.labels = WorkloadLabels::Ignored;
    let (reason, told) = said(&workload("Deployment", json!({})), &snapshot);
    assert_eq!(reason, Reason::NoTypeLabel);
    assert!(told[0].contains("discovery"), "{told:?}");
    snapshot.labels = WorkloadLabels::Since(Some("2026-05-02T00:00:00Z".into()));
    let old = json!({"metadata": {"creationTimestamp": "2026-05-01T00:00:00Z"}});
    let (reason, told) = said(&workload("Deployment", old), &snapshot);
    assert_eq!(reason, Reason::EnrolmentPending);
    assert!(told[0].contains("enrolment.byWorkloadLabel"), "{told:?}");
}
