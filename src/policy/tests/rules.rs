//! Rules of the documentation of NetworkPolicies, one by one.

use serde_json::json;

use super::*;
use crate::policy::address::{self, Family};
use crate::policy::matrix::{Differences, Group, Matrix};
use crate::policy::reach::NotJudged;

/// Three Pods in two namespaces, and policies of namespace `a`.
fn with(specs: &[Value]) -> World {
    let mut objects = vec![
        json!({"kind": "Namespace", "metadata": {"name": "b", "labels": {"team": "blue"}}}),
        pod("a", "web", &["10.0.0.1", "fd00::1"]),
        pod("a", "db", &["10.0.0.2", "fd00::2"]),
        pod("b", "client", &["10.0.1.1", "fd00::101"]),
    ];
    objects.extend(specs.iter().enumerate().map(|(at, spec)| policy("a", &format!("p{at}"), spec)));
    world(&objects)
}

#[test]
fn without_a_policy_everything_is_reached() {
    let world = with(&[]);
    assert_eq!(ports(&world, "b/client", "a/web"), "every port");
    assert_eq!(ports(&world, "a/web", "b/client"), "every port");
}

#[test]
fn a_policy_isolates_in_the_directions_it_names() {
    for (types, to, from) in [
        (json!(["Ingress"]), "no port", "every port"),
        (json!(["Egress"]), "every port", "no port"),
        (json!(["Ingress", "Egress"]), "no port", "no port"),
        // As in a manifest that leaves them out: Ingress, and Egress where it says something about it.
        (json!(null), "no port", "every port"),
        (json!([]), "no port", "every port"),
    ] {
        let world = with(&[json!({"podSelector": {}, "policyTypes": types})]);
        assert_eq!(
            (ports(&world, "b/client", "a/web").as_str(), ports(&world, "a/web", "b/client").as_str()),
            (to, from)
        );
        assert_eq!(ports(&world, "a/web", "a/web"), "every port", "a Pod reaches itself");
    }
    let world = with(&[json!({"podSelector": {}, "egress": [{"to": [{"podSelector": {}}]}]})]);
    assert_eq!(ports(&world, "a/web", "a/db"), "no port", "Ingress is a type, too");
    assert_eq!(ports(&world, "a/web", "b/client"), "no port");
    // What is said about a direction that is no type of the policy says nothing.
    let world = with(&[json!({"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}], "egress": []})]);
    assert_eq!(ports(&world, "a/web", "b/client"), "every port");
}

#[test]
fn rules_add_up_over_policies_and_both_sides_must_let_through() {
    let deny = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    let web = json!({"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": 80}]}]});
    let more = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}}],
        "ports": [{"port": 8000, "endPort": 8010}, {"protocol": "UDP"}]}]});
    let world = with(&[deny.clone(), web.clone(), more]);
    assert_eq!(ports(&world, "b/client", "a/web"), "80/TCP, 8000-8010/TCP, */UDP");
    assert_eq!(ports(&world, "b/client", "a/db"), "8000-8010/TCP, */UDP");
    assert_eq!(ports(&world, "a/db", "a/web"), "no port", "db may not send");
    let send =
        json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 79, "endPort": 80}]}]});
    let world = with(&[deny, web, send]);
    assert_eq!(ports(&world, "a/db", "a/web"), "80/TCP");
    assert_eq!(ports(&world, "a/web", "b/client"), "79-80/TCP");
}

#[test]
fn peers_are_own_namespace_both_selectors_or_addresses() {
    let app = |name: &str| json!({"matchLabels": {"app": name}});
    let blue = json!({"matchLabels": {"team": "blue"}});
    for (from, client, db) in [
        (json!([{"podSelector": {}}]), false, true),
        (json!([{"podSelector": app("client")}]), false, false),
        (json!([{"namespaceSelector": {}}]), true, true),
        (json!([{"namespaceSelector": blue}]), true, false),
        (json!([{"namespaceSelector": blue, "podSelector": app("client")}]), true, false),
        (json!([{"namespaceSelector": blue, "podSelector": app("db")}]), false, false),
        (json!([{"namespaceSelector": blue}, {"podSelector": app("db")}]), true, true),
        (json!([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "b"}}}]), true, false),
        (
            json!([{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}]),
            false,
            true,
        ),
        (json!([{"ipBlock": {"cidr": "10.0.1.0/24"}}]), true, false),
        (json!([{"ipBlock": {"cidr": "10.0.0.0/16", "except": ["10.0.1.0/24"]}}]), false, true),
        (json!([{"ipBlock": {"cidr": "::ffff:10.0.1.1/128"}}]), true, false),
        (json!([{"ipBlock": {"cidr": "fd00::100/120"}}]), true, false),
        (json!([]), true, true),
        (json!(null), true, true),
    ] {
        let world = with(&[json!({"podSelector": {}, "ingress": [{"from": from}]})]);
        assert_eq!((tcp(&world, "b/client", "a/web", 80), tcp(&world, "a/db", "a/web", 80)), (client, db), "{from}");
    }
}

