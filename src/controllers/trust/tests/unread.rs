//! NetworkPolicies of which a namespace has more than are read, or that are too large: what is ours stays as it is, nobody waits for it, and what
//! somebody else's may open is told.

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

/// A policy of a tenant's that is padded opens the agent as one that is not.
#[test]
fn that_another_s_policy_is_too_large_to_be_read_is_told_of_who_is_cut_off() {
    let mut scene = Scene::new("");
    scene.level("enforced");
    scene.settle();
    let key = Key::new("team", "bad-signature-policy");
    for (blocks, reason) in [(1, Reason::PolicyOverridden), (600, Reason::ConfigUnknown), (1, Reason::PolicyOverridden)]
    {
        let to: Vec<_> =
            (0..blocks).map(|at| json!({"ipBlock": {"cidr": format!("10.0.{}.{}/32", at / 250, at % 250)}})).collect();
        let spec = json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}, {"to": to}]});
        scene.put(Kind::NetworkPolicy, json!({"metadata": {"name": "padded", "uid": "padded"}, "spec": spec}));
        let plan = scene.cluster.plan_at(network_policy::plan::ROW, &key, s(100));
        let [Op::Report(report)] = &plan.ops[..] else { panic!("{plan:?}") };
        assert_eq!(report.reason, reason, "{blocks}");
        assert!(report.message.contains("padded"), "{}", report.message);
        assert_eq!(scene.settle(), Vec::<String>::new(), "{blocks}");
    }
    assert!(scene.told.contains(&Reason::ConfigUnknown));
}

/// An agent in quarantine has no way left by a policy that nobody can change because it is not read.
#[test]
fn who_is_in_quarantine_loses_a_policy_that_is_not_read_and_has_it_back_afterwards() {
    for level in ["enforced", "enforced-all"] {
        let mut scene = Scene::new("");
        scene.put(
            Kind::EndpointSlice,
            json!({"metadata": {"name": "kubernetes", "namespace": "default", "uid": "slice"},
            "endpoints": [{"addresses": ["10.0.0.1"]}], "ports": [{"port": 6443, "protocol": "TCP"}]}),
        );
        scene.level(level);
        scene.settle();
        let before = scene.spec("bad-signature-policy").cloned();
        unread(&mut scene, "bad-signature-policy");
        scene.hold(level, Some("bad"));
        let written = scene.settle();
        let place =
            |what: &str| written.iter().position(|one| one == what).unwrap_or_else(|| panic!("{what}: {written:?}"));
        assert!(place("create drawbridge-quarantine") < place("delete bad-signature-policy"), "{written:?}");
        assert_eq!(scene.ways("bad-1").1, 0, "{level}: {:#?}", scene.objects);
        assert_eq!(scene.settle(), Vec::<String>::new(), "{level}: at rest nothing is written");
        scene.hold(level, None);
        assert!(scene.settle().contains(&"create bad-signature-policy".to_owned()), "{level}");
        assert_eq!(scene.spec("bad-signature-policy").cloned(), before, "{level}");
    }
}

/// Who comes into quarantine without a policy of its own needs none.
#[test]
fn who_is_in_quarantine_gets_no_policy_of_its_own() {
    let mut scene = Scene::new("");
    scene.hold("enforced", Some("new"));
    scene.settle();
    scene.agent(Kind::Deployment, "new");
    scene.card("new", false);
    let written = scene.settle();
    assert!(written.iter().all(|one| !one.contains("new-signature-policy")), "{written:?}");
    assert_eq!(scene.ways("new-1").1, 0);
    scene.hold("enforced", None);
    assert!(scene.settle().contains(&"create new-signature-policy".to_owned()));
}
