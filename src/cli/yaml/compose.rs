//! From parser events to one [`Node`], read as kubectl reads them.
//!
//! Tags that nobody knows are passed over, merge keys are merged where they stand, keys that are numbers or booleans become text. Iterative, so
//! that nesting costs heap and not stack; each copy that an alias makes is paid for before it is made.

use std::collections::HashMap;

use base64::Engine;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, Tag};
use serde_json::Value;

use super::tree::{Key, Kind, MAX_DEPTH, Node, ParseError};
use super::{json, scalar};

/// Most bytes that anchors and aliases may add to a document.
const MAX_COPIED: usize = 64 * 1024 * 1024;
/// What a value costs besides its text, in bytes.
const VALUE_COST: usize = 64;

/// A collection that is still open.
struct Open {
    line: usize,
    anchor: usize,
    /// What it takes so far, in bytes.
    cost: usize,
    kind: OpenKind,
}

enum OpenKind {
    List(Vec<Node>),
    Map(Mapping),
}

#[derive(Default)]
struct Mapping {
    entries: Vec<(Key, Node)>,
    /// Where each key stands, and whether the mapping itself wrote it.
    places: HashMap<String, (usize, bool)>,
    next: Option<Next>,
}

/// What the next value of a mapping is for.
enum Next {
    Key(Key),
    Merge(usize),
}

/// A complete value and what it takes, in bytes.
struct Done {
    node: Node,
    cost: usize,
    anchor: usize,
}

#[derive(Default)]
struct Composer {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    copied: usize,
    root: Option<Node>,
}

/// The document in `text`; `None` when there is none.
pub(super) fn document(text: &str) -> Result<Option<Node>, ParseError> {
    let mut composer = Composer::default();
    let mut documents = 0_usize;
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| match (error.kind(), error.marker().line()) {
            (ErrorKind::RecursionLimitExceeded, line) => too_deep(line),
            (_, line) => ParseError::at(line, error.info()),
        })?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(ParseError::at(line, "a second document begins here without ---"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => composer.scalar(&text, style, (anchor, tag.as_deref()), line)?,
            Event::SequenceStart(_, anchor, _) => composer.open(OpenKind::List(Vec::new()), anchor, line)?,
            Event::MappingStart(_, anchor, _) => composer.open(OpenKind::Map(Mapping::default()), anchor, line)?,
            Event::SequenceEnd | Event::MappingEnd => composer.close()?,
            Event::Alias(anchor) => composer.alias(anchor, line)?,
            _ => {}
        }
    }
    Ok(composer.root)
}

