//! A change of configuration reaches the workloads it concerns, in waves, and no others.

use std::sync::Arc;

use serde_json::json;

use super::bench::{Bench, deployment, pod};
use crate::config::inputs::ConfigMapInput;
use crate::config::schema::Platform;
use crate::controllers::enrolment::plan::NAME;
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::keys;
use crate::store::Kind;

const CHANGED: &str = "proxy: {uid: 2000}\n";
const RETIRED: &str = "observability: {logLevel: debug}\n";

/// `count` enrolled Deployments, rolled out.
pub(super) fn fleet(count: usize, platform: &str) -> Bench {
    let mut bench = Bench::with(platform);
    bench.remove(Kind::Deployment, "web");
    for number in 0..count {
        let name = format!("d{number:03}");
        bench.put(Kind::Deployment, deployment(&name));
        bench.runtime(&name, (Kind::Deployment, &name), json!({}));
    }
    bench.converge();
    for number in 0..count {
        roll_out(&mut bench, &format!("d{number:03}"));
    }
    bench.converge();
    bench
}

/// The Deployment controller has finished.
pub(super) fn roll_out(bench: &mut Bench, name: &str) {
    let generation = bench.object(Kind::Deployment, name)["metadata"]["generation"].clone();
    bench.change(Kind::Deployment, name, json!({"status": {"observedGeneration": generation}}));
}

pub(super) fn applied(ops: &[Op]) -> Vec<String> {
    let names = ops.iter().filter_map(|op| match op {
        Op::Apply { key, .. } => Some(key.name.to_string()),
        _ => None,
    });
    names.collect()
}

#[test]
fn a_change_that_reaches_no_pod_writes_nothing() {
    let mut bench = fleet(3, "");
    bench.cluster.configure(RETIRED);
    assert_eq!(bench.converge(), []);
}

/// A process that starts does not know what a ConfigMap said before somebody broke it: a read error never changes a hash.
#[test]
fn answers_06_a_config_map_that_cannot_be_read_after_a_restart_rolls_nothing_and_is_no_resolved_configuration() {
    let mut bench = fleet(2, CHANGED);
    let data = [(keys::KEY_CONFIG.to_owned(), "{a: [".to_owned())].into();
    let broken = ConfigMapInput { is_defaults: false, kept: false, data, ..ConfigMapInput::default() };
    bench.cluster.configure("");
    let platform = Platform::clone(&bench.cluster.facts.platform).with_runtime_template(Some(&broken), None);
    bench.cluster.facts.platform = Arc::new(platform);
    bench.settle();
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!(bench.condition("d000", "Ready"), "False/RolloutPending");
    assert_eq!(bench.condition("d000", "ConfigResolved"), "False/NamespaceConfigUnreadable");
    bench.cluster.configure("");
    assert_eq!(applied(&bench.converge()).len(), 2, "repaired: what is said now is what counts");
}

/// A status that is more than is kept of one is taken for none: it would be written whole at each look, with times of its own.
#[test]
fn values_of_a_namespace_that_are_large_make_no_status_that_is_written_for_ever() {
    for (count, size) in [(1, 17 * 1024), (6, 3 * 1024)] {
        let mut bench = fleet(1, "");
        for at in 0..count {
            let text = format!("tokenExchange:\n  defaultAudience: '{at}{}'\n", "a".repeat(size));
            let data = [(keys::KEY_CONFIG.to_owned(), text)].into();
            let map = ConfigMapInput { is_defaults: true, data, ..ConfigMapInput::default() };
            bench.cluster.config_maps.insert(format!("large-{at}"), map);
        }
        bench.settle();
        bench.converge();
        roll_out(&mut bench, "d000");
        bench.converge();
        assert_eq!(bench.converge(), [], "{count} of {size} bytes");
        assert_eq!(bench.condition("d000", "Ready"), "True/Configured");
        let values = bench.object(Kind::AgentRuntime, "d000")["status"]["effective"]["values"].clone();
        assert_eq!(values[0]["field"], "tokenExchange.defaultAudience", "{values}");
        assert!(values.to_string().len() < 6 * 1024, "{values}");
        // What stands there is known: the conditions of others, and the times.
        let stored = bench.cluster.store.agent_runtime("team", "d000").unwrap().seen.status.value();
        assert_eq!(stored["configHash"].as_str(), bench.hash(Kind::Deployment, "d000"));
    }
}

