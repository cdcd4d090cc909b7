//! The deny and the quarantine in the tier of administrators: they come after what opens who is verified, and go before.

use serde_json::{Value, json};

use super::Scene;
use crate::domain::reason::Reason;
use crate::store::{Kind, Reach};

const OURS: &str = "drawbridge-deny-team";
const HELD: &str = "drawbridge-quarantine-team";

fn served() -> Scene {
    let mut scene = Scene::new("");
    scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Listed);
    scene
}

fn spec<'s>(scene: &'s Scene, name: &str) -> Option<&'s Value> {
    scene.objects.get(&(Kind::ClusterNetworkPolicy, name.to_owned())).map(|object| &object["spec"])
}

fn place(written: &[String], what: &str) -> usize {
    written.iter().position(|one| one == what).unwrap_or_else(|| panic!("{what}: {written:?}"))
}

#[test]
fn where_it_is_served_it_stands_beside_the_deny_and_means_nobody_who_is_verified() {
    let mut scene = served();
    assert_eq!(scene.settle(), Vec::<String>::new());
    scene.level("enforced");
    let written = scene.settle();
    let (deny, ours) = (place(&written, "create drawbridge-default-deny"), place(&written, &format!("create {OURS}")));
    assert!(place(&written, "label good-1") < deny && deny < ours, "{written:?}");
    assert_eq!(scene.settle(), Vec::<String>::new(), "at rest nothing is written");
    let pods = &spec(&scene, OURS).unwrap()["subject"]["pods"];
    assert_eq!(pods["namespaceSelector"], json!({"matchLabels": {"kubernetes.io/metadata.name": "team"}}));
    assert_eq!(pods["podSelector"]["matchExpressions"][0]["operator"], "NotIn");
    let owner = &scene.objects[&(Kind::ClusterNetworkPolicy, OURS.to_owned())]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Namespace"), &json!("team")), "it goes with its namespace");

    scene.level("enforced-all");
    assert!(scene.settle().contains(&format!("edit {OURS}")));
    assert_eq!(spec(&scene, OURS).unwrap()["subject"]["pods"]["podSelector"].get("matchLabels"), None);

    scene.level("off");
    let written = scene.settle();
    let (ours, deny) = (place(&written, &format!("delete {OURS}")), place(&written, "delete drawbridge-default-deny"));
    assert!(ours < deny && deny < place(&written, "label good-1"), "{written:?}");
    assert!(spec(&scene, OURS).is_none());
}

#[test]
fn where_it_is_not_served_nothing_of_it_is_written() {
    for reach in [Reach::Absent, Reach::Unknown] {
        let mut scene = served();
        scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, reach);
        scene.level("enforced");
        assert!(scene.settle().iter().all(|one| !one.contains("drawbridge-deny")));
    }
}

/// What an agent needs to prove itself is left to the NetworkPolicies.
#[test]
fn what_our_policies_let_through_is_left_to_them() {
    let mut scene = served();
    scene.put(Kind::EndpointSlice, json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "s",
        "labels": {"kubernetes.io/service-name": "kubernetes"}}, "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 6443}]}));
    scene.level("enforced");
    scene.settle();
    let spec = spec(&scene, OURS).unwrap().clone();
    assert_eq!(spec["egress"][0]["to"], json!([{"networks": ["192.0.2.1/32"]}]), "{spec:#}");
    assert_eq!((&spec["egress"][0]["action"], &spec["ingress"][0]["action"]), (&json!("Pass"), &json!("Pass")));
    assert_eq!(
        spec["ingress"][0]["from"][0]["namespaces"]["matchLabels"]["kubernetes.io/metadata.name"],
        "kagenti-system"
    );
}

#[test]
fn somebody_elses_of_that_name_is_told_and_left_alone() {
    let mut scene = served();
    scene.put(
        Kind::ClusterNetworkPolicy,
        json!({"metadata": {"name": OURS, "uid": "theirs"}, "spec": {"tier": "Baseline"}}),
    );
    scene.level("enforced");
    let written = scene.settle();
    assert!(written.iter().all(|one| !one.contains(OURS)), "{written:?}");
    assert!(scene.told.contains(&Reason::NameConflict));
    assert_eq!(spec(&scene, OURS), Some(&json!({"tier": "Baseline"})));
}

#[test]
fn one_that_somebody_edited_is_put_back() {
    let mut scene = served();
    scene.level("enforced");
    scene.settle();
    let before = spec(&scene, OURS).cloned();
    let mut object = scene.objects[&(Kind::ClusterNetworkPolicy, OURS.to_owned())].clone();
    object["spec"]["ingress"] = json!([]);
    scene.put(Kind::ClusterNetworkPolicy, object);
    assert_eq!(scene.settle(), [format!("edit {OURS}")]);
    assert_eq!(spec(&scene, OURS).cloned(), before);
}

#[test]
fn who_is_in_quarantine_is_denied_there_too_and_released_again() {
    let mut scene = served();
    let quarantine = |who: Option<&str>| {
        let mut object =
            json!({"metadata": {"name": "team", "uid": "team", "labels": {"agent.kagenti.dev/trust": "enforced"}}});
        if let Some(who) = who {
            object["metadata"]["annotations"] = json!({"agent.kagenti.dev/quarantine": who});
        }
        object
    };
    scene.level("enforced");
    scene.settle();
    scene.put(Kind::Namespace, quarantine(Some("good")));
    let written = scene.settle();
    assert!(place(&written, "create drawbridge-quarantine") < place(&written, &format!("create {HELD}")));
    assert!(spec(&scene, HELD).unwrap()["priority"].as_u64() < spec(&scene, OURS).unwrap()["priority"].as_u64());
    scene.put(Kind::Namespace, quarantine(None));
    scene.settle();
    assert!(spec(&scene, HELD).is_none() && spec(&scene, OURS).is_some());
    assert_eq!(scene.settle(), Vec::<String>::new());
}
