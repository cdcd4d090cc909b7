//! What must hold of every world.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::address::{Family, read};
use crate::policy::matrix::{Differences, Group, Matrix};
use crate::policy::network_policy::Direction;
use crate::policy::openings::openings;
use crate::policy::selector::Labels;

fn selector() -> impl Strategy<Value = Value> {
    let value = prop_oneof![Just("a"), Just("b"), Just("c")];
    let key = prop_oneof![Just("app"), Just("tier")];
    prop_oneof![
        Just(json!({})),
        (key.clone(), value.clone()).prop_map(|(key, value)| json!({"matchLabels": {key: value}})),
        (key.clone(), value.clone(), value).prop_map(|(key, one, two)| {
            json!({"matchExpressions": [{"key": key, "operator": "In", "values": [one, two]}]})
        }),
        (key.clone(), prop_oneof![Just("Exists"), Just("DoesNotExist")])
            .prop_map(|(key, operator)| json!({"matchExpressions": [{"key": key, "operator": operator}]})),
        key.prop_map(|key| json!({"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["b"]}]})),
    ]
}

fn peer() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        Just(json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.2/31"]}})),
        Just(json!({"ipBlock": {"cidr": "10.0.0.0/30"}})),
        Just(json!({"ipBlock": {"cidr": "0.0.0.0/0"}})),
        Just(json!({"ipBlock": {"cidr": "fd00::/64"}})),
    ];
    prop_oneof![
        selector().prop_map(|pods| json!({"podSelector": pods})),
        selector().prop_map(|labels| json!({"namespaceSelector": labels})),
        (selector(), selector()).prop_map(|(labels, pods)| json!({"namespaceSelector": labels, "podSelector": pods})),
        block,
    ]
}

fn port() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"port": 80})),
        Just(json!({"port": 79, "endPort": 90, "protocol": "UDP"})),
        Just(json!({"port": "http"})),
        Just(json!({"protocol": "SCTP"})),
    ]
}

fn rules(peers: &'static str) -> impl Strategy<Value = Vec<Value>> {
    let list = (proptest::collection::vec(peer(), 0..3), proptest::collection::vec(port(), 0..3));
    proptest::collection::vec(list.prop_map(move |(who, ports)| json!({peers: who, "ports": ports})), 0..3)
}

fn spec() -> impl Strategy<Value = Value> {
    let types = prop_oneof![Just(json!(["Ingress"])), Just(json!(["Egress"])), Just(json!(["Ingress", "Egress"]))];
    (selector(), types, rules("from"), rules("to")).prop_map(|(pods, types, ingress, egress)| {
        json!({"podSelector": pods, "policyTypes": types, "ingress": ingress, "egress": egress})
    })
}

fn policies() -> impl Strategy<Value = Vec<Value>> {
    let one = (prop_oneof![Just("x"), Just("y")], spec());
    proptest::collection::vec(one, 0..5).prop_map(|list| {
        let named = list.into_iter().enumerate();
        named.map(|(at, (namespace, spec))| policy(namespace, &format!("p{at}"), &spec)).collect()
    })
}

/// Pods of two namespaces, of one family or two, and one that has not started.
fn pods() -> Vec<Value> {
    let labelled = |mut pod: Value, labels: Value| {
        pod["metadata"]["labels"] = labels;
        pod
    };
    vec![
        json!({"kind": "Namespace", "metadata": {"name": "x", "labels": {"tier": "a", "app": "a"}}}),
        labelled(pod("x", "1", &["10.0.0.1", "fd00::1"]), json!({"app": "a", "tier": "a"})),
        labelled(pod("x", "2", &["10.0.0.2"]), json!({"app": "b"})),
        labelled(pod("y", "3", &["10.0.0.3", "fd00::3"]), json!({"app": "a", "tier": "b"})),
        labelled(pod("y", "4", &[]), json!({})),
        labelled(pod("y", "5", &["10.0.0.5", "fd00::5"]), json!({"app": "c", "tier": "c"})),
    ]
}

fn of(policies: &[Value]) -> World {
    world(&[pods(), policies.to_vec()].concat())
}

