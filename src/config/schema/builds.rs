//! Values of the keys below `builds` and `agents`: JSON in, typed value or a sentence out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::walk::{Problem, Step};
use super::{quantity, read};
use crate::api::syntax;
use crate::api::yaml::kind;
use crate::domain::suggest::nearest;
use crate::domain::userinfo::without_userinfo;
use crate::workloads::settings::{Lockdown, Takeover};

type Read<T> = Result<T, Problem>;

/// Which kind of cluster it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Distribution {
    /// What the API server serves decides.
    #[default]
    Auto,
    /// The operator chooses users and groups.
    Kubernetes,
    /// The cluster assigns users and groups itself.
    OpenShift,
}

pub(super) fn distribution(value: &Value) -> Read<Distribution> {
    let choices = [
        ("auto", Distribution::Auto),
        ("kubernetes", Distribution::Kubernetes),
        ("openshift", Distribution::OpenShift),
    ];
    read::choice(value, &choices)
}

pub(super) fn lockdown(value: &Value) -> Read<Lockdown> {
    read::choice(value, &[("default", Lockdown::Default), ("enforce", Lockdown::Enforce)])
}

pub(super) fn takeover(value: &Value) -> Read<Takeover> {
    read::choice(value, &[("keep", Takeover::Keep), ("lockdown", Takeover::Lockdown)])
}

pub(super) fn namespaces(value: &Value) -> Read<BTreeSet<String>> {
    let names = read::words(value)?;
    match names.iter().position(|name| !syntax::is_label(name)) {
        Some(index) => {
            let message = format!("{:?} is not the name of a namespace", names[index]);
            Err(Problem::new(vec![Step::Entry(index)], message))
        }
        None => Ok(names.into_iter().collect()),
    }
}

/// Registries by host, each in lower case.
pub(super) fn registries(value: &Value) -> Read<BTreeSet<String>> {
    let names = read::words(value)?;
    match names.iter().position(|name| !syntax::is_host_and_port(name)) {
        Some(index) => {
            let message = format!("{:?} is not the host of a registry, with or without a port", names[index]);
            Err(Problem::new(vec![Step::Entry(index)], message))
        }
        None => Ok(names.into_iter().map(|name| name.to_ascii_lowercase()).collect()),
    }
}

/// How many runs are kept.
pub(super) fn history(value: &Value) -> Read<usize> {
    count(value, 0)
}

/// How many runs may be lost; without any the first would be the last, and none would be made.
pub(super) fn lost_runs(value: &Value) -> Read<usize> {
    count(value, 1)
}

fn count(value: &Value, least: u64) -> Read<usize> {
    let count = value.as_u64().filter(|count| (least..=100).contains(count));
    let count = count.and_then(|count| usize::try_from(count).ok());
    count.ok_or_else(|| format!("a number from {least} to 100 is expected, {} was found", shown(value)).into())
}

/// A value as messages repeat it: a scalar itself, of anything else the kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        other => kind(other).to_owned(),
    }
}

pub(super) fn config_map(value: &Value) -> Read<Option<String>> {
    let name = read::word(value)?;
    if syntax::is_subdomain(&name) {
        Ok(Some(name))
    } else {
        Err(format!("{name:?} is not the name of a ConfigMap").into())
    }
}

/// A mapping of texts; numbers and booleans are refused, because what they would be spelled like is a guess.
pub(super) fn texts(value: &Value, fits: fn(&str, &str) -> Result<(), String>) -> Read<BTreeMap<String, String>> {
    let Some(members) = value.as_object() else {
        return Err(format!("a mapping of strings is expected, {} was found", kind(value)).into());
    };
    let mut texts = BTreeMap::new();
    for (name, value) in members {
        let at = |message: String| Problem::new(vec![Step::Key(name.clone())], message);
        let Some(text) = value.as_str() else {
            return Err(at(format!("a string is expected, {} was found; put it in quotes", kind(value))));
        };
        fits(name, text).map_err(at)?;
        texts.insert(name.clone(), text.to_owned());
    }
    Ok(texts)
}

pub(super) fn environment(value: &Value) -> Read<BTreeMap<String, String>> {
    texts(value, |name, text| {
        if !syntax::is_variable(name) {
            return Err("is not the name of an environment variable".to_owned());
        }
        if text.contains(|letter: char| letter.is_control()) {
            return Err("contains a control character".to_owned());
        }
        // Everybody who may read a PipelineRun reads it.
        let has_user = |(_, rest): (&str, &str)| rest.split('/').next().is_some_and(|host| host.contains('@'));
        if text.split_once("://").is_some_and(has_user) || without_userinfo(text) != text {
            return Err(
                "contains a user or password, which every PipelineRun would show; use a proxy without".to_owned()
            );
        }
        Ok(())
    })
}

pub(super) fn node_selector(value: &Value) -> Read<BTreeMap<String, String>> {
    texts(value, |name, text| {
        if syntax::is_metadata_key(name) && syntax::is_label_value(text) {
            Ok(())
        } else {
            Err(format!("{name}={text} is not a label that a node can have"))
        }
    })
}

pub(super) fn tolerations(value: &Value) -> Read<Vec<Value>> {
    let Some(items) = value.as_array() else {
        return Err(format!("a list of tolerations is expected, {} was found", kind(value)).into());
    };
    for (index, item) in items.iter().enumerate() {
        toleration(item).map_err(|problem| problem.below(Step::Entry(index)))?;
    }
    Ok(items.clone())
}

/// One toleration, as the API server takes it (`core/v1` Toleration).
fn toleration(item: &Value) -> Read<()> {
    const MEMBERS: [&str; 5] = ["key", "operator", "value", "effect", "tolerationSeconds"];
    let Some(members) = item.as_object() else {
        return Err(format!("a mapping is expected, {} was found", kind(item)).into());
    };
    for (name, value) in members {
        let at = |message: String| Problem::new(vec![Step::Key(name.clone())], message);
        let text = value.as_str();
        let right = match name.as_str() {
            "key" => text.is_some_and(|key| key.is_empty() || syntax::is_metadata_key(key)),
            "operator" => matches!(text, Some("Exists" | "Equal")),
            "value" => text.is_some_and(syntax::is_label_value),
            "effect" => matches!(text, Some("" | "NoSchedule" | "PreferNoSchedule" | "NoExecute")),
            "tolerationSeconds" => value.is_i64(),
            _ => {
                let hint =
                    nearest(name, MEMBERS).map_or("leave it out".to_owned(), |near| format!("did you mean {near}?"));
                return Err(at(format!("is not part of a toleration; {hint}")));
            }
        };
        if !right {
            return Err(at(format!("{value} is not a {name} that a toleration can have")));
        }
    }
    let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or("");
    match (text("operator"), text("key"), text("value")) {
        ("" | "Equal", "", _) => Err("needs a key, or operator Exists, which tolerates everything".to_owned().into()),
        ("Exists", _, value) if !value.is_empty() => {
            Err("has a value, which operator Exists does not take".to_owned().into())
        }
        _ if members.contains_key("tolerationSeconds") && text("effect") != "NoExecute" => {
            Err("has tolerationSeconds, which only effect NoExecute takes".to_owned().into())
        }
        _ => Ok(()),
    }
}

pub(super) fn resources(value: &Value) -> Read<Option<Value>> {
    quantity::check_requirements(value)?;
    let requirements = quantity::merged(&Value::Null, value);
    match quantity::conflict(&requirements) {
        Some(conflict) => Err(conflict.into()),
        None => Ok(Some(requirements)),
    }
}
