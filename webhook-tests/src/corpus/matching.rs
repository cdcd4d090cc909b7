//! Compares what is with what should be; a map with one `$` key asks for less than equality.
//!
//! | matcher | holds when |
//! | --- | --- |
//! | `$present` (string) | there is something |
//! | `$absent` (string) | there is nothing |
//! | `{$any: [a, b]}` | one of them matches |
//! | `{$set: [a, b]}` | a list with these elements, in any order, and no other |
//! | `{$includes: [a]}` | a list in which each of these matches some element |
//! | `{$lacks: [a]}` | a list (or nothing) in which none of these matches an element |
//! | `{$subset: {k: v}}` | a map with at least these members |
//! | `{$yaml: v}`, `{$json: v}` | a string that parses to v |
//! | `{$text: {contains: […], lacks: […]}}` | a string with and without these parts |
//! | `{$hex: 64}` | that many lower-case hexadecimal digits |

use serde_json::Value;

use super::path::Found;

/// Differences between a path's target and what is wanted, as sentences.
pub fn compare_found(wanted: &Value, found: &Found, at: &str, out: &mut Vec<String>) {
    match (wanted.as_str(), found) {
        (Some("$absent"), Found::Absent) => {}
        (Some("$absent"), Found::All(items)) if items.is_empty() => {}
        (_, Found::One(value)) => compare(wanted, value, at, out),
        (_, Found::All(items)) => compare(wanted, &Value::Array(items.clone()), at, out),
        (_, Found::Absent) if wanted.get("$lacks").is_some() => {}
        (_, Found::Absent) => out.push(format!("{at}: nothing there, expected {wanted}")),
    }
}

/// Differences between two values, as sentences.
pub fn compare(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    if let Some(matched) = special(wanted, actual, at) {
        out.extend(matched);
        return;
    }
    match (wanted, actual) {
        (Value::Object(wanted), Value::Object(actual)) => {
            for (key, value) in wanted {
                match actual.get(key) {
                    Some(found) => compare(value, found, &format!("{at}.{key}"), out),
                    None if value == "$absent" => {}
                    None => out.push(format!("{at}.{key}: missing, expected {value}")),
                }
            }
            for (key, value) in actual.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
                out.push(format!("{at}.{key}: not expected, is {value}"));
            }
        }
        (Value::Array(wanted), Value::Array(actual)) => {
            for (index, value) in wanted.iter().enumerate() {
                let label = label(value, index);
                match actual.get(index) {
                    Some(found) => compare(value, found, &format!("{at}[{label}]"), out),
                    None => out.push(format!("{at}[{label}]: missing, expected {value}")),
                }
            }
            for (index, value) in actual.iter().enumerate().skip(wanted.len()) {
                out.push(format!("{at}[{}]: not expected, is {value}", label(value, index)));
            }
        }
        _ if wanted == actual => {}
        _ => out.push(format!("{at}: is {actual}, expected {wanted}")),
    }
}

/// True when the value asks for less than equality; refreshing a golden file keeps it where it holds.
#[must_use]
pub fn is_matcher(value: &Value) -> bool {
    match value {
        Value::String(text) => text == "$present" || text == "$absent",
        Value::Object(map) => map.len() == 1 && map.keys().all(|key| key.starts_with('$')),
        _ => false,
    }
}

fn matches(wanted: &Value, actual: &Value) -> bool {
    let mut out = Vec::new();
    compare(wanted, actual, "", &mut out);
    out.is_empty()
}

fn label(value: &Value, index: usize) -> String {
    value.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), |name| format!("{index} {name}"))
}

