//! From a document to validated settings: one walk, every fault found.

use super::keys::{KEYS, Key};
use super::{Fault, Setting, Settings};
use crate::config::yaml::{Content, Entry, Node};

/// What a document of the platform file's schema says.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Values whose check passed.
    pub(crate) settings: Settings,
    /// Everything that is wrong.
    pub(crate) faults: Vec<Fault>,
    /// Keys without effect, with their line.
    pub(crate) retired: Vec<(&'static Key, usize)>,
}

/// Reads a document; an empty one sets nothing.
pub(crate) fn walk(document: &Node) -> Walked {
    let mut walked = Walked::default();
    match &document.content {
        Content::Null => {}
        Content::Map(entries) => walked.mapping("", entries),
        _ => {
            walked.fault(document.line, "", format!("a mapping is expected at the top, {} was found", document.kind()))
        }
    }
    walked
}

impl Walked {
    fn fault(&mut self, line: usize, field: &str, message: String) {
        self.faults.push(Fault { line, field: field.to_owned(), message });
    }

    fn mapping(&mut self, above: &str, entries: &[Entry]) {
        for entry in entries {
            let path = if above.is_empty() { entry.key.clone() } else { format!("{above}.{}", entry.key) };
            match KEYS.iter().find(|key| key.path == path) {
                Some(key) => self.leaf(key, entry),
                None if is_beginning(&path) => self.inner(&path, entry),
                None => self.fault(entry.line, &path, unknown(above, &entry.key)),
            }
        }
    }

    fn inner(&mut self, path: &str, entry: &Entry) {
        match &entry.value.content {
            Content::Null => {}
            Content::Map(entries) => self.mapping(path, entries),
            _ => self.fault(entry.line, path, format!("a mapping is expected, {} was found", entry.value.kind())),
        }
    }

    fn leaf(&mut self, key: &'static Key, entry: &Entry) {
        if key.is_retired() {
            self.retired.push((key, entry.line));
            return;
        }
        let value = entry.value.to_json();
        if value.is_null() {
            return;
        }
        match (key.check)(&value) {
            Ok(()) => self.settings.insert(key.path, Setting { line: entry.line, value }),
            Err(message) => self.fault(entry.line, key.path, message),
        }
    }
}

/// Whether some key stands below `path`.
fn is_beginning(path: &str) -> bool {
    KEYS.iter().any(|key| below(key.path, path).is_some())
}

fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    if above.is_empty() { Some(path) } else { path.strip_prefix(above)?.strip_prefix('.') }
}

fn unknown(above: &str, seen: &str) -> String {
    let siblings: Vec<&str> = KEYS
        .iter()
        .filter(|key| !key.is_retired())
        .filter_map(|key| below(key.path, above))
        .map(|rest| rest.split('.').next().unwrap_or(rest))
        .collect();
    match super::nearest(seen, siblings) {
        Some(near) => format!("is not a key of this file; did you mean {near}?"),
        None => "is not a key of this file; leave it out".to_owned(),
    }
}
