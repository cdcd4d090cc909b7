//! A ClusterNetworkPolicy (`policy.networking.k8s.io`): what the administrators of a cluster decide before, or after, the NetworkPolicies of its namespaces.
//!
//! In: JSON ([`ClusterPolicy::read`]). Out: whom it is about, and its rules in their order. Promises: a rule that says what is not known here fails closed, as the API
//! has it: one that accepts is for nobody, any other one denies everything; a policy is never read in parts.

use serde_json::Value;

use super::read::{Fault, Reader, Wrong, entries, faulty, fields, unknown};
use super::{Addresses, Direction, Peer};
use crate::policy::pod::{Judged, Pod};
use crate::policy::ports::{PortSet, Protocol};
use crate::policy::selector::{Labels, Selector};

/// When it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tier {
    /// Before every NetworkPolicy.
    Admin,
    /// After them, of Pods that none selects.
    Baseline,
}

/// What a rule decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// It is let through, and nobody else is asked.
    Accept,
    /// It is not, and nobody else is asked.
    Deny,
    /// The next tier is asked.
    Pass,
}

impl Action {
    /// A word for sentences.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Action::Accept => "accepts",
            Action::Deny => "denies",
            Action::Pass => "leaves to NetworkPolicies",
        }
    }
}

/// A ClusterNetworkPolicy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPolicy {
    /// Its name.
    pub name: String,
    /// When it is asked.
    pub tier: Tier,
    /// Those of a lower number are asked first.
    pub priority: i64,
    /// The namespaces of the Pods that it is about.
    pub namespaces: Selector,
    /// Their labels.
    pub pods: Selector,
    /// What it decides of what they send.
    pub egress: Vec<ClusterRule>,
    /// What it decides of what is sent to them.
    pub ingress: Vec<ClusterRule>,
}

/// One of its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRule {
    /// What it decides.
    pub action: Action,
    /// About whom; `None` is everybody.
    pub peers: Option<Vec<Peer>>,
    /// On which ports.
    pub ports: PortSet,
}

impl ClusterPolicy {
    /// Reads a policy.
    ///
    /// # Errors
    /// The first field that cannot be read.
    pub fn read(object: &Value) -> Result<Self, Fault> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        Self::within(object, name).map_err(|wrong| faulty(("ClusterNetworkPolicy", name), wrong))
    }

    fn within(object: &Value, name: &str) -> Result<Self, Wrong> {
        if name.is_empty() {
            return Err(("metadata.name".to_owned(), "missing".to_owned()));
        }
        let missing = |field: &str, wanted: &str| (field.to_owned(), unknown(&Value::Null, wanted));
        let spec = fields(object.get("spec"), "spec")?.ok_or_else(|| missing("spec", "an object"))?;
        let tier = match spec.get("tier").and_then(Value::as_str) {
            Some("Admin") => Tier::Admin,
            Some("Baseline") => Tier::Baseline,
            _ => {
                return Err((
                    "spec.tier".to_owned(),
                    unknown(spec.get("tier").unwrap_or(&Value::Null), "Admin or Baseline"),
                ));
            }
        };
        let priority =
            spec.get("priority").and_then(Value::as_i64).ok_or_else(|| missing("spec.priority", "a number"))?;
        let mut reader = Reader::default();
        let subject =
            fields(spec.get("subject"), "spec.subject")?.ok_or_else(|| missing("spec.subject", "an object"))?;
        let Some((namespaces, pods)) =
            some_pods(&mut reader, subject.iter().map(|(k, v)| (k.as_str(), v)), "spec.subject")?
        else {
            return Err(("spec.subject".to_owned(), "is neither namespaces nor pods".to_owned()));
        };
        let mut rules = |key: &str, peers: &str| -> Result<Vec<ClusterRule>, Wrong> {
            let field = format!("spec.{key}");
            let list = entries(spec.get(key), &field)?;
            reader.count(list.len(), &field)?;
            list.iter().enumerate().map(|(at, one)| rule(&mut reader, one, peers, &format!("{field}[{at}]"))).collect()
        };
        let (egress, ingress) = (rules("egress", "to")?, rules("ingress", "from")?);
        Ok(Self { name: name.to_owned(), tier, priority, namespaces, pods, egress, ingress })
    }

    /// Its rules for a direction, in their order.
    #[must_use]
    pub fn rules(&self, direction: Direction) -> &[ClusterRule] {
        match direction {
            Direction::Egress => &self.egress,
            Direction::Ingress => &self.ingress,
        }
    }

    /// Whether it is about a Pod of a namespace with those labels. Pods on the node's network are never meant.
    #[must_use]
    pub fn is_about(&self, pod: &Pod, namespace: &Labels) -> bool {
        pod.judged != Judged::HostNetwork && self.pods.matches(&pod.labels) && self.namespaces.matches(namespace)
    }
}

