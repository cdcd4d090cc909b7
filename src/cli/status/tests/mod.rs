//! What `status` prints of a cluster that is given as objects: rows, words, shape.

mod answers;
mod places;
mod pods;
mod printed;
mod runtimes;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rows::{Seen, rows};
use super::shape::FIELDS;
use super::*;

fn world() -> World {
    let facts = Facts {
        platform_file: None,
        feature_gates_path: None,
        server_version: (1, 36),
        spire_driver: false,
        operator_namespace: keys::OPERATOR_NAMESPACE.to_owned(),
    };
    let mut world = World::new(&facts).unwrap();
    world.observe(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team1"}}), "");
    world
}

fn deployment(name: &str, labels: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "team1", "uid": name, "generation": 1},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": "a"}]}}},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1},
    })
}

fn pod(name: &str, deployment: &str, annotations: Value) -> Value {
    let injected = annotations.get("kagenti.io/authbridge-status").is_some();
    let sidecars = if injected { json!([{"name": "envoy-proxy"}]) } else { json!([]) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "team1", "labels": {"pod-template-hash": "x1", "kagenti.io/type": "agent"},
            "annotations": annotations,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{deployment}-x1"), "controller": true}]},
        "spec": {"initContainers": sidecars, "containers": [{"name": "agent"}]}, "status": {"phase": "Running"},
    })
}

fn agent_runtime(name: &str, target: &str, created: &str) -> Value {
    json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentRuntime",
        "metadata": {"name": name, "namespace": "team1", "uid": name, "creationTimestamp": created},
        "spec": {"type": "agent", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}},
    })
}

fn told(seen: &Seen) -> Vec<Row> {
    let mut world = world();
    seen.agent_runtimes.iter().for_each(|object| world.observe(object, "team1"));
    rows(seen, "team1", &world, &[]).unwrap()
}

/// The stamp of Pods that are made now.
fn hash() -> String {
    let labelled = deployment("w", json!({"kagenti.io/type": "agent"}));
    let subject = crate::cli::offline::workload::Subject::of(&labelled, "team1").unwrap();
    let verdict =
        crate::cli::offline::review::evaluate(&subject, &subject.pod(&labelled), &world().snapshot().unwrap()).unwrap();
    verdict.audit.iter().find(|(name, _)| *name == "config-hash").unwrap().1.clone()
}
