//! From parser events to one [`Node`], within limits.
//!
//! Iterative, so that nesting costs heap and not stack. An anchor can be referred to once its node is complete, so
//! no value contains itself; each copy is paid for before it is made.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, Tag};

use super::{Content, Entry, MAX_DEPTH, MAX_EXPANDED, Node, VALUE_COST, YamlError, scalar};

/// A collection that is still open.
struct Open {
    line: usize,
    anchor: usize,
    /// What it takes so far, in bytes.
    cost: usize,
    kind: Kind,
}

enum Kind {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, seen: HashSet<String>, key: Option<(String, usize)> },
}

/// A complete value and what it takes, in bytes.
struct Done {
    node: Node,
    cost: usize,
    anchor: usize,
    /// Its spelling and whether it can be a key.
    key: Option<String>,
}

#[derive(Default)]
struct Composer {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    total: usize,
    root: Option<Node>,
    /// Merge keys are keys like any other.
    merges: bool,
}

/// The document in `text`, with or without merge keys.
pub(super) fn document(text: &str, merges: bool) -> Result<Node, YamlError> {
    let mut composer = Composer { merges, ..Composer::default() };
    let mut documents = 0_usize;
    let options = granit_parser::options! { emit_comments: false };
    for next in Parser::new_from_str_with_options(text, options) {
        let (event, span) = next.map_err(|error| YamlError::at(error.marker().line(), error.info()))?;
        let line = span.start.line();
        match event {
            Event::DocumentStart(..) => {
                documents += 1;
                if documents > 1 {
                    return Err(YamlError::at(line, "a second document begins here; exactly one is read"));
                }
            }
            Event::Scalar(text, style, anchor, tag) => composer.scalar(&text, style, (anchor, tag.as_deref()), line)?,
            Event::SequenceStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "seq", line)?;
                composer.open(Kind::List(Vec::new()), anchor, line)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                collection_tag(tag.as_deref(), "map", line)?;
                let kind = Kind::Map { entries: Vec::new(), seen: HashSet::new(), key: None };
                composer.open(kind, anchor, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => composer.close()?,
            Event::Alias(anchor) => composer.alias(anchor, line)?,
            _ => {}
        }
    }
    Ok(composer.root.unwrap_or(Node { line: 1, content: Content::Null }))
}

fn collection_tag(tag: Option<&Tag>, expected: &str, line: usize) -> Result<(), YamlError> {
    match tag {
        Some(tag) if !tag.is_yaml_core_schema_tag(expected) && tag.original() != "!" => Err(unknown_tag(tag, line)),
        _ => Ok(()),
    }
}

fn unknown_tag(tag: &Tag, line: usize) -> YamlError {
    YamlError::at(line, format!("tag {} does not belong to the core schema of YAML 1.2", tag.original()))
}