#[test]
fn case_033_a_fleet_rolls_in_waves_of_five() {
    let mut bench = fleet(12, "");
    bench.cluster.configure(CHANGED);
    let first = applied(&bench.converge());
    assert_eq!(first.len(), 5, "{first:?}");
    assert_eq!(bench.condition(&first[0], "RolloutProgressing"), "True/RolloutProgressing");
    assert_eq!((&*bench.condition("d011", "Ready"), bench.phase("d011")), ("False/RolloutPending", "Active"));
    assert_eq!(bench.cluster.memory.waiting(), 7);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "until one is done");
    roll_out(&mut bench, &first[0]);
    assert_eq!(applied(&bench.converge()).len(), 1);
    for _ in 0..12 {
        for number in 0..12 {
            roll_out(&mut bench, &format!("d{number:03}"));
        }
        bench.converge();
    }
    assert_eq!(bench.cluster.memory.waiting(), 0);
    assert_eq!(bench.condition("d011", "Ready"), "True/Configured");
    bench.cluster.configure(CHANGED);
    assert_eq!(bench.converge(), []);
}

#[test]
fn no_wave_begins_while_another_replica_may_serve_by_the_old_settings() {
    let mut bench = fleet(2, "");
    bench.cluster.configure(CHANGED);
    bench.cluster.facts.spreading = true;
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!((&*bench.condition("d000", "Ready"), bench.phase("d000")), ("False/RolloutPending", "Active"));
    assert!(bench.message("d000", "Ready").contains("rollout.delaySeconds"), "{}", bench.message("d000", "Ready"));
    bench.cluster.facts.spreading = false;
    assert_eq!(applied(&bench.converge()), ["d000", "d001"]);
}

#[test]
fn what_one_agent_runtime_says_does_not_wait_for_settings_to_spread() {
    let mut bench = fleet(2, "");
    bench.cluster.configure(RETIRED);
    bench.cluster.facts.spreading = true;
    bench.converge();
    bench.change(Kind::AgentRuntime, "d000", json!({"spec": {"authBridgeMode": "proxy-sidecar"}}));
    assert_eq!(applied(&bench.converge()), ["d000"]);
}

/// In the first minutes of a process every change of the fleet waits; what a namespace says to a workload that has just been
/// enrolled is no such change.
#[test]
fn what_changes_right_after_an_enrolment_does_not_wait_for_settings_to_spread() {
    let mut bench = Bench::new();
    bench.cluster.facts.spreading = true;
    bench.runtime("art", (Kind::Deployment, "web"), json!({}));
    while applied(&bench.round()).is_empty() {}
    bench.change(Kind::AgentRuntime, "art", json!({"spec": {"authBridgeMode": "proxy-sidecar"}}));
    assert_eq!(applied(&bench.converge()), ["web"]);
}

#[test]
fn who_rolls_is_known_again_after_a_restart() {
    let mut bench = fleet(12, "");
    bench.cluster.configure(CHANGED);
    assert_eq!(applied(&bench.converge()).len(), 5);
    bench.cluster.forget();
    assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "not before everything was looked at");
    bench.cluster.memory.surveyed = true;
    assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "five roll still");
}

#[test]
fn two_failures_halt_the_wave_and_the_next_change_ends_the_halt() {
    let mut bench = fleet(12, "");
    bench.cluster.configure(CHANGED);
    let first = applied(&bench.converge());
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    for name in &first {
        roll_out(&mut bench, name);
    }
    for name in &first[..2] {
        bench.change(Kind::Deployment, name, stuck.clone());
    }
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!(bench.condition("d011", "Stalled"), "True/RolloutHalted");
    assert_eq!(bench.condition(&first[0], "Ready"), "False/ProgressDeadlineExceeded");
    assert_eq!(bench.cluster.memory.failed(), 2);
    bench.cluster.configure("proxy: {uid: 3000}\n");
    assert!(!applied(&bench.converge()).is_empty(), "what failed no longer carries what is wanted");
}

