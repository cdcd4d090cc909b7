//! Enrolment and its status: the numbered cases of `spec/agentruntime.md` 12 that plans decide.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, TEAM, deployment, pod, template};
use crate::api::observed::{Key, Kind, Reach};
use crate::controllers::enrolment::plan::ROW;
use crate::controllers::scaffold::fixtures::{account, s};
use crate::controllers::scaffold::plan::{Controller, Item, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;

const WEB: (Kind, &str) = (Kind::Deployment, "web");

fn enrolled() -> Bench {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    bench
}

#[test]
fn case_001_label_hash_and_marker_are_one_apply_after_the_finalizer() {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    let applies: Vec<_> = ops.iter().filter(|op| matches!(op, Op::Apply { .. })).collect();
    assert_eq!(applies.len(), 1, "one rollout");
    assert!(matches!(&ops[0], Op::Merge { kind: Kind::AgentRuntime, patch, .. }
        if patch["metadata"]["finalizers"] == json!([keys::FINALIZER])));
    let web = bench.object(Kind::Deployment, "web");
    // Overridden by design, Names: the marker is a label of ours, because a user's managed-by is never overwritten.
    assert_eq!(
        web["metadata"]["labels"],
        json!({"app": "web", keys::LABEL_TYPE: "agent", keys::LABEL_MANAGED_BY: "drawbridge"})
    );
    assert_eq!(web.pointer("/spec/template/metadata/labels"), Some(&json!({"app": "web", keys::LABEL_TYPE: "agent"})));
    let hash = bench.hash(Kind::Deployment, "web").unwrap();
    assert!(hash.len() == 64 && hash.chars().all(|digit| digit.is_ascii_hexdigit()));
}

#[test]
fn case_003_converged_means_no_write() {
    let mut bench = enrolled();
    assert_eq!(bench.converge(), []);
}

#[test]
fn case_004_every_kind_keeps_its_template_where_it_is() {
    for kind in [Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob, Kind::Sandbox] {
        let mut bench = Bench::new();
        let mut object = json!({"metadata": {"name": "it", "generation": 1}});
        let inner = json!({"metadata": {"labels": {"app": "it"}}, "spec": {"containers": [{"name": "app"}]}});
        let nested: Value = template(kind)
            .split('/')
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .fold(inner, |inner, part| json!({part: inner}));
        json_patch::merge(&mut object, &nested);
        bench.put(kind, object);
        bench.runtime("art", (kind, "it"), json!({}));
        bench.converge();
        let labels = bench.object(kind, "it").pointer(template(kind)).unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels, json!({"app": "it", keys::LABEL_TYPE: "agent"}), "{kind:?}");
        assert!(bench.hash(kind, "it").is_some(), "{kind:?}");
        assert_eq!(bench.condition("art", "Ready"), "True/Configured", "{kind:?}");
    }
}

#[test]
fn case_005_what_the_user_has_on_the_template_stays() {
    let bench = enrolled();
    let annotations =
        bench.object(Kind::Deployment, "web").pointer("/spec/template/metadata/annotations").unwrap().clone();
    assert_eq!(annotations["theirs"], "x");
}

#[test]
fn a_tool_waits_for_nothing_that_its_pods_do_not_ask_for() {
    let mut bench = Bench::new();
    let routes = json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM}});
    bench.cluster.lose(Kind::ConfigMap, routes);
    bench.runtime("art", WEB, json!({"spec": {"type": "tool"}}));
    bench.converge();
    assert_eq!(
        (&*bench.condition("art", "Ready"), &*bench.condition("art", "ConfigResolved")),
        ("True/Configured", "True/ConfigResolved")
    );
}

#[test]
fn case_006_a_tool_is_active_although_nothing_is_injected() {
    let mut bench = Bench::new();
    bench.runtime("art", WEB, json!({"spec": {"type": "tool"}}));
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!((&web["metadata"]["labels"][keys::LABEL_TYPE], bench.phase("art")), (&json!("tool"), "Active"));
    assert_eq!(bench.hash(Kind::Deployment, "web"), Some(keys::HASH_OF_NOTHING));
    assert!(bench.message("art", "Ready").contains("nothing is injected"));
}

