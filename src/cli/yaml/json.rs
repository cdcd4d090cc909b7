//! A JSON document as a tree, read as JSON and not as the YAML it nearly is.
//!
//! In: text. Out: the tree, or nothing when the text is no JSON document (then YAML may make sense of it). Every part is a slice of the text
//! it came from, which gives its line and its digits.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::scalar;
use super::tree::{Key, Kind, MAX_DEPTH, Node, ParseError};

/// The members of an object, in the order of the text.
struct Members<'t>(Vec<(Cow<'t, str>, &'t RawValue)>);

/// The tree of a JSON object or array; `None` when the text is something else.
pub(super) fn document(text: &str) -> Option<Result<Node, ParseError>> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(offset, _)| offset).collect();
    Some(Reader { start: text.as_ptr() as usize, ends }.node(root, 0))
}

struct Reader {
    /// Where the text is.
    start: usize,
    /// Offsets of its line feeds.
    ends: Vec<usize>,
}

impl Reader {
    fn line(&self, part: &RawValue) -> usize {
        let offset = part.get().as_ptr() as usize - self.start;
        self.ends.partition_point(|end| *end < offset) + 1
    }

    fn node(&self, part: &RawValue, depth: usize) -> Result<Node, ParseError> {
        let (text, line) = (part.get(), self.line(part));
        let told = |error: serde_json::Error| ParseError::at(line, error.to_string());
        let kind = match text.as_bytes().first() {
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                return Err(ParseError::at(line, format!("nested deeper than {MAX_DEPTH} levels")));
            }
            Some(b'{') => self.members(serde_json::from_str(text).map_err(told)?, depth)?,
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(told)?;
                Kind::List(items.into_iter().map(|item| self.node(item, depth + 1)).collect::<Result<_, _>>()?)
            }
            _ => {
                let refused = |_| ParseError::at(line, format!("{text} is beyond what a JSON reader can hold"));
                let value: Value = serde_json::from_str(text).map_err(refused)?;
                let whole = value.as_f64().filter(|_| value.is_f64()).and_then(scalar::number);
                let value = whole.map_or(value, Value::Number);
                let spelled = (!value.is_string()).then(|| text.into());
                Kind::Scalar { value, spelled }
            }
        };
        Ok(Node { line: line as u64, kind })
    }

    fn members(&self, Members(members): Members<'_>, depth: usize) -> Result<Kind, ParseError> {
        let mut seen = HashSet::new();
        let mut entries = Vec::with_capacity(members.len());
        for (name, part) in members {
            // Where people break lines, a name stands on the line of its value.
            let line = self.line(part);
            if !seen.insert(name.clone()) {
                return Err(ParseError::at(line, twice(&name)));
            }
            let key = Key { line: line as u64, text: name.into_owned(), spelled: None };
            entries.push((key, self.node(part, depth + 1)?));
        }
        Ok(Kind::Map(entries))
    }
}

/// What is said of a key that stands twice in a mapping.
pub(super) fn twice(key: &str) -> String {
    format!("key {key:?} occurs twice; readers differ in which one they take, so remove one")
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(AnyMembers)
    }
}

struct AnyMembers;

impl<'de> Visitor<'de> for AnyMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(name) = access.next_key::<Cow<'de, str>>()? {
            members.push((name, access.next_value()?));
        }
        Ok(Members(members))
    }
}
