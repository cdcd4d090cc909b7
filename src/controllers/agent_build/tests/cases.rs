//! Cases of 19.4 about a run and its judgement.

use serde_json::{Value, json};

use super::bench::{Bench, NAME, TEAM, build, digest};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::store::Kind;

fn running() -> Bench {
    let mut bench = Bench::new(build());
    bench.settle();
    bench
}

fn succeeded() -> Bench {
    let mut bench = running();
    bench.succeed("a");
    bench.settle();
    bench
}

#[test]
fn case_d01_pending_building_succeeded_with_one_run_and_two_events() {
    let mut bench = Bench::new(build());
    bench.step(usize::MAX);
    assert_eq!((bench.phase(), bench.message()), ("Pending".into(), "Build pending".into()));
    assert_eq!(bench.build()["metadata"]["finalizers"], json!(["agent.kagenti.dev/finalizer"]));
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.condition("BuildSucceeded")),
        ("Building".into(), ("Unknown".into(), "BuildInProgress".into()))
    );
    assert_eq!(bench.condition("Reconciling").0, "True");
    bench.run_is("Unknown", "Running", "Tasks Completed: 0");
    bench.settle();
    assert_eq!(bench.message(), "Tasks Completed: 0");
    bench.succeed("a");
    bench.settle();
    let status = bench.status();
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Succeeded".into(), 1));
    assert_eq!(status["builtImage"], json!(format!("reg.io:5000/weather@{}", digest("a"))));
    assert_eq!(
        (&status["builtImageTag"], &status["imageDigest"]),
        (&json!("reg.io:5000/weather:v1"), &json!(digest("a")))
    );
    assert_eq!(
        (&status["sourceCommit"], &status["attempts"], &status["observedGeneration"]),
        (&json!("0123abc4"), &json!(1), &json!(1))
    );
    assert_eq!(status["completionTime"], "2026-05-01T00:10:00Z");
    assert_eq!((bench.told(Reason::BuildStarted), bench.told(Reason::BuildSucceeded)), (1, 1));
    assert_eq!(
        (bench.condition("Ready"), bench.condition("Reconciling").0),
        (("True".into(), "BuildReady".into()), String::new())
    );
    let tasks: Vec<_> =
        status["tasks"].as_array().unwrap().iter().map(|one| (one["name"].clone(), one["state"].clone())).collect();
    assert_eq!(tasks, [(json!("clone"), json!("Succeeded")), (json!("push"), json!("Succeeded"))]);
    assert_eq!(bench.pass(3600), 0, "steady state writes nothing");
}

/// D-2 and D-32, and the law behind them: see `laws`.
#[test]
fn case_d02_the_run_that_the_status_names_is_created() {
    let mut bench = Bench::new(build());
    bench.step(usize::MAX);
    let (plan, _) = bench.step(3);
    assert!(matches!(plan.ops[3], Op::Ensure { kind: Kind::PipelineRun, .. }), "{:?}", plan.ops);
    let named = bench.status()["pipelineRunName"].clone();
    assert!(bench.names(Kind::PipelineRun).is_empty());
    bench.restart();
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun), [named.as_str().unwrap()]);
}

#[test]
fn case_d03_a_run_that_is_there_already_and_is_ours_counts_as_created() {
    let first = running();
    let run = first.run();
    // The cache is stale: neither the run nor the status that names it is known.
    let mut bench = Bench::new(build());
    let object = first.objects[&(Kind::PipelineRun, run.clone())].clone();
    bench.objects.insert((Kind::PipelineRun, run.clone()), object);
    bench.settle();
    assert_eq!((bench.names(Kind::PipelineRun), bench.status()["attempts"].clone()), (vec![run.clone()], json!(1)));
    assert_eq!((bench.run(), bench.told(Reason::BuildStarted)), (run, 1));
}

#[test]
fn case_d04_a_foreign_run_of_the_name_is_left_alone_and_the_next_attempt_taken() {
    let bench = running();
    let taken = bench.run();
    let mut foreign = bench.objects[&(Kind::PipelineRun, taken.clone())].clone();
    foreign["metadata"]["ownerReferences"] = json!([]);
    foreign["metadata"]["labels"] = json!({});
    let mut bench = Bench::new(build());
    bench.objects.insert((Kind::PipelineRun, taken.clone()), foreign.clone());
    bench.settle();
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.status()["attempts"].clone()), (2, json!(2)));
    assert_ne!(bench.status()["pipelineRunName"], json!(taken));
    assert_eq!(bench.objects[&(Kind::PipelineRun, taken)], foreign);
}

