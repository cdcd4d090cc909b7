//! Policies that are read, and those that are not.

use serde_json::json;

use super::*;
use crate::policy::network_policy::{MAX_PARTS, MAX_TEXT};

#[test]
fn what_cannot_be_read_is_named_with_its_field() {
    let block = |block: Value| json!({"ingress": [{"from": [{"ipBlock": block}]}]});
    let port = |port: Value| json!({"ingress": [{}, {"ports": [port]}]});
    let expression = |expression: Value| json!({"podSelector": {"matchExpressions": [expression]}});
    for (spec, field) in [
        (json!({"podSelector": 1}), "spec.podSelector"),
        (json!({"podSelector": {"matchLabels": {"a": 1}}}), "spec.podSelector.matchLabels[a]"),
        (json!({"policyTypes": ["ingress"]}), "spec.policyTypes[0]"),
        (json!({"egress": {}}), "spec.egress"),
        (json!({"egress": [1]}), "spec.egress[0]"),
        (json!({"egress": [{"to": [{}]}]}), "spec.egress[0].to[0]"),
        (
            json!({"ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}]}),
            "spec.ingress[0].from[0]",
        ),
        (block(json!({})), "spec.ingress[0].from[0].ipBlock.cidr"),
        (block(json!({"cidr": "10.0.0.0/8", "except": ["x"]})), "spec.ingress[0].from[0].ipBlock.except[0]"),
        (port(json!({"port": 0})), "spec.ingress[1].ports[0].port"),
        (port(json!({"port": 65536})), "spec.ingress[1].ports[0].port"),
        (port(json!({"port": -1})), "spec.ingress[1].ports[0].port"),
        (port(json!({"port": 1.5})), "spec.ingress[1].ports[0].port"),
        (port(json!({"port": ""})), "spec.ingress[1].ports[0].port"),
        (port(json!({"endPort": 2})), "spec.ingress[1].ports[0].endPort"),
        (port(json!({"port": "http", "endPort": 2})), "spec.ingress[1].ports[0].endPort"),
        (port(json!({"port": 3, "endPort": 2})), "spec.ingress[1].ports[0].endPort"),
        (port(json!({"protocol": "ICMP"})), "spec.ingress[1].ports[0].protocol"),
        (expression(json!({"operator": "Exists"})), "spec.podSelector.matchExpressions[0].key"),
        (expression(json!({"key": "a", "operator": "Is"})), "spec.podSelector.matchExpressions[0].operator"),
        (expression(json!({"key": "a", "operator": "In"})), "spec.podSelector.matchExpressions[0].values"),
        (
            expression(json!({"key": "a", "operator": "Exists", "values": ["b"]})),
            "spec.podSelector.matchExpressions[0].values",
        ),
        (
            expression(json!({"key": "a", "operator": "In", "values": [1]})),
            "spec.podSelector.matchExpressions[0].values[0]",
        ),
    ] {
        let fault = NetworkPolicy::read(&policy("a", "p", &spec), "").unwrap_err();
        assert_eq!((fault.policy.as_str(), fault.field.as_str()), ("a/p", field), "{spec}: {fault}");
    }
    assert_eq!(NetworkPolicy::read(&json!({}), "a").unwrap_err().field, "metadata.name");
}

#[test]
fn nulls_and_foreign_fields_mean_nothing() {
    let full = policy(
        "a",
        "p",
        &json!({"podSelector": null, "policyTypes": ["Ingress", "Egress"], "egress": null, "later": 1,
        "ingress": [{"from": null, "ports": [{"port": 80, "endPort": null, "protocol": null}], "later": {}}]}),
    );
    let bare = json!({"kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": {"policyTypes": ["Egress", "Ingress", "Egress"],
        "ingress": [{"from": [], "ports": [{"port": 80, "protocol": "TCP"}]}]}});
    assert_eq!(NetworkPolicy::read(&full, "b"), NetworkPolicy::read(&bare, "a"));
    assert_eq!(NetworkPolicy::read_text(&bare.to_string(), "a"), NetworkPolicy::read(&bare, "a"));
}

#[test]
fn what_is_too_large_is_not_read() {
    let rules: Vec<_> = std::iter::repeat_n(json!({}), MAX_PARTS + 1).collect();
    let fault = NetworkPolicy::read(&policy("a", "p", &json!({"ingress": rules})), "").unwrap_err();
    assert!(fault.problem.contains("parts"), "{fault}");
    let fault = NetworkPolicy::read_text(&" ".repeat(MAX_TEXT + 1), "a").unwrap_err();
    assert!(fault.problem.contains("longer"), "{fault}");
    assert!(NetworkPolicy::read_text("{", "a").is_err());
}

#[test]
fn foreign_words_stand_in_messages_short_and_visible() {
    let spec = json!({"policyTypes": [format!("\u{1b}[31m{}", "x".repeat(1000))]});
    let said = NetworkPolicy::read(&policy("a", "p", &spec), "").unwrap_err().to_string();
    assert!(said.len() < 300 && !said.contains('\u{1b}'), "{said}");
}