fn same(one: &Matrix, other: &Matrix) -> bool {
    one.is_within(other) && other.is_within(one)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The matrix, which judges classes of Pods, says of each pair what is said of it alone.
    #[test]
    fn classes_are_judged_as_each_of_their_pods(policies in policies()) {
        let world = of(&policies);
        let matrix = Matrix::of(&world);
        for (from, one) in world.pods().iter().enumerate() {
            for (to, other) in world.pods().iter().enumerate() {
                let alone = reach(&world, Party::Pod(one), Party::Pod(other)).ports();
                prop_assert_eq!(matrix.ports(from, to), alone, "{} to {}", one.title(), other.title());
            }
        }
    }

    #[test]
    fn the_order_of_policies_rules_peers_and_ports_means_nothing(mut policies in policies()) {
        let before = Matrix::of(&of(&policies));
        policies.reverse();
        for policy in &mut policies {
            for direction in ["ingress", "egress"] {
                let rules = policy["spec"][direction].as_array_mut().unwrap();
                rules.reverse();
                for rule in rules {
                    for list in rule.as_object_mut().unwrap().values_mut() {
                        list.as_array_mut().unwrap().reverse();
                    }
                }
            }
        }
        prop_assert!(same(&before, &Matrix::of(&of(&policies))));
    }

    #[test]
    fn a_policy_that_selects_nobody_changes_nothing(policies in policies(), mut more in spec()) {
        more["podSelector"] = json!({"matchLabels": {"app": "nobody"}});
        let before = Matrix::of(&of(&policies));
        for namespace in ["x", "y", "elsewhere"] {
            let with = [policies.clone(), vec![policy(namespace, "more", &more)]].concat();
            prop_assert!(same(&before, &Matrix::of(&of(&with))));
        }
    }

    /// Taking away what a policy allows never opens; and where every Pod is isolated anyway, adding a policy never cuts.
    #[test]
    fn allowing_less_opens_nothing(policies in policies()) {
        let before = Matrix::of(&of(&policies));
        for at in 0..policies.len() {
            for (direction, key) in [("ingress", "from"), ("egress", "to")] {
                let count = policies[at]["spec"][direction].as_array().unwrap().len();
                for rule in 0..count {
                    let mut less = policies.clone();
                    less[at]["spec"][direction].as_array_mut().unwrap().remove(rule);
                    prop_assert!(Matrix::of(&of(&less)).is_within(&before));
                    let mut less = policies.clone();
                    let peers = less[at]["spec"][direction][rule][key].as_array_mut().unwrap();
                    if peers.len() > 1 {
                        peers.pop();
                        prop_assert!(Matrix::of(&of(&less)).is_within(&before));
                    }
                }
            }
        }
        let all = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
        let denied = [policy("x", "deny", &all), policy("y", "deny", &all)];
        let mut growing = denied.to_vec();
        let mut last = Matrix::of(&of(&growing));
        prop_assert!(last.is_within(&before), "a deny opens nothing");
        for policy in policies {
            growing.push(policy);
            let now = Matrix::of(&of(&growing));
            prop_assert!(last.is_within(&now));
            last = now;
        }
    }

    /// What is compared by classes and groups is what two matrices say.
    #[test]
    fn differences_are_those_of_the_matrices(before in policies(), after in policies()) {
        let (before, after) = (of(&before), of(&after));
        let (was, is) = (Matrix::of(&before), Matrix::of(&after));
        let group: Vec<usize> = (0..before.pods().len()).collect();
        let differences = Differences::between(&before, &after, &group, &BTreeSet::from([0, 3]));
        for from in 0..group.len() {
            for to in (0..group.len()).filter(|&to| to != from) {
                let found = differences.of.get(&(Group::Pods(from), Group::Pods(to)));
                if ![from, to].iter().any(|end| [0, 3].contains(end)) {
                    prop_assert!(found.is_none());
                    continue;
                }
                let (Some(was), Some(is)) = (was.ports(from, to), is.ports(from, to)) else {
                    prop_assert!(found.is_none());
                    continue;
                };
                let found = found.unwrap();
                prop_assert_eq!(&found.cut, &was.without(&is));
                prop_assert_eq!(&found.opened, &is.without(&was));
                prop_assert_eq!(&found.kept, &was.and(&is));
                let both = (Some(from), Some(to));
                prop_assert_eq!((found.pairs, found.pairs_cut > 0), (1, !found.cut.is_empty()));
                prop_assert!(found.cut.is_empty() || found.sample == both);
            }
        }
    }

    /// An address that is no Pod's belongs to one group, and what is opened or cut of it is what is said of that one: a block that another one
    /// narrows, or of which an exception is taken, speaks for none of these.
    #[test]
    fn no_difference_of_an_address_is_overlooked(before in policies(), after in policies()) {
        let (before, after) = (of(&before), of(&after));
        let group: Vec<usize> = (0..before.pods().len()).collect();
        let differences = Differences::between(&before, &after, &group, &BTreeSet::from([0]));
        for text in ["10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.9.0.1", "192.0.2.1", "fd00::9", "fd00:1::"] {
            let address = read(text).unwrap();
            let within: Vec<_> = (0..differences.blocks.len()).filter(|&at| differences.blocks[at].contain(address)).collect();
            prop_assert!(within.len() < 2, "{text}: {:?}", differences.blocks);
            let own = within.first().map_or(Group::Outside(Family::of(address)), |&at| Group::Block(at));
            for sends in [true, false] {
                let ports = |world: &World| {
                    let (pod, other) = (Party::Pod(&world.pods()[0]), Party::Address(address));
                    let found = if sends { reach(world, pod, other) } else { reach(world, other, pod) };
                    found.ports().unwrap()
                };
                let (was, is) = (ports(&before), ports(&after));
                let key = if sends { (Group::Pods(0), own) } else { (own, Group::Pods(0)) };
                let found = &differences.of[&key];
                prop_assert_eq!(&found.cut, &was.without(&is), "{} {}", text, sends);
                prop_assert_eq!(&found.opened, &is.without(&was), "{} {}", text, sends);
            }
        }
    }

    /// A policy for which no opening is named opens nothing for that agent: neither to the Pods that are there nor to others.
    #[test]
    fn no_opening_is_overlooked(ours in spec(), theirs in spec()) {
        let both = |mut spec: Value, selector: Value| {
            spec["podSelector"] = selector;
            spec["policyTypes"] = json!(["Ingress", "Egress"]);
            spec
        };
        let ours = policy("x", "ours", &both(ours, json!({"matchLabels": {"app": "a"}})));
        let theirs = policy("x", "theirs", &theirs);
        let (alone, beside) = (of(std::slice::from_ref(&ours)), of(&[ours, theirs]));
        let agent = beside.pods().iter().position(|pod| pod.title() == "x/1").unwrap();
        let namespace: &Labels = beside.namespace("x").unwrap();
        let (own, other): (Vec<_>, Vec<_>) = beside.policies().iter().partition(|policy| policy.name == "ours");
        let found = openings(&beside.pods()[agent], namespace, own, other);
        let says = |direction: Direction| found.iter().any(|opening| opening.direction == direction);
        for (at, peer) in beside.pods().iter().enumerate().filter(|&(at, _)| at != agent) {
            for direction in Direction::ALL {
                let opened = opens((&alone, &beside), direction, agent, at);
                prop_assert!(!opened || says(direction), "{direction:?} {}: {found:?}", peer.title());
            }
        }
    }
}

/// Whether the agent's own side lets through more beside the other policy than alone.
fn opens(worlds: (&World, &World), direction: Direction, agent: usize, peer: usize) -> bool {
    let side = |world: &World| {
        let (own, other) = (&world.pods()[agent], &world.pods()[peer]);
        let families = [None, Some(Family::V4), Some(Family::V6)];
        families.map(|family| crate::policy::side::judge(world, direction, own, Party::Pod(other), family).ports)
    };
    side(worlds.0).iter().zip(side(worlds.1)).any(|(alone, beside)| !beside.is_within(alone))
}
