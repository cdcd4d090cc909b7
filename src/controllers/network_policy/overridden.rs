//! The Event that tells of what NetworkPolicies of others open of an agent that ours cut off.
//!
//! In: the agent's own policy, and the selector of its workload. Out: one Event, at that policy; nothing where nobody else's policy opens it.

use serde_json::Value;

use super::plan::report;
use crate::controllers::network_policy::memory::Context;
use crate::controllers::scaffold::plan::Op;
use crate::controllers::trust::opened;
use crate::domain::reason::Reason;
use crate::store::objects::PolicyRef;

/// What is told of the agent whose policy that is; nothing where nobody else's policy opens it.
pub(super) fn told(cx: &Context<'_>, policy: &PolicyRef<'_>, selector: &Value) -> Option<Op> {
    let message = opened::by_others(cx.store, (&cx.key.namespace, &cx.key.name), selector)?;
    Some(report(cx, policy, Reason::PolicyOverridden, message, String::new()))
}