#[test]
fn case_007_a_label_set_by_hand_is_shared_and_stays_when_the_enrolment_ends() {
    let mut bench = Bench::new();
    let by_hand = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent"}, "managedFields": [
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {
            "f:metadata": {"f:labels": {"f:kagenti.io/type": {}}},
            "f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}},
    ]}, "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}}});
    bench.change(Kind::Deployment, "web", by_hand);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    assert!(bench.hash(Kind::Deployment, "web").is_some());
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"], json!({"app": "web", keys::LABEL_TYPE: "agent"}));
    assert_eq!(bench.hash(Kind::Deployment, "web"), None);
}

#[test]
fn case_008_the_status_says_what_was_done() {
    let bench = enrolled();
    assert_eq!(bench.phase("art"), "Active");
    let status = &bench.object(Kind::AgentRuntime, "art")["status"];
    for (type_, state) in [
        ("TargetResolved", "True/TargetFound"),
        ("ConfigResolved", "True/ConfigResolved"),
        ("Ready", "True/Configured"),
    ] {
        assert_eq!(bench.condition("art", type_), state);
    }
    assert!(status["conditions"].as_array().unwrap().iter().all(|one| one["observedGeneration"] == 1));
    let hash = bench.hash(Kind::Deployment, "web").unwrap();
    let message = bench.message("art", "Ready");
    assert!(message.contains("web") && message.contains(&hash[..12]), "{message}");
    assert_eq!((&status["observedGeneration"], &status["configHash"]), (&json!(1), &json!(hash)));
    assert_eq!(status["appliedTarget"]["uid"], "deployments-web");
    assert_eq!(status["effective"]["mode"], "envoy-sidecar");
    assert_eq!(status["effective"]["spiffeID"], "spiffe://cluster.local/ns/team/sa/web");
    let told: Vec<_> = bench.told.iter().map(|report| report.reason.code()).collect();
    assert_eq!(told, ["Configured"]);
}

#[test]
fn case_009_and_010_pods_count_by_who_controls_them_and_what_they_carry() {
    let mut bench = enrolled();
    let hash = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.put(Kind::Deployment, deployment("web-b"));
    for (set, owner) in [("web-1", "web"), ("web-b-1", "web-b")] {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": format!("deployments-{owner}"), "controller": true}]);
        let template = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent", keys::LABEL_POD_TEMPLATE_HASH: "1"}}});
        bench.put(
            Kind::ReplicaSet,
            json!({"metadata": {"name": set, "ownerReferences": owners}, "spec": {"template": template}}),
        );
    }
    for (name, set) in [("a", "web-1"), ("b", "web-1"), ("c", "web-1"), ("d", "web-b-1")] {
        bench.put(Kind::Pod, pod(name, (Kind::ReplicaSet, set), Some(&hash)));
    }
    let mut ending = pod("e", (Kind::ReplicaSet, "web-1"), Some(&hash));
    ending["metadata"]["deletionTimestamp"] = json!("2026-05-02T00:00:00Z");
    bench.put(Kind::Pod, ending);
    let mut failed = pod("f", (Kind::ReplicaSet, "web-1"), Some(&hash));
    failed["status"]["phase"] = json!("Failed");
    bench.put(Kind::Pod, failed);
    bench.put(Kind::Pod, pod("g", (Kind::ReplicaSet, "nobody"), Some(&hash)));
    bench.converge();
    assert_eq!(bench.object(Kind::AgentRuntime, "art")["status"]["configuredPods"], 3);
}

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
fn case_022_a_missing_target_is_enrolled_as_soon_as_it_comes() {
    let mut bench = Bench::new();
    bench.runtime("art", (Kind::Deployment, "later"), json!({}));
    bench.converge();
    assert_eq!((&*bench.condition("art", "TargetResolved"), bench.phase("art")), ("False/TargetNotFound", "Error"));
    assert_eq!(bench.told.iter().map(|report| report.reason.code()).collect::<Vec<_>>(), ["TargetNotFound"]);
    assert_eq!(bench.converge(), [], "case_052 and case_058: told once");
    let touched = (ROW.touched)(&bench.cluster.world, Kind::Deployment, &Key::new(TEAM, "later"));
    assert_eq!(touched, [Key::new(TEAM, "deployments/later")]);
    bench.put(Kind::Deployment, deployment("later"));
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("True/Configured", "Active"));
}