/// The namespaces and labels of Pods, where one member says that: `namespaces` or `pods`.
fn some_pods<'v>(
    reader: &mut Reader,
    members: impl Iterator<Item = (&'v str, &'v Value)>,
    at: &str,
) -> Result<Option<(Selector, Selector)>, Wrong> {
    for (key, value) in members.filter(|(_, value)| !value.is_null()) {
        match key {
            "namespaces" => {
                let namespaces = reader.selector(Some(value), &format!("{at}.namespaces"))?.unwrap_or_default();
                return Ok(Some((namespaces, Selector::default())));
            }
            "pods" => {
                let mut one = |key: &str| {
                    let field = format!("{at}.pods.{key}");
                    reader.selector(value.get(key), &field).map(Option::unwrap_or_default)
                };
                return Ok(Some((one("namespaceSelector")?, one("podSelector")?)));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Nodes and names of hosts are peers that no Pod and no address is known to be.
const NEVER_KNOWN: [&str; 2] = ["nodes", "domainNames"];

fn rule(reader: &mut Reader, value: &Value, peers: &str, at: &str) -> Result<ClusterRule, Wrong> {
    let action = match value.get("action").and_then(Value::as_str) {
        Some("Accept") => Action::Accept,
        Some("Deny") => Action::Deny,
        Some("Pass") => Action::Pass,
        _ => {
            let found = value.get("action").unwrap_or(&Value::Null);
            return Err((format!("{at}.action"), unknown(found, "Accept, Deny or Pass")));
        }
    };
    let mut known = true;
    let mut all = Vec::new();
    let field = format!("{at}.{peers}");
    for (number, one) in entries(value.get(peers), &field)?.iter().enumerate() {
        reader.count(1, &field)?;
        let field = format!("{field}[{number}]");
        let members = fields(Some(one), &field)?.into_iter().flatten().map(|(key, value)| (key.as_str(), value));
        if let Some((namespaces, pods)) = some_pods(reader, members.clone(), &field)? {
            all.push(Peer::In { namespaces, pods });
            continue;
        }
        let blocks = entries(one.get("networks"), &field)?;
        for block in blocks {
            all.push(Peer::Addresses(Addresses { block: Reader::block(block, &field)?, except: Vec::new() }));
        }
        known &= !blocks.is_empty() || members.clone().any(|(key, _)| NEVER_KNOWN.contains(&key));
    }
    let ports = ports(value, at)?;
    match ports.filter(|_| known) {
        Some(ports) => Ok(ClusterRule { action, peers: Some(all), ports }),
        None if action == Action::Accept => Ok(ClusterRule { action, peers: Some(Vec::new()), ports: PortSet::NONE }),
        None => Ok(ClusterRule { action: Action::Deny, peers: None, ports: PortSet::all() }),
    }
}

/// The ports of a rule; `None` where it says of them what is not known here.
fn ports(value: &Value, at: &str) -> Result<Option<PortSet>, Wrong> {
    let field = format!("{at}.protocols");
    let list = entries(value.get("protocols"), &field)?;
    if list.is_empty() {
        return Ok(Some(PortSet::all()));
    }
    let mut set = PortSet::NONE;
    for one in list {
        let members = fields(Some(one), &field)?;
        let Some((name, what)) = members.and_then(|members| members.iter().find(|(_, value)| !value.is_null())) else {
            return Ok(None);
        };
        let Some(protocol) = Protocol::of(&name.to_ascii_uppercase()) else { return Ok(None) };
        let number =
            |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
        let Some(port) = what.get("destinationPort") else { return Ok(None) };
        let (first, last) = match (number(port.get("number")), port.get("range")) {
            (Some(number), _) => (Some(number), Some(number)),
            (None, range) => {
                (number(range.and_then(|range| range.get("start"))), number(range.and_then(|range| range.get("end"))))
            }
        };
        let Some((first, last)) = first.zip(last) else { return Ok(None) };
        set.add(&PortSet::range(protocol, first, last));
    }
    Ok(Some(set))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(rule: Value) -> Result<ClusterRule, String> {
        let object = json!({"metadata": {"name": "x"}, "spec": {"tier": "Admin", "priority": 1, "subject": {"namespaces": {}}, "egress": [rule]}});
        ClusterPolicy::read(&object).map(|policy| policy.egress[0].clone()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_rule_that_says_what_is_not_known_fails_closed() {
        let denies = ClusterRule { action: Action::Deny, peers: None, ports: PortSet::all() };
        let nobody = ClusterRule { action: Action::Accept, peers: Some(Vec::new()), ports: PortSet::NONE };
        let everybody = json!([{"namespaces": {}}]);
        for strange in [
            json!({"to": [{"services": {}}]}),
            json!({"to": everybody, "protocols": [{"icmp": {}}]}),
            json!({"to": everybody, "protocols": [{"tcp": {"sourcePort": {"number": 1}}}]}),
            json!({"to": everybody, "protocols": [{"destinationNamedPort": "http"}]}),
        ] {
            for (action, wanted) in [("Deny", &denies), ("Pass", &denies), ("Accept", &nobody)] {
                let mut rule = strange.clone();
                rule["action"] = action.into();
                assert_eq!(read(rule).as_ref(), Ok(wanted), "{action} {strange}");
            }
        }
        let nodes = read(json!({"action": "Deny", "to": [{"nodes": {}}]})).unwrap();
        assert_eq!(nodes.peers, Some(Vec::new()), "nobody here is known to be a node");
    }

    #[test]
    fn ports_and_blocks_are_read_as_they_are_written() {
        let protocols = json!([{"tcp": {"destinationPort": {"number": 80}}}, {"udp": {"destinationPort": {"range": {"start": 50, "end": 60}}}}]);
        let rule =
            read(json!({"action": "Accept", "to": [{"networks": ["10.0.0.0/8", "fd00::/8"]}], "protocols": protocols}))
                .unwrap();
        assert_eq!(
            (rule.ports.to_string().as_str(), rule.peers.map(|peers| peers.len())),
            ("80/TCP, 50-60/UDP", Some(2))
        );
        for (wrong, words) in [
            (json!({"action": "Maybe", "to": []}), "action"),
            (json!({"action": "Deny", "to": [{"networks": ["10.0.0.0/33"]}]}), "block"),
            (json!({"action": "Deny", "to": {}}), "a list"),
        ] {
            assert!(read(wrong.clone()).unwrap_err().contains(words), "{wrong}");
        }
    }
}
