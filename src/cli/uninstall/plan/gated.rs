//! Pods that wait behind our scheduling gate, and the Jobs among their owners, which lose no try.

use serde_json::{Value, json};

use super::{Action, Kept, Phase, Plan, Step, delete, pods, text, title};
use crate::cli::survey;
use crate::cli::uninstall::found::{Found, Part};
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;

/// A Pod behind our gate, which nobody takes off any more.
pub(super) fn pod(plan: &mut Plan, part: &Part, found: &Found) {
    let pod = &part.object;
    if !survey::is_gated(pod) || !text(pod, "/metadata/deletionTimestamp").is_empty() {
        return;
    }
    let Some(owner) = survey::controller(pod) else {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
        let why = format!(
            "it waits behind {} and nobody makes it again; delete it and apply its manifest: kubectl -n {namespace} delete pod {name}",
            keys::SCHEDULING_GATE
        );
        return plan.later.push(Kept { object: title(pod), why, planned: true });
    };
    if text(owner, "/kind") == WorkloadKind::Job.as_str() && text(owner, "/apiVersion").starts_with("batch/") {
        return tried_again(plan, (pod, owner), found);
    }
    plan.steps.push(delete(Phase::GatedPods, part, "deleted; its controller makes another one, without sidecars"));
}

/// A Job whose Pod waits behind our gate. To delete that Pod would cost the Job a try, or fail it; to suspend the Job takes its Pods away as well, and
/// costs nothing.
fn tried_again(plan: &mut Plan, (pod, owner): (&Value, &Value), found: &Found) {
    let Some(part) = found.jobs.iter().find(|job| text(&job.object, "/metadata/uid") == text(owner, "/uid")) else {
        let (namespace, name) = (text(pod, "/metadata/namespace"), text(owner, "/name"));
        let why = format!(
            "it waits behind {}, and its Job {name} could not be read: suspend that Job, which takes the Pod away, and resume it then: \
             kubectl -n {namespace} patch job {name} -p '{{\"spec\":{{\"suspend\":true}}}}'",
            keys::SCHEDULING_GATE
        );
        return plan.later.push(Kept { object: title(pod), why, planned: true });
    };
    let job = &part.object;
    let is_suspended = job.pointer("/spec/suspend") == Some(&Value::Bool(true));
    // Of one that is suspended already its controller takes the Pod away; whoever did that resumes it.
    if is_suspended || plan.steps.iter().any(|step| step.phase == Phase::GatedPods && step.path == part.path) {
        return;
    }
    let others = others_of(job, found);
    if others > 0 {
        let (namespace, name) = (text(job, "/metadata/namespace"), text(job, "/metadata/name"));
        let (run, they) = if others == 1 { ("runs", "it") } else { ("run", "they") };
        let why = format!(
            "{} of it {run} and would end if it were suspended, which takes its Pod behind {} away without costing a try; suspend it once {they} may end, \
             and resume it then: kubectl -n {namespace} patch job {name} -p '{{\"spec\":{{\"suspend\":true}}}}', and the same with false",
            pods(others),
            keys::SCHEDULING_GATE
        );
        let kept = Kept { object: title(job), why, planned: true };
        // Several Pods of it may wait.
        if !plan.later.contains(&kept) {
            plan.later.push(kept);
        }
        return;
    }
    let step = |mark: Value, suspend: bool, effect: &str| {
        let metadata = json!({"uid": text(job, "/metadata/uid"), "annotations": {keys::ANNOTATION_SUSPENDED: mark}});
        Step {
            phase: Phase::GatedPods,
            object: title(job),
            path: part.path.clone(),
            action: Action::Merge { patch: json!({"metadata": metadata, "spec": {"suspend": suspend}}) },
            effect: effect.to_owned(),
        }
    };
    let mark = json!(text(pod, "/metadata/uid"));
    plan.steps.push(step(mark, true, "suspended, so that its Pod goes, which costs it no try"));
    plan.steps.push(step(Value::Null, false, "resumed once that Pod is gone: it makes another one, without sidecars"));
}

/// How many Pods of a Job do not wait behind our gate, and would end if the Job were suspended: as its status and the Pods that were found have it.
fn others_of(job: &Value, found: &Found) -> usize {
    let is_its = |pod: &&Value| {
        let owner = survey::controller(pod);
        owner.is_some_and(|owner| text(owner, "/uid") == text(job, "/metadata/uid"))
    };
    let is_over = |pod: &Value| {
        let has_ended = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
        has_ended || !text(pod, "/metadata/deletionTimestamp").is_empty()
    };
    let live = found.pods.iter().map(|part| &part.object).filter(is_its).filter(|pod| !is_over(pod));
    let (gated, others): (Vec<_>, Vec<_>) = live.partition(|pod| survey::is_gated(pod));
    let active = job.pointer("/status/active").and_then(Value::as_u64);
    let active = active.and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
    others.len().max(active.saturating_sub(gated.len()))
}

/// Whether that resumes a Job. One that is resumed before its controller has heard that it was suspended keeps its Pods.
pub(in crate::cli::uninstall) fn resumes(action: &Action) -> bool {
    matches!(action, Action::Merge { patch } if patch.pointer("/spec/suspend") == Some(&Value::Bool(false)))
}
