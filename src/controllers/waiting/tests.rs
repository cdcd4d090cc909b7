//! Once per workload and ServiceAccount, and only for those that really wait.

use serde_json::json;

use super::plan::ROW;
use crate::controllers::scaffold::fixtures::{Cluster, OWN, account, s, workload};
use crate::controllers::scaffold::plan::{Op, Plan};
use crate::store::{Key, Kind};

/// The digest of the one fact `sa-a`.
const RETRY: &str = "20b75ecf1388e88c26b1866f8204f95c";

fn item(kind: Kind) -> Key {
    Key::new("team", &format!("{}/a", kind.plural()))
}

fn unmet(kind: Kind) -> serde_json::Value {
    let status = match kind {
        Kind::DaemonSet => json!({"desiredNumberScheduled": 1, "currentNumberScheduled": 0}),
        Kind::ReplicaSet => json!({"conditions": [{"type": "ReplicaFailure", "status": "True"}]}),
        _ => json!({}),
    };
    workload(kind, "a", json!({"spec": {"replicas": 1}, "status": status}))
}

#[test]
fn those_that_wait_are_told_once_after_the_ordinary_retries() {
    for kind in [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job] {
        let mut cluster = Cluster::new();
        cluster.see(kind, unmet(kind));
        assert_eq!(cluster.plan_at(ROW, &item(kind), s(9)), Plan::nothing(), "{kind:?}: the account is not there");
        cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
        let early = cluster.plan_at(ROW, &item(kind), s(0));
        assert!(early.ops.is_empty() && early.again.is_some(), "{kind:?}: ordinary retries first");
        let patch = json!({"metadata": {"uid": format!("{}-a", kind.plural()),
            "annotations": {"kagenti.io/retry-for": RETRY}}});
        let told = Op::Merge { kind, key: Key::new("team", "a"), patch };
        assert_eq!(cluster.plan_at(ROW, &item(kind), s(9)).ops, [told], "{kind:?}");

        let mut annotated = unmet(kind);
        annotated["metadata"]["annotations"] = json!({"kagenti.io/retry-for": RETRY});
        annotated["metadata"]["resourceVersion"] = json!("11");
        cluster.see(kind, annotated);
        assert_eq!(cluster.plan_at(ROW, &item(kind), s(999)), Plan::nothing(), "{kind:?}: once");
    }
}

#[test]
fn nobody_else_is_annotated() {
    let ready = |kind| {
        let mut cluster = Cluster::new();
        cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
        (cluster, item(kind))
    };
    let (mut cluster, key) = ready(Kind::ReplicaSet);
    cluster.see(
        Kind::ReplicaSet,
        workload(Kind::ReplicaSet, "a", json!({"spec": {"replicas": 1}, "status": {"replicas": 1}})),
    );
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "has its Pods");

    let (mut cluster, key) = ready(Kind::StatefulSet);
    let mut own = unmet(Kind::StatefulSet);
    own["spec"]["template"]["spec"]["serviceAccountName"] = json!("mine");
    cluster.see(Kind::StatefulSet, own);
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "waits for something else");

    let (mut cluster, key) = ready(Kind::Job);
    cluster.see(Kind::ServiceAccount, {
        let mut foreign = account("a", false, json!([]));
        foreign["metadata"]["resourceVersion"] = json!("21");
        foreign
    });
    cluster.see(Kind::Job, unmet(Kind::Job));
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "a foreign account helps nobody");
}

#[test]
fn a_replica_set_waits_for_the_account_of_its_deployment() {
    let mut cluster = Cluster::new();
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true});
    let more = json!({"metadata": {"ownerReferences": [owner]},
        "spec": {"replicas": 1, "template": {"metadata": {"labels": {"pod-template-hash": "abc"}}}},
        "status": {"conditions": [{"type": "ReplicaFailure", "status": "True"}]}});
    cluster.see(Kind::ReplicaSet, workload(Kind::ReplicaSet, "web-abc", more));
    cluster.see(Kind::ServiceAccount, account("web", true, json!([])));
    let touched = cluster.touched(ROW, Kind::ServiceAccount, &Key::new("team", "web"));
    assert_eq!(touched, [Key::new("team", "replicasets/web-abc")]);
    assert_eq!(cluster.plan_at(ROW, &touched[0], s(9)).ops.len(), 1);
}

