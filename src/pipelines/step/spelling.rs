//! Plain scalars that readers of YAML 1.1 and 1.2 disagree about.
//!
//! Upstream read these files as YAML 1.1: `yes` was true there and is a string here, `010` was 8 there. Nothing is
//! guessed: what changes a value silently is a fault, what merely looks odd is a note. Line and path tell where.

use granit_parser::{Event, Parser, ScalarStyle};

use super::Faults;
use crate::api::findings::Note;
use crate::domain::keys::KEY_TASK_SPEC;
use crate::domain::reason::Reason;

/// Booleans of YAML 1.1 that are strings in YAML 1.2.
const OLD_BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];

/// Where the walk stands in one collection.
enum Level {
    List(usize),
    /// The key whose value comes next, or none while a key is awaited.
    Map(Option<String>),
}

struct Walk {
    levels: Vec<Level>,
}

impl Walk {
    /// A value begins: true unless it is a key, which is then remembered.
    fn is_value(&mut self, text: Option<&str>) -> bool {
        match self.levels.last_mut() {
            Some(Level::Map(key @ None)) => {
                *key = Some(text.unwrap_or_default().to_owned());
                false
            }
            _ => true,
        }
    }

    /// A value is complete.
    fn done(&mut self) {
        match self.levels.last_mut() {
            Some(Level::Map(key)) => *key = None,
            Some(Level::List(index)) => *index += 1,
            None => {}
        }
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for level in &self.levels {
            match level {
                Level::List(index) => path.push_str(&format!("[{index}]")),
                Level::Map(Some(key)) if path.is_empty() => path.push_str(key),
                Level::Map(Some(key)) => path.push_str(&format!(".{key}")),
                Level::Map(None) => {}
            }
        }
        path
    }
}

/// Faults for values that would change, notes for values that look like something else. The text has been read as
/// one YAML document before.
pub(super) fn check(text: &str, config_map: &str, faults: &mut Faults) -> Vec<Note> {
    let mut walk = Walk { levels: Vec::new() };
    let mut notes = Vec::new();
    let options = granit_parser::options! { emit_comments: false };
    for next in Parser::new_from_str_with_options(text, options) {
        let Ok((event, span)) = next else { break };
        match event {
            Event::Scalar(value, style, _, tag) => {
                if !walk.is_value(Some(&value)) {
                    continue;
                }
                if style == ScalarStyle::Plain && tag.is_none() {
                    scalar(&value, &walk.path(), (span.start.line(), config_map), faults, &mut notes);
                }
                walk.done();
            }
            Event::Alias(_) if walk.is_value(None) => walk.done(),
            Event::SequenceStart(..) => {
                walk.is_value(None);
                walk.levels.push(Level::List(0));
            }
            Event::MappingStart(..) => {
                walk.is_value(None);
                walk.levels.push(Level::Map(None));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                walk.levels.pop();
                walk.done();
            }
            _ => {}
        }
    }
    notes
}

fn scalar(text: &str, path: &str, (line, config_map): (usize, &str), faults: &mut Faults, notes: &mut Vec<Note>) {
    let quoted = format!("write \"{text}\" in quotes if the text is meant");
    if OLD_BOOLEANS.contains(&text.to_ascii_lowercase().as_str()) {
        let path = format!("ConfigMap {config_map}: {path}");
        let told = format!("line {line}: {text} is a string here and a boolean to readers of YAML 1.1; {quoted}");
        notes.push(Note::new(Reason::SpellingAmbiguous, path, told));
        return;
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let octal = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if octal {
        let remedy = format!("{quoted}; write the number without the leading zero if a number is meant");
        let sentence = format!("line {line}: means one number to some readers of YAML and another one to others");
        faults.seeing(&place(path), sentence, &remedy, text);
        return;
    }
    let is_default = path.starts_with("params[") && path.contains("].default");
    if is_default && is_respelt(text) {
        let sentence = format!("line {line}: is a number without quotes and would be passed on in another spelling");
        faults.seeing(&place(path), sentence, &quoted, text);
    }
}

fn place(path: &str) -> String {
    if path.is_empty() { KEY_TASK_SPEC.to_owned() } else { path.to_owned() }
}

/// A number of the core schema whose JSON spelling is another one: `3.10`, `1e3`, `0x1F`, `+5`.
fn is_respelt(text: &str) -> bool {
    match crate::api::yaml::parse(text).map(|node| node.to_json()) {
        Ok(serde_json::Value::Number(number)) => number.to_string() != text,
        _ => false,
    }
}
