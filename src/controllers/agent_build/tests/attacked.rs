//! What others write of runs, and what refuses ours.

use serde_json::{Value, json};

use super::bench::{Answer, Bench, NAME, TEAM, build, digest};
use crate::controllers::agent_build::plan::ROW;
use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::names;
use crate::store::{Key, Kind};

type Refuses = fn(&Op) -> Option<Answer>;

fn running() -> Bench {
    let mut bench = Bench::new(build());
    bench.settle();
    bench
}

fn owners(kind: &str, name: &str) -> Value {
    json!([{"apiVersion": "tekton.dev/v1", "kind": kind, "name": name, "uid": format!("u-{name}"), "controller": true}])
}

/// Whoever may write a run may write who controls it.
#[test]
fn owners_that_lead_in_a_circle_concern_no_build() {
    let mut bench = running();
    for (kind, name, owner) in [
        (Kind::PipelineRun, "itself", ("PipelineRun", "itself")),
        (Kind::PipelineRun, "one", ("PipelineRun", "other")),
        (Kind::PipelineRun, "other", ("PipelineRun", "one")),
        (Kind::PipelineRun, "up", ("TaskRun", "down")),
        (Kind::TaskRun, "down", ("PipelineRun", "up")),
        (Kind::TaskRun, "task", ("TaskRun", "task")),
        (Kind::Pod, "pod", ("TaskRun", "task")),
    ] {
        let labels = json!({keys::LABEL_AGENT_BUILD: NAME, keys::LABEL_PIPELINE_RUN: name});
        let metadata = json!({
            "name": name, "namespace": TEAM, "uid": format!("u-{name}"), "labels": labels,
            "ownerReferences": owners(owner.0, owner.1),
        });
        bench.put(kind, json!({"metadata": metadata}));
    }
    for (kind, name) in [
        (Kind::PipelineRun, "itself"),
        (Kind::PipelineRun, "one"),
        (Kind::PipelineRun, "up"),
        (Kind::TaskRun, "down"),
        (Kind::TaskRun, "task"),
        (Kind::Pod, "pod"),
    ] {
        assert_eq!(bench.cluster.touched(ROW, kind, &Key::new(TEAM, name)), [], "{kind:?} {name}");
    }
    // What leads to the build does so as before.
    bench.task("push", true, json!([]), json!({}));
    let (run, build) = (bench.run(), Key::new(TEAM, NAME));
    for (kind, name) in [
        (Kind::PipelineRun, run.clone()),
        (Kind::TaskRun, format!("{run}-push")),
        (Kind::PersistentVolumeClaim, format!("{NAME}-workspace")),
    ] {
        let touched = bench.cluster.touched(ROW, kind, &Key::new(TEAM, &name));
        assert_eq!(touched, std::slice::from_ref(&build), "{kind:?} {name}");
    }
}

/// The number of an attempt is written on its run, where others may write.
#[test]
fn an_attempt_that_somebody_wrote_on_a_run_is_believed_as_far_as_its_name_goes() {
    let attempt = |number: u32| json!({"metadata": {"annotations": {keys::ANNOTATION_ATTEMPT: number.to_string()}}});
    for forged in [false, true] {
        let mut bench = running();
        bench.succeed("a");
        bench.settle();
        let (run, hash) = (bench.run(), bench.status()["buildHash"].as_str().unwrap().to_owned());
        if forged {
            let mut other = bench.objects[&(Kind::PipelineRun, run)].clone();
            let name = names::run_name(NAME, &names::attempt_hash(&hash, u32::MAX));
            json_patch::merge(&mut other, &attempt(u32::MAX));
            json_patch::merge(&mut other, &json!({"metadata": {"name": name, "uid": "forged"}}));
            bench.put(Kind::PipelineRun, other);
        } else {
            bench.edit(Kind::PipelineRun, &run, |run| json_patch::merge(run, &attempt(u32::MAX)));
        }
        // There and back by way of another build: the same inputs are a new attempt.
        for revision in ["v2.0.0", "v1.0.0"] {
            bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!(revision));
            bench.settle();
            assert_eq!(bench.phase(), "Building", "{forged} {revision}: {}", bench.message());
            bench.succeed("b");
            bench.settle();
        }
        assert_eq!((bench.status()["attempts"].clone(), bench.status()["buildHash"].clone()), (json!(2), json!(hash)));
        assert_eq!((bench.phase(), bench.status()["imageDigest"].clone()), ("Succeeded".into(), json!(digest("b"))));
    }
}

