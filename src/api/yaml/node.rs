//! The value tree, with the line of every key and value.

use serde_json::{Map, Number, Value};

/// A value and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Line, from 1; for an alias, the line of the anchor.
    pub line: usize,
    /// What it is.
    pub content: Content,
}

/// What a node is, in JSON's terms.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Exact 64-bit integer, or a finite float.
    Number(Number),
    /// Everything else.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the text, keys unique.
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key, as text.
    pub key: String,
    /// Line of the key.
    pub line: usize,
    /// The value.
    pub value: Node,
}

impl Node {
    /// The same value without lines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(value) => Value::Number(value.clone()),
            Content::Text(value) => Value::String(value.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Content::Map(entries) => {
                let map: Map<_, _> = entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect();
                Value::Object(map)
            }
        }
    }

    /// What kind of value it is, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        kind(&self.to_shallow())
    }

    fn to_shallow(&self) -> Value {
        match &self.content {
            Content::List(_) => Value::Array(Vec::new()),
            Content::Map(_) => Value::Object(Map::new()),
            _ => self.to_json(),
        }
    }
}

/// What kind of value `value` is, with its article.
#[must_use]
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
