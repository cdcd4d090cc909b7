//! What happens to a Pod between two calls of a webhook: defaults of the API server, fields of a later version.

use serde_json::{Value, json};

use drawbridge::domain::keys;

/// A member that no version of the Pod API knows.
pub const FUTURE: &str = "zzFutureField";

/// The Pod as a later webhook (or our second call) sees it: the API server's defaults are filled in.
#[must_use]
pub fn defaulted(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let spec = &mut pod["spec"];
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("schedulerName", json!("default-scheduler")),
        ("securityContext", json!({})),
        ("enableServiceLinks", json!(true)),
    ] {
        absent_becomes(spec, key, value);
    }
    if let Some(account) = spec.get("serviceAccountName").cloned() {
        spec["serviceAccount"] = account;
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            default_container(container);
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        for source in ["configMap", "secret", "downwardAPI", "projected"] {
            if let Some(source) = volume.get_mut(source) {
                absent_becomes(source, "defaultMode", json!(420));
                for item in source.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                    default_field_ref(item);
                }
            }
        }
    }
    pod
}

fn default_container(container: &mut Value) {
    absent_becomes(container, "terminationMessagePath", json!("/dev/termination-log"));
    absent_becomes(container, "terminationMessagePolicy", json!("File"));
    absent_becomes(container, "imagePullPolicy", json!("IfNotPresent"));
    absent_becomes(container, "resources", json!({}));
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        absent_becomes(port, "protocol", json!("TCP"));
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(source) = variable.get_mut("valueFrom") {
            default_field_ref(source);
        }
        // Empty texts do not come back.
        if let Some(map) = variable.as_object_mut() {
            map.retain(|key, value| key != "value" || value != "");
        }
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        if let Some(probe) = container.get_mut(probe) {
            for (key, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                absent_becomes(probe, key, json!(value));
            }
        }
    }
}

fn default_field_ref(holder: &mut Value) {
    if let Some(field) = holder.get_mut("fieldRef") {
        absent_becomes(field, "apiVersion", json!("v1"));
    }
}

fn absent_becomes(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut()
        && map.get(key).is_none_or(Value::is_null)
    {
        map.insert(key.to_owned(), value);
    }
}

/// The object with an unknown member in every map that is the user's own, and how many those are.
#[must_use]
pub fn with_future_fields(object: &Value) -> (Value, usize) {
    let mut object = object.clone();
    let mut count = 0;
    for place in ["", "/metadata", "/spec", "/spec/securityContext", "/status"] {
        mark(object.pointer_mut(place), &mut count);
    }
    for list in ["/spec/containers", "/spec/initContainers"] {
        for container in object.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if container.get("name").and_then(Value::as_str).is_some_and(|name| keys::OUR_CONTAINERS.contains(&name)) {
                continue;
            }
            for member in ["ports", "env", "volumeMounts"] {
                for item in container.get_mut(member).and_then(Value::as_array_mut).into_iter().flatten() {
                    mark(Some(item), &mut count);
                }
            }
            for member in ["securityContext", "resources", "livenessProbe", "readinessProbe", "lifecycle"] {
                mark(container.get_mut(member), &mut count);
            }
            mark(Some(container), &mut count);
        }
    }
    (object, count)
}

fn mark(place: Option<&mut Value>, count: &mut usize) {
    if let Some(map) = place.and_then(Value::as_object_mut) {
        map.insert(FUTURE.to_owned(), json!({"deep": [1, null, {"er": "x/~y"}], "n": 1.5}));
        *count += 1;
    }
}

/// The value without the unknown members, and how many there were.
#[must_use]
pub fn without_future_fields(value: &Value) -> (Value, usize) {
    match value {
        Value::Object(map) => {
            let mut count = usize::from(map.contains_key(FUTURE));
            let rest = map.iter().filter(|(key, _)| *key != FUTURE).map(|(key, member)| {
                let (member, below) = without_future_fields(member);
                count += below;
                (key.clone(), member)
            });
            let rest = rest.collect();
            (Value::Object(rest), count)
        }
        Value::Array(items) => {
            let (items, counts): (Vec<_>, Vec<_>) = items.iter().map(without_future_fields).unzip();
            (Value::Array(items), counts.into_iter().sum())
        }
        other => (other.clone(), 0),
    }
}
