//! What NetworkPolicies of others open of an agent that ours cut off.
//!
//! In: the selector of the agent's workload, and the NetworkPolicies of its namespace. Out: a sentence that names what is opened, and one of
//! those that may open it and are not read. NetworkPolicies add up, so nothing of that can be taken back; it can be said. Assumes: an agent's Pods have the labels that its workload selects by and the
//! type; a policy that selects by another label of theirs is found by `status` and `doctor`, which read the Pods. A port that a policy has by its name is
//! told by that name, whether a container calls one so or not: whoever changes the Pod template may have it so at any time.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::domain::keys;
use crate::policy::network_policy::{Fault, NetworkPolicy};
use crate::policy::openings::{from_outside, openings_by_labels};
use crate::policy::pod::Pod;
use crate::store::Store;
use crate::store::objects::PolicyRef;

/// Openings that the sentence names.
const NAMED: usize = 3;

/// What NetworkPolicies of others open of the agent whose workload selects by that; nothing where none does.
pub(in crate::controllers) fn by_others(
    store: &Store,
    (namespace, name): (&str, &str),
    selector: &Value,
) -> Option<String> {
    let (ours, others): (Vec<_>, Vec<_>) =
        store.network_policies(namespace).filter(|one| !one.seen.deleting).partition(|one| one.seen.is_ours());
    if others.is_empty() {
        return None;
    }
    // What is over a bound, or cannot be judged, is told apart ([`unread`]).
    let read = |list: &[PolicyRef<'_>]| list.iter().filter_map(|one| judged(one, namespace)?.ok()).collect::<Vec<_>>();
    let mut labels = asked_for(selector);
    labels.insert(keys::LABEL_TYPE.to_owned(), "agent".into());
    let agent = Pod::template(&json!({"metadata": {"labels": labels}}), namespace, name);
    let here = store.namespace(namespace)?;
    let mut own = here.labels.clone();
    own.insert(keys::LABEL_NAMESPACE_NAME.to_owned(), namespace.to_owned());
    let (ours, mut others) = (read(&ours), read(&others));
    let tier = store.cluster_policy(&format!("{}{namespace}", keys::PREFIX_CLUSTER_DENY));
    if tier.is_some_and(|policy| policy.seen.ours && !policy.seen.deleting) {
        others = others.into_iter().map(from_outside).collect();
    }
    let found = openings_by_labels(&agent, &own.into_iter().collect(), &ours, &others);
    let first = found.first()?;
    let who: BTreeSet<&str> = found.iter().map(|opening| opening.policy.as_str()).collect();
    let words: Vec<_> = found.iter().take(NAMED).map(ToString::to_string).collect();
    let more = found.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!(
        "the agent is cut off, and NetworkPolicies of others open it all the same, since what they allow adds up: {}{more}. What to do: take that \
         out of {}, or delete it: kubectl -n {namespace} delete networkpolicy {}",
        words.join("; "),
        who.into_iter().collect::<Vec<_>>().join(", "),
        first.policy
    ))
}

/// The labels that every Pod has which that selects: those that it asks for by name, and by a list of one value.
fn asked_for(selector: &Value) -> Map<String, Value> {
    let mut labels = selector.get("matchLabels").and_then(Value::as_object).cloned().unwrap_or_default();
    for one in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
        let text = |member: &str| one.get(member).and_then(Value::as_str);
        let values = one.get("values").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if let (Some("In"), Some(key), [value]) = (text("operator"), text("key"), values) {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    labels
}

/// A policy as it is judged, or why it cannot be; `None` of one whose `spec` is not read.
fn judged(one: &PolicyRef<'_>, namespace: &str) -> Option<Result<NetworkPolicy, Fault>> {
    let object = json!({"metadata": {"name": &**one.name, "namespace": namespace}, "spec": one.seen.spec.as_deref()?});
    Some(NetworkPolicy::read(&object, namespace))
}

/// Which NetworkPolicy of others is not read, or cannot be judged, and so may open whom ours cut off; nothing where all of them are.
pub(in crate::controllers) fn unread(store: &Store, namespace: &str) -> Option<String> {
    let mut all = store.network_policies(namespace).filter(|one| !one.seen.is_ours() && !one.seen.deleting);
    let why = |one: &PolicyRef<'_>| match one.seen.over {
        Some(over) => Some(over.sentence().to_owned()),
        None => {
            judged(one, namespace)?.err().map(|fault| format!("cannot be judged ({}: {})", fault.field, fault.problem))
        }
    };
    let (name, why) = all.find_map(|one| Some((one.name, why(&one)?)))?;
    Some(format!(
        "the agent is cut off, and NetworkPolicy {name} {why}, so nobody knows whether that one opens it. {}",
        remedy(namespace),
    ))
}

/// What to do about NetworkPolicies that are not read.
pub(in crate::controllers) fn remedy(namespace: &str) -> String {
    format!(
        "What to do: kubectl -n {namespace} get networkpolicies shows them all; delete those that are not needed, and make smaller what is too large"
    )
}
