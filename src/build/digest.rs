//! Hashes of texts and of canonical JSON, in hexadecimal.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// SHA-256 of `bytes`, 64 lower-case hexadecimal digits.
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    Sha256::digest(bytes).iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// SHA-256 of a JSON value; the order in which members were written does not count.
#[must_use]
pub fn of_json(value: &Value) -> String {
    of_bytes(sorted(value).to_string().as_bytes())
}

/// The same value with the members of every object in the order of their names.
#[must_use]
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            names.sort();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&members[name]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{of_bytes, of_json};

    #[test]
    fn a_known_vector_and_no_order() {
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(of_json(&json!({"a": 1, "b": [2]})), of_json(&json!({"b": [2], "a": 1})));
        assert_ne!(of_json(&json!([1, 2])), of_json(&json!([2, 1])), "the order of a list counts");
    }
}
