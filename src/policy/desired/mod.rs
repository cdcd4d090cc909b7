//! The NetworkPolicies that enforcement of trust wants.
//!
//! In: [`Facts`] of the cluster and the platform. Out: the `spec` of `drawbridge-default-deny` ([`default_deny`]), and that of an agent's own
//! policy in its shapes ([`restrictive`], [`permissive`], and [`declared`] in place of that where the platform wants it). Promises: pure; addresses come out sorted and each once, whatever order they
//! were found in; an IPv4 address that is written as IPv6 is IPv4; nothing comes out that opens everything but the way out of a verified
//! agent, and nothing at all where only what is declared is open. Two specs mean the same if [`normal`] of them is equal: the API server leaves out what is empty and fills in what is not said.

mod cluster;
mod cut;
mod declared;
mod normal;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Map, Value, json};

use crate::domain::keys;
pub use cluster::{cluster_deny, cluster_quarantine};
pub use cut::{Cut, cut};
pub use declared::{Declaration, Declared, LARGEST, Opening, declared, fitting};
pub use normal::normal;

/// What policies are made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The operator's namespace, and others whose Pods reach every agent (`cards.defaultsNamespace` of upstream): at least one.
    pub operators: BTreeSet<String>,
    /// Where the API server is: addresses by port.
    pub api_server: BTreeSet<(u16, IpAddr)>,
    /// Whom an agent reaches that is not verified, besides.
    pub egress: Vec<Peer>,
    /// Where names are resolved, for an agent that is not verified; nobody, where it needs no names.
    pub dns: Vec<Peer>,
    /// Who reaches a verified agent, besides verified agents.
    pub ingress: Vec<Peer>,
    /// Which verified agents reach a verified agent.
    pub verified: VerifiedPeers,
    /// The namespaces in which agents are verified; empty where that is every one. Elsewhere nobody keeps the trust label from being forged.
    pub served: BTreeSet<String>,
}

/// Which verified agents reach a verified one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VerifiedPeers {
    /// Those of its namespace.
    #[default]
    Namespace,
    /// Those of namespaces with `kagenti-enabled: "true"`.
    Enabled,
    /// Those of every namespace.
    All,
}

/// Pods or addresses, at some ports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peer {
    /// Who.
    pub whom: Whom,
    /// At which ports; none: at all.
    pub ports: Vec<Port>,
}

/// Pods or addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// Pods of a namespace: those with these labels, or all.
    Pods {
        /// Its name.
        namespace: String,
        /// Their labels.
        labels: BTreeMap<String, String>,
    },
    /// A block of addresses, as NetworkPolicies write it.
    Block(String),
    /// Pods with the trust label.
    Verified {
        /// Their namespace, for as long as it has `kagenti-enabled: "true"`; `None` is the policy's own, whatever it has.
        namespace: Option<String>,
        /// The labels that they have besides.
        labels: BTreeMap<String, String>,
    },
}

/// A port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: &'static str,
    /// Its number, or the name that the Pods give it.
    pub port: PortName,
}

/// Number or name of a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortName {
    /// Number.
    Number(u16),
    /// Name.
    Name(String),
}

impl Peer {
    /// That address alone.
    #[must_use]
    pub fn address(address: IpAddr, ports: Vec<Port>) -> Self {
        Self { whom: Whom::Block(block(address)), ports }
    }

    fn selector(&self) -> Value {
        match &self.whom {
            Whom::Block(cidr) => json!({"ipBlock": {"cidr": cidr}}),
            Whom::Pods { namespace, labels } => {
                let mut peer = of_namespace(namespace);
                if !labels.is_empty() {
                    peer["podSelector"] = json!({"matchLabels": labels});
                }
                peer
            }
            Whom::Verified { namespace, labels } => {
                let mut peer = match namespace {
                    None => json!({}),
                    Some(name) => of_namespace(name),
                };
                if namespace.is_some() {
                    peer["namespaceSelector"]["matchLabels"][keys::LABEL_NAMESPACE_ENABLED] = "true".into();
                }
                peer["podSelector"] = trusted(&json!({"matchLabels": labels}));
                peer
            }
        }
    }

    fn rule(&self, direction: &str) -> Value {
        let mut rule = json!({direction: [self.selector()]});
        if !self.ports.is_empty() {
            rule["ports"] = self.ports.iter().map(Port::value).collect();
        }
        rule
    }
}

impl Port {
    /// That port over TCP.
    #[must_use]
    pub const fn tcp(number: u16) -> Self {
        Self { protocol: "TCP", port: PortName::Number(number) }
    }

    fn value(&self) -> Value {
        let port = match &self.port {
            PortName::Number(number) => json!(number),
            PortName::Name(name) => json!(name),
        };
        json!({"protocol": self.protocol, "port": port})
    }
}

/// An address as the smallest block; an IPv4 address within IPv6 is one of IPv4 (the API server refuses the other spelling).
#[must_use]
pub fn block(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => format!("{address}/128"),
    }
}

fn of_namespace(name: &str) -> Value {
    json!({"namespaceSelector": {"matchLabels": {keys::LABEL_NAMESPACE_NAME: name}}})
}

fn operators(facts: &Facts) -> Value {
    json!({"from": facts.operators.iter().map(|name| of_namespace(name)).collect::<Vec<_>>()})
}

