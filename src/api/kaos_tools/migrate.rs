//! An object in the spelling of today, whatever it was written in.
//!
//! In: a raw object of one of the kinds, of group `kaos.tools` or the group it had before. Out: the object that means the same in shape M,
//! without what only a cluster writes, and a line for everything that was changed or deserves a look. Promises: reading the result gives
//! the value that reading the original gives; members that nobody knows stay where they are; an object of which something is wrong is
//! handed back as it was, with what is wrong.

use serde_json::{Map, Value, json};

use super::VERSION;
use super::read::{self, Alias, Looked, OldSpelling};
use super::shape::{Agent, Configuration, Container, McpServer, Model, ModelApi, Runtime};
use crate::api::findings::{Fault, Note};
use crate::domain::keys;

/// What became of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Migrated {
    /// The object.
    pub object: Value,
    /// What is wrong; then the object is the original.
    pub faults: Vec<Fault>,
    /// What was changed, as old place and what it means now.
    pub changes: Vec<(String, String)>,
    /// What deserves a look.
    pub notes: Vec<Note>,
}

/// Whether an object is of one of the kinds, of either group.
#[must_use]
pub fn is_kaos(object: &Value) -> bool {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    [keys::GROUP_KAOS, keys::GROUP_KAOS_BEFORE].contains(&group)
        && ["Agent", "ModelAPI", "MCPServer"].contains(&text("kind"))
}

/// The object in the spelling of today.
#[must_use]
pub fn migrate(object: &Value) -> Migrated {
    match object.get("kind").and_then(Value::as_str) {
        Some("Agent") => written(object, &read::agent(object), agent),
        Some("ModelAPI") => written(object, &read::model_api(object), model_api),
        _ => written(object, &read::mcp_server(object), mcp_server),
    }
}

type Spec = Map<String, Value>;

fn written<T>(object: &Value, looked: &Looked<T>, write: fn(&mut Spec, &Looked<T>)) -> Migrated {
    let mut changes = Vec::new();
    if !looked.faults.is_empty() {
        return Migrated {
            object: object.clone(),
            faults: looked.faults.clone(),
            changes,
            notes: looked.notes.clone(),
        };
    }
    let mut object = object.clone();
    metadata(&mut object, &mut changes);
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        write(spec, looked);
    }
    changes.extend(looked.old.iter().map(change));
    let conflicts = looked
        .conflicts
        .iter()
        .map(|fault| Note::new(fault.reason, fault.path.clone(), format!("{}; the new one is kept", fault.sentence)));
    let notes = looked.notes.iter().cloned().chain(conflicts).collect();
    Migrated { object, faults: Vec::new(), changes, notes }
}

fn change(old: &OldSpelling) -> (String, String) {
    let row = old.alias.row();
    // The last part of the path is the user's own index, the row names fields.
    (old.path.clone(), row.new.to_owned())
}

/// Group, and what only a cluster writes.
fn metadata(object: &mut Value, changes: &mut Vec<(String, String)>) {
    let now = format!("{}/{VERSION}", keys::GROUP_KAOS);
    if object.get("apiVersion").and_then(Value::as_str) != Some(&*now) {
        let before = object.get("apiVersion").and_then(Value::as_str).unwrap_or("").to_owned();
        changes.push((format!("apiVersion {before}"), now.clone()));
    }
    object["apiVersion"] = json!(now);
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for key in
        ["managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink", "ownerReferences"]
    {
        metadata.remove(key);
    }
    // They are the operators' own, of either group.
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        let of = |group: &str, name: &str| name.split_once('/').is_some_and(|(domain, _)| domain == group);
        let ours = |name: &str| of(keys::GROUP_KAOS, name) || of(keys::GROUP_KAOS_BEFORE, name);
        finalizers.retain(|name| !name.as_str().is_some_and(ours));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(keys::ANNOTATION_LAST_APPLIED);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

/// Takes members of a mapping away, and the mapping where nothing is left of it.
fn without(of: &mut Spec, name: &str, members: &[&str]) {
    let Some(mapping) = of.get_mut(name).and_then(Value::as_object_mut) else { return };
    members.iter().for_each(|member| drop(mapping.remove(*member)));
    if mapping.is_empty() {
        of.remove(name);
    }
}

/// The mapping of that name, made where it is missing.
fn within<'s>(of: &'s mut Spec, name: &str) -> Option<&'s mut Spec> {
    let place = of.entry(name).or_insert(Value::Null);
    if place.is_null() {
        *place = json!({});
    }
    place.as_object_mut()
}

