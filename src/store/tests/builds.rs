//! Agents, AgentBuilds and Tekton's runs.

use serde_json::{Value, json};

use super::*;
use crate::store::kinds::tekton::{ResultSeen, TaskSeen};

fn kept_of(kind: Kind, object: &Value) -> What {
    kept(kind, object).unwrap()
}

fn owner_of(kind: &str, uid: &str) -> Value {
    json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": kind, "name": "x", "uid": uid, "controller": true}])
}

#[test]
fn a_custom_resource_is_kept_whole_but_for_what_others_left_on_it() {
    let object = json!({
        "apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent",
        "metadata": {"name": "a", "namespace": "team", "uid": "u", "resourceVersion": "7", "generation": 3,
            "creationTimestamp": "2026-05-01T00:00:00Z", "finalizers": ["theirs", "agent.kagenti.dev/finalizer"],
            "labels": {"x": "y"}, "managedFields": [{"manager": "m"}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "z": "1"}},
        "spec": {"replicas": 0, "imageSource": {"buildRef": {"name": "b"}}, "nobody": {"knows": [null, false]}},
        "status": {"phase": "Ready"},
    });
    let change = change(Kind::Agent, &object);
    assert_eq!((&*change.key.name, change.version), ("a", 7));
    let What::Agent(seen) = &change.now.as_ref().unwrap().what else { panic!() };
    assert_eq!((&*seen.spec, &*seen.status), (&object["spec"], &object["status"]), "false, 0 and null stay apart");
    assert_eq!((seen.generation, seen.deleting, seen.has_finalizer(), seen.build_ref()), (3, false, true, Some("b")));
    assert_eq!((seen.annotations.len(), seen.labels.len()), (1, 1));
    assert_eq!(seen.object("team", "a", "u")["spec"], object["spec"]);
    let bare = kept_of(Kind::AgentBuild, &json!({"metadata": {"name": "b"}, "spec": null}));
    let What::AgentBuild(bare) = bare else { panic!() };
    assert_eq!((&*bare.spec, &*bare.status, bare.has_finalizer()), (&json!({}), &json!({}), false));
}

/// Records are as text what they were, and everything else of a status is where it was.
#[test]
fn records_of_a_build_are_kept_as_text_beside_the_rest_of_its_status() {
    let made = json!({"digest": "sha256:1", "steps": [{"name": "a \"quoted\" é"}]});
    let object = json!({
        "metadata": {"name": "b", "namespace": "team", "uid": "u"}, "spec": {"x": 1},
        "status": {"phase": "Succeeded", "provenance": made, "earlier": [1, null], "inputs": null},
    });
    for kind in [Kind::AgentBuild, Kind::BeeaiBuild, Kind::BeeaiCompatBuild] {
        let kept = kept_of(kind, &object);
        let seen = kept.custom().unwrap();
        assert_eq!(*seen.status, json!({"phase": "Succeeded"}), "{kind:?}");
        let record = |member: &str| seen.record(member).map(Kept::value);
        assert_eq!((record("provenance"), record("earlier")), (Some(made.clone()), Some(json!([1, null]))), "{kind:?}");
        assert_eq!((record("inputs"), record("phase")), (Some(Value::Null), None), "{kind:?}");
        let slim = seen.slim(Over::Total);
        assert!(slim.records.is_empty(), "{kind:?}: what is over a bound is counted nowhere");
        assert_eq!(slim.status, seen.status, "{kind:?}: and keeps what is small of its status");
    }
    let kept = kept_of(Kind::Agent, &object);
    let seen = kept.custom().unwrap();
    assert_eq!((&*seen.status, seen.records.len()), (&object["status"], 0), "of other kinds nothing is a record");
}

