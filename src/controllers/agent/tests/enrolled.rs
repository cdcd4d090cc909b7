//! Agents whose Pods are injected: made once, whoever enrols them, and handed over to enrolment afterwards.

use serde_json::{Value, json};

use super::bench::{Bench, TEAM};
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::{Key, Kind};

fn labelled() -> Value {
    json!({"metadata": {"labels": {"kagenti.io/type": "agent"}}})
}

fn runtime(more: Value) -> Value {
    let mut object = json!({
        "metadata": {"creationTimestamp": "2026-05-01T00:00:00Z"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather"}},
    });
    json_patch::merge(&mut object, &more);
    object
}

fn template(bench: &Bench) -> Value {
    bench.object(Kind::Deployment, "weather")["spec"]["template"].clone()
}

fn hash(bench: &Bench) -> Option<String> {
    template(bench)["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH].as_str().map(str::to_owned)
}

fn generation(bench: &Bench) -> i64 {
    bench.object(Kind::Deployment, "weather")["metadata"]["generation"].as_i64().unwrap()
}

#[test]
fn a_labelled_agent_is_made_with_its_hash_and_rolled_once() {
    let mut bench = Bench::new();
    bench.agent("weather", labelled());
    bench.converge_enrolling();
    assert_eq!(generation(&bench), 1, "one template, so one ReplicaSet");
    assert_eq!(hash(&bench).map(|hash| hash.len()), Some(64));
    bench.rolled_out("weather");
    bench.converge_enrolling();
    assert_eq!((generation(&bench), bench.converge_enrolling()), (1, vec![]));
    // An edit that does not touch the configuration keeps the hash.
    let before = hash(&bench);
    bench.edit(Kind::Agent, "weather", json!({"spec": {"imageSource": {"image": "ghcr.io/acme/weather:v2"}}}));
    bench.converge_enrolling();
    assert_eq!((generation(&bench), hash(&bench)), (2, before));
}

#[test]
fn an_agent_that_an_agent_runtime_governs_is_made_enrolled_and_handed_over() {
    let mut bench = Bench::new();
    bench.edit(Kind::AgentRuntime, "art", runtime(json!({})));
    bench.agent("weather", json!({}));
    bench.converge_enrolling();
    assert_eq!(generation(&bench), 1, "enrolment finds nothing to change: {:#}", template(&bench));
    assert_eq!(template(&bench)["metadata"]["labels"][keys::LABEL_TYPE], "agent");
    assert!(hash(&bench).is_some());
    let managed = bench.object(Kind::Deployment, "weather")["metadata"]["managedFields"].clone();
    let entry = managed.as_array().unwrap().iter().find(|entry| entry["manager"] == "drawbridge/agent").unwrap();
    assert!(!entry["fieldsV1"].to_string().contains("config-hash"), "handed over");
    // Un-enrolment takes away exactly that.
    bench.edit(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge_enrolling();
    assert_eq!((hash(&bench), template(&bench)["metadata"]["labels"].get(keys::LABEL_TYPE)), (None, None));
    assert_eq!(bench.converge_enrolling(), []);
}

#[test]
fn an_agent_runtime_that_comes_later_rolls_once_and_the_agent_does_not_take_it_back() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.converge_enrolling();
    assert_eq!(hash(&bench), None, "nobody enrols it");
    bench.edit(Kind::AgentRuntime, "art", runtime(json!({})));
    bench.converge_enrolling();
    assert_eq!((generation(&bench), hash(&bench).is_some()), (2, true));
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 2}}));
    bench.converge_enrolling();
    assert!(hash(&bench).is_some(), "whoever enrols keeps what is its own");
}

#[test]
fn what_enrolment_would_refuse_is_not_anticipated() {
    let mut bench = Bench::new();
    bench.edit(Kind::AgentRuntime, "art", runtime(json!({"spec": {"authBridgeMode": "no-such-mode"}})));
    bench.agent("weather", json!({}));
    bench.converge_enrolling();
    assert_eq!((hash(&bench), template(&bench)["metadata"]["labels"].get(keys::LABEL_TYPE)), (None, None));
}

#[test]
fn a_deployment_is_not_made_before_the_snapshot_knows_who_governs_it() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({}));
    bench.round(&ROW);
    let object = json!({"metadata": {"name": "art", "namespace": TEAM, "uid": "u-art", "resourceVersion": "5",
        "creationTimestamp": "2026-05-01T00:00:00Z"}, "spec": runtime(json!({}))["spec"]});
    // The store has heard of it, the snapshot has not.
    bench.cluster.see(Kind::AgentRuntime, object);
    let plan = bench.plan("weather");
    assert!(plan.ops.is_empty() && plan.again.is_some(), "{plan:#?}");
    bench.cluster.settle();
    assert!(bench.plan("weather").ops.iter().any(|op| matches!(op, Op::Own { .. })));
    let touched = bench.cluster.touched(ROW, Kind::AgentRuntime, &Key::new(TEAM, "art"));
    assert_eq!(touched, [Key::new(TEAM, "weather")]);
}

#[test]
fn another_configuration_rolls_a_labelled_agent_and_enrolment_owns_the_hash_from_then_on() {
    let mut bench = Bench::new();
    bench.agent("weather", labelled());
    bench.converge_enrolling();
    bench.rolled_out("weather");
    let old = hash(&bench).unwrap();
    let owner = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "weather", "uid": "deployments-weather",
        "controller": true}]);
    let metadata = json!({"labels": {keys::LABEL_TYPE: "agent"}, "ownerReferences": owner,
        "annotations": {keys::ANNOTATION_CONFIG_HASH: old, keys::ANNOTATION_STATUS: "{}"}});
    bench.edit(Kind::Pod, "pod", json!({"metadata": metadata, "spec": {"containers": [{"name": "envoy-proxy"}]}, "status": {"phase": "Running"}}));
    bench.cluster.configure("proxy: {uid: 2000}\n");
    bench.cluster.memory.surveyed = true;
    bench.converge_enrolling();
    assert_ne!(hash(&bench), Some(old));
    assert_eq!(generation(&bench), 2, "rolled once");
    assert_eq!(bench.converge_enrolling(), []);
}
