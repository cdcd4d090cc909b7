//! What follows from a card for what its agent may reach, by the NetworkPolicies of the namespace.

use serde_json::Value;

use super::{Check, Facts, State, check, of_card, place};
use crate::cli::policy::left::left;
use crate::cli::survey::{annotation, label, text};
use crate::domain::keys;

pub(super) const NAME: &str = "reach";

fn is_ours(policy: &&Value) -> bool {
    label(policy, keys::LABEL_POLICY_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE)
}

/// Whether the agent is cut off, open, or neither.
pub(super) fn reach(facts: &Facts) -> Check {
    // Nobody takes the label off a Pod that has ended.
    let mut alive = facts.pods.iter().filter(|pod| !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed"));
    if let Some(who) = alive.find_map(|pod| label(pod, keys::LABEL_QUARANTINED)) {
        let text = format!("{who} is in quarantine: nobody reaches it, it reaches nobody, and no Pod of it is made");
        return check(NAME, Err((text, format!("drawbridge release agent/{who} {} ends that", place(facts)))));
    }
    if let Some(hidden) = facts.hidden(NAME, "what NetworkPolicies let it reach") {
        return hidden;
    }
    let ours = || facts.policies.iter().filter(is_ours);
    if ours().all(|policy| text(policy, "/metadata/name") != keys::DEFAULT_DENY) {
        let text = "trust is not enforced in this namespace, so nothing that the agent reaches follows from the card"
            .to_owned();
        return Check { name: NAME, state: State::Ok, text, remedy: None };
    }
    if let Some(told) = facts.workload.as_ref().and_then(|workload| left([&facts.card, workload].into_iter()).pop()) {
        let remedy =
            format!("put the label, or the AgentRuntime, back; {}=enforced-all cuts off every Pod", keys::LABEL_TRUST);
        return check(NAME, Err((told, remedy)));
    }
    let uid = of_card(facts, "/metadata/uid");
    let owners = |policy: &Value| policy.pointer("/metadata/ownerReferences").and_then(Value::as_array).cloned();
    let is_owned = |policy: &Value| owners(policy).into_iter().flatten().any(|owner| owner["uid"] == uid);
    // What cuts off has no owner, whatever it says of one.
    let is_deny = |policy: &Value| text(policy, "/metadata/name") == keys::DEFAULT_DENY;
    let of_it = |policy: &&Value| !uid.is_empty() && !is_deny(policy) && is_owned(policy);
    let Some(policy) = ours().find(of_it) else {
        let text = format!("NetworkPolicy {} cuts the agent off, and none opens it", keys::DEFAULT_DENY);
        let remedy = format!("kubectl {} get events --field-selector reason=NameConflict", place(facts));
        return check(NAME, Err((text, remedy)));
    };
    let name = text(policy, "/metadata/name");
    let labels = policy.pointer("/spec/podSelector/matchLabels");
    if labels.and_then(|labels| labels.get(keys::LABEL_VERIFIED)).is_none() {
        let text = format!("NetworkPolicy {name} lets the agent reach only what it needs to become verified");
        return check(NAME, Err((text, "what fails above opens it once it is right".to_owned())));
    }
    let verified = facts.pods.iter().filter(|pod| label(pod, keys::LABEL_VERIFIED).is_some()).count();
    let declared = annotation(policy, keys::ANNOTATION_DECLARED).map_or("", |_| " to what is declared");
    let (all, text) = (facts.pods.len(), format!("NetworkPolicy {name} opens Pods with the trust label{declared}"));
    check(NAME, Ok(format!("{text}: {verified} of {all} carry it")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_agent_is_open_cut_off_or_nothing_is_enforced() {
        let policy = |name: &str, labels: Value| {
            json!({"metadata": {"name": name, "labels": {"managed-by": "drawbridge"}, "ownerReferences": [{"uid": "u"}]},
                "spec": {"podSelector": {"matchLabels": labels}}})
        };
        let deny = || policy("drawbridge-default-deny", json!({}));
        let verified = json!({"agent.kagenti.dev/signature-verified": "true"});
        let foreign = json!({"metadata": {"name": "drawbridge-default-deny"}, "spec": {}});
        for (policies, state, words) in [
            (vec![], State::Ok, "not enforced"),
            (vec![foreign], State::Ok, "not enforced"),
            (vec![deny(), policy("w-signature-policy", verified)], State::Ok, "0 of 1 carry it"),
            (vec![deny(), policy("w-signature-policy", json!({"app": "w"}))], State::Failed, "only what it needs"),
        ] {
            let card = json!({"metadata": {"name": "c", "namespace": "team", "uid": "u"}});
            let facts = Facts { card, policies, pods: vec![json!({})], ..Facts::default() };
            let found = reach(&facts);
            assert!(found.state == state && found.text.contains(words), "{found:?}");
        }
        let held = json!({"metadata": {"labels": {"agent.kagenti.dev/quarantined": "w"}}});
        let found = reach(&Facts { pods: vec![held], ..Facts::default() });
        assert!(found.state == State::Failed && found.text.contains("w is in quarantine"), "{found:?}");
        let ended =
            json!({"metadata": {"labels": {"agent.kagenti.dev/quarantined": "w"}}, "status": {"phase": "Failed"}});
        let found = reach(&Facts { pods: vec![ended], ..Facts::default() });
        assert!(!found.text.contains("in quarantine"), "it was released since: {found:?}");
        let card = json!({"metadata": {"name": "c", "namespace": "team", "uid": "another"}});
        let alone = reach(&Facts { card, policies: vec![deny()], ..Facts::default() });
        assert!(alone.state == State::Failed && alone.text.contains("none opens it"), "{alone:?}");
    }
}
