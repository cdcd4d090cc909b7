//! Labels that were meant to enrol and do not: in a place where nobody reads them, or misspelt; pure.
//!
//! In: an object that makes Pods, or a Namespace. Out: what is wrong with its labels, and the command that puts it right. Admission, `validate`,
//! `explain` and `status` say the same sentence, because all of them ask here.

use serde_json::Value;

use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;
use crate::domain::workload::WorkloadKind;

/// What is wrong with one object's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misplaced {
    /// `LabelIgnored` or `UnknownValue`.
    pub reason: Reason,
    /// The key that is at fault.
    pub key: String,
    /// Whether it stands on the Pods (or their template) rather than on the object itself.
    pub of_pods: bool,
    /// What stands where, why it does nothing, and the command; without a full stop.
    pub message: String,
}

/// The object, as people name it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Its kind as the engine knows it.
    pub kind: WorkloadKind,
    /// Its kind as manifests spell it.
    pub spelled: &'a str,
    /// Where it is applied.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The values that enrol.
const VALUES: [&str; 2] = ["agent", "tool"];

/// The first thing that is wrong with something that is or makes Pods; `template` is that of its Pods.
#[must_use]
pub fn of(named: Named<'_>, object: &Value, template: Option<&Value>) -> Option<Misplaced> {
    let right = template.and_then(|template| label(template, keys::LABEL_TYPE));
    if right.is_some_and(|value| VALUES.contains(&value)) {
        return None;
    }
    let command = |value: &str| command(named, value);
    let key = keys::LABEL_TYPE.to_owned();
    if let Some(value) = right {
        let meant = nearest(value, VALUES).unwrap_or("agent");
        let message = format!(
            "label {key} of its Pods is {value:?}, which enrols nothing; values are agent and tool, in small letters. What to do: {}",
            command(meant)
        );
        return Some(Misplaced { reason: Reason::UnknownValue, key, of_pods: true, message });
    }
    let is_pod = named.kind == WorkloadKind::Pod;
    let itself = label(object, keys::LABEL_TYPE).filter(|value| VALUES.contains(value));
    if let Some(value) = itself.filter(|_| !is_pod && !WorkloadKind::TARGETS.contains(&named.kind)) {
        let message = format!(
            "label {key}={value} stands on the {} itself, where it enrols nothing: of this kind only the Pod template counts. What to do: {}",
            named.spelled,
            command(value)
        );
        return Some(Misplaced { reason: Reason::LabelIgnored, key, of_pods: false, message });
    }
    let places = [("its Pods", template, true), ("the workload itself", Some(object), is_pod)];
    places.into_iter().find_map(|(place, of, of_pods)| {
        let (key, value) = misspelt(of?)?;
        let meant = nearest(value, VALUES).unwrap_or("agent");
        let message = format!(
            "label {key}={value} of {place} is not one that is read; the key is {}. What to do: {}",
            keys::LABEL_TYPE,
            command(meant)
        );
        Some(Misplaced { reason: Reason::LabelIgnored, key: key.to_owned(), of_pods, message })
    })
}

/// What is wrong with the labels of a Namespace: it enrols nothing, whatever it carries.
#[must_use]
pub fn of_namespace(namespace: &Value) -> Option<Misplaced> {
    let name = namespace.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let right = label(namespace, keys::LABEL_TYPE).map(|value| (keys::LABEL_TYPE, value));
    let (key, value) = right.or_else(|| misspelt(namespace))?;
    let value = nearest(value, VALUES).unwrap_or("agent");
    let message = format!(
        "label {key} stands on Namespace {name}, where it enrols nothing: workloads are enrolled one by one. What to do: kubectl label \
         namespace {name} {key}-, and kubectl -n {name} label deployment NAME {}={value} for each Deployment that is meant",
        keys::LABEL_TYPE
    );
    Some(Misplaced { reason: Reason::LabelIgnored, key: key.to_owned(), of_pods: false, message })
}

fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(key)?.as_str()
}

/// The first label whose key was meant to be [`keys::LABEL_TYPE`], with its value.
fn misspelt(object: &Value) -> Option<(&str, &str)> {
    let labels = object.pointer("/metadata/labels")?.as_object()?;
    let (key, value) = labels.iter().find(|(key, _)| is_misspelt(key))?;
    Some((key, value.as_str().unwrap_or_default()))
}

/// Whether a key was meant to be [`keys::LABEL_TYPE`]: `kagenti/type`, `kagenti.io/Type`, `kagneti.io/type`.
#[must_use]
pub fn is_misspelt(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').unwrap_or_default();
    let near = |text: &str, wanted: &str| nearest(text, [wanted]).is_some();
    key != keys::LABEL_TYPE && near(name, "type") && (near(prefix, "kagenti.io") || near(prefix, "kagenti"))
}

