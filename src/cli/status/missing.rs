//! Why Pods of a workload are not there, or do not run: the first cause that the cluster's own objects name; no request is made here.
//!
//! In: the workload, its Pods, and the Events about refused Pods of its namespace. Out: a reason, what was said, and what to do.

use serde_json::Value;

use super::rollout;
use super::row::RolloutState;
use crate::cli::offline::workload::Subject;
use crate::cli::survey::text;
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::domain::reason::Reason;
use crate::domain::refused_pods;
use crate::domain::workload::WorkloadKind;

/// Longest words of others that are repeated.
const LONGEST: usize = 300;
/// What a container waits for when its image cannot be had.
const IMAGE: [&str; 5] =
    ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"];
/// What a container waits for when it cannot run.
const NOT_RUN: [&str; 4] =
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"];

/// A cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    /// Its code.
    pub(super) reason: Reason,
    /// What was said, and what to do.
    pub(super) message: String,
}

/// Whether Events can tell more of that workload than its own status does: it wants more Pods than there are.
pub(super) fn asks_events(object: &Value, subject: &Subject, pods: &[&Value]) -> bool {
    let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    match subject.workload.kind {
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
            rollout::of(subject.workload.kind, object).desired > there
        }
        WorkloadKind::Job | WorkloadKind::ReplicaSet => there == 0 && !is_finished(object),
        _ => false,
    }
}

/// Whether a Job, or a Pod of its own, has run to its end: history, and nothing to act on.
pub(super) fn is_finished(object: &Value) -> bool {
    match text(object, "/kind") {
        "Job" => {
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            let over = |one: &Value| one["status"] == "True" && (one["type"] == "Complete" || one["type"] == "Failed");
            conditions.into_iter().flatten().any(over)
        }
        "Pod" => matches!(text(object, "/status/phase"), "Succeeded" | "Failed"),
        _ => false,
    }
}

/// The first cause; `None` when nothing is missing, or nothing says why.
pub(super) fn cause(object: &Value, subject: &Subject, pods: &[&Value], events: &[Value]) -> Option<Cause> {
    let rollout = rollout::of(subject.workload.kind, object);
    if rollout.state == RolloutState::Complete {
        return None;
    }
    refused(object, subject, pods, events)
        .or_else(|| pods.iter().find_map(|pod| waits(pod, &subject.namespace)))
        .or_else(|| (rollout.state == RolloutState::Stalled).then(|| stalled(subject)))
}

/// The API server refuses Pods.
fn refused(object: &Value, subject: &Subject, pods: &[&Value], events: &[Value]) -> Option<Cause> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let failure =
        conditions.into_iter().flatten().find(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
    let told = failure.map(|one| text(one, "/message").to_owned()).or_else(|| {
        let about = |event: &&Value| {
            let of = |member: &str| text(event, &format!("/involvedObject/{member}"));
            of("kind") == subject.kind() && of("name") == subject.workload.name && event["reason"] == "FailedCreate"
        };
        let wanting = asks_events(object, subject, pods);
        events.iter().filter(|_| wanting).filter(about).map(|event| text(event, "/message").to_owned()).next_back()
    })?;
    let reason = refused_pods::reason(&told);
    let remedy = refused_pods::remedy(reason, &subject.namespace);
    let told = printable(&told, LONGEST);
    Some(Cause { reason, message: format!("{}: {told}. What to do: {remedy}", reason.sentence()) })
}

/// What one Pod waits for.
fn waits(pod: &Value, namespace: &str) -> Option<Cause> {
    let name = text(pod, "/metadata/name");
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array);
    let foreign = gates.into_iter().flatten().filter_map(|gate| gate["name"].as_str());
    if let Some(gate) = foreign.into_iter().find(|gate| *gate != keys::SCHEDULING_GATE) {
        let gate = printable(gate, LONGEST);
        return Some(Cause {
            reason: Reason::ForeignGate,
            message: format!(
                "Pod {name} waits behind scheduling gate {gate}, which is not Drawbridge's. What to do: ask whoever puts that gate on Pods to take \
                 it off"
            ),
        });
    }
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let unscheduled =
        |one: &&Value| one["type"] == "PodScheduled" && one["status"] == "False" && one["reason"] == "Unschedulable";
    if let Some(one) = conditions.into_iter().flatten().find(unscheduled) {
        let told = printable(text(one, "/message"), LONGEST);
        return Some(Cause {
            reason: Reason::Unschedulable,
            message: format!(
                "no node takes Pod {name}: {told}. What to do: add nodes, or lower what the Pod asks for; its sidecars ask for resources, too \
                 (resources.* in the platform file)"
            ),
        });
    }
    ["/status/initContainerStatuses", "/status/containerStatuses"].iter().find_map(|list| {
        let statuses = pod.pointer(list).and_then(Value::as_array)?;
        statuses.iter().find_map(|status| container(status, name, namespace))
    })
}

