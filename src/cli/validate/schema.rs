//! What the API server's schema would say, with lines: members that are missing, of another type, or unknown.
//!
//! For kinds whose definition ships with this binary. Unknown members of a place that keeps them are passed over here; the review
//! itself tells about those.

use serde_json::Value;

use super::Severity;
use crate::api::yaml::kind;
use crate::cli::yaml::tree::Node;
use crate::domain::suggest::nearest;

/// One finding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Line within the document.
    pub(super) line: u64,
    /// Whether the API server refuses it.
    pub(super) severity: Severity,
    /// Path of the field.
    pub(super) path: String,
    /// What is wrong, and what to do.
    pub(super) text: String,
}

/// Members that the API server knows without a schema, and what only controllers write.
const OF_EVERY_OBJECT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];
const KEEPS: &str = "x-kubernetes-preserve-unknown-fields";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Everything that the schema of the whole object says.
pub(super) fn check(node: &Node, schema: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    Walk { found: &mut found }.value("", node, schema, node.line);
    found
}

/// The path of a member: a dot in its key is a part of the key, so that `"spec.type"` is not taken for `type` in `spec`.
pub(super) fn joined(path: &str, key: &str) -> String {
    match (path, key.contains('.')) {
        (_, true) => format!("{path}[{key}]"),
        ("", false) => key.to_owned(),
        (_, false) => format!("{path}.{key}"),
    }
}

struct Walk<'a> {
    found: &'a mut Vec<Found>,
}

impl Walk<'_> {
    fn tell(&mut self, line: u64, severity: Severity, path: &str, text: String) {
        self.found.push(Found { line, severity, path: path.to_owned(), text });
    }

    fn value(&mut self, path: &str, node: &Node, schema: &Value, line: u64) {
        let value = node.to_json();
        // The API server drops an explicit null before it looks.
        if value.is_null() {
            return;
        }
        let wanted = schema["type"].as_str().unwrap_or("");
        let fits = match wanted {
            _ if schema[INT_OR_STRING] == true => value.is_string() || value.is_i64() || value.is_u64(),
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            _ => true,
        };
        if !fits {
            let wanted = if schema[INT_OR_STRING] == true { "integer or a text" } else { wanted };
            let article =
                if ["object", "array", "integer", "integer or a text"].contains(&wanted) { "an" } else { "a" };
            let quotes = if wanted == "string" { "; put it in quotes" } else { "" };
            return self.tell(
                line,
                Severity::Error,
                path,
                format!("{article} {wanted} is expected, {} was found{quotes}", kind(&value)),
            );
        }
        if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.contains(&value)) {
            let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
            let near = value.as_str().and_then(|seen| nearest(seen, names.iter().copied()));
            let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            self.tell(
                line,
                Severity::Error,
                path,
                format!("{value} is an unsupported value; supported are {}{hint}", names.join(", ")),
            );
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            self.tell(line, Severity::Error, path, format!("{value} is less than {least}"));
        }
        self.members(path, node, schema, line);
        for (index, item) in node.items().iter().enumerate() {
            self.value(&format!("{path}[{index}]"), item, &schema["items"], item.line);
        }
    }

    fn members(&mut self, path: &str, node: &Node, schema: &Value, line: u64) {
        let join = |name: &str| joined(path, name);
        let (known, others) = (schema["properties"].as_object(), &schema["additionalProperties"]);
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let there = node.entries().iter().any(|(key, value)| key.text == name && !value.to_json().is_null());
            let elsewhere = path.is_empty() && OF_EVERY_OBJECT.contains(&name);
            if !there && !elsewhere {
                self.tell(line, Severity::Error, &join(name), "is required".to_owned());
            }
        }
        for (key, child) in node.entries() {
            let place = join(&key.text);
            if path.is_empty() && OF_EVERY_OBJECT.contains(&key.text.as_str()) {
                continue;
            }
            match known.and_then(|known| known.get(&key.text)) {
                Some(member) => self.value(&place, child, member, key.line),
                None if others.is_object() => self.value(&place, child, others, key.line),
                None if schema[KEEPS] == true || known.is_none() => {}
                None => {
                    let names = || known.into_iter().flat_map(|known| known.keys()).map(String::as_str);
                    let hint = nearest(&key.text, names()).map_or_else(
                        || format!("there are {}", names().collect::<Vec<_>>().join(", ")),
                        |near| format!("did you mean {near}?"),
                    );
                    self.tell(
                        key.line,
                        Severity::Warning,
                        &place,
                        format!("the API server knows no such field and drops it; {hint}"),
                    );
                }
            }
        }
    }
}
