//! Who has a target and what becomes of one that is missing, foreign, shared or changed: cases of AgentRuntimes (docs/cases.md) that plans decide.

use serde_json::json;

use super::bench::{Bench, TEAM, WEB, deployment, enrolled};
use crate::controllers::enrolment::plan::ROW;
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

#[test]
fn case_021_a_duplicate_is_told_so_writes_nothing_and_goes_without_resistance() {
    let mut bench = enrolled();
    bench.runtime(
        "late",
        WEB,
        json!({"metadata": {"creationTimestamp": "2026-05-01T00:00:01Z"}, "spec": {"type": "tool"}}),
    );
    let ops = bench.converge();
    assert!(ops.iter().all(|op| matches!(op, Op::Report(_) | Op::Status { .. })), "{ops:?}");
    assert_eq!((&*bench.condition("late", "Ready"), bench.phase("late")), ("False/DuplicateTarget", "Error"));
    assert!(bench.message("late", "Ready").contains("AgentRuntime art"));
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    assert_eq!(bench.converge(), [], "nothing flaps");
    // The next one takes over when the first goes, in one write.
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    let ops = bench.converge();
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Apply { .. })).count(), 1);
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned())));
    assert_eq!(bench.object(Kind::Deployment, "web")["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert_eq!(bench.condition("late", "Ready"), "True/Configured");
}

#[test]
fn a_duplicate_with_a_finalizer_loses_it_while_the_winner_stays() {
    let mut bench = enrolled();
    let late = json!({"metadata": {"creationTimestamp": "2026-05-01T00:00:01Z", "finalizers": ["theirs", keys::FINALIZER],
        "deletionTimestamp": "2026-05-02T00:00:00Z"}});
    bench.runtime("late", WEB, late);
    bench.converge();
    assert_eq!(bench.object(Kind::AgentRuntime, "late")["metadata"]["finalizers"], json!(["theirs"]));
    assert!(bench.hash(Kind::Deployment, "web").is_some());
}

#[test]
fn a_thousand_agent_runtimes_on_one_target_are_told_in_batches() {
    let mut bench = Bench::new();
    for number in 0..1_000 {
        let created = format!("2026-05-01T{:02}:{:02}:00Z", number / 60, number % 60);
        bench.runtime(&format!("art-{number:04}"), WEB, json!({"metadata": {"creationTimestamp": created}}));
    }
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(plan.ops.len() <= 2, "the enrolment comes first: {}", plan.ops.len());
    bench.round();
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(plan.ops.len() <= 80 && plan.again.is_some(), "{}", plan.ops.len());
    assert_eq!(bench.object(Kind::Deployment, "web")["metadata"]["labels"][keys::LABEL_TYPE], "agent");
    for round in 0.. {
        assert!(round < 40, "a batch each, and none is passed over");
        let ops = bench.round();
        assert!(ops.len() <= 80, "{}", ops.len());
        if ops.is_empty() {
            break;
        }
    }
    let ready = |number: usize| bench.condition(&format!("art-{number:04}"), "Ready");
    assert_eq!(ready(0), "True/Configured");
    assert!((1..1_000).all(|number| ready(number) == "False/DuplicateTarget"));
}

/// It is known to govern its workload, and not by what: nobody un-enrols it, and nothing else is written for it.
#[test]
fn mend_02_of_an_agent_runtime_over_a_bound_the_workload_stays_as_it_is() {
    let mut bench = enrolled();
    let before = bench.object(Kind::Deployment, "web").clone();
    // More names than are kept of a list: of the whole object nothing is read.
    let finalizers: Vec<String> = (0..300).map(|number| format!("{}/x{number}", "n".repeat(60))).collect();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"finalizers": finalizers}, "spec": {"type": "tool"}}));
    let ops = bench.converge();
    assert!(ops.iter().all(|op| matches!(op, Op::Report(_) | Op::Status { .. })), "{ops:?}");
    assert_eq!(*bench.object(Kind::Deployment, "web"), before);
    assert_eq!(bench.condition("art", "Ready"), "False/ConfigUnknown");
    assert!(bench.message("art", "Ready").contains("nothing is changed on Deployment web"));
    assert_eq!(bench.converge(), [], "told once");
    // Read again, it says what holds.
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    assert_eq!(bench.object(Kind::Deployment, "web")["metadata"]["labels"][keys::LABEL_TYPE], "tool");
}