fn special(wanted: &Value, actual: &Value, at: &str) -> Option<Vec<String>> {
    if !is_matcher(wanted) {
        return None;
    }
    let mut out = Vec::new();
    if let Value::String(text) = wanted {
        if text == "$absent" {
            out.push(format!("{at}: is {actual}, expected nothing"));
        }
        return Some(out);
    }
    let (operator, operand) = wanted.as_object()?.iter().next()?;
    match operator.as_str() {
        "$any" => any(operand, actual, at, &mut out),
        "$set" => set(operand, actual, at, &mut out),
        "$includes" => includes(operand, actual, at, &mut out),
        "$lacks" => lacks(operand, actual, at, &mut out),
        "$subset" => subset(operand, actual, at, &mut out),
        "$yaml" => {
            parsed(operand, actual, at, &mut out, |text| serde_saphyr::from_str(text).map_err(|e| e.to_string()))
        }
        "$json" => parsed(operand, actual, at, &mut out, |text| serde_json::from_str(text).map_err(|e| e.to_string())),
        "$text" => text(operand, actual, at, &mut out),
        "$hex" => {
            let digits = actual.as_str().unwrap_or_default();
            let hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if !hexadecimal || Some(digits.len()) != operand.as_u64().and_then(|length| usize::try_from(length).ok()) {
                out.push(format!("{at}: is {actual}, expected {operand} hexadecimal digits"));
            }
        }
        unknown => out.push(format!("{at}: the expectation uses {unknown}, which is no matcher")),
    }
    Some(out)
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn any(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    if !items(wanted).iter().any(|candidate| matches(candidate, actual)) {
        out.push(format!("{at}: is {actual}, expected one of {wanted}"));
    }
}

fn set(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    let mut rest: Vec<&Value> = items(actual).iter().collect();
    for value in items(wanted) {
        match rest.iter().position(|found| matches(value, found)) {
            Some(index) => {
                rest.remove(index);
            }
            None => out.push(format!("{at}: no element {value} in {actual}")),
        }
    }
    out.extend(rest.into_iter().map(|value| format!("{at}: not expected, is {value}")));
}

fn includes(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    for value in items(wanted) {
        if !items(actual).iter().any(|found| matches(value, found)) {
            out.push(format!("{at}: no element {value} in {actual}"));
        }
    }
}

fn lacks(unwanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    for value in items(unwanted) {
        if items(actual).iter().any(|found| matches(value, found)) {
            out.push(format!("{at}: {value} is in {actual}"));
        }
    }
}

fn subset(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    for (key, value) in wanted.as_object().into_iter().flatten() {
        match actual.get(key) {
            Some(found) => compare(value, found, &format!("{at}.{key}"), out),
            None if value == "$absent" => {}
            None => out.push(format!("{at}.{key}: missing, expected {value}")),
        }
    }
}

fn parsed(
    wanted: &Value,
    actual: &Value,
    at: &str,
    out: &mut Vec<String>,
    parse: impl Fn(&str) -> Result<Value, String>,
) {
    match actual.as_str().map(parse) {
        Some(Ok(value)) => compare(wanted, &value, at, out),
        Some(Err(error)) => out.push(format!("{at}: cannot be parsed: {error}")),
        None => out.push(format!("{at}: is {actual}, expected text")),
    }
}

fn text(wanted: &Value, actual: &Value, at: &str, out: &mut Vec<String>) {
    let text = actual.as_str().unwrap_or_default();
    for part in items(&wanted["contains"]).iter().filter_map(Value::as_str) {
        if !text.contains(part) {
            out.push(format!("{at}: {part:?} is not in {actual}"));
        }
    }
    for part in items(&wanted["lacks"]).iter().filter_map(Value::as_str) {
        if text.contains(part) {
            out.push(format!("{at}: {part:?} is in {actual}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use serde_json::{Value, json};

    fn differences(wanted: &Value, actual: &Value) -> usize {
        let mut out = Vec::new();
        compare(wanted, actual, "x", &mut out);
        out.len()
    }

    #[test]
    fn every_matcher_can_hold_and_can_fail() {
        let rows = [
            (json!("$present"), json!(1), Value::Null, true),
            (json!({"$any": [1, 2]}), json!(2), json!(3), false),
            (json!({"$set": [1, 2]}), json!([2, 1]), json!([2, 1, 1]), false),
            (json!({"$includes": [1]}), json!([2, 1]), json!([2]), false),
            (json!({"$lacks": [1]}), json!([2]), json!([1]), false),
            (json!({"$subset": {"a": 1}}), json!({"a": 1, "b": 2}), json!({"b": 2}), false),
            (json!({"$yaml": {"a": 1}}), json!("a: 1"), json!("a: 2"), false),
            (json!({"$json": {"a": 1}}), json!("{\"a\":1}"), json!("{"), false),
            (json!({"$text": {"contains": ["a"], "lacks": ["b"]}}), json!("a"), json!("ab"), false),
            (json!({"$hex": 2}), json!("0f"), json!("0F"), false),
            (json!({"a": "$absent"}), json!({}), json!({"a": 1}), false),
            (json!([1, {"name": "n"}]), json!([1, {"name": "n"}]), json!([1]), false),
        ];
        for (wanted, good, bad, bad_holds) in rows {
            assert_eq!(differences(&wanted, &good), 0, "{wanted} {good}");
            assert_eq!(differences(&wanted, &bad) == 0, bad_holds, "{wanted} {bad}");
        }
    }
}
