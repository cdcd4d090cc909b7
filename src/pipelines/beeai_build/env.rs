//! What the entries of `spec.env` mean: credentials by reference, names of Secrets, build arguments.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::keys;
use crate::pipelines::request::Parameter;

/// Variables that refer to the Git token; the first that is there counts.
pub const SOURCE_TOKENS: [&str; 2] = ["SOURCE_REPO_SECRET", "GITHUB_TOKEN"];
/// Variable that refers to the registry's token.
pub const REGISTRY_TOKEN: &str = "IMAGE_REPO_TOKEN";

/// A key of a Secret that holds a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The Secret.
    pub secret: String,
    /// Its key.
    pub key: String,
    /// Without the Secret, or the key in it, there is no token.
    pub optional: bool,
}

/// What one entry means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A token, by reference only.
    Token,
    /// The name of a Secret.
    Login,
    /// An argument of the build.
    Argument,
    /// It refers to something that no image may get.
    Ignored,
}

/// The entries, as written.
pub(super) fn entries(object: &Value) -> &[Value] {
    object.pointer("/spec/env").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn name(entry: &Value) -> &str {
    entry.get("name").and_then(Value::as_str).unwrap_or("")
}

/// Where the last entry of each name stands: it is the one that counts.
pub(super) fn last(entries: &[Value]) -> BTreeMap<&str, usize> {
    entries.iter().enumerate().map(|(index, entry)| (name(entry), index)).collect()
}

/// What an entry means.
pub(super) fn meaning(entry: &Value) -> Meaning {
    match name(entry) {
        name if is_token(name) => Meaning::Token,
        keys::ENV_IMAGE_REPO_SECRET if entry.get("valueFrom").is_none_or(Value::is_null) => Meaning::Login,
        _ if entry.get("valueFrom").is_some_and(|from| !from.is_null()) => Meaning::Ignored,
        _ => Meaning::Argument,
    }
}

/// Whether a variable of that name holds a token.
pub(super) fn is_token(name: &str) -> bool {
    SOURCE_TOKENS.contains(&name) || name == REGISTRY_TOKEN
}

/// The key that an entry refers to.
pub(super) fn reference(entry: &Value) -> Option<Credential> {
    let of = entry.get("valueFrom")?.get("secretKeyRef")?;
    let text = |member: &str| of.get(member).and_then(Value::as_str).filter(|text| !text.is_empty());
    let optional = of.get("optional").and_then(Value::as_bool).unwrap_or(false);
    Some(Credential { secret: text("name")?.to_owned(), key: text("key")?.to_owned(), optional })
}

/// The token of a variable: of several entries of one name the last counts, as it would in a container.
fn token(object: &Value, variable: &str) -> Option<Credential> {
    reference(entries(object).iter().rfind(|entry| name(entry) == variable)?)
}

/// The Git token.
pub(super) fn source_token(object: &Value) -> Option<Credential> {
    SOURCE_TOKENS.iter().find_map(|variable| token(object, variable))
}

/// The registry's token.
pub(super) fn registry_token(object: &Value) -> Option<Credential> {
    token(object, REGISTRY_TOKEN)
}

/// The Secret that a literal names for the registry; an entry that refers to something else has no effect, whatever else it says.
pub(super) fn registry_secret(object: &Value) -> Option<&str> {
    let last = entries(object).iter().rfind(|entry| name(entry) == keys::ENV_IMAGE_REPO_SECRET);
    let value = last.filter(|entry| meaning(entry) == Meaning::Login)?.get("value");
    value.and_then(Value::as_str).filter(|value| !value.is_empty())
}

/// The arguments of the build, in order; of one name the last entry counts.
pub(super) fn arguments(object: &Value) -> Vec<Parameter> {
    let all = entries(object);
    let last = last(all);
    let counts = |(index, entry): &(usize, &Value)| last.get(name(entry)) == Some(index);
    let arguments = all.iter().enumerate().filter(|(_, entry)| meaning(entry) == Meaning::Argument).filter(counts);
    let value = |entry: &Value| entry.get("value").and_then(Value::as_str).unwrap_or("").to_owned();
    arguments.map(|(_, entry)| Parameter::new(name(entry), value(entry))).collect()
}