/// D-19: somebody deletes the run, what holds it is there yet, and so are its Pods.
#[test]
fn a_run_that_is_being_deleted_and_has_not_ended_is_waited_for() {
    let mut bench = running();
    let first = bench.run();
    bench.edit(Kind::PipelineRun, &first, |run| run["metadata"]["deletionTimestamp"] = json!("x"));
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun), std::slice::from_ref(&first));
    assert!(bench.message().contains("is being deleted, and a new one follows"), "{}", bench.message());
    assert_eq!((bench.phase(), bench.pass(120)), ("Building".into(), 0), "it waits for the end");
    bench.lose(Kind::PipelineRun, &first);
    bench.settle();
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
    assert_ne!(bench.run(), first);
}

/// What queues runs holds them back by `spec.status`; they are to end all the same.
#[test]
fn a_run_that_somebody_holds_back_is_cancelled_like_any_other() {
    let wishes: [fn(&mut Value); 2] = [
        |build| build["metadata"]["annotations"]["agent.kagenti.dev/cancel"] = json!("1"),
        |build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"),
    ];
    for wish in wishes {
        for (before, after) in [("PipelineRunPending", "Cancelled"), ("StoppedRunFinally", "StoppedRunFinally")] {
            let mut bench = running();
            let run = bench.run();
            bench.edit(Kind::PipelineRun, &run, |run| run["spec"]["status"] = json!(before));
            bench.user(wish);
            bench.settle();
            assert_eq!(bench.objects[&(Kind::PipelineRun, run)]["spec"]["status"], after);
        }
    }
}

/// A quota that is full is no fault of a step.
#[test]
fn what_is_said_of_a_refusal_is_about_what_was_refused() {
    let refusals: [(Refuses, &str, &str); 3] = [
        (
            |op| {
                let is_room = matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
                is_room.then_some((Some(Reason::RunRefused), "forbidden: exceeded quota: q"))
            },
            "the workspace (a PersistentVolumeClaim) was refused: forbidden: exceeded quota: q",
            "make room in that quota",
        ),
        (
            |op| {
                let is_room = matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
                is_room.then_some((Some(Reason::RunRefused), "no storage here"))
            },
            "the workspace (a PersistentVolumeClaim) was refused: no storage here",
            "size or storage class",
        ),
        (
            |op| matches!(op, Op::Try { .. }).then_some((Some(Reason::RunRefused), "forbidden: exceeded quota: q")),
            "the run was refused: forbidden: exceeded quota: q",
            "make room in that quota",
        ),
    ];
    for (refuses, what, remedy) in refusals {
        let mut bench = Bench::new(build());
        bench.refuses = refuses;
        bench.settle();
        let message = bench.message();
        assert!(message.contains(what) && message.contains(remedy), "{message}");
        assert!(!message.contains("ConfigMap"), "{message}");
        assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "RunRefused".into()));
    }
}

/// A text that is no name makes no address that could be asked.
#[test]
fn the_name_of_no_secret_is_said_and_not_asked_for() {
    for name in ["no secret", "a/b", "a?b", "A"] {
        let mut named = build();
        named["spec"]["source"]["sourceCredentials"] = json!({"name": name});
        let mut bench = Bench::new(named);
        bench.settle();
        assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "PrerequisitesMissing".into()));
        assert!(bench.message().contains("is the name of no Secret"), "{}", bench.message());
        assert!(bench.done.iter().all(|op| !matches!(op, Op::Look { .. })), "{name}");
    }
}

/// Policies that ask every object for something refuse our finalizer on those of before.
#[test]
fn a_finalizer_that_is_refused_is_said_and_tried_again() {
    let mut bench = Bench::new(build());
    bench.refuses = |op| matches!(op, Op::Merge { .. }).then_some((None, "denied by require-labels"));
    for _ in 0..8 {
        bench.step(usize::MAX);
    }
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Pending".into(), "BuildPending".into()));
    assert!(bench.message().contains("denied by require-labels"), "{}", bench.message());
    let said = |bench: &Bench| bench.done.iter().filter(|op| matches!(op, Op::Status { .. })).count();
    for _ in 0..8 {
        bench.step(usize::MAX);
    }
    assert_eq!(said(&bench), 1, "once");
    bench.refuses = |_| None;
    bench.settle();
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
}

