//! YAML text to a value that remembers its lines.
//!
//! In: text that somebody else wrote (platform file, gates file, ConfigMap keys). Out: one [`Node`] tree, or a
//! [`YamlError`] that names the line. Promises: YAML 1.2 core schema exactly (`yes` is a string, `0755` is 755,
//! `n` is a key called n); integers exact or refused; duplicate keys, several documents, merge keys, tags outside the
//! core schema and values without a JSON form refused; bounded in size, depth and alias expansion; no panic.
//!
//! The event parser below serde-saphyr is used directly, because through serde the style and the spelling of a
//! scalar are gone by the time a type must be chosen (measured: `012` became `12.0`).

mod compose;
mod node;
mod scalar;

pub use node::kind;
pub use node::{Content, Entry, Node};

/// Largest text that is read, in bytes; a ConfigMap cannot hold more.
pub const MAX_BYTES: usize = 1024 * 1024;
/// Deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
/// Most bytes a document may take once its aliases are expanded: its text, and [`VALUE_COST`] for every value.
pub const MAX_EXPANDED: usize = 4 * MAX_BYTES;
/// What a value costs besides its text, in bytes.
const VALUE_COST: usize = 32;

/// Why a text is not one YAML document of the core schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, as a sentence without its end.
    pub message: String,
}

impl YamlError {
    pub(super) fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line: line.max(1), message: message.into() }
    }
}

/// The one document in `text`; empty text is `null`.
///
/// # Errors
/// See the module's promises; the first problem is named.
pub fn parse(text: &str) -> Result<Node, YamlError> {
    bounded(text, false)
}

/// The same of text that is another program's: a merge key stays a key called `<<`, and nothing is merged.
///
/// # Errors
/// As [`parse`].
pub fn parse_with_merge_keys(text: &str) -> Result<Node, YamlError> {
    bounded(text, true)
}

fn bounded(text: &str, merges: bool) -> Result<Node, YamlError> {
    if text.len() > MAX_BYTES {
        return Err(YamlError::at(
            1,
            format!("the text has {} bytes, more than the {MAX_BYTES} that are read", text.len()),
        ));
    }
    if let Some(position) = text.bytes().position(|byte| byte == 0) {
        let line = text.bytes().take(position).filter(|byte| *byte == b'\n').count() + 1;
        return Err(YamlError::at(line, "the text contains a NUL byte; is it UTF-16 or a binary file?"));
    }
    compose::document(text, merges)
}

#[cfg(test)]
mod tests;
