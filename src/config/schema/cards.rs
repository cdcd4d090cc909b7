//! Values of the keys below `cards`: JSON in, typed value or a sentence out.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use super::read;
use super::walk::{Problem, Step};
use crate::api::syntax;
use crate::config::cards::PERIODS;
use crate::crypto::{Profile, TrustDomain};
use crate::domain::suggest::nearest;

type Read<T> = Result<T, Problem>;

/// Longest time that an old SVID or an old bundle can be told to count, in seconds: a month.
const LONGEST: u64 = 31 * 86_400;

fn domain(text: &str) -> Result<TrustDomain, String> {
    TrustDomain::read(text)
        .map_err(|fault| format!("{text:?} is not a trust domain: {fault}; write it without spiffe://"))
}

pub(super) fn trust_domains(value: &Value) -> Read<Vec<TrustDomain>> {
    let names = read::words(value)?;
    let read = names
        .iter()
        .enumerate()
        .map(|(index, name)| domain(name).map_err(|message| Problem::new(vec![Step::Entry(index)], message)));
    read.collect()
}

pub(super) fn trust_domain(value: &Value) -> Read<Option<TrustDomain>> {
    Ok(Some(domain(&read::word(value)?)?))
}

pub(super) fn namespace(value: &Value) -> Read<String> {
    let name = read::word(value)?;
    if syntax::is_label(&name) { Ok(name) } else { Err(format!("{name:?} is not the name of a namespace").into()) }
}

/// A key of a ConfigMap.
pub(super) fn key(value: &Value) -> Read<String> {
    let key = read::word(value)?;
    let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if key.len() <= 253 && key.bytes().all(good) && key != "." && !key.starts_with("..") {
        Ok(key)
    } else {
        Err(format!("{key:?} is not a key of a ConfigMap").into())
    }
}

/// The path of a file, from the root.
pub(super) fn file(value: &Value) -> Read<Option<PathBuf>> {
    let path = PathBuf::from(read::word(value)?);
    if path.is_absolute() { Ok(Some(path)) } else { Err("a path from / is expected".to_owned().into()) }
}

/// A socket: its path, or unix:// before it.
pub(super) fn socket(value: &Value) -> Read<PathBuf> {
    let named = read::word(value)?;
    let path = PathBuf::from(named.strip_prefix("unix://").unwrap_or(&named));
    if path.is_absolute() { Ok(path) } else { Err("a path from / is expected, or unix:// and one".to_owned().into()) }
}

pub(super) fn profiles(value: &Value) -> Read<Vec<Profile>> {
    let names = read::words(value)?;
    let mut profiles = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let at = |message: String| Problem::new(vec![Step::Entry(index)], message);
        let profile = Profile::named(name).ok_or_else(|| {
            let known = Profile::ALL.iter().map(|profile| profile.as_str());
            let near = nearest(name, known.clone()).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
            at(format!("{name:?} is none of {}{near}", known.collect::<Vec<_>>().join(", ")))
        })?;
        if profiles.contains(&profile) {
            return Err(at(format!("{name} stands here twice")));
        }
        profiles.push(profile);
    }
    if profiles.is_empty() {
        return Err("is empty: with no profile no signature is good; leave the key out or name one".to_owned().into());
    }
    Ok(profiles)
}

fn seconds(value: &Value, least: u64, most: u64) -> Read<Duration> {
    let found = value.as_u64().filter(|found| (least..=most).contains(found));
    let message = || format!("a number of seconds from {least} to {most} is expected, {value} was found");
    found.map(Duration::from_secs).ok_or_else(|| message().into())
}

pub(super) fn restart_grace(value: &Value) -> Read<Duration> {
    seconds(value, 60, 86_400)
}

/// None at all is a choice: who wants it strict.
pub(super) fn tolerance(value: &Value) -> Read<Duration> {
    seconds(value, 0, LONGEST)
}

pub(super) fn bundle_age(value: &Value) -> Read<Duration> {
    seconds(value, 60, LONGEST)
}

pub(super) fn least_period(value: &Value) -> Read<Duration> {
    seconds(value, PERIODS.0.as_secs(), PERIODS.1.as_secs())
}
