//! Plans about AgentCards as tables, by the numbers of the cases of cards (docs/cases.md), and what is published of a document.

mod cases;
mod pods;
mod ports;
mod proved;
mod publishing;
mod signed;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::memory::{Asked, Cards, Plan};
use super::plan::{NAME, ROW};
use super::published::publish;
use super::question::{CardQuestion, Fetched};
use crate::controllers::scaffold::fixtures::{Cluster, change, s, workload};
use crate::controllers::scaffold::lane::{Ask, AskError, AskFault, Fact, Facts};
use crate::controllers::scaffold::plan::Op;
use crate::crypto::{Bundles, Verdict};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

const CARD: &str = "w-deployment-card";

/// A cluster in which everything has been read, with Deployment `w` of an agent, its Service, one Ready Pod, and its card.
fn cluster() -> Cluster {
    let mut cluster = empty();
    cluster.see(Kind::Deployment, deployment(json!({})));
    cluster.see(Kind::Service, service(json!([{"name": "http", "port": 8000}])));
    cluster.see(Kind::ReplicaSet, replica_set("w-1"));
    cluster.see(Kind::Pod, pod("w-1-a", "w-1", "10.244.0.5", json!({})));
    cluster.see(Kind::AgentCard, card(json!({})));
    cluster
}

fn empty() -> Cluster {
    let mut cluster = Cluster::new();
    for kind in [Kind::AgentCard, Kind::Deployment, Kind::StatefulSet, Kind::Service, Kind::Pod, Kind::ReplicaSet] {
        cluster.store.set_reach(kind, Reach::Listed);
    }
    cluster
}

fn deployment(more: Value) -> Value {
    let mut object = workload(
        Kind::Deployment,
        "w",
        json!({"metadata": {"labels": {"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""}},
            "status": {"conditions": [{"type": "Available", "status": "True"}]}}),
    );
    json_patch::merge(&mut object, &more);
    object
}

fn owned(kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
}

fn replica_set(name: &str) -> Value {
    workload(
        Kind::ReplicaSet,
        name,
        json!({"metadata": {"ownerReferences": owned("Deployment", "w", "deployments-w")}}),
    )
}

fn service(ports: Value) -> Value {
    json!({"metadata": {"name": "w", "namespace": "team", "uid": "service-w", "resourceVersion": "11"},
        "spec": {"ports": ports, "selector": {"app": "w"}}})
}

fn pod(name: &str, owner: &str, address: &str, more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("pod-{name}"), "resourceVersion": "12",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"kagenti.io/type": "agent"},
            "ownerReferences": owned("ReplicaSet", owner, &format!("replicasets-{owner}"))},
        "spec": {"containers": [{"name": "agent", "ports": [{"name": "a2a", "containerPort": 9001}]}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
            "podIPs": [{"ip": address}]},
    });
    json_patch::merge(&mut object, &more);
    object
}

fn card(more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": CARD, "namespace": "team", "uid": "card-w", "resourceVersion": "30", "generation": 1},
        "spec": {"syncPeriod": "30s", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
    });
    json_patch::merge(&mut object, &more);
    object
}

/// The plan about the card, by these answers.
fn plan_at(cluster: &Cluster, facts: &Facts<CardQuestion>, now: Duration) -> Asked {
    let key = Key::new("team", CARD);
    cluster.asked_at(ROW, &key, facts, now)
}

fn plan(cluster: &Cluster) -> Asked {
    plan_at(cluster, &Facts::default(), s(100))
}

/// An answer to what is asked first.
fn answer(cluster: &Cluster, now: Duration, value: Result<Value, AskError>) -> Facts<CardQuestion> {
    let (_, asks) = plan_at(cluster, &Facts::default(), now);
    let CardQuestion::Fetch(fetch) = &asks[0].question else { panic!("a Pod is asked") };
    let value = value.map(|document| unsigned(&document, &fetch.authority));
    let failures = u32::from(value.is_err());
    Facts::default().with(asks[0].question.clone(), Fact { value, asked: now, at: now, failures })
}

/// An answer where no trust bundle is configured.
fn unsigned(document: &Value, authority: &str) -> Fetched {
    let served = Arc::new(publish(document.to_string().as_bytes(), authority).unwrap());
    let (verdict, bundles) = (Arc::new(Verdict::Unknown), Arc::new(Bundles::default()));
    Fetched { served, covered: Vec::new(), verdict, bundles, read: 0, peer: None }
}

fn refused(reason: Reason, message: &str) -> AskError {
    AskError { fault: AskFault::Refused, reason, message: message.into() }
}

/// What is told, and the object as it is stored once the plan is carried out.
fn carried_out(object: &Value, plan: &Plan) -> (Vec<Reason>, Value) {
    let (mut told, mut object) = (Vec::new(), object.clone());
    for op in &plan.ops {
        match op {
            Op::Report(report) => told.push(report.reason),
            Op::Restate { kind: Kind::AgentCard, key, operations } if &*key.name == CARD => {
                assert_eq!((&operations[0]["op"], &operations[0]["path"]), (&json!("test"), &json!("/metadata/uid")));
                assert_eq!(operations[1]["path"], "/metadata/resourceVersion");
                let operations: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
                json_patch::patch(&mut object, &operations).unwrap();
                let version: u64 = object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
                object["metadata"]["resourceVersion"] = json!((version + 1).to_string());
            }
            other => panic!("{other:?}"),
        }
    }
    (told, object)
}

/// A condition's status and reason.
fn judged<'o>(object: &'o Value, type_: &str) -> (&'o str, &'o str) {
    let all = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = all.iter().find(|one| one["type"] == type_);
    found.map_or(("", ""), |one| (one["status"].as_str().unwrap(), one["reason"].as_str().unwrap()))
}

/// The card after a plan by these answers, which the cluster then knows.
fn settle(cluster: &mut Cluster, object: &Value, facts: &Facts<CardQuestion>, now: Duration) -> (Vec<Reason>, Value) {
    let (plan, _) = plan_at(cluster, facts, now);
    let (told, object) = carried_out(object, &plan);
    cluster.note::<Cards>(NAME, &Key::new("team", CARD), plan.note);
    cluster.see(Kind::AgentCard, object.clone());
    (told, object)
}
