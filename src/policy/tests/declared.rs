//! What opens agents where only what is declared is open, held against the other openings, in worlds of their own.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::desired::{
    self, Declaration, Declared, Facts, LARGEST, Peer, Port, VerifiedPeers, Whom, declared, permissive, restrictive,
};
use crate::policy::matrix::Matrix;

fn facts(verified: VerifiedPeers) -> Facts {
    Facts {
        operators: BTreeSet::from(["system".to_owned()]),
        api_server: [(6443, "192.0.2.1".parse().unwrap())].into(),
        egress: vec![Peer { whom: pods("system", "kc"), ports: vec![Port::tcp(80)] }],
        ingress: vec![Peer { whom: pods("system", "gateway"), ports: Vec::new() }],
        verified,
        ..Facts::default()
    }
}

fn pods(namespace: &str, app: &str) -> Whom {
    Whom::Pods { namespace: namespace.into(), labels: BTreeMap::from([("app".into(), app.into())]) }
}

/// Two agents of each namespace: one that is verified, and one that is not; `on` is enabled, `off` is not.
fn everybody() -> Vec<Value> {
    let mut all = vec![pod("system", "kc", &["10.0.9.1"]), pod("system", "gateway", &["10.0.9.2"])];
    for (at, (namespace, enabled)) in [("own", false), ("on", true), ("off", false)].into_iter().enumerate() {
        let labels = if enabled { json!({"kagenti-enabled": "true"}) } else { json!({}) };
        all.push(json!({"kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}));
        for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
            let mut agent = pod(namespace, name, &[&format!("10.0.{at}.{number}")]);
            if name != "c" {
                agent["metadata"]["labels"]["agent.kagenti.dev/signature-verified"] = "true".into();
            }
            all.push(agent);
        }
    }
    all
}

/// The world in which agent `own/a` is opened so.
fn opened(spec: &Value) -> Matrix {
    let mut all = everybody();
    let deny = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    all.extend([policy("own", "deny", &deny), policy("own", "opening", spec)]);
    Matrix::of(&world(&all))
}

fn of_a() -> Value {
    json!({"matchLabels": {"app": "a"}})
}

fn callers() -> impl Strategy<Value = Whom> {
    let namespace = prop_oneof![
        Just(None),
        Just(Some("on".to_owned())),
        Just(Some("off".to_owned())),
        Just(Some("own".to_owned()))
    ];
    let labels = prop_oneof![Just(BTreeMap::new()), Just(BTreeMap::from([("app".to_owned(), "b".to_owned())]))];
    (namespace, labels).prop_map(|(namespace, labels)| Whom::Verified { namespace, labels })
}

fn called() -> impl Strategy<Value = Whom> {
    let namespace = prop_oneof![Just("own"), Just("on"), Just("off")];
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    prop_oneof![
        (namespace, name).prop_map(|(namespace, name)| pods(namespace, name)),
        Just(Whom::Block("10.0.1.1/32".into())),
    ]
}

fn declarations(whom: impl Strategy<Value = Whom>) -> impl Strategy<Value = Vec<Declaration>> {
    let ports = proptest::collection::vec(prop_oneof![Just(Port::tcp(80)), Just(Port::tcp(81))], 0..3);
    let one = (whom, ports, 0..4_u8)
        .prop_map(|(whom, ports, by)| Declaration { peer: Peer { whom, ports }, by: format!("by {by}") });
    proptest::collection::vec(one, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whoever reaches a verified agent by a declaration reaches it under `namespace` or under `enabled`; and it reaches no more, and no less than before
    /// it was verified.
    #[test]
    fn what_is_declared_is_within_the_other_values_and_holds_what_every_agent_has(
        mut egress in declarations(called()),
        mut ingress in declarations(callers()),
    ) {
        let here = facts(VerifiedPeers::Namespace);
        let opening = declared(&of_a(), &here, &Declared { egress: egress.clone(), ingress: ingress.clone() });
        let ours = opened(&opening.spec);
        let others = [VerifiedPeers::Namespace, VerifiedPeers::Enabled].map(|one| opened(&permissive(&of_a(), &facts(one))));
        let least = opened(&restrictive(&of_a(), &here));
        let pods = everybody().iter().filter(|object| object["kind"] == "Pod").count();
        for from in 0..pods {
            for to in 0..pods {
                let mut most = others[0].ports(from, to).unwrap();
                most.add(&others[1].ports(from, to).unwrap());
                let found = ours.ports(from, to).unwrap();
                prop_assert!(found.is_within(&most), "{from} to {to}: {found}, and {most} by the others");
                prop_assert!(least.ports(from, to).unwrap().is_within(&found), "{from} to {to}: {found}");
            }
        }
        // The order means nothing, neither to the policy nor to what it says.
        egress.reverse();
        ingress.reverse();
        prop_assert_eq!(opening, declared(&of_a(), &here, &Declared { egress, ingress }));
    }
}

#[test]
fn declarations_of_the_same_pods_are_one_rule_with_the_ports_and_words_of_all() {
    let one = |port: u16, by: &str| Declaration {
        peer: Peer { whom: pods("x", "y"), ports: vec![Port::tcp(port)] },
        by: by.to_owned(),
    };
    let all = Declared { egress: vec![one(80, "d"), one(81, "a"), one(80, "b"), one(80, "c")], ingress: Vec::new() };
    let opening = declared(&of_a(), &Facts::default(), &all);
    assert_eq!(opening.spec["egress"].as_array().unwrap().len(), 1);
    assert_eq!(opening.spec["egress"][0]["ports"].as_array().unwrap().len(), 2);
    assert_eq!(opening.says["egress"]["0"], json!(["a", "b", "c", "1 more"]));
    assert!(desired::is_permissive(&opening.spec));
}

#[test]
fn what_has_no_room_is_left_closed_and_told() {
    let one = |at: usize| Declaration {
        peer: Peer { whom: Whom::Block(format!("10.0.{}.{}/32", at / 250, at % 250)), ports: vec![Port::tcp(80)] },
        by: format!("route {at}"),
    };
    let all = Declared { egress: (0..1000).map(one).collect(), ingress: Vec::new() };
    let opening = declared(&of_a(), &Facts::default(), &all);
    let rules = opening.spec["egress"].as_array().unwrap().len();
    assert!(rules > 20 && rules + opening.left.len() == 1000, "{rules} and {}", opening.left.len());
    assert!(opening.spec.to_string().len() < LARGEST + 1024 && opening.says.to_string().len() < LARGEST + 1024);
}
