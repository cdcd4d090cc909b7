//! A document is read into a profile's model: known members stay, unknown ones go, wrong types are refused. Names match exactly.

use super::ProfileFault;
use super::schema::{Field, Schema, Shape};
use crate::json::{Members, Value};

/// The members of `card` that `schema` knows.
pub(super) fn card(schema: Schema, card: &Members) -> Result<Members, ProfileFault> {
    let mut path = Vec::new();
    Projection { go: schema.go, path: &mut path }.record(schema.fields, card)
}

struct Projection<'p> {
    go: bool,
    path: &'p mut Vec<&'static str>,
}

impl Projection<'_> {
    fn path(&self) -> String {
        self.path.join(".")
    }

    fn wrong<T>(&self, wanted: &'static str) -> Result<T, ProfileFault> {
        Err(ProfileFault::WrongType { path: self.path(), wanted })
    }

    fn record(&mut self, fields: &'static [Field], members: &Members) -> Result<Members, ProfileFault> {
        let mut out = Members::new();
        for (name, shape) in fields {
            let Some(value) = members.get(*name).filter(|value| **value != Value::Null) else { continue };
            self.path.push(name);
            if let Some(value) = self.member(shape, value)? {
                out.insert((*name).to_owned(), value);
            }
            self.path.pop();
        }
        Ok(out)
    }

    /// The member as the model holds it; none when the model cannot tell it from an absent one.
    fn member(&mut self, shape: &Shape, value: &Value) -> Result<Option<Value>, ProfileFault> {
        let kept = |empty: bool, value: Value| (!(empty && self.go)).then_some(value);
        Ok(match (shape, value) {
            (Shape::Text, Value::Text(text)) => kept(text.is_empty(), value.clone()),
            (Shape::Text, _) => return self.wrong("a string"),
            (Shape::Flag, Value::Bool(_)) => Some(value.clone()),
            (Shape::Mark, Value::Bool(set)) => set.then(|| value.clone()),
            (Shape::Flag | Shape::Mark, _) => return self.wrong("true or false"),
            (Shape::Texts, Value::List(list)) => {
                let texts = list.iter().map(|element| self.text(element)).collect::<Result<Vec<_>, _>>()?;
                kept(texts.is_empty(), Value::List(texts))
            }
            (Shape::Texts, _) => return self.wrong("a list of strings"),
            (Shape::Records(fields), Value::List(list)) => {
                let records =
                    list.iter().map(|element| self.element(fields, element)).collect::<Result<Vec<_>, _>>()?;
                (!(records.is_empty() && self.go)).then_some(Value::List(records))
            }
            (Shape::Records(_), _) => return self.wrong("a list of objects"),
            (Shape::Record(fields), Value::Object(members)) => Some(Value::Object(self.record(fields, members)?)),
            (Shape::OneOf(fields), Value::Object(members)) => {
                let chosen = self.record(fields, members)?;
                if chosen.len() > 1 {
                    return Err(ProfileFault::Alternatives { path: self.path() });
                }
                Some(Value::Object(chosen))
            }
            (Shape::Map(shape), Value::Object(members)) => Some(Value::Object(self.map(shape, members)?)),
            (Shape::Free, Value::Object(members)) => kept(members.is_empty(), value.clone()),
            (Shape::Record(_) | Shape::OneOf(_) | Shape::Map(_) | Shape::Free, _) => return self.wrong("an object"),
        })
    }

    fn text(&self, element: &Value) -> Result<Value, ProfileFault> {
        match element {
            Value::Text(_) => Ok(element.clone()),
            Value::Null if self.go => Ok(Value::Text(String::new())),
            _ => self.wrong("a list of strings"),
        }
    }

    fn element(&mut self, fields: &'static [Field], element: &Value) -> Result<Value, ProfileFault> {
        match element {
            Value::Object(members) => self.record(fields, members).map(Value::Object),
            Value::Null if self.go => Ok(Value::Object(Members::new())),
            _ => self.wrong("a list of objects"),
        }
    }

    fn map(&mut self, shape: &'static Shape, members: &Members) -> Result<Members, ProfileFault> {
        let mut out = Members::new();
        for (name, value) in members {
            if let Some(value) = self.member(shape, value)? {
                out.insert(name.clone(), value);
            }
        }
        Ok(out)
    }
}
