//! What NetworkPolicies of others open of Pods that ours cut off (`PolicyOverridden`), for `status`, `doctor` and `quarantine`.
//!
//! In: a Namespace, Pods and NetworkPolicies of it, as JSON, with ClusterNetworkPolicies where there are any. Out: a sentence for each rule that opens something. Promises: only Pods of agents that are not
//! verified, or are in quarantine, are looked at: what opens a verified one is how a gateway is let in; a policy that cannot be judged is named, for nobody knows what it opens.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::survey::{label, text};
use crate::domain::keys;
use crate::policy::network_policy::{Fault, NetworkPolicy};
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
    let ours: Vec<_> = ours.into_iter().filter_map(|one| NetworkPolicy::read(one, name).ok()).collect();
    let (mut found, mut judged) = (BTreeSet::new(), Vec::new());
    for one in others {
        match NetworkPolicy::read(one, name) {
            Ok(policy) => judged.push(policy),
            Err(fault) => {
                found.insert(not_judged(one, &fault));
            }
        }
    }
    if policies.iter().any(is_tier) {
        judged = judged.into_iter().map(from_outside).collect();
    }
    let here = labels(namespace);
    let is_cut = |pod: &&Value| {
        let is_agent = label(pod, keys::LABEL_TYPE) == Some("agent");
        let is_verified = label(pod, keys::LABEL_VERIFIED).is_some();
        text(pod, "/metadata/namespace") == name
            && ((is_agent && !is_verified) || label(pod, keys::LABEL_QUARANTINED).is_some())
    };
    let cut: Vec<Pod> = pods.iter().filter(is_cut).map(Pod::read).filter(|pod| pod.judged == Judged::Yes).collect();
    if cut.is_empty() {
        return Vec::new();
    }
    for pod in &cut {
        found.extend(openings(pod, &here, &ours, &judged).iter().map(ToString::to_string));
    }
    found.into_iter().collect()
}

/// What is said of a policy of which nobody knows what it opens.
fn not_judged(policy: &Value, Fault { field, problem, .. }: &Fault) -> String {
    format!("{} cannot be judged, so nobody knows whom it opens ({field}: {problem})", text(policy, "/metadata/name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::policy::network_policy::MAX_PARTS;

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

    /// Whoever fills a policy until nobody judges it does not pass for somebody who opens nothing.
    #[test]
    fn a_policy_that_cannot_be_judged_is_named_where_somebody_is_cut_off() {
        let namespace = json!({"metadata": {"name": "team", "labels": {"kubernetes.io/metadata.name": "team"}}});
        let policy = |name: &str, labels: Value, rules: Value| {
            json!({"metadata": {"name": name, "namespace": "team", "labels": labels},
                "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": rules}})
        };
        let pod = |labels: Value| json!({"metadata": {"name": "p", "namespace": "team", "labels": labels}, "status": {"phase": "Running"}});
        let deny = policy("drawbridge-default-deny", json!({"managed-by": "drawbridge"}), json!([]));
        let filled = policy("theirs", json!({}), json!([{}, {"ports": vec![json!({"port": 1}); MAX_PARTS]}]));
        let policies = [deny, filled];
        let held = json!({"kagenti.io/type": "agent", "agent.kagenti.dev/signature-verified": "true", "agent.kagenti.dev/quarantined": "p"});
        for cut in [json!({"kagenti.io/type": "agent"}), held] {
            let found = words(&namespace, &[pod(cut)], &policies);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("theirs cannot be judged") && found[0].contains("spec.ingress"), "{found:?}");
        }
        let verified = json!({"kagenti.io/type": "agent", "agent.kagenti.dev/signature-verified": "true"});
        assert_eq!(words(&namespace, &[pod(verified)], &policies), Vec::<String>::new(), "nobody is cut off");
    }
}