#[test]
fn a_workload_that_failed_before_we_rolled_it_halts_nothing() {
    let mut bench = fleet(2, "");
    let stuck = json!({"status": {"conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}});
    for name in ["d000", "d001"] {
        bench.change(Kind::Deployment, name, stuck.clone());
    }
    bench.converge();
    assert_eq!(bench.cluster.memory.failed(), 0, "their users broke them, not we");
}

#[test]
fn what_does_not_roll_by_itself_is_written_at_once() {
    let mut bench = fleet(12, "");
    for (number, more) in [json!({"paused": true}), json!({"replicas": 0})].into_iter().cycle().take(12).enumerate() {
        bench.change(Kind::Deployment, &format!("d{number:03}"), json!({"spec": more}));
    }
    bench.converge();
    bench.cluster.configure(CHANGED);
    assert_eq!(applied(&bench.converge()).len(), 12);
    assert_eq!(bench.condition("d000", "RolloutProgressing"), "False/RolloutPaused");
}

#[test]
fn manual_reports_a_change_of_the_fleet_and_writes_a_change_of_one_agent_runtime() {
    let mut bench = fleet(2, "rollout: {onUpgrade: manual}\n");
    bench.change(Kind::AgentRuntime, "d000", json!({"spec": {"authBridgeMode": "proxy-sidecar"}}));
    assert_eq!(applied(&bench.converge()), ["d000"]);
    roll_out(&mut bench, "d000");
    bench.cluster.configure(&format!("rollout: {{onUpgrade: manual}}\n{CHANGED}"));
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!(bench.condition("d001", "RolloutProgressing"), "False/RolloutManual");
    assert!(bench.message("d001", "Ready").contains("kubectl -n team rollout restart deployment/d001"));
}

#[test]
fn somebodys_annotation_is_no_rollout_while_the_controller_has_not_seen_it() {
    let mut bench = fleet(1, "");
    // The API server counts a changed annotation of a Deployment as a generation.
    bench.change(Kind::Deployment, "d000", json!({"metadata": {"generation": 3, "annotations": {"theirs": "y"}}}));
    assert_eq!(bench.converge(), [], "for a moment");
    roll_out(&mut bench, "d000");
    assert_eq!(bench.converge(), [], "nothing was replaced");
    bench.change(Kind::Deployment, "d000", json!({"metadata": {"generation": 4}}));
    assert_eq!(bench.converge(), []);
    bench.now += s(2);
    bench.converge();
    assert_eq!(bench.condition("d000", "RolloutProgressing"), "True/RolloutProgressing", "a controller that is away");
    roll_out(&mut bench, "d000");
    bench.converge();
    assert_eq!(bench.condition("d000", "RolloutProgressing"), "False/RolloutComplete");
}

#[test]
fn case_041_a_workload_with_the_label_alone_gets_a_hash_once_a_change_must_roll_it() {
    let mut bench = Bench::new();
    let labelled = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}}});
    bench.change(Kind::Deployment, "web", labelled);
    assert_eq!(bench.converge(), [], "not at creation: it would make a second ReplicaSet");
    let template = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}});
    bench.put(
        Kind::ReplicaSet,
        json!({"metadata": {"name": "web-1", "ownerReferences": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "deployments-web", "controller": true}]},
        "spec": {"template": template}}),
    );
    // What the webhook stamps on its Pods is what the next configuration is compared with.
    let mut probe = Bench::new();
    probe.runtime("art", (Kind::Deployment, "web"), json!({}));
    probe.converge();
    let stamp = probe.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.put(Kind::Pod, pod("web-1-a", (Kind::ReplicaSet, "web-1"), Some(&stamp)));
    assert_eq!(bench.converge(), []);
    bench.cluster.configure(RETIRED);
    assert_eq!(bench.converge(), [], "no effect, no write");
    bench.cluster.configure(CHANGED);
    assert_eq!(applied(&bench.converge()), ["web"]);
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"], json!({"app": "web"}), "no label and no marker of ours");
    assert_ne!(bench.hash(Kind::Deployment, "web"), Some(&*stamp));
    // The label goes, and what was ours with it.
    let plain = json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}});
    bench.change(Kind::Deployment, "web", plain);
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), None);
    assert!(
        bench.object(Kind::Deployment, "web")["metadata"]["annotations"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
    );
}

