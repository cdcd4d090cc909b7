//! Where two rules meet: partitions and waves, failures from before and ours, Sandboxes and labels, targets that are swapped, made again or gone.

use serde_json::{Value, json};

use super::bench::{Bench, TEAM, WEB, deployment, enrolled, pod};
use super::rolling::{applied, fleet, roll_out};
use crate::controllers::enrolment::plan::{NAME, ROW};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

const DELETED: &str = "2026-05-02T00:00:00Z";

fn stateful(name: &str, replicas: i64, partition: i64) -> Value {
    json!({
        "metadata": {"name": name, "generation": 1},
        "spec": {"replicas": replicas, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}},
        "status": {"observedGeneration": 1, "replicas": replicas, "updatedReplicas": replicas, "availableReplicas": replicas},
    })
}

#[test]
fn what_a_partition_holds_is_no_rollout_and_uses_no_budget() {
    let mut bench = Bench::new();
    bench.remove(Kind::Deployment, "web");
    for n in 0..8 {
        let name = format!("s{n}");
        bench.put(Kind::StatefulSet, stateful(&name, 3, 2));
        bench.runtime(&name, (Kind::StatefulSet, &name), json!({}));
    }
    bench.converge();
    for n in 0..8 {
        let name = format!("s{n}");
        let generation = bench.object(Kind::StatefulSet, &name)["metadata"]["generation"].clone();
        bench.change(
            Kind::StatefulSet,
            &name,
            json!({"status": {"observedGeneration": generation, "updatedReplicas": 1}}),
        );
    }
    bench.converge();
    bench.cluster.configure("proxy: {uid: 2000}\n");
    let first = applied(&bench.converge());
    for name in &first {
        let generation = bench.object(Kind::StatefulSet, name)["metadata"]["generation"].clone();
        bench.change(
            Kind::StatefulSet,
            name,
            json!({"status": {"observedGeneration": generation, "updatedReplicas": 1}}),
        );
    }
    let second = applied(&bench.converge());
    assert_eq!(first.len() + second.len(), 8, "a partition does not hold the wave up");
    assert!(bench.condition("s0", "RolloutProgressing").starts_with("False"));
}

#[test]
fn a_deadline_from_before_the_rollout_halts_nothing() {
    let mut bench = fleet(12, "");
    // two that have been broken by their users all along
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    for name in ["d000", "d001"] {
        bench.change(Kind::Deployment, name, stuck.clone());
    }
    bench.converge();
    bench.cluster.configure("proxy: {uid: 2000}\n");
    bench.converge();
    assert_eq!(bench.cluster.memory.failed(), 0, "the deadline was that of the rollout before");
    assert_eq!(bench.condition("d011", "Ready"), "False/RolloutPending");
}

#[test]
fn a_deadline_from_before_the_enrolment_is_not_told_of_it() {
    let mut bench = Bench::new();
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    bench.change(Kind::Deployment, "web", stuck);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    assert!(!bench.told.iter().any(|told| told.reason == Reason::ProgressDeadlineExceeded));
}

