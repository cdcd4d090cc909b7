//! What ClusterNetworkPolicies decide before NetworkPolicies and after them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::matrix::Matrix;
use crate::policy::network_policy::{Action, ClusterPolicy};
use crate::policy::report::SideReport;

/// `place` is the tier and the priority, `rules` those of ingress and of egress.
fn cluster(name: &str, place: (&str, i64), subject: &Value, rules: (Value, Value)) -> ClusterPolicy {
    let ((tier, priority), (ingress, egress)) = (place, rules);
    let object = json!({"metadata": {"name": name}, "spec": {"tier": tier, "priority": priority,
        "subject": {"pods": {"namespaceSelector": {}, "podSelector": subject}}, "ingress": ingress, "egress": egress}});
    ClusterPolicy::read(&object).unwrap()
}

fn from(action: &str, pods: &Value) -> Value {
    json!({"action": action, "from": [{"pods": {"namespaceSelector": {}, "podSelector": pods}}]})
}

fn app(name: &str) -> Value {
    json!({"matchLabels": {"app": name}})
}

fn base(policies: &[Value]) -> World {
    let pods = [pod("x", "a", &["10.0.0.1"]), pod("x", "b", &["10.0.0.2"]), pod("y", "c", &["10.0.0.3"])];
    world(&[pods.to_vec(), policies.to_vec()].concat())
}

#[test]
fn the_tier_of_administrators_decides_before_network_policies_and_the_baseline_after_them() {
    let opens = policy("x", "opens", &json!({"podSelector": {}, "ingress": [{}]}));
    let shuts = policy("x", "shuts", &json!({"podSelector": {}, "policyTypes": ["Ingress"]}));
    let deny = |tier| cluster("deny", (tier, 5), &app("b"), (json!([from("Deny", &json!({}))]), json!([])));
    let accept = |tier| cluster("accept", (tier, 4), &app("b"), (json!([from("Accept", &app("a"))]), json!([])));
    let pass = cluster("pass", ("Admin", 4), &app("b"), (json!([from("Pass", &app("a"))]), json!([])));
    for (policies, tiers, a, c) in [
        (vec![], vec![], "every port", "every port"),
        (vec![opens.clone()], vec![deny("Admin")], "no port", "no port"),
        (vec![opens.clone()], vec![deny("Admin"), accept("Admin")], "every port", "no port"),
        (vec![shuts.clone()], vec![deny("Admin"), accept("Admin")], "every port", "no port"),
        (vec![shuts.clone()], vec![deny("Admin"), pass.clone()], "no port", "no port"),
        (vec![opens.clone()], vec![deny("Admin"), pass.clone()], "every port", "no port"),
        // Who is selected by a NetworkPolicy is not asked about in the baseline.
        (vec![opens.clone()], vec![deny("Baseline")], "every port", "every port"),
        (vec![shuts], vec![accept("Baseline")], "no port", "no port"),
        (vec![], vec![deny("Baseline")], "no port", "no port"),
        (vec![], vec![deny("Baseline"), accept("Baseline")], "every port", "no port"),
        (vec![], vec![deny("Admin"), accept("Baseline")], "no port", "no port"),
    ] {
        let world = base(&policies).with_cluster(tiers.clone());
        assert_eq!(
            (ports(&world, "x/a", "x/b").as_str(), ports(&world, "y/c", "x/b").as_str()),
            (a, c),
            "{policies:?} {tiers:?}"
        );
        assert_eq!(ports(&world, "y/c", "x/a"), ports(&base(&policies), "y/c", "x/a"), "it is about another Pod");
    }
}

