//! What is planned for workloads that sign their card, as a table over their kinds and over what is there already.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::plan::ROW;
use crate::controllers::scaffold::fixtures::{Cluster, s, workload};
use crate::controllers::scaffold::plan::{Item, Op};
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Observed, Over, Reach, change_of};

fn at(kind: Kind) -> &'static str {
    if kind == Kind::Sandbox { "podTemplate" } else { "template" }
}

/// A workload whose template asks for a signature; `more` is merged into the template.
fn signing(kind: Kind, name: &str, more: Value) -> Value {
    let mut template = json!({
        "metadata": {"labels": {"kagenti.io/type": "agent"}, "annotations": {"agentcard.kagenti.dev/sign": "true"}},
        "spec": {"containers": [{"name": "app", "image": "i"}]},
    });
    json_patch::merge(&mut template, &more);
    let mut object = workload(kind, name, json!({}));
    object["spec"] = json!({at(kind): template});
    object
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::new();
    for kind in [Kind::SignedCard, Kind::Role, Kind::RoleBinding] {
        cluster.store.set_reach(kind, Reach::Listed);
    }
    cluster
}

/// What the API server has made of a plan.
fn carried_out(cluster: &mut Cluster, ops: &[Op]) {
    for (number, op) in ops.iter().enumerate() {
        let Op::Ensure { kind, body, .. } = op else { panic!("{op:?}") };
        let mut body = body.clone();
        body["metadata"]["uid"] = format!("{}-uid", kind.plural()).into();
        body["metadata"]["resourceVersion"] = format!("{}", 100 + number).into();
        cluster.see(*kind, body);
    }
}

fn kinds(ops: &[Op]) -> Vec<(&'static str, Kind)> {
    ops.iter().map(|op| (op.asks().0, op.asks().1)).collect()
}

const MADE: [(&str, Kind); 3] = [("create", Kind::Role), ("create", Kind::RoleBinding), ("create", Kind::SignedCard)];
const GONE: [(&str, Kind); 3] = [("delete", Kind::RoleBinding), ("delete", Kind::Role), ("delete", Kind::SignedCard)];

#[test]
fn every_kind_that_has_a_card_gets_one_right_on_one_config_map_and_the_config_map_last() {
    for kind in [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet, Kind::Sandbox] {
        let mut cluster = cluster();
        cluster.see(kind, signing(kind, "w", json!({})));
        let ops = cluster.plan(ROW);
        assert_eq!(kinds(&ops), MADE, "{kind:?}");
        let bodies: Vec<&Value> = ops
            .iter()
            .map(|op| match op {
                Op::Ensure { body, owner, .. } => {
                    assert_eq!(*owner, format!("{}-w", kind.plural()));
                    body
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(
            bodies[0]["rules"],
            json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["w-card-signed"], "verbs": ["get", "patch"]}])
        );
        assert_eq!(
            bodies[1]["roleRef"],
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "w-card-signed"})
        );
        let account = json!([{"kind": "ServiceAccount", "name": "w", "namespace": "team"}]);
        assert_eq!(bodies[1]["subjects"], account, "the account that its Pods get");
        assert_eq!(bodies[2]["metadata"]["annotations"], json!({"agentcard.kagenti.dev/awaits-signature": "true"}));
        assert!(bodies[2].get("data").is_none());
        for body in bodies {
            assert_eq!(body["metadata"]["name"], "w-card-signed");
            assert_eq!(body["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "drawbridge"}));
            let owners = body["metadata"]["ownerReferences"].as_array().unwrap();
            assert!(owners.len() == 1 && owners[0]["controller"] == true && owners[0]["kind"] == kind.as_str());
        }
        carried_out(&mut cluster, &ops);
        assert_eq!(cluster.plan(ROW), [], "{kind:?}: at rest nothing is written");
    }
}

#[test]
fn who_does_not_sign_gets_nothing() {
    let annotation = |value: &str| json!({"metadata": {"annotations": {"agentcard.kagenti.dev/sign": value}}});
    for (what, more) in [
        ("says no", annotation("false")),
        ("says nothing that means something", annotation("yes")),
        ("a tool", json!({"metadata": {"labels": {"kagenti.io/type": "tool"}}})),
        ("is not injected", json!({"metadata": {"labels": {"kagenti.io/inject": "disabled"}}})),
        ("has no SPIFFE identity", json!({"metadata": {"labels": {"kagenti.io/spiffe-helper-inject": "false"}}})),
        ("mode waypoint", json!({"metadata": {"annotations": {"kagenti.io/authbridge-mode": "waypoint"}}})),
    ] {
        let mut cluster = cluster();
        cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", more));
        assert_eq!(cluster.plan(ROW), [], "{what}");
    }
    let mut cluster = cluster();
    cluster.see(Kind::Job, signing(Kind::Job, "w", json!({})));
    assert_eq!(cluster.plan(ROW), [], "no card of a Job is read");
}

