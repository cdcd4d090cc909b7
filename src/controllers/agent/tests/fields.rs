//! Server-side apply in memory: who owns which field, and what becomes of it (FieldsV1 as of Kubernetes 1.36).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Names of members on the way to a value; an item of a list by its keys.
type Path = Vec<String>;

/// An object without its status: values by path, and the paths of each manager.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    values: BTreeMap<Path, Value>,
    managers: BTreeMap<(String, &'static str), BTreeSet<Path>>,
}

/// The members by which the items of a list are told apart; `None` for lists and maps that are one value.
fn keys_of(field: &str, item: &Value) -> Option<&'static [&'static str]> {
    match field {
        "containers" | "initContainers" | "volumes" | "env" | "imagePullSecrets" => Some(&["name"]),
        "volumeMounts" => Some(&["mountPath"]),
        "ownerReferences" => Some(&["uid"]),
        "ports" if item.get("containerPort").is_some() => Some(&["containerPort", "protocol"]),
        "ports" => Some(&["port", "protocol"]),
        _ => None,
    }
}

/// Lists whose items are owned one by one: of an empty one nothing is.
const MERGED: [&str; 7] =
    ["containers", "initContainers", "volumes", "env", "volumeMounts", "imagePullSecrets", "ports"];

fn flatten(value: &Value, path: &mut Path, into: &mut BTreeMap<Path, Value>) {
    let field = path.last().cloned().unwrap_or_default();
    match value {
        // Selectors are one value.
        Value::Object(members) if !members.is_empty() && field != "f:selector" => {
            for (key, member) in members {
                path.push(format!("f:{key}"));
                flatten(member, path, into);
                path.pop();
            }
        }
        Value::Array(items)
            if items.is_empty() && MERGED.iter().any(|name| field.strip_prefix("f:") == Some(*name)) => {}
        Value::Array(items) if !items.is_empty() => {
            let name = field.strip_prefix("f:").unwrap_or_default().to_owned();
            for item in items {
                let Some(keys) = keys_of(&name, item) else {
                    into.insert(path.clone(), value.clone());
                    return;
                };
                let key: Map<String, Value> = keys
                    .iter()
                    .map(|key| ((*key).to_owned(), item.get(*key).cloned().unwrap_or(json!("TCP"))))
                    .collect();
                path.push(format!("k:{}", Value::Object(key)));
                if name == "ownerReferences" {
                    into.insert(path.clone(), item.clone());
                } else {
                    flatten(item, path, into);
                }
                path.pop();
            }
        }
        other => {
            into.insert(path.clone(), other.clone());
        }
    }
}

/// A body as values by path, without what says which object is meant.
fn values(body: &Value) -> BTreeMap<Path, Value> {
    let mut body = body.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        for key in ["name", "namespace", "uid", "resourceVersion"] {
            metadata.remove(key);
        }
    }
    let mut flat = BTreeMap::new();
    flatten(&body, &mut Path::new(), &mut flat);
    flat
}

fn put(into: &mut Value, path: &[String], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        *into = value.clone();
        return;
    };
    if let Some(name) = first.strip_prefix("f:") {
        if !into.is_object() {
            *into = json!({});
        }
        put(&mut into[name], rest, value);
    } else if let Some(text) = first.strip_prefix("k:") {
        let keys: Map<String, Value> = serde_json::from_str(text).unwrap();
        if !into.is_array() {
            *into = json!([]);
        }
        let items = into.as_array_mut().unwrap();
        let same = |item: &Value| keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value));
        let at = items.iter().position(same).unwrap_or_else(|| {
            items.push(Value::Object(keys.clone()));
            items.len() - 1
        });
        put(&mut items[at], rest, value);
    }
}

impl Fields {
    /// Server-side apply by force.
    pub(super) fn apply(&mut self, manager: &str, body: &Value) {
        // Before anything is applied, what has no entry at all gets one of that name.
        if self.managers.is_empty() && !self.values.is_empty() {
            let all = self.values.keys().cloned().collect();
            self.managers.insert(("before-first-apply".to_owned(), "Update"), all);
        }
        let wanted = values(body);
        let old = self.managers.remove(&(manager.to_owned(), "Apply")).unwrap_or_default();
        for path in old {
            let others = self.managers.values().any(|set| set.contains(&path));
            if !wanted.contains_key(&path) && !others {
                self.values.remove(&path);
            }
        }
        self.take(&wanted);
        let set = wanted.keys().cloned().collect();
        self.values.extend(wanted);
        self.managers.insert((manager.to_owned(), "Apply"), set);
    }

    /// An ordinary change: what it changes belongs to whoever made it; `null` takes a member away.
    pub(super) fn edit(&mut self, (manager, operation): (&str, &'static str), patch: &Value) {
        let changed = values(patch);
        let changed: BTreeMap<_, _> =
            changed.into_iter().filter(|(path, value)| self.values.get(path) != Some(value)).collect();
        self.take(&changed);
        let own = self.managers.entry((manager.to_owned(), operation)).or_default();
        for (path, value) in changed {
            if value.is_null() {
                own.remove(&path);
                self.values.remove(&path);
            } else {
                own.insert(path.clone());
                self.values.insert(path, value);
            }
        }
    }

    /// The entries are called what an edit has made of them, in their order.
    pub(super) fn rename(&mut self, entries: &[Value]) {
        let sets = std::mem::take(&mut self.managers).into_values();
        for (set, entry) in sets.zip(entries) {
            let operation = if entry["operation"] == "Apply" { "Apply" } else { "Update" };
            self.managers.insert((entry["manager"].as_str().unwrap_or_default().to_owned(), operation), set);
        }
    }

    /// Whoever had another value there loses the field.
    fn take(&mut self, values: &BTreeMap<Path, Value>) {
        for (path, value) in values {
            if self.values.get(path) != Some(value) {
                for set in self.managers.values_mut() {
                    set.remove(path);
                }
            }
        }
    }

    /// Values and `metadata.managedFields`.
    pub(super) fn object(&self) -> Value {
        let mut object = json!({"metadata": {}});
        for (path, value) in &self.values {
            put(&mut object, path, value);
        }
        let entry = |((manager, operation), set): (&(String, &'static str), &BTreeSet<Path>)| {
            let mut fields = json!({});
            for path in set {
                let mut at = &mut fields;
                for part in path {
                    at = &mut at[part.as_str()];
                    if at.is_null() {
                        *at = if part.starts_with("k:") && !part.contains("\"uid\"") {
                            json!({".": {}})
                        } else {
                            json!({})
                        };
                    }
                }
            }
            json!({"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields})
        };
        object["metadata"]["managedFields"] = self.managers.iter().map(entry).collect();
        object
    }
}
