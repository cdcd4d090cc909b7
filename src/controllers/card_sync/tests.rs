//! The plan as a table, by the numbers of the cases of cards (docs/cases.md).

use serde_json::{Value, json};

use super::card_name;
use super::plan::ROW;
use crate::config::gates::Gates;
use crate::controllers::scaffold::fixtures::{Cluster, s, workload};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{Key, Kind, Reach};

/// A cluster whose cards have been read.
fn cluster() -> Cluster {
    of("")
}

fn of(platform: &str) -> Cluster {
    let mut cluster = Cluster::with(platform, Gates::default());
    cluster.store.set_reach(Kind::AgentCard, Reach::Listed);
    cluster
}

/// The labels of an agent that speaks A2A.
fn a2a() -> Value {
    json!({"kagenti.io/type": "agent", "protocol.kagenti.io/a2a": ""})
}

fn agent(kind: Kind, name: &str, labels: Value) -> Value {
    workload(kind, name, json!({"metadata": {"labels": labels}}))
}

fn see(cluster: &mut Cluster, kind: Kind, name: &str) {
    cluster.see(kind, agent(kind, name, a2a()));
}

fn owned_by(kind: Kind, name: &str, uid: &str) -> Value {
    json!({"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": name, "uid": uid, "controller": true})
}

/// A card of Deployment `w`; `more` is merged into the object.
fn card(name: &str, more: Value) -> Value {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "team", "uid": format!("card-{name}"), "resourceVersion": "30"},
        "spec": {"syncPeriod": "30s", "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"}},
    });
    json_patch::merge(&mut object, &more);
    object
}

/// The card that is made for Deployment `w`, as it is stored.
fn made(more: Value) -> Value {
    let mut object = card(
        "w-deployment-card",
        json!({"metadata": {"labels": {"app.kubernetes.io/name": "w", "app.kubernetes.io/managed-by": "drawbridge"},
            "ownerReferences": [owned_by(Kind::Deployment, "w", "deployments-w")]}, "spec": {"identityBinding": {}}}),
    );
    json_patch::merge(&mut object, &more);
    object
}

/// The plan about a workload.
fn plan_of(cluster: &Cluster, kind: Kind, name: &str) -> Plan {
    cluster.plan_at(ROW, &Key::new("team", &format!("{}/{name}", kind.plural())), s(100))
}

fn created(plan: &Plan) -> &Value {
    match &plan.ops[..] {
        [Op::Create { kind: Kind::AgentCard, namespace, body }] if namespace == "team" => body,
        other => panic!("{other:?}"),
    }
}

/// What an edit changes, without what it tests.
fn edits(plan: &Plan) -> Vec<Value> {
    let [Op::Edit { kind: Kind::AgentCard, operations, .. }] = &plan.ops[..] else { panic!("{:?}", plan.ops) };
    let operations = operations.as_array().unwrap();
    assert_eq!((&operations[0]["op"], &operations[0]["path"]), (&json!("test"), &json!("/metadata/uid")));
    operations.iter().filter(|operation| operation["op"] != "test").cloned().collect()
}

