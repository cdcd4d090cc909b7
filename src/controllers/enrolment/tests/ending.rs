//! How an enrolment ends: what is taken away, what stays, and that nothing waits for ever.

use serde_json::json;

use super::bench::{Bench, TEAM, WEB, deployment, enrolled};
use crate::controllers::enrolment::plan::{NAME, ROW};
use crate::controllers::scaffold::fixtures::s;
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Reach};

fn delete(bench: &mut Bench) {
    bench.change(Kind::AgentRuntime, "art", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
}

fn is_gone(bench: &Bench) -> bool {
    !bench.objects.contains_key(&(Kind::AgentRuntime, "art".to_owned()))
}

#[test]
fn case_045_and_046_the_workload_is_as_it_was() {
    let mut bench = enrolled();
    delete(&mut bench);
    let ops = bench.converge();
    // As later versions of the Go operator have it.
    let (web, before) = (bench.object(Kind::Deployment, "web"), deployment("web"));
    assert_eq!((&web["spec"], &web["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
    assert!(is_gone(&bench));
    let order: Vec<_> = ops.iter().map(Op::asks).map(|(_, kind, _)| kind).collect();
    assert_eq!(order, [Kind::Deployment, Kind::AgentRuntime], "the finalizer goes last");
    assert_eq!(bench.converge(), []);
}

#[test]
fn case_047_a_target_that_is_gone_or_going_holds_nothing_up() {
    let mut bench = enrolled();
    bench.remove(Kind::Deployment, "web");
    delete(&mut bench);
    bench.converge();
    assert!(is_gone(&bench));
    let mut bench = enrolled();
    bench.change(Kind::Deployment, "web", json!({"metadata": {"deletionTimestamp": "2026-05-02T00:00:00Z"}}));
    bench.converge();
    assert_eq!(bench.condition("art", "TargetResolved"), "False/TargetNotFound");
    delete(&mut bench);
    assert!(!bench.converge().iter().any(|op| matches!(op, Op::Apply { .. })));
    assert!(is_gone(&bench));
}

#[test]
fn case_048_the_finalizer_stays_until_the_workload_was_written() {
    let mut bench = enrolled();
    delete(&mut bench);
    let key = Key::new(TEAM, "deployments/web");
    let plan = bench.cluster.plan_at(ROW, &key, s(100));
    assert!(matches!(&plan.ops[..], [Op::Apply { .. }]), "{:?}", plan.ops);
    let item = Item { controller: NAME, key: key.clone() };
    bench.cluster.memory.failure(&item, s(100), (plan.ops[0].clone(), None, "server error".into()));
    assert_eq!(bench.cluster.plan_at(ROW, &key, s(101)).ops, plan.ops, "tried again");
}

#[test]
fn what_the_server_will_never_take_away_holds_nothing_up_and_a_missing_right_does() {
    for (reason, goes) in
        [(Reason::ImmutableSelector, true), (Reason::ConfigApplyError, true), (Reason::NotPermitted, false)]
    {
        let mut bench = enrolled();
        delete(&mut bench);
        let key = Key::new(TEAM, "deployments/web");
        let op = bench.cluster.plan_at(ROW, &key, s(100)).ops[0].clone();
        let item = Item { controller: NAME, key };
        bench.cluster.memory.failure(&item, s(100), (op, Some(reason), "no".into()));
        bench.converge();
        assert_eq!(is_gone(&bench), goes, "{reason:?}");
    }
}

#[test]
fn a_namespace_that_goes_takes_finalizers_and_rolls_nothing() {
    let mut bench = enrolled();
    bench.cluster.see(
        Kind::Namespace,
        json!({"metadata": {"name": TEAM, "uid": TEAM, "resourceVersion": "9000",
        "deletionTimestamp": "2026-05-02T00:00:00Z"}}),
    );
    assert_eq!(bench.converge(), [], "no status, no rollout");
    delete(&mut bench);
    let ops = bench.converge();
    assert!(is_gone(&bench) && ops.len() == 1, "{ops:?}");
}

#[test]
fn an_agent_runtime_that_vanished_without_its_finalizer_is_cleaned_up_after() {
    let mut bench = enrolled();
    bench.remove(Kind::AgentRuntime, "art");
    assert_eq!(
        (ROW.of_namespace)(&bench.cluster.store, TEAM),
        [Key::new(TEAM, "deployments/web")],
        "found after a restart"
    );
    bench.converge();
    assert_eq!(bench.object(Kind::Deployment, "web")["spec"], deployment("web")["spec"]);
    // The definition itself is gone: there are no AgentRuntimes.
    let mut bench = enrolled();
    bench.cluster.store.set_reach(Kind::AgentRuntime, Reach::Absent);
    bench.remove(Kind::AgentRuntime, "art");
    bench.converge();
    assert_eq!(bench.hash(Kind::Deployment, "web"), None);
}

#[test]
fn what_the_go_operator_wrote_is_taken_over_and_goes_with_the_enrolment() {
    let mut bench = Bench::new();
    bench.change(Kind::Deployment, "web", json!({
        "metadata": {
            "labels": {keys::LABEL_TYPE: "agent", keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_UPSTREAM},
            "managedFields": [
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:kagenti.io/type": {}, "f:app.kubernetes.io/managed-by": {}}},
                    "f:spec": {"f:template": {"f:metadata": {
                        "f:labels": {"f:kagenti.io/type": {}}, "f:annotations": {"f:kagenti.io/config-hash": {}}}}}}},
            ],
        },
        "spec": {"template": {"metadata": {
            "labels": {keys::LABEL_TYPE: "agent"}, "annotations": {keys::ANNOTATION_CONFIG_HASH: "57de3ab7"}}}},
    }));
    bench.runtime("art", WEB, json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let ops = bench.converge();
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Edit { .. })).count(), 1, "once");
    let applies = ops.iter().filter_map(|op| match op {
        Op::Apply { body, .. } => {
            Some(&body["spec"]["template"]["metadata"]["annotations"][keys::ANNOTATION_CONFIG_HASH])
        }
        _ => None,
    });
    let first = applies.into_iter().next().unwrap();
    assert_eq!(first, "57de3ab7", "as it stands: nothing rolls by the exchange of operators");
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    delete(&mut bench);
    bench.converge();
    let (web, before) = (bench.object(Kind::Deployment, "web"), deployment("web"));
    assert_eq!((&web["spec"], &web["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
}

/// The manager of every operator that gives it no other name is called as the Go operator's is.
#[test]
fn what_another_operator_called_manager_wrote_stays() {
    let mut bench = Bench::new();
    let labels = json!({keys::LABEL_TYPE: "agent", keys::LABEL_APP_MANAGED_BY: "their-operator"});
    bench.change(
        Kind::Deployment,
        "web",
        json!({
            "metadata": {
                "labels": labels,
                "managedFields": [{"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:kagenti.io/type": {}, "f:app.kubernetes.io/managed-by": {}}},
                    "f:spec": {"f:template": {"f:metadata": {"f:labels": {"f:kagenti.io/type": {}}}}}}}],
            },
            "spec": {"template": {"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}}},
        }),
    );
    let before = bench.object(Kind::Deployment, "web").clone();
    bench.runtime("art", WEB, json!({"metadata": {"finalizers": [keys::FINALIZER]}}));
    let ops = bench.converge();
    assert!(!ops.iter().any(|op| matches!(op, Op::Edit { .. })), "{ops:?}");
    assert_eq!(bench.condition("art", "Ready"), "True/Configured");
    delete(&mut bench);
    bench.converge();
    assert!(is_gone(&bench));
    let web = bench.object(Kind::Deployment, "web");
    assert_eq!((&web["spec"], &web["metadata"]["labels"]), (&before["spec"], &before["metadata"]["labels"]));
    assert_eq!(web["metadata"]["managedFields"], before["metadata"]["managedFields"]);
}

/// Its owner has written his own name there since.
#[test]
fn a_managed_by_that_names_somebody_else_is_not_taken_over_with_the_rest() {
    let mut bench = Bench::new();
    bench.change(
        Kind::Deployment,
        "web",
        json!({
            "metadata": {
                "labels": {keys::LABEL_APP_MANAGED_BY: "their-operator"},
                "managedFields": [{"manager": keys::MANAGER_UPSTREAM, "operation": "Update", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app.kubernetes.io/managed-by": {}}},
                    "f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kagenti.io/config-hash": {}}}}}}}],
            },
            "spec": {"template": {"metadata": {"annotations": {keys::ANNOTATION_CONFIG_HASH: "57de3ab7"}}}},
        }),
    );
    bench.runtime("art", WEB, json!({}));
    let ops = bench.converge();
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Edit { .. })).count(), 1, "the hash is the Go operator's");
    let metadata = &bench.object(Kind::Deployment, "web")["metadata"];
    assert_eq!(metadata["labels"][keys::LABEL_APP_MANAGED_BY], "their-operator");
    let theirs = metadata["managedFields"].as_array().unwrap();
    let theirs = theirs.iter().find(|entry| entry["manager"] == keys::MANAGER_UPSTREAM).unwrap();
    let labels = &theirs["fieldsV1"]["f:metadata"]["f:labels"];
    assert_eq!(labels, &json!({"f:app.kubernetes.io/managed-by": {}}));
}