#[test]
fn of_a_run_is_kept_what_tells_how_it_went() {
    let tells = json!({"results": [{"name": "IMAGE_URL"}], "steps": [{"script": "x".repeat(90_000)}]});
    let object = json!({
        "metadata": {"name": "r", "namespace": "team", "uid": "ru", "ownerReferences": owner_of("AgentBuild", "bu"),
            "annotations": {"agent.kagenti.dev/build-hash": "abc", "agent.kagenti.dev/attempt": "2", "agent.kagenti.dev/recipe": "r"}},
        "spec": {
            "status": "Cancelled", "params": [{"name": "list", "value": ["a"]}, {"name": "image", "value": "reg/x:1"}],
            "pipelineSpec": {"tasks": [{"name": "clone", "taskSpec": {}}, {"name": "push", "when": [{}], "taskSpec": tells}]},
        },
        "status": {
            "startTime": "s", "completionTime": "c",
            "conditions": [{"type": "Other", "status": "True"},
                {"type": "Succeeded", "status": "False", "reason": "Failed", "message": "no"}],
            "results": [{"name": "IMAGE_DIGEST", "value": "sha256:1\n"}, {"name": "secret", "value": "never kept"}],
            "skippedTasks": [{"name": "push", "reason": "When Expressions evaluated to false"}],
            "childReferences": [{"kind": "TaskRun", "name": "r-clone", "pipelineTaskName": "clone"}],
        },
    });
    let What::PipelineRun(seen) = kept_of(Kind::PipelineRun, &object) else { panic!() };
    assert_eq!((seen.build_hash.as_deref(), seen.attempt, seen.is_done()), (Some("abc"), Some(2), true));
    assert_eq!(seen.recipe.as_deref(), Some("r"));
    assert_eq!((seen.spec_status.as_deref(), seen.image_parameter.as_deref()), (Some("Cancelled"), Some("reg/x:1")));
    let task = |name: &str, is: bool| TaskSeen { name: name.into(), guarded: is, tells_image: is };
    assert_eq!(*seen.tasks, [task("clone", false), task("push", true)]);
    assert_eq!(*seen.results, [ResultSeen { name: "IMAGE_DIGEST".into(), value: "sha256:1".into() }]);
    assert_eq!((seen.skipped.len(), &*seen.children[0].name), (1, "r-clone"));
    assert_eq!(seen.succeeded.as_ref().map(|one| (&*one.status, &*one.reason)), Some(("False", "Failed")));
    assert!(!format!("{seen:?}").contains("never kept"));
}

#[test]
fn of_a_task_run_is_kept_which_step_failed_and_no_text_of_it() {
    let object = json!({
        "metadata": {"name": "r-b", "namespace": "team", "uid": "tu", "labels": {"tekton.dev/pipelineTask": "b"}},
        "status": {"podName": "r-b-pod", "steps": [
            {"name": "ok", "terminated": {"exitCode": 0, "reason": "Completed"}, "imageID": "docker-pullable://git@sha256:1"},
            {"name": "build", "terminated": {"exitCode": 2, "reason": "Error", "message": "canary"}, "imageID": {"a": 1}},
            {"name": "local", "imageID": "canary"}, {"name": "long", "imageID": format!("canary@sha256:{}", "0".repeat(600))},
            {"name": "late", "waiting": {"reason": "ImagePullBackOff", "message": "canary"}},
        ]},
    });
    let What::TaskRun(seen) = kept_of(Kind::TaskRun, &object) else { panic!() };
    assert_eq!(
        seen.images.iter().map(|image| &**image).collect::<Vec<_>>(),
        ["git@sha256:1"],
        "only what names one by digest"
    );
    let failed = seen.failed_step.as_ref().unwrap();
    assert_eq!((&*failed.name, failed.exit_code, &*failed.reason), ("build", 2, "Error"));
    assert_eq!(seen.waiting_step.as_ref().map(|step| &*step.reason), Some("ImagePullBackOff"));
    assert!(!format!("{seen:?}").contains("canary"));
}

/// `onError: continue`: Tekton keeps the code of the step and goes on; what comes after the failing step is skipped.
#[test]
fn a_step_whose_failure_is_passed_over_is_not_the_one_that_failed() {
    let step = |name: &str, code: u32, reason: &str| json!({"name": name, "terminated": {"exitCode": code, "reason": "Error"}, "terminationReason": reason});
    let of = |steps: Value| {
        let object = json!({"metadata": {"name": "r-b", "namespace": "team", "uid": "tu"}, "status": {"steps": steps}});
        let What::TaskRun(seen) = kept_of(Kind::TaskRun, &object) else { panic!() };
        seen.failed_step.as_ref().map(|step| (step.name.to_string(), step.exit_code))
    };
    let lint = step("lint", 3, "Continued");
    let failed = of(json!([lint, step("build", 7, "Error"), step("push", 1, "Skipped")]));
    assert_eq!(failed, Some(("build".to_owned(), 7)));
    assert_eq!(of(json!([lint, step("more", 0, "Completed")])), None);
    // A Tekton that does not tell the difference.
    assert_eq!(of(json!([{"name": "old", "terminated": {"exitCode": 2}}])), Some(("old".to_owned(), 2)));
}