/// What one container waits for.
fn container(status: &Value, pod: &str, namespace: &str) -> Option<Cause> {
    let why = text(status, "/state/waiting/reason");
    let (name, image) = (text(status, "/name"), printable(text(status, "/image"), LONGEST));
    let told = printable(text(status, "/state/waiting/message"), LONGEST);
    let told = if told.is_empty() { String::new() } else { format!(": {told}") };
    if IMAGE.contains(&why) {
        return Some(Cause {
            reason: Reason::ImagePullFailed,
            message: format!(
                "image {image} of container {name} in Pod {pod} cannot be pulled ({why}){told}. What to do: correct the image, or give the \
                 Pod a Secret for its registry; images of sidecars stand under images.* in the platform file"
            ),
        });
    }
    NOT_RUN.contains(&why).then(|| Cause {
        reason: Reason::PodsNotRunning,
        message: format!(
            "container {name} in Pod {pod} does not run ({why}){told}. What to do: kubectl -n {namespace} logs {pod} -c {name} --previous shows \
             what it wrote"
        ),
    })
}

fn stalled(subject: &Subject) -> Cause {
    let (kind, name, namespace) = (subject.kind().to_lowercase(), &subject.workload.name, &subject.namespace);
    Cause {
        reason: Reason::ProgressDeadlineExceeded,
        message: format!(
            "its rollout makes no progress, and neither its Pods nor its controller say why. What to do: kubectl -n {namespace} describe \
             {kind} {name}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(status: Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "team1", "generation": 1},
            "spec": {"replicas": 1, "template": {"metadata": {"labels": {"kagenti.io/type": "agent"}}, "spec": {"containers": []}}},
            "status": status,
        })
    }

    fn subject(object: &Value) -> Subject {
        Subject::of(object, "team1").unwrap()
    }

    #[test]
    fn answers_02_the_first_cause_of_missing_pods_is_named_with_its_remedy() {
        let failure =
            |message: &str| json!({"conditions": [{"type": "ReplicaFailure", "status": "True", "message": message}]});
        let pod = |spec: Value, status: Value| json!({"metadata": {"name": "w-1"}, "spec": spec, "status": status});
        let waiting = |why: &str| {
            pod(
                json!({}),
                json!({"containerStatuses": [{"name": "agent", "image": "a:1", "state": {"waiting": {"reason": why}}}]}),
            )
        };
        let unscheduled = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/3 nodes are available"}]});
        for (status, pods, reason, says) in [
            (
                failure("pods \"w-1\" is forbidden: exceeded quota: small"),
                vec![],
                Reason::QuotaExceeded,
                "raise the quota",
            ),
            (
                failure("pods \"w-1\" is forbidden: [maximum cpu usage per Container is 100m, but limit is 200m]"),
                vec![],
                Reason::LimitRangeRefused,
                "describe limitrange",
            ),
            (failure("no"), vec![], Reason::ReplicaFailure, "FailedCreate"),
            (
                json!({}),
                vec![pod(json!({"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}), json!({}))],
                Reason::ForeignGate,
                "gate kueue.x-k8s.io/admission",
            ),
            (json!({}), vec![pod(json!({}), unscheduled)], Reason::Unschedulable, "0/3 nodes are available"),
            (json!({}), vec![waiting("ImagePullBackOff")], Reason::ImagePullFailed, "image a:1 of container agent"),
            (json!({}), vec![waiting("CrashLoopBackOff")], Reason::PodsNotRunning, "logs w-1 -c agent --previous"),
            (
                json!({"observedGeneration": 1, "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}),
                vec![],
                Reason::ProgressDeadlineExceeded,
                "describe deployment w",
            ),
        ] {
            let object = deployment(status);
            let pods: Vec<&Value> = pods.iter().collect();
            let cause = cause(&object, &subject(&object), &pods, &[]).unwrap();
            assert_eq!(cause.reason, reason, "{cause:?}");
            assert!(cause.message.contains(says), "{cause:?}");
        }
        let healthy =
            deployment(json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}));
        assert_eq!(cause(&healthy, &subject(&healthy), &[], &[]), None);
        let gated = pod(json!({"schedulingGates": [{"name": keys::SCHEDULING_GATE}]}), json!({}));
        assert_eq!(
            cause(&deployment(json!({})), &subject(&healthy), &[&gated], &[]),
            None,
            "ours has a word of its own"
        );
    }

    #[test]
    fn answers_02_events_tell_of_workloads_whose_status_does_not() {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "team1"},
            "spec": {"replicas": 1, "template": {"spec": {"containers": []}}}, "status": {},
        });
        let event = |name: &str| {
            json!({"reason": "FailedCreate", "involvedObject": {"kind": "StatefulSet", "name": name},
                "message": "create Pod db-0 failed: pods \"db-0\" is forbidden: exceeded quota: small"})
        };
        let of = |events: &[Value]| cause(&set, &subject(&set), &[], events).map(|cause| cause.reason);
        assert_eq!(of(&[event("db")]), Some(Reason::QuotaExceeded));
        assert_eq!(of(&[event("other")]), None);
    }

    #[test]
    fn answers_03_what_ended_is_history() {
        let job = |type_: &str, status: &str| json!({"kind": "Job", "status": {"conditions": [{"type": type_, "status": status}]}});
        for (object, expected) in [
            (job("Complete", "True"), true),
            (job("Failed", "True"), true),
            (job("Complete", "False"), false),
            (job("Suspended", "True"), false),
            (json!({"kind": "Pod", "status": {"phase": "Succeeded"}}), true),
            (json!({"kind": "Pod", "status": {"phase": "Running"}}), false),
            (json!({"kind": "Deployment"}), false),
        ] {
            assert_eq!(is_finished(&object), expected, "{object}");
        }
    }
}
