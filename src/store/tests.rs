//! What is kept of objects as the API server sends them.

use serde_json::{Value, json};

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;

fn change(kind: Kind, object: &Value) -> Change {
    change_of(kind, &object.to_string()).unwrap()
}

fn kept(kind: Kind, object: &Value) -> Option<What> {
    change(kind, object).now.map(|observed| observed.what.clone())
}

fn workload(kind: Kind, object: &Value) -> Option<WorkloadSeen> {
    kept(kind, object).map(|what| match what {
        What::Workload(workload) => *workload,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_kind_is_its_group_and_its_name_and_what_is_selected_of_it_is_decoded() {
    for kind in Kind::ALL {
        let descriptor = kind.descriptor();
        // Signed cards are ConfigMaps, of which another watch keeps other things.
        let named = if *kind == Kind::SignedCard { Kind::ConfigMap } else { *kind };
        assert_eq!(Kind::of(kind.group(), kind.as_str()), Some(named), "another kind has the same names");
        assert_eq!(Kind::of("example.com", kind.as_str()), None);
        let written = matches!(descriptor.decode, Decode::Written);
        assert_eq!(written, descriptor.selections.is_empty(), "{kind:?} is watched or written");
        let ours = matches!(descriptor.origin, KindOrigin::Ours | KindOrigin::Compat);
        assert_eq!(descriptor.crd.is_some(), ours, "{kind:?}");
        if let Some(definition) = descriptor.crd.map(|crd| crd()) {
            let (names, versions) = (definition.spec.names, definition.spec.versions);
            assert_eq!(
                (&*definition.spec.group, &*names.kind, &*names.plural),
                (kind.group(), kind.as_str(), kind.plural())
            );
            assert_eq!(versions.iter().map(|version| &*version.name).collect::<Vec<_>>(), [kind.version()]);
            assert_eq!(definition.spec.scope == "Namespaced", kind.is_namespaced());
        }
        let labels = Kind::ALL.iter().filter(|other| other.label() == kind.label());
        assert_eq!(labels.count(), 1, "{kind:?}: another kind is counted under its name");
        let words = descriptor.words.iter();
        let others = Kind::ALL.iter().filter(|other| *other != kind).flat_map(|other| other.descriptor().words);
        let all: Vec<_> = others.collect();
        assert!(words.clone().all(|word| !all.contains(&word)), "a word of {kind:?} means another kind, too");
    }
}

#[test]
fn paths_follow_the_api() {
    assert_eq!(Kind::Pod.path("a"), "/api/v1/namespaces/a/pods");
    assert_eq!(Kind::Deployment.path(""), "/apis/apps/v1/deployments");
    assert_eq!(Kind::CsiDriver.path("ignored"), "/apis/storage.k8s.io/v1/csidrivers");
    for kind in WorkloadKind::WITH_TEMPLATE {
        let watched = Kind::of_workload(kind).unwrap();
        assert_eq!((watched.workload(), watched.as_str(), watched.group()), (Some(kind), kind.as_str(), kind.group()));
    }
}

#[test]
fn unknown_members_nulls_and_absences_do_no_harm() {
    for object in [
        json!({"metadata": {"name": "x"}}),
        json!({"metadata": {"name": "x", "labels": null, "annotations": null, "ownerReferences": null, "new": 1},
            "spec": null, "status": null, "data": null, "future": {"a": [1]}}),
    ] {
        for kind in [Kind::Namespace, Kind::ConfigMap, Kind::ServiceAccount, Kind::Job, Kind::CsiDriver] {
            assert!(change(kind, &object).now.is_some(), "{kind:?}");
        }
        for kind in [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Sandbox] {
            assert!(workload(kind, &object).unwrap().template.is_none(), "{kind:?}: a root, without a template");
        }
        for kind in [Kind::ReplicaSet, Kind::Pod] {
            assert!(change(kind, &object).now.is_none(), "{kind:?}: not enrolled, not gated");
        }
    }
}

#[test]
fn service_accounts_are_ours_by_label() {
    let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "12",
        "labels": {"kagenti.io/managed-by": "webhook"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "d"}]},
        "automountServiceAccountToken": false, "secrets": [{"name": "s"}]});
    let seen = change(Kind::ServiceAccount, &object);
    assert_eq!((seen.key.clone(), seen.version), (Key::new("n", "a"), 12));
    let What::ServiceAccount(account) = &seen.now.unwrap().what.clone() else { panic!() };
    assert!(account.ours && account.automount == Some(false) && account.owners.len() == 1);
    assert_eq!(account.owners[0].group(), "apps");
    let foreign = json!({"metadata": {"name": "a", "ownerReferences": object["metadata"]["ownerReferences"]}});
    assert_eq!(kept(Kind::ServiceAccount, &foreign), Some(What::ServiceAccount(ServiceAccountSeen::default())));
}

