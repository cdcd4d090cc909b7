//! The platform file: every key, typed, with the line of what is wrong.
//!
//! In: the text of `/etc/kagenti/config.yaml` and its name. Out: a [`Platform`],
//! or a [`SchemaError`] that lists every fault with line and field. Promises: an absent key keeps its built-in
//! value; a key nobody knows is refused with the nearest known one; a key that an upstream version knew and nothing
//! here consumes is accepted and warned about. A key is one row of [`keys`]; its row says what it changes, so no
//! accepted key can be without effect unnoticed.

mod alone;
mod builds;
mod cards;
mod kaos;
pub mod keys;
mod overrides;
mod platform;
mod quantity;
mod read;
mod show;
mod trust;
mod walk;

pub use platform::{Keycloak, OnUpgrade, Platform, Repair};
pub use show::Show;
pub(crate) use walk::{Walked, walk};

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::yaml::YamlError;
use crate::domain::suggest::nearest;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Path of the field, empty for the whole document.
    pub field: String,
    /// What was seen, what is expected, what to do.
    pub message: String,
}

/// A file that is not what it should be: everything that is wrong with it, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The file, as the caller named it.
    pub file: String,
    /// At least one.
    pub faults: Vec<Fault>,
}

impl SchemaError {
    pub(crate) fn new(file: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort();
        Self { file: file.to_owned(), faults }
    }

    pub(crate) fn yaml(file: &str, error: &YamlError) -> Self {
        let fault = Fault { line: error.line, field: String::new(), message: error.message.clone() };
        Self::new(file, vec![fault])
    }
}

impl std::fmt::Display for SchemaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{}: ", self.file, fault.line)?;
            if !fault.field.is_empty() {
                write!(f, "{}: ", fault.field)?;
            }
            f.write_str(&fault.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for SchemaError {}

/// Validated values of one layer, by the path of their key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
}

/// One value of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Line in its document, from 1.
    pub line: usize,
    /// The value; its row's check accepted it.
    pub value: Value,
}

impl Settings {
    /// By path.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        self.values.iter().map(|(path, setting)| (*path, setting))
    }

    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Line of the key at `path`, when it is set.
    #[must_use]
    pub fn line(&self, path: &str) -> Option<usize> {
        self.values.get(path).map(|setting| setting.line)
    }

    pub(crate) fn insert(&mut self, path: &'static str, setting: Setting) {
        self.values.insert(path, setting);
    }
}

#[cfg(test)]
mod tests;
