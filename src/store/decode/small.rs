//! A member that is built only where it is small.
//!
//! In: one member, while an object is decoded. Out: its value, or that it was there; of [`SmallMembers`] those of its members that are small. Promise:
//! of one that is larger as JSON than it may be no more is built on the way than of one that is not. A tree takes a hundred times what its text does:
//! objects that whoever may write them can make of nothing but small parts would else fill the memory of the process before anybody looks at their size.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::lenient::Members;
use crate::domain::bounds::{LARGEST_KAOS, LARGEST_TEXT};

/// A value, unless it is larger than so many bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Small<const MOST: usize = { LARGEST_TEXT }>(Option<Value>);

impl<const MOST: usize> Small<MOST> {
    /// The value; `None` of one that is larger.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.0.as_ref()
    }

    /// The same, taken out.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.0
    }
}

impl<'de, const MOST: usize> Deserialize<'de> for Small<MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut left = MOST;
        Build(&mut left).deserialize(deserializer).map(Self)
    }
}

/// Bytes of one member of [`SmallMembers`], as JSON.
const MEMBER: usize = LARGEST_KAOS;
/// Bytes of all of them.
const MEMBERS: usize = 1024 * 1024;

/// The members of an object, but for those that are larger than any may be, or than what those before them leave of the bytes of all; none of what is
/// no object. Of the others nobody knows, and so nobody takes them away.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SmallMembers(Map<String, Value>);

impl SmallMembers {
    /// The members.
    #[must_use]
    pub fn into_members(self) -> Map<String, Value> {
        self.0
    }
}

impl<'de> Deserialize<'de> for SmallMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Members::<Few>::deserialize(deserializer).map(|members| Self(members.0.0))
    }
}

/// The members of what is known to be an object.
#[derive(Debug, Clone, Default)]
struct Few(Map<String, Value>);

impl<'de> Deserialize<'de> for Few {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FewVisitor)
    }
}

struct FewVisitor;

impl<'de> Visitor<'de> for FewVisitor {
    type Value = Few;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Few, A::Error> {
        let (mut members, mut room) = (Map::new(), MEMBERS);
        while let Some(key) = map.next_key::<String>()? {
            // Quotes, colon, and a comma or the brace.
            let others = room.saturating_sub(key.len() + 4);
            let may = others.min(MEMBER);
            let mut left = may;
            if let Some(value) = map.next_value_seed(Build(&mut left))? {
                room = others - (may - left);
                members.insert(key, value);
            }
        }
        Ok(Few(members))
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

    /// Whoever may write one member, such as the card of an agent, takes away none of the others by it.
    #[test]
    fn members_that_are_large_are_passed_over_and_the_others_are_read() {
        let read = |text: &str| serde_json::from_str::<SmallMembers>(text).unwrap().into_members();
        let small = json!({"conditions": [{"type": "Ready", "n": [1, null, "x"]}], "phase": "Ready", "empty": {}});
        assert_eq!(Value::Object(read(&small.to_string())), small);
        for none in ["null", "[1]", "\"x\"", "7", "true", "{}"] {
            assert!(read(none).is_empty(), "{none}");
        }
        // Of small mappings, which take a hundred times their text.
        let wide = format!("[{}]", vec!["{\"b\":1}"; MEMBER / 7].join(","));
        let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        let among = |large: &str| format!("{{\"card\":{large},\"conditions\":[1],\"phase\":\"Ready\"}}");
        let others = json!({"conditions": [1], "phase": "Ready"});
        assert_eq!(Value::Object(read(&among(&wide))), others);
        assert_eq!(Value::Object(read(&among(&long(MEMBER + 1)))), others);
        assert_eq!(read(&among(&long(MEMBER))).len(), 3);
        let many: Vec<_> = (0..8).map(|at| format!("\"m{at}\":{}", long(MEMBER))).collect();
        let many = read(&format!("{{{},\"z\":1}}", many.join(",")));
        assert_eq!(many.keys().map(String::as_str).collect::<Vec<_>>(), ["m0", "m1", "z"], "of all together");
        assert!(serde_json::from_str::<SmallMembers>("{\"a\": ").is_err(), "text that is no JSON");
    }
}