fn container(spec: &mut Spec, container: &Container, more: Vec<Value>) {
    let mut env: Vec<Value> = container.env.iter().map(|variable| variable.entry.clone()).collect();
    env.extend(more);
    let has = spec.get("container").is_some_and(|container| !container.is_null());
    if env.is_empty() && container.resources.is_none() && !has {
        return;
    }
    let Some(place) = within(spec, "container") else { return };
    if env.is_empty() {
        place.remove("env");
    } else {
        place.insert("env".to_owned(), Value::Array(env));
    }
    if let Some(resources) = &container.resources {
        place.insert("resources".to_owned(), resources.clone());
    }
}

fn agent(spec: &mut Spec, looked: &Looked<Agent>) {
    let value = &looked.value;
    if let Model::Named(model) = &value.model {
        spec.insert("model".to_owned(), json!(model));
    }
    spec.remove("resources");
    if let Some(config) = spec.get_mut("config").and_then(Value::as_object_mut) {
        config.remove("env");
        without(config, "agenticLoop", &["maxSteps", "enableTools", "enableDelegation"]);
        // An empty one says that there is a configuration, as config itself does.
        if config.get("agenticLoop").and_then(Value::as_object).is_some_and(Map::is_empty) {
            config.remove("agenticLoop");
        }
        if looked.uses(Alias::LoopMaxSteps)
            && let Some(steps) = value.max_steps
        {
            config.insert("reasoningLoopMaxSteps".to_owned(), json!(steps));
        }
    }
    let mut more = Vec::new();
    let mut says = |name: &str, value: Option<bool>| {
        if let Some(value) = value {
            more.push(json!({"name": name, "value": value.to_string()}));
        }
    };
    says("AGENTIC_LOOP_ENABLE_TOOLS", value.loop_tools);
    says("AGENTIC_LOOP_ENABLE_DELEGATION", value.loop_delegation);
    says("AGENT_DEBUG_MEMORY_ENDPOINTS", value.debug_memory.then_some(true));
    container(spec, &value.container, more);
}

fn model_api(spec: &mut Spec, looked: &Looked<ModelApi>) {
    let value = &looked.value;
    if let Some(hosted) = &value.hosted
        && let Some(place) = within(spec, "hostedConfig")
    {
        place.insert("model".to_owned(), json!(hosted.model));
    }
    without(spec, "hostedConfig", &["env"]);
    without(spec, "serverConfig", &["model", "env", "resources"]);
    if let Some(proxy) = &value.proxy
        && let Some(place) = spec.get_mut("proxyConfig").and_then(Value::as_object_mut)
    {
        place.remove("model");
        place.remove("env");
        if proxy.api_base.is_none() {
            place.remove("apiBase");
        }
        if !proxy.models.is_empty() && proxy.offers.is_empty() {
            place.insert("models".to_owned(), json!(proxy.models));
        }
        if let Some(Configuration::Text(text)) = &proxy.configuration {
            place.insert("configYaml".to_owned(), json!({"fromString": text}));
        }
    }
    container(spec, &value.container, Vec::new());
}

fn mcp_server(spec: &mut Spec, looked: &Looked<McpServer>) {
    let value = &looked.value;
    spec.remove("type");
    spec.remove("resources");
    if let Some(config) = spec.get_mut("config").and_then(Value::as_object_mut) {
        ["env", "mcp", "toolsString"].iter().for_each(|member| drop(config.remove(*member)));
        without(config, "tools", &["fromString", "fromSecretKeyRef", "fromPackage"]);
        if let Runtime::Package(package) = &value.runtime
            && let Some(tools) = within(config, "tools")
        {
            tools.insert("fromPackage".to_owned(), json!(package));
        }
        if config.is_empty() {
            spec.remove("config");
        }
    }
    match &value.runtime {
        Runtime::Registered(name) => drop(spec.insert("runtime".to_owned(), json!(name))),
        Runtime::Custom => drop(spec.insert("runtime".to_owned(), json!("custom"))),
        Runtime::Package(_) => {}
    }
    if let Some(params) = &value.params {
        spec.insert("params".to_owned(), json!(params));
    }
    container(spec, &value.container, Vec::new());
}
