//! JSON read quickly where that is safe: what nobody wants is passed over by its brackets, the rest becomes a tree.
//!
//! In: JSON text. Out: the same tree that serde_json makes, less the members that were not wanted; or a borrowed slice.
//! Promises: linear time, no recursion while passing over, at most [`DEPTH`] levels of recursion in a tree. Whatever
//! looks unusual (escapes, odd numbers, deep nesting, a fault) is read by serde_json instead, so that its rules and its
//! messages hold; the one liberty is that what is passed over is checked for brackets, strings and stray bytes only.
//! serde_json alone took a third of the time of a review.

use serde_json::{Map, Number, Value};

/// Levels that are read here; serde_json reads up to 128.
const DEPTH: usize = 64;

/// What a reader has no use for, by place; lists stand for their elements.
#[derive(Debug)]
pub struct Unwanted {
    /// Keys that are left out at this place.
    pub members: &'static [&'static str],
    /// The one of them whose text the reader keeps, should somebody want it after all.
    pub kept: Option<&'static str>,
    /// What is left out further in, by key.
    pub within: &'static [(&'static str, &'static Unwanted)],
    /// The member whose presence at this place marks the document.
    pub mark: Option<&'static str>,
    /// Nothing is left out here, nor further in, of a document that is marked.
    pub unless_marked: bool,
    /// The objects at this place that are wanted, by their member `name`; the others are left empty.
    pub named: Option<&'static [&'static str]>,
}

impl Unwanted {
    /// Nothing.
    pub const NOTHING: Self =
        Self { members: &[], kept: None, within: &[], mark: None, unless_marked: false, named: None };
}

/// Nothing is left out.
pub const ALL_WANTED: &Unwanted = &Unwanted::NOTHING;

/// `text` as a tree, without what is `unwanted`.
///
/// # Errors
/// As serde_json has it.
pub fn tree(text: &str, unwanted: &'static Unwanted) -> serde_json::Result<Value> {
    let mut reader = Reader::new(text);
    match reader.value(unwanted, 0).filter(|_| reader.ended()) {
        Some(value) => Ok(value),
        None => serde_json::from_str(text),
    }
}

/// A value that was read.
#[derive(Debug)]
pub struct Tree<'t> {
    /// The value, less what was unwanted.
    pub value: Value,
    /// All of its text.
    pub text: &'t str,
    /// The text of the unwanted member that is kept, the last one where it stands twice.
    pub kept: Option<&'t str>,
}

/// Reads forward through a text; `None` from any step means "not here": the caller falls back to serde_json.
#[derive(Debug)]
pub struct Reader<'t> {
    text: &'t str,
    at: usize,
    kept: Option<&'t str>,
    /// The document is marked.
    marked: bool,
    /// Something was left out that is not left out of a document that is marked.
    trimmed: bool,
}

/// What a byte outside strings means to a reader that counts brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// White space, comma, colon, numbers, and the letters of the three words.
    Filling,
    Quote,
    Open,
    Close,
    Stray,
}

/// The class of each byte.
const OUTSIDE: [Class; 256] = {
    let mut table = [Class::Stray; 256];
    let filling = b" \t\r\n,:0123456789+-.eEtrufalsn";
    let mut index = 0;
    while index < filling.len() {
        table[filling[index] as usize] = Class::Filling;
        index += 1;
    }
    table[b'"' as usize] = Class::Quote;
    table[b'{' as usize] = Class::Open;
    table[b'[' as usize] = Class::Open;
    table[b'}' as usize] = Class::Close;
    table[b']' as usize] = Class::Close;
    table
};
/// What ends a number or a word.
const ENDS: &[u8] = b", \t\r\n:";