fn noted(kind: Kind, more: serde_json::Value) -> serde_json::Value {
    let mut object = unmet(kind);
    object["metadata"]["annotations"] = json!({"kagenti.io/retry-for": RETRY});
    object["metadata"]["resourceVersion"] = json!("11");
    json_patch::merge(&mut object, &more);
    object
}

fn taken(kind: Kind, keys: &[&str]) -> Op {
    let gone: serde_json::Map<_, _> = keys.iter().map(|key| ((*key).to_owned(), serde_json::Value::Null)).collect();
    let patch = json!({"metadata": {"uid": format!("{}-a", kind.plural()), "annotations": gone}});
    Op::Merge { kind, key: Key::new("team", "a"), patch }
}

#[test]
fn mend_10_a_note_goes_once_nothing_waits_and_when_the_enrolment_is_over() {
    for kind in [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job] {
        let mut cluster = Cluster::new();
        cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
        cluster.see(kind, noted(kind, json!({})));
        assert_eq!(cluster.plan_at(ROW, &item(kind), s(9)), Plan::nothing(), "{kind:?}: it waits");
        let met = json!({"metadata": {"resourceVersion": "12"},
            "status": {"replicas": 1, "conditions": [], "currentNumberScheduled": 1, "active": 1}});
        cluster.see(kind, noted(kind, met.clone()));
        let (key, removal) = (item(kind), taken(kind, &["kagenti.io/retry-for"]));
        assert_eq!(cluster.touched(ROW, kind, &Key::new("team", "a")), std::slice::from_ref(&key), "{kind:?}");
        assert_eq!((ROW.of_namespace)(&cluster.store, "team"), std::slice::from_ref(&key), "{kind:?}: after a restart");
        assert_eq!(cluster.plan_at(ROW, &key, s(9)).ops, [removal], "{kind:?}");
        let mut clean = noted(kind, met);
        clean["metadata"]["annotations"] = json!({});
        clean["metadata"]["resourceVersion"] = json!("13");
        cluster.see(kind, clean);
        assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "{kind:?}: over");
    }
    // A StatefulSet that never got its Pods, and whose AgentRuntime is gone.
    let mut cluster = Cluster::new();
    cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
    let plain = json!({"spec": {"template": {"metadata": {"labels": {"kagenti.io/type": null}}}}});
    cluster.see(Kind::StatefulSet, noted(Kind::StatefulSet, plain));
    let op = taken(Kind::StatefulSet, &["kagenti.io/retry-for"]);
    assert_eq!(cluster.plan_at(ROW, &item(Kind::StatefulSet), s(9)).ops, [op]);
}

/// The Deployment controller copies annotations to ReplicaSets and never takes one off, and `kubectl rollout undo` copies them back.
#[test]
fn mend_10_copies_of_an_annotation_go_with_the_original() {
    let set = |version: &str| {
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a", "uid": "deployments-a", "controller": true});
        let metadata = json!({"ownerReferences": [owner], "resourceVersion": version, "annotations": {"kagenti.io/rolled-for": "h"}});
        workload(Kind::ReplicaSet, "a", json!({"metadata": metadata, "status": {"replicas": 1}}))
    };
    let mut cluster = Cluster::new();
    cluster.see(Kind::ReplicaSet, set("11"));
    let key = item(Kind::ReplicaSet);
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "nobody knows whose copy it is");
    let annotated = json!({"metadata": {"annotations": {"kagenti.io/rolled-for": "h"}}});
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", annotated));
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "it stands, and would be copied again");
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"metadata": {"resourceVersion": "12"}})));
    cluster.see(Kind::ReplicaSet, set("13"));
    let touched = cluster.touched(ROW, Kind::ReplicaSet, &Key::new("team", "a"));
    assert_eq!(touched, std::slice::from_ref(&key));
    assert_eq!(cluster.plan_at(ROW, &key, s(9)).ops, [taken(Kind::ReplicaSet, &["kagenti.io/rolled-for"])]);
    // The last change may be the Deployment's: nothing of the ReplicaSet need change after it.
    let plain = json!({"metadata": {"resourceVersion": "14"},
        "spec": {"template": {"metadata": {"labels": {"kagenti.io/type": null}}}}});
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", plain));
    let touched = cluster.touched(ROW, Kind::Deployment, &Key::new("team", "a"));
    assert_eq!(touched, std::slice::from_ref(&key));
}

