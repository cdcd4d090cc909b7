//! What a build says while something of the build before is still on its way out.

use serde_json::{Value, json};

use super::bench::{Bench, NAME, TEAM, build};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::Kind;

type Wish = fn(&mut Value);

/// What makes another build of one: a change of its inputs, and the wish to build again.
const WISHES: [Wish; 2] = [
    |build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"),
    |build| build["metadata"]["annotations"] = json!({keys::ANNOTATION_REBUILD: "1"}),
];

fn workspace() -> String {
    format!("{NAME}-workspace")
}

/// A build that succeeded and whose workspace was deleted and is not gone.
fn with_a_workspace_that_stays() -> Bench {
    let mut bench = Bench::new(build());
    bench.settle();
    bench.lingers = true;
    bench.succeed("a");
    bench.settle();
    assert_eq!((bench.phase(), bench.names(Kind::PersistentVolumeClaim)), ("Succeeded".into(), vec![workspace()]));
    bench
}

#[test]
fn mend_11_a_changed_build_says_at_once_that_it_waits_for_the_old_workspace() {
    for wish in WISHES {
        let mut bench = with_a_workspace_that_stays();
        bench.user(wish);
        assert_eq!(bench.settle(), Some(s(2)));
        assert_eq!(bench.phase(), "Pending");
        assert_eq!(bench.condition("Ready"), ("False".into(), "WorkspaceTerminating".into()));
        assert_eq!(bench.condition("BuildSucceeded"), ("Unknown".into(), "BuildPending".into()));
        assert_eq!(bench.status()["observedGeneration"], json!(2));
        let message = bench.message();
        assert!(
            message.contains(&workspace()) && message.contains(&format!("kubectl -n {TEAM} describe pvc")),
            "{message}"
        );
        // For as long as that takes nothing more is written, nor after a restart.
        assert_eq!((bench.pass(600), bench.names(Kind::PipelineRun).len()), (0, 1));
        bench.restart();
        assert_eq!(bench.pass(600), 0);
        bench.lose(Kind::PersistentVolumeClaim, &workspace());
        bench.settle();
        assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 2));
    }
}

/// An attempt that is claimed has begun, and waits all the same.
#[test]
fn mend_11_a_claimed_attempt_says_that_it_waits_for_the_old_workspace() {
    let mut bench = Bench::new(build());
    bench.refuses = |op| matches!(op, Op::Ensure { kind: Kind::PipelineRun, .. }).then_some((None, "not now"));
    bench.step(usize::MAX);
    bench.step(usize::MAX);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 0));
    bench.edit(Kind::PersistentVolumeClaim, &workspace(), |claim| claim["metadata"]["deletionTimestamp"] = json!("x"));
    bench.refuses = |_| None;
    bench.restart();
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Building".into(), "WorkspaceTerminating".into()));
    bench.lose(Kind::PersistentVolumeClaim, &workspace());
    bench.settle();
    assert_eq!((bench.condition("Ready").1, bench.names(Kind::PipelineRun).len()), ("BuildInProgress".into(), 1));
}

/// Whoever admits runs may take long to answer, and what is stored speaks of the build before.
#[test]
fn mend_11_a_changed_build_says_so_before_anybody_is_asked_about_its_run() {
    for wish in WISHES {
        let mut bench = Bench::new(build());
        bench.settle();
        bench.succeed("a");
        bench.settle();
        bench.user(wish);
        let asked = bench.done.len();
        bench.step(usize::MAX);
        assert!(bench.done[asked..].iter().all(|op| matches!(op, Op::Status { .. })), "{:?}", &bench.done[asked..]);
        assert_eq!((bench.phase(), bench.condition("Ready").0), ("Pending".into(), "False".into()));
        assert_eq!(bench.status()["observedGeneration"], json!(2));
        bench.settle();
        assert_eq!(bench.phase(), "Building");
    }
}