/// Tekton is other people's: a member of another shape must not end the watch.
#[test]
fn what_tekton_writes_in_another_shape_counts_as_absent() {
    let object = json!({
        "metadata": {"name": "r"},
        "spec": {"status": {"a": 1}, "params": {"not": "a list"}, "pipelineSpec": [1], "new": {}},
        "status": {"startTime": 5, "conditions": "none", "results": [{"name": "IMAGE_URL", "value": {"k": "v"}}],
            "skippedTasks": null, "childReferences": [1], "steps": [null]},
    });
    let What::PipelineRun(seen) = kept_of(Kind::PipelineRun, &object) else { panic!() };
    assert_eq!(*seen, PipelineRunSeen::default());
    assert!(matches!(kept_of(Kind::TaskRun, &object), What::TaskRun(_)));
    assert!(matches!(kept_of(Kind::PipelineRun, &json!({"metadata": {}})), What::PipelineRun(_)));
    for none in
        [json!(null), json!(true), json!(65536), json!(-1), json!(0.5), json!("text"), json!([{"startTime": "t"}])]
    {
        let object = json!({"metadata": {"name": "r"}, "spec": none, "status": none});
        let What::PipelineRun(seen) = kept_of(Kind::PipelineRun, &object) else { panic!() };
        assert_eq!(*seen, PipelineRunSeen::default(), "{none}");
        assert!(matches!(kept_of(Kind::TaskRun, &object), What::TaskRun(_)));
    }
}

#[test]
fn whose_a_service_an_account_a_claim_and_a_pod_are() {
    let metadata = |kind: &str| {
        json!({"name": "x", "namespace": "team", "ownerReferences": owner_of(kind, "u"),
            "labels": {"app.kubernetes.io/managed-by": "drawbridge", "agent.kagenti.dev/build-account": "true"},
            "annotations": {"kagenti.io/content-digest": "d"}})
    };
    let spec = json!({"clusterIP": "10.0.0.1", "ports": [{"port": 1}], "type": "ClusterIP"});
    let of_agent = kept_of(Kind::Service, &json!({"metadata": metadata("Agent"), "spec": spec}));
    let What::Service(service) = &of_agent else { panic!() };
    assert!(service.claim.is_controlled_by("u") && !service.claim.is_controlled_by("v"));
    assert_eq!(
        (service.claim.managed_by.as_deref(), service.claim.applied.as_deref()),
        (Some("drawbridge"), Some("d"))
    );
    assert_eq!(of_agent.controller().map(|owner| &*owner.uid), Some("u"));
    let foreign = kept_of(Kind::Service, &json!({"metadata": {"name": "x"}, "spec": spec}));
    assert!(matches!(&foreign, What::Service(seen) if seen.claim == ClaimSeen::default()));
    let account = kept_of(Kind::ServiceAccount, &json!({"metadata": metadata("Agent")}));
    assert!(matches!(&account, What::ServiceAccount(seen) if seen.for_builds && !seen.ours));
    assert!(account.controller().is_some());
    assert!(kept_of(Kind::PersistentVolumeClaim, &json!({"metadata": metadata("AgentBuild")})).controller().is_some());
}

#[test]
fn a_pod_of_a_build_is_one_unless_injection_is_about_it() {
    let pod = |labels: Value| json!({"metadata": {"name": "p", "labels": labels}, "status": {"phase": "Running"}});
    let (run, build) = ("tekton.dev/pipelineRun", "agent.kagenti.dev/agentbuild");
    let Some(What::BuildPod(seen)) = kept(Kind::Pod, &pod(json!({run: "r", build: "b"}))) else { panic!() };
    assert_eq!((&*seen.run, seen.phase, seen.terminating), ("r", PodPhase::Running, false));
    let both = kept(Kind::Pod, &pod(json!({run: "r", build: "b", "kagenti.io/type": "agent"})));
    assert!(matches!(both, Some(What::Pod(_))));
    assert_eq!(kept(Kind::Pod, &pod(json!({build: "b"}))), None);
}
