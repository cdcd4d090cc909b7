//! How far a rollout is, and who owns our fields.

use serde_json::{Value, json};

use super::*;

fn rollout(kind: Kind, spec: Value, status: Value) -> Rollout {
    let object = json!({"metadata": {"name": "a", "generation": 7}, "spec": spec, "status": status});
    workload(kind, &object).unwrap().rollout
}

#[test]
fn rollouts_are_read_in_the_words_of_each_kind() {
    let progressing = |status: &str, reason: &str| json!([{"type": "Progressing", "status": status, "reason": reason}]);
    let deployment = rollout(
        Kind::Deployment,
        json!({"replicas": 3, "paused": true}),
        json!({"observedGeneration": 6, "replicas": 4, "updatedReplicas": 2, "availableReplicas": 3,
            "conditions": progressing("False", "ProgressDeadlineExceeded")}),
    );
    let expected = Rollout {
        generation: 7,
        observed: 6,
        wanted: 3,
        existing: 4,
        updated: 2,
        available: 3,
        paused: true,
        on_delete: false,
        deadline_exceeded: true,
        held: 0,
    };
    assert_eq!(deployment, expected);
    for (status, reason) in [("True", "ProgressDeadlineExceeded"), ("False", "ReplicaSetCreateError")] {
        let status = json!({"conditions": progressing(status, reason)});
        assert!(!rollout(Kind::Deployment, json!({}), status).deadline_exceeded);
    }
    let daemon_set = rollout(
        Kind::DaemonSet,
        json!({"updateStrategy": {"type": "OnDelete"}}),
        json!({"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "updatedNumberScheduled": 3,
            "numberAvailable": 2}),
    );
    let counts = |seen: Rollout| (seen.wanted, seen.existing, seen.updated, seen.available, seen.on_delete);
    assert_eq!(counts(daemon_set), (5, 4, 3, 2, true));
    let rolling = json!({"updateStrategy": {"type": "RollingUpdate"}});
    assert_eq!(counts(rollout(Kind::StatefulSet, rolling, json!({}))), (1, 0, 0, 0, false));
    let parted = |replicas: i64, partition: i64| {
        let update = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        rollout(Kind::StatefulSet, json!({"replicas": replicas, "updateStrategy": update}), json!({})).held
    };
    assert_eq!((parted(3, 0), parted(3, 2), parted(3, 9)), (0, 2, 3));
    let surge = json!({"updateStrategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}});
    assert_eq!(rollout(Kind::DaemonSet, surge, json!({})).held, 0);
    assert_eq!(counts(rollout(Kind::Sandbox, json!({"replicas": 0}), json!({"replicas": 1}))), (0, 1, 0, 0, false));
    assert_eq!(counts(rollout(Kind::CronJob, json!({}), json!({}))), (0, 0, 0, 0, false));
}

#[test]
fn a_rollout_is_complete_when_nothing_of_the_old_template_is_left() {
    let done =
        Rollout { generation: 2, observed: 2, wanted: 3, existing: 3, updated: 3, available: 3, ..Rollout::default() };
    assert!(done.is_complete() && Rollout::default().is_complete());
    for not in [
        Rollout { observed: 1, ..done },
        Rollout { existing: 4, ..done },
        Rollout { updated: 2, ..done },
        Rollout { available: 2, ..done },
    ] {
        assert!(!not.is_complete(), "{not:?}");
    }
}

#[test]
fn what_a_partition_holds_counts_as_done() {
    let held = Rollout {
        generation: 2,
        observed: 2,
        wanted: 3,
        existing: 3,
        updated: 1,
        available: 3,
        held: 2,
        ..Rollout::default()
    };
    assert!(held.is_complete() && held.held_back() == 2);
    for not in [
        Rollout { updated: 0, ..held },
        Rollout { held: 1, ..held },
        Rollout { available: 2, ..held },
        Rollout { existing: 4, ..held },
        Rollout { observed: 1, ..held },
    ] {
        assert!(!not.is_complete(), "{not:?}");
    }
    // Nothing is left to be held back once the partition was lowered and raised again.
    let all = Rollout { updated: 3, ..held };
    assert!(all.is_complete() && all.held_back() == 0);
}

fn managed(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
    json!({"manager": manager, "operation": operation, "subresource": subresource, "apiVersion": "apps/v1",
        "fieldsType": "FieldsV1", "fieldsV1": fields, "time": "2026-01-01T00:00:00Z"})
}

fn marks(keys: &[&str]) -> Value {
    keys.iter().map(|key| (format!("f:{key}"), json!({}))).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn the_owner_of_our_fields_is_found_at_each_kinds_template() {
    let template = json!({"f:metadata": {"f:labels": marks(&["kagenti.io/type"]), "f:annotations": {".": {},
        "f:kagenti.io/config-hash": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}}}}});
    let own = json!({"f:labels": marks(&["kagenti.io/type", "app", "app.kubernetes.io/managed-by"])});
    let table = [
        (Kind::Deployment, json!({"f:template": template, "f:replicas": {}})),
        (Kind::StatefulSet, json!({"f:template": template})),
        (Kind::Sandbox, json!({"f:podTemplate": template})),
        (Kind::CronJob, json!({"f:jobTemplate": {"f:spec": {"f:template": template}}})),
    ];
    for (kind, spec) in table {
        let fields = json!({"f:metadata": own, "f:spec": spec});
        let object = json!({"metadata": {"name": "a", "managedFields": [
            managed("kubectl", "Apply", "", fields.clone()),
            managed("drawbridge/enrolment", "Apply", "", fields.clone()),
            managed("manager", "Update", "status", fields.clone()),
            managed("manager", "Update", "", json!({"f:spec": {"f:replicas": {}}})),
            managed("manager", "Update", "", fields),
        ]}});
        let seen = workload(kind, &object).unwrap();
        let expected = [
            (Place::Labels, "app.kubernetes.io/managed-by"),
            (Place::Labels, "kagenti.io/type"),
            (Place::TemplateLabels, "kagenti.io/type"),
            (Place::TemplateAnnotations, "kagenti.io/config-hash"),
        ];
        let (at, upstream) = seen.upstream.clone().unwrap();
        assert_eq!(upstream.fields().collect::<Vec<_>>(), expected, "{kind:?}");
        assert_eq!((at, seen.applied.as_ref()), (4, Some(&upstream)), "{kind:?}");
        assert!(seen.enrolment_owns(Place::TemplateLabels, "kagenti.io/type"));
        assert!(!seen.enrolment_owns(Place::Annotations, "kagenti.io/type"));
    }
}

#[test]
fn an_entry_of_ours_without_fields_is_not_the_same_as_none() {
    let of = |entries: Value| {
        let object = json!({"metadata": {"name": "a", "managedFields": entries}});
        workload(Kind::Deployment, &object).unwrap()
    };
    assert_eq!(of(json!(null)).applied, None);
    let seen =
        of(json!([managed("drawbridge/enrolment", "Apply", "", json!({"f:metadata": {"f:labels": {"f:app": {}}}}))]));
    assert!(seen.applied.unwrap().is_empty() && seen.upstream.is_none());
    assert_eq!(of(json!([managed("drawbridge/enrolment", "Update", "", marks(&[]))])).applied, None);
    assert_eq!(of(json!([{"manager": "manager", "operation": "Update", "fieldsV1": null}, {}])).upstream, None);
}

/// Every operator whose manager has no name of its own is called as the Go operator: what it wrote tells whose an entry is.
#[test]
fn an_entry_of_that_name_is_the_go_operators_by_what_it_wrote() {
    let of = |managed_by: &str, labels: &[&str], annotations: &[&str]| {
        let fields = json!({"f:metadata": {"f:labels": marks(labels)},
            "f:spec": {"f:template": {"f:metadata": {"f:labels": marks(&["kagenti.io/type"]), "f:annotations": marks(annotations)}}}});
        let object = json!({"metadata": {"name": "a", "labels": {"app.kubernetes.io/managed-by": managed_by},
            "managedFields": [managed("manager", "Update", "", fields)]}});
        workload(Kind::Deployment, &object).unwrap().upstream.is_some()
    };
    let by = ["app.kubernetes.io/managed-by", "kagenti.io/type"];
    for (managed_by, labels, annotations, is) in [
        ("kagenti-operator", &by[..], &["kagenti.io/config-hash"][..], true),
        ("kagenti-operator", &by[..1], &[], true),
        ("Helm", &[], &["kagenti.io/config-hash"], true),
        ("kagenti-operator", &by[1..], &[], false),
        ("Helm", &by[..], &[], false),
        ("Helm", &by[..], &["kagenti.io/rolled-for"], false),
    ] {
        assert_eq!(of(managed_by, labels, annotations), is, "{managed_by} {labels:?} {annotations:?}");
    }
}