#[test]
fn two_agent_runtimes_that_swap_their_targets_have_them_swapped() {
    let mut bench = Bench::new();
    bench.put(Kind::Deployment, deployment("other"));
    bench.runtime("a", WEB, json!({}));
    bench.runtime(
        "b",
        (Kind::Deployment, "other"),
        json!({"metadata": {"creationTimestamp": "2026-05-01T00:00:01Z"}, "spec": {"type": "tool"}}),
    );
    bench.converge();
    bench.change(
        Kind::AgentRuntime,
        "a",
        json!({"metadata": {"generation": 2}, "spec": {"targetRef": {"name": "other"}}}),
    );
    bench.converge();
    bench.change(
        Kind::AgentRuntime,
        "b",
        json!({"metadata": {"generation": 2}, "spec": {"targetRef": {"name": "web"}}}),
    );
    bench.converge();
    assert_eq!(bench.condition("a", "Ready"), "True/Configured");
    assert_eq!(bench.condition("b", "Ready"), "True/Configured");
    assert_eq!(
        bench.object(Kind::Deployment, "web")["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE],
        "tool"
    );
    assert_eq!(
        bench.object(Kind::Deployment, "other")["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE],
        "agent"
    );
    assert_eq!(bench.converge(), []);
    assert_eq!(bench.object(Kind::AgentRuntime, "a")["status"]["appliedTarget"]["name"], "other");
}

#[test]
fn a_target_made_again_under_its_name_is_another_one() {
    let mut bench = enrolled();
    let hash = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.put(Kind::ReplicaSet, json!({"metadata": {"name": "web-1", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployments-web", "controller": true}]},
        "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}}}}));
    bench.put(Kind::Pod, pod("web-1-a", (Kind::ReplicaSet, "web-1"), Some(&hash)));
    bench.converge();
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["configuredPods"], 1);
    bench.remove(Kind::Deployment, "web");
    let mut fresh = deployment("web");
    fresh["metadata"]["uid"] = json!("another");
    bench.put(Kind::Deployment, fresh);
    bench.converge();
    let status = bench.object(Kind::AgentRuntime, "art")["status"].clone();
    assert_eq!(status["appliedTarget"]["uid"], "another");
    assert!(status.get("configuredPods").is_none());
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
}

#[test]
fn pods_current_goes_with_the_target() {
    let mut bench = enrolled();
    bench.change(Kind::Deployment, "web", json!({"status": {"observedGeneration": 2}}));
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "True/PodsCurrent");
    bench.remove(Kind::Deployment, "web");
    bench.converge();
    assert_eq!(bench.condition("art", "PodsCurrent"), "", "there are no Pods");
}

#[test]
fn pods_current_goes_when_it_becomes_a_duplicate() {
    let mut bench = enrolled();
    bench.change(Kind::Deployment, "web", json!({"status": {"observedGeneration": 2}}));
    bench.converge();
    bench.runtime("older", WEB, json!({"metadata": {"creationTimestamp": "2026-04-01T00:00:00Z"}}));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/DuplicateTarget");
    assert_eq!(bench.condition("art", "PodsCurrent"), "");
}

#[test]
fn the_hash_taken_off_by_somebody_and_rolled_is_named_in_the_message() {
    let mut bench = enrolled();
    bench.change(Kind::Deployment, "web", json!({"status": {"observedGeneration": 2}}));
    bench.converge();
    let hash = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    // GitOps takes the annotation away: owned no more by us
    let mut web = bench.object(Kind::Deployment, "web").clone();
    web["spec"]["template"]["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::ANNOTATION_CONFIG_HASH);
    for entry in web["metadata"]["managedFields"].as_array_mut().unwrap() {
        if entry["manager"] == keys::MANAGER_ENROLMENT {
            entry["fieldsV1"]["f:spec"]["f:template"]["f:metadata"].as_object_mut().unwrap().remove("f:annotations");
        }
    }
    web["metadata"]["generation"] = json!(3);
    web["status"]["observedGeneration"] = json!(3);
    bench.put(Kind::ReplicaSet, json!({"metadata": {"name": "web-1", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployments-web", "controller": true}]},
        "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}}}}));
    bench.put(Kind::Pod, pod("web-1-a", (Kind::ReplicaSet, "web-1"), Some(&hash)));
    bench.put(Kind::Deployment, web);
    bench.converge();
    assert!(bench.message("art", "Ready").contains(&hash[..12]));
}

#[test]
fn after_a_manual_rollout_the_message_names_the_hash_that_runs() {
    let mut bench = Bench::with("rollout: {onUpgrade: manual}\n");
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    bench.change(Kind::Deployment, "web", json!({"status": {"observedGeneration": 2}}));
    bench.converge();
    let old = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.cluster.configure("rollout: {onUpgrade: manual}\nproxy: {uid: 2000}\n");
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/RolloutManual");
    let wanted = {
        let workload = bench.cluster.store.workload(Kind::Deployment, "team", "web").unwrap();
        let template = workload.governed_template(&bench.cluster.facts.snapshot.labels).unwrap();
        crate::admission::inject::needs("team", &workload.identity(), &template, &bench.cluster.facts.snapshot)
            .config_hash
            .unwrap()
    };
    assert_ne!(old, wanted);
    bench.put(Kind::ReplicaSet, json!({"metadata": {"name": "web-1", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployments-web", "controller": true}]},
        "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}}}}));
    bench.put(Kind::Pod, pod("web-1-a", (Kind::ReplicaSet, "web-1"), Some(&wanted)));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    assert!(bench.message("art", "Ready").contains(&wanted[..12]));
}

#[test]
fn a_replace_from_git_is_one_apply_and_no_flapping() {
    let mut bench = enrolled();
    bench.put(Kind::Deployment, {
        let mut web = deployment("web");
        web["metadata"]["generation"] = json!(5);
        web
    });
    let ops = bench.converge();
    assert_eq!(applied(&ops), ["web"]);
    assert_eq!(bench.converge(), []);
}

#[test]
fn type_changes_there_and_back() {
    let mut bench = enrolled();
    let hash = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"type": "tool"}}));
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), Some(keys::HASH_OF_NOTHING));
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 3}, "spec": {"type": "agent"}}));
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), Some(&*hash));
    assert_eq!(bench.object(Kind::Deployment, "web")["metadata"]["labels"][keys::LABEL_TYPE], "agent");
}

fn sandbox(name: &str, replicas: i64, existing: i64, labelled: bool) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "generation": 1},
        "spec": {"replicas": replicas, "podTemplate": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": "i"}]}}},
        "status": {"replicas": existing},
    });
    if labelled {
        object["spec"]["podTemplate"]["metadata"]["labels"][keys::LABEL_TYPE] = json!("agent");
    }
    object
}