#[test]
fn a_named_account_has_the_right_and_another_one_takes_it_over() {
    let named = |account: &str| json!({"spec": {"serviceAccountName": account}});
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", named("one")));
    let ops = cluster.plan(ROW);
    carried_out(&mut cluster, &ops);
    assert_eq!(cluster.plan(ROW), []);
    let mut moved = signing(Kind::Deployment, "w", named("other"));
    moved["metadata"]["resourceVersion"] = "11".into();
    cluster.see(Kind::Deployment, moved);
    let ops = cluster.plan(ROW);
    let [Op::Edit { kind: Kind::RoleBinding, key, operations }] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!(*key, Key::new("team", "w-card-signed"));
    let subjects = json!([{"kind": "ServiceAccount", "name": "other", "namespace": "team"}]);
    assert_eq!(operations[2], json!({"op": "add", "path": "/subjects", "value": subjects}));
}

#[test]
fn what_somebody_widened_is_narrowed_and_what_points_elsewhere_is_made_anew() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
    let ops = cluster.plan(ROW);
    carried_out(&mut cluster, &ops);
    let body = |op: &Op| match op {
        Op::Ensure { body, .. } => body.clone(),
        other => panic!("{other:?}"),
    };
    let (mut role, mut binding) = (body(&ops[0]), body(&ops[1]));
    for (object, uid) in [(&mut role, "roles-uid"), (&mut binding, "rolebindings-uid")] {
        object["metadata"]["uid"] = uid.into();
        object["metadata"]["resourceVersion"] = "200".into();
    }
    role["rules"][0]["resourceNames"] = json!([]);
    binding["roleRef"]["name"] = "admin".into();
    cluster.see(Kind::Role, role);
    cluster.see(Kind::RoleBinding, binding);
    assert_eq!(kinds(&cluster.plan(ROW)), [("patch", Kind::Role), ("delete", Kind::RoleBinding)]);
}

#[test]
fn what_is_somebody_elses_is_told_and_nobody_gets_a_right_on_it() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
    let foreign =
        json!({"metadata": {"name": "w-card-signed", "namespace": "team", "uid": "f", "resourceVersion": "9"}});
    cluster.see(Kind::SignedCard, foreign);
    let ops = cluster.plan(ROW);
    let [Op::Report(report)] = &ops[..] else { panic!("{ops:?}") };
    assert_eq!((report.reason, report.kind), (Reason::NameConflict, Kind::Deployment));
    assert!(report.message.contains("delete configmap w-card-signed"), "{}", report.message);
}

#[test]
fn what_was_made_goes_with_the_annotation_and_stays_while_pods_are_refused() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
    let ops = cluster.plan(ROW);
    carried_out(&mut cluster, &ops);
    let mut refused = signing(Kind::Deployment, "w", json!({"spec": {"hostNetwork": true}}));
    refused["metadata"]["resourceVersion"] = "11".into();
    cluster.see(Kind::Deployment, refused);
    assert_eq!(cluster.plan(ROW), [], "no Pod is made at the moment");
    let mut plain = workload(Kind::Deployment, "w", json!({"metadata": {"resourceVersion": "12"}}));
    cluster.see(Kind::Deployment, plain.clone());
    assert_eq!(kinds(&cluster.plan(ROW)), GONE);
    plain["metadata"]["resourceVersion"] = "13".into();
    cluster.lose(Kind::Deployment, plain);
    assert_eq!(kinds(&cluster.plan(ROW)), GONE, "the workload is gone");
}

#[test]
fn a_workload_that_was_made_again_does_not_inherit_the_signature_of_the_last_one() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
    let ops = cluster.plan(ROW);
    carried_out(&mut cluster, &ops);
    let mut again = signing(Kind::Deployment, "w", json!({}));
    again["metadata"]["uid"] = "another".into();
    again["metadata"]["resourceVersion"] = "12".into();
    cluster.see(Kind::Deployment, again);
    assert_eq!(kinds(&cluster.plan(ROW)), GONE);
    for kind in [Kind::Role, Kind::RoleBinding, Kind::SignedCard] {
        cluster
            .lose(kind, json!({"metadata": {"name": "w-card-signed", "namespace": "team", "resourceVersion": "150"}}));
    }
    assert_eq!(kinds(&cluster.plan(ROW)), MADE);
}