/// One rule per port of the API server.
fn api_server(facts: &Facts) -> Vec<Value> {
    let mut by_port: BTreeMap<u16, BTreeSet<IpAddr>> = BTreeMap::new();
    for (port, address) in &facts.api_server {
        by_port.entry(*port).or_default().insert(address.to_canonical());
    }
    let rule = |(port, addresses): (u16, BTreeSet<IpAddr>)| {
        let to: Vec<_> = addresses.into_iter().map(|one| json!({"ipBlock": {"cidr": block(one)}})).collect();
        json!({"ports": [Port::tcp(port).value()], "to": to})
    };
    by_port.into_iter().map(rule).collect()
}

fn both(selector: Value, ingress: Vec<Value>, egress: Vec<Value>) -> Value {
    json!({"podSelector": selector, "policyTypes": ["Ingress", "Egress"], "ingress": ingress, "egress": egress})
}

/// Who of a namespace is in quarantine, as far as its policies go by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Nobody.
    Nobody,
    /// Pods with the label of quarantine: [`quarantine`] holds them alone.
    Labelled,
    /// Every Pod.
    Everybody,
}

/// What cuts off every agent of a namespace, or with `all` every Pod, but from the operator and from the API server; who is in quarantine is
/// left to [`quarantine`], or cut off from those, too.
#[must_use]
pub fn default_deny(all: bool, held: Held, facts: &Facts) -> Value {
    let mut selector = if all { json!({}) } else { json!({"matchLabels": {keys::LABEL_TYPE: "agent"}}) };
    if held == Held::Labelled {
        selector["matchExpressions"] = json!([not_held()]);
    }
    match held {
        Held::Everybody => closed(&selector),
        _ => both(selector, vec![operators(facts)], api_server(facts)),
    }
}

/// What cuts off who is in quarantine, both ways, from everybody.
#[must_use]
pub fn quarantine(everybody: bool) -> Value {
    if everybody {
        return closed(&json!({}));
    }
    closed(&json!({"matchExpressions": [{"key": keys::LABEL_QUARANTINED, "operator": "Exists"}]}))
}

/// What an agent in quarantine has in place of what would open it: `selector` is its workload's.
#[must_use]
pub fn closed(selector: &Value) -> Value {
    both(selector.clone(), Vec::new(), Vec::new())
}

/// The selector, less the Pods in quarantine: whose they are is no matter of the labels by which a workload selects, since these can be put on any Pod.
#[must_use]
pub fn without_held(selector: &Value) -> Value {
    let mut members = selector.as_object().cloned().unwrap_or_default();
    let mut expressions =
        members.remove("matchExpressions").and_then(|list| list.as_array().cloned()).unwrap_or_default();
    expressions.push(not_held());
    members.insert("matchExpressions".to_owned(), Value::Array(expressions));
    Value::Object(members)
}

fn not_held() -> Value {
    json!({"key": keys::LABEL_QUARANTINED, "operator": "DoesNotExist"})
}

/// What an agent needs to prove who it is: `selector` is its workload's.
#[must_use]
pub fn restrictive(selector: &Value, facts: &Facts) -> Value {
    both(selector.clone(), vec![operators(facts)], needed(facts))
}

/// The ways out that every agent has.
fn needed(facts: &Facts) -> Vec<Value> {
    let mut egress = api_server(facts);
    let needed: BTreeSet<_> = facts.egress.iter().chain(&facts.dns).collect();
    egress.extend(needed.into_iter().map(|peer| peer.rule("to")));
    egress
}

/// What opens an agent that has proved it: those Pods of its workload that carry the trust label. Others stay under the deny, whoever has
/// made them look like its own.
#[must_use]
pub fn permissive(selector: &Value, facts: &Facts) -> Value {
    let mut peer = json!({"podSelector": {"matchLabels": {keys::LABEL_VERIFIED: keys::VERIFIED}}});
    match facts.verified {
        VerifiedPeers::Namespace => {}
        VerifiedPeers::Enabled => {
            peer["namespaceSelector"] = json!({"matchLabels": {keys::LABEL_NAMESPACE_ENABLED: "true"}});
        }
        VerifiedPeers::All => peer["namespaceSelector"] = json!({}),
    }
    if facts.verified != VerifiedPeers::Namespace && !facts.served.is_empty() {
        let served = json!({"key": keys::LABEL_NAMESPACE_NAME, "operator": "In", "values": facts.served});
        peer["namespaceSelector"]["matchExpressions"] = json!([served]);
    }
    let mut from = operators(facts);
    if let Some(peers) = from["from"].as_array_mut() {
        peers.push(peer);
    }
    let besides: BTreeSet<_> = facts.ingress.iter().collect();
    let ingress = std::iter::once(from).chain(besides.into_iter().map(|peer| peer.rule("from"))).collect();
    both(trusted(selector), ingress, vec![json!({})])
}

/// Whether that is the `spec` of an opening policy: its selector asks for the trust label.
#[must_use]
pub fn is_permissive(spec: &Value) -> bool {
    let labels = spec.get("podSelector").and_then(|selector| selector.get("matchLabels"));
    labels.and_then(|labels| labels.get(keys::LABEL_VERIFIED)).is_some()
}

/// The selector, with the trust label besides.
fn trusted(selector: &Value) -> Value {
    let mut members = selector.as_object().cloned().unwrap_or_default();
    let labels = members.remove("matchLabels").and_then(|labels| labels.as_object().cloned());
    let mut labels: Map<String, Value> = labels.unwrap_or_default();
    labels.insert(keys::LABEL_VERIFIED.to_owned(), keys::VERIFIED.into());
    members.insert("matchLabels".to_owned(), Value::Object(labels));
    Value::Object(members)
}