#[test]
fn case_d09_d10_d11_the_image_is_by_digest_where_one_is_told() {
    let mut bench = running();
    bench.task("clone", true, json!([]), json!({}));
    let results = json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1"}, {"name": "IMAGE_DIGEST", "value": "sha256:short"}]);
    bench.task("push", true, results, json!({}));
    bench.run_is("True", "Succeeded", "");
    bench.settle();
    assert_eq!(
        (bench.status()["builtImage"].clone(), bench.status()["imageDigest"].clone()),
        (json!("reg.io:5000/weather:v1"), Value::Null)
    );
    assert_eq!(bench.told(Reason::NoDigest), 1);

    // D-11: what is no digest says nothing, so it does not vouch for the parameter either.
    let mut bench = running();
    bench.task("clone", true, json!([]), json!({}));
    bench.task("push", true, json!([{"name": "IMAGE_DIGEST", "value": "sha256:short"}]), json!({}));
    bench.run_is("True", "Succeeded", "");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "NoImage".into()));

    // D-10: no task tells an image; the parameter of the run counts.
    let mut custom = build();
    custom["spec"]["pipeline"]["steps"] = json!([{"name": "clone", "configMap": "silent"}]);
    let mut bench = Bench::new(custom);
    bench.settle();
    bench.task("clone", true, json!([]), json!({}));
    bench.run_is("True", "Succeeded", "");
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.status()["builtImage"].clone(), bench.told(Reason::NoDigest)),
        ("Succeeded".into(), json!("reg.io:5000/weather:v1"), 1)
    );
}

/// With a task that declares the result, only its word counts; the parameter does not.
#[test]
fn no_image_without_a_task_that_succeeded_and_told_it() {
    let mut bench = running();
    bench.task("clone", true, json!([]), json!({}));
    bench.task("push", true, json!([]), json!({}));
    bench.run_is("True", "Succeeded", "");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "NoImage".into()));
    assert!(bench.message().contains("push should have written IMAGE_URL"), "{}", bench.message());
    assert_eq!(bench.status()["builtImage"], Value::Null);

    // Both builders skipped by their own conditions: the run is green, and nobody built anything.
    let mut guarded = build();
    guarded["spec"]["pipeline"]["steps"][1]["whenExpressions"] =
        json!([{"input": "a", "operator": "in", "values": ["b"]}]);
    let mut bench = Bench::new(guarded);
    bench.settle();
    bench.task("clone", true, json!([]), json!({}));
    let run = bench.run();
    bench.edit(Kind::PipelineRun, &run, |run| {
        run["status"]["skippedTasks"] = json!([{"name": "push", "reason": "When Expressions evaluated to false"}]);
    });
    bench.run_is("True", "Completed", "");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "NoImage".into()));
    assert_eq!(bench.status()["tasks"][1]["state"], "Skipped");
}

#[test]
fn case_d12_an_image_outside_the_repository_is_not_taken() {
    let mut bench = running();
    bench.task("clone", true, json!([]), json!({}));
    bench.task("push", true, json!([{"name": "IMAGE_URL", "value": "evil.io/weather:v1"}]), json!({}));
    bench.run_is("True", "Succeeded", "");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "UnexpectedImage".into()));
}

#[test]
fn case_d13_a_green_run_with_a_vanished_gate_fails() {
    for (reason, guarded) in [
        ("Results were missing", true),
        ("Parent Tasks were skipped", true),
        ("When Expressions evaluated to false", false),
    ] {
        let mut object = build();
        object["spec"]["pipeline"]["steps"][0]["name"] = json!("push");
        object["spec"]["pipeline"]["steps"][0]["configMap"] = json!("tells");
        object["spec"]["pipeline"]["steps"][1] = json!({"name": "scan", "configMap": "silent"});
        if guarded {
            object["spec"]["pipeline"]["steps"][1]["whenExpressions"] =
                json!([{"input": "a", "operator": "in", "values": ["b"]}]);
        }
        let mut bench = Bench::new(object);
        bench.settle();
        bench.task("push", true, json!([{"name": "IMAGE_URL", "value": "reg.io:5000/weather:v1"}]), json!({}));
        let run = bench.run();
        bench.edit(Kind::PipelineRun, &run, |run| {
            run["status"]["skippedTasks"] = json!([{"name": "scan", "reason": reason}])
        });
        bench.run_is("True", "Completed", "");
        bench.settle();
        assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "GateSkipped".into()), "{reason}");
        assert!(bench.message().contains("task scan"), "{}", bench.message());
    }
}

