//! Whether what was applied still stands: read from who owns which field, not from values.
//!
//! Whoever changes or removes a field that we applied takes it out of our entry in `metadata.managedFields`; whoever
//! only adds does not. So the entry and the body we applied tell everything, whatever the API server has made of the
//! values, and after a restart as well. Sources: `sigs.k8s.io/structured-merge-diff`, the FieldsV1 format.

use std::collections::{BTreeMap, BTreeSet};

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
            let entries = Entries::of(fields);
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                match entries.below(item) {
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

/// What is owned of the items of one list, each entry read once: users write lists of thousands of variables, and every item looks for its own.
#[derive(Default)]
struct Entries<'f> {
    /// The keys of an item, and what is owned of it.
    keyed: Vec<(Map<String, Value>, &'f Value)>,
    /// The names of these keys.
    names: BTreeSet<String>,
    /// Which of them have that value of that key.
    of: BTreeMap<(String, String), Vec<usize>>,
    /// Items that are told apart by their value.
    values: BTreeMap<String, &'f Value>,
}

impl<'f> Entries<'f> {
    fn of(fields: &'f Map<String, Value>) -> Self {
        let mut entries = Self::default();
        for (name, below) in fields {
            let Some((kind, text)) = name.split_once(':') else { continue };
            match (kind, serde_json::from_str(text)) {
                ("k", Ok(Value::Object(keys))) => {
                    for (key, value) in &keys {
                        entries.names.insert(key.clone());
                        let same = entries.of.entry((key.clone(), value.to_string())).or_default();
                        same.push(entries.keyed.len());
                    }
                    entries.keyed.push((keys, below));
                }
                ("v", Ok(value)) => {
                    entries.values.entry(value.to_string()).or_insert(below);
                }
                _ => {}
            }
        }
        entries
    }

    /// What is owned of an item: found by its keys or its value.
    fn below(&self, item: &Value) -> Option<&'f Value> {
        let same = |key: &String| self.of.get(&(key.clone(), item.get(key)?.to_string()));
        let mut found: Vec<&[usize]> = self.names.iter().filter_map(same).map(Vec::as_slice).collect();
        // Every port may be of the same protocol.
        found.sort_by_key(|indices| indices.len());
        // A key that was left out got its default from the API server.
        let has = |(key, value): (&String, &Value)| item.get(key).is_none_or(|own| own == value);
        let mut all = found.into_iter().flatten().filter_map(|index| self.keyed.get(*index));
        let keyed = all.find(|(keys, _)| keys.iter().all(has)).map(|(_, below)| *below);
        if keyed.is_some() || self.values.is_empty() {
            return keyed;
        }
        self.values.get(&item.to_string()).copied()
    }
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

    /// What this thread has worked so far. Time that the machine gave to others is not in it.
    fn worked() -> u64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }

    /// A user writes as many variables as fit, and every plan of the object asks whether they stand.
    #[test]
    fn a_list_costs_as_much_as_there_is_of_it() {
        let mut spent = Vec::new();
        for count in [500, 4_000] {
            let items: Value = (0..count).map(|number| json!({"name": format!("V{number}"), "value": "x"})).collect();
            let key = |number| format!("k:{{\"name\":\"V{number}\"}}");
            let below = json!({".": {}, "f:name": {}, "f:value": {}});
            let owned: Map<String, Value> = (0..count).map(|number| (key(number), below.clone())).collect();
            let (body, mut fields) = (json!({"env": items}), json!({"f:env": owned}));
            // The best of five: caches are shared with whatever else runs.
            let best = (0..5).map(|_| {
                let begun = worked();
                // As many items in all, since the system counts in steps of milliseconds.
                for _ in 0..32_000 / count {
                    assert_eq!(lost(&body, &fields), Vec::<String>::new());
                }
                worked() - begun
            });
            spent.push(best.min().unwrap().max(1));
            fields["f:env"].as_object_mut().unwrap().remove(&key(count - 1));
            assert_eq!(lost(&body, &fields), [format!("env[{}]", count - 1)]);
        }
        assert!(
            spent[1] < spent[0] * 3,
            "as many items in lists that are eight times as long, quadratic would be eight: {spent:?}"
        );
    }

    /// A port that names no protocol has the one that the API server gives it, and is told from another number of the same protocol.
    #[test]
    fn an_item_is_found_by_the_keys_that_it_has() {
        let key = |port, protocol| format!("k:{{\"containerPort\":{port},\"protocol\":\"{protocol}\"}}");
        let owned = |more: &str| json!({".": {}, "f:containerPort": {}, more: {}});
        let fields = Map::from_iter([
            (key(53, "TCP"), owned("f:name")),
            (key(53, "UDP"), owned("f:hostPort")),
            (key(80, "TCP"), owned("f:name")),
        ]);
        let fields = json!({"f:ports": fields});
        for (item, gone) in [
            (json!({"containerPort": 80, "name": "a"}), vec![]),
            (json!({"containerPort": 53, "name": "a"}), vec![]),
            (json!({"containerPort": 53, "protocol": "UDP", "hostPort": 1}), vec!["ports[0].protocol"]),
            (json!({"containerPort": 53, "protocol": "UDP", "name": "a"}), vec!["ports[0].name", "ports[0].protocol"]),
            (json!({"containerPort": 81, "protocol": "TCP"}), vec!["ports[0]"]),
            (json!({"name": "a"}), vec!["ports[0]"]),
        ] {
            assert_eq!(lost(&json!({"ports": [item]}), &fields), gone, "{item}");
        }
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
