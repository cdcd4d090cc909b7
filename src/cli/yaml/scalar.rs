//! Which type a scalar without quotes has for kubectl: YAML 1.1 as its reader understands it.
//!
//! `yes` and `on` are true, `0644` and `0o644` are octal, `1_000` and `1e3` are 1000; times and dates are text.

use serde_json::{Number, Value};

/// The value of a plain scalar.
///
/// # Errors
/// A sentence, when the value has no JSON form.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".nan" | ".NaN" | ".NAN" => return Err(no_json_form(text)),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if ["inf", "Inf", "INF"].iter().any(|word| unsigned.strip_prefix('.') == Some(word)) {
        return Err(no_json_form(text));
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(Value::String(text.to_owned()));
    }
    let digits = text.replace('_', "");
    Ok(integer(&digits).or_else(|| float(&digits)).unwrap_or_else(|| Value::String(text.to_owned())))
}

fn no_json_form(text: &str) -> String {
    format!("{text} has no JSON form; write it in quotes if it is meant as text")
}

/// An integer of 64 bits in the notation of Go's literals.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let prefixed = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| digits.strip_prefix(prefix));
    let (radix, digits) = if let Some(digits) = prefixed(["0x", "0X"]) {
        (16, digits)
    } else if let Some(digits) = prefixed(["0o", "0O"]) {
        (8, digits)
    } else if let Some(digits) = prefixed(["0b", "0B"]) {
        (2, digits)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, digits)
    } else {
        (10, digits)
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let value = if negative { -magnitude } else { magnitude };
    i64::try_from(value).map(Value::from).or_else(|_| u64::try_from(value).map(Value::from)).ok()
}

/// A decimal number; one beyond what a float can hold is text.
fn float(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (digits, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && all_digits(exponent));
    let value = text.parse::<f64>().ok().filter(|value| is_number && value.is_finite())?;
    Some(Value::Number(number(value)?))
}

/// A float as kubectl sends it: one without a fraction is an integer, such as `1e3` and `1.0`.
pub(super) fn number(value: f64) -> Option<Number> {
    let whole = format!("{value}");
    let integer = whole.parse::<i64>().map(Number::from).or_else(|_| whole.parse::<u64>().map(Number::from));
    integer.ok().or_else(|| Number::from_f64(value))
}
