//! The review of an AgentCard: every fault in one answer.
//!
//! Promises: nothing that is being deleted and no update that leaves the spec alone is ever refused, so no finalizer is held up; an update
//! is not refused for what was wrong before it; a card that a controller made never stands in the way of a person's. Two that are made at
//! the same moment may both pass: which one counts is settled by the controllers.

use serde_json::Value;

use crate::admission::custom::{Objects, judged};
use crate::admission::explanation::Explanation;
use crate::admission::verdict::Verdict;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::review::Request;
use crate::config::agent_card::trust_domain_fault;
use crate::config::cards::PERIODS;
use crate::config::snapshot::Snapshot;
use crate::domain::period;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::CardTarget;

const TARGET: &str = "spec.targetRef";
const PERIOD: &str = "spec.syncPeriod";
const TRUST_DOMAIN: &str = "spec.identityBinding.trustDomain";

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let objects = match Objects::to_judge(request) {
        Ok(objects) => objects,
        Err(verdict) => return *verdict,
    };
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_default();
    let (new, old) = (spec(&objects.object), objects.old.as_ref().map(spec));
    let before = old.as_ref().map(faults).unwrap_or_default();
    let mut findings = Findings::default();
    for fault in faults(&new) {
        if before.contains(&fault) {
            findings.note(Note::new(fault.reason, fault.path, format!("{}; {}", fault.sentence, fault.remedy)));
        } else {
            findings.fault(fault);
        }
    }
    let target = CardTarget::of_spec(&new);
    target.iter().filter_map(untrustable).for_each(|note| findings.note(note));
    let is_moved = old.as_ref().is_none_or(|old| CardTarget::of_spec(old) != target);
    let taken = target.filter(|_| is_moved).and_then(|target| duplicate(request, &objects, &target, snapshot));
    taken.into_iter().for_each(|fault| findings.fault(fault));
    judged(&objects.title(request), findings)
}

/// A workload of a kind that has no Pods which stay, or whose Pods are not known: no card of it is read.
fn untrustable(target: &CardTarget) -> Option<Note> {
    const READ: [WorkloadKind; 4] =
        [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet, WorkloadKind::Sandbox];
    if target.workload_kind().is_some_and(|kind| READ.contains(&kind)) {
        return None;
    }
    let (kind, version) = (printable(&target.kind, 63), printable(&target.api_version, 128));
    let sentence = format!(
        "{kind} of {version} is of a kind whose cards are not trusted: an agent runs as a Deployment, StatefulSet, DaemonSet or Sandbox"
    );
    Some(Note::new(Reason::UntrustableKind, TARGET, sentence))
}

/// What is wrong with a spec by itself.
fn faults(spec: &Value) -> Vec<Fault> {
    [target(spec), sync_period(spec), trust_domain(spec)].into_iter().flatten().collect()
}

fn target(spec: &Value) -> Option<Fault> {
    let is_there = spec.get("targetRef").is_some_and(|target| !target.is_null());
    (!is_there).then(|| Fault::required(TARGET, "name the workload of this namespace: apiVersion, kind and name"))
}

fn sync_period(spec: &Value) -> Option<Fault> {
    let text = spec.get("syncPeriod")?.as_str().filter(|text| !text.is_empty())?;
    let (least, most) = PERIODS;
    let is_within = |(negative, length): (bool, std::time::Duration)| !negative && length >= least && length <= most;
    if period::parse(text).is_some_and(is_within) {
        return None;
    }
    let sentence = format!("is not a time between {}s and {}h", least.as_secs(), most.as_secs() / 3600);
    let remedy = "write it as 30s, 5m or 1h30m, or leave it out for 30s";
    Some(Fault::invalid(PERIOD, sentence, remedy).seeing(text))
}

fn trust_domain(spec: &Value) -> Option<Fault> {
    let text = spec.get("identityBinding")?.get("trustDomain")?.as_str()?;
    let fault = trust_domain_fault(text)?;
    let remedy = "write the name alone, in small letters, such as example.org";
    Some(Fault::invalid(TRUST_DOMAIN, format!("is not a trust domain: {fault}"), remedy).seeing(text))
}

/// Another card that a person made for the same workload.
fn duplicate(request: &Request<'_>, objects: &Objects, target: &CardTarget, snapshot: &Snapshot) -> Option<Fault> {
    let namespace = request.namespace();
    let other = snapshot.namespace(namespace)?.cards.another(target, objects.name(request))?;
    let CardTarget { kind, name: workload, .. } = target;
    let sentence =
        format!("is taken: an AgentCard already targets {kind} {workload} in namespace {namespace}: {other}");
    let remedy = format!("change {other}, or delete it first: kubectl -n {namespace} delete agentcard {other}");
    Some(Fault::new(Reason::DuplicateCard, TARGET, sentence, remedy))
}

/// The tree behind the decision.
pub(in crate::admission) fn explain(request: &Request<'_>, _: &Snapshot, verdict: &Verdict) -> Explanation {
    let objects = Objects::of(request);
    let subject = objects.as_ref().map_or_else(|_| "AgentCard".to_owned(), |objects| objects.title(request));
    let target = objects.ok().and_then(|objects| CardTarget::of_spec(objects.object.get("spec")?));
    Explanation {
        workload: target.map(|target| format!("{}/{}", target.kind, target.name)),
        ..Explanation::of(&subject, verdict)
    }
}

#[cfg(test)]
mod tests;
