//! From a document to validated settings: one walk, every fault found.

use super::keys::{KEYS, Key};
use super::{Fault, Setting, Settings};
use crate::api::yaml::{Content, Entry, Node};

/// One step down into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// To the value of a key.
    Key(String),
    /// To an entry of a list, from 0.
    Entry(usize),
}

/// What is wrong with a value, and where in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// From the value's top; empty for the value as a whole.
    at: Vec<Step>,
    message: String,
    /// Earlier versions took the value, and nothing depends on it: it is left out, and the rest of the document is not.
    is_mild: bool,
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self { at: Vec::new(), message, is_mild: false }
    }
}

impl Problem {
    pub(super) fn new(at: Vec<Step>, message: String) -> Self {
        Self { at, message, is_mild: false }
    }

    /// One for which a value is left out, and no more.
    pub(super) fn mild(message: String) -> Self {
        Self { at: Vec::new(), message, is_mild: true }
    }

    /// The same problem, seen from one step above.
    pub(super) fn below(mut self, step: Step) -> Self {
        self.at.insert(0, step);
        self
    }

    /// Line and path of what is wrong, within the entry at `path`.
    fn locate(&self, path: &str, entry: &Entry) -> (usize, String) {
        let (mut line, mut field, mut node) = (entry.line, path.to_owned(), Some(&entry.value));
        for step in &self.at {
            let below = match (step, node.map(|node| &node.content)) {
                (Step::Key(name), Some(Content::Map(entries))) => {
                    entries.iter().find(|entry| entry.key == *name).map(|entry| (entry.line, &entry.value))
                }
                (Step::Entry(index), Some(Content::List(items))) => items.get(*index).map(|item| (item.line, item)),
                _ => None,
            };
            line = below.map_or(line, |(line, _)| line);
            node = below.map(|(_, node)| node);
            match step {
                Step::Key(name) => field.push_str(&format!(".{name}")),
                Step::Entry(index) => field.push_str(&format!("[{index}]")),
            }
        }
        (line, field)
    }
}

/// What a document of the platform file's schema says.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Values whose check passed.
    pub(crate) settings: Settings,
    /// Everything that is wrong.
    pub(crate) faults: Vec<Fault>,
    /// Values that are left out although nothing else is wrong.
    pub(crate) left_out: Vec<Fault>,
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
            // A dot in a key is a part of the key: `"proxy.port": 1` says nothing of `port` below `proxy`, which the same document may set, too.
            if entry.key.is_empty() || entry.key.contains('.') {
                let field = joined(above, &format!("{:?}", entry.key));
                self.fault(entry.line, &field, no_name(above, &entry.key));
                continue;
            }
            let path = joined(above, &entry.key);
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
            Err(problem) => {
                let (line, field) = problem.locate(key.path, entry);
                let faults = if problem.is_mild { &mut self.left_out } else { &mut self.faults };
                faults.push(Fault { line, field, message: problem.message });
            }
        }
    }
}

/// The path of a name below another one.
fn joined(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

/// Whether some key stands below `path`.
fn is_beginning(path: &str) -> bool {
    KEYS.iter().any(|key| below(key.path, path).is_some())
}

fn below<'a>(path: &'a str, above: &str) -> Option<&'a str> {
    if above.is_empty() { Some(path) } else { path.strip_prefix(above)?.strip_prefix('.') }
}

/// What is said of a key that is no name of this file, because it is empty or has a dot in it.
fn no_name(above: &str, seen: &str) -> String {
    let path = joined(above, seen);
    let is_path = !seen.is_empty() && (KEYS.iter().any(|key| key.path == path) || is_beginning(&path));
    if !is_path {
        return unknown(above, seen);
    }
    let nested = format!("{}: VALUE{}", seen.replace('.', ": {"), "}".repeat(seen.matches('.').count()));
    format!("is one key with a dot in it, and not a key of this file; write it nested: {nested}")
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
