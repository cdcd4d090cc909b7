//! NetworkPolicies of which a namespace has more than are read: what is ours stays as it is, and nobody waits for it.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::controllers::scaffold::fixtures::change;
use crate::store::{Observed, Over};

/// There is no room any more for the one that is stored under that name.
fn unread(scene: &mut Scene, name: &str) {
    scene.version += 1;
    let mut object = scene.objects[&(Kind::NetworkPolicy, name.to_owned())].clone();
    object["metadata"]["resourceVersion"] = scene.version.to_string().into();
    let mut change = change(Kind::NetworkPolicy, object);
    let now = change.now.take().unwrap();
    let what = now.what.slim(Over::Count).unwrap();
    change.now = Some(Arc::new(Observed { uid: now.uid.clone(), version: now.version, what }));
    assert!(scene.cluster.store.apply(&change, s(0)));
}

#[test]
fn an_agent_s_policy_that_is_not_read_stays_as_it_is_is_told_and_goes_with_enforcement() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    unread(&mut scene, "good-signature-policy");
    scene.told.clear();
    assert_eq!(scene.settle(), Vec::<String>::new());
    assert!(scene.told.contains(&Reason::ConfigUnknown), "{:?}", scene.told);

    // Trust is lost: what it opens is opened for Pods with the label alone, and that is taken away.
    scene.card("good", false);
    assert_eq!(scene.settle(), ["label good-1"]);
    assert!(!scene.is_labelled("good-1"));
    scene.level("off");
    assert!(scene.settle().contains(&"delete good-signature-policy".to_owned()));
}

#[test]
fn who_fills_a_namespace_with_policies_does_not_hold_up_what_cuts_off() {
    let mut scene = Scene::new("");
    let ours = json!({"managed-by": "drawbridge", "app.kubernetes.io/managed-by": "drawbridge"});
    let planted = json!({"metadata": {"name": "good-signature-policy", "uid": "planted", "labels": ours}, "spec": {"podSelector": {}}});
    scene.put(Kind::NetworkPolicy, planted);
    unread(&mut scene, "good-signature-policy");
    scene.level("enforced");
    scene.settle();
    assert!(scene.spec(DENY).is_some());
}

#[test]
fn that_another_s_policy_is_not_read_is_told_of_who_is_cut_off() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    scene.put(Kind::NetworkPolicy, json!({"metadata": {"name": "more", "uid": "more"}, "spec": {"podSelector": {}}}));
    unread(&mut scene, "more");
    scene.told.clear();
    let key = Key::new("team", "bad-signature-policy");
    let plan = scene.cluster.plan_at(network_policy::plan::ROW, &key, s(100));
    let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
    assert_eq!(report.reason, Reason::ConfigUnknown);
    assert!(report.message.contains("NetworkPolicy more is one too many"), "{}", report.message);
    assert_eq!(scene.settle(), Vec::<String>::new());
}