fn restarts(ops: &[Op]) -> Vec<(String, Value)> {
    ops.iter()
        .filter_map(|op| match op {
            Op::Merge { kind: Kind::Sandbox, patch, key } => {
                Some((key.name.to_string(), patch["spec"]["replicas"].clone()))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn a_sandbox_with_the_label_alone_that_runs_from_before_is_reported_and_not_restarted() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox("box", 1, 1, true));
    bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), None));
    let ops = bench.converge();
    bench.now = s(300);
    let more = bench.converge();
    assert_eq!(restarts(&ops), []);
    assert_eq!(restarts(&more), []);
    assert!(bench.told.iter().any(|told| told.reason == Reason::UnprotectedPods));
}

#[test]
fn sandboxes_with_the_label_alone_take_turns_too() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    for n in 0..12 {
        let name = format!("b{n:02}");
        bench.put(Kind::Sandbox, sandbox(&name, 1, 1, true));
    }
    let hash = {
        let workload = bench.cluster.store.workload(Kind::Sandbox, "team", "b00").unwrap();
        let template = workload.governed_template(&bench.cluster.facts.snapshot.labels).unwrap();
        crate::admission::inject::needs("team", &workload.identity(), &template, &bench.cluster.facts.snapshot)
            .config_hash
            .unwrap()
    };
    for n in 0..12 {
        let name = format!("b{n:02}");
        bench.put(Kind::Pod, pod(&name, (Kind::Sandbox, &name), Some(&hash)));
    }
    assert_eq!(bench.converge(), []);
    bench.cluster.configure("proxy: {uid: 2000}\n");
    let ops = bench.converge();
    assert!(restarts(&ops).len() <= 5, "{}", restarts(&ops).len());
    assert_eq!(applied(&ops).len(), 5);
}

#[test]
fn sandboxes_with_the_label_alone_are_left_to_people_under_manual() {
    let mut bench = Bench::with("rollout: {onUpgrade: manual}\n");
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox("box", 1, 1, true));
    bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), Some("old")));
    let ops = bench.converge();
    assert_eq!(restarts(&ops), []);
}

