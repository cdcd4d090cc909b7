//! AgentRuntimes as they are kept.

use serde_json::{Value, json};

use super::*;

fn runtime(object: &Value) -> AgentRuntimeSeen {
    match kept(Kind::AgentRuntime, object) {
        Some(What::AgentRuntime(seen)) => seen,
        other => panic!("{other:?}"),
    }
}

fn target(spec: Value) -> Option<(WorkloadKind, String)> {
    let target = runtime(&json!({"metadata": {"name": "r"}, "spec": spec})).target?;
    Some((target.kind, target.name.to_string()))
}

#[test]
fn spec_and_status_are_kept_as_they_are_stored() {
    let spec = json!({"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
        "identity": {"spiffe": {"trustDomain": "a.b"}}, "trace": {"sampling": {"rate": 0.5}}, "authBridgeMode": "waypoint"});
    let condition = json!({"type": "Ready", "status": "False", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 3});
    let status = json!({"observedGeneration": 3, "phase": "Error", "configuredPods": 2, "conditions": [condition],
        "configHash": "abc", "effective": {"mode": "waypoint"}, "appliedTarget": {"name": "w"},
        "card": {"name": "w-deployment-card", "verified": true, "reason": "SignatureVerified"}});
    let seen = runtime(
        &json!({"metadata": {"name": "r", "uid": "u", "generation": 4, "finalizers": ["a", "kagenti.io/cleanup"],
        "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z"},
        "spec": spec, "status": status}),
    );
    assert_eq!((&*seen.spec, &seen.status.value()), (&spec, &status));
    assert_eq!(
        (seen.generation, &*seen.created, seen.deleting, seen.finalizer),
        (4, "2026-01-01T00:00:00Z", true, true)
    );
    assert_eq!(seen.agent_type(), Some("agent"));
    assert_eq!(seen.target, Some(Target { kind: WorkloadKind::Deployment, name: "w".into() }));
    let bare = runtime(&json!({"metadata": {"name": "r"}, "spec": null, "status": null}));
    assert_eq!((&*bare.spec, bare.status.text()), (&json!({}), "{}"));
    assert!(!bare.finalizer && !bare.deleting && bare.target.is_none());
}

#[test]
fn targets_are_of_the_kinds_that_can_be_enrolled() {
    let reference = |api: &str, kind: &str, name: &str| {
        target(json!({"targetRef": {"apiVersion": api, "kind": kind, "name": name}}))
    };
    for kind in WorkloadKind::TARGETS {
        assert_eq!(reference(kind.api_version(), kind.as_str(), "w"), Some((kind, "w".to_owned())));
    }
    let refused =
        [("apps/v1", "ReplicaSet", "w"), ("v1", "Deployment", "w"), ("apps/v1", "Deployment", ""), ("", "", "")];
    for (api, kind, name) in refused {
        assert_eq!(reference(api, kind, name), None, "{api} {kind} {name}");
    }
    assert_eq!(target(json!({"targetRef": "w"})), None);
    assert_eq!(target(json!({"targetRef": {"apiVersion": 1, "kind": {}, "name": []}})), None);
}

/// The Go operator kept whole cards there.
#[test]
fn of_a_whole_card_in_a_status_the_name_is_kept() {
    let card = |card: Value| {
        runtime(&json!({"metadata": {"name": "r"}, "status": {"card": card}})).status.value()["card"].clone()
    };
    assert_eq!(
        card(json!({"name": "A", "skills": [{"id": "s".repeat(100_000)}], "verified": false})),
        json!({"name": "A", "verified": false})
    );
    for odd in [json!("A"), json!([]), json!({"name": 1}), json!({"verified": "True"})] {
        assert_eq!(card(odd.clone()), Value::Null, "{odd}");
    }
}

/// No reader takes a text of more than half of that for a value.
#[test]
fn mend_02_no_text_of_a_spec_is_kept_beyond_what_any_reader_takes() {
    let long = "é".repeat(100_000);
    let seen = runtime(&json!({"metadata": {"name": "r"}, "spec": {"type": "agent", "authBridgeMode": long,
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": long}, "trace": {"endpoint": long}}}));
    assert!(seen.spec.to_string().len() < 3 * 4096 + 200, "{}", seen.spec.to_string().len());
    assert_eq!(seen.agent_type(), Some("agent"));
    assert!(seen.target.unwrap().name.len() <= 4096);
}