fn told(plan: &Plan) -> &str {
    match &plan.ops[..] {
        [Op::Report(report)] if report.reason == Reason::NameConflict && report.uid == "deployments-w" => {
            &report.message
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn case_014_a_workload_with_both_labels_gets_a_card_that_it_owns() {
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    let mut wanted = made(json!({}));
    wanted["metadata"].as_object_mut().unwrap().retain(|key, _| key != "uid" && key != "resourceVersion");
    assert_eq!(*created(&plan_of(&cluster, Kind::Deployment, "w")), wanted);
    let all = cluster.plan(ROW);
    assert!(matches!(&all[..], [Op::Create { body, .. }] if *body == wanted), "{all:?}");
}

#[test]
fn case_015_the_signer_is_asked_for_where_workloads_have_identities() {
    for (platform, driver, bound) in
        [("", true, true), ("", false, false), ("spire: required\n", false, true), ("spire: disabled\n", true, false)]
    {
        let mut cluster = of(platform);
        cluster.spiffe_driver(driver);
        see(&mut cluster, Kind::Deployment, "w");
        let plan = plan_of(&cluster, Kind::Deployment, "w");
        assert_eq!(created(&plan)["spec"].get("identityBinding").is_some(), bound, "{platform:?} {driver}");
    }
}

#[test]
fn cases_016_to_019_which_labels_make_a_card() {
    for (labels, wanted) in [
        (json!({"kagenti.io/type": "agent"}), false),
        (json!({"protocol.kagenti.io/a2a": ""}), false),
        (json!({"kagenti.io/type": "tool", "protocol.kagenti.io/mcp": ""}), false),
        (json!({"kagenti.io/type": "Agent", "protocol.kagenti.io/a2a": ""}), false),
        (json!({"kagenti.io/type": "agent", "kagenti.io/protocol": ""}), false),
        (json!({"kagenti.io/type": "agent", "kagenti.io/protocol": "a2a"}), true),
        (json!({"kagenti.io/type": "agent", "kagenti.io/agent-protocol": "a2a"}), true),
    ] {
        let mut cluster = cluster();
        cluster.see(Kind::Deployment, agent(Kind::Deployment, "w", labels.clone()));
        let plan = plan_of(&cluster, Kind::Deployment, "w");
        assert_eq!(!plan.ops.is_empty(), wanted, "{labels}: {plan:?}");
        // When the labels go, the card stays: what reads it says what is missing.
        cluster.see(Kind::AgentCard, made(json!({})));
        assert_eq!(plan_of(&cluster, Kind::Deployment, "w"), Plan::nothing(), "{labels}");
    }
}

#[test]
fn cases_020_and_021_each_kind_of_workload_has_cards_of_its_own_name() {
    let mut cluster = cluster();
    for kind in [Kind::Deployment, Kind::StatefulSet, Kind::Sandbox, Kind::DaemonSet, Kind::CronJob] {
        see(&mut cluster, kind, "s");
    }
    let ops = cluster.plan(ROW);
    let made = |op: &Op| match op {
        Op::Create { body, .. } => {
            assert_eq!(body["spec"]["targetRef"]["apiVersion"], body["metadata"]["ownerReferences"][0]["apiVersion"]);
            format!("{} of {}", body["metadata"]["name"].as_str().unwrap(), body["spec"]["targetRef"]["kind"])
        }
        other => panic!("{other:?}"),
    };
    let names: Vec<_> = ops.iter().map(made).collect();
    let wanted = [
        "s-deployment-card of \"Deployment\"",
        "s-sandbox-card of \"Sandbox\"",
        "s-statefulset-card of \"StatefulSet\"",
    ];
    assert_eq!(names, wanted, "DaemonSets have manual cards only");
}

#[test]
fn cases_012_and_022_to_024_a_card_that_a_person_made_takes_the_place_of_ours() {
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    cluster.see(Kind::AgentCard, card("mine", json!({})));
    assert_eq!(cluster.plan(ROW), [], "22: none is made beside it");
    cluster.see(Kind::AgentCard, made(json!({})));
    let ops = cluster.plan(ROW);
    let key = Key::new("team", "w-deployment-card");
    let gone = Op::Delete { kind: Kind::AgentCard, key, uid: "card-w-deployment-card".to_owned() };
    assert_eq!(ops, [gone], "12, 23: ours goes");
    cluster.lose(Kind::AgentCard, made(json!({})));
    cluster.see(Kind::AgentCard, card("another", json!({})));
    assert_eq!(cluster.plan(ROW), [], "24: which of two counts is said on them");
    for name in ["mine", "another"] {
        cluster.see(Kind::AgentCard, card(name, json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})));
    }
    created(&plan_of(&cluster, Kind::Deployment, "w"));
}

#[test]
fn a_card_of_another_workload_is_no_card_of_this_one() {
    let targets = [json!({"kind": "StatefulSet"}), json!({"name": "x"}), json!({"apiVersion": "apps/v2"})];
    for target in targets {
        let mut cluster = cluster();
        see(&mut cluster, Kind::Deployment, "w");
        cluster.see(Kind::AgentCard, card("mine", json!({"spec": {"targetRef": target}})));
        created(&plan_of(&cluster, Kind::Deployment, "w"));
    }
}

#[test]
fn case_025_what_the_go_operator_made_is_taken_over_where_it_is() {
    let theirs = json!({"app.kubernetes.io/managed-by": "kagenti-operator"});
    let label =
        json!({"op": "replace", "path": "/metadata/labels/app.kubernetes.io~1managed-by", "value": "drawbridge"});
    let owner = owned_by(Kind::Deployment, "w", "deployments-w");
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"});
    for (labels, owners, wanted) in [
        (theirs.clone(), json!([owner]), vec![label.clone()]),
        (
            theirs.clone(),
            Value::Null,
            vec![json!({"op": "add", "path": "/metadata/ownerReferences", "value": [owner]}), label.clone()],
        ),
        (
            theirs,
            json!([other]),
            vec![json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": owner}), label],
        ),
        (json!({}), json!([other]), vec![json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": owner})]),
    ] {
        let mut cluster = cluster();
        see(&mut cluster, Kind::Deployment, "w");
        let more = json!({"metadata": {"labels": labels, "ownerReferences": owners, "finalizers": ["agentcard.kagenti.dev/finalizer"]}});
        cluster.see(Kind::AgentCard, made(more));
        let plan = plan_of(&cluster, Kind::Deployment, "w");
        assert_eq!(edits(&plan), wanted, "{owners}");
        let Op::Edit { operations, .. } = &plan.ops[0] else { unreachable!() };
        if owners.is_null() {
            assert_eq!(operations[1], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "30"}));
        }
    }
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    cluster.see(Kind::AgentCard, made(json!({})));
    assert_eq!(cluster.plan(ROW), [], "at rest nothing is written");
}

#[test]
fn case_026_a_card_of_the_name_that_is_of_something_else_is_told_and_left_alone() {
    let elsewhere = json!({"spec": {"targetRef": {"name": "x"}}});
    let nowhere = json!({"spec": {"targetRef": null}});
    let by_hand = |more: &Value| card("w-deployment-card", more.clone());
    let automatic = |more: &Value| made(more.clone());
    let agent = json!({"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": "Agent", "name": "a", "uid": "a", "controller": true});
    for (object, says) in [
        (automatic(&elsewhere), "is of Deployment x (apps/v1)"),
        (by_hand(&elsewhere), "is of Deployment x (apps/v1), so that"),
        (by_hand(&nowhere), "names no workload in spec.targetRef"),
        (made(json!({"metadata": {"ownerReferences": [agent]}})), "is owned by Agent a"),
        (made(json!({"metadata": {"finalizers": vec!["x".repeat(1_000); 20]}})), "more owners and finalizers"),
    ] {
        let mut cluster = cluster();
        see(&mut cluster, Kind::Deployment, "w");
        cluster.see(Kind::AgentCard, object);
        let plan = plan_of(&cluster, Kind::Deployment, "w");
        let message = told(&plan);
        assert!(
            message.contains("AgentCard w-deployment-card of this namespace") && message.contains(says),
            "{message}"
        );
        assert!(plan.again.is_some());
    }
}

#[test]
fn case_027_a_person_s_card_of_that_very_name_is_never_owned() {
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    cluster.see(Kind::AgentCard, card("w-deployment-card", json!({})));
    assert_eq!(cluster.plan(ROW), []);
}

#[test]
fn case_028_a_card_that_was_deleted_comes_back_and_one_that_is_being_deleted_is_waited_for() {
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    let item = Key::new("team", "deployments/w");
    let ending = made(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["theirs", "agentcard.kagenti.dev/finalizer", "agentcard.kagenti.dev/network-policy"]}}));
    cluster.see(Kind::AgentCard, ending.clone());
    let key = Key::new("team", "w-deployment-card");
    let touched = cluster.touched(ROW, Kind::AgentCard, &key);
    assert!(touched.contains(&item), "its deletion brings the workload back: {touched:?}");
    assert_eq!(plan_of(&cluster, Kind::Deployment, "w"), Plan::nothing());
    // Neither is it adopted any more, nor deleted once more for a person's.
    let mut unowned = ending.clone();
    unowned["metadata"]["ownerReferences"] = Value::Null;
    cluster.see(Kind::AgentCard, unowned.clone());
    assert_eq!(plan_of(&cluster, Kind::Deployment, "w"), Plan::nothing());
    cluster.see(Kind::AgentCard, card("mine", json!({})));
    assert_eq!(plan_of(&cluster, Kind::Deployment, "w"), Plan::nothing());
    cluster.lose(Kind::AgentCard, card("mine", json!({})));
    let released = cluster.plan_at(ROW, &Key::new("team", "agentcards/w-deployment-card"), s(100));
    let removed = [2, 1].map(|at| json!({"op": "remove", "path": format!("/metadata/finalizers/{at}")}));
    assert_eq!(edits(&released), removed, "what is theirs stays");
    cluster.lose(Kind::AgentCard, ending);
    created(&plan_of(&cluster, Kind::Deployment, "w"));
}

