use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::admission::inject::fixtures;
use crate::config::view::{JobOwner, NamespaceView};

fn named(generate_name: &str, name: &str, hash: &str) -> String {
    let mut pod = json!({"metadata": {"uid": "the-uid", "labels": {}}});
    for (key, value) in [("generateName", generate_name), ("name", name)] {
        if !value.is_empty() {
            pod["metadata"][key] = value.into();
        }
    }
    if !hash.is_empty() {
        pod["metadata"]["labels"][keys::LABEL_POD_TEMPLATE_HASH] = hash.into();
    }
    workload(PodView::new(&pod).unwrap(), &NamespaceView::default()).unwrap().name
}

#[test]
fn case_014_names_without_an_owner() {
    for (generate_name, name, hash, expected) in [
        ("myapp-7d4f8b9c5-", "", "7d4f8b9c5", "myapp"),
        ("myapp-7d4f8b9c5-", "", "", "myapp-7d4f8b9c5"),
        ("myapp-7d4f8b9c5-", "", "other", "myapp-7d4f8b9c5"),
        ("7d4f8b9c5-", "", "7d4f8b9c5", "7d4f8b9c5"),
        ("-7d4f8b9c5-", "", "7d4f8b9c5", "-7d4f8b9c5"),
        ("my-app--", "", "", "my-app"),
        ("web-", "web-0", "", "web"),
        ("nightly-28519200-", "", "", "nightly-28519200"),
        ("", "web-0", "", "web-0"),
        ("", "", "", "the-uid"),
    ] {
        assert_eq!(named(generate_name, name, hash), expected, "{generate_name} {name} {hash}");
    }
}

fn owned(api_version: &str, kind: &str, name: &str, hash: &str) -> Result<Workload, UnknownJob> {
    let pod = json!({"metadata": {
    "generateName": "fallback-", "labels": {keys::LABEL_POD_TEMPLATE_HASH: hash},
    "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "bystander", "uid": "0"},
        {"apiVersion": api_version, "kind": kind, "name": name, "uid": "1", "controller": true},
    ]}});
    let mut view = fixtures::namespace();
    let jobs =
        [("nightly-1", "1", WorkloadKind::CronJob, "nightly"), ("recreated", "9", WorkloadKind::Job, "recreated")];
    view.jobs = jobs
        .into_iter()
        .map(|(job, uid, kind, name)| {
            let workload = Workload { kind, name: name.to_owned() };
            (Arc::from(job), Arc::new(JobOwner { uid: uid.into(), workload }))
        })
        .collect::<BTreeMap<_, _>>();
    workload(PodView::new(&pod).unwrap(), &view)
}

#[test]
fn the_controller_decides_by_group_and_kind() {
    for (api_version, kind, name, hash, expected_kind, expected) in [
        ("apps/v1", "ReplicaSet", "web-5d", "5d", WorkloadKind::Deployment, "web"),
        ("apps/v1", "ReplicaSet", "web-5d", "6e", WorkloadKind::ReplicaSet, "web-5d"),
        ("apps/v1", "ReplicaSet", "web", "", WorkloadKind::ReplicaSet, "web"),
        ("apps/v1", "StatefulSet", "db", "", WorkloadKind::StatefulSet, "db"),
        ("apps/v1", "DaemonSet", "node", "", WorkloadKind::DaemonSet, "node"),
        ("agents.x-k8s.io/v1alpha1", "Sandbox", "box", "", WorkloadKind::Sandbox, "box"),
        ("example.com/v1", "StatefulSet", "db", "", WorkloadKind::Unknown, "fallback"),
        ("v1", "ReplicationController", "rc", "", WorkloadKind::Unknown, "fallback"),
        ("batch/v1", "Job", "nightly-1", "", WorkloadKind::CronJob, "nightly"),
    ] {
        let expected = Workload { kind: expected_kind, name: expected.to_owned() };
        assert_eq!(owned(api_version, kind, name, hash), Ok(expected), "{api_version} {kind} {name}");
    }
}

/// Its Pods are named by the DeploymentConfig, whichever of its revisions made them; and by nothing that is not one of its revisions.
#[test]
fn the_revisions_of_a_deployment_config_have_one_name() {
    for (api_version, kind, revision, annotation, expected) in [
        ("v1", "ReplicationController", "web-1", Some("web"), "web"),
        ("v1", "ReplicationController", "web-12", Some("web"), "web"),
        ("v1", "ReplicationController", "router-1-1", Some("router-1"), "router-1"),
        ("v1", "ReplicationController", "web-1", None, "web-1"),
        ("v1", "ReplicationController", "web-1", Some(""), "web-1"),
        ("v1", "ReplicationController", "web-1", Some("other"), "web-1"),
        ("v1", "ReplicationController", "web-x", Some("web"), "web-x"),
        ("v1", "ReplicationController", "web-", Some("web"), "web"),
        ("v1", "ReplicationController", "web-1", Some("we"), "web-1"),
        ("example.com/v1", "ReplicationController", "web-1", Some("web"), "web-1"),
        ("example.com/v1", "Thing", "web-1", Some("web"), "web-1"),
    ] {
        let mut pod = json!({"metadata": {"generateName": format!("{revision}-"), "ownerReferences": [
            {"apiVersion": api_version, "kind": kind, "name": revision, "uid": "1", "controller": true}]}});
        if let Some(name) = annotation {
            pod["metadata"]["annotations"] = json!({"openshift.io/deployment-config.name": name});
        }
        let expected = Workload { kind: WorkloadKind::Unknown, name: expected.to_owned() };
        let found = workload(PodView::new(&pod).unwrap(), &NamespaceView::default());
        assert_eq!(found, Ok(expected), "{api_version} {kind} {revision} {annotation:?}");
    }
}

#[test]
fn a_job_made_anew_under_the_same_name_is_another_job() {
    assert_eq!(
        owned("batch/v1", "Job", "recreated", ""),
        Err(UnknownJob { name: "recreated".to_owned(), uid: "1".to_owned() })
    );
}
