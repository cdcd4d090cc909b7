//! Condition `Protected`: what the Pods carry, beside `Ready`, which says that the enrolment is in place.

use serde_json::{Value, json};

use super::bench::{Bench, pod};
use crate::controllers::scaffold::fixtures::s;
use crate::store::Kind;

const DB: (Kind, &str) = (Kind::StatefulSet, "db");

/// A StatefulSet of two Pods whose template an AgentRuntime has written on.
fn bench(spec: Value) -> (Bench, String) {
    let mut bench = Bench::new();
    let template = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app"}]}});
    bench.put(
        Kind::StatefulSet,
        json!({
            "metadata": {"name": "db", "generation": 1},
            "spec": {"replicas": 2, "template": template},
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
        }),
    );
    bench.runtime("art", DB, json!({"spec": spec}));
    bench.converge();
    let hash = bench.hash(Kind::StatefulSet, "db").unwrap().to_owned();
    (bench, hash)
}

fn says(bench: &Bench) -> String {
    bench.condition("art", "Protected")
}

#[test]
fn answers_01_ready_is_not_protected_until_every_pod_that_runs_has_its_sidecars() {
    let (mut bench, hash) = bench(json!({}));
    assert_eq!((&*bench.condition("art", "Ready"), &*says(&bench)), ("True/Configured", "False/PodsMissing"));
    let mut pending = pod("db-0", DB, Some(&hash));
    pending["status"]["phase"] = json!("Pending");
    bench.put(Kind::Pod, pending);
    bench.converge();
    assert_eq!(says(&bench), "False/PodsNotRunning");
    bench.put(Kind::Pod, pod("db-0", DB, Some(&hash)));
    bench.put(Kind::Pod, pod("db-1", DB, None));
    bench.converge();
    assert_eq!(says(&bench), "False/UnprotectedPods");
    assert_eq!(bench.remembered().protected(), (0, 1));
    bench.put(Kind::Pod, pod("db-1", DB, Some("other")));
    bench.converge();
    assert_eq!(says(&bench), "False/OutdatedPods");
    bench.put(Kind::Pod, pod("db-1", DB, Some(&hash)));
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), &*says(&bench)), ("True/Configured", "True/Protected"));
    assert_eq!(bench.remembered().protected(), (1, 0));
    assert!(!bench.message("art", "Protected").contains('2'), "counts stand in the status");
    let status = &bench.object(Kind::AgentRuntime, "art")["status"];
    assert_eq!((&status["runningPods"], &status["configuredPods"]), (&json!(2), &json!(2)));
}

#[test]
fn answers_01_a_tool_that_gets_nothing_is_ready_and_not_protected() {
    let (bench, _) = bench(json!({"type": "tool"}));
    assert_eq!((&*bench.condition("art", "Ready"), &*says(&bench)), ("True/Configured", "False/ToolsDisabled"));
    assert!(bench.message("art", "Protected").contains("drawbridge explain"), "{}", bench.message("art", "Protected"));
}

#[test]
fn answers_01_who_wants_no_pods_has_none_that_is_unprotected() {
    let (mut bench, _) = bench(json!({}));
    bench.change(Kind::StatefulSet, "db", json!({"spec": {"replicas": 0}, "status": {"replicas": 0}}));
    bench.converge();
    assert_eq!(says(&bench), "True/NoReplicasWanted");
}

#[test]
fn answers_01_a_quota_that_stops_the_new_pods_is_the_reason() {
    let mut bench = super::bench::enrolled();
    bench.change(
        Kind::Deployment,
        "web",
        json!({"status": {"observedGeneration": 9, "updatedReplicas": 0, "conditions": [{"type": "ReplicaFailure", "status": "True",
            "message": "pods \"web-1\" is forbidden: exceeded quota: small"}]}}),
    );
    bench.converge();
    assert_eq!(says(&bench), "False/QuotaExceeded");
    assert!(bench.message("art", "Protected").contains("describe resourcequota"));
    bench.change(Kind::Deployment, "web", json!({"status": {"conditions": []}}));
    bench.converge();
    assert_eq!(says(&bench), "Unknown/RolloutProgressing", "while they are being replaced");
}

/// What is said of a workload that scales writes its counts at most every five seconds, and the last of them all the same.
#[test]
fn answers_01_counts_alone_are_written_every_five_seconds_at_most() {
    let (mut bench, hash) = bench(json!({}));
    bench.put(Kind::Pod, pod("db-0", DB, Some(&hash)));
    bench.converge();
    let running = |bench: &Bench| bench.object(Kind::AgentRuntime, "art")["status"]["runningPods"].clone();
    bench.now += s(5);
    bench.put(Kind::Pod, pod("db-1", DB, Some(&hash)));
    bench.converge();
    assert_eq!(running(&bench), 2, "a change of counts alone");
    bench.put(Kind::Pod, pod("db-2", DB, Some(&hash)));
    bench.now += s(4);
    bench.converge();
    assert_eq!(running(&bench), 2);
    bench.now += s(1);
    bench.converge();
    assert_eq!(running(&bench), 3);
    bench.now += s(60);
    assert_eq!(bench.converge(), [], "what is settled is left alone");
}
