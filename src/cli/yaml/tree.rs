//! One YAML (or JSON) document as a tree that remembers lines and the order of keys.
//!
//! In: the text of one document. Out: a [`Node`], or what is wrong with it and where. `serde_json`'s own map sorts its keys;
//! this tree gives [`super::emit`] the order in which a person wrote them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::Spanned;

/// A value and the line it begins on (1-based, within the document).
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Line of the value.
    pub line: u64,
    /// The value.
    pub kind: Kind,
}

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// Line of the key.
    pub line: u64,
    /// The key.
    pub text: String,
}

/// The kinds of values that JSON has.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A scalar, as JSON.
    Scalar(Value),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the text.
    Map(Vec<(Key, Node)>),
}

/// Why a document is not one.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct ParseError {
    /// Line within the document, 0 when the parser does not say.
    pub line: u64,
    /// What is wrong.
    pub text: String,
}

/// Reads one document as kubectl reads it (`0644` is octal, `yes` is true, merge keys are merged); `None` when there is nothing but comments.
///
/// # Errors
/// When the text is not YAML, repeats a key, or has more than one document.
pub fn parse(text: &str) -> Result<Option<Node>, ParseError> {
    let options = serde_saphyr::options! { with_snippet: false, legacy_octal_numbers: true };
    let parsed: Option<Spanned<Kind>> = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let line = error.location().map_or(0, |location| location.line());
        ParseError { line, text: error.to_string() }
    })?;
    Ok(parsed.map(Node::from).filter(|node| node.kind != Kind::Scalar(Value::Null)))
}

impl Node {
    /// The value of that key, when this is a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries().iter().find(|(known, _)| known.text == key).map(|(_, value)| value)
    }

    /// The entries, when this is a mapping; nothing otherwise.
    #[must_use]
    pub fn entries(&self) -> &[(Key, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items, when this is a sequence; nothing otherwise.
    #[must_use]
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// The node below those keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The same as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.text.clone(), value.to_json())).collect())
            }
        }
    }
}

impl From<Spanned<Kind>> for Node {
    fn from(spanned: Spanned<Kind>) -> Self {
        Self { line: spanned.referenced.line(), kind: spanned.value }
    }
}

struct AnyKind;

impl<'de> Visitor<'de> for AnyKind {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Number(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::Number(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Kind, E> {
        Ok(Kind::Scalar(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::String(value.to_owned())))
    }

    fn visit_string<E>(self, value: String) -> Result<Kind, E> {
        Ok(Kind::Scalar(Value::String(value)))
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element::<Spanned<Kind>>()? {
            items.push(Node::from(item));
        }
        Ok(Kind::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Kind, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = access.next_key::<Spanned<String>>()? {
            let value = access.next_value::<Spanned<Kind>>()?;
            entries.push((Key { line: key.referenced.line(), text: key.value }, Node::from(value)));
        }
        Ok(Kind::Map(entries))
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyKind)
    }
}
