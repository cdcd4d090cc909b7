//! Specs of NetworkPolicies in one spelling: what the API server stores of one that is written, and what is written of one that is stored.
//!
//! Measured: `egress: []` is stored as absent; a port without a protocol gets TCP. The order of rules, peers and ports means nothing.

use serde_json::{Map, Value};

/// The same, without what is empty, with what is filled in, and with every list in one order.
#[must_use]
pub fn normal(spec: &Value) -> Value {
    let Some(spec) = spec.as_object() else { return Value::Object(Map::new()) };
    let mut out = Map::new();
    for (key, value) in spec {
        let value = match key.as_str() {
            "ingress" | "egress" => sorted(value, rule),
            "podSelector" => selector(value),
            "policyTypes" => sorted(value, Value::clone),
            _ => value.clone(),
        };
        // A selector that is empty selects all: it stays.
        if key == "podSelector" || !is_empty(&value) {
            out.insert(key.clone(), value);
        }
    }
    Value::Object(out)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn sorted(list: &Value, one: fn(&Value) -> Value) -> Value {
    let mut items: Vec<Value> = list.as_array().into_iter().flatten().map(one).collect();
    items.sort_by_cached_key(Value::to_string);
    items.dedup();
    Value::Array(items)
}

/// A rule that is empty opens everything, so it stays; a list of it that is empty means the same as none.
fn rule(rule: &Value) -> Value {
    let members = rule.as_object().into_iter().flatten().map(|(key, value)| {
        let one = if key == "ports" { port } else { peer };
        (key.clone(), sorted(value, one))
    });
    Value::Object(members.filter(|(_, list)| !is_empty(list)).collect())
}

fn port(port: &Value) -> Value {
    let mut port = port.as_object().cloned().unwrap_or_default();
    port.entry("protocol").or_insert_with(|| "TCP".into());
    Value::Object(port)
}

/// Selectors of a peer are there or not: an empty one selects all.
fn peer(peer: &Value) -> Value {
    let members = peer.as_object().into_iter().flatten().map(|(key, value)| {
        let value = if key == "ipBlock" { without_empty(value) } else { selector(value) };
        (key.clone(), value)
    });
    Value::Object(members.collect())
}

fn selector(selector: &Value) -> Value {
    let mut members = without_empty(selector);
    if let Some(expressions) = members.get_mut("matchExpressions") {
        *expressions = sorted(expressions, Value::clone);
    }
    members
}

fn without_empty(value: &Value) -> Value {
    let members = value.as_object().into_iter().flatten().filter(|(_, value)| !is_empty(value));
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}
