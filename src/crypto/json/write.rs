//! Writing JSON canonically: RFC 8785, and the form that Go's `encoding/json` gives to sorted maps.

use super::{Members, Value};

/// Which canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// RFC 8785: names by UTF-16 units, nothing escaped without need, `0` for minus zero.
    Jcs,
    /// Names by bytes; `<`, `>`, `&`, U+2028 and U+2029 escaped; `-0` for minus zero.
    Go,
}

/// `value` in its one canonical form.
pub(crate) fn write(value: &Value, style: Style) -> Vec<u8> {
    let mut out = String::with_capacity(4096);
    put(value, style, &mut out);
    out.into_bytes()
}

fn put(value: &Value, style: Style, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => put_number(*number, style, out),
        Value::Text(text) => put_text(text, style, out),
        Value::List(list) => {
            out.push('[');
            for (index, element) in list.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                put(element, style, out);
            }
            out.push(']');
        }
        Value::Object(members) => put_object(members, style, out),
    }
}

fn put_object(members: &Members, style: Style, out: &mut String) {
    let mut sorted: Vec<_> = members.iter().collect();
    // The two orders differ only where names go beyond the surrogates.
    if style == Style::Jcs && !members.keys().all(|name| name.is_ascii()) {
        sorted.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    }
    out.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        put_text(name, style, out);
        out.push(':');
        put(value, style, out);
    }
    out.push('}');
}

fn put_text(text: &str, style: Style, out: &mut String) {
    out.push('"');
    // What needs no escape is copied as it stands: 0xe2 begins the two line ends that Go escapes.
    let plain = |byte: u8| match byte {
        ..0x20 | b'"' | b'\\' => false,
        b'<' | b'>' | b'&' | 0xe2 => style == Style::Jcs,
        _ => true,
    };
    let mut rest = text;
    loop {
        let run = rest.bytes().position(|byte| !plain(byte)).unwrap_or(rest.len());
        let (before, after) = rest.split_at(run);
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            None => break,
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            Some(char @ ('\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}')) => put_escape(char, out),
            Some(char) => out.push(char),
        }
        rest = chars.as_str();
    }
    out.push('"');
}

fn put_escape(char: char, out: &mut String) {
    out.push_str("\\u");
    let unit = u32::from(char);
    out.extend([12, 8, 4, 0].into_iter().filter_map(|shift| char::from_digit((unit >> shift) & 15, 16)));
}

/// ECMAScript's `Number::toString`: the shortest digits that are read as the same double, laid out as a browser does.
fn put_number(number: f64, style: Style, out: &mut String) {
    if number.is_sign_negative() && (number != 0.0 || style == Style::Go) {
        out.push('-');
    }
    let number = number.abs();
    let mut shortest = format!("{number:e}");
    // Of several shortest texts the nearest counts, and of two equally near ones the even: rounding to that many digits gives it.
    let places = shortest.find('e').unwrap_or_default().saturating_sub(2);
    let nearest = format!("{number:.places$e}");
    if nearest.parse() == Ok(number) {
        shortest = nearest;
    }
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    match usize::try_from(point) {
        Ok(_) if count <= point && point <= 21 => {
            out.push_str(&digits);
            out.push_str(&zeros(point - count));
        }
        Ok(before @ 1..=21) => {
            out.push_str(&digits[..before]);
            out.push('.');
            out.push_str(&digits[before..]);
        }
        _ if -6 < point && point <= 0 => {
            out.push_str("0.");
            out.push_str(&zeros(-point));
            out.push_str(&digits);
        }
        _ => {
            out.push_str(&digits[..1]);
            if count > 1 {
                out.push('.');
                out.push_str(&digits[1..]);
            }
            out.push_str(if point > 0 { "e+" } else { "e-" });
            out.push_str(&(point - 1).unsigned_abs().to_string());
        }
    }
}