/// The value of a scalar, and how it was written when that is not text.
fn typed(text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Kind, ParseError> {
    let told = |message| ParseError::at(line, message);
    let as_text = |text: &str| Kind::Scalar { value: Value::String(text.to_owned()), spelled: None };
    let resolved = || scalar::resolve(text).map_err(told);
    let Some(tag) = tag else {
        if style != ScalarStyle::Plain {
            return Ok(as_text(text));
        }
        let value = resolved()?;
        let spelled = (!value.is_string()).then(|| text.into());
        return Ok(Kind::Scalar { value, spelled });
    };
    let known = tag.suffix_in_namespace("tag:yaml.org,2002:");
    let fits = |value: &Value| match known.as_deref() {
        Some("int") => value.is_i64() || value.is_u64(),
        Some("float") => value.is_number(),
        Some("bool") => value.is_boolean(),
        _ => value.is_null(),
    };
    match known.as_deref() {
        Some("int" | "float" | "bool" | "null") => {
            let value = resolved()?;
            if fits(&value) {
                Ok(Kind::Scalar { value, spelled: None })
            } else {
                Err(told(format!("{text:?} is not a value of tag {}", tag.original())))
            }
        }
        Some("binary") => {
            let packed: String = text.split_whitespace().collect();
            let bytes = base64::engine::general_purpose::STANDARD.decode(packed);
            let bytes = bytes.map_err(|error| told(format!("!!binary is not base64: {error}")))?;
            Ok(as_text(&String::from_utf8_lossy(&bytes)))
        }
        _ => Ok(as_text(text)),
    }
}

/// A value as a key.
fn key(node: Node) -> Result<Key, ParseError> {
    let line = node.line;
    let told = |text: &str| ParseError { line, text: text.to_owned() };
    match node.kind {
        Kind::Scalar { value: Value::Null, .. } => {
            Err(told("a key is missing, or null; put it in quotes if it is meant as text"))
        }
        Kind::Scalar { value: Value::String(text), .. } => Ok(Key { line, text, spelled: None }),
        Kind::Scalar { value, spelled } => Ok(Key { line, text: value.to_string(), spelled }),
        Kind::List(_) | Kind::Map(_) => Err(told("a key must be text, not a list or mapping")),
    }
}

impl Mapping {
    fn set(&mut self, key: Key, value: Node, own: bool) -> Result<(), ParseError> {
        match self.places.get_mut(&key.text) {
            Some((_, true)) if own => Err(ParseError { line: key.line, text: json::twice(&key.text) }),
            Some((place, owned)) => {
                *owned |= own;
                self.entries[*place] = (key, value);
                Ok(())
            }
            None => {
                self.places.insert(key.text.clone(), (self.entries.len(), own));
                self.entries.push((key, value));
                Ok(())
            }
        }
    }

    /// The entries of what a merge key names; of several mappings the first has the last word.
    fn merge(&mut self, value: Node, line: usize) -> Result<(), ParseError> {
        let sources = match value.kind {
            Kind::Map(_) => vec![value],
            Kind::List(items) => items.into_iter().rev().collect(),
            Kind::Scalar { .. } => Vec::from([value]),
        };
        for source in sources {
            let Kind::Map(entries) = source.kind else {
                return Err(ParseError::at(line, "a merge key (<<) takes a mapping, or a list of mappings"));
            };
            entries.into_iter().try_for_each(|(key, value)| self.set(key, value, false))?;
        }
        Ok(())
    }
}

impl Composer {
    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        (anchor, tag): (usize, Option<&Tag>),
        line: usize,
    ) -> Result<(), ParseError> {
        if style == ScalarStyle::Plain
            && tag.is_none()
            && text == "<<"
            && let Some(Open { kind: OpenKind::Map(mapping @ Mapping { next: None, .. }), .. }) = self.open.last_mut()
        {
            mapping.next = Some(Next::Merge(line));
            return Ok(());
        }
        let node = Node { line: line as u64, kind: typed(text, style, tag, line)? };
        self.add(Done { node, cost: VALUE_COST + text.len(), anchor })
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), ParseError> {
        let Some((node, cost)) = self.anchors.get(&anchor) else {
            return Err(ParseError::at(line, "an alias refers to a value that contains it"));
        };
        let (cost, depth) = (*cost, self.open.len() + node.depth());
        if depth > MAX_DEPTH {
            return Err(too_deep(line));
        }
        self.pay(cost, line)?;
        let Some((node, _)) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
        self.add(Done { node, cost, anchor: 0 })
    }

    fn open(&mut self, kind: OpenKind, anchor: usize, line: usize) -> Result<(), ParseError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        self.open.push(Open { line, anchor, cost: VALUE_COST, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), ParseError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let kind = match open.kind {
            OpenKind::List(items) => Kind::List(items),
            OpenKind::Map(mapping) => Kind::Map(mapping.entries),
        };
        self.add(Done { node: Node { line: open.line as u64, kind }, cost: open.cost, anchor: open.anchor })
    }

    fn pay(&mut self, cost: usize, line: usize) -> Result<(), ParseError> {
        self.copied = self.copied.saturating_add(cost);
        if self.copied > MAX_COPIED {
            return Err(ParseError::at(
                line,
                format!("aliases make the document larger by more than {MAX_COPIED} bytes"),
            ));
        }
        Ok(())
    }

    fn add(&mut self, Done { node, cost, anchor }: Done) -> Result<(), ParseError> {
        if anchor != 0 {
            self.pay(cost, usize::try_from(node.line).unwrap_or(0))?;
            self.anchors.insert(anchor, (node.clone(), cost));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        parent.cost += cost;
        match &mut parent.kind {
            OpenKind::List(items) => items.push(node),
            OpenKind::Map(mapping) => match mapping.next.take() {
                None => mapping.next = Some(Next::Key(key(node)?)),
                Some(Next::Key(key)) => mapping.set(key, node, true)?,
                Some(Next::Merge(line)) => mapping.merge(node, line)?,
            },
        }
        Ok(())
    }
}

fn too_deep(line: usize) -> ParseError {
    ParseError::at(line, format!("nested deeper than {MAX_DEPTH} levels"))
}
