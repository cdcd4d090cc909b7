//! An Agent of BeeAI as a request of the engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::owner::Owner;
use crate::domain::keys;
use crate::workloads::request::{LockdownProfile, WorkloadRequest};

/// Where the Service answers, and the agent listens unless it says otherwise.
const PORT: i64 = 8000;

/// The request of an Agent of that group.
#[must_use]
pub fn workload(object: &Value, group: &'static str) -> WorkloadRequest {
    let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let name = at("/metadata/name");
    let image = Some(at("/spec/image")).filter(|image| !image.is_empty());
    let annotation = |key: &str| object.pointer("/metadata/annotations")?.get(key)?.as_str();
    let external = annotation(keys::ANNOTATION_REPLICAS_EXTERNAL) == Some("true");
    let selector = [(keys::LABEL_BEEAI_APP, name), (keys::LABEL_BEEAI_CONTROLLER, keys::BEEAI_CONTROLLER)];
    WorkloadRequest {
        owner: Owner {
            name: name.to_owned(),
            namespace: at("/metadata/namespace").to_owned(),
            uid: at("/metadata/uid").to_owned(),
        },
        name: name.to_owned(),
        api_version: api_version(group),
        kind: "Agent",
        image: image.map(str::to_owned),
        selector: selector.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        labels: labels(object),
        marks: BTreeMap::from([(keys::LABEL_BEEAI_GROUP.to_owned(), group.to_owned())]),
        annotations: BTreeMap::new(),
        pod_annotations: BTreeMap::new(),
        pod_template: json!({"spec": pod(object)}),
        replicas: (!external).then_some(1),
        service_ports: vec![json!({"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"})],
        container_port: literal(object, keys::ENV_PORT).and_then(port).unwrap_or(PORT),
        service_type: None,
        profile: profile(object).unwrap_or(LockdownProfile::Restricted),
        own_account: false,
    }
}

fn api_version(group: &str) -> &'static str {
    if group == keys::GROUP_BEEAI_COMPAT { "beeai.beeai.dev/v1" } else { "beeai.dev/v1" }
}

/// What the annotation of the profile says.
pub(super) fn profile_text(object: &Value) -> Option<&str> {
    object.pointer("/metadata/annotations")?.get(keys::ANNOTATION_SECURITY_PROFILE)?.as_str()
}

/// The profile that an Agent asks for; `None` when it asks for one that there is not.
#[must_use]
pub fn profile(object: &Value) -> Option<LockdownProfile> {
    match profile_text(object) {
        None | Some("restricted") => Some(LockdownProfile::Restricted),
        Some("baseline") => Some(LockdownProfile::Baseline),
        Some(_) => None,
    }
}

/// The entries of the environment, as written.
pub(super) fn env(object: &Value) -> &[Value] {
    object.pointer("/spec/env").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(entry: &Value) -> &str {
    entry.get("name").and_then(Value::as_str).unwrap_or("")
}

/// The literal value of a variable; of several entries the last one counts.
fn literal<'v>(object: &'v Value, variable: &str) -> Option<&'v str> {
    let last = env(object).iter().rfind(|entry| name(entry) == variable)?;
    last.get("value").and_then(Value::as_str)
}

/// A port in that text.
pub(super) fn port(text: &str) -> Option<i64> {
    text.parse::<u16>().ok().filter(|port| *port > 0).map(i64::from)
}

fn pod(object: &Value) -> Value {
    let mut container = Map::new();
    container.insert("name".to_owned(), json!(keys::CONTAINER_AGENT));
    container.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    container.insert("env".to_owned(), Value::Array(variables(object)));
    if let Some(resources) = object.pointer("/spec/resources").filter(|resources| resources.is_object()) {
        container.insert("resources".to_owned(), resources.clone());
    }
    let mut pod = json!({"containers": [container]});
    if let Some(secret) = literal(object, keys::ENV_IMAGE_REPO_SECRET).filter(|name| !name.is_empty()) {
        pod["imagePullSecrets"] = json!([{"name": secret}]);
    }
    pod
}

/// The environment of the container: of a name that is there twice the last entry, which is the one that a container would get; and the
/// port, because frameworks of this family choose one by chance otherwise.
fn variables(object: &Value) -> Vec<Value> {
    let env = env(object);
    let last: BTreeMap<&str, usize> = env.iter().enumerate().map(|(index, entry)| (name(entry), index)).collect();
    let counts = |(index, entry): &(usize, &Value)| last.get(name(entry)) == Some(index);
    let mut variables: Vec<_> = env.iter().enumerate().filter(counts).map(|(_, entry)| entry.clone()).collect();
    if !last.contains_key(keys::ENV_PORT) {
        variables.push(json!({"name": keys::ENV_PORT, "value": PORT.to_string()}));
    }
    variables
}

/// The Agent's labels, for Deployment and Pods: not those that the operator sets itself.
fn labels(object: &Value) -> BTreeMap<String, String> {
    let all = object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let is_ours = |key: &str| {
        [keys::LABEL_BEEAI_APP, keys::LABEL_BEEAI_CONTROLLER, keys::LABEL_APP_MANAGED_BY].contains(&key)
            || key.split_once('/').is_some_and(|(domain, _)| [keys::GROUP_BEEAI, keys::GROUP_AGENT].contains(&domain))
    };
    let kept = all.filter(|(key, _)| !is_ours(key));
    kept.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