#[test]
fn a_sandbox_is_not_restarted_for_ever() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox("box", 1, 1, false));
    bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
    bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), None));
    let mut count = 0;
    for round in 0..10 {
        let ops = bench.converge();
        let all = restarts(&ops);
        count += all.iter().filter(|(_, replicas)| *replicas == json!(0)).count();
        if bench.object(Kind::Sandbox, "box")["spec"]["replicas"] == 0 {
            bench.remove(Kind::Pod, "box");
            bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 0}}));
            bench.converge();
            let mut again = pod("box", (Kind::Sandbox, "box"), None);
            again["metadata"]["uid"] = json!(format!("u{round}"));
            again["metadata"]["creationTimestamp"] = json!(format!("2026-06-01T00:00:{round:02}Z"));
            bench.put(Kind::Pod, again);
            bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 1}}));
        }
        bench.now += s(5);
    }
    assert_eq!(count, 1);
    assert_eq!(bench.condition("art", "PodsCurrent"), "False/UnprotectedPods");
}

/// Its Pod goes for a configuration that is not reached then: nobody else would give it its replicas back.
#[test]
fn a_sandbox_in_the_middle_of_its_restart_gets_its_pod_although_its_enrolment_is_refused() {
    type Refuse = fn(&mut Bench);
    let conflicts: Refuse = |bench| {
        let mut theirs = bench.object(Kind::Sandbox, "box").clone();
        theirs["metadata"]["labels"][keys::LABEL_TYPE] = json!("tool");
        for entry in theirs["metadata"]["managedFields"].as_array_mut().unwrap() {
            entry["fieldsV1"]["f:metadata"]["f:labels"].as_object_mut().unwrap().remove("f:kagenti.io/type");
        }
        bench.put(Kind::Sandbox, theirs);
    };
    let policy: Refuse = |bench| {
        let edit = json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "proxy-sidecar"}});
        bench.change(Kind::AgentRuntime, "art", edit);
        let key = Key::new(TEAM, "sandboxes/box");
        let op = bench.cluster.plan_at(ROW, &key, bench.now).ops.pop().unwrap();
        assert!(matches!(op, Op::Apply { .. }), "{op:?}");
        let refusal = "admission webhook \"freeze.example\" denied the request: not on Sundays".to_owned();
        let item = Item { controller: NAME, key };
        bench.cluster.memory.failure(&item, bench.now, (op, Some(Reason::ConfigApplyError), refusal));
    };
    for (refuse, reason) in [(conflicts, "LabelConflict"), (policy, "ConfigApplyError")] {
        let mut bench = Bench::new();
        bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
        bench.put(Kind::Sandbox, sandbox("box", 1, 1, false));
        bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
        bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), None));
        assert_eq!(restarts(&bench.converge()), [("box".to_owned(), json!(0))], "its Pod is to go");
        refuse(&mut bench);
        assert_eq!(restarts(&bench.converge()), [], "{reason}: its Pod has not gone yet");
        assert_eq!(bench.condition("art", "Ready"), format!("False/{reason}"));
        let again = bench.cluster.plan_at(ROW, &Key::new(TEAM, "sandboxes/box"), bench.now).again;
        assert!(again.is_some_and(|again| again <= s(2)), "{reason}: {again:?}");
        bench.remove(Kind::Pod, "box");
        bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 0}}));
        assert_eq!(restarts(&bench.converge()), [("box".to_owned(), json!(1))], "{reason}");
        let annotations = bench.object(Kind::Sandbox, "box")["metadata"]["annotations"].clone();
        assert!(annotations.get(keys::ANNOTATION_RESTART_PENDING).is_none(), "{annotations}");
        assert_eq!(bench.condition("art", "Ready"), format!("False/{reason}"), "what it says stays");
        assert_eq!(bench.converge(), []);
    }
}