#[test]
fn case_051_after_five_failures_people_are_told_and_it_goes_on() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "web"), json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let key = crate::store::Key::new("team", "deployments/web");
    let item = Item { controller: NAME, key: key.clone() };
    let plan = bench.cluster.plan_at(super::super::plan::ROW, &key, s(100));
    for times in 1..=5 {
        bench.cluster.memory.failure(&item, s(100 + times), (plan.ops[0].clone(), None, "conflict".into()));
        let plan = bench.cluster.plan_at(super::super::plan::ROW, &key, s(100 + times));
        let says = plan.ops.iter().any(|op| matches!(op, Op::Status { .. }));
        assert_eq!(says, times == 5, "after {times} failures");
        assert!(plan.ops.iter().any(|op| matches!(op, Op::Apply { .. })), "tried again");
    }
}

#[test]
fn what_is_refused_is_told_at_once_and_not_sent_again_until_something_changes() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "web"), json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let key = crate::store::Key::new("team", "deployments/web");
    let item = Item { controller: NAME, key: key.clone() };
    let op = bench.cluster.plan_at(super::super::plan::ROW, &key, s(100)).ops.pop().unwrap();
    let reason = crate::domain::reason::Reason::ImmutableSelector;
    bench.cluster.memory.failure(&item, s(100), (op, Some(reason), "selector does not match".into()));
    let ops = bench.converge();
    assert_eq!((applied(&ops), &*bench.condition("art", "Ready")), (Vec::new(), "False/ImmutableSelector"));
    bench.change(Kind::Deployment, "web", json!({"metadata": {"labels": {"x": "y"}}}));
    bench.now = s(106);
    assert_eq!(applied(&bench.converge()), ["web"]);
}

/// The taking over from the Go operator goes before the apply, and nothing of it changes while it is refused.
#[test]
fn what_is_refused_ahead_of_the_apply_is_not_sent_again_at_once_either() {
    let mut bench = Bench::new();
    let marks = json!({
        "metadata": {
            "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_UPSTREAM},
            "managedFields": [{"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}}}}],
        },
    });
    bench.change(Kind::Deployment, "web", marks);
    bench.runtime("art", (Kind::Deployment, "web"), json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let key = crate::store::Key::new("team", "deployments/web");
    let item = Item { controller: NAME, key: key.clone() };
    let edits = |ops: &[Op]| ops.iter().filter(|op| matches!(op, Op::Edit { .. })).count();
    let ops = bench.cluster.plan_at(super::super::plan::ROW, &key, s(100)).ops;
    assert!(matches!(&ops[..], [Op::Edit { .. }, Op::Apply { .. }]), "{ops:?}");
    let reason = crate::domain::reason::Reason::NotPermitted;
    bench.cluster.memory.failure(&item, s(100), (ops[0].clone(), Some(reason), "no right to patch".into()));
    for (now, sent) in [(100, 0), (106, 0), (159, 0), (161, 1)] {
        bench.now = s(now);
        assert_eq!(edits(&bench.converge()), sent, "after {} s", now - 100);
    }
}

/// Only Deployments say by themselves that they are stuck.
#[test]
fn what_keeps_a_place_for_long_is_named_to_those_that_wait_for_it() {
    let mut bench = Bench::new();
    bench.remove(Kind::Deployment, "web");
    for number in 0..7 {
        let name = format!("s{number}");
        bench.put(Kind::StatefulSet, deployment(&name));
        bench.runtime(&name, (Kind::StatefulSet, &name), json!({}));
    }
    let done = |bench: &mut Bench, name: &str| {
        let generation = bench.object(Kind::StatefulSet, name)["metadata"]["generation"].clone();
        bench.change(Kind::StatefulSet, name, json!({"status": {"observedGeneration": generation}}));
    };
    bench.converge();
    (0..7).for_each(|number| done(&mut bench, &format!("s{number}")));
    bench.converge();
    bench.cluster.configure(CHANGED);
    let first = applied(&bench.converge());
    assert_eq!(first, ["s0", "s1", "s2", "s3", "s4"]);
    bench.now += s(599);
    bench.converge();
    assert!(!bench.message("s6", "Ready").contains("kubectl"), "it may take a while");
    bench.now += s(1);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new());
    assert_eq!(bench.cluster.memory.slow().count(), 5);
    let waits = bench.message("s6", "Ready");
    assert!(waits.contains("statefulsets/s0 (kubectl -n team describe statefulsets/s0)"), "{waits}");
    assert!(waits.contains("2 more (drawbridge status -A)"), "{waits}");
    let says = bench.message("s0", "RolloutProgressing");
    assert!(says.contains("10 minutes") && says.contains("kubectl -n team describe statefulset s0"), "{says}");
    assert_eq!(bench.condition("s0", "Ready"), "True/Configured");
    assert_eq!(bench.converge(), [], "said once");
    done(&mut bench, "s0");
    assert_eq!(applied(&bench.converge()), ["s5"], "its place is free");
    assert_eq!(bench.cluster.memory.slow().count(), 4);
}

/// Nobody led while it was edited, and the fleet's configuration is not known to be another.
#[test]
fn manual_lets_an_agent_runtime_that_was_edited_while_nobody_led_have_its_change() {
    let mut bench = fleet(2, "rollout: {onUpgrade: manual}\n");
    bench.cluster.forget();
    bench.cluster.memory.epoch = 1;
    let edit = json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "proxy-sidecar"}});
    bench.change(Kind::AgentRuntime, "d000", edit);
    assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "not before it is known who rolls");
    bench.cluster.memory.surveyed = true;
    bench.converge();
    assert_eq!(
        bench.condition("d000", "RolloutProgressing"),
        "True/RolloutProgressing",
        "though its status has seen it"
    );
    roll_out(&mut bench, "d000");
    bench.converge();
    bench.cluster.forget();
    bench.cluster.memory.surveyed = true;
    bench.cluster.configure(&format!("rollout: {{onUpgrade: manual}}\n{CHANGED}"));
    assert_eq!(applied(&bench.converge()), Vec::<String>::new(), "what nobody edited waits for a person");
}

