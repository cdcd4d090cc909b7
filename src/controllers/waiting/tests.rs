//! Once per workload and ServiceAccount, and only for those that really wait.

use serde_json::json;

use super::plan::ROW;
use crate::api::observed::{Key, Kind};
use crate::controllers::scaffold::fixtures::{Cluster, account, s, workload};
use crate::controllers::scaffold::plan::{Op, Plan};

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
            "annotations": {"kagenti.io/retry-for": "sa-a"}}});
        let told = Op::Merge { kind, key: Key::new("team", "a"), patch };
        assert_eq!(cluster.plan_at(ROW, &item(kind), s(9)).ops, [told], "{kind:?}");

        let mut annotated = unmet(kind);
        annotated["metadata"]["annotations"] = json!({"kagenti.io/retry-for": "sa-a"});
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
    let touched = (ROW.touched)(&cluster.world, Kind::ServiceAccount, &Key::new("team", "web"));
    assert_eq!(touched, [Key::new("team", "replicasets/web-abc")]);
    assert_eq!(cluster.plan_at(ROW, &touched[0], s(9)).ops.len(), 1);
}
