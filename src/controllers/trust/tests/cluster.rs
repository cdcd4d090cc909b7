//! The deny and the quarantine in the tier of administrators: they come after what opens who is verified, and go before.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Scene;
use crate::config::layers::Layer;
use crate::controllers::scaffold::fixtures::workload;
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

/// Nobody who is verified loses his label before what denies everybody without it is gone: that it cannot be read says not that it is.
#[test]
fn enforcement_does_not_end_while_what_stands_in_the_tier_cannot_be_read() {
    let mut scene = served();
    scene.level("enforced");
    scene.settle();
    scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Unknown);
    scene.level("off");
    assert_eq!(scene.settle(), Vec::<String>::new());
    assert!(scene.is_labelled("good-1") && scene.is_open("good"));
    scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Listed);
    let written = scene.settle();
    let (ours, deny) = (place(&written, &format!("delete {OURS}")), place(&written, "delete drawbridge-default-deny"));
    assert!(ours < deny && deny < place(&written, "label good-1"), "{written:?}");
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

/// Where traces and tokens of the namespace go, as that layer says.
fn says(scene: &mut Scene, layer: &Layer, traces: &str, tokens: &str) {
    let snapshot = Arc::make_mut(&mut scene.cluster.facts.snapshot);
    let view = Arc::make_mut(snapshot.view.namespaces.get_mut("team").unwrap());
    let resolved = Arc::make_mut(&mut view.resolved);
    let trace = resolved.trace.endpoint.clone();
    resolved.trace.endpoint = trace.over(layer.clone(), Some(traces.to_owned()), |_| String::new());
    let exchange = resolved.token_exchange.token_url.clone();
    resolved.token_exchange.token_url = exchange.over(layer.clone(), tokens.to_owned(), Clone::clone);
}

/// What a namespace says of itself its NetworkPolicies open, but for what is a node's own; the tier above them opens what the platform says.
#[test]
fn a_namespace_s_own_word_opens_nothing_in_the_tier_of_administrators() {
    let by_namespace = Layer::NamespaceDefaults("defaults".into());
    for (layer, passed) in [(by_namespace, false), (Layer::PlatformFile, true)] {
        let mut scene = served();
        says(&mut scene, &layer, "http://10.20.30.40:5432", "http://169.254.169.254");
        scene.level("enforced");
        scene.settle();
        let tier = spec(&scene, OURS).unwrap().to_string();
        assert_eq!(tier.contains("10.20.30.40"), passed, "{layer:?}: {tier}");
        let restrictive = scene.spec("bad-signature-policy").unwrap().to_string();
        assert!(restrictive.contains("10.20.30.40/32"), "{layer:?}: {restrictive}");
        assert!(!tier.contains("169.254.169.254") && !restrictive.contains("169.254.169.254"), "{layer:?}");
    }
}

/// The same of an Agent of KAOS: whom it names in its namespace is passed, and its collector only where the platform names it.
#[test]
fn an_agent_of_kaos_opens_its_own_namespace_alone_in_the_tier_of_administrators() {
    let traces = "kaos: {telemetry: {enabled: true, endpoint: \"http://10.1.1.1:4317\"}}\n";
    let mut scene = Scene::new(traces);
    scene.cluster.store.set_reach(Kind::ClusterNetworkPolicy, Reach::Listed);
    scene.put(
        Kind::KaosAgent,
        json!({"metadata": {"name": "clerk", "namespace": "team", "uid": "k", "generation": 1}, "spec": {"modelAPI": "llm", "model": "x",
            "config": {"telemetry": {"enabled": true, "endpoint": "http://10.20.30.40:5432"}}}}),
    );
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "clerk", "uid": "k", "controller": true}]);
    let more = json!({"metadata": {"ownerReferences": owner}, "spec": {"selector": {"matchLabels": {"app": "agent", "agent": "clerk"}}}});
    scene.put(Kind::Deployment, workload(Kind::Deployment, "agent-clerk", more));
    scene.card("agent-clerk", false);
    let model = json!({"metadata": {"name": "modelapi-llm", "namespace": "team", "uid": "llm"},
        "spec": {"selector": {"run": "llm"}, "ports": [{"port": 8000}]}});
    scene.put(Kind::Service, model);
    scene.level("enforced");
    scene.settle();
    let tier = spec(&scene, OURS).unwrap().to_string();
    assert!(tier.contains(r#""run":"llm""#) && tier.contains("10.1.1.1"), "{tier}");
    assert!(!tier.contains("10.20.30.40"), "{tier}");
    let own = scene.spec("agent-clerk-signature-policy").unwrap().to_string();
    assert!(own.contains("10.20.30.40/32") && !own.contains("10.1.1.1"), "{own}");
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
