//! Which policies of others open what ours would not.

use serde_json::json;

use super::*;
use crate::policy::openings::{from_outside, openings, openings_by_labels};

/// The openings of one policy with that spec beside a deny that lets in the operator and verified agents, and out to the API server.
fn found(spec: &Value) -> Vec<String> {
    let operator = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kagenti-system"}}});
    let verified = json!({"podSelector": {"matchLabels": {"verified": "true"}}});
    let deny = json!({"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [operator, verified]}],
        "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "ports": [{"port": 6443}, {"port": 100, "endPort": 200}]}]});
    let objects = [
        json!({"kind": "Namespace", "metadata": {"name": "a", "labels": {"team": "red"}}}),
        pod("a", "web", &["10.0.0.1"]),
        policy("a", "deny", &deny),
        policy("a", "other", spec),
        policy("b", "elsewhere", &json!({"podSelector": {}, "ingress": [{}]})),
    ];
    let world = world(&objects);
    let agent = find(&world, "a/web");
    let (ours, others): (Vec<_>, Vec<_>) = world.policies().iter().partition(|policy| policy.name == "deny");
    openings(agent, world.namespace("a").unwrap(), ours, others).iter().map(ToString::to_string).collect()
}

#[test]
fn what_opens_is_named_with_policy_rule_peer_and_ports() {
    let web = json!({"matchLabels": {"app": "web"}});
    let from = |peer: Value| json!({"podSelector": web, "ingress": [{"from": [peer]}]});
    let to = |peer: Value, ports: Value| json!({"podSelector": web, "policyTypes": ["Egress"], "egress": [{"to": [peer], "ports": ports}]});
    for (spec, wanted) in [
        (json!({"podSelector": {}, "ingress": [{}]}), "other ingress[0] lets everybody in on every port"),
        (
            json!({"podSelector": web, "policyTypes": ["Egress"], "egress": [{}]}),
            "other egress[0] lets it out to everybody on every port",
        ),
        (from(json!({"podSelector": {}})), "other ingress[0] lets every Pod of namespace a in on every port"),
        (
            from(json!({"namespaceSelector": {}, "podSelector": {"matchLabels": {"verified": "true"}}})),
            "other ingress[0] lets Pods verified=true of every namespace in on every port",
        ),
        (
            json!({"podSelector": web, "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/24"}}], "ports": [{"port": "http"}]}]}),
            "other ingress[0] lets addresses 10.0.0.0/24 in on 80/TCP",
        ),
        (
            to(json!({"ipBlock": {"cidr": "10.0.0.0/16"}}), json!([{"port": 6443}])),
            "other egress[0] lets it out to addresses 10.0.0.0/16 on 6443/TCP",
        ),
        (
            to(json!({"ipBlock": {"cidr": "10.0.0.0/25"}}), json!([{"port": 99, "endPort": 150}, {"port": "http"}])),
            "other egress[0] lets it out to addresses 10.0.0.0/25 on 99/TCP, http/TCP",
        ),
    ] {
        assert_eq!(found(&spec), [wanted], "{spec}");
    }
}

#[test]
fn what_ours_let_through_anyway_is_no_opening() {
    let web = json!({"matchLabels": {"app": "web"}});
    let from = |peer: Value| json!({"podSelector": web, "ingress": [{"from": [peer]}]});
    let verified = |more: Value| json!({"matchLabels": {"verified": "true"}, "matchExpressions": more});
    for spec in [
        // It selects others, or isolates only.
        json!({"podSelector": {"matchLabels": {"app": "db"}}, "ingress": [{}], "egress": [{}], "policyTypes": ["Ingress", "Egress"]}),
        json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}),
        json!({"podSelector": {}, "policyTypes": ["Ingress"], "egress": [{}]}),
        // The same, or less.
        from(json!({"podSelector": verified(json!(null))})),
        from(json!({"podSelector": verified(json!([{"key": "app", "operator": "Exists"}]))})),
        from(
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "a"}}, "podSelector": verified(json!(null))}),
        ),
        from(
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kagenti-system", "x": "y"}}, "podSelector": {"matchLabels": {"app": "ui"}}}),
        ),
        // Nobody can be that.
        from(
            json!({"podSelector": {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}),
        ),
        // A name that no container of the agent has.
        json!({"podSelector": web, "ingress": [{"ports": [{"port": "none"}]}]}),
        json!({"podSelector": web, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.128/25"}}], "ports": [{"port": 6443}, {"port": 120, "endPort": 130}]}]}),
    ] {
        assert!(found(&spec).is_empty(), "{spec}: {:?}", found(&spec));
    }
}

/// What the tier of administrators denies no NetworkPolicy opens; on the way in it knows Pods alone.
#[test]
fn beneath_the_tier_of_administrators_only_addresses_are_let_in() {
    let spec = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{}],
        "ingress": [{}, {"from": [{"podSelector": {}}]}, {"from": [{"podSelector": {}}, {"ipBlock": {"cidr": "203.0.113.0/24"}}]}]});
    let left = from_outside(NetworkPolicy::read(&policy("a", "other", &spec), "a").unwrap());
    let deny = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    let objects = [pod("a", "web", &["10.0.0.1"]), policy("a", "deny", &deny)];
    let world = world(&objects);
    let found = openings(find(&world, "a/web"), world.namespace("a").unwrap(), world.policies(), [&left]);
    let words: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "other ingress[0] lets addresses 0.0.0.0/0 in on every port",
            "other ingress[0] lets addresses ::/0 in on every port",
            "other ingress[1] lets addresses 203.0.113.0/24 in on every port",
        ]
    );
}