/// What keeps its replicas from being written keeps nothing else from being said.
#[test]
fn a_sandbox_whose_replicas_cannot_be_written_says_all_the_same_what_is_refused() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox("box", 1, 1, false));
    bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
    bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), None));
    bench.converge();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "lite"}}));
    bench.remove(Kind::Pod, "box");
    bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 0}}));
    let key = Key::new(TEAM, "sandboxes/box");
    let ops = bench.cluster.plan_at(ROW, &key, bench.now).ops;
    let status = ops.iter().position(|op| matches!(op, Op::Status { .. })).unwrap();
    let back = ops.iter().position(|op| matches!(op, Op::Merge { kind: Kind::Sandbox, .. })).unwrap();
    assert!(status < back, "{ops:#?}");
    let item = Item { controller: NAME, key };
    bench.cluster.memory.failure(&item, bench.now, (ops[back].clone(), None, "denied".into()));
    let ops = bench.converge();
    assert_eq!((restarts(&ops), &*bench.condition("art", "Ready")), (Vec::new(), "False/ModeNotAvailable"));
    bench.now += s(5);
    assert_eq!(restarts(&bench.converge()), [("box".to_owned(), json!(1))]);
}

/// A configuration that cannot be written, for whatever reason, is better than no Pod.
#[test]
fn a_sandbox_gets_its_pod_when_what_is_to_be_written_before_fails_each_time() {
    let mut bench = Bench::new();
    bench.cluster.store.set_reach(Kind::Sandbox, Reach::Listed);
    bench.put(Kind::Sandbox, sandbox("box", 1, 1, false));
    bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
    bench.put(Kind::Pod, pod("box", (Kind::Sandbox, "box"), None));
    bench.converge();
    let edit = json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "proxy-sidecar"}});
    bench.change(Kind::AgentRuntime, "art", edit);
    bench.remove(Kind::Pod, "box");
    bench.change(Kind::Sandbox, "box", json!({"status": {"replicas": 0}}));
    let item = Item { controller: NAME, key: Key::new(TEAM, "sandboxes/box") };
    for times in 1..=5 {
        let ops = bench.cluster.plan_at(ROW, &item.key, bench.now).ops;
        assert_eq!(restarts(&ops), [], "{times}: the configuration comes first");
        let apply = ops.iter().find(|op| matches!(op, Op::Apply { .. })).unwrap().clone();
        bench.cluster.memory.failure(&item, bench.now, (apply, None, "server error".into()));
    }
    let ops = bench.cluster.plan_at(ROW, &item.key, bench.now).ops;
    assert_eq!(restarts(&ops), [("box".to_owned(), json!(1))]);
    assert!(matches!(ops.last(), Some(Op::Apply { .. })), "{ops:#?}");
}

#[test]
fn a_deletion_that_a_missing_right_holds_up_says_so() {
    let mut bench = enrolled();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": DELETED}}));
    let key = Key::new(TEAM, "deployments/web");
    let op = bench.cluster.plan_at(ROW, &key, s(100)).ops[0].clone();
    let item = Item { controller: NAME, key };
    bench.cluster.memory.failure(&item, s(100), (op, Some(Reason::NotPermitted), "User cannot patch".into()));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/NotPermitted");
}

/// 48: a rule of admission may be lifted; until then the enrolment stands, and so does what takes it away.
#[test]
fn a_deletion_that_a_policy_holds_up_waits_and_says_so() {
    for (refusal, waits) in [
        ("ValidatingAdmissionPolicy 'freeze' with binding 'freeze' denied request: not on Sundays", true),
        ("admission webhook \"freeze.example\" denied the request: not on Sundays", true),
        ("spec.template: Invalid value", false),
    ] {
        let mut bench = enrolled();
        bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": DELETED}}));
        let key = Key::new(TEAM, "deployments/web");
        let op = bench.cluster.plan_at(ROW, &key, s(100)).ops[0].clone();
        let item = Item { controller: NAME, key };
        bench.cluster.memory.failure(&item, s(100), (op, Some(Reason::ConfigApplyError), refusal.into()));
        let ops = bench.cluster.plan_at(ROW, &item.key, s(101)).ops;
        let told = format!("{ops:?}").contains("ConfigApplyError");
        assert_eq!(told, waits, "{refusal}: {ops:?}");
    }
}

