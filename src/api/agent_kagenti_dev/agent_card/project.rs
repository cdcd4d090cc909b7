//! What of an agent's card is published: the members that the schema of `status.card` knows, of the types that it names.
//!
//! In: any JSON. Out: a card without what nobody knows, without what is empty, and without signatures, which are of the served document and prove
//! nothing about this copy; every text written so that nothing in it hides or moves a cursor. A known member of another type is a fault of the
//! whole card. Promise: what comes out depends on nothing but what goes in, and holds no member that [`super::shape`] does not name.

use serde_json::{Map, Value};

use super::shape::{CARD, Member, Shape};
use crate::domain::printable::{printable, printable_lines};

/// A member of another type than every reader expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not {wanted}")]
pub struct WrongType {
    /// Where, in the schema's words.
    pub path: String,
    /// What stands there in a card.
    pub wanted: &'static str,
}

/// Not published: it is of the document as served.
const UNPUBLISHED: &str = "signatures";
/// Members whose texts may have lines.
const PROSE: [&str; 2] = ["description", "examples"];
/// Bytes of a text on one line.
const LINE: usize = 4096;

/// What is published of that card.
pub fn project(card: &Value) -> Result<Value, WrongType> {
    let mut projection = Projection { path: Vec::new() };
    let Value::Object(members) = card else { return projection.wrong("an object") };
    projection.record(CARD, members).map(Value::Object)
}

struct Projection {
    path: Vec<&'static str>,
}

impl Projection {
    fn wrong<T>(&self, wanted: &'static str) -> Result<T, WrongType> {
        let path = if self.path.is_empty() { "the card".to_owned() } else { self.path.join(".") };
        Err(WrongType { path, wanted })
    }

    fn record(
        &mut self,
        known: &'static [Member],
        members: &Map<String, Value>,
    ) -> Result<Map<String, Value>, WrongType> {
        let mut kept = Map::new();
        for (name, shape, _) in known {
            let Some(value) = members.get(*name).filter(|value| !value.is_null()) else { continue };
            self.path.push(name);
            let value = self.value(*shape, value)?;
            self.path.pop();
            let is_unpublished = self.path.is_empty() && *name == UNPUBLISHED;
            if !is_unpublished && !is_empty(&value) {
                kept.insert((*name).to_owned(), value);
            }
        }
        Ok(kept)
    }

    fn value(&mut self, shape: Shape, value: &Value) -> Result<Value, WrongType> {
        Ok(match (shape, value) {
            (Shape::Text, Value::String(text)) => Value::String(self.text(text)),
            (Shape::Text, _) => return self.wrong("a string"),
            (Shape::Flag, Value::Bool(_)) => value.clone(),
            (Shape::Flag, _) => return self.wrong("true or false"),
            (Shape::Texts, Value::Array(items)) => self.items(Shape::Text, items, "a list of strings")?,
            (Shape::Texts, _) => return self.wrong("a list of strings"),
            (Shape::Record(known), Value::Object(members)) => Value::Object(self.record(known, members)?),
            (Shape::Records(known), Value::Array(items)) => {
                self.items(Shape::Record(known), items, "a list of objects")?
            }
            (Shape::Maps(values), Value::Array(items)) => self.items(Shape::Map(values), items, "a list of objects")?,
            (Shape::Records(_) | Shape::Maps(_), _) => return self.wrong("a list of objects"),
            (Shape::Map(values), Value::Object(members)) => {
                let mut kept = Map::new();
                for (name, value) in members {
                    kept.insert(printable(name, LINE), self.value(*values, value)?);
                }
                Value::Object(kept)
            }
            (Shape::Free, Value::Object(_)) => self.free(value),
            (Shape::Record(_) | Shape::Map(_) | Shape::Free, _) => return self.wrong("an object"),
        })
    }

    fn items(&mut self, shape: Shape, items: &[Value], wanted: &'static str) -> Result<Value, WrongType> {
        let item = |item: &Value| match item {
            Value::Null => self.wrong(wanted),
            item => self.value(shape, item),
        };
        Ok(Value::Array(items.iter().map(item).collect::<Result<_, _>>()?))
    }

    fn text(&self, text: &str) -> String {
        match self.path.last() {
            Some(name) if PROSE.contains(name) => printable_lines(text),
            _ => printable(text, LINE),
        }
    }

    fn free(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.free(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| (printable(name, LINE), self.free(value))).collect()
            }
            other => other.clone(),
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
