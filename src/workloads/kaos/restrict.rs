//! Who may reach a ModelAPI, where `kaos.restrictModelAPIs` is on (ruling 13).
//!
//! In: the ModelAPI, its port, the Agents that name it, the namespace of the Gateway where routes are made. Out: the spec of a NetworkPolicy.
//! Promises: with no Agent and no Gateway nobody is let in; what a ModelAPI itself reaches is left as it is; equal inputs give equal bytes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::names::Role;

/// Label by which a namespace is named.
const LABEL_NAMESPACE: &str = "kubernetes.io/metadata.name";

/// The spec of the NetworkPolicy of that ModelAPI.
#[must_use]
pub fn policy(name: &str, port: u16, agents: &BTreeSet<&str>, gateway: Option<&str>) -> Value {
    let mut from = Vec::new();
    if !agents.is_empty() {
        from.push(json!({"podSelector": {
            "matchLabels": {"app": Role::Agent.word()},
            "matchExpressions": [{"key": Role::Agent.word(), "operator": "In", "values": agents}],
        }}));
    }
    if let Some(namespace) = gateway {
        from.push(json!({"namespaceSelector": {"matchLabels": {LABEL_NAMESPACE: namespace}}}));
    }
    // A rule without a peer would let everybody in.
    let ingress =
        if from.is_empty() { json!([]) } else { json!([{"from": from, "ports": [{"port": port, "protocol": "TCP"}]}]) };
    json!({
        "podSelector": {"matchLabels": Role::ModelApi.labels(name)},
        "policyTypes": ["Ingress"],
        "ingress": ingress,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_that_name_it_and_the_gateway_are_let_in_and_nobody_else() {
        let agents = BTreeSet::from(["b", "a"]);
        assert_eq!(
            policy("m", 8000, &agents, Some("infra")),
            json!({
                "podSelector": {"matchLabels": {"app": "modelapi", "modelapi": "m"}},
                "policyTypes": ["Ingress"],
                "ingress": [{
                    "from": [
                        {"podSelector": {"matchLabels": {"app": "agent"}, "matchExpressions": [{"key": "agent", "operator": "In", "values": ["a", "b"]}]}},
                        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "infra"}}},
                    ],
                    "ports": [{"port": 8000, "protocol": "TCP"}],
                }],
            })
        );
        assert_eq!(
            policy("m", 11434, &BTreeSet::new(), None)["ingress"],
            json!([]),
            "an empty rule would let everybody in"
        );
    }
}
