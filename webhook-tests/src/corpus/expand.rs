//! Two directives that keep large inputs out of the tree.
//!
//! `{$repeat: {before: "blob: ", text: "x", times: 70000}}` becomes one string; an element `{$times: 20, item: …}` of a list becomes
//! twenty elements in which every `$i` is the element's number from 0.

use anyhow::bail;
use serde_json::{Map, Value};

/// The value with its directives carried out.
///
/// # Errors
/// A directive whose members have another shape.
pub fn expand(value: Value) -> anyhow::Result<Value> {
    Ok(match value {
        Value::Object(map) => match map.get("$repeat") {
            Some(directive) => Value::String(repeated(directive)?),
            None => {
                let mut out = Map::new();
                for (key, member) in map {
                    out.insert(key, expand(member)?);
                }
                Value::Object(out)
            }
        },
        Value::Array(items) => {
            let mut out = Vec::new();
            for item in items {
                let Some(times) = item.get("$times") else {
                    out.push(expand(item)?);
                    continue;
                };
                let (Some(times), Some(pattern)) = (times.as_u64(), item.get("item")) else {
                    bail!("$times wants a number, and `item` beside it");
                };
                for number in 0..times {
                    out.push(expand(numbered(pattern, number))?);
                }
            }
            Value::Array(out)
        }
        other => other,
    })
}

fn repeated(directive: &Value) -> anyhow::Result<String> {
    let before = directive.get("before").and_then(Value::as_str).unwrap_or_default();
    let text = directive.get("text").and_then(Value::as_str);
    let times = directive.get("times").and_then(Value::as_u64).and_then(|times| usize::try_from(times).ok());
    match (text, times) {
        (Some(text), Some(times)) => Ok(format!("{before}{}", text.repeat(times))),
        _ => bail!("$repeat wants {{text, times}}"),
    }
}

fn numbered(pattern: &Value, number: u64) -> Value {
    match pattern {
        Value::String(text) => Value::String(text.replace("$i", &number.to_string())),
        Value::Array(items) => Value::Array(items.iter().map(|item| numbered(item, number)).collect()),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, member)| (key.clone(), numbered(member, number))).collect())
        }
        other => other.clone(),
    }
}
