//! What holds wherever the process ends.

use serde_json::json;

use super::bench::{Bench, build, digest};
use crate::domain::reason::Reason;
use crate::store::Kind;

/// A build's life: it starts, runs, succeeds, is cleaned up, is built again after a change, and fails. Between any two
/// plans `hurt` may do harm.
fn life(bench: &mut Bench, mut hurt: impl FnMut(&mut Bench)) {
    let mut go = |bench: &mut Bench| {
        for _ in 0..60 {
            hurt(bench);
            let plan = bench.plan();
            if plan.ops.is_empty() && plan.again != Some(std::time::Duration::ZERO) {
                return;
            }
            bench.step(usize::MAX);
        }
        panic!("it never settles");
    };
    go(bench);
    bench.run_is("Unknown", "Running", "Tasks Completed: 0");
    go(bench);
    bench.succeed("a");
    go(bench);
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    go(bench);
    bench.task("clone", false, json!([]), json!({"status": {"steps": [{"name": "c", "terminated": {"exitCode": 1}}]}}));
    bench.run_is("False", "Failed", "");
    go(bench);
}

fn assert_is_whole(bench: &Bench, context: &str) {
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "StepFailed".into()), "{context}");
    assert_eq!(bench.names(Kind::PipelineRun).len(), 2, "{context}: one run per build");
    assert_eq!(bench.status()["attempts"], json!(1), "{context}");
    assert_eq!(bench.status()["imageDigest"], json!(digest("a")), "{context}");
    for (reason, times) in [
        (Reason::BuildStarted, 2),
        (Reason::BuildSucceeded, 1),
        (Reason::BuildFailed, 1),
        (Reason::CleanupCompleted, 1),
    ] {
        assert_eq!(bench.told(reason), times, "{context}: {reason:?}");
    }
}

/// For every n, the process ends before and after the n-th operation, and a new one goes on.
#[test]
fn wherever_the_process_ends_there_is_one_run_per_attempt_and_the_right_status() {
    let mut bench = Bench::new(build());
    life(&mut bench, |_| ());
    assert_is_whole(&bench, "undisturbed");
    let total = bench.done.len();
    assert!(total > 15, "{total}");
    for n in 0..total {
        let mut bench = Bench::new(build());
        let mut ended = false;
        life(&mut bench, |bench| {
            let done = bench.done.len();
            if !ended && done + bench.plan().ops.len() > n {
                bench.step(n - done);
                bench.restart();
                ended = true;
            }
        });
        assert!(ended);
        assert_is_whole(&bench, &format!("ended at operation {n}"));
    }
}

/// The process ends after every single operation.
#[test]
fn a_process_that_ends_after_every_operation_gets_there_too() {
    let mut bench = Bench::new(build());
    life(&mut bench, |bench| {
        for _ in 0..30 {
            let (plan, done) = bench.step(1);
            if plan.ops.len() <= done {
                break;
            }
            bench.restart();
        }
    });
    assert_is_whole(&bench, "one operation at a time");
}

#[test]
fn a_restart_at_any_rest_writes_nothing() {
    let mut bench = Bench::new(build());
    let mut rests = 0;
    life(&mut bench, |bench| {
        if bench.plan().ops.is_empty() {
            bench.restart();
            let before = bench.done.len();
            bench.settle();
            assert_eq!(bench.done.len(), before, "not even a question");
            rests += 1;
        }
    });
    assert!(rests >= 5, "{rests}");
    assert_is_whole(&bench, "restarted at rest");
}