#[test]
fn case_022_a_missing_target_is_enrolled_as_soon_as_it_comes() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "later"), json!({}));
    bench.converge();
    assert_eq!((&*bench.condition("art", "TargetResolved"), bench.phase("art")), ("False/TargetNotFound", "Error"));
    assert_eq!(bench.told.iter().map(|report| report.reason.code()).collect::<Vec<_>>(), ["TargetNotFound"]);
    assert_eq!(bench.converge(), [], "case_052 and case_058: told once");
    let touched = bench.cluster.touched(ROW, Kind::Deployment, &Key::new(TEAM, "later"));
    assert_eq!(touched, [Key::new(TEAM, "deployments/later")]);
    bench.put(Kind::Deployment, deployment("later"));
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("True/Configured", "Active"));
}

#[test]
fn case_058_a_missing_target_is_told_once_until_the_state_changes() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "later"), json!({}));
    for _ in 0..10 {
        bench.now += s(60);
        bench.converge();
    }
    let told = |bench: &Bench| bench.told.iter().filter(|report| report.reason == Reason::TargetNotFound).count();
    assert_eq!((told(&bench), &*bench.condition("art", "Ready")), (1, "False/TargetNotFound"));
    assert_eq!(bench.condition("art", "TargetResolved"), "False/TargetNotFound");
    bench.put(Kind::Deployment, deployment("later"));
    bench.converge();
    assert_eq!((told(&bench), &*bench.condition("art", "Ready")), (1, "True/Configured"));
}

#[test]
fn case_023_a_kind_that_cannot_be_enrolled_is_named_and_does_not_hold_the_deletion_up() {
    let mut bench = Bench::new();
    // Not as the Go operator has it: DaemonSets can be enrolled. A wrong pair of apiVersion and kind cannot (S4).
    let target = json!({"targetRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}});
    bench.runtime("art", WEB, json!({"spec": target, "metadata": {"finalizers": [keys::FINALIZER]}}));
    bench.converge();
    assert_eq!(bench.condition("art", "TargetResolved"), "False/UnsupportedTarget");
    assert!(bench.message("art", "TargetResolved").contains("not supported"));
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned())));
}

#[test]
fn case_024_readiness_ends_with_the_target() {
    let mut bench = enrolled();
    bench.remove(Kind::Deployment, "web");
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/TargetNotFound");
    assert!(bench.object(Kind::AgentRuntime, "art")["status"].get("configuredPods").is_none());
}

#[test]
fn case_025_what_cannot_be_read_is_no_missing_target_and_changes_nothing() {
    let mut bench = enrolled();
    bench.cluster.store.set_reach(Kind::AgentRuntime, Reach::Unknown);
    bench.remove(Kind::AgentRuntime, "art");
    assert_eq!(bench.converge(), [], "AgentRuntimes cannot be read: nothing is concluded from their absence");
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Unknown);
    bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
    bench.converge();
    assert_eq!(bench.condition("art", "TargetResolved"), "False/TargetUnreadable");
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Absent);
    bench.converge();
    assert_eq!(bench.condition("art", "TargetResolved"), "False/TargetKindAbsent");
}

#[test]
fn case_026_another_target_is_enrolled_and_the_old_one_left_as_it_was() {
    let mut bench = enrolled();
    let before = deployment("web");
    bench.put(Kind::Deployment, deployment("other"));
    bench.change(
        Kind::AgentRuntime,
        "art",
        json!({"metadata": {"generation": 2}, "spec": {"targetRef": {"name": "other"}}}),
    );
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!((&web["spec"], &web["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
    assert!(bench.hash(Kind::Deployment, "other").is_some());
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["appliedTarget"]["name"], "other");
}

#[test]
fn case_044_and_049_without_the_sandbox_definition_the_rest_works_and_deletions_end() {
    let mut bench = Bench::new();
    bench.runtime("boxed", (Kind::Sandbox, "box"), json!({}));
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    assert_eq!(bench.condition("boxed", "Ready"), "False/TargetKindAbsent");
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    bench.change(Kind::AgentRuntime, "boxed", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert!(!bench.objects.contains_key(&(Kind::AgentRuntime, "boxed".to_owned())));
}