fn typed(text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Content, YamlError> {
    let Some(tag) = tag else {
        return match style {
            ScalarStyle::Plain => scalar::resolve(text).map_err(|message| YamlError::at(line, message)),
            _ => Ok(Content::Text(text.to_owned())),
        };
    };
    if tag.is_yaml_core_schema_tag("str") || tag.original() == "!" {
        return Ok(Content::Text(text.to_owned()));
    }
    let resolved = match tag.core_suffix() {
        Some("int") if scalar::is_integer(text) => scalar::integer(text).map(Content::Number),
        Some("float") if scalar::is_float(text) => scalar::float(text).map(Content::Number),
        Some("bool" | "null") => scalar::resolve(text),
        Some("int" | "float") => Ok(Content::Text(text.to_owned())),
        _ => return Err(unknown_tag(tag, line)),
    }
    .map_err(|message| YamlError::at(line, message))?;
    let fits = matches!(
        (tag.core_suffix(), &resolved),
        (Some("int" | "float"), Content::Number(_)) | (Some("bool"), Content::Bool(_)) | (Some("null"), Content::Null)
    );
    if fits {
        Ok(resolved)
    } else {
        Err(YamlError::at(line, format!("{text:?} is not a value of tag {}", tag.original())))
    }
}

impl Composer {
    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        (anchor, tag): (usize, Option<&Tag>),
        line: usize,
    ) -> Result<(), YamlError> {
        // A key is its spelling: `8080: x` and `on: x` have the keys "8080" and "on", as JSON needs them.
        let key = (style != ScalarStyle::Plain || !text.is_empty()).then(|| text.to_owned());
        if !self.merges && self.expects_key() && style == ScalarStyle::Plain && tag.is_none() && text == "<<" {
            return Err(YamlError::at(line, "merge keys (<<) do not belong to YAML 1.2; write the entries out"));
        }
        let content = if self.expects_key() { Content::Text(text.to_owned()) } else { typed(text, style, tag, line)? };
        let cost = VALUE_COST + text.len();
        self.pay(cost, line)?;
        self.add(Done { node: Node { line, content }, cost, anchor, key })
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<(), YamlError> {
        let Some((node, cost)) = self.anchors.get(&anchor) else {
            return Err(YamlError::at(line, "an alias refers to a value that contains it"));
        };
        let (cost, depth) = (*cost, self.open.len() + depth(node));
        self.pay(cost, line)?;
        if depth > MAX_DEPTH {
            return Err(too_deep(line));
        }
        let Some((node, _)) = self.anchors.get(&anchor).cloned() else { return Ok(()) };
        let key = match &node.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.add(Done { node, cost, anchor: 0, key })
    }

    fn open(&mut self, kind: Kind, anchor: usize, line: usize) -> Result<(), YamlError> {
        if self.expects_key() {
            return Err(YamlError::at(line, "a key must be a string, not a list or mapping"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep(line));
        }
        self.pay(VALUE_COST, line)?;
        self.open.push(Open { line, anchor, cost: VALUE_COST, kind });
        Ok(())
    }

    fn close(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let content = match open.kind {
            Kind::List(items) => Content::List(items),
            Kind::Map { entries, .. } => Content::Map(entries),
        };
        let node = Node { line: open.line, content };
        self.add(Done { node, cost: open.cost, anchor: open.anchor, key: None })
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: Kind::Map { key: None, .. }, .. }))
    }

    fn pay(&mut self, cost: usize, line: usize) -> Result<(), YamlError> {
        self.total = self.total.saturating_add(cost);
        if self.total > MAX_EXPANDED {
            let message = format!("the document takes more than {MAX_EXPANDED} bytes once its aliases are expanded");
            return Err(YamlError::at(line, message));
        }
        Ok(())
    }

    fn add(&mut self, done: Done) -> Result<(), YamlError> {
        if done.anchor != 0 {
            self.pay(done.cost, done.node.line)?;
            self.anchors.insert(done.anchor, (done.node.clone(), done.cost));
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(done.node);
            return Ok(());
        };
        parent.cost += done.cost;
        match &mut parent.kind {
            Kind::List(items) => items.push(done.node),
            Kind::Map { entries, seen, key } => match key.take() {
                Some((key, line)) => entries.push(Entry { key, line, value: done.node }),
                None => {
                    let line = done.node.line;
                    let text = done.key.ok_or_else(|| YamlError::at(line, "a key must be a string"))?;
                    if !seen.insert(text.clone()) {
                        return Err(YamlError::at(line, format!("key {text:?} occurs twice")));
                    }
                    *key = Some((text, line));
                }
            },
        }
        Ok(())
    }
}

fn too_deep(line: usize) -> YamlError {
    YamlError::at(line, format!("nested deeper than {MAX_DEPTH} levels"))
}

/// Levels of collections in a node; bounded by [`MAX_DEPTH`], because it was composed within it.
fn depth(node: &Node) -> usize {
    match &node.content {
        Content::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Content::Map(entries) => 1 + entries.iter().map(|entry| depth(&entry.value)).max().unwrap_or(0),
        _ => 0,
    }
}