/// What a workload of the same name that is gone has left goes with it.
#[test]
fn the_card_of_a_workload_that_was_made_again_is_waited_for() {
    let mut cluster = cluster();
    see(&mut cluster, Kind::Deployment, "w");
    let before = json!({"metadata": {"ownerReferences": [owned_by(Kind::Deployment, "w", "before")]}});
    cluster.see(Kind::AgentCard, made(before));
    assert_eq!(cluster.plan(ROW), []);
}

#[test]
fn finalizers_come_off_in_a_namespace_that_goes_and_off_cards_of_persons() {
    let mut cluster = cluster();
    let ending = card(
        "mine",
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["agentcard.kagenti.dev/finalizer"]}}),
    );
    cluster.see(Kind::AgentCard, ending);
    cluster.lose(Kind::Namespace, json!({"metadata": {"name": "team", "uid": "team"}}));
    let ops = cluster.plan(ROW);
    assert!(matches!(&ops[..], [Op::Edit { key, .. }] if &*key.name == "mine"), "{ops:?}");
    cluster
        .see(Kind::AgentCard, card("mine", json!({"metadata": {"finalizers": ["agentcard.kagenti.dev/finalizer"]}})));
    assert_eq!(cluster.plan(ROW), [], "a living card keeps what is on it");
}