/// The place behind the list, object or string that begins at `at`.
fn past(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    loop {
        let class = OUTSIDE[usize::from(*bytes.get(at)?)];
        at += 1;
        match class {
            Class::Filling => continue,
            Class::Quote => loop {
                at += plain(bytes.get(at..)?);
                match bytes.get(at)? {
                    b'"' => break at += 1,
                    b'\\' => at += 2,
                    _ => return None,
                }
            },
            Class::Open => depth += 1,
            Class::Close => depth = depth.checked_sub(1)?,
            Class::Stray => return None,
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

impl<'t> Reader<'t> {
    /// At the beginning of `text`.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, kept: None, marked: false, trimmed: false }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is no white space, not taken.
    pub fn token(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    /// Takes `byte`, after white space.
    pub fn take(&mut self, byte: u8) -> Option<()> {
        (self.token()? == byte).then(|| self.at += 1)
    }

    /// Nothing but white space is left.
    pub fn ended(&mut self) -> bool {
        self.token().is_none()
    }

    /// The key of the next member of an object whose bracket, or whose comma, was taken; the colon is taken, too.
    pub fn key(&mut self) -> Option<&'t str> {
        let key = self.string()?;
        self.take(b':')?;
        Some(key)
    }

    /// After a member or element: true when another one follows, false when `close` was taken.
    pub fn more(&mut self, close: u8) -> Option<bool> {
        let byte = self.token()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            byte if byte == close => Some(false),
            _ => None,
        }
    }

    /// After an opening bracket: true when `close` follows at once, which is then taken.
    pub fn empty(&mut self, close: u8) -> Option<bool> {
        let empty = self.token()? == close;
        self.at += usize::from(empty);
        Some(empty)
    }

    /// A string without escapes.
    pub fn string(&mut self) -> Option<&'t str> {
        self.take(b'"')?;
        let begin = self.at;
        let end = begin + plain(&self.text.as_bytes()[begin..]);
        self.at = end + 1;
        (self.text.as_bytes().get(end) == Some(&b'"')).then(|| &self.text[begin..end])
    }

    /// Passes over a value; its text.
    pub fn skip(&mut self) -> Option<&'t str> {
        let first = self.token()?;
        let begin = self.at;
        if !matches!(first, b'{' | b'[' | b'"') {
            // A number or a word: up to what ends it.
            while self.peek().is_some_and(|byte| OUTSIDE[usize::from(byte)] == Class::Filling && !ENDS.contains(&byte))
            {
                self.at += 1;
            }
            let word = &self.text[begin..self.at];
            return serde_json::from_str::<serde::de::IgnoredAny>(word).is_ok().then_some(word);
        }
        self.at = past(self.text.as_bytes(), begin)?;
        self.text.get(begin..self.at)
    }

    /// A value as a tree without what is `unwanted`; nothing is taken when it is unusual.
    pub fn tree(&mut self, unwanted: &'static Unwanted) -> Option<Tree<'t>> {
        self.token()?;
        let begin = self.at;
        (self.kept, self.marked, self.trimmed) = (None, false, false);
        let value = self.value(unwanted, 0);
        if value.is_none() {
            self.at = begin;
        }
        Some(Tree { value: value?, text: self.text.get(begin..self.at)?, kept: self.kept })
    }

    fn value(&mut self, unwanted: &'static Unwanted, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        match self.token()? {
            b'"' => Some(Value::String(self.text_of_string()?)),
            b'{' => self.object(unwanted, depth),
            b'[' => self.array(unwanted, depth),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            _ => self.number().map(Value::Number),
        }
    }

    fn object(&mut self, unwanted: &'static Unwanted, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut members = Map::new();
        if self.empty(b'}')? || (unwanted.named.is_some() && self.pass_over_unnamed(unwanted)?) {
            return Some(Value::Object(members));
        }
        loop {
            self.token()?;
            let key = self.text_of_string()?;
            self.take(b':')?;
            if unwanted.mark == Some(key.as_str()) {
                self.marked = true;
                if self.trimmed {
                    return None;
                }
            }
            if unwanted.members.contains(&key.as_str()) {
                let text = self.skip()?;
                if unwanted.kept == Some(key.as_str()) {
                    self.kept = Some(text);
                }
            } else {
                let within = self.within(unwanted, &key);
                if within.kept.is_some() {
                    // A member that stands twice is the later one, and so is what it holds.
                    self.kept = None;
                }
                let value = self.value(within, depth + 1)?;
                members.insert(key, value);
            }
            if !self.more(b'}')? {
                return Some(Value::Object(members));
            }
        }
    }

    /// What is unwanted further in.
    fn within(&mut self, unwanted: &'static Unwanted, key: &str) -> &'static Unwanted {
        match unwanted.within.iter().find(|(name, _)| *name == key) {
            Some((_, within)) if !within.unless_marked => within,
            Some((_, within)) if !self.marked => {
                self.trimmed = true;
                within
            }
            _ => ALL_WANTED,
        }
    }

    /// Behind the bracket of an object that begins with its name: passes over the rest of it when nobody wants one of
    /// that name. Everything else is read as usual.
    fn pass_over_unnamed(&mut self, unwanted: &Unwanted) -> Option<bool> {
        let begin = self.at;
        let first = if self.token()? == b'"' { self.string() } else { None };
        if first == Some("name") && self.take(b':').is_some() && self.token()? == b'"' {
            let name = self.string();
            if name.is_some_and(|name| unwanted.named.is_some_and(|wanted| !wanted.contains(&name))) {
                while self.more(b'}')? {
                    // A name that stands twice is the later one.
                    if self.key()? == "name" {
                        return None;
                    }
                    self.skip()?;
                }
                return Some(true);
            }
        }
        self.at = begin;
        Some(false)
    }

    fn array(&mut self, unwanted: &'static Unwanted, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut elements = Vec::new();
        if self.empty(b']')? {
            return Some(Value::Array(elements));
        }
        loop {
            elements.push(self.value(unwanted, depth + 1)?);
            if !self.more(b']')? {
                return Some(Value::Array(elements));
            }
        }
    }

    /// A string, escapes included.
    fn text_of_string(&mut self) -> Option<String> {
        let begin = self.at;
        if let Some(plain) = self.string() {
            return Some(plain.to_owned());
        }
        self.at = begin;
        let quoted = self.skip()?;
        serde_json::from_str(quoted).ok()
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        let rest = self.text.as_bytes().get(self.at..self.at + word.len())?;
        self.at += word.len();
        (rest == word.as_bytes()).then_some(value)
    }

    fn number(&mut self) -> Option<Number> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) {
            self.at += 1;
        }
        let digits = &self.text[begin..self.at];
        let simple = digits.len() <= 18 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if simple && (digits == "0" || !digits.starts_with('0')) {
            return digits.parse::<u64>().ok().map(Number::from);
        }
        serde_json::from_str(digits).ok()
    }
}

/// How many bytes of a string stand before its end, an escape, or a control character; eight at a time.
fn plain(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let escape = word ^ (ONES * b'\\' as u64);
        // The lowest marked byte is exact in each of the three; higher ones may be marked by a borrow, and do not count.
        let hit = ((word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (escape.wrapping_sub(ONES) & !escape))
            & HIGH;
        if hit != 0 {
            return index * 8 + (hit.trailing_zeros() / 8) as usize;
        }
    }
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    chunks.len() * 8 + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Takes members that are null out of objects, at any depth.
pub fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
