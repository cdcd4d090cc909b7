//! A place in an object and what is read there; what cannot be read is a fault with its path.
//!
//! `null` is nothing, everywhere; so is an empty text, where a text is optional. Of a list no more than [`MOST_ITEMS`] are read, and of what is
//! found as much is kept as is printed: whoever may write an object decides how long its lists are, and everybody waits while they are read.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Looked;
use super::spelling::{Alias, OldSpelling};
use crate::api::findings::{Fault, Note, add};
use crate::api::kaos_tools::MOST_ITEMS;
use crate::api::yaml::kind;
use crate::domain::reason::Reason;

/// What to do about a list that is too long.
pub(super) const FEWER: &str = "write fewer";

/// What is found while an object is read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) faults: Vec<Fault>,
    pub(super) conflicts: Vec<Fault>,
    pub(super) notes: Vec<Note>,
    pub(super) old: Vec<OldSpelling>,
}

impl Found {
    pub(super) fn fault(&mut self, fault: Fault) {
        add(&mut self.faults, fault);
    }

    pub(super) fn invalid(&mut self, path: &str, sentence: impl Into<String>, remedy: impl Into<String>) {
        self.fault(Fault::invalid(path, sentence, remedy));
    }

    pub(super) fn required(&mut self, path: &str, remedy: &str) {
        self.fault(Fault::required(path, remedy));
    }

    pub(super) fn note(&mut self, reason: Reason, path: &str, text: impl Into<String>) {
        add(&mut self.notes, Note::new(reason, path, text));
    }

    /// What was found, beside the value.
    pub(super) fn looked<T>(mut self, value: T) -> Looked<T> {
        self.old.sort();
        Looked { value, faults: self.faults, conflicts: self.conflicts, notes: self.notes, old: self.old }
    }

    /// An old spelling is used at `path`.
    pub(super) fn old(&mut self, alias: Alias, path: &str) {
        self.old.push(OldSpelling { alias, path: path.to_owned() });
    }

    /// Two spellings say different things.
    pub(super) fn conflict(&mut self, new: &str, old: &str) {
        let sentence = format!("and {old} say different things, and are two spellings of one field");
        let fault = Fault::new(Reason::SpellingConflict, new, sentence, format!("keep {new} alone"));
        add(&mut self.conflicts, fault);
    }

    /// What a field means of which there is an old spelling: the new one wins.
    pub(super) fn either<T: PartialEq>(
        &mut self,
        (new, new_path): (Option<T>, &str),
        (old, old_path): (Option<T>, &str),
        alias: Alias,
    ) -> Option<T> {
        if old.is_some() {
            self.old(alias, old_path);
        }
        match (new, old) {
            (Some(new), Some(old)) => {
                if new != old {
                    self.conflict(new_path, old_path);
                }
                Some(new)
            }
            (new, old) => new.or(old),
        }
    }
}

/// A list at `path` that has more items than are read is a fault.
pub(super) fn bounded(path: &str, items: usize, (most, remedy): (usize, &str), found: &mut Found) {
    if items > most {
        found.invalid(path, format!("has {items} items; {most} are the most"), remedy);
    }
}

/// A place in an object.
#[derive(Debug, Clone)]
pub(super) struct Place<'v> {
    /// What stands there; `None` for nothing and `null`.
    pub(super) value: Option<&'v Value>,
    /// Its path.
    pub(super) path: String,
}

impl<'v> Place<'v> {
    pub(super) fn new(value: Option<&'v Value>, path: impl Into<String>) -> Self {
        Self { value: value.filter(|value| !value.is_null()), path: path.into() }
    }

    /// A member of what stands there; nothing where that is no mapping.
    pub(super) fn at(&self, member: &str) -> Self {
        Self::new(self.value.and_then(|value| value.get(member)), format!("{}.{member}", self.path))
    }

