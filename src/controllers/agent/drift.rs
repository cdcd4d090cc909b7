//! Whether what was applied still stands: read from who owns which field, not from values.
//!
//! Whoever changes or removes a field that we applied takes it out of our entry in `metadata.managedFields`; whoever
//! only adds does not. So the entry and the body we applied tell everything, whatever the API server has made of the
//! values, and after a restart as well. Sources: `sigs.k8s.io/structured-merge-diff`, the FieldsV1 format.

use serde_json::{Map, Value};

/// Members of `metadata` that say which object is meant and are never owned.
const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// The paths of `body` that are not owned any more by the manager whose `fields` (FieldsV1) these are, in order.
pub(super) fn lost(body: &Value, fields: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    for (key, member) in body.as_object().into_iter().flatten() {
        let Value::Object(members) = member else {
            walk(member, fields.get(owned_key(key)), &mut key.clone(), &mut lost);
            continue;
        };
        let mut members = members.clone();
        if key == "metadata" {
            members.retain(|name, _| !IDENTITY.contains(&name.as_str()));
        }
        walk(&Value::Object(members), fields.get(owned_key(key)), &mut key.clone(), &mut lost);
    }
    lost
}

fn owned_key(key: &str) -> String {
    format!("f:{key}")
}

fn walk(value: &Value, fields: Option<&Value>, path: &mut String, lost: &mut Vec<String>) {
    let Some(fields) = fields.and_then(Value::as_object) else {
        if !owns_nothing(value) {
            lost.push(path.clone());
        }
        return;
    };
    // Without members a field is owned as a whole.
    if fields.is_empty() {
        return;
    }
    let length = path.len();
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                path.push('.');
                path.push_str(key);
                walk(member, fields.get(&owned_key(key)), path, lost);
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                match entry(item, fields) {
                    Some(below) => walk(item, Some(below), path, lost),
                    None => lost.push(path.clone()),
                }
                path.truncate(length);
            }
        }
        _ => {}
    }
}

/// Whether the API server may keep no entry for what was applied, though nobody took it: of a list whose items are owned one by one nothing is left
/// when it is empty, nor of what holds only such lists.
fn owns_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => !members.is_empty() && members.values().all(owns_nothing),
        _ => false,
    }
}

/// What is owned of an item of a list: found by its keys, its value, or its place.
fn entry<'f>(item: &Value, fields: &'f Map<String, Value>) -> Option<&'f Value> {
    fields.iter().find_map(|(name, below)| {
        let (kind, text) = name.split_once(':')?;
        let is_it = match kind {
            "k" => has_keys(item, text),
            "v" => serde_json::from_str::<Value>(text).is_ok_and(|value| value == *item),
            _ => false,
        };
        is_it.then_some(below)
    })
}

