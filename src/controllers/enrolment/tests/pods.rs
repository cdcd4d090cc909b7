//! Pods that are not as their workload wants them, and Sandboxes, whose Pods are made again by us.

use serde_json::{Value, json};

use super::bench::{Bench, pod};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::{Kind, Reach};

const DB: (Kind, &str) = (Kind::StatefulSet, "db");

fn bench(platform: &str) -> (Bench, String) {
    let mut bench = Bench::with(platform);
    let template = json!({"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "app"}]}});
    bench.put(
        Kind::StatefulSet,
        json!({
            "metadata": {"name": "db", "generation": 1},
            "spec": {"replicas": 2, "template": template},
            "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2},
        }),
    );
    bench.runtime("art", DB, json!({}));
    bench.converge();
    let hash = bench.hash(Kind::StatefulSet, "db").unwrap().to_owned();
    (bench, hash)
}

#[test]
fn pods_that_run_unprotected_or_with_another_hash_are_reported_once() {
    let (mut bench, hash) = bench("");
    bench.put(Kind::Pod, pod("db-0", DB, None));
    bench.put(Kind::Pod, pod("db-1", DB, Some("old")));
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "False/UnprotectedPods");
    assert!(bench.message("art", "PodsCurrent").contains("db-0"));
    assert_eq!(bench.remembered().drift(), (1, 1));
    assert!(bench.evicted.is_empty() && bench.told.iter().any(|told| told.reason.code() == "UnprotectedPods"));
    bench.put(Kind::Pod, pod("db-0", DB, Some(&hash)));
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "False/OutdatedPods");
    bench.put(Kind::Pod, pod("db-1", DB, Some(&hash)));
    bench.converge();
    assert_eq!((&*bench.condition("art", "PodsCurrent"), bench.remembered().drift()), ("True/PodsCurrent", (0, 0)));
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["configuredPods"], 2);
}

#[test]
fn a_hash_that_was_only_inherited_from_the_template_proves_nothing() {
    let (mut bench, hash) = bench("");
    let mut bare = pod("db-0", DB, None);
    bare["metadata"]["annotations"] = json!({keys::ANNOTATION_CONFIG_HASH: hash});
    bench.put(Kind::Pod, bare);
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "False/UnprotectedPods");
}

#[test]
fn while_pods_are_being_replaced_old_ones_are_no_drift() {
    let (mut bench, _) = bench("repair: evict\n");
    bench.put(Kind::Pod, pod("db-0", DB, Some("old")));
    bench.change(Kind::StatefulSet, "db", json!({"status": {"updatedReplicas": 1}}));
    bench.converge();
    assert_eq!(bench.condition("art", "RolloutProgressing"), "True/RolloutProgressing");
    assert_eq!((bench.remembered().drift(), bench.evicted.len()), ((0, 0), 0));
}

#[test]
fn evictions_go_one_at_a_time_and_never_twice_for_one_pod() {
    let (mut bench, _) = bench("repair: evict\n");
    bench.put(Kind::Pod, pod("db-0", DB, None));
    bench.put(Kind::Pod, pod("db-1", DB, Some("old")));
    bench.converge();
    assert_eq!(bench.evicted, ["db-0"], "unprotected ones first, one at a time");
    bench.now = s(200);
    bench.converge();
    assert_eq!(bench.evicted, ["db-0"], "it has not gone yet");
    bench.remove(Kind::Pod, "db-0");
    bench.converge();
    assert_eq!(bench.evicted, ["db-0", "db-1"]);
}

/// Without the label the API server sends them to nobody here; the workload's own counts tell of them.
#[test]
fn pods_from_before_the_enrolment_that_nothing_replaces_are_told_of() {
    let status = |updated: i64| json!({"status": {"observedGeneration": 9, "replicas": 2, "updatedReplicas": updated}});
    for (keeps, updated, says) in [
        (json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 1}}}}), 1, "False/UnprotectedPods"),
        (json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}), 1, "False/UnprotectedPods"),
        (json!({}), 2, "True/PodsCurrent"),
    ] {
        let (mut bench, hash) = bench("repair: evict\n");
        bench.change(Kind::StatefulSet, "db", keeps.clone());
        bench.change(Kind::StatefulSet, "db", status(updated));
        bench.put(Kind::Pod, pod("db-1", DB, Some(&hash)));
        bench.converge();
        assert_eq!(bench.condition("art", "PodsCurrent"), says, "{keeps}");
        assert!(bench.evicted.is_empty());
        if updated == 1 {
            let message = bench.message("art", "PodsCurrent");
            assert!(message.contains("1 from before the enrolment"), "{message}");
        }
    }
    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({"spec": {"paused": true}, "status": {"updatedReplicas": 0}}));
    bench.runtime("art", (Kind::Deployment, "web"), json!({}));
    bench.converge();
    bench.change(Kind::Deployment, "web", json!({"status": {"observedGeneration": 2}}));
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "False/UnprotectedPods");
}

