//! What an enrolment writes and what its status says: cases of AgentRuntimes (docs/cases.md) that plans decide.

use serde_json::{Value, json};

use super::bench::{Bench, WEB, deployment, enrolled, pod, template};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::Kind;

#[test]
fn case_001_label_hash_and_marker_are_one_apply_after_the_finalizer() {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    let applies: Vec<_> = ops.iter().filter(|op| matches!(op, Op::Apply { .. })).collect();
    assert_eq!(applies.len(), 1, "one rollout");
    assert!(matches!(&ops[0], Op::Merge { kind: Kind::AgentRuntime, patch, .. }
        if patch["metadata"]["finalizers"] == json!([keys::FINALIZER])));
    let web = bench.object(Kind::Deployment, "web");
    // Not as the Go operator has it: the marker is a label of ours, because a user's managed-by is never overwritten.
    assert_eq!(
        web["metadata"]["labels"],
        json!({"app": "web", keys::LABEL_TYPE: "agent", keys::LABEL_MANAGED_BY: "drawbridge"})
    );
    assert_eq!(web.pointer("/spec/template/metadata/labels"), Some(&json!({"app": "web", keys::LABEL_TYPE: "agent"})));
    let hash = bench.hash(Kind::Deployment, "web").unwrap();
    assert!(hash.len() == 64 && hash.chars().all(|digit| digit.is_ascii_hexdigit()));
}

#[test]
fn case_003_converged_means_no_write() {
    let mut bench = enrolled();
    assert_eq!(bench.converge(), []);
}

#[test]
fn case_004_every_kind_keeps_its_template_where_it_is() {
    for kind in [Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Sandbox] {
        let mut bench = Bench::new();
        let mut object = json!({"metadata": {"name": "it", "generation": 1}});
        let inner = json!({"metadata": {"labels": {"app": "it"}}, "spec": {"containers": [{"name": "app"}]}});
        let nested: Value = template(kind)
            .split('/')
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .fold(inner, |inner, part| json!({part: inner}));
        json_patch::merge(&mut object, &nested);
        bench.put(kind, object);
        bench.runtime("art", (kind, "it"), json!({}));
        bench.converge();
        let labels = bench.object(kind, "it").pointer(template(kind)).unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"app": "it", keys::LABEL_TYPE: "agent"}), "{kind:?}");
        assert!(bench.hash(kind, "it").is_some(), "{kind:?}");
        assert_eq!(bench.condition("art", "Ready"), "True/Configured", "{kind:?}");
    }
}

#[test]
fn case_005_what_the_user_has_on_the_template_stays() {
    let bench = enrolled();
    let annotations =
        bench.object(Kind::Deployment, "web").pointer("/spec/template/metadata/annotations").unwrap().clone();
    assert_eq!(annotations["theirs"], "x");
}

#[test]
fn case_006_a_tool_is_active_although_nothing_is_injected() {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({"spec": {"type": "tool"}}));
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!((&web["metadata"]["labels"][keys::LABEL_TYPE], bench.phase("art")), (&json!("tool"), "Active"));
    assert_eq!(bench.hash(Kind::Deployment, "web"), Some(keys::HASH_OF_NOTHING));
    assert!(bench.message("art", "Ready").contains("nothing is injected"));
}

#[test]
fn case_007_a_label_set_by_hand_is_shared_and_stays_when_the_enrolment_ends() {
    let mut bench = Bench::new();
    let by_hand = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent"}, "managedFields": [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {
            "f:metadata": {"f:labels": {"f:kagenti.io/type": {}}},
            "f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}},
    ]}, "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}}});
    bench.change(Kind::Deployment, "web", by_hand);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    assert!(bench.hash(Kind::Deployment, "web").is_some());
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"], json!({"app": "web", keys::LABEL_TYPE: "agent"}));
    assert_eq!(bench.hash(Kind::Deployment, "web"), None);
}

#[test]
fn case_008_the_status_says_what_was_done() {
    let bench = enrolled();
    assert_eq!(bench.phase("art"), "Active");
    let status = &bench.object(Kind::AgentRuntime, "art")["status"];
    for (type_, state) in [
        ("TargetResolved", "True/TargetFound"),
        ("ConfigResolved", "True/ConfigResolved"),
        ("Ready", "True/Configured"),
    ] {
        assert_eq!(bench.condition("art", type_), state);
    }
    assert!(status["conditions"].as_array().unwrap().iter().all(|one| one["observedGeneration"] == 1));
    let hash = bench.hash(Kind::Deployment, "web").unwrap();
    let message = bench.message("art", "Ready");
    assert!(message.contains("web") && message.contains(&hash[..12]), "{message}");
    assert_eq!((&status["observedGeneration"], &status["configHash"]), (&json!(1), &json!(hash)));
    assert_eq!(status["appliedTarget"]["uid"], "deployments-web");
    assert_eq!(status["effective"]["mode"], "envoy-sidecar");
    assert_eq!(status["effective"]["spiffeID"], "spiffe://cluster.local/ns/team/sa/web");
    let told: Vec<_> = bench.told.iter().map(|report| report.reason.code()).collect();
    assert_eq!(told, ["Configured"]);
}

#[test]
fn case_009_and_010_pods_count_by_who_controls_them_and_what_they_carry() {
    let mut bench = enrolled();
    let hash = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.put(Kind::Deployment, deployment("web-b"));
    for (set, owner) in [("web-1", "web"), ("web-b-1", "web-b")] {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": format!("deployments-{owner}"), "controller": true}]);
        let template = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}});
        bench.put(
            Kind::ReplicaSet,
            json!({"metadata": {"name": set, "ownerReferences": owners}, "spec": {"template": template}}),
        );
    }
    for (name, set) in [("a", "web-1"), ("b", "web-1"), ("c", "web-1"), ("d", "web-b-1")] {
        bench.put(Kind::Pod, pod(name, (Kind::ReplicaSet, set), Some(&hash)));
    }
    let mut ending = pod("e", (Kind::ReplicaSet, "web-1"), Some(&hash));
    ending["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z");
    bench.put(Kind::Pod, ending);
    let mut failed = pod("f", (Kind::ReplicaSet, "web-1"), Some(&hash));
    failed["status"]["phase"] = json!("Failed");
    bench.put(Kind::Pod, failed);
    bench.put(Kind::Pod, pod("g", (Kind::ReplicaSet, "nobody"), Some(&hash)));
    bench.converge();
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["configuredPods"], 3);
}

#[test]
fn a_managed_by_of_the_users_is_never_written() {
    let mut bench = Bench::new();
    let theirs =
        json!({"metadata": {"labels": {keys::LABEL_MANAGED_BY: "theirs", keys::LABEL_APP_MANAGED_BY: "Helm"}}});
    bench.change(Kind::Deployment, "web", theirs);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    let labels = &bench.object(Kind::Deployment, "web")["metadata"]["labels"];
    assert_eq!(
        (&labels[keys::LABEL_MANAGED_BY], &labels[keys::LABEL_APP_MANAGED_BY]),
        (&json!("theirs"), &json!("Helm"))
    );
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
}

#[test]
fn case_052_a_thousand_rounds_without_change_tell_and_write_nothing() {
    let mut bench = enrolled();
    for round in 0..1_000 {
        bench.now += s(1);
        assert_eq!(bench.round(), [], "{round}");
    }
}
