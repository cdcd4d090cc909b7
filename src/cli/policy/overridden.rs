//! What NetworkPolicies of others open of Pods that ours cut off (`PolicyOverridden`), for `status`, `doctor` and `quarantine`.
//!
//! In: a Namespace, Pods and NetworkPolicies of it, as JSON, with ClusterNetworkPolicies where there are any. Out: a sentence for each rule that opens something. Promise: only Pods of agents that are not
//! verified, or are in quarantine, are looked at: what opens a verified one is how a gateway is let in.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::survey::{label, text};
use crate::domain::keys;
use crate::policy::network_policy::NetworkPolicy;
use crate::policy::openings::{from_outside, openings};
use crate::policy::pod::{Judged, Pod, labels};

/// The openings, each once.
pub(in crate::cli) fn words(namespace: &Value, pods: &[Value], policies: &[Value]) -> Vec<String> {
    let name = text(namespace, "/metadata/name");
    let is_tier = |policy: &Value| {
        text(policy, "/kind") == "ClusterNetworkPolicy"
            && text(policy, "/metadata/name").strip_prefix(keys::PREFIX_CLUSTER_DENY) == Some(name)
            && label(policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE)
    };
    let is_ours = |policy: &&Value| label(policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let (ours, others): (Vec<_>, Vec<_>) =
        policies.iter().filter(|policy| text(policy, "/metadata/namespace") == name).partition(is_ours);
    if ours.is_empty() || others.is_empty() {
        return Vec::new();
    }
    let read =
        |list: Vec<&Value>| list.into_iter().filter_map(|one| NetworkPolicy::read(one, name).ok()).collect::<Vec<_>>();
    let (ours, mut others) = (read(ours), read(others));
    if policies.iter().any(is_tier) {
        others = others.into_iter().map(from_outside).collect();
    }
    let here = labels(namespace);
    let is_cut = |pod: &&Value| {
        let is_agent = label(pod, keys::LABEL_TYPE) == Some("agent");
        let is_verified = label(pod, keys::LABEL_VERIFIED).is_some();
        text(pod, "/metadata/namespace") == name
            && ((is_agent && !is_verified) || label(pod, keys::LABEL_QUARANTINED).is_some())
    };
    let cut = pods.iter().filter(is_cut).map(Pod::read).filter(|pod| pod.judged == Judged::Yes);
    let found: BTreeSet<String> = cut
        .flat_map(|pod| {
            openings(&pod, &here, &ours, &others).into_iter().map(|opening| opening.to_string()).collect::<Vec<_>>()
        })
        .collect();
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_opens_somebody_who_is_cut_off_is_said() {
        let namespace = json!({"metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}}});
        let policy = |name: &str, ours: bool, selector: Value, rules: Value| {
            let labels = if ours { json!({"managed-by": "drawbridge"}) } else { json!({}) };
            json!({"metadata": {"name": name, "namespace": "team", "labels": labels},
                "spec": {"podSelector": selector, "policyTypes": ["Ingress", "Egress"], "ingress": rules}})
        };
        let deny = policy("drawbridge-default-deny", true, json!({}), json!([]));
        let pod = |labels: Value| json!({"metadata": {"name": "p", "namespace": "team", "labels": labels}, "status": {"phase": "Running"}});
        let bad = pod(json!({"kagenti.io/type": "agent", "app": "bad"}));
        let good =
            pod(json!({"kagenti.io/type": "agent", "app": "good", "agent.kagenti.dev/signature-verified": "true"}));
        let opens = policy("theirs", false, json!({}), json!([{}]));
        let narrow = policy("theirs", false, json!({"matchLabels": {"app": "good"}}), json!([{}]));
        let tier = json!({"kind": "ClusterNetworkPolicy", "metadata": {"name": "drawbridge-deny-team", "labels": {"managed-by": "drawbridge"}}});
        for (pods, policies, count) in [
            (vec![bad.clone(), good.clone()], vec![deny.clone(), opens.clone()], 1),
            (vec![good.clone()], vec![deny.clone(), opens.clone()], 0),
            (vec![bad.clone()], vec![deny.clone(), narrow], 0),
            (vec![bad.clone()], vec![opens.clone()], 0),
            (vec![bad.clone()], vec![deny.clone(), opens, tier.clone()], 2),
            (
                vec![bad.clone()],
                vec![deny.clone(), policy("theirs", false, json!({}), json!([{"from": [{"podSelector": {}}]}])), tier],
                0,
            ),
            (vec![bad], vec![deny.clone(), policy("shut", false, json!({}), json!([]))], 0),
        ] {
            let found = words(&namespace, &pods, &policies);
            assert_eq!(found.len(), count, "{found:?}");
            assert!(found.iter().all(|words| words.contains("theirs ingress[0]")), "{found:?}");
        }
    }
}
