//! A member that is built only where it is small.
//!
//! In: one member, while an object is decoded. Out: its value, or that it was there. Promise: of one that is larger than [`LARGEST_TEXT`] as JSON no
//! more is built on the way than of one that is not. A tree takes a hundred times what its text does, and a page has many of them at once: objects that
//! whoever may write them can make of nothing but small parts would else fill the memory of the process before anybody looks at their size.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::domain::bounds::LARGEST_TEXT;

/// A value, unless it is larger than [`LARGEST_TEXT`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Small(Option<Value>);

impl Small {
    /// The value; `None` of one that is larger.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.0
    }
}

impl<'de> Deserialize<'de> for Small {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut left = LARGEST_TEXT;
        Build(&mut left).deserialize(deserializer).map(Self)
    }
}

/// Builds what is decoded while there are bytes left; what it takes is never more than its text has.
struct Build<'l>(&'l mut usize);

impl Build<'_> {
    /// Whether so many bytes were left. Once they were not, none are.
    fn takes(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        *self.0 = left.unwrap_or_default();
        left.is_some()
    }
}

impl<'de> DeserializeSeed<'de> for Build<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Value>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Build<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Option<Value>, A::Error> {
        let (mut members, mut fits) = (Map::new(), self.takes(1));
        while fits {
            let Some(key) = map.next_key::<String>()? else { return Ok(Some(Value::Object(members))) };
            // Quotes, colon, and a comma or the brace.
            fits = self.takes(key.len() + 4);
            match map.next_value_seed(Build(&mut *self.0))? {
                Some(value) if fits => drop(members.insert(key, value)),
                _ => fits = false,
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Option<Value>, A::Error> {
        let (mut items, mut fits) = (Vec::new(), self.takes(1));
        while fits {
            match seq.next_element_seed(Build(&mut *self.0))? {
                None => return Ok(Some(Value::Array(items))),
                // A comma or the bracket.
                Some(Some(item)) if self.takes(1) => items.push(item),
                Some(_) => fits = false,
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_bool<E>(mut self, it: bool) -> Result<Option<Value>, E> {
        Ok(self.takes(4).then_some(Value::Bool(it)))
    }

    fn visit_i64<E>(mut self, it: i64) -> Result<Option<Value>, E> {
        Ok(self.takes(1).then(|| Value::from(it)))
    }

    fn visit_u64<E>(mut self, it: u64) -> Result<Option<Value>, E> {
        Ok(self.takes(1).then(|| Value::from(it)))
    }

    fn visit_f64<E>(mut self, it: f64) -> Result<Option<Value>, E> {
        Ok(self.takes(1).then(|| Value::from(it)))
    }

    fn visit_str<E>(mut self, it: &str) -> Result<Option<Value>, E> {
        Ok(self.takes(it.len() + 2).then(|| Value::from(it)))
    }

    fn visit_unit<E>(mut self) -> Result<Option<Value>, E> {
        Ok(self.takes(4).then_some(Value::Null))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Option<Value> {
        serde_json::from_str::<Small>(text).unwrap().into_value()
    }

    #[test]
    fn what_is_small_is_read_as_it_is() {
        let value = json!({"a": [1, -2, 0.5, 18_446_744_073_709_551_615_u64, null, true, false, "\"é\n", [], {}], "": {"b": ["c"]}});
        for value in [value, json!(null), json!("x"), json!([]), json!({}), json!(7)] {
            assert_eq!(read(&value.to_string()), Some(value));
        }
        assert_eq!(read(r#"{"a": 1, "a": 2}"#), Some(json!({"a": 2})));
        assert!(serde_json::from_str::<Small>("{\"a\": ").is_err(), "text that is no JSON");
    }

    /// To the byte, whatever it is made of, where the bound counts every byte of it; never before.
    #[test]
    fn what_is_larger_is_passed_over_and_what_follows_is_read() {
        let list = |items: usize| format!("[{}]", vec!["{}"; items].join(","));
        // Of an empty list or object one byte of its text is not counted.
        assert!(read(&list(LARGEST_TEXT / 3)).is_some());
        assert_eq!(read(&list(LARGEST_TEXT)), None);
        let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(read(&text(LARGEST_TEXT)).is_some());
        assert_eq!(read(&text(LARGEST_TEXT + 1)), None);
        let members = |bytes: usize| {
            format!("{{\"a\":{},\"b\":{}}}", text(LARGEST_TEXT / 2), text(bytes - LARGEST_TEXT / 2 - 11))
        };
        assert_eq!((members(LARGEST_TEXT).len(), members(LARGEST_TEXT + 1).len()), (LARGEST_TEXT, LARGEST_TEXT + 1));
        assert!(read(&members(LARGEST_TEXT)).is_some());
        assert_eq!(read(&members(LARGEST_TEXT + 1)), None);
        let nested = format!("[{{\"a\":[{}]}},1]", text(LARGEST_TEXT));
        assert_eq!(read(&nested), None);
        let both: (Small, Small) = serde_json::from_str(&format!("[{},[1]]", list(LARGEST_TEXT))).unwrap();
        assert_eq!((both.0.into_value(), both.1.into_value()), (None, Some(json!([1]))));
    }
}