#[test]
fn mend_11_a_run_that_is_being_deleted_is_said_to_be() {
    let mut bench = Bench::new(build());
    bench.settle();
    let run = bench.run();
    bench.edit(Kind::PipelineRun, &run, |run| run["metadata"]["deletionTimestamp"] = json!("x"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    assert!(bench.message().contains("is being deleted"), "{}", bench.message());
    assert_eq!(bench.pass(600), 0);
}

#[test]
fn mend_11_clean_up_is_complete_when_nothing_is_left() {
    let mut bench = with_a_workspace_that_stays();
    let told = |bench: &Bench| (bench.told(Reason::CleanupCompleted), bench.message());
    let under_way = (0, "Build completed successfully".to_owned());
    assert_eq!(told(&bench), under_way);
    assert_eq!(bench.pass(600), 0);
    bench.lose(Kind::PersistentVolumeClaim, &workspace());
    bench.settle();
    let done = (1, "Build complete, cleanup done".to_owned());
    assert_eq!(told(&bench), done);
    bench.restart();
    assert_eq!((bench.pass(600), told(&bench)), (0, done));
}

/// A Pod that somebody's finalizer holds is not gone either.
#[test]
fn mend_11_clean_up_waits_for_pods_that_are_on_their_way_out() {
    let mut bench = Bench::new(build());
    bench.settle();
    bench.task("push", true, json!([]), json!({}));
    let task = format!("{}-push", bench.run());
    let pod = json!({
        "metadata": {"name": "held", "namespace": TEAM, "uid": "pod-held", "deletionTimestamp": "x",
            "labels": {keys::LABEL_PIPELINE_RUN: bench.run(), keys::LABEL_AGENT_BUILD: NAME},
            "ownerReferences": [{"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "name": task, "uid": format!("tr-{task}"),
                "controller": true}]},
        "status": {"phase": "Succeeded"},
    });
    bench.put(Kind::Pod, pod);
    bench.succeed("a");
    bench.settle();
    assert_eq!((bench.names(Kind::PersistentVolumeClaim).len(), bench.told(Reason::CleanupCompleted)), (0, 0));
    bench.lose(Kind::Pod, "held");
    bench.settle();
    assert_eq!(bench.told(Reason::CleanupCompleted), 1);
}

/// Tekton deletes the Pod of a task that takes too long, and a node that evicts a Pod takes its containers away.
#[test]
fn mend_12_nobody_is_sent_to_what_a_pod_printed_that_is_gone() {
    for (task, step, readable) in [
        ("Failed", "Error", true),
        ("Failed", "OOMKilled", true),
        ("TaskRunTimeout", "TaskRunTimeout", false),
        ("TaskRunImagePullFailed", "Error", false),
        ("Failed", "Evicted", false),
    ] {
        let mut bench = Bench::new(build());
        bench.settle();
        let more = json!({"status": {
            "conditions": [{"type": "Succeeded", "status": "False", "reason": task, "message": "m"}],
            "steps": [{"name": "x", "terminated": {"exitCode": 1, "reason": step}}],
        }});
        bench.task("push", false, json!([]), more);
        bench.run_is("False", "Failed", "of the run");
        bench.settle();
        let message = bench.message();
        assert!(bench.phase() == "Failed" && message.contains("step x: exit 1"), "{message}");
        assert_eq!(message.contains("kubectl"), readable, "{task} {step}: {message}");
    }
}

/// Of an AgentBuild that is over a bound nothing is read: it says so, and neither its run nor its image is touched.
#[test]
fn mend_02_a_build_that_is_too_large_says_so_and_its_run_goes_on() {
    let mut bench = Bench::new(build());
    bench.settle();
    let runs = bench.names(Kind::PipelineRun);
    assert_eq!(runs.len(), 1);
    bench.user(|build| build["metadata"]["annotations"]["a"] = json!("x".repeat(70 * 1024)));
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun), runs);
    let message = bench.message();
    assert!(bench.phase() == "Failed" && message.contains("64 KiB"), "{}: {message}", bench.phase());
    assert_eq!(bench.told(Reason::ValidationFailed), 1);
    bench.user(|build| drop(build["metadata"]["annotations"].as_object_mut().unwrap().remove("a")));
    bench.settle();
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun)), ("Building".to_owned(), runs));
}
