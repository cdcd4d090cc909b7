//! Cases of KAOS (docs/cases.md) that are about what is made, by number.

mod agents;
mod contract;
mod model_apis;
mod routes;
mod rulings;
mod tools;

use serde_json::{Value, json};

use super::compose::Composed;
use super::identity::Identity;
use super::settings::Settings;
use crate::api::kaos_tools::shape::{Agent, Container, Hosted, Mode, Model, ModelApi, Proxy, Raw, Variable};
use crate::api::owner::Owner;
use crate::workloads::workload::{Workload, render};

fn settings() -> Settings {
    Settings {
        image_agent: Some("example/agent:7".to_owned()),
        image_litellm: Some("example/litellm:3".to_owned()),
        image_ollama: Some("example/ollama:2".to_owned()),
        image_python: Some("example/python:3.12".to_owned()),
        ..Settings::default()
    }
}

fn identity(name: &str) -> Identity {
    let owner = Owner { name: name.to_owned(), namespace: "ns".to_owned(), uid: "u".to_owned() };
    Identity { owner, ..Identity::default() }
}

fn agent() -> Agent {
    Agent {
        model_api: "m".to_owned(),
        model: Model::Named("x".to_owned()),
        mcp_servers: Vec::new(),
        expose: true,
        access: Vec::new(),
        description: None,
        instructions: None,
        max_steps: None,
        loop_tools: None,
        loop_delegation: None,
        debug_memory: false,
        memory: None,
        telemetry: None,
        waits: true,
        replicas: None,
        container: Container::default(),
        timeout: None,
        pod_spec: None,
    }
}

fn api(mode: Mode) -> ModelApi {
    ModelApi {
        mode,
        proxy: None,
        hosted: None,
        telemetry: None,
        container: Container::default(),
        timeout: None,
        pod_spec: None,
    }
}

fn proxy(proxy: Proxy) -> ModelApi {
    ModelApi { proxy: Some(proxy), ..api(Mode::Proxy) }
}

fn listed(models: &[&str]) -> Proxy {
    Proxy { models: strings(models), ..Proxy::default() }
}

fn hosted(model: &str) -> ModelApi {
    ModelApi { hosted: Some(Hosted { model: model.to_owned() }), ..api(Mode::Hosted) }
}

fn env(entries: &[Value]) -> Vec<Variable> {
    let one = |(at, entry): (usize, &Value)| Variable {
        name: entry["name"].as_str().unwrap().to_owned(),
        entry: entry.clone(),
        path: format!("spec.container.env[{at}]"),
    };
    entries.iter().enumerate().map(one).collect()
}

fn made(composed: &Composed) -> Workload {
    render(&composed.request, composed.request.image.as_deref().unwrap_or_default(), false)
}

/// The Pod's spec.
fn pod(composed: &Composed) -> Value {
    made(composed).deployment["spec"]["template"]["spec"].clone()
}

/// The operator's own container.
fn main(composed: &Composed) -> Value {
    pod(composed)["containers"][0].clone()
}

/// Names and values of a container's variables, in order; a reference is its JSON.
fn variables(container: &Value) -> Vec<(String, String)> {
    let entries = container["env"].as_array().cloned().unwrap_or_default();
    let one = |entry: Value| {
        let value = entry["value"].as_str().map_or_else(|| entry["valueFrom"].to_string(), str::to_owned);
        (entry["name"].as_str().unwrap_or_default().to_owned(), value)
    };
    entries.into_iter().map(one).collect()
}

fn variable(container: &Value, name: &str) -> Option<String> {
    let mut found = variables(container).into_iter().filter(|(known, _)| known == name);
    let first = found.next().map(|(_, value)| value);
    assert!(found.next().is_none(), "{name} occurs twice");
    first
}

fn names(container: &Value) -> Vec<String> {
    variables(container).into_iter().map(|(name, _)| name).collect()
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

fn get(path: &str, port: u16) -> Value {
    json!({"path": path, "port": port})
}