/// How the label comes to where it counts.
fn command(named: Named<'_>, value: &str) -> String {
    let Named { kind, spelled, namespace, name } = named;
    let key = keys::LABEL_TYPE;
    let word = spelled.to_lowercase();
    let patch = |patch: String| format!("kubectl -n {namespace} patch {word} {name} --type merge -p '{patch}'");
    match kind {
        WorkloadKind::Job | WorkloadKind::Pod => {
            let place = if kind == WorkloadKind::Job { "spec.template.metadata.labels" } else { "metadata.labels" };
            format!(
                "write {key}: {value} under {place} of its manifest, and create the {spelled} anew; it cannot be enrolled as it stands"
            )
        }
        WorkloadKind::CronJob => patch(format!(
            "{{\"spec\":{{\"jobTemplate\":{{\"spec\":{{\"template\":{{\"metadata\":{{\"labels\":{{\"{key}\":\"{value}\"}}}}}}}}}}}}}}"
        )),
        WorkloadKind::Sandbox => {
            patch(format!("{{\"spec\":{{\"podTemplate\":{{\"metadata\":{{\"labels\":{{\"{key}\":\"{value}\"}}}}}}}}}}"))
        }
        _ => patch(format!("{{\"spec\":{{\"template\":{{\"metadata\":{{\"labels\":{{\"{key}\":\"{value}\"}}}}}}}}}}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(api: &str, kind: &str, labels: &Value, of_template: &Value) -> Value {
        json!({
            "apiVersion": api, "kind": kind, "metadata": {"name": "w", "namespace": "team1", "labels": labels},
            "spec": {"template": {"metadata": {"labels": of_template}, "spec": {"containers": [{"name": "a"}]}}},
        })
    }

    fn found(object: &Value) -> Option<(&'static str, String)> {
        let (api, spelled) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let kind = WorkloadKind::from_group_kind(api.split_once('/').map_or("", |(group, _)| group), spelled).unwrap();
        let named = Named { kind, spelled, namespace: "team1", name: "w" };
        of(named, object, object.pointer("/spec/template")).map(|one| (one.reason.code(), one.message))
    }

    #[test]
    fn answers_07_a_label_in_the_wrong_place_is_told_with_the_patch() {
        let (none, agent) = (json!({}), json!({"kagenti.io/type": "agent"}));
        for (object, reason, says) in [
            (workload("batch/v1", "Job", &agent, &none), "LabelIgnored", "create the Job anew"),
            (
                workload("apps/v1", "ReplicaSet", &agent, &none),
                "LabelIgnored",
                "kubectl -n team1 patch replicaset w --type merge -p '{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"kagenti.io/type\":\"agent\"}}}}}'",
            ),
            (
                workload("apps/v1", "Deployment", &none, &json!({"kagenti/type": "agent"})),
                "LabelIgnored",
                "label kagenti/type=agent of its Pods is not one that is read",
            ),
            (workload("apps/v1", "Deployment", &json!({"kagneti.io/type": "tool"}), &none), "LabelIgnored", "\"tool\""),
            (
                workload("apps/v1", "Deployment", &none, &json!({"kagenti.io/type": "Agent"})),
                "UnknownValue",
                "\"kagenti.io/type\":\"agent\"",
            ),
        ] {
            let (code, message) = found(&object).unwrap();
            assert_eq!(code, reason, "{message}");
            assert!(message.contains(says), "{message}");
        }
        for object in [
            workload("apps/v1", "Deployment", &agent, &none),
            workload("batch/v1", "Job", &agent, &agent),
            workload("apps/v1", "Deployment", &none, &json!({"app": "x", "type": "y", "kagenti.io/protocol": "a2a"})),
        ] {
            assert_eq!(found(&object), None, "{object}");
        }
    }

    #[test]
    fn answers_07_a_namespace_enrols_nothing_whatever_it_carries() {
        let namespace = |labels: Value| json!({"kind": "Namespace", "metadata": {"name": "team1", "labels": labels}});
        for (labels, says) in [
            (json!({"kagenti.io/type": "agent"}), Some("kubectl label namespace team1 kagenti.io/type-")),
            (json!({"kagenti/type": "Tool"}), Some("kagenti.io/type=tool for each Deployment")),
            (json!({"kagenti-enabled": "true", "type": "agent"}), None),
        ] {
            let told = of_namespace(&namespace(labels)).map(|one| one.message);
            match says {
                Some(says) => assert!(told.as_deref().is_some_and(|told| told.contains(says)), "{told:?}"),
                None => assert_eq!(told, None),
            }
        }
    }
}
