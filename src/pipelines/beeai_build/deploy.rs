//! The Agent that a build keeps: a desired state, computed anew whenever it is looked at.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::login::{RegistryLogin, pull_secret};
use super::{flag, name};
use crate::api::secrets;
use crate::domain::keys;

/// What is wanted of the Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its labels: the build's, and over them those that say who made it.
    pub labels: Map<String, Value>,
    /// Its annotations.
    pub annotations: Map<String, Value>,
    /// Its `spec`, whole.
    pub spec: Value,
}

/// Name of the Agent that a build keeps; `None` when it keeps none.
#[must_use]
pub fn target(object: &Value) -> Option<&str> {
    flag(object, "deployAfterBuild").then(|| {
        let named = object.pointer("/spec/agent/name").and_then(Value::as_str).filter(|name| !name.is_empty());
        named.unwrap_or(name(object))
    })
}

/// The Agent that a build keeps for that image.
#[must_use]
pub fn agent(object: &Value, image: &str, login: &RegistryLogin) -> Option<Wanted> {
    let target = target(object)?;
    let mut spec = Map::from_iter([("image".to_owned(), json!(image))]);
    let of = |member: &str| object.pointer(&format!("/spec/agent/{member}")).filter(|value| !value.is_null());
    for member in ["description", "resources"] {
        spec.extend(of(member).map(|value| (member.to_owned(), value.clone())));
    }
    let mut env = env(object).to_vec();
    let names = |one: &Value| one.get("name").and_then(Value::as_str) == Some(keys::ENV_IMAGE_REPO_SECRET);
    if let Some(secret) = pull_secret(login).filter(|_| !env.iter().any(names)) {
        env.push(json!({"name": keys::ENV_IMAGE_REPO_SECRET, "value": secret}));
    }
    if !env.is_empty() {
        spec.insert("env".to_owned(), Value::Array(env));
    }
    let spec = Value::Object(spec);
    let annotations = annotations(object, &secrets(object, &spec, login));
    Some(Wanted { name: target.to_owned(), labels: labels(object), annotations, spec })
}

/// The Secrets that an Agent of that spec refers to, but for a login that the build itself makes for it: nobody is asked for that. Where the
/// build's own text names the login, it is a Secret as any other.
fn secrets(object: &Value, spec: &Value, login: &RegistryLogin) -> BTreeSet<String> {
    let mut names = secrets::of_beeai_agent(&json!({"spec": spec}));
    if let RegistryLogin::Made(made) = login {
        let written = secrets::of_beeai_agent(&json!({"spec": {"env": env(object)}}));
        names.retain(|name| *name != made.secret || written.contains(name));
    }
    names
}

fn env(object: &Value) -> &[Value] {
    object.pointer("/spec/agent/env").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn labels(object: &Value) -> Map<String, Value> {
    let own = object.pointer("/metadata/labels").and_then(Value::as_object);
    let mut labels: Map<String, Value> = own.cloned().unwrap_or_default();
    for (key, value) in [
        (keys::LABEL_PART_OF, keys::BEEAI_CONTROLLER),
        (keys::LABEL_APP_MANAGED_BY, keys::BEEAI_BUILD_CONTROLLER),
        (keys::LABEL_CREATED_BY, name(object)),
    ] {
        labels.insert(key.to_owned(), json!(value));
    }
    labels
}

/// The uid of the build, by which it knows its Agent again; and which of the Agent's Secrets the build leaves to their own consent.
fn annotations(object: &Value, of_agent: &BTreeSet<String>) -> Map<String, Value> {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or("");
    let mut annotations = Map::from_iter([(keys::ANNOTATION_CREATED_BY_UID.to_owned(), json!(uid))]);
    let consented = secrets::by_consent(object);
    let left: Vec<_> = consented.into_iter().filter(|name| of_agent.contains(name)).collect();
    if !left.is_empty() {
        annotations.insert(keys::ANNOTATION_SECRETS_BY_CONSENT.to_owned(), json!(left.join(",")));
    }
    annotations
}
