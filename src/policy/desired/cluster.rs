//! The ClusterNetworkPolicies that stand beside the NetworkPolicies which cut off agents, in the tier that no namespace's own word opens to the outside.
//!
//! In: whom those let through by the platform's word, and within the namespace. Out: the `spec` of one for a namespace. Promises: nothing is accepted here: what the NetworkPolicies of ours let through is left to them, and
//! the rest is denied, whatever other NetworkPolicies say; Pods with the trust label are not meant; what does not fit into the bounds of the API is left to NetworkPolicies at
//! more ports rather than denied. What comes from outside of the cluster, and from Pods on a node's network, this API does not know: NetworkPolicies alone hold that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Facts, Peer, PortName, Whom, block};
use crate::domain::keys;
use crate::policy::address::Block;

/// Before all but what the administrators of a cluster put before it.
const QUARANTINE: u16 = 10;
/// The same, behind the quarantine.
const DENY: u16 = 20;
/// Rules of one direction, and peers, blocks and ports of one rule, that the API takes.
const MOST: usize = 25;

/// What denies the agents of a namespace that are not verified, or with `all` every such Pod, but what `facts` say.
#[must_use]
pub fn cluster_deny(namespace: &str, all: bool, facts: &Facts) -> Value {
    let mut pods =
        json!({"matchExpressions": [{"key": keys::LABEL_VERIFIED, "operator": "NotIn", "values": [keys::VERIFIED]}]});
    if !all {
        pods["matchLabels"] = json!({keys::LABEL_TYPE: "agent"});
    }
    let operators: Vec<Value> =
        facts.operators.iter().take(MOST).map(|name| json!({"namespaces": named(name)})).collect();
    let ingress = json!([
        {"name": "operator", "action": "Pass", "from": operators},
        {"name": "deny", "action": "Deny", "from": [{"namespaces": {}}]},
    ]);
    let mut egress = passed(facts);
    egress.push(json!({"name": "deny", "action": "Deny", "to": everybody()}));
    json!({"tier": "Admin", "priority": DENY, "subject": subject(namespace, pods), "ingress": ingress, "egress": egress})
}

/// What denies who is in quarantine, both ways.
#[must_use]
pub fn cluster_quarantine(namespace: &str, every: bool) -> Value {
    let pods = match every {
        true => json!({}),
        false => json!({"matchExpressions": [{"key": keys::LABEL_QUARANTINED, "operator": "Exists"}]}),
    };
    json!({"tier": "Admin", "priority": QUARANTINE, "subject": subject(namespace, pods),
        "ingress": [{"name": "deny", "action": "Deny", "from": [{"namespaces": {}}]}],
        "egress": [{"name": "deny", "action": "Deny", "to": everybody()}]})
}

fn named(namespace: &str) -> Value {
    json!({"matchLabels": {keys::LABEL_NAMESPACE_NAME: namespace}})
}

fn subject(namespace: &str, pods: Value) -> Value {
    json!({"pods": {"namespaceSelector": named(namespace), "podSelector": pods}})
}

fn everybody() -> Value {
    json!([{"networks": ["0.0.0.0/0", "::/0"]}, {"namespaces": {}}])
}

/// A peer as this API writes it; a block that is none is for nobody.
fn peer(whom: &Whom) -> Option<Value> {
    Some(match whom {
        Whom::Block(text) => json!({"networks": [Block::read(text)?.to_string()]}),
        Whom::Pods { namespace, labels } => {
            json!({"pods": {"namespaceSelector": named(namespace), "podSelector": {"matchLabels": labels}}})
        }
        // Nobody who is not verified is opened to these.
        Whom::Verified { .. } => return None,
    })
}

/// The ports of a peer as this API writes them; `None` where it has a name for one, or too many: then NetworkPolicies decide about all.
fn ports(peer: &Peer) -> Option<Vec<Value>> {
    let one = |port: &super::Port| match &port.port {
        PortName::Number(number) => {
            let protocol = port.protocol.to_ascii_lowercase();
            Some(json!({protocol: {"destinationPort": {"number": number}}}))
        }
        PortName::Name(_) => None,
    };
    let ports: Vec<Value> = peer.ports.iter().map(one).collect::<Option<_>>()?;
    (!ports.is_empty() && ports.len() <= MOST).then_some(ports)
}

