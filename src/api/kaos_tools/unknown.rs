//! Members that nobody knows, where the API server keeps them: in `podSpec`, `resources` and environments.
//!
//! In: an object, and the definition of its kind. Out: the path of each, with the known name that is nearest. What the API server takes out
//! it also warns of, so that is not repeated here.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::{agent, mcp_server, model_api};
use crate::domain::suggest::nearest;

const KEEPS: &str = "x-kubernetes-preserve-unknown-fields";
/// Most that are named.
const MOST: usize = 20;

/// A member that nobody knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Where it stands.
    pub path: String,
    /// The known name that is nearest.
    pub meant: Option<String>,
}

/// The unknown members of the spec of an object of that kind.
#[must_use]
pub fn members(kind: &str, object: &Value) -> Vec<Unknown> {
    static SCHEMAS: LazyLock<[(&str, Value); 3]> = LazyLock::new(|| {
        [("Agent", agent::crd()), ("ModelAPI", model_api::crd()), ("MCPServer", mcp_server::crd())]
            .map(|(kind, crd)| (kind, schema(&crd)))
    });
    let Some((_, schema)) = SCHEMAS.iter().find(|(name, _)| *name == kind) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(spec) = object.get("spec") {
        walk(spec, schema, &mut "spec".to_owned(), &mut found);
    }
    found
}

fn schema(crd: &CustomResourceDefinition) -> Value {
    let version = crd.spec.versions.first().and_then(|version| version.schema.as_ref());
    let whole = version.and_then(|schema| schema.open_api_v3_schema.as_ref());
    let whole = serde_json::to_value(whole).unwrap_or_default();
    whole.pointer("/properties/spec").cloned().unwrap_or_default()
}

fn walk(value: &Value, schema: &Value, path: &mut String, found: &mut Vec<Unknown>) {
    let length = path.len();
    match value {
        Value::Object(members) => {
            let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
            for (key, member) in members.iter().filter(|(_, member)| !member.is_null()) {
                path.push('.');
                path.push_str(key);
                match known.get(key) {
                    Some(schema) => walk(member, schema, path, found),
                    // A directive of the merge.
                    None if key.starts_with('$') => {}
                    None if schema.get(KEEPS).is_some() && found.len() < MOST => {
                        let meant = nearest(key, known.keys().map(String::as_str)).map(str::to_owned);
                        found.push(Unknown { path: path.clone(), meant });
                    }
                    None => {}
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