#[test]
fn a_rule_decides_about_its_ports_and_the_first_one_counts() {
    let of_port = |action: &str, port: u16| json!({"action": action, "to": [{"networks": ["0.0.0.0/0"]}], "protocols": [{"tcp": {"destinationPort": {"number": port}}}]});
    let rest = json!({"action": "Deny", "to": [{"networks": ["0.0.0.0/0"]}]});
    let one = cluster(
        "one",
        ("Admin", 1),
        &app("a"),
        (json!([]), json!([of_port("Pass", 80), of_port("Deny", 80), of_port("Accept", 81), rest])),
    );
    let shuts = policy(
        "x",
        "shuts",
        &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 80}, {"port": 90}]}]}),
    );
    let world = base(&[shuts]).with_cluster([one]);
    assert_eq!(ports(&world, "x/a", "y/c"), "80-81/TCP");
    let Reach::Paths(paths) = between(&world, "x/a", "y/c") else { panic!() };
    let side = paths[0].egress.as_ref().unwrap();
    let decided: Vec<_> = side.deciding.iter().map(|one| (one.rule, one.action, one.ports.to_string())).collect();
    assert_eq!(decided[0], (0, Action::Pass, "80/TCP".to_owned()));
    assert_eq!((decided[1].0, decided[1].1), (2, Action::Accept), "the second has nothing left to decide");
    assert_eq!(SideReport::of(&world, side).cluster[2].decides, "denies");
}

/// Neither what is outside of the cluster nor a Pod on a node's network is a peer of ingress there.
#[test]
fn what_comes_from_outside_is_no_matter_of_that_tier() {
    let deny = cluster("deny", ("Admin", 1), &json!({}), (json!([from("Deny", &json!({}))]), json!([])));
    let world = base(&[]).with_cluster([deny]);
    let outside = crate::policy::address::read("203.0.113.1").unwrap();
    let said = reach(&world, Party::Address(outside), Party::Pod(find(&world, "x/a")));
    assert_eq!(said.ports().unwrap().to_string(), "every port");
    assert_eq!(ports(&world, "y/c", "x/a"), "no port");
}

fn rules() -> impl Strategy<Value = Vec<Value>> {
    let pods = prop_oneof![
        Just(json!({})),
        Just(app("a")),
        Just(app("b")),
        Just(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["c"]}]}))
    ];
    let action = prop_oneof![Just("Accept"), Just("Deny"), Just("Pass")];
    let port = proptest::option::of(prop_oneof![Just(80_u16), Just(53_u16)]);
    let rule = (action, pods, port).prop_map(|(action, pods, port)| {
        let mut rule = from(action, &pods);
        if let Some(port) = port {
            rule["protocols"] = json!([{"tcp": {"destinationPort": {"number": port}}}]);
        }
        rule
    });
    proptest::collection::vec(rule, 0..4)
}

fn tiers() -> impl Strategy<Value = Vec<ClusterPolicy>> {
    let subject = prop_oneof![Just(json!({})), Just(app("a")), Just(app("c"))];
    let tier = prop_oneof![Just("Admin"), Just("Baseline")];
    let one = (tier, 0..3_i64, subject, rules());
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        let made = all.into_iter().enumerate();
        made.map(|(at, (tier, priority, subject, rules))| {
            cluster(&format!("p{at}"), (tier, priority), &subject, (json!(rules), json!([])))
        })
        .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The matrix says of each pair what is said of it alone, and a deny that comes before all others opens nothing.
    #[test]
    fn classes_are_judged_as_each_of_their_pods_and_a_first_deny_only_closes(tiers in tiers(), shut in any::<bool>(), denied in prop_oneof![Just("a"), Just("c")]) {
        let shuts = policy("x", "shuts", &json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}]}]}));
        let policies = if shut { vec![shuts] } else { Vec::new() };
        let before = base(&policies).with_cluster(tiers.clone());
        let matrix = Matrix::of(&before);
        for (from, one) in before.pods().iter().enumerate() {
            for (to, other) in before.pods().iter().enumerate() {
                let alone = reach(&before, Party::Pod(one), Party::Pod(other)).ports();
                prop_assert_eq!(matrix.ports(from, to), alone, "{} to {}", one.title(), other.title());
            }
        }
        let first = cluster("first", ("Admin", -1), &json!({}), (json!([from("Deny", &app(denied))]), json!([])));
        let after = base(&policies).with_cluster(tiers.into_iter().chain([first]));
        prop_assert!(Matrix::of(&after).is_within(&matrix));
    }
}
