//! Clean-up, history, deletion, and Tekton coming and going.

use serde_json::{Value, json};

use super::bench::{Bench, NAME, TEAM, build};
use crate::controllers::scaffold::fixtures::s;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Kind, Reach};

fn pod(bench: &mut Bench, namespace: &str, name: &str, phase: &str) {
    let task = format!("{}-push", bench.run());
    let run = bench.run();
    bench.put(
        Kind::Pod,
        json!({
            "metadata": {"name": name, "namespace": namespace, "uid": format!("pod-{name}"),
                "labels": {keys::LABEL_PIPELINE_RUN: run, keys::LABEL_AGENT_BUILD: NAME},
                "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": task, "uid": format!("tr-{task}"), "controller": true}]},
            "status": {"phase": phase},
        }),
    );
}

fn with_pods(build: Value, phase: &str) -> Bench {
    let mut bench = Bench::new(build);
    bench.settle();
    bench.task("push", true, json!([]), json!({}));
    pod(&mut bench, TEAM, "done", "Succeeded");
    pod(&mut bench, TEAM, "other", phase);
    pod(&mut bench, "elsewhere", "same-label", "Succeeded");
    bench.succeed("a");
    bench.settle();
    bench
}

#[test]
fn case_d22_d25_finished_pods_and_the_workspace_go_and_the_run_stays() {
    let mut bench = with_pods(build(), "Unknown");
    assert_eq!(
        (bench.names(Kind::Pod), bench.names(Kind::PersistentVolumeClaim).len()),
        (vec!["same-label".to_owned()], 0)
    );
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.told(Reason::CleanupCompleted)), (1, 1));
    assert_eq!((bench.phase(), bench.message()), ("Succeeded".into(), "Build complete, cleanup done".into()));
    assert_eq!(bench.pass(600), 0);
    bench.restart();
    assert_eq!((bench.pass(600), bench.told(Reason::CleanupCompleted)), (0, 1));
}

#[test]
fn case_d23_a_pod_that_runs_is_waited_for() {
    let mut bench = with_pods(build(), "Running");
    bench.pass(120);
    assert_eq!(
        (bench.phase(), bench.names(Kind::Pod).len(), bench.names(Kind::PersistentVolumeClaim).len()),
        ("Succeeded".into(), 3, 1)
    );
    pod(&mut bench, TEAM, "other", "Failed");
    bench.settle();
    assert_eq!((bench.names(Kind::Pod).len(), bench.told(Reason::CleanupCompleted)), (1, 1));
}

#[test]
fn case_d24_nothing_is_deleted_unless_it_is_wanted_and_it_may_be_wanted_later() {
    let mut kept = build();
    kept["spec"]["cleanupAfterBuild"] = json!(false);
    let mut bench = with_pods(kept, "Succeeded");
    assert_eq!((bench.names(Kind::Pod).len(), bench.names(Kind::PersistentVolumeClaim).len()), (3, 1));
    assert_eq!(
        (bench.message(), bench.told(Reason::CleanupCompleted)),
        ("Build complete, no cleanup performed".into(), 0)
    );
    assert_eq!(bench.pass(600), 0);
    bench.user(|build| build["spec"]["cleanupAfterBuild"] = json!(true));
    bench.settle();
    assert_eq!((bench.names(Kind::Pod).len(), bench.told(Reason::CleanupCompleted)), (1, 1));
    bench.user(|build| build["spec"]["cleanupAfterBuild"] = json!(false));
    bench.settle();
    assert_eq!(bench.message(), "Build complete, cleanup done");
}

#[test]
fn case_d26_of_each_kind_of_end_three_runs_are_kept() {
    let mut bench = Bench::new(build());
    let mut all = Vec::new();
    for number in 0..5 {
        bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!(format!("v{number}.0.0")));
        bench.settle();
        all.push(bench.run());
        bench.succeed("a");
        bench.settle();
    }
    let mut kept = all[2..].to_vec();
    kept.sort();
    assert_eq!(bench.names(Kind::PipelineRun), kept);
    for number in 5..10 {
        bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!(format!("v{number}.0.0")));
        bench.settle();
        bench.run_is("False", "Failed", "");
        bench.settle();
    }
    assert_eq!(bench.names(Kind::PipelineRun).len(), 6);
}