#[test]
fn case_023_a_kind_that_cannot_be_enrolled_is_named_and_does_not_hold_the_deletion_up() {
    let mut bench = Bench::new();
    // Overridden by the issue: DaemonSets can be enrolled. A wrong pair of apiVersion and kind cannot (S4).
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
    bench.cluster.world.set_reach(Kind::AgentRuntime, Reach::Unknown);
    bench.remove(Kind::AgentRuntime, "art");
    assert_eq!(bench.converge(), [], "AgentRuntimes cannot be read: nothing is concluded from their absence");
    let mut bench = Bench::new();
    bench.cluster.world.set_reach(Kind::Sandbox, Reach::Unknown);
    bench.runtime("art", (Kind::Sandbox, "box"), json!({}));
    bench.converge();
    assert_eq!(bench.condition("art", "TargetResolved"), "False/TargetUnreadable");
    bench.cluster.world.set_reach(Kind::Sandbox, Reach::Absent);
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
fn case_027_a_label_that_was_taken_off_comes_back() {
    let mut bench = enrolled();
    bench.change(
        Kind::Deployment,
        "web",
        json!({"spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: null}}}}}),
    );
    assert_eq!(bench.converge().iter().filter(|op| matches!(op, Op::Apply { .. })).count(), 1);
    assert_eq!(
        bench.object(Kind::Deployment, "web")["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE],
        "agent"
    );
}

#[test]
fn case_028_another_type_changes_both_labels_and_the_hash_at_once() {
    let mut bench = enrolled();
    let before = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"type": "tool"}}));
    assert_eq!(bench.converge().iter().filter(|op| matches!(op, Op::Apply { .. })).count(), 1);
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!(web["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert_eq!(web["spec"]["template"]["metadata"]["labels"][keys::LABEL_TYPE], "tool");
    assert_ne!(bench.hash(Kind::Deployment, "web").unwrap(), before);
}

#[test]
fn a_type_label_of_the_users_with_another_value_is_a_conflict_that_nobody_forces() {
    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({"metadata": {"labels": {keys::LABEL_TYPE: "tool"}}}));
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    assert!(!ops.iter().any(|op| matches!(op, Op::Apply { .. })));
    assert_eq!(bench.condition("art", "Ready"), "False/LabelConflict");
    assert_eq!(bench.condition("art", "Stalled"), "True/LabelConflict");
    let message = bench.message("art", "Ready");
    assert!(message.contains("kagenti.io/type=tool") && message.contains("spec.type"), "{message}");
    bench.change(Kind::Deployment, "web", json!({"metadata": {"labels": {keys::LABEL_TYPE: null}}}));
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), &*bench.condition("art", "Stalled")), ("True/Configured", ""));
}

#[test]
fn a_managed_by_of_the_users_is_never_written() {
    let mut bench = Bench::new();
    let theirs =
        json!({"metadata": {"labels": {keys::LABEL_MANAGED_BY: "theirs", keys::LABEL_APP_MANAGED_BY: "Helm"}}});
    bench.change(Kind::Deployment, "web", theirs);
    bench.runtime("art", WEB, json!({}));
    bench.converge();
    let labels = &bench.object(Kind::Deployment, "web")["metadata"]["labels"];
    assert_eq!(
        (&labels[keys::LABEL_MANAGED_BY], &labels[keys::LABEL_APP_MANAGED_BY]),
        (&json!("theirs"), &json!("Helm"))
    );
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
}

#[test]
fn case_029_and_031_every_field_that_reaches_the_pod_changes_the_hash() {
    // Overridden by design, Precedence: the mode selects the plan, so it counts; the trust domain does where it reaches the Pod.
    for (spec, field) in [
        (json!({"authBridgeMode": "proxy-sidecar"}), "mode"),
        (json!({"trace": {"endpoint": "otel:4317"}}), "trace.endpoint"),
        (json!({"trace": {"sampling": {"rate": 0}}}), "trace.samplingRatio"),
    ] {
        let mut bench = enrolled();
        let before = bench.hash(Kind::Deployment, "web").unwrap().to_owned();
        bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": spec}));
        bench.converge();
        assert_ne!(bench.hash(Kind::Deployment, "web").unwrap(), before, "{field}");
        let values = bench.object(Kind::AgentRuntime, "art")["status"]["effective"]["values"].clone();
        assert_eq!((&values[0]["field"], &values[0]["from"]), (&json!(field), &json!("AgentRuntime art")), "{values}");
    }
    let mut bench = enrolled();
    let spec = json!({"identity": {"spiffe": {"trustDomain": "custom.example.com"}}});
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": spec}));
    bench.converge();
    let effective = &bench.object(Kind::AgentRuntime, "art")["status"]["effective"];
    assert_eq!(effective["spiffeID"], "spiffe://custom.example.com/ns/team/sa/web");
}

