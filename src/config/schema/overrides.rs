//! `namespaceOverrides`: which keys a namespace may set.

use serde_json::Value;

use super::keys::KEYS;
use super::read;
use super::walk::{Problem, Step};

/// What a namespace may set unless the platform file says otherwise (docs/reference/platform.md).
pub(super) const DEFAULT: [&str; 5] = ["mode", "resources", "trace", "tokenExchange", "spiffe.trustDomain"];

/// A list of key paths or of their beginnings, each naming at least one key a namespace can set.
pub(super) fn read(value: &Value) -> Result<Vec<String>, Problem> {
    let entries = read::words(value)?;
    for (index, entry) in entries.iter().enumerate() {
        if !KEYS.iter().any(|key| key.is_overridable() && covers(entry, key.path)) {
            return Err(Problem::new(vec![Step::Entry(index)], refusal(entry)));
        }
    }
    Ok(entries)
}

fn refusal(entry: &str) -> String {
    if KEYS.iter().any(|key| covers(entry, key.path)) {
        return format!("{entry} cannot be set by a namespace; it belongs to the whole installation or has no effect");
    }
    let beginnings =
        KEYS.iter().filter(|key| key.is_overridable()).flat_map(|key| [Some(key.path), beginning(key.path)]);
    let near = super::nearest(entry, beginnings.flatten());
    let hint = near.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("{entry} is not a key of this file{hint}")
}

fn beginning(path: &'static str) -> Option<&'static str> {
    path.split_once('.').map(|(beginning, _)| beginning)
}

/// Whether the entry `entry` of the list names the key at `path`, or a mapping it stands in.
pub(super) fn covers(entry: &str, path: &str) -> bool {
    path.strip_prefix(entry).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
