//! JSON types of a TaskSpec's members: what Tekton's webhook could not decode. A member of a wrong type anywhere makes
//! Tekton refuse the whole run, with words that name no ConfigMap.

use k8s_openapi::api::core::v1::{Container, Volume};
use serde_json::{Value, json};

use super::checks::SIDECAR;
use super::{Faults, REMEDY};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::domain::quantity::quantity;

/// Members of a sidecar that are Tekton's own. All others are Kubernetes', and a step has some of those.
const OF_TEKTON: [&str; 2] = ["script", "workspaces"];

fn is_of_kubernetes(member: &str) -> bool {
    SIDECAR.known.contains(&member) && !OF_TEKTON.contains(&member)
}

/// Checks the types of everything that is not checked where it is read.
pub(super) fn check(task_spec: &Value, faults: &mut Faults) {
    texts(task_spec, "", &["description", "displayName"], faults);
    for (list, words, switches) in [
        ("params", &["description", "type"][..], &[][..]),
        ("results", &["description", "type"], &[]),
        ("workspaces", &["description", "mountPath"], &["readOnly", "optional"]),
        ("steps", &["script", "displayName", "onError"], &[]),
        ("sidecars", &["script"], &[]),
    ] {
        for (index, entry) in list_of(task_spec, list).iter().enumerate() {
            let at = format!("{list}[{index}]");
            texts(entry, &at, words, faults);
            typed(entry, &at, switches, SWITCH, faults);
            if matches!(list, "steps" | "sidecars") {
                container(entry, &at, faults);
            }
        }
    }
    if let Some(template) = task_spec.get("stepTemplate") {
        container(template, "stepTemplate", faults);
    }
    for (index, volume) in list_of(task_spec, "volumes").iter().enumerate() {
        let at = format!("volumes[{index}]");
        let mut volume = volume.clone();
        quantities(&mut volume, &at, faults);
        if let Err(error) = serde_json::from_value::<Volume>(volume) {
            faults.add(&at, format!("is not a volume: {error}"), REMEDY);
        }
    }
}

fn list_of<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts(of: &Value, at: &str, keys: &[&str], faults: &mut Faults) {
    typed(of, at, keys, TEXT, faults);
}

/// A type in words, and whether a value has it.
type Type = (&'static str, fn(&Value) -> bool);
const TEXT: Type = ("a string", Value::is_string);
const SWITCH: Type = ("true or false", Value::is_boolean);

fn typed(of: &Value, at: &str, keys: &[&str], (wanted, fits): Type, faults: &mut Faults) {
    for key in keys {
        if let Some(value) = of.get(key).filter(|value| !value.is_null() && !fits(value)) {
            let place = if at.is_empty() { (*key).to_owned() } else { format!("{at}.{key}") };
            faults.add(&place, format!("must be {wanted}; {} was found", kind(value)), REMEDY);
        }
    }
}

fn container(container: &Value, at: &str, faults: &mut Faults) {
    for (key, value) in container.as_object().into_iter().flatten() {
        let at = format!("{at}.{key}");
        if key == "timeout" {
            timeout(value, &at, faults);
        }
        if !is_of_kubernetes(key) {
            continue;
        }
        let mut value = value.clone();
        quantities(&mut value, &at, faults);
        let key = if key == "computeResources" { "resources" } else { key };
        if let Err(error) = serde_json::from_value::<Container>(json!({ key: value })) {
            faults.add(&at, format!("has a wrong type: {error}"), REMEDY);
        }
    }
}

fn timeout(value: &Value, at: &str, faults: &mut Faults) {
    if !value.is_null() && value.as_str().and_then(syntax::duration_seconds).is_none() {
        faults.add(at, "is not a length of time", "write one as Go does, such as 90s or 1h30m");
    }
}

/// Numbers among the quantities become texts, as Kubernetes reads them; what is no quantity is a fault.
fn quantities(value: &mut Value, at: &str, faults: &mut Faults) {
    match value {
        Value::Array(items) => {
            items.iter_mut().enumerate().for_each(|(index, item)| quantities(item, &format!("{at}[{index}]"), faults));
        }
        Value::Object(members) => {
            for (key, member) in members {
                let at = format!("{at}.{key}");
                match (key.as_str(), member) {
                    ("limits" | "requests", Value::Object(amounts)) => {
                        amounts
                            .iter_mut()
                            .for_each(|(name, amount)| one_quantity(amount, &format!("{at}.{name}"), faults));
                    }
                    ("sizeLimit" | "divisor", amount) => one_quantity(amount, &at, faults),
                    (_, other) => quantities(other, &at, faults),
                }
            }
        }
        _ => {}
    }
}

fn one_quantity(value: &mut Value, at: &str, faults: &mut Faults) {
    if value.is_number() {
        *value = Value::String(value.to_string());
    }
    if let Some(text) = value.as_str().filter(|text| quantity(text).is_none()) {
        faults.seeing(at, "is not a quantity", "write one as Kubernetes does, such as 500m or 1Gi", text);
    }
}