/// Platform key `builds.history`: how many are kept, and at once when it changes; the last one always is.
#[test]
fn as_many_runs_are_kept_as_the_platform_says() {
    let mut bench = Bench::new(build());
    bench.decide(|settings| settings.history = 4);
    for number in 0..6 {
        bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!(format!("v{number}.0.0")));
        bench.settle();
        bench.succeed("a");
        bench.settle();
    }
    assert_eq!(bench.names(Kind::PipelineRun).len(), 4);
    for (history, kept) in [(2, 2), (0, 1)] {
        bench.decide(|settings| settings.history = history);
        bench.settle();
        assert_eq!(bench.names(Kind::PipelineRun).len(), kept, "{history}");
    }
    assert_eq!(bench.names(Kind::PipelineRun), [bench.run()]);
}

/// Platform key `builds.lostRuns`: after how many runs that were taken away a build has failed.
#[test]
fn a_build_is_tried_again_as_often_as_the_platform_says() {
    for lost_runs in [1, 5] {
        let mut bench = Bench::new(build());
        bench.decide(|settings| settings.lost_runs = lost_runs);
        bench.settle();
        for attempt in 1..=lost_runs {
            assert_eq!((bench.phase(), bench.status()["attempts"].clone()), ("Building".into(), json!(attempt)));
            let run = bench.run();
            bench.lose(Kind::PipelineRun, &run);
            bench.settle();
            bench.pass(31);
        }
        assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Failed".into(), 0), "{lost_runs}");
    }
}

#[test]
fn case_d27_deletion_cancels_deletes_and_lets_go() {
    let mut bench = Bench::new(build());
    bench.settle();
    let run = bench.run();
    bench.edit(Kind::AgentBuild, NAME, |build| build["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z"));
    let (plan, _) = bench.step(1);
    assert_eq!(bench.objects[&(Kind::PipelineRun, run)]["spec"]["status"], "Cancelled");
    assert_eq!(plan.ops.len(), 4);
    bench.settle();
    for kind in [Kind::PipelineRun, Kind::PersistentVolumeClaim, Kind::AgentBuild] {
        assert!(bench.names(kind).is_empty(), "{kind:?}");
    }
    // Tekton's webhook is away: the garbage collector does the rest.
    let mut bench = Bench::new(build());
    bench.settle();
    bench.refuses = |op| op.asks().1.group().contains("tekton").then_some((None, "no endpoints available"));
    bench.edit(Kind::AgentBuild, NAME, |build| build["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z"));
    bench.settle();
    assert!(bench.names(Kind::AgentBuild).is_empty());
}

#[test]
fn case_d28_without_tekton_a_build_waits_and_says_so_and_starts_once_it_is_there() {
    let mut bench = Bench::new(build());
    let reach = |bench: &mut Bench, reach| {
        for kind in [Kind::PipelineRun, Kind::TaskRun] {
            bench.cluster.store.set_reach(kind, reach);
        }
    };
    reach(&mut bench, Reach::Absent);
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.condition("TektonAvailable")),
        ("Pending".into(), ("False".into(), "TektonAbsent".into()))
    );
    assert_eq!((bench.condition("Ready").1, bench.pass(600)), ("TektonAbsent".into(), 0));
    reach(&mut bench, Reach::Listed);
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("TektonAvailable").0), ("Building".into(), "True".into()));
    // It is removed while a build runs, and its objects with it.
    let run = bench.run();
    reach(&mut bench, Reach::Absent);
    bench.lose(Kind::PipelineRun, &run);
    bench.pass(300);
    assert_eq!((bench.phase(), bench.condition("TektonAvailable").0), ("Building".into(), "False".into()));
    reach(&mut bench, Reach::Listed);
    bench.pass(60);
    assert_eq!(
        (bench.phase(), bench.status()["attempts"].clone(), bench.names(Kind::PipelineRun).len()),
        ("Building".into(), json!(2), 1)
    );
}

#[test]
fn a_workspace_on_its_way_out_is_waited_for_and_a_failing_clean_up_changes_no_phase() {
    let mut bench = with_pods(build(), "Succeeded");
    bench.put(
        Kind::PersistentVolumeClaim,
        json!({"metadata": {"name": format!("{NAME}-workspace"), "namespace": TEAM, "uid": "old", "deletionTimestamp": "x",
            "ownerReferences": [{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "AgentBuild", "name": NAME, "uid": "bu", "controller": true}]}}),
    );
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    assert_eq!(bench.settle(), Some(s(2)));
    assert_eq!(bench.names(Kind::PipelineRun).len(), 1);
    bench.lose(Kind::PersistentVolumeClaim, &format!("{NAME}-workspace"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    bench.refuses = |op| matches!(op, crate::controllers::scaffold::plan::Op::Delete { .. }).then_some((None, "no"));
    bench.succeed("b");
    for _ in 0..6 {
        bench.step(usize::MAX);
    }
    assert_eq!((bench.phase(), bench.told(Reason::CleanupFailed)), ("Succeeded".into(), 1));
}