/// What is left to NetworkPolicies: a rule for each set of ports, or where that would be too many, the peers at all ports.
fn passed(facts: &Facts) -> Vec<Value> {
    let mut peers: BTreeSet<Peer> = facts.egress.iter().chain(&facts.dns).cloned().collect();
    for (port, address) in &facts.api_server {
        peers.insert(Peer { whom: Whom::Block(block(*address)), ports: vec![super::Port::tcp(*port)] });
    }
    let mut by_ports: BTreeMap<String, (Option<Vec<Value>>, Vec<Value>)> = BTreeMap::new();
    for one in &peers {
        let Some(peer) = peer(&one.whom) else { continue };
        let ports = ports(one);
        let key = ports.as_ref().map(|ports| json!(ports).to_string()).unwrap_or_default();
        by_ports.entry(key).or_insert_with(|| (ports, Vec::new())).1.push(peer);
    }
    let rules: usize = by_ports.values().map(|(_, peers)| peers.len().div_ceil(MOST)).sum();
    if rules >= MOST {
        let all: Vec<Value> = by_ports.into_values().flat_map(|(_, peers)| peers).collect();
        by_ports = BTreeMap::from([(String::new(), (None, all))]);
    }
    let mut rules = Vec::new();
    for (ports, peers) in by_ports.into_values() {
        for some in peers.chunks(MOST) {
            let mut rule = json!({"name": format!("needed-{}", rules.len()), "action": "Pass", "to": some});
            if let Some(ports) = &ports {
                rule["protocols"] = json!(ports);
            }
            rules.push(rule);
        }
    }
    // What comes behind these is denied: no other place is left for it.
    rules.truncate(MOST - 1);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::desired::Port;

    fn facts() -> Facts {
        let kc = Whom::Pods { namespace: "iam".into(), labels: BTreeMap::from([("app".into(), "kc".into())]) };
        Facts {
            operators: BTreeSet::from(["system".to_owned()]),
            api_server: [(6443, "10.0.0.2".parse().unwrap()), (6443, "10.0.0.1".parse().unwrap())].into(),
            egress: vec![
                Peer { whom: kc, ports: vec![Port::tcp(8080)] },
                Peer { whom: Whom::Block("203.0.113.9/24".into()), ports: Vec::new() },
            ],
            ..Facts::default()
        }
    }

    #[test]
    fn what_is_needed_is_left_to_network_policies_and_the_rest_denied() {
        let spec = cluster_deny("team", false, &facts());
        let verified =
            json!([{"key": "agent.kagenti.dev/signature-verified", "operator": "NotIn", "values": ["true"]}]);
        assert_eq!(
            spec["subject"]["pods"],
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "team"}},
                "podSelector": {"matchLabels": {"kagenti.io/type": "agent"}, "matchExpressions": verified}})
        );
        assert_eq!((&spec["tier"], &spec["priority"]), (&json!("Admin"), &json!(20)));
        let egress = spec["egress"].as_array().unwrap();
        let actions: Vec<&str> = egress.iter().map(|rule| rule["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["Pass", "Pass", "Pass", "Deny"]);
        assert_eq!(egress[0]["to"], json!([{"networks": ["203.0.113.0/24"]}]), "as the API wants it: masked");
        assert_eq!(egress[1]["to"], json!([{"networks": ["10.0.0.1/32"]}, {"networks": ["10.0.0.2/32"]}]));
        assert_eq!(egress[1]["protocols"], json!([{"tcp": {"destinationPort": {"number": 6443}}}]));
        assert!(!spec.to_string().contains("Accept"), "nothing is decided in favour of anybody");
        let every = cluster_deny("team", true, &facts());
        assert_eq!(every["subject"]["pods"]["podSelector"], json!({"matchExpressions": verified}));
    }

    /// A port that has a name is some number or other of each Pod: what is meant by it NetworkPolicies decide.
    #[test]
    fn a_port_keeps_its_protocol_and_a_name_leaves_every_port_to_network_policies() {
        let port = |protocol, port| Port { protocol, port };
        let number = |protocol| port(protocol, PortName::Number(3868));
        let one = |name: &str| json!([{name: {"destinationPort": {"number": 3868}}}]);
        for (port, wanted) in [
            (number("TCP"), one("tcp")),
            (number("UDP"), one("udp")),
            (number("SCTP"), one("sctp")),
            (port("SCTP", PortName::Name("signal".into())), Value::Null),
        ] {
            let peer = Peer { whom: Whom::Block("10.0.0.1/32".into()), ports: vec![port] };
            let spec = cluster_deny("team", false, &Facts { egress: vec![peer], ..Facts::default() });
            assert_eq!(spec["egress"][0]["protocols"], wanted);
            assert_eq!(spec["egress"][0]["action"], "Pass");
        }
    }

    #[test]
    fn no_more_rules_and_peers_are_written_than_the_api_takes() {
        let one = |at: u16| Peer {
            whom: Whom::Block(format!("10.1.{}.{}/32", at / 250, at % 250)),
            ports: vec![Port::tcp(at + 1)],
        };
        for count in [20, 24, 25, 600, 5000] {
            let facts = Facts { egress: (0..count).map(one).collect(), ..Facts::default() };
            let spec = cluster_deny("team", false, &facts);
            let egress = spec["egress"].as_array().unwrap();
            assert!(egress.len() <= MOST, "{count}: {}", egress.len());
            assert!(egress.iter().all(|rule| (1..=MOST).contains(&rule["to"].as_array().unwrap().len())));
            assert_eq!(egress.last().unwrap()["action"], "Deny");
        }
    }

    #[test]
    fn who_is_in_quarantine_is_denied_before_anything_is_left_to_others() {
        let (held, deny) = (cluster_quarantine("team", false), cluster_deny("team", false, &facts()));
        assert!(held["priority"].as_u64() < deny["priority"].as_u64());
        for direction in ["ingress", "egress"] {
            let rules = held[direction].as_array().unwrap();
            assert!(rules.len() == 1 && rules[0]["action"] == "Deny");
        }
        assert_eq!(cluster_quarantine("team", true)["subject"]["pods"]["podSelector"], json!({}));
    }
}
