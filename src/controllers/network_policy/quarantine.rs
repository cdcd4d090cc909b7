//! The NetworkPolicy that cuts off who is in quarantine.
//!
//! In: who of the namespace is in quarantine, and the Pods that carry the label of it. Out: the policy made, changed, deleted. Promises: it stands in
//! every namespace that is served, whether trust is enforced there or not; it goes last, when no Pod that may reach somebody carries the label any more
//! and the deny holds every Pod again, so that no such Pod is ever held by neither. Nobody takes the label off one that has ended, so it holds up nothing.

use std::time::Duration;

use serde_json::json;

use super::plan::{create, delete, foreign, is_same, report, set_spec, stored};
use crate::controllers::network_policy::memory::{Context, Plan};
use crate::controllers::trust;
use crate::domain::digest::of_bytes;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::policy::desired::{self, Held};

/// Time until a release is looked at again, should nothing bring us back.
const AGAIN: Duration = Duration::from_secs(5);

/// What becomes of it.
pub(super) fn plan(cx: &Context<'_>) -> Plan {
    let stored = stored(cx);
    let Some(quarantine) = trust::quarantine(cx.store, &cx.key.namespace) else {
        let Some(policy) = stored.filter(|policy| policy.seen.is_ours()) else { return Plan::nothing() };
        let in_use = is_any_labelled(cx) || is_left_to_it(cx);
        return if in_use { Plan::later(AGAIN) } else { delete(cx, &policy) };
    };
    let wanted = desired::quarantine(quarantine.everybody);
    let Some(policy) = stored else { return Plan::of(vec![create(cx, json!({}), &wanted)]) };
    if !policy.seen.is_ours() {
        return foreign(cx, &policy, "nobody of this namespace is in quarantine");
    }
    let who = if quarantine.everybody { "every Pod of this namespace".to_owned() } else { quarantine.text() };
    let message = format!(
        "in quarantine: {who}. Where the network plugin enforces NetworkPolicies, nothing reaches them and they reach nothing, unless \
            another NetworkPolicy opens it; no new Pod is made. What to do: drawbridge status shows them; drawbridge release ends it"
    );
    // Of whom else it is told anew.
    let since = of_bytes(quarantine.text().as_bytes()).to_string();
    let told = report(cx, &policy, Reason::Quarantined, message, since);
    let written = (!is_same(&policy, &wanted)).then(|| set_spec(cx, &policy, &wanted));
    Plan::of(written.into_iter().chain([told]).collect())
}

/// Whether it is there, and ours.
pub(super) fn stands(cx: &Context<'_>) -> bool {
    let policy = cx.store.network_policy(&cx.key.namespace, keys::QUARANTINE_POLICY);
    policy.is_some_and(|policy| policy.seen.is_ours() && !policy.seen.deleting)
}

/// What the deny leaves to this policy.
pub(super) fn held(cx: &Context<'_>) -> Held {
    let stands = stands(cx);
    match trust::quarantine(cx.store, &cx.key.namespace) {
        Some(quarantine) if quarantine.everybody => Held::Everybody,
        Some(_) if stands => Held::Labelled,
        None if stands && is_any_labelled(cx) => Held::Labelled,
        _ => Held::Nobody,
    }
}

fn is_any_labelled(cx: &Context<'_>) -> bool {
    cx.store.agent_pods(&cx.key.namespace).any(|pod| pod.seen.quarantined.is_some() && pod.seen.is_alive())
}

/// Whether the deny, as it stands, leaves Pods to this policy.
fn is_left_to_it(cx: &Context<'_>) -> bool {
    let deny = cx.store.network_policy(&cx.key.namespace, keys::DEFAULT_DENY);
    let spec = deny.as_ref().and_then(|deny| deny.seen.spec.as_deref());
    spec.is_some_and(|spec| spec.pointer("/podSelector/matchExpressions").is_some())
}