/// A claim's size and class stay as they were made: who asks for others after a failure gets another claim.
#[test]
fn a_workspace_of_another_size_is_made_anew_unless_nothing_may_be_deleted() {
    type Change = fn(&mut Value);
    let larger = |build: &mut Value| {
        build["spec"]["pipeline"]["parameters"] = json!([{"name": "workspace-size", "value": "2Gi"}]);
    };
    let other = |build: &mut Value| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0");
    for (change, cleans_up, size) in
        [(larger as Change, true, "2Gi"), (larger as Change, false, "1Gi"), (other as Change, true, "1Gi")]
    {
        let mut object = build();
        object["spec"]["cleanupAfterBuild"] = json!(cleans_up);
        let mut bench = Bench::new(object);
        bench.settle();
        bench.run_is("False", "Failed", "no space left");
        bench.settle();
        bench.user(change);
        bench.settle();
        let claim = &bench.objects[&(Kind::PersistentVolumeClaim, format!("{NAME}-workspace"))];
        assert_eq!(claim["spec"]["resources"]["requests"]["storage"], size);
        let deleted = bench.done.iter().any(|op| matches!(op, Op::Delete { kind: Kind::PersistentVolumeClaim, .. }));
        assert_eq!((deleted, bench.names(Kind::PipelineRun).len()), (size == "2Gi", 2), "{cleans_up}");
        assert_eq!(bench.phase(), "Building");
    }
}

/// Whoever may write a run may take its label off, by which it is watched.
#[test]
fn a_run_that_loses_its_label_is_followed_to_its_end() {
    let mut bench = running();
    let run = bench.run();
    bench.hide(Kind::PipelineRun, &run);
    assert_eq!(bench.pass(300), 0, "{}", bench.message());
    assert_eq!(bench.names(Kind::PipelineRun), std::slice::from_ref(&run), "never two at once");
    bench.restart();
    bench.hide(Kind::PipelineRun, &run);
    assert_eq!((bench.pass(300), bench.phase()), (0, "Building".into()));
    bench.succeed("a");
    bench.pass(60);
    assert_eq!((bench.phase(), bench.status()["imageDigest"].clone()), ("Succeeded".into(), json!(digest("a"))));
    assert_eq!((bench.names(Kind::PipelineRun), bench.status()["attempts"].clone()), (vec![run], json!(1)));
    // One that is really gone is made again, as ever.
    let mut bench = running();
    let run = bench.run();
    bench.hide(Kind::PipelineRun, &run);
    bench.settle();
    bench.objects.remove(&(Kind::PipelineRun, run));
    bench.pass(120);
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.status()["attempts"].clone()), (1, json!(2)));
}

#[test]
fn a_changed_build_ends_the_run_that_lost_its_label_before_it_makes_another() {
    let mut bench = running();
    let run = bench.run();
    bench.hide(Kind::PipelineRun, &run);
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.pass(300);
    assert_eq!(bench.objects[&(Kind::PipelineRun, run.clone())]["spec"]["status"], "Cancelled");
    assert_eq!(bench.names(Kind::PipelineRun), std::slice::from_ref(&run), "it waits for the end");
    bench.run_is("False", "Cancelled", "");
    bench.pass(60);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 2));
    assert_ne!(bench.run(), run);
}

/// Its creation is answered that it is there, and nothing that follows is ever shown.
#[test]
fn a_run_that_has_no_label_when_it_is_found_does_not_hang_its_build() {
    let first = running();
    let key = (Kind::PipelineRun, first.run());
    let mut object = first.objects[&key].clone();
    object["metadata"]["labels"].as_object_mut().unwrap().remove(keys::LABEL_AGENT_BUILD);
    let mut bench = Bench::new(build());
    bench.objects.insert(key.clone(), object);
    bench.hidden.insert(key);
    bench.settle();
    bench.succeed("a");
    bench.pass(180);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Succeeded".into(), 1), "{}", bench.message());
}

/// What Tekton makes for a run that has lost its label has none either.
#[test]
fn task_runs_that_no_watch_shows_are_read_when_their_run_has_ended() {
    let mut bench = running();
    bench.succeed("a");
    let push = format!("{}-push", bench.run());
    bench.hide(Kind::TaskRun, &push);
    bench.pass(10);
    assert_eq!((bench.phase(), bench.status()["imageDigest"].clone()), ("Succeeded".into(), json!(digest("a"))));
}

