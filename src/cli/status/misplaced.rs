//! Labels that were meant to enrol and do not: in a place where nobody reads them, or misspelt; no request is made here.
//!
//! In: the workloads of a namespace that have no row of their own. Out: what is wrong with their labels, and the command that puts it right.

use serde_json::Value;

use crate::cli::offline::workload::Subject;
use crate::cli::survey::{label, text};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;
use crate::domain::workload::WorkloadKind;

/// What is wrong with one workload's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misplaced {
    /// `LabelIgnored` or `UnknownValue`.
    pub(super) reason: Reason,
    /// What stands where, why it does nothing, and the command.
    pub(super) message: String,
}

const VALUES: [&str; 2] = ["agent", "tool"];

/// The first thing that is wrong.
pub(super) fn of(object: &Value, subject: &Subject) -> Option<Misplaced> {
    let template = subject.template(object);
    let is_pod = subject.workload.kind == WorkloadKind::Pod;
    let right = template.and_then(|template| label(template, keys::LABEL_TYPE));
    if right.is_some_and(|value| VALUES.contains(&value)) {
        return None;
    }
    let command = |value: &str| command(subject, object, value);
    if let Some(value) = right {
        let meant = nearest(value, VALUES).unwrap_or("agent");
        return Some(Misplaced {
            reason: Reason::UnknownValue,
            message: format!(
                "label {} of its Pods is {value:?}, which enrols nothing; values are agent and tool, in small letters. What to do: {}",
                keys::LABEL_TYPE,
                command(meant)
            ),
        });
    }
    let itself = label(object, keys::LABEL_TYPE).filter(|value| VALUES.contains(value));
    if let Some(value) = itself.filter(|_| !is_pod && !WorkloadKind::TARGETS.contains(&subject.workload.kind)) {
        return Some(Misplaced {
            reason: Reason::LabelIgnored,
            message: format!(
                "label {}={value} stands on the {} itself, where it enrols nothing: of this kind only the Pod template counts. What to do: {}",
                keys::LABEL_TYPE,
                subject.kind(),
                command(value)
            ),
        });
    }
    let places = [("its Pods", template), ("the workload itself", Some(object))];
    places.into_iter().find_map(|(place, of)| {
        let labels = of?.pointer("/metadata/labels")?.as_object()?;
        let (key, value) = labels.iter().find(|(key, _)| is_misspelt(key))?;
        let value = value.as_str().unwrap_or_default();
        let meant = nearest(value, VALUES).unwrap_or("agent");
        Some(Misplaced {
            reason: Reason::LabelIgnored,
            message: format!(
                "label {key}={value} of {place} is not one that is read; the key is {}. What to do: {}",
                keys::LABEL_TYPE,
                command(meant)
            ),
        })
    })
}

/// Whether a key was meant to be [`keys::LABEL_TYPE`]: `kagenti/type`, `kagenti.io/Type`, `kagneti.io/type`.
pub(super) fn is_misspelt(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').unwrap_or_default();
    let near = |text: &str, wanted: &str| nearest(text, [wanted]).is_some();
    key != keys::LABEL_TYPE && near(name, "type") && (near(prefix, "kagenti.io") || near(prefix, "kagenti"))
}

/// How the label comes to where it counts.
fn command(subject: &Subject, object: &Value, value: &str) -> String {
    let (namespace, name) = (&subject.namespace, &subject.workload.name);
    let kind = subject.kind().to_lowercase();
    match subject.workload.kind {
        WorkloadKind::Job | WorkloadKind::Pod => {
            let place = if kind == "job" { "spec.template.metadata.labels" } else { "metadata.labels" };
            format!(
                "write {}: {value} under {place} of its manifest, and create the {} anew; it cannot be enrolled as it stands",
                keys::LABEL_TYPE,
                text(object, "/kind")
            )
        }
        WorkloadKind::CronJob => format!(
            "kubectl -n {namespace} patch {kind} {name} --type merge -p \
             '{{\"spec\":{{\"jobTemplate\":{{\"spec\":{{\"template\":{{\"metadata\":{{\"labels\":{{\"{}\":\"{value}\"}}}}}}}}}}}}}}'",
            keys::LABEL_TYPE
        ),
        _ => format!(
            "kubectl -n {namespace} patch {kind} {name} --type merge -p \
             '{{\"spec\":{{\"template\":{{\"metadata\":{{\"labels\":{{\"{}\":\"{value}\"}}}}}}}}}}'",
            keys::LABEL_TYPE
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(api: &str, kind: &str, labels: Value, of_template: Value) -> Value {
        json!({
            "apiVersion": api, "kind": kind, "metadata": {"name": "w", "namespace": "team1", "labels": labels},
            "spec": {"template": {"metadata": {"labels": of_template}, "spec": {"containers": [{"name": "a"}]}}},
        })
    }

    fn found(object: &Value) -> Option<(&'static str, String)> {
        let subject = Subject::of(object, "team1").unwrap();
        of(object, &subject).map(|one| (one.reason.code(), one.message))
    }

    #[test]
    fn answers_07_a_label_in_the_wrong_place_is_told_with_the_patch() {
        let (none, agent) = (json!({}), json!({"kagenti.io/type": "agent"}));
        for (object, reason, says) in [
            (workload("batch/v1", "Job", agent.clone(), none.clone()), "LabelIgnored", "create the Job anew"),
            (
                workload("apps/v1", "ReplicaSet", agent.clone(), none.clone()),
                "LabelIgnored",
                "kubectl -n team1 patch replicaset w --type merge -p '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"kagenti.io/type\":\"agent\"}}}}}'",
            ),
            (
                workload("apps/v1", "Deployment", none.clone(), json!({"kagenti/type": "agent"})),
                "LabelIgnored",
                "label kagenti/type=agent of its Pods is not one that is read",
            ),
            (
                workload("apps/v1", "Deployment", json!({"kagneti.io/type": "tool"}), none.clone()),
                "LabelIgnored",
                "\"tool\"",
            ),
            (
                workload("apps/v1", "Deployment", none.clone(), json!({"kagenti.io/type": "Agent"})),
                "UnknownValue",
                "\"kagenti.io/type\":\"agent\"",
            ),
        ] {
            let (code, message) = found(&object).unwrap();
            assert_eq!(code, reason, "{message}");
            assert!(message.contains(says), "{message}");
        }
        for object in [
            workload("apps/v1", "Deployment", agent.clone(), none.clone()),
            workload("batch/v1", "Job", agent.clone(), agent.clone()),
            workload(
                "apps/v1",
                "Deployment",
                none.clone(),
                json!({"app": "x", "type": "y", "kagenti.io/protocol": "a2a"}),
            ),
        ] {
            assert_eq!(found(&object), None, "{object}");
        }
    }
}
