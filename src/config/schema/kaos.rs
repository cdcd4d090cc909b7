//! Values of the keys below `kaos`: JSON in, typed value or a sentence out.

use serde_json::Value;

use super::read;
use super::walk::Problem;
use crate::api::syntax;
use crate::workloads::kaos::settings::LogLevel;

type Read<T> = Result<T, Problem>;

pub(super) fn log_level(value: &Value) -> Read<LogLevel> {
    read::choice(value, &LogLevel::ALL)
}

pub(super) fn namespace(value: &Value) -> Read<Option<String>> {
    let name = read::word(value)?;
    if syntax::is_label(&name) {
        Ok(Some(name))
    } else {
        Err(format!("{name:?} is not the name of a namespace").into())
    }
}

pub(super) fn gateway(value: &Value) -> Read<String> {
    let name = read::word(value)?;
    if syntax::is_subdomain(&name) { Ok(name) } else { Err(format!("{name:?} is not the name of a Gateway").into()) }
}

pub(super) fn domain(value: &Value) -> Read<String> {
    let name = read::word(value)?;
    if syntax::is_subdomain(&name) { Ok(name) } else { Err(format!("{name:?} is not the domain of a cluster").into()) }
}

/// A duration of Gateway API: up to four numbers of up to five digits, each with `h`, `m`, `s` or `ms`.
pub(super) fn timeout(value: &Value) -> Read<String> {
    let text = read::word(value)?;
    let (mut rest, mut parts) = (&*text, 0);
    while !rest.is_empty() && parts < 5 {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit = ["ms", "h", "m", "s"].into_iter().find(|unit| rest[digits..].starts_with(unit));
        let Some(unit) = unit.filter(|_| (1..=5).contains(&digits)) else { break };
        rest = &rest[digits + unit.len()..];
        parts += 1;
    }
    if rest.is_empty() && (1..=4).contains(&parts) {
        Ok(text)
    } else {
        Err(format!("{text:?} is not a duration of Gateway API, such as 300s, 5m or 1h30m").into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::timeout;

    #[test]
    fn a_timeout_is_one_that_gateway_api_takes() {
        for (text, is) in [
            ("300s", true),
            ("1h30m", true),
            ("0s", true),
            ("500ms", true),
            ("1h1m1s1ms", true),
            ("abc", false),
            ("1.5s", false),
            ("1000000s", false),
            ("5", false),
            ("1s1s1s1s1s", false),
        ] {
            assert_eq!(timeout(&json!(text)).is_ok(), is, "{text}");
        }
    }
}
