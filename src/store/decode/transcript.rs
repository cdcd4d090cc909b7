//! A set of fields (FieldsV1) as JSON text: one allocation where a tree would be hundreds.
//!
//! In: the set as it is decoded, whatever decoder that is. Out: the same set as JSON. Promise: of anything that is no
//! set, only that it was there is kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes of most sets; it is dropped as soon as it was read.
const USUAL: usize = 1024;

/// A set of fields, as JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Transcript(pub(super) String);

impl<'de> Deserialize<'de> for Transcript {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::with_capacity(USUAL);
        Write(&mut text).deserialize(deserializer)?;
        Ok(Self(text))
    }
}

/// Writes what is decoded behind the text.
struct Write<'t>(&'t mut String);

impl<'de> DeserializeSeed<'de> for Write<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Write<'_> {
    fn empty(self) {
        self.0.push_str("{}");
    }
}

impl<'de> Visitor<'de> for Write<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.push('{');
        let mut first = true;
        while map.next_key_seed(Name { text: &mut *self.0, first })?.is_some() {
            first = false;
            map.next_value_seed(Write(&mut *self.0))?;
        }
        self.0.push('}');
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        self.empty();
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.empty();
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.empty();
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.empty();
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.empty();
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.empty();
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.empty();
        Ok(())
    }
}

/// Writes the name of a member and the colon behind it.
struct Name<'t> {
    text: &'t mut String,
    first: bool,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<(), E> {
        if !self.first {
            self.text.push(',');
        }
        if name.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            self.text.push_str(&serde_json::Value::from(name).to_string());
        } else {
            self.text.push('"');
            self.text.push_str(name);
            self.text.push('"');
        }
        self.text.push(':');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Transcript;

    #[test]
    fn a_set_is_kept_as_it_is_by_every_decoder() {
        let set = json!({"f:spec": {".": {}, "f:containers": {"k:{\"name\":\"a\"}": {"f:image": {}}}}, "f:x": {}});
        let by_value: Transcript = serde_json::from_value(set.clone()).unwrap();
        let by_text: Transcript = serde_json::from_str(&set.to_string()).unwrap();
        for found in [by_value, by_text] {
            assert_eq!(serde_json::from_str::<Value>(&found.0).unwrap(), set);
        }
    }

    #[test]
    fn what_is_no_set_leaves_an_empty_one() {
        let odd = json!({"a": 1, "b": -1, "c": 1.5, "d": "x", "e": [1, {}], "f": null, "g": true});
        let found: Transcript = serde_json::from_value(odd).unwrap();
        let found: Value = serde_json::from_str(&found.0).unwrap();
        assert!(found.as_object().unwrap().values().all(|member| *member == json!({})), "{found}");
        assert_eq!(found.as_object().unwrap().len(), 7);
    }
}