/// A template and what is kept of it.
fn template() -> (Value, Value) {
    let template = json!({
        "metadata": {"labels": {"kagenti.io/type": "agent", "app": "x"},
            "annotations": {"kagenti.io/authbridge-mode": "waypoint", "note": "long"}},
        "spec": {"serviceAccountName": "own", "containers": [{"name": "a", "image": "i"}], "hostNetwork": true}});
    let small = json!({
        "metadata": {"labels": {"kagenti.io/type": "agent"}, "annotations": {"kagenti.io/authbridge-mode": "waypoint"}},
        "spec": {"serviceAccountName": "own", "containers": [{"name": "a"}], "hostNetwork": true}});
    (template, small)
}

#[test]
fn of_templates_only_what_decides_is_kept() {
    let (template, small) = template();
    let in_spec = |key: &str| json!({"metadata": {"name": "a"}, "spec": {key: template}});
    let cron_job = json!({"metadata": {"name": "a"}, "status": {"active": [{"name": "x"}]},
        "spec": {"jobTemplate": {"spec": {"template": template}}}});
    let table = [
        (Kind::Deployment, in_spec("template")),
        (Kind::ReplicaSet, in_spec("template")),
        (Kind::Sandbox, in_spec("podTemplate")),
        (Kind::CronJob, cron_job),
    ];
    for (kind, object) in table {
        let kept = workload(kind, &object).unwrap().template.unwrap();
        assert_eq!((kept.value(), kept.agent_type()), (small.clone(), Some("agent")), "{kind:?}");
        assert_eq!(kept.value_with_type("tool").pointer("/metadata/labels/kagenti.io~1type"), Some(&json!("tool")));
    }
}

#[test]
fn roots_are_kept_without_the_label_and_what_they_make_only_with_it() {
    let plain = json!({"metadata": {"name": "a", "labels": {"kagenti.io/type": "agent"}},
        "spec": {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}}});
    let root = workload(Kind::Deployment, &plain).unwrap();
    let template = root.template.unwrap();
    assert_eq!(template.agent_type(), None, "the template enrols, not the workload's own label");
    assert_eq!(template.value()["spec"], json!({"containers": [{"name": "c"}]}));
    assert_eq!(root.labels.get("kagenti.io/type"), Some("agent"));
    assert!(workload(Kind::ReplicaSet, &plain).is_none());
    assert!(workload(Kind::Job, &plain).unwrap().template.is_none(), "Jobs are kept for their Pods' sake");
}

#[test]
fn unmet_means_that_pods_are_wanted_and_missing() {
    let of = |spec: Value, status: Value| {
        let mut spec = spec;
        spec["template"] = json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}});
        json!({"metadata": {"name": "a"}, "spec": spec, "status": status})
    };
    let refused = |status: &str| json!([{"type": "ReplicaFailure", "status": status, "reason": "FailedCreate"}]);
    let table = [
        (Kind::ReplicaSet, json!({"replicas": 3}), json!({"replicas": 2, "conditions": refused("True")}), true),
        (Kind::ReplicaSet, json!({"replicas": 3}), json!({"replicas": 2, "conditions": refused("False")}), false),
        (Kind::ReplicaSet, json!({"replicas": 3}), json!({"replicas": 2}), false),
        (Kind::ReplicaSet, json!({"replicas": 3}), json!({"replicas": 3, "conditions": refused("True")}), false),
        (Kind::ReplicaSet, json!({"replicas": 0}), json!({}), false),
        (Kind::StatefulSet, json!({"replicas": 3}), json!({"replicas": 1}), false),
        (Kind::StatefulSet, json!({"replicas": 3}), json!({}), true),
        (Kind::DaemonSet, json!({}), json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 1}), true),
        (Kind::DaemonSet, json!({}), json!({"desiredNumberScheduled": 0}), false),
        (Kind::Job, json!({}), json!({}), true),
        (Kind::Job, json!({"suspend": true}), json!({}), false),
        (Kind::Job, json!({}), json!({"active": 1}), false),
        (Kind::Job, json!({}), json!({"failed": 1}), false),
        (Kind::Job, json!({}), json!({"succeeded": 1, "completionTime": "2026-01-01T00:00:00Z"}), false),
        (Kind::Deployment, json!({"replicas": 3}), json!({}), false),
    ];
    for (kind, spec, status, unmet) in table {
        let object = of(spec, status);
        assert_eq!(workload(kind, &object).unwrap().unmet, unmet, "{kind:?} {object}");
    }
}

