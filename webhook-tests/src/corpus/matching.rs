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

/// Members that may be there although nobody asked for them: key and value.
pub type Tolerance = fn(&str, &Value) -> bool;

/// Nothing may be there that nobody asked for.
#[must_use]
pub fn strict(_: &str, _: &Value) -> bool {
    false
}

/// Differences between a path's target and what is wanted, as sentences.
pub fn compare_found(wanted: &Value, found: &Found, at: &str, tolerated: Tolerance) -> Vec<String> {
    match (wanted.as_str(), found) {
        (Some("$absent"), Found::Absent) => Vec::new(),
        (Some("$absent"), Found::All(items)) if items.is_empty() => Vec::new(),
        (_, Found::One(value)) => differences(wanted, value, at, tolerated),
        (_, Found::All(items)) => differences(wanted, &Value::Array(items.clone()), at, tolerated),
        (_, Found::Absent) if wanted.get("$lacks").is_some() => Vec::new(),
        (_, Found::Absent) => vec![format!("{at}: nothing there, expected {wanted}")],
    }
}

/// Differences between two values, as sentences.
#[must_use]
pub fn differences(wanted: &Value, actual: &Value, at: &str, tolerated: Tolerance) -> Vec<String> {
    Comparison { tolerated }.of(wanted, actual, at)
}

/// How strictly two values are compared.
#[derive(Clone, Copy)]
struct Comparison {
    tolerated: Tolerance,
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

fn label(value: &Value, index: usize) -> String {
    value.get("name").and_then(Value::as_str).map_or_else(|| index.to_string(), |name| format!("{index} {name}"))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Comparison {
    fn of(self, wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        if is_matcher(wanted) {
            return self.special(wanted, actual, at);
        }
        match (wanted, actual) {
            (Value::Object(_), Value::Object(members)) => {
                let mut out = self.subset(wanted, actual, at);
                for (key, value) in members.iter().filter(|(key, _)| wanted.get(key.as_str()).is_none()) {
                    if !(self.tolerated)(key, value) {
                        out.push(format!("{at}.{key}: not expected, is {value}"));
                    }
                }
                out
            }
            (Value::Array(wanted), Value::Array(actual)) => self.list(wanted, actual, at),
            _ if wanted == actual => Vec::new(),
            _ => vec![format!("{at}: is {actual}, expected {wanted}")],
        }
    }

    fn list(self, wanted: &[Value], actual: &[Value], at: &str) -> Vec<String> {
        let mut out = Vec::new();
        for (index, value) in wanted.iter().enumerate() {
            let label = label(value, index);
            match actual.get(index) {
                Some(found) => out.extend(self.of(value, found, &format!("{at}[{label}]"))),
                None => out.push(format!("{at}[{label}]: missing, expected {value}")),
            }
        }
        for (index, value) in actual.iter().enumerate().skip(wanted.len()) {
            out.push(format!("{at}[{}]: not expected, is {value}", label(value, index)));
        }
        out
    }

    fn matches(self, wanted: &Value, actual: &Value) -> bool {
        self.of(wanted, actual, "").is_empty()
    }

    fn special(self, wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        let Some((operator, operand)) = wanted.as_object().and_then(|map| map.iter().next()) else {
            return match wanted.as_str() {
                Some("$absent") => vec![format!("{at}: is {actual}, expected nothing")],
                _ => Vec::new(),
            };
        };
        match operator.as_str() {
            "$any" if items(operand).iter().any(|candidate| self.matches(candidate, actual)) => Vec::new(),
            "$any" => vec![format!("{at}: is {actual}, expected one of {operand}")],
            "$set" => self.set(operand, actual, at),
            "$includes" => self.includes(operand, actual, at),
            "$lacks" => self.lacks(operand, actual, at),
            "$subset" => self.subset(operand, actual, at),
            "$yaml" => self.parsed(operand, yaml_of(actual), at),
            "$json" => self.parsed(operand, json_of(actual), at),
            "$text" => text(operand, actual, at),
            "$hex" => hexadecimal(operand, actual, at),
            unknown => vec![format!("{at}: the expectation uses {unknown}, which is no matcher")],
        }
    }

    fn set(self, wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        let mut out = Vec::new();
        let mut rest: Vec<&Value> = items(actual).iter().collect();
        for value in items(wanted) {
            match rest.iter().position(|found| self.matches(value, found)) {
                Some(index) => {
                    rest.remove(index);
                }
                None => out.push(format!("{at}: no element {value} in {actual}")),
            }
        }
        out.extend(rest.into_iter().map(|value| format!("{at}: not expected, is {value}")));
        out
    }

    fn includes(self, wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        let missing =
            items(wanted).iter().filter(|value| !items(actual).iter().any(|found| self.matches(value, found)));
        missing.map(|value| format!("{at}: no element {value} in {actual}")).collect()
    }

    fn lacks(self, unwanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        let there = items(unwanted).iter().filter(|value| items(actual).iter().any(|found| self.matches(value, found)));
        there.map(|value| format!("{at}: {value} is in {actual}")).collect()
    }

    fn subset(self, wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
        let mut out = Vec::new();
        for (key, value) in wanted.as_object().into_iter().flatten() {
            match actual.get(key) {
                Some(found) => out.extend(self.of(value, found, &format!("{at}.{key}"))),
                None if value == "$absent" => {}
                None => out.push(format!("{at}.{key}: missing, expected {value}")),
            }
        }
        out
    }

    fn parsed(self, wanted: &Value, actual: Result<Value, String>, at: &str) -> Vec<String> {
        match actual {
            Ok(value) => self.of(wanted, &value, at),
            Err(error) => vec![format!("{at}: cannot be parsed: {error}")],
        }
    }
}

fn yaml_of(actual: &Value) -> Result<Value, String> {
    serde_saphyr::from_str(actual.as_str().ok_or("no text")?).map_err(|error| error.to_string())
}

fn json_of(actual: &Value) -> Result<Value, String> {
    serde_json::from_str(actual.as_str().ok_or("no text")?).map_err(|error| error.to_string())
}

fn text(wanted: &Value, actual: &Value, at: &str) -> Vec<String> {
    let text = actual.as_str().unwrap_or_default();
    let parts =
        |list: &str| items(&wanted[list]).iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>();
    let missing = parts("contains").into_iter().filter(|part| !text.contains(part));
    let there = parts("lacks").into_iter().filter(|part| text.contains(part));
    let missing = missing.map(|part| format!("{at}: {part:?} is not in {actual}"));
    missing.chain(there.map(|part| format!("{at}: {part:?} is in {actual}"))).collect()
}

fn hexadecimal(length: &Value, actual: &Value, at: &str) -> Vec<String> {
    let digits = actual.as_str().unwrap_or_default();
    let hexadecimal = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if hexadecimal && Some(digits.len()) == length.as_u64().and_then(|length| usize::try_from(length).ok()) {
        return Vec::new();
    }
    vec![format!("{at}: is {actual}, expected {length} hexadecimal digits")]
}

#[cfg(test)]
mod tests {
    use super::{differences, strict};
    use serde_json::{Value, json};

    fn count(wanted: &Value, actual: &Value) -> usize {
        differences(wanted, actual, "x", strict).len()
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
            assert_eq!(count(&wanted, &good), 0, "{wanted} {good}");
            assert_eq!(count(&wanted, &bad) == 0, bad_holds, "{wanted} {bad}");
        }
    }
}