    /// A member, which is a mapping if it is there.
    pub(super) fn mapping(&self, member: &str, found: &mut Found) -> Self {
        let place = self.at(member);
        place.is_mapping(found);
        place
    }

    pub(super) fn is_there(&self) -> bool {
        self.value.is_some()
    }

    /// Whether a mapping stands there; something else is a fault.
    pub(super) fn is_mapping(&self, found: &mut Found) -> bool {
        match self.value {
            Some(value) if !value.is_object() => {
                self.shape("a mapping", value, found);
                false
            }
            value => value.is_some(),
        }
    }

    fn shape(&self, wanted: &str, value: &Value, found: &mut Found) {
        let quotes = if wanted == "a string" && !value.is_object() && !value.is_array() {
            "put it in quotes"
        } else {
            "write that"
        };
        found.invalid(&self.path, format!("must be {wanted}, and is {}", kind(value)), quotes);
    }

    /// A text, with an empty one as such.
    pub(super) fn any_text(&self, found: &mut Found) -> Option<&'v str> {
        match self.value? {
            Value::String(text) => Some(text),
            other => {
                self.shape("a string", other, found);
                None
            }
        }
    }

    /// A text that is not empty.
    pub(super) fn text(&self, found: &mut Found) -> Option<String> {
        self.any_text(found).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// A text that becomes variable `name` of a container.
    pub(super) fn variable(&self, name: &str, found: &mut Found) -> Option<String> {
        let text = self.text(found)?;
        super::env::fits(name, &text, &self.path, found);
        Some(text)
    }

    pub(super) fn boolean(&self, found: &mut Found) -> Option<bool> {
        match self.value? {
            Value::Bool(value) => Some(*value),
            other => {
                self.shape("true or false", other, found);
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(super) fn integer(&self, (least, most): (i64, i64), found: &mut Found) -> Option<i64> {
        let value = self.value?;
        let Some(number) = value.as_i64() else {
            self.shape("a whole number", value, found);
            return None;
        };
        if !(least..=most).contains(&number) {
            let bounds = if most == i64::from(i32::MAX) {
                format!("is {number}; {least} is the least")
            } else {
                format!("is {number}; {least} to {most} are allowed")
            };
            found.invalid(&self.path, bounds, "write a number within that");
        }
        Some(number)
    }

    /// The items of a list, as far as they are read.
    pub(super) fn items(&self, found: &mut Found) -> Vec<Place<'v>> {
        self.at_most((MOST_ITEMS, FEWER), found)
    }

    /// The same with a bound of its own, and what to do about a longer one.
    pub(super) fn at_most(&self, bound: (usize, &str), found: &mut Found) -> Vec<Place<'v>> {
        match self.value {
            None => Vec::new(),
            Some(Value::Array(items)) => {
                bounded(&self.path, items.len(), bound, found);
                let read = items.iter().take(bound.0).enumerate();
                read.map(|(index, item)| Place { value: Some(item), path: format!("{}[{index}]", self.path) }).collect()
            }
            Some(other) => {
                self.shape("a list", other, found);
                Vec::new()
            }
        }
    }

    /// A list of texts, empty ones included.
    pub(super) fn texts(&self, found: &mut Found) -> Option<Vec<String>> {
        self.value?;
        let items = self.items(found);
        Some(items.iter().filter_map(|item| item.any_text(found)).map(str::to_owned).collect())
    }

    /// A list of names, each once; empty ones are faults.
    pub(super) fn names(&self, what: &str, found: &mut Found) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for item in self.items(found) {
            match item.any_text(found) {
                Some("") => found.required(&item.path, &format!("name {what}, or remove the item")),
                Some(name) if !known.insert(name) => {
                    let text = format!("{name} occurs twice, and counts once; remove one");
                    found.note(Reason::ValueShadowed, &item.path, text);
                }
                Some(name) => names.push(name.to_owned()),
                None => {}
            }
        }
        names
    }
}