#[test]
fn a_cron_job_takes_a_change_at_once_and_counts_the_pods_of_its_jobs() {
    let mut bench = Bench::new();
    bench.put(Kind::CronJob, json!({"metadata": {"name": "nightly", "generation": 1},
        "spec": {"jobTemplate": {"spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "app", "image": "i"}]}}}}}}));
    bench.runtime("cron", (Kind::CronJob, "nightly"), json!({}));
    bench.converge();
    let hash = bench.hash(Kind::CronJob, "nightly").unwrap().to_owned();
    bench.put(Kind::Job, json!({"metadata": {"name": "nightly-1", "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "cronjobs-nightly", "controller": true}]},
        "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}, "spec": {"containers": []}}}}));
    bench.put(Kind::Pod, pod("nightly-1-a", (Kind::Job, "nightly-1"), Some(&hash)));
    bench.converge();
    assert_eq!(bench.object(Kind::AgentRuntime, "cron")["status"]["configuredPods"], 1);
    bench.cluster.configure("proxy: {uid: 2000}\n");
    let ops = bench.converge();
    assert_eq!(applied(&ops), ["nightly"]);
    assert_eq!(bench.cluster.memory.rolling(), 0);
    assert_eq!(bench.converge(), []);
}

#[test]
fn label_changes_by_the_user_while_enrolled_are_a_conflict_and_release_takes_the_rest() {
    let mut bench = enrolled();
    let mut web = bench.object(Kind::Deployment, "web").clone();
    web["metadata"]["labels"][keys::LABEL_TYPE] = json!("tool");
    for entry in web["metadata"]["managedFields"].as_array_mut().unwrap() {
        entry["fieldsV1"]["f:metadata"]["f:labels"].as_object_mut().unwrap().remove("f:kagenti.io/type");
    }
    bench.put(Kind::Deployment, web);
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/LabelConflict");
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": DELETED}}));
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert!(web["spec"]["template"]["metadata"]["labels"].get(keys::LABEL_TYPE).is_none());
}

#[test]
fn settings_changed_and_put_back_in_the_middle_of_a_wave() {
    let mut bench = fleet(12, "");
    bench.cluster.configure("proxy: {uid: 2000}\n");
    let first = applied(&bench.converge());
    bench.cluster.configure("proxy: {uid: 3000}\n");
    let second = applied(&bench.converge());
    assert_eq!(first, second, "the slots are theirs");
    bench.cluster.configure("");
    let third = applied(&bench.converge());
    assert_eq!(third, first);
    for name in &first {
        roll_out(&mut bench, name);
    }
    bench.converge();
    assert_eq!(bench.cluster.memory.waiting(), 0);
    assert_eq!(bench.condition("d011", "Ready"), "True/Configured");
}

#[test]
fn a_failed_workload_that_goes_makes_room() {
    let mut bench = fleet(12, "");
    bench.cluster.configure("proxy: {uid: 2000}\n");
    let first = applied(&bench.converge());
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    for name in &first {
        roll_out(&mut bench, name);
    }
    for name in &first[..2] {
        bench.change(Kind::Deployment, name, stuck.clone());
    }
    let ops = applied(&bench.converge());
    assert_eq!((ops, bench.cluster.memory.failed()), (Vec::new(), 2), "halted");
    bench.remove(Kind::Deployment, &first[0]);
    let more = applied(&bench.converge());
    assert!(!more.is_empty());
}

#[test]
fn a_target_changed_to_a_kind_that_cannot_be_enrolled_releases_the_old_one() {
    let mut bench = enrolled();
    bench.change(
        Kind::AgentRuntime,
        "art",
        json!({"metadata": {"generation": 2},
        "spec": {"targetRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}}),
    );
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), None);
}

#[test]
fn a_missing_target_is_told_again_when_it_is_missing_again() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "later"), json!({}));
    bench.converge();
    for _ in 0..2 {
        bench.put(Kind::Deployment, deployment("later"));
        bench.converge();
        bench.remove(Kind::Deployment, "later");
        bench.converge();
        bench.converge();
    }
    let told = bench.told.iter().filter(|report| report.reason == Reason::TargetNotFound).count();
    assert_eq!(told, 3);
}