#[test]
fn mend_10_the_table_names_the_managers_that_write() {
    use crate::controllers::{agent, agent_build, enrolment, gate, looks, resign};
    use crate::domain::{keys, written};
    for (controller, manager) in [
        (super::plan::NAME, written::MANAGER_WAITING),
        (gate::plan::NAME, written::MANAGER_GATE),
        (resign::plan::NAME, written::MANAGER_RESIGN),
        (agent_build::plan::NAME, written::MANAGER_BUILD),
        (looks::TRUST_LABEL, written::MANAGER_TRUST_LABEL),
        (enrolment::plan::NAME, keys::MANAGER_ENROLMENT),
        (agent::plan::NAME, keys::MANAGER_AGENT),
    ] {
        assert_eq!(controller.manager(), manager);
        assert!(written::WRITTEN.iter().any(|row| row.by == manager), "{manager}");
    }
}

/// One annotation, whatever is waited for, and once for all of it.
#[test]
fn what_waits_for_two_things_is_told_once_when_both_are_there() {
    let mut cluster = Cluster::new();
    let labels = json!({"agent.kagenti.dev/trust": "enforced"});
    cluster.see(Kind::Namespace, json!({"metadata": {"name": "team", "uid": "team", "labels": labels}}));
    cluster.see(Kind::ReplicaSet, unmet(Kind::ReplicaSet));
    cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
    let key = item(Kind::ReplicaSet);
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "the policy is not there");
    let mine = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    let policy = |labels: serde_json::Value, version: &str| {
        json!({"metadata": {"name": "drawbridge-default-deny", "namespace": "team",
        "uid": "np", "resourceVersion": version, "labels": labels}, "spec": {"podSelector": {}}})
    };
    cluster.see(Kind::NetworkPolicy, policy(json!({}), "30"));
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "a foreign one helps nobody");
    cluster.see(Kind::NetworkPolicy, policy(mine, "31"));
    let touched = cluster.touched(ROW, Kind::NetworkPolicy, &Key::new("team", "drawbridge-default-deny"));
    assert_eq!(touched, std::slice::from_ref(&key));
    assert_eq!(cluster.plan_at(ROW, &key, s(9)), Plan::nothing(), "the API server has not been told of it");
    let told = json!({"metadata": {"name": "drawbridge-trust", "namespace": OWN, "uid": "t", "resourceVersion": "32",
        "annotations": {"agent.kagenti.dev/armed": "other,team"}}});
    cluster.see(Kind::ServiceAccount, told);
    let touched = cluster.touched(ROW, Kind::ServiceAccount, &Key::new(OWN, "drawbridge-trust"));
    assert_eq!(touched, std::slice::from_ref(&key));
    let ops = cluster.plan_at(ROW, &key, s(9)).ops;
    let [Op::Merge { patch, .. }] = &ops[..] else { panic!("{ops:?}") };
    let digest = patch["metadata"]["annotations"]["kagenti.io/retry-for"].as_str().unwrap();
    assert!(digest.len() == 32 && digest != RETRY);
    let mut told = unmet(Kind::ReplicaSet);
    told["metadata"]["annotations"] = json!({"kagenti.io/retry-for": digest});
    told["metadata"]["resourceVersion"] = json!("11");
    cluster.see(Kind::ReplicaSet, told);
    assert_eq!(cluster.plan_at(ROW, &key, s(999)), Plan::nothing(), "once");
}
