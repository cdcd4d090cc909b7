//! An Agent as a request of the engine.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ports::DEFAULT_CONTAINER_PORT;
use super::text;
use crate::api::owner::Owner;
use crate::domain::keys;
use crate::workloads::request::{LockdownProfile, WorkloadRequest};
use crate::workloads::workload::names_account;

/// Domains of annotations that tools write about the Agent itself.
const OF_TOOLS: [&str; 3] = ["kubectl.kubernetes.io", "meta.helm.sh", keys::GROUP_AGENT];

/// The request of an Agent; `built` is the image of its AgentBuild, where it has one.
#[must_use]
pub fn workload(object: &Value, built: Option<&str>) -> WorkloadRequest {
    let at = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
    let name = at("/metadata/name");
    let image = ["/spec/imageSource/image", "/spec/image"].into_iter().map(at).find(|image| !image.is_empty());
    let ports = object.pointer("/spec/servicePorts").and_then(Value::as_array).cloned().unwrap_or_else(default_ports);
    let target = ports.iter().find_map(|port| port.get("targetPort")?.as_i64());
    let spec_annotations = annotations(object.pointer("/spec/annotations"));
    let mut own_annotations = annotations(object.pointer("/metadata/annotations"));
    own_annotations.extend(spec_annotations.clone());
    let mut labels = labels(object.pointer("/spec/labels"));
    labels.extend(self::labels(object.pointer("/metadata/labels")));
    let external = object
        .pointer("/metadata/annotations")
        .is_some_and(|annotations| text(annotations, keys::ANNOTATION_REPLICAS_EXTERNAL) == "true");
    let replicas = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let nothing = Map::new();
    let pod = object.pointer("/spec/podTemplateSpec/spec").and_then(Value::as_object).unwrap_or(&nothing);
    WorkloadRequest {
        owner: Owner {
            name: name.to_owned(),
            namespace: at("/metadata/namespace").to_owned(),
            uid: at("/metadata/uid").to_owned(),
        },
        name: name.to_owned(),
        api_version: "agent.kagenti.dev/v1alpha1",
        kind: "Agent",
        image: image.or(built).map(str::to_owned),
        selector: BTreeMap::from([(keys::LABEL_APP_NAME.to_owned(), name.to_owned())]),
        labels,
        marks: BTreeMap::new(),
        annotations: own_annotations,
        pod_annotations: spec_annotations,
        pod_template: object.pointer("/spec/podTemplateSpec").cloned().unwrap_or_default(),
        replicas: (!external).then_some(replicas),
        service_ports: ports,
        container_port: target.unwrap_or(DEFAULT_CONTAINER_PORT),
        service_type: None,
        profile: LockdownProfile::Restricted,
        own_account: !names_account(pod),
    }
}

/// The schema's default, for objects that no API server has seen.
pub(super) fn default_ports() -> Vec<Value> {
    vec![json!({"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"})]
}

fn entries(map: Option<&Value>) -> impl Iterator<Item = (&String, &str)> {
    let members = map.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(key, value)| Some((key, value.as_str()?)))
}

fn domain(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

/// Labels that are passed on: not those that the operator sets itself.
fn labels(map: Option<&Value>) -> BTreeMap<String, String> {
    let kept = entries(map).filter(|(key, _)| !super::is_reserved(key));
    kept.map(|(key, value)| (key.clone(), value.to_owned())).collect()
}

/// Annotations that are passed on.
fn annotations(map: Option<&Value>) -> BTreeMap<String, String> {
    let kept = entries(map).filter(|(key, _)| !OF_TOOLS.contains(&domain(key)));
    kept.map(|(key, value)| (key.clone(), value.to_owned())).collect()
}
