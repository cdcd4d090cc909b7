//! When an Agent counts as ready, and that a settled one is left alone: cases of agents (A; docs/cases.md) that plans decide.

use serde_json::{Value, json};

use super::bench::{Bench, running};
use crate::controllers::agent::plan::ROW;
use crate::controllers::scaffold::plan::Op;
use crate::store::Kind;

#[test]
fn case_a31_an_agent_without_pods_is_ready() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"spec": {"replicas": 0}}));
    bench.converge();
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(
        (bench.phase("weather").as_str(), bench.condition("weather", "Ready").as_str()),
        ("Ready", "True/ScaledToZero")
    );
}

fn at(bench: &mut Bench, status: Value) -> (String, String) {
    let generation = bench.object(Kind::Deployment, "weather")["metadata"]["generation"].clone();
    bench.edit(Kind::Deployment, "weather", json!({"status": {"observedGeneration": generation}}));
    bench.edit(Kind::Deployment, "weather", json!({"status": status}));
    bench.converge();
    (bench.phase("weather"), bench.condition("weather", "Ready"))
}

#[test]
fn case_a32_a_rollout_under_way_shows_its_counts() {
    let mut bench = running();
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 3}}));
    bench.converge();
    let state = json!({"replicas": 3, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3, "unavailableReplicas": 1});
    assert_eq!(at(&mut bench, state), ("Deploying".to_owned(), "False/DeploymentNotReady".to_owned()));
    assert_eq!(bench.message("weather", "Ready"), "Replicas: 3/3 ready, 2 updated, 3 available");
    assert_eq!(bench.condition("weather", "PodsScheduled"), "False/PodsUnscheduled");
    assert_eq!(bench.condition("weather", "Reconciling"), "True/DeploymentNotReady");
    // A status about an earlier generation says nothing about this one.
    bench.edit(Kind::Deployment, "weather", json!({"status": {"observedGeneration": 0, "updatedReplicas": 3}}));
    bench.converge();
    assert_eq!(bench.condition("weather", "Ready"), "False/DeploymentNotReady");
}

#[test]
fn case_a33_a_rollout_that_does_not_get_further_has_failed() {
    let mut bench = running();
    let stuck =
        json!({"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]});
    assert_eq!(at(&mut bench, stuck), ("Failed".to_owned(), "False/ProgressDeadlineExceeded".to_owned()));
    let refused = json!({"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "quota exceeded"}]});
    assert_eq!(at(&mut bench, refused), ("Failed".to_owned(), "False/ReplicaFailure".to_owned()));
    assert!(bench.message("weather", "Ready").contains("quota exceeded"));
    assert_eq!(bench.reasons().iter().filter(|reason| **reason == "DeploymentFailed").count(), 2);
    assert_eq!(at(&mut bench, json!({"conditions": []})).0, "Ready", "and recovers");
}

#[test]
fn case_a34_an_unchanged_agent_is_written_nothing_for_nor_after_a_restart() {
    let mut bench = running();
    let told = bench.told.len();
    for _ in 0..100 {
        assert_eq!(bench.round(&ROW), []);
    }
    // A new process knows the cluster and nothing else.
    bench.cluster.forget();
    assert_eq!(bench.converge(), []);
    assert_eq!(bench.told.len(), told);
}

/// Somebody else scales, and is not disturbed.
#[test]
fn replicas_of_an_autoscaler_are_its_own() {
    let mut bench = Bench::new();
    bench.agent(
        "weather",
        json!({"metadata": {"annotations": {"agent.kagenti.dev/replicas-managed-externally": "true"}}}),
    );
    bench.converge();
    bench.edit(Kind::Deployment, "weather", json!({"spec": {"replicas": 5}}));
    bench.rolled_out("weather");
    bench.converge();
    assert_eq!(bench.object(Kind::Deployment, "weather")["spec"]["replicas"], 5);
    assert_eq!(bench.condition("weather", "Ready"), "True/DeploymentReady");
}

/// A field that its only owner leaves out goes, and 1 would come in its place: the number stays until somebody else writes one.
#[test]
fn replicas_that_are_handed_over_to_an_autoscaler_stay_until_it_writes_its_own() {
    let mut bench = Bench::new();
    bench.agent("weather", json!({"spec": {"replicas": 3}}));
    bench.converge();
    bench.rolled_out("weather");
    bench.converge();
    let external = json!({"metadata": {"annotations": {"agent.kagenti.dev/replicas-managed-externally": "true"}}});
    bench.edit(Kind::Agent, "weather", external);
    assert!(bench.converge().iter().all(|op| !matches!(op, Op::Own { .. })), "nothing is to be written for that");
    let replicas = |bench: &Bench| bench.object(Kind::Deployment, "weather")["spec"]["replicas"].clone();
    let image = |version: &str| json!({"spec": {"imageSource": {"image": format!("ghcr.io/acme/weather:{version}")}}});
    // What is said of the number counts no more; everything else does.
    bench.edit(Kind::Agent, "weather", json!({"spec": {"replicas": 1}}));
    bench.edit(Kind::Agent, "weather", image("v2"));
    bench.converge();
    assert_eq!(
        (replicas(&bench), &bench.container("weather", 0)["image"]),
        (json!(3), &json!("ghcr.io/acme/weather:v2"))
    );
    bench.edit(Kind::Deployment, "weather", json!({"spec": {"replicas": 5}}));
    bench.converge();
    bench.edit(Kind::Agent, "weather", image("v3"));
    bench.converge();
    assert_eq!(
        (replicas(&bench), &bench.container("weather", 0)["image"]),
        (json!(5), &json!("ghcr.io/acme/weather:v3"))
    );
    assert_eq!(bench.converge(), []);
    let contested = bench.reasons().iter().filter(|reason| **reason == "FieldsContested").count();
    assert_eq!(contested, 0);
}
