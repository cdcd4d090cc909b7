//! How far a workload's own controller is with its template.

use serde_json::Value;

use super::row::{Rollout, RolloutState};
use crate::cli::survey::text;
use crate::domain::workload::WorkloadKind;

/// The state of a workload's rollout, from its own status.
#[must_use]
pub(super) fn of(kind: WorkloadKind, object: &Value) -> Rollout {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let count = |pointer: &str| number(pointer).unwrap_or(0);
    let behind = number("/metadata/generation").is_some_and(|wanted| count("/status/observedGeneration") < wanted);
    let mut held = 0;
    let (updated, desired, more) = match kind {
        WorkloadKind::Deployment => {
            let (updated, desired) = (count("/status/updatedReplicas"), number("/spec/replicas").unwrap_or(1));
            let old = count("/status/replicas") > updated;
            (updated, desired, old || count("/status/availableReplicas") < updated)
        }
        WorkloadKind::StatefulSet => {
            // Without a second revision the controller leaves updatedReplicas out or at the number of replicas.
            let one = text(object, "/status/currentRevision") == text(object, "/status/updateRevision");
            let desired = number("/spec/replicas").unwrap_or(1);
            held = number("/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0).clamp(0, desired.max(0));
            let updated = if one { count("/status/replicas") } else { count("/status/updatedReplicas") + held };
            (updated, desired, count("/status/readyReplicas") < desired)
        }
        WorkloadKind::DaemonSet => {
            let (updated, desired) = (count("/status/updatedNumberScheduled"), count("/status/desiredNumberScheduled"));
            (updated, desired, count("/status/numberAvailable") < desired)
        }
        _ => return Rollout::NONE,
    };
    let on_delete =
        ["/spec/updateStrategy/type"].iter().any(|pointer| text(object, pointer) == "OnDelete") && updated < desired;
    let state = if object.pointer("/spec/paused") == Some(&Value::Bool(true)) {
        RolloutState::Paused
    } else if stalled(object) && !behind {
        RolloutState::Stalled
    } else if on_delete && !behind {
        RolloutState::OnDelete
    } else if behind || updated < desired || more {
        RolloutState::Progressing
    } else {
        RolloutState::Complete
    };
    Rollout { state, updated, desired, held }
}

fn stalled(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        one["type"] == "Progressing" && one["status"] == "False" && one["reason"] == "ProgressDeadlineExceeded"
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(kind: WorkloadKind, object: &Value) -> &'static str {
        of(kind, object).state.as_str()
    }

    #[test]
    fn a_deployment_is_complete_only_when_no_old_pod_is_left() {
        let deployment =
            |spec: Value, status: Value| json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
        let full = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3});
        for (spec, change, expected) in [
            (json!({"replicas": 3}), json!({}), "complete"),
            (json!({"replicas": 3}), json!({"observedGeneration": 1}), "progressing"),
            (json!({"replicas": 3}), json!({"updatedReplicas": 1}), "progressing"),
            (json!({"replicas": 3}), json!({"replicas": 4}), "progressing"),
            (json!({"replicas": 3}), json!({"availableReplicas": 2}), "progressing"),
            (json!({"replicas": 3, "paused": true}), json!({"updatedReplicas": 0}), "paused"),
            (
                json!({"replicas": 3}),
                json!({"updatedReplicas": 1, "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}),
                "stalled",
            ),
            (json!({"replicas": 0}), json!({"replicas": 0, "updatedReplicas": 0, "availableReplicas": 0}), "complete"),
        ] {
            let mut status = full.clone();
            for (key, value) in change.as_object().unwrap() {
                status[key] = value.clone();
            }
            assert_eq!(
                state(WorkloadKind::Deployment, &deployment(spec.clone(), status.clone())),
                expected,
                "{spec} {status}"
            );
        }
    }

    #[test]
    fn on_delete_waits_for_a_person_and_partitions_count_as_done() {
        let set = |strategy: Value, updated: i64| {
            json!({"metadata": {"generation": 2}, "spec": {"replicas": 3, "updateStrategy": strategy},
                "status": {"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "b",
                    "updatedReplicas": updated}})
        };
        assert_eq!(state(WorkloadKind::StatefulSet, &set(json!({"type": "OnDelete"}), 1)), "onDelete");
        assert_eq!(state(WorkloadKind::StatefulSet, &set(json!({"type": "RollingUpdate"}), 1)), "progressing");
        let held = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
        assert_eq!(state(WorkloadKind::StatefulSet, &set(held, 1)), "complete");
        let daemons = json!({"metadata": {"generation": 1}, "spec": {"updateStrategy": {"type": "OnDelete"}},
            "status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "updatedNumberScheduled": 0, "numberAvailable": 2}});
        assert_eq!(state(WorkloadKind::DaemonSet, &daemons), "onDelete");
        assert_eq!(state(WorkloadKind::CronJob, &json!({})), "none");
    }
}