#[test]
fn case_d14_d15_a_failure_names_task_step_and_code_once_and_stays() {
    let mut bench = running();
    bench.task("clone", true, json!([]), json!({}));
    let steps = json!({"status": {"steps": [{"name": "build", "terminated": {"exitCode": 2, "reason": "Error", "message": "canary"}}]}});
    bench.task("push", false, json!([]), steps);
    bench.run_is("False", "Failed", "Tasks Completed: 2 (Failed: 1)");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "StepFailed".into()));
    let message = bench.message();
    assert!(message.starts_with("Build failed: task push, step build: exit 2"), "{message}");
    assert!(message.contains(&format!("kubectl -n {TEAM} logs {}-push-pod -c step-build", bench.run())), "{message}");
    assert!(!bench.status().to_string().contains("canary"));
    assert_eq!((bench.told(Reason::BuildFailed), bench.condition("Stalled").0), (1, "True".into()));
    // D-15, ten minutes on a driven clock.
    assert_eq!((bench.pass(600), bench.names(Kind::PipelineRun).len(), bench.told(Reason::BuildFailed)), (0, 1, 1));
    bench.restart();
    assert_eq!(bench.pass(600), 0);
}

#[test]
fn case_d16_d18_a_change_builds_again_and_the_old_image_stays_until_then() {
    for change in
        [(|build: &mut Value| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0")) as fn(&mut Value), |build| {
            build["metadata"]["annotations"] = json!({"agent.kagenti.dev/rebuild": "1"})
        }]
    {
        let mut bench = succeeded();
        let first = bench.run();
        let image = bench.status()["builtImage"].clone();
        bench.user(change);
        bench.settle();
        assert_ne!(bench.run(), first);
        assert_eq!(
            (bench.phase(), bench.status()["builtImage"].clone(), bench.status()["observedGeneration"].clone()),
            ("Building".into(), image, json!(2))
        );
        bench.succeed("b");
        bench.settle();
        assert_eq!(bench.status()["imageDigest"], json!(digest("b")));
        assert_eq!((bench.told(Reason::BuildStarted), bench.told(Reason::BuildSucceeded)), (2, 2));
        // D-18 also for one that failed.
        bench.user(|build| build["metadata"]["annotations"] = json!({"agent.kagenti.dev/rebuild": "2"}));
        bench.settle();
        bench.run_is("False", "Failed", "");
        bench.settle();
        bench.user(|build| build["metadata"]["annotations"] = json!({"agent.kagenti.dev/rebuild": "3"}));
        bench.settle();
        assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Building".into(), 4));
    }
}

#[test]
fn case_d17_what_is_no_input_starts_no_build() {
    let mut bench = succeeded();
    bench.user(|build| build["spec"]["labels"] = json!({"team": "x"}));
    bench.settle();
    bench.user(|build| build["spec"]["cleanupAfterBuild"] = json!(false));
    bench.settle();
    assert_eq!((bench.phase(), bench.names(Kind::PipelineRun).len()), ("Succeeded".into(), 1));
    assert_eq!(bench.status()["observedGeneration"], json!(3), "what was seen is noted");
    assert_eq!(bench.pass(600), 0);
}

#[test]
fn case_d19_a_change_while_building_cancels_first_and_never_runs_two() {
    let mut bench = running();
    let first = bench.run();
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun), std::slice::from_ref(&first));
    assert_eq!(bench.objects[&(Kind::PipelineRun, first.clone())]["spec"]["status"], "Cancelled");
    assert_eq!((bench.phase(), bench.pass(120)), ("Building".into(), 0), "it waits for the end");
    bench.run_is("False", "Cancelled", "");
    bench.settle();
    assert_eq!(bench.names(Kind::PipelineRun).len(), 2);
    assert_ne!(bench.run(), first);
}

