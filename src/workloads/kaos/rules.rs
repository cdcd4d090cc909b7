//! What we do about a patch of a Pod's spec beyond Kubernetes' own merge.
//!
//! In: the spec that the operator makes, the user's patch, and the name of the container that is the operator's. Out: the spec that runs.
//! Promises: what the API server would refuse only because the operator's choice stands beside the user's gives way to the user's (one
//! handler to a probe, one source to a value and to a volume); the operator's container stays the first; nulls and left-over directives,
//! which no Pod has, are gone.

use serde_json::{Map, Value};

use super::merge::{MergeFault, merge};

type Object = Map<String, Value>;

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const HOOKS: [&str; 2] = ["postStart", "preStop"];

/// `base` with `patch` merged into it by our rules; `main` is the operator's own container.
///
/// # Errors
/// As [`merge`].
pub fn patched(base: &Value, patch: &Value, main: &str) -> Result<Value, MergeFault> {
    let mut yielding = base.clone();
    if let (Some(base), Some(patch)) = (yielding.as_object_mut(), patch.as_object()) {
        yields(base, patch);
    }
    let mut merged = merge(&yielding, patch)?;
    clean(&mut merged);
    if let Some(containers) = merged.get_mut("containers").and_then(Value::as_array_mut)
        && let Some(at) = containers.iter().position(|container| container["name"] == main)
    {
        let own = containers.remove(at);
        containers.insert(0, own);
    }
    Ok(merged)
}

/// Takes out of the base what cannot stand beside the patch.
fn yields(base: &mut Object, patch: &Object) {
    for kind in ["containers", "initContainers"] {
        pairs(base, patch, kind, |container, patch| {
            for probe in PROBES {
                both(container, patch, probe, |own, patch| one_of(own, patch, &HANDLERS));
            }
            both(container, patch, "lifecycle", |own, patch| {
                for hook in HOOKS {
                    both(own, patch, hook, |own, patch| one_of(own, patch, &HANDLERS));
                }
            });
            pairs(container, patch, "env", |own, patch| {
                one_of(own, patch, &["value", "valueFrom"]);
                both(own, patch, "valueFrom", replaced);
            });
        });
    }
    pairs(base, patch, "volumes", replaced);
}

/// Of those members the base keeps only the one that the patch sets.
fn one_of(own: &mut Object, patch: &Object, members: &[&str]) {
    let sets = |name: &str| patch.get(name).is_some_and(|value| !value.is_null());
    if members.iter().any(|name| sets(name)) {
        own.retain(|name, _| !members.contains(&name.as_str()) || sets(name));
    }
}

/// A patch that names a source, of a value or a volume, leaves the base no other.
fn replaced(own: &mut Object, patch: &Object) {
    let sets = |name: &str| patch.get(name).is_some_and(|value| !value.is_null());
    if patch.iter().any(|(name, value)| name != "name" && !name.starts_with('$') && !value.is_null()) {
        own.retain(|name, _| name == "name" || sets(name));
    }
}

fn both(base: &mut Object, patch: &Object, name: &str, then: impl FnOnce(&mut Object, &Object)) {
    if let (Some(Value::Object(own)), Some(Value::Object(patch))) = (base.get_mut(name), patch.get(name)) {
        then(own, patch);
    }
}

/// The items of a list that base and patch both have, by name.
fn pairs(base: &mut Object, patch: &Object, list: &str, then: impl Fn(&mut Object, &Object)) {
    let (Some(Value::Array(own)), Some(Value::Array(patch))) = (base.get_mut(list), patch.get(list)) else { return };
    for patch in patch.iter().filter_map(Value::as_object) {
        let same = |item: &&mut Value| item.get("name").is_some_and(|name| Some(name) == patch.get("name"));
        if let Some(Value::Object(own)) = own.iter_mut().find(same) {
            then(own, patch);
        }
    }
}

/// Takes out what no Pod has: nulls, and directives that nothing was there for.
fn clean(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| !member.is_null() && !is_directive(name));
            members.values_mut().for_each(clean);
        }
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(clean);
        }
        _ => {}
    }
}

fn is_directive(name: &str) -> bool {
    name == "$patch"
        || name == "$retainKeys"
        || name.starts_with("$setElementOrder/")
        || name.starts_with("$deleteFromPrimitiveList/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({
            "containers": [{
                "name": "agent", "image": "i",
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "livenessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10},
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        })
    }

    /// What Kubernetes' own merge would make of each of these the API server refuses.
    #[test]
    fn what_the_user_chooses_leaves_nothing_of_ours_beside_it() {
        for (patch, at, wanted) in [
            (
                json!({"containers": [{"name": "agent", "livenessProbe": {"tcpSocket": {"port": 8000}}}]}),
                "/containers/0/livenessProbe",
                json!({"tcpSocket": {"port": 8000}, "periodSeconds": 10}),
            ),
            (
                json!({"containers": [{"name": "agent", "livenessProbe": {"initialDelaySeconds": 60}}]}),
                "/containers/0/livenessProbe",
                json!({"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 10, "initialDelaySeconds": 60}),
            ),
            (
                json!({"containers": [{"name": "agent", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}]}),
                "/containers/0/env/0",
                json!({"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}),
            ),
            (
                json!({"containers": [{"name": "agent", "env": [{"name": "B", "value": "2"}]}]}),
                "/containers/0/env/1",
                json!({"name": "B", "value": "2"}),
            ),
            (
                json!({"containers": [{"name": "agent", "env": [{"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}]}),
                "/containers/0/env/1",
                json!({"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}),
            ),
            (
                json!({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "models"}}]}),
                "/volumes/0",
                json!({"name": "data", "persistentVolumeClaim": {"claimName": "models"}}),
            ),
            (
                json!({"volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}]}),
                "/volumes/0",
                json!({"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}),
            ),
        ] {
            let found = patched(&base(), &patch, "agent").unwrap();
            let found_at = found.pointer(at);
            assert_eq!(found_at, Some(&wanted), "{patch}: {found}");
        }
    }

    #[test]
    fn case_80_the_operators_container_stays_the_first() {
        let patch = json!({"containers": [{"name": "sidecar", "image": "s"}]});
        let found = patched(&base(), &patch, "agent").unwrap();
        assert_eq!(
            (&found["containers"][0]["name"], &found["containers"][1]["name"]),
            (&json!("agent"), &json!("sidecar"))
        );
        assert_eq!(found["containers"][0], base()["containers"][0]);
    }

    #[test]
    fn nulls_and_directives_are_none_of_a_pods_members() {
        let patch = json!({"containers": [{"name": "x", "image": null, "args": ["a"]}], "nodeSelector": {"$retainKeys": ["a"], "a": "b"}});
        let found = patched(&base(), &patch, "agent").unwrap();
        assert_eq!(found["containers"][1], json!({"name": "x", "args": ["a"]}));
        assert_eq!(found["nodeSelector"], json!({"a": "b"}));
    }

    #[test]
    fn what_cannot_be_merged_names_its_place() {
        let patch = json!({"containers": [{"name": "agent", "env": [{"value": "1"}]}]});
        let fault = patched(&base(), &patch, "agent").unwrap_err();
        assert_eq!(fault.path, "containers[name=agent].env");
        assert!(fault.sentence.contains("without name"), "{fault}");
    }
}
