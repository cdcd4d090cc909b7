//! The plan as a table, over every kind that makes Pods.

use serde_json::{Value, json};

use super::plan::ROW;
use crate::config::gates::Gates;
use crate::controllers::scaffold::fixtures::{Cluster, account, change, s, workload};
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

fn created(ops: &[Op]) -> Vec<&Value> {
    ops.iter()
        .map(|op| match op {
            Op::Create { kind: Kind::ServiceAccount, body, .. } => body,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn owners(kind: &str, api: &str, name: &str, uid: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "name": name, "uid": uid})
}

#[test]
fn every_kind_that_makes_pods_gets_one_owned_and_labelled() {
    for (kind, api) in [
        (Kind::Deployment, "apps/v1"),
        (Kind::StatefulSet, "apps/v1"),
        (Kind::DaemonSet, "apps/v1"),
        (Kind::ReplicaSet, "apps/v1"),
        (Kind::Job, "batch/v1"),
        (Kind::CronJob, "batch/v1"),
    ] {
        let mut cluster = Cluster::new();
        cluster.see(kind, workload(kind, "a", json!({})));
        let ops = cluster.plan(ROW);
        let [body] = created(&ops)[..] else { panic!("{kind:?}: {ops:?}") };
        let uid = format!("{}-a", kind.plural());
        let expected = json!({"metadata": {
            "name": "a", "namespace": "team",
            "labels": {"kagenti.io/managed-by": "webhook", "app.kubernetes.io/managed-by": "drawbridge"},
            "ownerReferences": [owners(kind.as_str(), api, "a", &uid)],
        }});
        assert_eq!(*body, expected, "{kind:?}: no controller, no blockOwnerDeletion, no automount of its own");
    }
}

#[test]
fn automount_is_that_of_the_default_account() {
    for automount in [true, false] {
        let mut cluster = Cluster::new();
        let mut default = account("default", false, json!([]));
        default["automountServiceAccountToken"] = json!(automount);
        cluster.see(Kind::ServiceAccount, default);
        cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
        assert_eq!(created(&cluster.plan(ROW))[0]["automountServiceAccountToken"], json!(automount));
    }
}

#[test]
fn those_that_need_none_get_none() {
    let template = |more: Value| json!({"spec": {"template": more}});
    let table = [
        ("opted out", template(json!({"metadata": {"labels": {"kagenti.io/inject": "disabled"}}}))),
        ("another type", template(json!({"metadata": {"labels": {"kagenti.io/type": "other"}}}))),
        ("a tool, with injectTools off", template(json!({"metadata": {"labels": {"kagenti.io/type": "tool"}}}))),
        ("mode waypoint", template(json!({"metadata": {"annotations": {"kagenti.io/authbridge-mode": "waypoint"}}}))),
        ("no SPIRE", template(json!({"metadata": {"labels": {"kagenti.io/spiffe-helper-inject": "false"}}}))),
        ("names its own", template(json!({"spec": {"serviceAccountName": "mine"}}))),
        ("names its own in the old field", template(json!({"spec": {"serviceAccount": "mine"}}))),
        ("hostNetwork", template(json!({"spec": {"hostNetwork": true}}))),
    ];
    for (what, more) in table {
        let mut cluster = Cluster::new();
        cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", more));
        assert_eq!(cluster.plan(ROW), [], "{what}");
    }
    let mut cluster = Cluster::with("spire: disabled\n", Gates::default());
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    assert_eq!(cluster.plan(ROW), [], "SPIRE switched off");
    let mut cluster = Cluster::new();
    cluster
        .see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"metadata": {"namespace": "kagenti-system"}})));
    assert_eq!(cluster.plan(ROW), [], "our own namespace");
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({"metadata": {"namespace": "unseen"}})));
    assert_eq!(cluster.plan(ROW), [], "a namespace that is not known yet may be opted out");
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    let ending = json!({"metadata": {"name": "team", "uid": "team", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    cluster.see(Kind::Namespace, ending);
    assert_eq!(cluster.plan(ROW), [], "nothing can be created in a namespace that goes away");
}

#[test]
fn what_a_deployment_or_cron_job_controls_is_theirs_to_answer_for() {
    let controlled = |kind: &str, api: &str, name: &str| {
        let mut owner = owners(kind, api, name, "u");
        owner["controller"] = json!(true);
        json!({"metadata": {"ownerReferences": [owner]}})
    };
    let mut cluster = Cluster::new();
    let hash = json!({"spec": {"template": {"metadata": {"labels": {"pod-template-hash": "abc"}}}}});
    let mut replica_set = workload(Kind::ReplicaSet, "web-abc", hash.clone());
    cluster.see(Kind::ReplicaSet, {
        let mut controlled_one = replica_set.clone();
        json_patch::merge(&mut controlled_one, &controlled("Deployment", "apps/v1", "web"));
        controlled_one
    });
    cluster.see(Kind::Job, workload(Kind::Job, "nightly-1", controlled("CronJob", "batch/v1", "nightly")));
    assert_eq!(cluster.plan(ROW), []);

    // Left behind without its Deployment, the Pods still ask under the Deployment's name.
    replica_set["metadata"]["ownerReferences"] = json!([]);
    cluster.see(Kind::ReplicaSet, replica_set);
    cluster.see(Kind::Job, workload(Kind::Job, "nightly-1", controlled("JobSet", "jobset.x-k8s.io/v1", "set")));
    let ops = cluster.plan(ROW);
    let names: Vec<_> = created(&ops).iter().map(|body| body["metadata"]["name"].clone()).collect();
    assert_eq!(names, [json!("nightly-1"), json!("web")]);
}

#[test]
fn ours_gets_every_user_as_owner_and_loses_the_idle_ones_but_never_the_last() {
    let mut cluster = Cluster::new();
    let deployment = owners("Deployment", "apps/v1", "a", "deployments-a");
    let other = owners("Sandbox", "agents.x-k8s.io/v1", "x", "x");
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    cluster.see(Kind::ServiceAccount, account("a", true, json!([other, deployment])));
    assert_eq!(cluster.plan(ROW), [], "as it should be");

    cluster.see(Kind::StatefulSet, workload(Kind::StatefulSet, "a", json!({})));
    let stateful = owners("StatefulSet", "apps/v1", "a", "statefulsets-a");
    let edit = |owners: Value| Op::Edit {
        kind: Kind::ServiceAccount,
        key: Key::new("team", "a"),
        operations: json!([
            {"op": "test", "path": "/metadata/uid", "value": "sa-a"},
            {"op": "test", "path": "/metadata/labels/kagenti.io~1managed-by", "value": "webhook"},
            {"op": "test", "path": "/metadata/ownerReferences", "value": [other, deployment]},
            {"op": "add", "path": "/metadata/ownerReferences", "value": owners},
        ]),
    };
    assert_eq!(cluster.plan(ROW), [edit(json!([other, deployment, stateful]))]);

    let opted_out = json!({"metadata": {"resourceVersion": "11"},
        "spec": {"template": {"metadata": {"labels": {"kagenti.io/inject": "disabled"}}}}});
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", opted_out.clone()));
    assert_eq!(cluster.plan(ROW), [edit(json!([other, stateful]))], "others' references stay");
    cluster.see(Kind::StatefulSet, workload(Kind::StatefulSet, "a", opted_out));
    assert_eq!(cluster.plan(ROW), [], "the last owner stays, or the object would stay for ever");
}

#[test]
fn one_without_owners_is_taken_only_as_it_was_seen() {
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    cluster.see(Kind::ServiceAccount, account("a", true, json!([])));
    let ops = cluster.plan(ROW);
    let [Op::Edit { operations, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(operations[2], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "20"}));
    assert_eq!(operations[3]["value"], json!([owners("Deployment", "apps/v1", "a", "deployments-a")]));
}

#[test]
fn g6_a_foreign_one_is_named_and_never_touched() {
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    cluster.see(Kind::ServiceAccount, account("a", false, json!([])));
    let ops = cluster.plan(ROW);
    let [Op::Report(report)] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(
        (report.reason, report.kind, &*report.uid),
        (Reason::ServiceAccountConflict, Kind::Deployment, "deployments-a")
    );
    assert!(report.message.contains("serviceAccountName") && report.message.contains("kagenti.io/managed-by=webhook"));
    assert!(report.message.len() <= 1024);
}

/// Every Pod of the namespace that names none runs under it, and would lose it with the workload that owned it.
#[test]
fn default_is_nobodys_to_be_made_owned_or_handed_over() {
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "default", json!({})));
    assert_eq!(cluster.plan(ROW), [], "Kubernetes makes it");
    cluster.see(Kind::ServiceAccount, account("default", false, json!([])));
    let ops = cluster.plan(ROW);
    let [Op::Report(report)] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(report.reason, Reason::ServiceAccountConflict);
    assert!(report.message.contains("give the workload another name"), "{}", report.message);
    assert!(!report.message.contains("kubectl"), "{}", report.message);
    // Whoever labels it all the same, or did so when that was the advice: the webhook refuses their Pods as before, and so it is said as before.
    let labelled = |owners: Value, version: &str| {
        let mut object = account("default", true, owners);
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let conflict = ops;
    cluster.see(Kind::ServiceAccount, labelled(json!([]), "21"));
    assert_eq!(cluster.plan(ROW), conflict, "no workload becomes its owner");
    let deployment = owners("Deployment", "apps/v1", "default", "deployments-default");
    let other = owners("Sandbox", "agents.x-k8s.io/v1", "x", "x");
    cluster.see(Kind::ServiceAccount, labelled(json!([other, deployment]), "22"));
    let ops = cluster.plan(ROW);
    let [told @ Op::Report(_), Op::Edit { operations, .. }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!((told, &operations[3]["value"]), (&conflict[0], &json!([other])), "and none stays");
    // Of an account that nobody asks for nothing is said.
    let mut named = workload(Kind::Deployment, "default", json!({}));
    named["metadata"]["resourceVersion"] = json!("23");
    named["spec"]["template"]["spec"]["serviceAccountName"] = json!("mine");
    cluster.see(Kind::Deployment, named);
    cluster.see(Kind::ServiceAccount, labelled(json!([]), "24"));
    assert_eq!(cluster.plan(ROW), []);
}

#[test]
fn an_answer_counts_at_once_and_late_events_do_not_undo_it() {
    let mut cluster = Cluster::new();
    cluster.see(Kind::Deployment, workload(Kind::Deployment, "a", json!({})));
    let owner = owners("Deployment", "apps/v1", "a", "deployments-a");
    let made = account("a", true, json!([owner]));
    cluster.see(Kind::ServiceAccount, made.clone());
    assert_eq!(cluster.plan(ROW), [], "the answer to the creation");
    let mut late = account("a", true, json!([]));
    late["metadata"]["resourceVersion"] = json!("19");
    assert!(!cluster.store.apply(&change(Kind::ServiceAccount, late), s(1)));
    assert_eq!(cluster.plan(ROW), []);
    let mut gone = change(Kind::ServiceAccount, made.clone());
    (gone.now, gone.version) = (None, 30);
    assert!(cluster.store.apply(&gone, s(1)));
    assert!(!cluster.store.apply(&change(Kind::ServiceAccount, made), s(1)), "a late answer does not revive it");
    assert_eq!(cluster.plan(ROW).len(), 1, "deleted by a person: made again");
}

/// A workload that is not labelled, and an AgentRuntime on it.
fn governed(kind: Kind, name: &str, more: Value) -> [(Kind, Value); 2] {
    let mut plain = workload(kind, name, json!({}));
    let at = if kind == Kind::CronJob { "/spec/jobTemplate/spec/template" } else { "/spec/template" };
    plain.pointer_mut(at).unwrap()["metadata"] = json!({"labels": {"app": "x"}});
    let mut runtime = json!({
        "metadata": {"name": "art", "namespace": "team", "uid": "art", "resourceVersion": "30",
            "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"type": "agent", "targetRef": {"apiVersion": kind.api_version(), "kind": kind.as_str(), "name": name}},
    });
    json_patch::merge(&mut runtime, &more);
    [(kind, plain), (Kind::AgentRuntime, runtime)]
}

#[test]
fn an_agent_runtime_asks_for_it_ahead_of_the_label_in_any_order_of_arrival() {
    for kind in [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet, Kind::CronJob] {
        for reversed in [false, true] {
            let mut objects = governed(kind, "a", json!({}));
            if reversed {
                objects.reverse();
            }
            let mut cluster = Cluster::new();
            for (at, (kind, object)) in objects.into_iter().enumerate() {
                assert_eq!(cluster.plan(ROW), [], "{kind:?}: {at} is not enough");
                cluster.see(kind, object);
                cluster.settle();
            }
            let ops = cluster.plan(ROW);
            assert_eq!(created(&ops).len(), 1, "{kind:?}");
            assert_eq!(created(&ops)[0]["metadata"]["ownerReferences"][0]["uid"], format!("{}-a", kind.plural()));
            let touched = cluster.touched(ROW, Kind::AgentRuntime, &Key::new("team", "art"));
            assert_eq!(touched, [Key::new("team", "a")], "{kind:?}");
        }
    }
}

#[test]
fn an_agent_runtime_asks_for_nothing_when_it_ends_names_nobody_or_is_not_injected() {
    let gone = json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}});
    let elsewhere = json!({"spec": {"targetRef": {"name": "b"}}});
    let tool = json!({"spec": {"type": "tool"}});
    for more in [gone, elsewhere, tool] {
        let mut cluster = Cluster::new();
        for (kind, object) in governed(Kind::Deployment, "a", more.clone()) {
            cluster.see(kind, object);
        }
        cluster.settle();
        assert_eq!(cluster.plan(ROW), [], "{more}");
    }
    let mut cluster = Cluster::new();
    let [(kind, mut own), runtime] = governed(Kind::Deployment, "a", json!({}));
    own["spec"]["template"]["spec"]["serviceAccountName"] = json!("mine");
    cluster.see(kind, own);
    cluster.see(runtime.0, runtime.1);
    cluster.settle();
    assert_eq!(cluster.plan(ROW), [], "the template names its own");
}

#[test]
fn d18_names_may_be_as_long_as_kubernetes_allows() {
    // A workload's name is a DNS subdomain, and so is a ServiceAccount's: nothing is cut, so nothing can collide.
    for name in ["a".repeat(253), format!("{}.{}", "a".repeat(63), "b".repeat(189)), "1a.b-c".to_owned()] {
        let mut cluster = Cluster::new();
        cluster.see(Kind::StatefulSet, workload(Kind::StatefulSet, &name, json!({})));
        let ops = cluster.plan(ROW);
        assert_eq!(created(&ops)[0]["metadata"]["name"], name);
    }
}