/// As when the webhook's configuration is gone: what replaces an evicted Pod is no better than it was.
#[test]
fn evictions_pause_when_what_was_made_since_is_no_better() {
    let (mut bench, _) = bench("repair: evict\n");
    for name in ["db-0", "db-1"] {
        bench.put(Kind::Pod, pod(name, DB, None));
    }
    bench.converge();
    assert_eq!(bench.evicted, ["db-0"]);
    bench.remove(Kind::Pod, "db-0");
    let mut again = pod("db-2", DB, None);
    again["metadata"]["creationTimestamp"] = json!("2026-06-01T00:00:00Z");
    bench.put(Kind::Pod, again);
    bench.now = s(200);
    bench.converge();
    assert_eq!(bench.evicted, ["db-0"], "the same would come of it");
    bench.now = s(500);
    bench.converge();
    assert_eq!(bench.evicted, ["db-0", "db-1"], "but it is tried from time to time");
}

/// The Pod that was younger than those of the refusal was made by somebody else, and nothing was replaced in vain.
#[test]
fn an_eviction_that_a_budget_forbids_counts_for_nothing() {
    let (mut bench, hash) = bench("repair: evict\n");
    bench.budget = true;
    bench.put(Kind::Pod, pod("db-0", DB, None));
    bench.put(Kind::Pod, pod("db-1", DB, Some(&hash)));
    bench.converge();
    let mut younger = pod("db-1", DB, None);
    younger["metadata"]["uid"] = json!("another");
    younger["metadata"]["creationTimestamp"] = json!("2026-06-01T00:00:00Z");
    bench.remove(Kind::Pod, "db-1");
    bench.put(Kind::Pod, younger);
    bench.now += s(10);
    bench.converge();
    bench.budget = false;
    assert!(bench.evicted.is_empty());
    bench.now += s(31);
    bench.converge();
    assert_eq!(bench.evicted, ["db-0"], "asked for again once the pause after the refusal is over");
}

#[test]
fn on_delete_and_paused_say_why_no_pod_was_replaced_and_nothing_is_evicted() {
    let (mut bench, _) = bench("repair: evict\n");
    bench.change(Kind::StatefulSet, "db", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}}));
    bench.put(Kind::Pod, pod("db-0", DB, Some("old")));
    bench.converge();
    assert_eq!(bench.condition("art", "RolloutProgressing"), "False/RolloutOnDelete");
    assert_eq!((&*bench.condition("art", "PodsCurrent"), bench.evicted.len()), ("False/OutdatedPods", 0));
}

fn sandbox(replicas: i64, existing: i64) -> Value {
    json!({
        "metadata": {"name": "box", "generation": 1},
        "spec": {"replicas": replicas, "podTemplate": {"metadata": {"labels": {"app": "box"}}, "spec": {"containers": [{"name": "app"}]}}},
        "status": {"replicas": existing},
    })
}

const BOX: (Kind, &str) = (Kind::Sandbox, "box");

fn restarts(ops: &[Op]) -> Vec<Value> {
    let merges = ops.iter().filter_map(|op| match op {
        Op::Merge { kind: Kind::Sandbox, patch, .. } => Some(patch["spec"]["replicas"].clone()),
        _ => None,
    });
    merges.collect()
}

