//! Whom a stored `drawbridge-default-deny` cuts off.

use serde_json::Value;

use crate::domain::keys;
use crate::policy::address::Block;

/// Whom it cuts off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// Pods that say they are agents.
    Agents,
    /// Every Pod of its namespace.
    Everybody,
}

/// Whom a NetworkPolicy of that `spec` cuts off both ways, but for those in quarantine, whose label no new Pod has: `None` where it opens more than
/// the operator's namespace `own` and single addresses, or selects others.
#[must_use]
pub fn cut(spec: &Value, own: &str) -> Option<Cut> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let selector = spec.get("podSelector").cloned().unwrap_or_default();
    let quarantine =
        |one: &Value| text(one, "key") == keys::LABEL_QUARANTINED && text(one, "operator") == "DoesNotExist";
    if !list(&selector, "matchExpressions").iter().all(quarantine) {
        return None;
    }
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let agents = |(key, value): (&String, &Value)| key == keys::LABEL_TYPE && value == "agent";
    let whom = match labels.filter(|labels| !labels.is_empty()) {
        None => Cut::Everybody,
        Some(labels) if labels.iter().all(agents) => Cut::Agents,
        Some(_) => return None,
    };
    let types = list(spec, "policyTypes");
    let both = ["Ingress", "Egress"].iter().all(|wanted| types.iter().any(|one| one == wanted));
    let peers = |rule: &Value, key: &str, is_narrow: &dyn Fn(&Value) -> bool| {
        let peers = list(rule, key);
        !peers.is_empty() && peers.iter().all(is_narrow)
    };
    let namespace = format!("/namespaceSelector/matchLabels/{}", keys::LABEL_NAMESPACE_NAME.replace('/', "~1"));
    let is_own = |peer: &Value| peer.pointer(&namespace).is_some_and(|name| name == own);
    let is_one = |peer: &Value| {
        let block = peer.pointer("/ipBlock/cidr").and_then(Value::as_str).and_then(Block::read);
        block.is_some_and(|block| block.first() == block.last())
    };
    let ingress = list(spec, "ingress").iter().all(|rule| peers(rule, "from", &is_own));
    let egress = list(spec, "egress").iter().all(|rule| !list(rule, "ports").is_empty() && peers(rule, "to", &is_one));
    (both && ingress && egress).then_some(whom)
}