/// Case 29, and its like: a kind that is not served, or not read.
#[test]
fn case_029_nothing_is_made_while_the_kind_is_not_served_or_was_not_read() {
    for reach in [Reach::Unknown, Reach::Absent] {
        let mut cluster = cluster();
        cluster.store.set_reach(Kind::AgentCard, reach);
        see(&mut cluster, Kind::Deployment, "w");
        assert_eq!(cluster.plan(ROW), [], "{reach:?}");
    }
}

#[test]
fn case_030_the_name_label_is_the_workload_s_own_or_its_name() {
    let long = "w".repeat(253);
    for (name, own, wanted) in
        [("w", None, "w".to_owned()), ("w", Some("foo"), "foo".to_owned()), (&*long, None, String::new())]
    {
        let mut cluster = cluster();
        let mut labels = a2a();
        if let Some(own) = own {
            labels["app.kubernetes.io/name"] = json!(own);
        }
        cluster.see(Kind::Deployment, agent(Kind::Deployment, name, labels));
        let plan = plan_of(&cluster, Kind::Deployment, name);
        let metadata = &created(&plan)["metadata"];
        let label = metadata["labels"]["app.kubernetes.io/name"].as_str().unwrap();
        assert!(label.len() <= 63 && metadata["name"].as_str().unwrap().len() <= 253, "{metadata}");
        assert!(wanted.is_empty() || label == wanted, "{label}");
    }
    let of = |name: &str| card_name(WorkloadKind::Deployment, name);
    let (a, b) = (format!("{}a", "w".repeat(252)), format!("{}b", "w".repeat(252)));
    assert_ne!(of(&a), of(&b), "shortened names differ as what they were made from");
    assert_eq!(of("weather-agent"), "weather-agent-deployment-card");
}

#[test]
fn a_workload_that_goes_and_one_that_is_not_there_get_nothing() {
    let mut cluster = cluster();
    let going = workload(
        Kind::Deployment,
        "w",
        json!({"metadata": {"labels": a2a(), "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    cluster.see(Kind::Deployment, going);
    cluster.see(Kind::AgentCard, made(json!({"metadata": {"ownerReferences": null}})));
    assert_eq!(cluster.plan(ROW), []);
    for item in ["deployments/x", "jobs/w", "daemonsets/w", "agentcards/x", "nonsense"] {
        assert_eq!(cluster.plan_at(ROW, &Key::new("team", item), s(100)), Plan::nothing(), "{item}");
    }
}

/// A change that does not concern cards costs no look.
#[test]
fn only_agents_and_what_has_cards_are_looked_at() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, agent(Kind::Deployment, "plain", json!({"app": "x"})));
    see(&mut cluster, Kind::Deployment, "w");
    see(&mut cluster, Kind::CronJob, "c");
    let touched = |kind, name: &str| cluster.touched(ROW, kind, &Key::new("team", name));
    assert_eq!(touched(Kind::Deployment, "plain"), []);
    assert_eq!(touched(Kind::CronJob, "c"), []);
    assert_eq!(touched(Kind::Pod, "w"), []);
    assert_eq!(touched(Kind::Deployment, "w"), [Key::new("team", "deployments/w")]);
    assert_eq!(touched(Kind::Namespace, "team"), [Key::new("team", "deployments/w")]);
}
