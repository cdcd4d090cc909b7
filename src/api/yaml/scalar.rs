//! The core schema of YAML 1.2.2 (10.3.2): which type a scalar without quotes has.

use serde_json::Number;

use super::Content;

/// The type and value of a plain scalar.
///
/// # Errors
/// A sentence, when the value has no exact JSON form: an integer beyond 64 bits, an infinite or undefined float.
pub(super) fn resolve(text: &str) -> Result<Content, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Content::Null),
        "true" | "True" | "TRUE" => return Ok(Content::Bool(true)),
        "false" | "False" | "FALSE" => return Ok(Content::Bool(false)),
        _ => {}
    }
    if is_integer(text) {
        return integer(text).map(Content::Number);
    }
    if is_float(text) {
        return float(text).map(Content::Number);
    }
    Ok(Content::Text(text.to_owned()))
}

/// An integer in decimal, `0o` or `0x` form.
pub(super) fn is_integer(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn integer(text: &str) -> Result<Number, String> {
    let (digits, radix) = match text.get(..2) {
        Some("0o") => (&text[2..], 8),
        Some("0x") => (&text[2..], 16),
        _ => (text, 10),
    };
    i64::from_str_radix(digits, radix)
        .map(Number::from)
        .or_else(|_| u64::from_str_radix(digits, radix).map(Number::from))
        .map_err(|_| format!("{text} does not fit 64 bits and cannot be kept exactly; write it in quotes"))
}

/// A float in decimal form, or `.inf`, `-.inf`, `.nan`.
pub(super) fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let good_exponent = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    let good_mantissa = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    good_exponent && good_mantissa
}

pub(super) fn float(text: &str) -> Result<Number, String> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())
        .and_then(Number::from_f64)
        .ok_or_else(|| format!("{text} has no JSON form; write it in quotes if it is meant as text"))
}
