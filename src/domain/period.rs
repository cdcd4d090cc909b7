//! Lengths of time as Go writes them (`1h30m`, `90s`, `1.5m`), which is how objects of the group name a period.
//!
//! In: a text that anybody may have written. Out: its length, or nothing. Promise: what Go's parser takes is taken and no more, but for
//! lengths of more than 292 years, which count as none.

use std::time::Duration;

/// The units, in nanoseconds; a unit that begins another one stands behind it.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    // With the micro sign, and with the Greek letter.
    ("\u{b5}s", 1e3),
    ("\u{3bc}s", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// Longest text that is read; nobody needs more to say a length.
const LONGEST: usize = 64;

/// A length of time, which may be negative: its sign and its size.
#[must_use]
pub fn parse(text: &str) -> Option<(bool, Duration)> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.len() > LONGEST || rest.is_empty() {
        return None;
    }
    if rest == "0" {
        return Some((negative, Duration::ZERO));
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|sign: char| !sign.is_ascii_digit() && sign != '.').filter(|end| *end > 0)?;
        let (number, behind) = rest.split_at(digits);
        // A point alone is no number, and neither are two of them.
        let number: f64 = number.strip_suffix('.').filter(|whole| !whole.is_empty()).unwrap_or(number).parse().ok()?;
        let end = behind.find(|sign: char| sign.is_ascii_digit() || sign == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, size) = UNITS.iter().find(|(known, _)| *known == unit)?;
        total += number * size;
        rest = behind;
    }
    let most = Duration::from_nanos(i64::MAX.unsigned_abs());
    Duration::try_from_secs_f64(total / 1e9).ok().filter(|length| *length <= most).map(|length| (negative, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_go_takes_is_taken_and_nothing_else() {
        let seconds = |number: f64| Some((false, Duration::from_secs_f64(number)));
        for (text, wanted) in [
            ("30s", seconds(30.0)),
            ("1h30m", seconds(5400.0)),
            ("1.5m", seconds(90.0)),
            (".5s", seconds(0.5)),
            ("5.s", seconds(5.0)),
            ("+1m", seconds(60.0)),
            ("-5s", Some((true, Duration::from_secs(5)))),
            ("0", seconds(0.0)),
            ("0s", seconds(0.0)),
            ("1ns", Some((false, Duration::from_nanos(1)))),
            ("1us", Some((false, Duration::from_micros(1)))),
            ("1\u{b5}s", Some((false, Duration::from_micros(1)))),
            ("1\u{3bc}s", Some((false, Duration::from_micros(1)))),
            ("2ms", Some((false, Duration::from_millis(2)))),
            ("1m1m", seconds(120.0)),
            ("", None),
            ("-", None),
            ("30", None),
            (".s", None),
            ("1..5s", None),
            ("s", None),
            ("1d", None),
            ("1 s", None),
            ("30S", None),
            ("1e3s", None),
            ("--1s", None),
            ("1s-", None),
            ("9999999999999999h", None),
            ("garbage", None),
        ] {
            assert_eq!(parse(text), wanted, "{text:?}");
        }
        assert_eq!(parse(&format!("{}s", "1".repeat(100))), None);
    }
}
