//! One YAML (or JSON) document as a tree that remembers lines, the order of keys, and how numbers were written.
//!
//! In: the text of one document. Out: a [`Node`], or what is wrong with it and where. `serde_json`'s own map sorts its keys and its
//! numbers have 64 bits; this tree gives [`super::emit`] the order and the digits that a person wrote.

use serde_json::Value;

use super::{compose, json};

/// Deepest nesting that is read.
pub(super) const MAX_DEPTH: usize = 512;

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
    /// How it was written, when a reader might take it for something other than text.
    pub spelled: Option<Box<str>>,
}

/// The kinds of values that JSON has.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A scalar.
    Scalar {
        /// As JSON.
        value: Value,
        /// How it was written, when it is not text.
        spelled: Option<Box<str>>,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the text.
    Map(Vec<(Key, Node)>),
}

/// Why a document is not one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}")]
pub struct ParseError {
    /// Line within the document, 0 when the parser does not say.
    pub line: u64,
    /// What is wrong.
    pub text: String,
}

impl ParseError {
    pub(super) fn at(line: usize, text: impl Into<String>) -> Self {
        Self { line: line as u64, text: text.into() }
    }
}

/// Reads one document as kubectl reads it (`0644` is octal, `yes` is true, merge keys are merged, JSON is JSON); `None` when there is
/// nothing but comments.
///
/// # Errors
/// When the text is not YAML, repeats a key, has a value without a JSON form, or has more than one document.
pub fn parse(text: &str) -> Result<Option<Node>, ParseError> {
    let root = match json::document(text) {
        Some(read) => Some(read?),
        None => compose::document(text)?,
    };
    Ok(root.filter(|node| !matches!(node.kind, Kind::Scalar { value: Value::Null, .. })))
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

    /// How this was written, when it is a scalar of that value and not text.
    #[must_use]
    pub fn spelled(&self, value: &Value) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { value: own, spelled } if own == value => spelled.as_deref(),
            _ => None,
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
            Kind::Scalar { value, .. } => value.clone(),
            Kind::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.text.clone(), value.to_json())).collect())
            }
        }
    }

    /// Levels of collections in it.
    pub(super) fn depth(&self) -> usize {
        match &self.kind {
            Kind::Scalar { .. } => 0,
            Kind::List(items) => 1 + items.iter().map(Node::depth).max().unwrap_or(0),
            Kind::Map(entries) => 1 + entries.iter().map(|(_, value)| value.depth()).max().unwrap_or(0),
        }
    }
}
