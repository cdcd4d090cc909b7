//! What of a Pod's containers the requester asked for, and what other webhooks added before us.
//!
//! The API server notes in `metadata.managedFields` who set which field before it asks the webhooks, and not again between them. So the
//! noted containers and variables are those of the Pod's template, whoever was here in the meantime: the configuration hash, which all Pods of
//! a template share with the template itself, is computed from them. A template has no note; there everything counts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::pod::{PodView, text};

/// The containers that were asked for, by name, with the note about each.
#[derive(Debug)]
pub(super) struct Requested<'a>(Option<BTreeMap<&'a str, Vec<&'a Map<String, Value>>>>);

/// The key of a map list in a field set: `k:{"name":"agent"}`.
fn name_of(key: &str) -> Option<&str> {
    key.strip_prefix(r#"k:{"name":""#)?.strip_suffix(r#""}"#)
}

impl<'a> Requested<'a> {
    /// What is noted about the Pod.
    pub(super) fn of(pod: PodView<'a>) -> Self {
        let mut noted: BTreeMap<&str, Vec<&Map<String, Value>>> = BTreeMap::new();
        let fields = pod.managed_fields().iter().filter_map(|entry| entry.get("fieldsV1")?.get("f:spec"));
        for list in fields.flat_map(|spec| ["f:containers", "f:initContainers"].map(|list| spec.get(list))) {
            for (key, note) in list.and_then(Value::as_object).into_iter().flatten() {
                if let (Some(name), Some(note)) = (name_of(key), note.as_object()) {
                    noted.entry(name).or_default().push(note);
                }
            }
        }
        Self((!noted.is_empty()).then_some(noted))
    }

    /// Whether the requester asked for this container.
    pub(super) fn asks_for(&self, container: &Value) -> bool {
        self.0.as_ref().is_none_or(|noted| noted.contains_key(text(container, "name")))
    }

    /// Whether the requester asked for this container without that variable.
    pub(super) fn lacks(&self, container: &Value, variable: &str) -> bool {
        let Some(noted) = &self.0 else { return super::edit::env_entry(container, variable).is_none() };
        let Some(notes) = noted.get(text(container, "name")) else { return false };
        let sets = |note: &&Map<String, Value>| {
            note.get("f:env")
                .and_then(Value::as_object)
                .is_some_and(|env| env.keys().any(|key| name_of(key) == Some(variable)))
        };
        !notes.iter().any(sets)
    }
}
