//! The Secrets and ConfigMaps that an object of KAOS refers to; pure.
//!
//! In: the spec of an object. Out: which objects its Pods read, which of them they cannot start without, and which are too many to be followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::kaos_references::question::VersionOf;
use crate::store::Kind;

/// Most objects that are asked for of one that refers to them, in the order of kinds and names.
const MOST: usize = 64;

/// What the environment of a spec refers to.
#[derive(Debug, Default)]
pub(in crate::controllers) struct References {
    /// The first [`MOST`], each once.
    pub(in crate::controllers) asked: BTreeSet<VersionOf>,
    /// Those that are not asked for, because there are more.
    pub(in crate::controllers) left: BTreeSet<VersionOf>,
    /// Those without which no Pod starts.
    pub(in crate::controllers) required: BTreeSet<VersionOf>,
}

/// The objects that the environment of a spec refers to.
pub(in crate::controllers) fn references(spec: &Value, namespace: &str) -> References {
    let mut found = References::default();
    let namespace: Arc<str> = namespace.into();
    collect(spec, &mut |kind, name, optional| {
        let question = VersionOf { kind, namespace: namespace.clone(), name: name.into() };
        if !optional {
            found.required.insert(question.clone());
        }
        found.asked.insert(question);
    });
    if let Some(first) = found.asked.iter().nth(MOST).cloned() {
        found.left = found.asked.split_off(&first);
    }
    found
}

fn collect(value: &Value, found: &mut impl FnMut(Kind, &str, bool)) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let kind = match key.as_str() {
                    "secretKeyRef" | "fromSecretKeyRef" | "secretRef" => Some(Kind::Secret),
                    "configMapKeyRef" | "configMapRef" => Some(Kind::ConfigMap),
                    _ => None,
                };
                match (kind, member.get("name").and_then(Value::as_str)) {
                    (Some(kind), Some(name)) if !name.is_empty() => {
                        found(kind, name, member.get("optional").and_then(Value::as_bool) == Some(true));
                    }
                    _ => collect(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
