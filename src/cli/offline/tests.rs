mod one_way;

use std::sync::Arc;

use serde_json::json;

use super::workload::Subject;
use super::world::{Facts, World};
use crate::domain::workload::WorkloadKind;

#[test]
fn a_name_of_a_manifest_never_becomes_a_line_of_a_report() {
    let metadata = json!({"name": "x\n\u{1b}[32mPod team/y", "namespace": "team"});
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}});
    assert_eq!(Subject::of(&object, "default").unwrap().title(), "Pod team/x\\n\\u{1b}[32mPod team/y");
}

#[test]
fn every_kind_that_makes_pods_has_its_template_found_and_put_back() {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}});
    for (api, kind) in [
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
        ("batch/v1", "CronJob"),
    ] {
        let spec = match kind {
            "CronJob" => json!({"jobTemplate": {"spec": {"template": template}}}),
            _ => json!({"template": template}),
        };
        let object =
            json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": "team"}, "spec": spec});
        let subject = Subject::of(&object, "default").unwrap();
        assert_eq!(subject.title(), format!("{kind} team/x"));
        let mut pod = subject.pod(&object);
        assert_eq!(pod["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["controller"], true);
        assert_eq!(subject.with_pod(&object, &pod), object, "nothing synthesised comes back");
        pod["metadata"]["annotations"] = json!({"k": "v"});
        pod["spec"]["containers"] = json!([{"name": "new"}]);
        let changed = subject.with_pod(&object, &pod);
        let put_back = subject.template(&changed).unwrap();
        assert_eq!(put_back["metadata"], json!({"labels": {"a": "b"}, "annotations": {"k": "v"}}));
        assert_eq!(put_back["spec"]["containers"], json!([{"name": "new"}]));
    }
}

#[test]
fn other_kinds_and_other_groups_are_not_ours() {
    for object in [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}),
        json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"template": {}}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}),
        json!({"kind": "Deployment"}),
        json!([1]),
        json!("text"),
    ] {
        assert_eq!(Subject::of(&object, "default"), None, "{object}");
    }
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}, "spec": {}});
    assert_eq!(Subject::of(&pod, "default").unwrap().workload.kind, WorkloadKind::Pod);
}

#[test]
fn what_did_not_change_is_not_read_again_for_the_next_snapshot() {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: false,
        operator_namespace: "own".to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    ["team1", "team2"].into_iter().for_each(|name| world.know_namespace(name));
    let first = world.snapshot().unwrap();
    assert!(world.make_service_account("team1", "weather"));
    let second = world.snapshot().unwrap();
    assert!(Arc::ptr_eq(&first.builds, &second.builds));
    let same = |name: &str| Arc::ptr_eq(first.namespace(name).unwrap(), second.namespace(name).unwrap());
    assert!(same("team2") && !same("team1"));
    let defaults = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "d", "namespace": "own"}, "data": {"a": "b"}});
    world.observe(&defaults, "own");
    assert!(!Arc::ptr_eq(&world.snapshot().unwrap().builds, &first.builds));
    world.gates.text = "globalEnabled: false".to_owned();
    assert_ne!(world.snapshot().unwrap().gates, first.gates);
    world.gates.text = "globalEnabled: maybe".to_owned();
    assert!(world.snapshot().is_err() && world.snapshot().is_err());
}

/// A busy API server refuses to tell its version: that is no API server of version 0, to which no sidecar would be native.
#[test]
fn where_no_version_is_told_that_of_the_flags_stays() {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 34),
        spire_driver: false,
        operator_namespace: "own".to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    assert_eq!(world.keep_server_version(), (1, 34));
    assert_eq!(world.snapshot().unwrap().view.server_version, (1, 34));
}
