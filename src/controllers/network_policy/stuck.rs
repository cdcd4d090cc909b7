//! What cuts an agent off, and people should hear: one that does not become ready, and one that is an agent no more; pure.
//!
//! In: an agent that is not verified, the policy that cuts it off, its Pods. Out: an Event, and when to look again.

use std::time::Duration;

use super::plan::report;
use crate::controllers::network_policy::memory::Context;
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;
use crate::store::objects::{PolicyRef, WorkloadRef};
use crate::store::{Kind, PodPhase};

/// So long may a Pod run behind the deny without becoming ready before people are told.
const PATIENCE: Duration = Duration::from_secs(180);

/// Says that no Pod of an agent that is cut off becomes ready: perhaps it waits for somebody whom it does not reach. And when to look again.
pub(super) fn not_ready(
    cx: &Context<'_>,
    workload: &WorkloadRef<'_>,
    policy: &PolicyRef<'_>,
) -> (Option<Op>, Option<Duration>) {
    let namespace = &cx.key.namespace;
    let mut since: Option<Duration> = None;
    for pod in cx.store.pods_of(namespace, workload) {
        if pod.seen.terminating || pod.seen.phase != PodPhase::Running {
            continue;
        }
        if pod.seen.endpoint.as_ref().is_none_or(|endpoint| endpoint.ready) {
            return (None, None);
        }
        let arrived = cx.store.arrived(Kind::Pod, namespace, pod.name).unwrap_or(cx.now);
        since = Some(since.map_or(arrived, |since| since.min(arrived)));
    }
    let cut = cx.store.arrived(Kind::NetworkPolicy, namespace, policy.name);
    let Some((since, cut)) = since.zip(cut) else { return (None, None) };
    let begun = since.max(cut);
    let lasted = cx.now.saturating_sub(begun);
    if lasted < PATIENCE {
        return (None, Some(PATIENCE - lasted));
    }
    let (kind, name) = (workload.seen.kind.as_str(), workload.name);
    let message = format!(
        "no Pod of {kind} {name} has become ready in {} s behind this policy: it reaches nothing but the API server, the identity provider, where \
         traces go, and what the platform file names. If it waits for somebody else, name that peer under cards.restrictiveEgress of the platform \
         file, or allow it with a NetworkPolicy of your own in namespace {namespace}",
        PATIENCE.as_secs()
    );
    (Some(report(cx, policy, Reason::NotReadyBehindDeny, message, String::new())), None)
}

/// Says that the workload of a policy that goes is still there and no agent any more, where that means that nothing cuts its Pods off.
pub(super) fn left(cx: &Context<'_>, level: TrustLevel, workload: Option<&WorkloadRef<'_>>) -> Option<Op> {
    let workload = workload.filter(|workload| level == TrustLevel::Enforced && !workload.seen.deleting)?;
    let (kind, name) = (workload.seen.kind.as_str(), workload.name);
    let message = format!(
        "{kind} {name} is not an agent any more, because its Pod template has no label {}: agent: nothing cuts its new Pods off. If \
         that was not meant, put the label (or its AgentRuntime) back; label {}=enforced-all of namespace {} cuts off every Pod, agent or not",
        keys::LABEL_TYPE,
        keys::LABEL_TRUST,
        cx.key.namespace
    );
    let about = crate::store::Key::new(&cx.key.namespace, name);
    let (kind, uid, since) = (workload.kind, workload.uid.to_owned(), String::new());
    Some(Op::Report(Report { kind, about, uid, reason: Reason::LeftEnforcement, message, since }))
}
