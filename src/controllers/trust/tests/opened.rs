//! What a policy of somebody else opens by the name of a port: nobody here knows which port an agent's containers call so.

use serde_json::{Value, json};

use super::Scene;
use crate::controllers::trust::opened::{by_others, unread};
use crate::domain::reason::Reason;
use crate::store::{Kind, Reach};

fn theirs(from: &Value) -> Value {
    json!({"metadata": {"name": "theirs", "uid": "theirs"}, "spec": {"podSelector": {"matchLabels": {"app": "bad"}},
        "policyTypes": ["Ingress"], "ingress": [{"from": [from], "ports": [{"port": "http"}]}]}})
}

fn told(scene: &Scene) -> Option<String> {
    by_others(&scene.cluster.store, ("team", "bad"), &json!({"matchLabels": {"app": "bad"}}))
}

#[test]
fn a_policy_that_opens_a_port_by_its_name_is_told_with_that_name() {
    let mut scene = Scene::new("");
    scene.put(Kind::NetworkPolicy, theirs(&json!({"podSelector": {}})));
    scene.level("enforced");
    scene.settle();
    let said = told(&scene).unwrap();
    assert!(said.contains("theirs ingress[0] lets every Pod of namespace team in on http/TCP"), "{said}");
    assert!(scene.told.contains(&Reason::PolicyOverridden));
}

/// A workload may ask for a label by name or by a list of its values; with one value both say the same.
#[test]
fn a_policy_that_opens_is_told_however_the_workload_asks_for_the_label_that_it_selects() {
    let mut scene = Scene::new("");
    scene.put(Kind::NetworkPolicy, theirs(&json!({"podSelector": {}})));
    scene.level("enforced");
    scene.settle();
    let by = |operator: &str, values: &[&str]| {
        let expression = json!({"key": "app", "operator": operator, "values": values});
        by_others(&scene.cluster.store, ("team", "bad"), &json!({"matchExpressions": [expression]}))
    };
    assert_eq!(by("In", &["bad"]), told(&scene));
    assert!(by("In", &["bad"]).is_some());
    for (operator, values) in [("In", &["bad", "other"][..]), ("In", &["other"]), ("NotIn", &["bad"])] {
        assert_eq!(by(operator, values), None, "{operator} {values:?}: no such label is on every Pod of it");
    }
}

/// However the API server lets a block be written: nobody gets past us by zeros that somebody else reads.
#[test]
fn a_policy_that_opens_a_block_is_told_however_many_zeros_are_written() {
    for (cidr, wanted) in [("0.0.0.0/0000", "0.0.0.0/0"), ("00000::/000", "::/0")] {
        let mut scene = Scene::new("");
        scene.put(Kind::NetworkPolicy, theirs(&json!({"ipBlock": {"cidr": cidr}})));
        scene.level("enforced");
        scene.settle();
        let said = told(&scene).unwrap();
        assert!(said.contains(&format!("lets addresses {wanted} in on http/TCP")), "{said}");
    }
}

/// What no API server stores today may be stored by one that knows more than we do.
#[test]
fn a_policy_that_cannot_be_judged_is_told_as_one_that_may_open_the_agent() {
    let mut scene = Scene::new("");
    scene.put(Kind::NetworkPolicy, theirs(&json!({"ipBlock": {"cidr": "not a block"}})));
    scene.level("enforced");
    scene.settle();
    assert_eq!(told(&scene), None);
    let said = unread(&scene.cluster.store, "team").unwrap();
    assert!(said.contains("NetworkPolicy theirs cannot be judged (spec.ingress[0].from[0].ipBlock.cidr: "), "{said}");
    assert!(scene.told.contains(&Reason::ConfigUnknown));
}

/// On the way in the tier of administrators knows Pods alone: addresses are let in on the name, and Pods are not.
#[test]
fn beneath_the_tier_of_administrators_only_addresses_are_let_in_on_the_name() {
    let block = json!({"ipBlock": {"cidr": "203.0.113.0/24"}});
    for (from, wanted) in [(json!({"podSelector": {}}), None), (block, Some("addresses 203.0.113.0/24 in on http/TCP"))]
    {
        let mut scene = Scene::new("");
        scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Listed);
        scene.put(Kind::NetworkPolicy, theirs(&from));
        scene.level("enforced");
        scene.settle();
        let said = told(&scene);
        match wanted {
            None => assert_eq!(said, None, "{from}"),
            Some(wanted) => assert!(said.as_deref().is_some_and(|said| said.contains(wanted)), "{said:?}"),
        }
    }
}