#[test]
fn case_042_a_sandbox_is_restarted_in_two_phases() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox(3, 0));
    bench.runtime("art", BOX, json!({}));
    // case_043: nothing runs, nothing is scaled.
    assert_eq!(restarts(&bench.converge()), Vec::<Value>::new());
    bench.put(Kind::Pod, pod("box", BOX, Some("old")));
    bench.change(
        Kind::Sandbox,
        "box",
        json!({"status": {"replicas": 1}, "metadata": {"annotations": {keys::ANNOTATION_SANDBOX_POD: "box"}}}),
    );
    assert_eq!(restarts(&bench.converge()), [json!(0)]);
    let annotations = bench.object(Kind::Sandbox, "box")["metadata"]["annotations"].clone();
    assert_eq!(
        (&annotations[keys::ANNOTATION_RESTART_PENDING], &annotations[keys::ANNOTATION_RESTART_REPLICAS]),
        (&json!("true"), &json!("3"))
    );
    assert_eq!(restarts(&bench.converge()), Vec::<Value>::new(), "not before the Pod is gone");
    bench.remove(Kind::Pod, "box");
    bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 0}}));
    assert_eq!(restarts(&bench.converge()), [json!(3)], "as many as before (S17)");
    let annotations = bench.object(Kind::Sandbox, "box")["metadata"]["annotations"].clone();
    assert_eq!(annotations, json!({}), "the Sandbox controller makes a new Pod");
    assert!(bench.told.iter().any(|told| told.reason.code() == "SandboxRestarted"));
    let hash = bench.hash(Kind::Sandbox, "box").unwrap().to_owned();
    bench.put(Kind::Pod, pod("box", BOX, Some(&hash)));
    bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 1}}));
    bench.now = s(300);
    assert_eq!(restarts(&bench.converge()), Vec::<Value>::new());
    assert_eq!(bench.condition("art", "PodsCurrent"), "True/PodsCurrent");
}

#[test]
fn case_043_the_first_enrolment_restarts_a_pod_that_runs_unprotected_and_leaves_a_suspended_sandbox_alone() {
    // Not as the Go operator has it, which leaves the running Pod unprotected.
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox(1, 1));
    bench.runtime("art", BOX, json!({}));
    assert_eq!(restarts(&bench.converge()), Vec::<Value>::new(), "its Pod may be on its way to us");
    bench.now = s(103);
    assert_eq!(restarts(&bench.converge()), [json!(0)]);

    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox(0, 0));
    bench.runtime("art", BOX, json!({}));
    bench.converge();
    bench.now = s(200);
    assert_eq!(restarts(&bench.converge()), Vec::<Value>::new());
    assert_eq!(bench.object(Kind::Sandbox, "box")["spec"]["replicas"], 0);
}

#[test]
fn a_sandbox_whose_enrolment_ends_during_its_restart_is_put_back_first() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox(2, 1));
    bench.runtime("art", BOX, json!({}));
    bench.put(Kind::Pod, pod("box", BOX, Some("old")));
    assert_eq!(restarts(&bench.converge()), [json!(0)]);
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    assert_eq!(restarts(&bench.converge()), [json!(2)]);
    assert_eq!(bench.hash(Kind::Sandbox, "box"), None);
}

#[test]
fn a_driver_that_went_away_a_moment_ago_rolls_nothing_and_pods_of_the_meantime_are_no_drift() {
    let (mut bench, hash) = bench("repair: evict\n");
    bench.cluster.spiffe_driver(false);
    bench.converge();
    assert_eq!(bench.hash(Kind::StatefulSet, "db"), Some(&*hash), "it may come back: an upgrade of SPIRE");
    let now = {
        let workload = bench.cluster.store.workload(Kind::StatefulSet, "team", "db").unwrap();
        let template = workload.governed_template(&bench.cluster.facts.snapshot.labels).unwrap();
        let snapshot = &bench.cluster.facts.snapshot;
        crate::admission::inject::needs("team", &workload.identity(), &template, snapshot).config_hash.unwrap()
    };
    assert_ne!(now, hash);
    bench.put(Kind::Pod, pod("db-0", DB, Some(&hash)));
    bench.put(Kind::Pod, pod("db-1", DB, Some(&now)));
    bench.converge();
    assert_eq!((bench.remembered().drift(), bench.evicted.len()), ((0, 0), 0));
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["configuredPods"], 2);

    bench.cluster.facts.settled = bench.cluster.facts.snapshot.clone();
    bench.cluster.memory.epoch += 1;
    bench.converge();
    assert_eq!(bench.hash(Kind::StatefulSet, "db"), Some(&*now), "after five minutes it counts");
}