/// Whoever may make TaskRuns may give one every label, and our run for its owner.
#[test]
fn what_a_task_told_is_told_by_the_task_run_that_tekton_made_for_it() {
    let results = json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1"}, {"name": "IMAGE_DIGEST", "value": digest("f")}]);
    for forged in [true, false] {
        let mut bench = running();
        bench.succeed("a");
        let run = bench.run();
        let (name, late) = (format!("{run}-clone"), "2026-05-01T00:09:00Z");
        let mut other = bench.objects[&(Kind::TaskRun, name)].clone();
        other["metadata"]["labels"]["tekton.dev/pipelineTask"] = json!("push");
        other["metadata"]["creationTimestamp"] = json!(late);
        other["status"]["results"] = results.clone();
        if forged {
            json_patch::merge(&mut other, &json!({"metadata": {"name": "forged", "uid": "forged"}}));
        }
        bench.put(Kind::TaskRun, other);
        bench.settle();
        assert_eq!((bench.phase(), bench.status()["imageDigest"].clone()), ("Succeeded".into(), json!(digest("a"))));
    }
}

/// Tekton lists a TaskRun that has the labels and names the run as its first owner, whoever made it, and makes none of its own where that one was
/// there first.
#[test]
fn what_tekton_took_up_from_somebody_else_tells_nothing() {
    let results = json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1"}, {"name": "IMAGE_DIGEST", "value": digest("f")}]);
    for instead in [false, true] {
        let mut bench = running();
        bench.succeed("a");
        let run = bench.run();
        let push = format!("{run}-push");
        let mut other = bench.objects[&(Kind::TaskRun, push.clone())].clone();
        let forged = json!({"name": "forged", "uid": "forged", "creationTimestamp": "2026-05-01T00:09:00Z"});
        json_patch::merge(&mut other, &json!({"metadata": forged, "status": {"results": results}}));
        bench.put(Kind::TaskRun, other);
        bench.edit(Kind::PipelineRun, &run, |run| {
            let children = run["status"]["childReferences"].as_array_mut().unwrap();
            children.retain(|child| !instead || child["name"] != *push);
            children.push(json!({"kind": "TaskRun", "name": "forged", "pipelineTaskName": "push"}));
        });
        if instead {
            bench.lose(Kind::TaskRun, &push);
        }
        bench.settle();
        let (digest_told, reason) = (bench.status()["imageDigest"].clone(), bench.condition("Ready").1);
        if instead {
            assert_eq!((digest_told, reason.as_str()), (json!(null), "GateSkipped"));
            assert!(bench.message().contains("task push was run by TaskRun forged"), "{}", bench.message());
        } else {
            assert_eq!((bench.phase(), digest_told), ("Succeeded".into(), json!(digest("a"))));
        }
    }
}

/// The name that Tekton shortens ends in a digest.
#[test]
fn of_a_task_with_a_long_name_only_what_is_listed_alone_counts() {
    let long = "p".repeat(50);
    let results = json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1"}, {"name": "IMAGE_DIGEST", "value": digest("a")}]);
    for (alone, phase) in [(true, "Succeeded"), (false, "Failed")] {
        let mut object = build();
        object["spec"]["pipeline"]["steps"][1]["name"] = json!(long);
        let mut bench = Bench::new(object);
        bench.settle();
        bench.task("clone", true, json!([]), json!({}));
        bench.task(&long, true, results.clone(), json!({}));
        let run = bench.run();
        if !alone {
            bench.edit(Kind::PipelineRun, &run, |run| {
                let other = json!({"kind": "TaskRun", "name": "other", "pipelineTaskName": long});
                run["status"]["childReferences"].as_array_mut().unwrap().push(other);
            });
        }
        bench.run_is("True", "Succeeded", "Tasks Completed: 2");
        bench.settle();
        assert_eq!(bench.phase(), phase, "{}", bench.message());
    }
}

/// A definition of somebody else's may have no subresource `status`: what is claimed there is claimed nowhere.
#[test]
fn a_build_whose_status_is_not_kept_makes_no_run_and_people_are_told() {
    let mut bench = Bench::new(build());
    bench.keeps = false;
    bench.pass(3600);
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.told(Reason::PrerequisitesMissing)), (0, 1));
    let (_, message) = &bench.events[0];
    assert!(message.contains("agentbuilds.agent.kagenti.dev has no subresource status"), "{message}");
    let tried = bench.done.iter().filter(|op| matches!(op, Op::Status { .. })).count();
    assert!((2..=14).contains(&tried), "{tried}");
    bench.keeps = true;
    bench.pass(301);
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 1));
}
