//! One function per type of value: JSON in, typed value or a sentence out. What a sentence quotes is without credentials in addresses.

use std::time::Duration;

use serde_json::Value;

use super::platform::{OnUpgrade, Repair};
use super::walk::{Problem, Step};
use crate::api::yaml::kind;
use crate::config::otlp;
use crate::config::resolved::{InboundExclusions, NativeSidecars, SpireSwitch, TraceProtocol};
use crate::domain::mode::Mode;
use crate::domain::userinfo::unread_without_userinfo;

/// Lowest port a process without privileges may open.
const LOWEST_PORT: u64 = 1024;
/// Largest user id Kubernetes accepts.
const HIGHEST_UID: i64 = i32::MAX as i64;

type Read<T> = Result<T, Problem>;

fn expected<T>(value: &Value, what: &str) -> Read<T> {
    Err(format!("{what} is expected, {} was found", found(value)).into())
}

fn found(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) | Value::Null => kind(value).to_owned(),
        Value::String(text) if text.parse::<f64>().is_ok() || text == "true" || text == "false" => {
            format!("the string {value} (without quotes it would be a value)")
        }
        Value::String(text) => format!("{} ({})", kind(value), Value::from(unread_without_userinfo(text))),
        _ => format!("{} ({value})", kind(value)),
    }
}

/// Text that could not be read, in quotes.
fn quoted(text: &str) -> String {
    format!("{:?}", unread_without_userinfo(text))
}

pub(super) fn boolean(value: &Value) -> Read<bool> {
    value.as_bool().map_or_else(|| expected(value, "true or false"), Ok)
}

pub(super) fn some_boolean(value: &Value) -> Read<Option<bool>> {
    boolean(value).map(Some)
}

pub(super) fn port(value: &Value) -> Read<u16> {
    let port = value.as_u64().filter(|port| *port >= LOWEST_PORT).and_then(|port| u16::try_from(port).ok());
    port.map_or_else(|| expected(value, "a port from 1024 to 65535"), Ok)
}

pub(super) fn uid(value: &Value) -> Read<i64> {
    let uid = value.as_i64().filter(|uid| (1..=HIGHEST_UID).contains(uid));
    uid.map_or_else(|| expected(value, "a user id from 1 to 2147483647 (0 would be root)"), Ok)
}

/// A time in whole seconds, an hour at most.
pub(super) fn seconds(value: &Value) -> Read<Duration> {
    let seconds = value.as_u64().filter(|seconds| *seconds <= 3600);
    seconds.map_or_else(
        || expected(value, "a number of seconds from 0 to 3600"),
        |seconds| Ok(Duration::from_secs(seconds)),
    )
}

pub(super) fn text(value: &Value) -> Read<String> {
    value.as_str().map_or_else(|| expected(value, "a string"), |text| Ok(text.to_owned()))
}

/// Text that is not empty and has no white space or control characters.
pub(super) fn word(value: &Value) -> Read<String> {
    let text = text(value)?;
    if text.is_empty() {
        return Err("is empty; leave the key out or name a value".to_owned().into());
    }
    if text.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
        return Err(format!("{} contains white space", quoted(&text)).into());
    }
    Ok(text)
}

pub(super) fn some_word(value: &Value) -> Read<Option<String>> {
    word(value).map(Some)
}

/// The address of a collector.
pub(super) fn collector(value: &Value) -> Read<Option<String>> {
    let text = word(value)?;
    match otlp::url_of_settings(&text) {
        Some(_) => Ok(Some(text)),
        None => Err(Problem::mild(format!(
            "{} is not an address that exporters know: {} is expected",
            quoted(&text),
            otlp::EXPECTED_OF_SETTINGS
        ))),
    }
}

/// A word, or nothing.
pub(super) fn word_or_empty(value: &Value) -> Read<String> {
    if value.as_str() == Some("") { Ok(String::new()) } else { word(value) }
}

/// An `http` or `https` URL without a trailing slash.
pub(super) fn url(value: &Value) -> Read<String> {
    let text = word(value)?;
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') => Ok(text.trim_end_matches('/').to_owned()),
        _ => {
            Err(format!("{} is not a URL that begins with http:// or https:// and names a host", quoted(&text)).into())
        }
    }
}

pub(super) fn words(value: &Value) -> Read<Vec<String>> {
    let Some(items) = value.as_array() else { return expected(value, "a list of strings") };
    items
        .iter()
        .enumerate()
        .map(|(index, item)| word(item).map_err(|problem| problem.below(Step::Entry(index))))
        .collect()
}

pub(super) fn some_words(value: &Value) -> Read<Option<Vec<String>>> {
    words(value).map(Some)
}

pub(super) fn ratio(value: &Value) -> Read<Option<f64>> {
    let ratio = value.as_f64().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.map_or_else(|| expected(value, "a number from 0 to 1"), |ratio| Ok(Some(ratio)))
}

pub(super) fn choice<T: Copy>(value: &Value, choices: &[(&str, T)]) -> Read<T> {
    if let Some((_, chosen)) = choices.iter().find(|(name, _)| value.as_str() == Some(name)) {
        return Ok(*chosen);
    }
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let near = value.as_str().and_then(|text| super::nearest(text, names.iter().copied()));
    let hint = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Err(format!("one of {} is expected, {} was found{hint}", names.join(", "), found(value)).into())
}

pub(super) fn mode(value: &Value) -> Read<Mode> {
    choice(value, &Mode::ALL.map(|mode| (mode.as_str(), mode)))
}

pub(super) fn spire(value: &Value) -> Read<SpireSwitch> {
    let choices =
        [("auto", SpireSwitch::Auto), ("required", SpireSwitch::Required), ("disabled", SpireSwitch::Disabled)];
    choice(value, &choices)
}

pub(super) fn native_sidecars(value: &Value) -> Read<NativeSidecars> {
    choice(value, &[("auto", NativeSidecars::Auto), ("disabled", NativeSidecars::Disabled)])
}

pub(super) fn inbound_exclusions(value: &Value) -> Read<InboundExclusions> {
    choice(value, &[("any", InboundExclusions::Any), ("none", InboundExclusions::None)])
}

pub(super) fn trace_protocol(value: &Value) -> Read<Option<TraceProtocol>> {
    choice(value, &[("grpc", TraceProtocol::Grpc), ("http", TraceProtocol::Http)]).map(Some)
}

pub(super) fn on_upgrade(value: &Value) -> Read<OnUpgrade> {
    choice(value, &[("auto", OnUpgrade::Auto), ("manual", OnUpgrade::Manual)])
}

pub(super) fn repair(value: &Value) -> Read<Repair> {
    choice(value, &[("report", Repair::Report), ("evict", Repair::Evict)])
}

pub(super) fn pull_policy(value: &Value) -> Read<String> {
    let policies = ["Always", "IfNotPresent", "Never"];
    choice(value, &policies.map(|policy| (policy, policy))).map(str::to_owned)
}

/// A SPIFFE trust domain name: lower case letters, digits, dots, dashes and underscores (SPIFFE ID, 2.1).
pub(super) fn trust_domain(value: &Value) -> Read<String> {
    let text = word(value)?;
    let allowed = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "._-".contains(letter);
    if text.len() > 255 || !text.chars().all(allowed) {
        return Err(format!(
            "{} is not a trust domain: lower case letters, digits, dots, dashes and underscores, without spiffe://",
            quoted(&text)
        )
        .into());
    }
    Ok(text)
}

pub(super) fn some_url(value: &Value) -> Read<Option<String>> {
    url(value).map(Some)
}