#[test]
fn a_signature_that_is_there_is_left_alone() {
    let mut cluster = cluster();
    cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
    let ops = cluster.plan(ROW);
    carried_out(&mut cluster, &ops);
    let Op::Ensure { body, .. } = &ops[2] else { panic!("{ops:?}") };
    let mut signed = body.clone();
    signed["metadata"]["uid"] = "configmaps-uid".into();
    signed["metadata"]["resourceVersion"] = "300".into();
    signed["metadata"]["annotations"] = json!({});
    cluster.see(Kind::SignedCard, signed);
    assert_eq!(cluster.plan(ROW), []);
}

/// Somebody fills the namespace with Roles under our label: what ours give is not read then, and they are neither taken for others' nor written over and over.
#[test]
fn a_right_that_is_over_a_bound_is_left_as_it_is_and_told() {
    for kind in [Kind::Role, Kind::RoleBinding] {
        let mut cluster = cluster();
        cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
        let ops = cluster.plan(ROW);
        carried_out(&mut cluster, &ops);
        let made = ops.iter().find_map(|op| match op {
            Op::Ensure { kind: of, body, .. } if *of == kind => Some(body.clone()),
            _ => None,
        });
        let mut made = made.unwrap();
        made["metadata"]["uid"] = format!("{}-uid", kind.plural()).into();
        made["metadata"]["resourceVersion"] = "400".into();
        let mut change = change_of(kind, &made.to_string()).unwrap();
        let now = change.now.take().unwrap();
        let what = now.what.slim(Over::Count).unwrap();
        change.now = Some(Arc::new(Observed { uid: now.uid.clone(), version: now.version, what }));
        cluster.store.apply(&change, Duration::ZERO);
        let ops = cluster.plan(ROW);
        let [Op::Report(report)] = &ops[..] else { panic!("{kind:?}: {ops:?}") };
        assert_eq!((report.reason, report.kind), (Reason::ConfigUnknown, Kind::Deployment));
        assert!(
            report.message.starts_with(&format!("{} w-card-signed is one too many", kind.as_str())),
            "{}",
            report.message
        );
        cluster.see(Kind::Deployment, workload(Kind::Deployment, "w", json!({"metadata": {"resourceVersion": "12"}})));
        assert_eq!(kinds(&cluster.plan(ROW)), GONE, "{kind:?}: it goes as any other");
    }
}

/// A Role or RoleBinding of the name that does not carry our label is not watched: only its refusal tells of it.
#[test]
fn what_was_refused_is_told_and_asked_for_again_after_five_minutes() {
    let key = Key::new("team", "w-card-signed");
    for (at, refused, reason, words) in [
        (0, Reason::NameConflict, Reason::NameConflict, "kubectl -n team delete role w-card-signed"),
        (1, Reason::NameConflict, Reason::NameConflict, "kubectl -n team delete rolebinding w-card-signed"),
        (0, Reason::NotPermitted, Reason::NotPermitted, "the server's words"),
        (0, Reason::RunRefused, Reason::ConfigApplyError, "the server's words"),
    ] {
        let mut cluster = cluster();
        cluster.see(Kind::Deployment, signing(Kind::Deployment, "w", json!({})));
        let ops = cluster.plan(ROW);
        let item = Item { controller: ROW.controller, key: key.clone() };
        cluster.memory.failure(&item, s(100), (ops[at].clone(), Some(refused), "the server's words".to_owned()));
        let plan = cluster.plan_at(ROW, &key, s(101));
        let [Op::Report(report)] = &plan.ops[..] else { panic!("{refused:?}: {plan:?}") };
        assert_eq!((report.reason, report.kind, plan.again), (reason, Kind::Deployment, Some(s(299))));
        assert!(report.message.contains(words) && report.message.len() <= 1024, "{}", report.message);
        assert_eq!(kinds(&cluster.plan_at(ROW, &key, s(400)).ops), MADE, "{refused:?}: tried again");
        // Nothing is told of one that signs no more.
        cluster.see(Kind::Deployment, workload(Kind::Deployment, "w", json!({"metadata": {"resourceVersion": "12"}})));
        assert_eq!(cluster.plan_at(ROW, &key, s(101)).ops, [], "{refused:?}");
    }
}
