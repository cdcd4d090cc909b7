//! What is told of NetworkPolicies that are not read, because they are too large or the namespace has more of them than are kept.
//!
//! In: the policy of an agent. Out: one Event at it. What is not read is left as it is: an opening policy asks for the label of verified agents'
//! Pods, which goes with the trust, so one that stays opens nobody who is not verified.

use super::plan::report;
use crate::controllers::network_policy::memory::Context;
use crate::controllers::scaffold::plan::Op;
use crate::controllers::trust::opened;
use crate::domain::reason::Reason;
use crate::store::objects::PolicyRef;

/// The agent's own is not read.
pub(super) fn own(cx: &Context<'_>, policy: &PolicyRef<'_>) -> Option<Op> {
    let over = policy.seen.over?;
    let message = format!(
        "NetworkPolicy {} {}, so it is left as it is: the agent is neither opened nor cut off by it from now on. {}",
        policy.name,
        over.sentence(),
        opened::remedy(&cx.key.namespace),
    );
    Some(report(cx, policy, Reason::ConfigUnknown, message, String::new()))
}

/// One of others is not read, and may open the agent, which is cut off by its own.
pub(super) fn others(cx: &Context<'_>, policy: &PolicyRef<'_>) -> Option<Op> {
    let message = opened::unread(cx.store, &cx.key.namespace)?;
    Some(report(cx, policy, Reason::ConfigUnknown, message, String::new()))
}