/// Whether an item has these values of its keys; a key that was left out got its default from the API server.
fn has_keys(item: &Value, text: &str) -> bool {
    let Ok(Value::Object(wanted)) = serde_json::from_str::<Value>(text) else { return false };
    let mut named = false;
    let all = wanted.iter().all(|(key, value)| match item.get(key) {
        Some(own) => {
            named = true;
            own == value
        }
        None => true,
    });
    all && named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body() -> Value {
        json!({
            "metadata": {
                "name": "w", "namespace": "n", "uid": "u", "labels": {"a": "1"},
                "ownerReferences": [{"uid": "o", "kind": "Agent"}],
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"a": "1"}},
                "template": {"spec": {
                    "containers": [{
                        "name": "agent", "image": "i", "args": ["x", "y"],
                        "ports": [{"containerPort": 8000, "name": "http"}],
                        "securityContext": {"capabilities": {"drop": ["ALL"]}},
                    }],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                }},
            },
        })
    }

    /// The entry as an API server of 1.36 writes it.
    fn entry() -> Value {
        json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:ownerReferences": {"k:{\"uid\":\"o\"}": {}}},
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": {"f:spec": {
                    "f:containers": {"k:{\"name\":\"agent\"}": {
                        ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
                        "f:ports": {"k:{\"containerPort\":8000,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:name": {}}},
                        "f:securityContext": {"f:capabilities": {"f:drop": {}}},
                    }},
                    "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}, "f:emptyDir": {}}},
                }},
            },
        })
    }

    #[test]
    fn what_is_owned_in_full_stands() {
        assert_eq!(lost(&body(), &entry()), Vec::<String>::new());
    }

    #[test]
    fn every_field_that_somebody_took_is_named() {
        let container = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"agent\"}";
        for (pointer, key, path) in [
            ("/f:spec".to_owned(), "f:replicas", "spec.replicas"),
            ("/f:spec".to_owned(), "f:selector", "spec.selector"),
            ("/f:metadata/f:labels".to_owned(), "f:a", "metadata.labels.a"),
            ("/f:metadata/f:ownerReferences".to_owned(), "k:{\"uid\":\"o\"}", "metadata.ownerReferences"),
            (container.to_owned(), "f:image", "spec.template.spec.containers[0].image"),
            (container.to_owned(), "f:args", "spec.template.spec.containers[0].args"),
            (
                format!("{container}/f:ports"),
                "k:{\"containerPort\":8000,\"protocol\":\"TCP\"}",
                "spec.template.spec.containers[0].ports",
            ),
            ("/f:spec/f:template/f:spec/f:volumes".to_owned(), "k:{\"name\":\"tmp\"}", "spec.template.spec.volumes"),
        ] {
            let mut entry = entry();
            let removed = entry.pointer_mut(&pointer).and_then(Value::as_object_mut).and_then(|at| at.remove(key));
            assert!(removed.is_some(), "{pointer} {key}");
            // An API server leaves no empty parents behind.
            prune(&mut entry);
            let found = lost(&body(), &entry);
            assert!(
                found.len() == 1 && (found[0].starts_with(path) || path.starts_with(&found[0])),
                "{path}: {found:?}"
            );
        }
    }

    /// Takes away members that are left with nothing but are no leaves of the entry above.
    fn prune(value: &mut Value) {
        let Some(members) = value.as_object_mut() else { return };
        for name in ["f:labels", "f:ownerReferences", "f:ports", "f:volumes"] {
            if members.get(name).is_some_and(|member| *member == json!({})) {
                members.remove(name);
            }
        }
        members.values_mut().for_each(prune);
    }

    #[test]
    fn additions_of_others_are_no_loss_and_nothing_owned_is_a_loss_of_all() {
        let mut more = entry();
        more["f:spec"]["f:paused"] = json!({});
        assert_eq!(lost(&body(), &more), Vec::<String>::new());
        assert_eq!(lost(&body(), &json!({})), ["metadata", "spec"]);
        assert_eq!(lost(&json!({"automountServiceAccountToken": false}), &json!({})), ["automountServiceAccountToken"]);
        assert_eq!(
            lost(&json!({"automountServiceAccountToken": false}), &json!({"f:automountServiceAccountToken": {}})),
            Vec::<String>::new()
        );
    }

    /// An API server of 1.36 has no entry for an empty list that it merges, and one for a list that is one value.
    #[test]
    fn an_empty_list_is_never_a_loss() {
        let mut body = body();
        let spec = &mut body["spec"]["template"]["spec"];
        spec["imagePullSecrets"] = json!([]);
        spec["containers"][0]["env"] = json!([]);
        spec["containers"][0]["command"] = json!([]);
        spec["affinity"] = json!({"nodeAffinity": {"preferred": []}});
        let mut owned = entry();
        let container = "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"agent\"}";
        owned.pointer_mut(container).unwrap()["f:command"] = json!({});
        assert_eq!(lost(&body, &owned), Vec::<String>::new());
        owned.pointer_mut(container).unwrap().as_object_mut().unwrap().remove("f:image");
        assert_eq!(lost(&body, &owned), ["spec.template.spec.containers[0].image"]);
        assert_eq!(lost(&json!({"spec": {"emptyDir": {}}}), &json!({"f:spec": {"f:x": {}}})), ["spec.emptyDir"]);
    }

    #[test]
    fn items_are_found_by_value_and_never_by_defaults_alone() {
        let fields = json!({"f:spec": {"f:set": {"v:\"a\"": {}, "v:\"b\"": {}}}});
        assert_eq!(lost(&json!({"spec": {"set": ["b", "a"]}}), &fields), Vec::<String>::new());
        assert_eq!(lost(&json!({"spec": {"set": ["b", "c"]}}), &fields), ["spec.set[1]"]);
        let fields = json!({"f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}}}}});
        assert_eq!(lost(&json!({"spec": {"ports": [{"name": "x"}]}}), &fields), ["spec.ports[0]"]);
    }
}