#[test]
fn a_mode_that_does_not_exist_is_refused_and_rolls_nothing() {
    let mut bench = enrolled();
    let before = bench.object(Kind::Deployment, "web").clone();
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"generation": 2}, "spec": {"authBridgeMode": "lite"}}));
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "False/ModeNotAvailable");
    assert_eq!(bench.object(Kind::Deployment, "web"), &before);
}

#[test]
fn case_032_equal_agent_runtimes_give_equal_hashes() {
    let mut bench = enrolled();
    bench.put(Kind::Deployment, deployment("twin"));
    bench.runtime("twin", (Kind::Deployment, "twin"), json!({}));
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), bench.hash(Kind::Deployment, "twin"));
}

#[test]
fn the_service_account_comes_first_and_pods_that_would_be_refused_are_not_rolled() {
    let mut bench = Bench::new();
    bench.cluster.lose(Kind::ServiceAccount, account("web", true, json!([])));
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })));
    bench.now = s(105);
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("False/ServiceAccountPending", "Pending"));
    let mut made = account("web", true, json!([]));
    made["metadata"]["resourceVersion"] = json!("9000");
    bench.cluster.see(Kind::ServiceAccount, made);
    assert_eq!(
        (ROW.touched)(&bench.cluster.world, Kind::ServiceAccount, &Key::new(TEAM, "web")),
        [Key::new(TEAM, "deployments/web")]
    );
    bench.converge();
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");

    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({"spec": {"template": {"spec": {"hostNetwork": true}}}}));
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })));
    assert_eq!(bench.condition("art", "Ready"), "False/HostNetwork");
}

#[test]
fn case_040_config_maps_that_never_come_do_not_stop_an_enrolment() {
    let mut bench = Bench::new();
    let routes = json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM}});
    bench.cluster.lose(Kind::ConfigMap, routes);
    bench.runtime("art", WEB, json!({}));
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })), "they come first");
    bench.now = s(101) + Duration::from_millis(500);
    let again = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), bench.now).again;
    assert_eq!(again, Some(Duration::from_millis(500)), "looked at again when the time is up");
    bench.now = s(103);
    bench.converge();
    assert_eq!((&*bench.condition("art", "Ready"), bench.phase("art")), ("True/Configured", "Active"));
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigResolved", "it may still come");
    let maker = Item { controller: Controller::NamespaceConfig, key: Key::new(TEAM, "") };
    let op = Op::Create { kind: Kind::ConfigMap, namespace: TEAM.into(), body: json!({}) };
    bench.cluster.world.memory.failure(&maker, s(103), (op, None, "exceeded quota".into()));
    bench.now = s(106);
    bench.converge();
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigWarning");
    let message = bench.message("art", "ConfigResolved");
    assert!(message.contains(keys::CONFIG_MAP_ROUTES) && message.contains("exceeded quota"), "{message}");
    assert!(bench.told.iter().any(|report| report.reason == Reason::ConfigWarning), "case 40 asks for an Event");
    bench.now = s(1_000);
    assert_eq!(bench.converge(), []);
    let routes =
        json!({"metadata": {"name": keys::CONFIG_MAP_ROUTES, "namespace": TEAM, "uid": "r", "resourceVersion": "9"}});
    bench.cluster.see(Kind::ConfigMap, routes);
    bench.converge();
    assert_eq!(bench.condition("art", "ConfigResolved"), "True/ConfigResolved");
}

#[test]
fn case_052_a_thousand_rounds_without_change_tell_and_write_nothing() {
    let mut bench = enrolled();
    for round in 0..1_000 {
        bench.now += s(1);
        assert_eq!(bench.round(), [], "{round}");
    }
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

#[test]
fn nothing_is_written_before_the_snapshot_knows_the_agent_runtime() {
    let mut bench = Bench::new();
    let before = bench.cluster.facts.clone();
    bench.runtime("art", WEB, json!({}));
    let settled = std::mem::replace(&mut bench.cluster.facts, before);
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(!plan.ops.iter().any(|op| matches!(op, Op::Apply { .. })));
    bench.cluster.facts = settled;
    let plan = bench.cluster.plan_at(ROW, &Key::new(TEAM, "deployments/web"), s(100));
    assert!(plan.ops.iter().any(|op| matches!(op, Op::Apply { .. })));
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
