//! Reading JSON strictly. Recursion is bounded by [`limits::DEPTH`], work by the number of bytes.

use super::{JsonFault, Members, Value};
use crate::{limits, shown};

/// The one value in `bytes`, of at most `most` bytes.
pub(crate) fn read(bytes: &[u8], most: usize) -> Result<Value, JsonFault> {
    if bytes.len() > most {
        return Err(JsonFault::TooLarge { bytes: bytes.len(), most });
    }
    let text = std::str::from_utf8(bytes).map_err(|fault| JsonFault::NotUtf8 { at: fault.valid_up_to() })?;
    let mut reader = Reader { text, at: 0, values: 0 };
    let value = reader.value(1)?;
    reader.space();
    if reader.at == text.len() { Ok(value) } else { Err(reader.wanted("the end")) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    values: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wanted(&self, wanted: &'static str) -> JsonFault {
        JsonFault::Syntax { at: self.at, wanted }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, JsonFault> {
        self.values += 1;
        if self.values > limits::VALUES {
            return Err(JsonFault::TooManyValues);
        }
        self.space();
        match self.peek() {
            Some(b'{' | b'[') if depth > limits::DEPTH => Err(JsonFault::TooDeep { at: self.at }),
            Some(b'{') => self.object(depth).map(Value::Object),
            Some(b'[') => self.list(depth).map(Value::List),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            _ => {
                let words = [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
                let rest = &self.text[self.at..];
                let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
                let (word, value) = found.ok_or_else(|| self.wanted("a value"))?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Members, JsonFault> {
        let mut members = Members::new();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            self.space();
            let at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wanted("a member's name"));
            }
            let name = self.string()?;
            self.space();
            if !self.take(b':') {
                return Err(self.wanted("a colon"));
            }
            if members.contains_key(&name) {
                return Err(JsonFault::Duplicate { name: shown(&name), at });
            }
            let value = self.value(depth + 1)?;
            members.insert(name, value);
            self.space();
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return Err(self.wanted("a comma or the object's end"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Value>, JsonFault> {
        let mut list = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(list);
        }
        loop {
            list.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(list);
            }
            if !self.take(b',') {
                return Err(self.wanted("a comma or the list's end"));
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonFault> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | ..0x20)).unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                _ => return Err(self.wanted("a string's end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonFault> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek().ok_or_else(|| self.wanted("an escape"))?;
        self.at += 1;
        Ok(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four()?;
                let second = match first {
                    0xd800..0xdc00 if self.text[self.at..].starts_with("\\u") => {
                        self.at += 2;
                        Some(self.four()?)
                    }
                    _ => None,
                };
                let units = std::iter::once(first).chain(second);
                let mut chars = char::decode_utf16(units);
                match (chars.next(), chars.next()) {
                    (Some(Ok(char)), None) => char,
                    _ => return Err(JsonFault::LoneSurrogate { at: start }),
                }
            }
            _ => {
                self.at = start;
                return Err(self.wanted("an escape"));
            }
        })
    }

    fn four(&mut self) -> Result<u16, JsonFault> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or_else(|| self.wanted("four hex digits"))?;
        let mut unit = 0;
        for digit in digits {
            let digit = char::from(*digit).to_digit(16).ok_or_else(|| self.wanted("four hex digits"))?;
            unit = unit * 16 + u16::try_from(digit).unwrap_or_default();
        }
        self.at += 4;
        Ok(unit)
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.wanted("a digit")) }
    }

    fn number(&mut self) -> Result<f64, JsonFault> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits()?;
        }
        let number: f64 = self.text[start..self.at].parse().map_err(|_| JsonFault::NumberRange { at: start })?;
        if number.is_finite() { Ok(number) } else { Err(JsonFault::NumberRange { at: start }) }
    }
}