#[test]
fn families_are_judged_each_by_itself() {
    let world = with(&[json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "fd00::/64"}}]}]})]);
    let Reach::Paths(paths) = between(&world, "b/client", "a/web") else { panic!() };
    let seen: Vec<_> = paths.iter().map(|path| (path.family.unwrap(), path.ports.is_all())).collect();
    assert_eq!(seen, [(Family::V4, false), (Family::V6, true)]);
    // Out over IPv4 alone, in over IPv6 alone: nothing arrives.
    let world = with(&[
        json!({"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "fd00::/64"}}]}]}),
        json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}),
    ]);
    assert_eq!(ports(&world, "a/db", "a/web"), "no port");
    assert_eq!(ports(&world, "a/db", "b/client"), "every port");
}

#[test]
fn names_of_ports_are_those_of_the_pod_that_is_sent_to() {
    let named = |name: &str, protocol: &str| json!([{"ports": [{"port": name, "protocol": protocol}]}]);
    for (name, protocol, wanted) in
        [("http", "TCP", "80/TCP"), ("http", "UDP", "no port"), ("dns", "UDP", "53/UDP"), ("none", "TCP", "no port")]
    {
        let world = with(&[json!({"podSelector": {}, "ingress": named(name, protocol)})]);
        assert_eq!(ports(&world, "b/client", "a/web"), wanted);
        let world = with(&[json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": named(name, protocol)})]);
        assert_eq!(ports(&world, "a/web", "b/client"), wanted);
    }
    let mut other = pod("a", "other", &["10.0.0.3"]);
    other["spec"]["containers"][0]["ports"][0]["containerPort"] = json!(8080);
    other["spec"]["initContainers"] = json!([
        {"restartPolicy": "Always", "ports": [{"name": "http", "containerPort": 15001}]},
        {"ports": [{"name": "http", "containerPort": 1}]},
    ]);
    let deny = policy("a", "p", &json!({"podSelector": {}, "ingress": named("http", "TCP")}));
    let world = world(&[other, pod("a", "web", &["10.0.0.1"]), pod("b", "client", &["10.0.1.1"]), deny]);
    assert_eq!(ports(&world, "b/client", "a/other"), "8080/TCP, 15001/TCP");
    assert_eq!(ports(&world, "b/client", "a/web"), "80/TCP");
    // An address has no names.
    let policy =
        policy("a", "p", &json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": named("http", "TCP")}));
    let world = super::world(&[pod("a", "web", &["10.0.0.1"]), policy]);
    let party = Party::Address(address::read("192.0.2.1").unwrap());
    assert_eq!(reach(&world, Party::Pod(find(&world, "a/web")), party).ports().unwrap().to_string(), "no port");
}

#[test]
fn what_is_not_judged_is_said() {
    let mut host = pod("a", "host", &["192.168.0.1"]);
    host["spec"]["hostNetwork"] = json!(true);
    let mut done = pod("a", "done", &["10.0.0.9"]);
    done["status"]["phase"] = json!("Succeeded");
    let deny = policy("a", "p", &json!({"podSelector": {}}));
    let world = world(&[host, done, pod("a", "web", &["10.0.0.1"]), pod("b", "six", &["fd00::1"]), deny]);
    for (from, to, why) in [
        ("a/host", "a/web", NotJudged::SourceHostNetwork),
        ("a/web", "a/host", NotJudged::TargetHostNetwork),
        ("a/done", "a/web", NotJudged::SourceFinished),
        ("a/web", "a/done", NotJudged::TargetFinished),
        ("a/web", "b/six", NotJudged::NoCommonFamily),
    ] {
        assert_eq!(between(&world, from, to), Reach::NotJudged(why), "{from} {to}");
    }
    let matrix = Matrix::of(&world);
    for (from, one) in world.pods().iter().enumerate() {
        for (to, other) in world.pods().iter().enumerate().filter(|&(to, _)| from != to) {
            let pair = reach(&world, Party::Pod(one), Party::Pod(other));
            assert_eq!(matrix.ports(from, to), pair.ports(), "{} {}", one.title(), other.title());
        }
    }
}

#[test]
fn a_pod_without_an_address_is_in_no_block() {
    let blocks = json!([{"ipBlock": {"cidr": "0.0.0.0/0"}}, {"ipBlock": {"cidr": "::/0"}}]);
    let world = world(&[
        pod("a", "web", &[]),
        pod("b", "client", &["10.0.1.1"]),
        policy("a", "p", &json!({"podSelector": {}, "ingress": [{"from": blocks}]})),
        policy("b", "p", &json!({"podSelector": {}, "ingress": [{"from": blocks}]})),
    ]);
    assert_eq!(ports(&world, "b/client", "a/web"), "no port");
    assert_eq!(ports(&world, "a/web", "b/client"), "no port");
}

#[test]
fn addresses_outside_are_let_through_by_blocks_and_by_rules_for_everybody() {
    let world = |egress: Value| {
        let spec = json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": egress});
        super::world(&[pod("a", "web", &["10.0.0.1", "fd00::1"]), policy("a", "p", &spec)])
    };
    for (egress, named, outside) in [
        (json!([{}]), true, true),
        (json!([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]), true, true),
        (json!([{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]}]), true, true),
        (json!([{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}]), true, false),
        (json!([{"to": [{"ipBlock": {"cidr": "192.0.2.0/24", "except": ["192.0.2.1/32"]}}]}]), false, false),
        (json!([{"to": [{"ipBlock": {"cidr": "::/0"}}]}]), false, false),
        (json!([{"to": [{"namespaceSelector": {}}]}]), false, false),
    ] {
        let world = world(egress.clone());
        let from = Party::Pod(find(&world, "a/web"));
        let address = Party::Address(address::read("192.0.2.1").unwrap());
        let all = |to: Party<'_>| reach(&world, from, to).ports().unwrap().is_all();
        assert_eq!((all(address), all(Party::Outside(Family::V4))), (named, outside), "{egress}");
    }
}

/// An exception, and a smaller block in place of a larger one, cut what their first address does not show.
#[test]
fn what_is_cut_of_a_block_is_said_of_what_is_left_of_it() {
    let block = |cidr: &str| json!({"ipBlock": {"cidr": cidr}});
    let less = |cidr: &str, except: Value| json!({"ipBlock": {"cidr": cidr, "except": except}});
    for (was, is, wanted) in [
        (block("0.0.0.0/0"), less("0.0.0.0/0", json!(["169.254.169.254/32"])), vec!["169.254.169.254/32"]),
        (block("10.0.0.0/8"), block("10.0.0.0/16"), vec!["10.0.0.0/8 except 10.0.0.0/16"]),
        (
            less("10.0.0.0/8", json!(["10.1.0.0/16", "10.1.2.0/24"])),
            less("10.0.0.0/8", json!(["10.0.0.0/9"])),
            vec!["10.0.0.0/9 except 10.1.0.0/16"],
        ),
        (
            block("fd00::/16"),
            less("fd00::/16", json!(["fd00::/17", "fd00:8000::/17"])),
            vec!["fd00::/17", "fd00:8000::/17"],
        ),
    ] {
        let world =
            |to: &Value| with(&[json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [to]}]})]);
        let group: Vec<usize> = (0..3).collect();
        let differences = Differences::between(&world(&was), &world(&is), &group, &[0].into());
        let cut = differences.of.iter().filter(|(_, difference)| !difference.cut.is_empty());
        let cut: Vec<String> = cut
            .filter_map(|((from, to), _)| match (from, to) {
                (Group::Pods(0), Group::Block(at)) => Some(differences.blocks[*at].to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(cut, wanted, "{was} to {is}");
    }
}