/// What stands for the Pods of a workload has no containers, so no name means a number there.
#[test]
fn of_an_agent_that_is_known_by_its_labels_a_port_is_told_by_its_name() {
    let web = json!({"matchLabels": {"app": "web"}});
    let verified = json!({"podSelector": {"matchLabels": {"verified": "true"}}});
    let block = json!({"ipBlock": {"cidr": "203.0.113.0/24"}});
    let deny = json!({"podSelector": web, "policyTypes": ["Ingress"], "ingress": [
        {"from": [verified], "ports": [{"port": "http"}, {"protocol": "UDP"}]}]});
    let world = world(&[json!({"kind": "Namespace", "metadata": {"name": "a"}}), policy("a", "deny", &deny)]);
    let agent = Pod::template(&json!({"metadata": {"labels": {"app": "web"}}}), "a", "web");
    let told = |rule: &Value, outside: bool| {
        let spec = json!({"podSelector": web, "ingress": [rule]});
        let other = NetworkPolicy::read(&policy("a", "other", &spec), "a").unwrap();
        let other = if outside { from_outside(other) } else { other };
        let found = openings_by_labels(&agent, world.namespace("a").unwrap(), world.policies(), [&other]);
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let everybody = "other ingress[0] lets every Pod of namespace a in on";
    for (peer, ports, inside, outside) in [
        (json!({"podSelector": {}}), json!([{"port": "http"}]), format!("{everybody} http/TCP"), String::new()),
        (
            json!({"podSelector": {}}),
            json!([{"port": "http"}, {"port": 9000}, {"port": "dns", "protocol": "UDP"}]),
            format!("{everybody} 9000/TCP, http/TCP, dns/UDP"),
            String::new(),
        ),
        (
            block.clone(),
            json!([{"port": "http"}]),
            "other ingress[0] lets addresses 203.0.113.0/24 in on http/TCP".to_owned(),
            "other ingress[0] lets addresses 203.0.113.0/24 in on http/TCP".to_owned(),
        ),
        // Ours let them in by the same name, or on every port of the protocol.
        (verified.clone(), json!([{"port": "http"}, {"port": "dns", "protocol": "UDP"}]), String::new(), String::new()),
    ] {
        let rule = json!({"from": [peer], "ports": ports});
        assert_eq!((told(&rule, false), told(&rule, true)), (inside, outside), "{rule}");
    }
    // A Pod that is there says itself what it calls so.
    let spec =
        json!({"podSelector": web, "ingress": [{"from": [block], "ports": [{"port": "http"}, {"port": "none"}]}]});
    let other = NetworkPolicy::read(&policy("a", "other", &spec), "a").unwrap();
    let there = Pod::read(&pod("a", "web", &["10.0.0.1"]));
    let found = openings(&there, world.namespace("a").unwrap(), world.policies(), [&other]);
    let words: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["other ingress[0] lets addresses 203.0.113.0/24 in on 80/TCP"]);
}

#[test]
fn where_none_of_ours_isolates_nothing_is_opened() {
    let objects = [
        pod("a", "web", &["10.0.0.1"]),
        policy("a", "ours", &json!({"podSelector": {}, "policyTypes": ["Egress"]})),
        policy("a", "other", &json!({"podSelector": {}, "ingress": [{}]})),
    ];
    let world = world(&objects);
    let (ours, others): (Vec<_>, Vec<_>) = world.policies().iter().partition(|policy| policy.name == "ours");
    assert!(openings(find(&world, "a/web"), world.namespace("a").unwrap(), ours, others).is_empty());
}