/// D-20 as corrected: any string, acts when it differs from what was handled, never removed.
#[test]
fn case_d20_cancel_acts_once_per_value_and_stays_where_the_user_put_it() {
    let cancel = |value: &'static str| {
        move |build: &mut Value| build["metadata"]["annotations"]["agent.kagenti.dev/cancel"] = json!(value)
    };
    let mut bench = running();
    bench.user(cancel("please"));
    bench.settle();
    let run = bench.run();
    assert_eq!(bench.objects[&(Kind::PipelineRun, run)]["spec"]["status"], "Cancelled");
    assert_eq!(bench.phase(), "Building");
    bench.run_is("False", "Cancelled", "PipelineRun was cancelled");
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "Cancelled".into()));
    assert_eq!((bench.status()["handledCancel"].clone(), bench.told(Reason::BuildCancelled)), (json!("please"), 1));
    assert_eq!(bench.build()["metadata"]["annotations"]["agent.kagenti.dev/cancel"], "please");
    // Left in a manifest it does not touch the next build; another value does.
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    let run = bench.run();
    assert_eq!(bench.objects[&(Kind::PipelineRun, run.clone())]["spec"]["status"], Value::Null);
    bench.user(cancel("again"));
    bench.settle();
    assert_eq!(bench.objects[&(Kind::PipelineRun, run)]["spec"]["status"], "Cancelled");
    // There from the beginning: nothing to cancel yet.
    let mut object = build();
    cancel("old")(&mut object);
    let mut bench = Bench::new(object);
    bench.settle();
    assert_eq!(bench.phase(), "Building");
    // In a build that is judged it is noted, and not kept for the next one.
    bench.succeed("a");
    bench.settle();
    bench.user(cancel("late"));
    bench.settle();
    assert_eq!((bench.phase(), bench.status()["handledCancel"].clone()), ("Succeeded".into(), json!("late")));
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    assert_eq!(bench.phase(), "Building");
}

/// D-19 and D-20 at once: who cancels a build and then corrects it wants the correction built.
#[test]
fn a_change_after_a_cancellation_is_built() {
    let cancel = |value: &'static str| {
        move |build: &mut Value| build["metadata"]["annotations"]["agent.kagenti.dev/cancel"] = json!(value)
    };
    let correct = |build: &mut Value| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0");
    for seen in [true, false] {
        let mut bench = running();
        let first = bench.run();
        bench.user(cancel("please"));
        if seen {
            bench.settle();
        }
        bench.user(correct);
        bench.settle();
        bench.edit(Kind::PipelineRun, &first, |run| {
            run["status"]["conditions"] = json!([{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]);
            run["status"]["completionTime"] = json!("2026-05-01T00:02:00Z");
        });
        bench.settle();
        assert_eq!(
            (bench.phase(), bench.names(Kind::PipelineRun).len()),
            ("Building".into(), 2),
            "{}",
            bench.message()
        );
    }
    // A wish that comes while the corrected build waits means that one.
    let mut bench = running();
    let first = bench.run();
    bench.user(correct);
    bench.settle();
    bench.user(cancel("that one, too"));
    bench.settle();
    bench.edit(Kind::PipelineRun, &first, |run| {
        run["status"]["conditions"] = json!([{"type": "Succeeded", "status": "False", "reason": "Cancelled"}]);
        run["status"]["completionTime"] = json!("2026-05-01T00:02:00Z");
    });
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "Cancelled".into()));
}

#[test]
fn case_d21_a_run_that_is_taken_away_is_made_again_twice() {
    let mut bench = running();
    let mut seen = Vec::new();
    for attempt in 1..=3 {
        assert_eq!((bench.phase(), bench.status()["attempts"].clone()), ("Building".into(), json!(attempt)));
        let run = bench.run();
        bench.lose(Kind::PipelineRun, &run);
        seen.push(run);
        bench.settle();
        bench.now += s(20);
        bench.settle();
        assert!(bench.names(Kind::PipelineRun).is_empty(), "it may come back");
        assert_eq!(bench.condition("PipelineRunExists").1, "PipelineRunNotFound");
        bench.now += s(11);
        bench.settle();
    }
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "PipelineRunNotFound".into()));
    seen.dedup();
    assert_eq!((seen.len(), bench.pass(600)), (3, 0));
}

