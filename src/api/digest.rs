//! Hashes of texts and of canonical JSON, in hexadecimal.

use serde::ser::{Serialize, Serializer};
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
    of_serialized(&Sorted(value))
}

/// SHA-256 of the compact JSON of `value`, whose structs have their fields in the order of their names.
#[must_use]
pub fn of_serialized(value: &impl Serialize) -> String {
    let text =
        serde_json::to_vec(value).expect("JSON values, and structs of texts and of them, can be written as JSON");
    of_bytes(&text)
}

/// The same value with the members of every object in the order of their names.
#[derive(Debug, Clone, Copy)]
pub struct Sorted<'v>(pub &'v Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                serializer.collect_map(members.into_iter().map(|(name, value)| (name, Sorted(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
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
