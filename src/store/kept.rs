//! JSON that is kept and seldom read.

use std::sync::Arc;

use serde_json::Value;

/// A JSON value that is kept as its text. In a tree every object takes a node of 640 bytes, however few members it has, so that the
/// conditions of a status would be the largest part of what is known of an object that is looked at once in a while. It is as wide as a
/// pointer: what is kept of the other kinds grows with the widest of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Kept(Arc<Box<str>>);

impl Kept {
    /// Keeps a value.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self(Arc::new(value.to_string().into_boxed_str()))
    }

    /// The value, made anew at every call.
    #[must_use]
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).expect("the text was written of a value that came from JSON")
    }

    /// Its text: members in the order of their names, without blanks.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_comes_back_as_it_was_whatever_the_order_of_its_members() {
        let value =
            json!({"b": [1, -2, 0.5, 18_446_744_073_709_551_615_u64, null, true], "a": {"\"\n\u{1}é": "\\"}, "": {}});
        let kept = Kept::of(&value);
        assert_eq!(kept.value(), value);
        let other: Value = serde_json::from_str(
            r#"{ "": {}, "a": {"\"\n\u0001é": "\\"},
            "b": [1, -2, 0.5, 18446744073709551615, null, true] }"#,
        )
        .unwrap();
        assert_eq!(kept, Kept::of(&other));
        assert_ne!(kept, Kept::of(&json!({"b": [1], "a": {}})));
        assert_eq!(format!("{:?}", Kept::of(&json!({"a": 1}))), r#"{"a":1}"#);
    }

    /// What the API server sends is as deep as a parser takes, and what is kept of it is no deeper.
    #[test]
    fn what_was_read_at_all_is_read_again() {
        let deep = format!("{}{}", "[".repeat(127), "]".repeat(127));
        let value: Value = serde_json::from_str(&deep).unwrap();
        assert_eq!(Kept::of(&value).value(), value);
    }
}
