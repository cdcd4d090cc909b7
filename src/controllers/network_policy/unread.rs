//! What is told of NetworkPolicies that are not read, because the namespace has more of them than are kept.
//!
//! In: the policy of an agent. Out: one Event at it. What is not read is left as it is: an opening policy asks for the label of verified agents'
//! Pods, which goes with the trust, so one that stays opens nobody who is not verified.

use super::plan::report;
use crate::controllers::network_policy::memory::Context;
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::store::objects::PolicyRef;

/// The agent's own is not read.
pub(super) fn own(cx: &Context<'_>, policy: &PolicyRef<'_>) -> Option<Op> {
    let over = policy.seen.over?;
    let message = format!(
        "NetworkPolicy {} {}, so it is left as it is: the agent is neither opened nor cut off by it from now on. {}",
        policy.name,
        over.sentence(),
        remedy(cx),
    );
    Some(report(cx, policy, Reason::ConfigUnknown, message, String::new()))
}

/// One of others is not read, and may open the agent, which is cut off by its own.
pub(super) fn others(cx: &Context<'_>, policy: &PolicyRef<'_>) -> Option<Op> {
    let mut all = cx.store.network_policies(&cx.key.namespace).filter(|other| !other.seen.is_ours());
    let (other, over) = all.find_map(|other| Some((other.name, other.seen.over?)))?;
    let message = format!(
        "the agent is cut off, and NetworkPolicy {other} {}, so nobody knows whether that one opens it. {}",
        over.sentence(),
        remedy(cx),
    );
    Some(report(cx, policy, Reason::ConfigUnknown, message, String::new()))
}

fn remedy(cx: &Context<'_>) -> String {
    let namespace = &cx.key.namespace;
    format!("What to do: kubectl -n {namespace} get networkpolicies shows them all; delete those that are not needed")
}