/// Their hashes are others than ours: at the first start every workload differs, and none because its user asked for it.
#[test]
fn what_the_go_operator_enrolled_is_taken_over_at_once_and_rolled_in_waves() {
    let mut bench = Bench::new();
    bench.remove(Kind::Deployment, "web");
    for number in 0..12 {
        let name = format!("d{number:03}");
        let mut theirs = deployment(&name);
        json_patch::merge(
            &mut theirs,
            &json!({
                "metadata": {
                    "labels": {keys::LABEL_TYPE: "agent", keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_UPSTREAM},
                    "managedFields": [{"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:kagenti.io/type": {}, "f:app.kubernetes.io/managed-by": {}}},
                        "f:spec": {"f:template": {"f:metadata": {
                            "f:labels": {"f:kagenti.io/type": {}}, "f:annotations": {"f:kagenti.io/config-hash": {}}}}}}}],
                },
                "spec": {"template": {"metadata": {
                    "labels": {keys::LABEL_TYPE: "agent"}, "annotations": {keys::ANNOTATION_CONFIG_HASH: "57de3ab7"}}}},
            }),
        );
        bench.put(Kind::Deployment, theirs);
        bench.runtime(&name, (Kind::Deployment, &name), json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    }
    bench.converge();
    let generation = |bench: &Bench, number: usize| {
        bench.object(Kind::Deployment, &format!("d{number:03}"))["metadata"]["generation"].as_i64().unwrap()
    };
    assert_eq!((0..12).filter(|number| generation(&bench, *number) > 1).count(), 5, "the others roll later");
    assert_eq!((&*bench.condition("d011", "Ready"), bench.phase("d011")), ("False/RolloutPending", "Active"));
    let last = bench.object(Kind::Deployment, "d011");
    assert_eq!(last["metadata"]["labels"][keys::LABEL_MANAGED_BY], "drawbridge", "un-enrolment finds what is ours");
    bench.change(Kind::AgentRuntime, "d011", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert_eq!(bench.object(Kind::Deployment, "d011")["spec"], deployment("d011")["spec"]);
}