#[test]
fn case_d32_d33_a_restart_picks_the_result_up_and_a_timeout_is_named() {
    let mut bench = running();
    bench.restart();
    assert_eq!(bench.pass(60), 0);
    bench.task("clone", true, json!([]), json!({}));
    let timeout = json!({"status": {"conditions": [{"type": "Succeeded", "status": "False", "reason": "TaskRunTimeout", "message": "too long"}]}});
    bench.task("push", false, json!([]), timeout);
    bench.run_is("False", "PipelineRunTimeout", "PipelineRun failed to finish within \"20m0s\"");
    bench.restart();
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.condition("Ready").1, bench.names(Kind::PipelineRun).len()),
        ("Failed".into(), "BuildTimedOut".into(), 1)
    );
    assert!(bench.message().contains("PipelineRunTimeout") && bench.message().contains("20m0s"), "{}", bench.message());
}

#[test]
fn an_end_without_a_verdict_is_given_a_minute() {
    let mut bench = running();
    let run = bench.run();
    bench.edit(Kind::PipelineRun, &run, |run| {
        run["status"] = json!({"completionTime": "c", "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "Running"}]});
    });
    bench.pass(50);
    assert_eq!(bench.phase(), "Building");
    bench.pass(20);
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "RunEndedUnknown".into()));
}

/// The two watches are not in step: a run that has ended may be known before its TaskRuns are.
#[test]
fn the_judgement_waits_for_the_task_runs_of_a_run_that_has_ended() {
    let mut bench = running();
    bench.succeed("a");
    let late = format!("{}-push", bench.run());
    let object = bench.objects[&(Kind::TaskRun, late.clone())].clone();
    bench.lose(Kind::TaskRun, &late);
    bench.pass(5);
    assert_eq!(bench.phase(), "Building");
    bench.put(Kind::TaskRun, object);
    bench.settle();
    assert_eq!(bench.phase(), "Succeeded");
}

#[test]
fn classes_of_failure() {
    let step = |reason: &str, code: i64| json!({"status": {"steps": [{"name": "x", "terminated": {"exitCode": code, "reason": reason}}]}});
    let of_task = |reason: &str| json!({"status": {"conditions": [{"type": "Succeeded", "status": "False", "reason": reason, "message": "m"}]}});
    for (more, run, class) in [
        (step("OOMKilled", 137), "Failed", "StepOutOfMemory"),
        (step("Error", 1), "Failed", "StepFailed"),
        (of_task("TaskRunImagePullFailed"), "Failed", "StepImagePullFailed"),
        (of_task("PodCreationFailed"), "Failed", "TaskPodFailed"),
        (of_task("TaskRunValidationFailed"), "Failed", "RunInvalid"),
        (of_task("SomethingNew"), "Failed", "BuildFailed"),
        (of_task("TaskRunTimeout"), "PipelineRunTimeout", "BuildTimedOut"),
        (of_task("TaskRunCancelled"), "CreateRunFailed", "TaskPodFailed"),
        (of_task("TaskRunCancelled"), "InvalidTaskResultReference", "RunInvalid"),
    ] {
        let mut bench = running();
        bench.task("push", false, json!([]), more);
        bench.run_is("False", run, "of the run");
        bench.settle();
        assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), class.into()), "{run}");
        assert!(bench.condition("BuildSucceeded") == ("False".into(), "BuildFailed".into()));
    }
}

#[test]
fn a_spec_that_goes_back_to_what_was_built_gets_its_result_back() {
    let mut bench = succeeded();
    let image = bench.status()["builtImage"].clone();
    bench.user(|build| build["spec"]["pipeline"]["steps"][0]["configMap"] = json!("nowhere"));
    bench.settle();
    assert_eq!((bench.phase(), bench.condition("Ready").1), ("Failed".into(), "PrerequisitesMissing".into()));
    bench.user(|build| build["spec"]["pipeline"]["steps"][0]["configMap"] = json!("silent"));
    bench.settle();
    assert_eq!(
        (bench.phase(), bench.status()["builtImage"].clone(), bench.names(Kind::PipelineRun).len()),
        ("Succeeded".into(), image, 1)
    );
    // There and back by way of another build: the same inputs are a new attempt.
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v2.0.0"));
    bench.settle();
    bench.succeed("b");
    bench.settle();
    bench.user(|build| build["spec"]["source"]["sourceRevision"] = json!("v1.0.0"));
    bench.settle();
    assert_eq!((bench.names(Kind::PipelineRun).len(), bench.status()["attempts"].clone()), (3, json!(2)));
    assert_eq!(bench.build()["metadata"]["name"], NAME);
}