#[test]
fn pods_are_kept_while_they_are_enrolled_or_wait_behind_our_gate() {
    let pod = |metadata: Value, spec: Value, status: Value| {
        let mut object = json!({"metadata": {"name": "p", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"}});
        json_patch::merge(&mut object, &json!({"metadata": metadata, "spec": spec, "status": status}));
        match kept(Kind::Pod, &object) {
            Some(What::Pod(seen)) => Some(seen),
            None => None,
            other => panic!("{other:?}"),
        }
    };
    let gates = |gate: &str| json!({"schedulingGates": [{"name": "other"}, {"name": gate}]});
    let (none, label) = (json!({}), json!({"labels": {"kagenti.io/type": "tool"}}));
    assert_eq!(pod(none.clone(), gates("another"), none.clone()), None);
    assert!(pod(none.clone(), gates("drawbridge/injection"), none.clone()).unwrap().gated);
    let ending = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {"kagenti.io/type": "tool"}});
    assert!(pod(ending, none.clone(), none.clone()).unwrap().terminating);
    let full = json!({"labels": {"kagenti.io/type": "tool", "x": "y"},
        "annotations": {"kagenti.io/config-hash": "abc", "kagenti.io/authbridge-status": "{}", "z": "z"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "o"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "ru", "controller": true}]});
    let seen = |spec| pod(full.clone(), spec, json!({"phase": "Running", "podIP": "10.0.0.1"})).unwrap();
    // Who opts a Pod out can write the annotation himself.
    assert!(!seen(json!({"containers": [{"name": "agent"}], "initContainers": null})).injected);
    assert!(seen(json!({"containers": [{"name": "agent"}, {"name": "envoy-proxy"}]})).injected);
    let seen = seen(json!({"containers": [{"name": "agent"}], "initContainers": [{"name": "proxy-init"}]}));
    assert_eq!(seen.controller.as_ref().map(|owner| (&*owner.kind, &*owner.uid)), Some(("ReplicaSet", "ru")));
    assert_eq!(
        (&*seen.agent_type, seen.hash.as_deref(), &*seen.created),
        ("tool", Some("abc"), "2026-01-02T03:04:05Z")
    );
    assert!(seen.injected && !seen.gated && !seen.terminating && seen.phase == PodPhase::Running);
    let phases = ["", "Pending", "Running", "Succeeded", "Failed", "Strange"]
        .map(|phase| pod(label.clone(), json!({}), json!({"phase": phase})).unwrap().phase);
    use PodPhase::{Failed, Pending, Running, Succeeded, Unknown};
    assert_eq!(phases, [Pending, Pending, Running, Succeeded, Failed, Unknown]);
}

/// A policy reads them in the operator's namespace alone; whoever takes the name elsewhere could have us keep what he writes on it.
#[test]
fn what_a_policy_goes_by_is_kept_in_the_operator_s_namespace_alone() {
    let mut store = Store::new("own");
    let list = "u".repeat(1000);
    for (name, annotation) in keys::PARAMETERS.into_iter().zip([keys::ANNOTATION_GATED_TYPES, keys::ANNOTATION_ARMED]) {
        for namespace in ["own", "team"] {
            let metadata =
                json!({"name": name, "namespace": namespace, "annotations": {annotation: list, "else": list}});
            let change = change(Kind::ServiceAccount, &json!({"metadata": metadata}));
            store.apply(&change, Duration::ZERO);
            let (kept, ..) = store.service_account(namespace, name).unwrap();
            assert_eq!(kept.parameter(annotation), (namespace == "own").then_some(&*list), "{namespace}/{name}");
            assert_eq!(kept.parameter("else"), None);
        }
    }
}

mod builds;
mod facts;
mod rollout;
mod runtime;
mod size;
mod templates;
mod ways;
