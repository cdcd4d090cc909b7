//! Fields of the Pod template that nobody knows: kept, since a newer API server may know them, and said.

use serde_json::Value;

use crate::api::agent_kagenti_dev::agent::pod_template_schema;
use crate::build::fault::{Findings, Note};
use crate::domain::reason::Reason;
use crate::domain::suggest::nearest;

/// Most unknown fields that are named.
const LIMIT: usize = 10;

pub(super) fn check(object: &Value, findings: &mut Findings) {
    let Some(template) = object.pointer("/spec/podTemplateSpec") else { return };
    let mut found = Vec::new();
    walk(template, pod_template_schema(), &mut "spec.podTemplateSpec".to_owned(), &mut found);
    for (path, hint) in found {
        let text = match hint {
            Some(meant) => format!("no field of that name is known; did you mean {meant}?"),
            None => "no field of that name is known; it is passed on as it is".to_owned(),
        };
        findings.note(Note::new(Reason::UnknownField, path, text));
    }
}

fn walk(value: &Value, schema: &Value, path: &mut String, found: &mut Vec<(String, Option<String>)>) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            let known = schema.get("properties").and_then(Value::as_object);
            let values = schema.get("additionalProperties");
            for (key, member) in members {
                path.push('.');
                path.push_str(key);
                match (known.and_then(|known| known.get(key)).or(values), known) {
                    (Some(schema), _) => walk(member, schema, path, found),
                    (None, Some(known)) if found.len() < LIMIT => {
                        let meant = nearest(key, known.keys().map(String::as_str)).map(str::to_owned);
                        found.push((path.clone(), meant));
                    }
                    (None, _) => {}
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                walk(item, schema, path, found);
                path.truncate(length);
            }
        }
        _ => {}
    }
}
