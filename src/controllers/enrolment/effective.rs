//! `status.effective`: what is in force for one workload, and who set it; pure.
//!
//! In: the template as its Pods will have it, and the snapshot. Out: mode, SPIFFE id, the values that are set anywhere above
//! the platform, and what could not be read. Promise: the resolver is the webhook's own, so that status,
//! `explain` and Pods never differ.

use serde_json::{Value, json};

use super::judge::Subject;
use crate::admission::inject;
use crate::config::agent_runtime::AgentRuntimeInput;
use crate::domain::reason::Reason;

/// `status.effective`, notices about what means nothing, and why a layer as a whole is not read; empty while the namespace is not known, and where Pods
/// stay as they are before any configuration is asked.
pub(super) fn of(subject: &Subject<'_>) -> (Value, Vec<String>, Option<Reason>) {
    let snapshot = &subject.cx.facts.snapshot;
    let Some(view) = snapshot.namespace(subject.namespace()) else { return (json!({}), Vec::new(), None) };
    let mut notices: Vec<String> = view.resolved.notices.iter().map(|notice| notice.text.clone()).collect();
    // A layer that is not read at all is another matter than a key of it that means nothing.
    let unread = |reason: &Reason| matches!(reason, Reason::NamespaceConfigUnreadable | Reason::ConfigOverBound);
    let unread = view.resolved.notices.iter().map(|notice| notice.reason).find(unread);
    if let Some(winner) = &subject.workload.winner {
        let says = AgentRuntimeInput::of_seen(winner.seen);
        let tolerated = says.faults.iter().filter(|fault| fault.reason == Reason::InvalidSpec);
        notices.extend(tolerated.map(|fault| format!("{}: {:?}: {}", fault.field, fault.seen, fault.message)));
    }
    let template = subject.workload.governed_template(&snapshot.labels);
    let in_force = template
        .and_then(|template| inject::in_force(subject.namespace(), &subject.workload.identity(), &template, snapshot));
    let effective = in_force.and_then(|effective| serde_json::to_value(effective).ok()).unwrap_or_else(|| json!({}));
    (effective, notices, unread)
}
