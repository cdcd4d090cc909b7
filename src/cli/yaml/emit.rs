//! A JSON value as block YAML, in the order a person wrote the keys.
//!
//! In: a value and, when there is one, the tree it came from. Out: text that every YAML 1.1 and 1.2 reader takes for the
//! same value: whatever one of them could read as something else is quoted, and numbers that did not change keep the digits in
//! which they were written. Lists stand at the indentation of their key, as in Kubernetes' own examples. JSON stays JSON.

use serde_json::{Map, Number, Value};

use super::tree::{Key, Node};

/// The value as a document, ending in a line feed.
#[must_use]
pub fn document(value: &Value, like: Option<&Node>) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => mapping(&mut out, map, like, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, like, 0),
        scalar_value => {
            inline(&mut out, scalar_value, like, 0);
            out.push('\n');
        }
    }
    out
}

/// The value as a JSON document without a line feed at its end, in the manner of `text`: on one line, or indented as there.
#[must_use]
pub fn json_document(value: &Value, like: Option<&Node>, text: &str) -> String {
    let indentation = text.trim().split_once('\n').map(|(_, rest)| {
        let width = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        if width == 0 { "  " } else { &rest[..width] }
    });
    let mut out = String::new();
    json(&mut out, value, like, (indentation, 1));
    out
}

fn json(out: &mut String, value: &Value, like: Option<&Node>, (indentation, level): (Option<&str>, usize)) {
    let line = |out: &mut String, level: usize| {
        if let Some(indentation) = indentation {
            out.push('\n');
            out.extend(std::iter::repeat_n(indentation, level));
        }
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('{');
            for (position, (key, value, node)) in ordered(map, like).into_iter().enumerate() {
                out.push_str(if position > 0 { "," } else { "" });
                line(out, level);
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push_str(if indentation.is_some() { ": " } else { ":" });
                json(out, value, node.map(|(_, node)| node), (indentation, level + 1));
            }
            line(out, level - 1);
            out.push('}');
        }
        Value::Array(items) if !items.is_empty() => {
            let known = like.map_or(&[][..], Node::items);
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                out.push_str(if position > 0 { "," } else { "" });
                line(out, level);
                json(out, item, twin(item, known, position), (indentation, level + 1));
            }
            line(out, level - 1);
            out.push(']');
        }
        other => {
            let spelled = like.and_then(|node| node.spelled(other));
            // What was YAML in braces may have numbers that JSON has not.
            match spelled.filter(|spelled| serde_json::from_str::<Number>(spelled).is_ok()) {
                Some(spelled) => out.push_str(spelled),
                None => out.push_str(&other.to_string()),
            }
        }
    }
}

/// A member of a mapping, with what it was.
type Member<'a> = (&'a String, &'a Value, Option<&'a (Key, Node)>);

/// The keys in the order of `like`; what `like` does not have follows, sorted, a name ahead of all.
fn ordered<'a>(map: &'a Map<String, Value>, like: Option<&'a Node>) -> Vec<Member<'a>> {
    let known = like.map_or(&[][..], Node::entries);
    let mut out: Vec<_> = known
        .iter()
        .filter_map(|entry| map.get_key_value(&entry.0.text).map(|(name, value)| (name, value, Some(entry))))
        .collect();
    let added = map.iter().filter(|(name, _)| !known.iter().any(|(key, _)| key.text == **name));
    let (named, others): (Vec<_>, Vec<_>) = added.partition(|(name, _)| name.as_str() == "name");
    out.extend(named.into_iter().chain(others).map(|(name, value)| (name, value, None)));
    out
}

fn mapping(out: &mut String, map: &Map<String, Value>, like: Option<&Node>, indent: usize) {
    for (position, (key, value, entry)) in ordered(map, like).into_iter().enumerate() {
        if position > 0 || !out.ends_with("- ") {
            pad(out, indent);
        }
        match entry.and_then(|(key, _)| key.spelled.as_deref()) {
            Some(spelled) => out.push_str(spelled),
            None => out.push_str(&scalar(key)),
        }
        out.push(':');
        below_key(out, value, entry.map(|(_, node)| node), indent);
    }
}

fn below_key(out: &mut String, value: &Value, like: Option<&Node>, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            mapping(out, map, like, indent + 2);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            sequence(out, items, like, indent);
        }
        other => {
            out.push(' ');
            inline(out, other, like, indent + 2);
            out.push('\n');
        }
    }
}

fn sequence(out: &mut String, items: &[Value], like: Option<&Node>, indent: usize) {
    let known = like.map_or(&[][..], Node::items);
    for (position, item) in items.iter().enumerate() {
        if position > 0 || !out.ends_with("- ") {
            pad(out, indent);
        }
        out.push_str("- ");
        let node = twin(item, known, position);
        match item {
            Value::Object(map) if !map.is_empty() => mapping(out, map, node, indent + 2),
            Value::Array(inner) if !inner.is_empty() => sequence(out, inner, node, indent + 2),
            other => {
                inline(out, other, node, indent + 2);
                out.push('\n');
            }
        }
    }
}

/// The item of the original that this one was: the one of the same name, else the one in the same place.
fn twin<'a>(item: &Value, known: &'a [Node], position: usize) -> Option<&'a Node> {
    let Some(name) = item.get("name") else { return known.get(position) };
    known.iter().find(|node| node.get("name").is_some_and(|known_name| known_name.to_json() == *name))
}

fn inline(out: &mut String, value: &Value, like: Option<&Node>, indent: usize) {
    if let Some(spelled) = like.and_then(|node| node.spelled(value)).filter(|spelled| !spelled.is_empty()) {
        return out.push_str(spelled);
    }
    match value {
        Value::String(text) => match literal(text, indent) {
            Some(block) => out.push_str(&block),
            None => out.push_str(&scalar(text)),
        },
        other => out.push_str(&other.to_string()),
    }
}

/// A text of several lines as a literal block, when that can express it.
fn literal(text: &str, indent: usize) -> Option<String> {
    let body = text.trim_end_matches('\n');
    let trailing = text.len() - body.len();
    let expressible = body.contains('\n') || (trailing > 0 && !body.is_empty());
    let plain_lines = !body.starts_with([' ', '\n', '\t'])
        && body.lines().all(|line| !line.ends_with([' ', '\t']))
        && body.chars().all(|c| c == '\n' || c == '\t' || is_printable(c));
    if !expressible || !plain_lines {
        return None;
    }
    let mut out = String::from(match trailing {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            pad(&mut out, indent);
            out.push_str(line);
        }
    }
    // The caller ends the line; `|+` keeps every further line feed.
    out.extend(std::iter::repeat_n('\n', trailing.saturating_sub(1)));
    Some(out)
}

/// The text plain where nothing else could be read into it, quoted otherwise.
#[must_use]
pub fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xffff => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

fn is_printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Words that some reader takes for a boolean or for nothing.
const WORDS: &[&str] = &["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];

fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else { return false };
    let starts_plain = first.is_alphabetic() || matches!(first, '/' | '_' | '$' | '(');
    // What begins like a number stays plain only with a letter that no number has, such as in `500m`.
    let starts_number = first.is_ascii_digit()
        && text.chars().any(|c| matches!(c, 'g'..='n' | 'p'..='w' | 'z' | 'G'..='N' | 'P'..='W' | 'Z'));
    // A date with a time has letters, too, and is no text to YAML 1.1.
    let is_date =
        text.len() > 4 && text.bytes().take(4).all(|byte| byte.is_ascii_digit()) && text.as_bytes()[4] == b'-';
    (starts_plain || (starts_number && !is_date))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        && text.chars().all(is_printable)
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}
