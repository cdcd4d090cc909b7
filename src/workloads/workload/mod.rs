//! From a [`WorkloadRequest`] to what runs: Deployment, Service and ServiceAccount as JSON.
//!
//! In: a request of any front end, and whether the cluster assigns users itself. Out: every field that is wanted of
//! each object, so that applying it whole also takes away what is no longer wanted. Promises: pure; members of the
//! Pod template that nobody knows reach the Deployment; what the user set stays, what was left open is locked down.

mod lockdown;
mod volumes;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::request::{LockdownProfile, WorkloadRequest};
use crate::domain::keys;

/// The container that gets the image; without one of this name it is the first.
pub const AGENT_CONTAINER: &str = keys::CONTAINER_AGENT;
/// Name of the port that the agent's container is given.
const PORT_NAME: &str = "http";

/// What runs an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The Deployment.
    pub deployment: Value,
    /// The Service; `None` when there are no ports.
    pub service: Option<Value>,
    /// The ServiceAccount; `None` when the Pod names one.
    pub account: Option<Value>,
}

/// What is wanted for a request whose image is known.
#[must_use]
pub fn render(request: &WorkloadRequest, image: &str, openshift: bool) -> Workload {
    let mut spec = json!({
        "selector": {"matchLabels": request.selector},
        "template": template(request, image, openshift),
    });
    if let Some(replicas) = request.replicas {
        spec["replicas"] = json!(replicas);
    }
    let deployment = object(request, ("apps/v1", "Deployment"), &request.labels, [("spec", spec)]);
    let service = (!request.service_ports.is_empty()).then(|| {
        let mut spec = json!({"selector": request.selector, "ports": request.service_ports});
        if let Some(kind) = request.service_type {
            spec["type"] = json!(kind);
        }
        object(request, ("v1", "Service"), &BTreeMap::new(), [("spec", spec)])
    });
    let account = request.own_account.then(|| {
        let automount = ("automountServiceAccountToken", json!(false));
        object(request, ("v1", "ServiceAccount"), &of_account(&request.labels), [automount])
    });
    Workload { deployment, service, account }
}

/// The labels of a ServiceAccount: all but the one by which accounts that are made for injected Pods are known.
fn of_account(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    labels
        .iter()
        .filter(|(key, _)| *key != keys::LABEL_MANAGED_BY)
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// An object of the request's name, owned by what asked.
fn object(
    request: &WorkloadRequest,
    (api_version, kind): (&str, &str),
    labels: &BTreeMap<String, String>,
    members: [(&str, Value); 1],
) -> Value {
    let mut labels = labels.clone();
    labels.extend(request.selector.clone());
    labels.extend(request.marks.clone());
    labels.insert(keys::LABEL_APP_MANAGED_BY.to_owned(), keys::MANAGED_BY_DRAWBRIDGE.to_owned());
    let mut metadata = json!({
        "name": request.name,
        "namespace": request.owner.namespace,
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": request.api_version,
            "kind": request.kind,
            "name": request.owner.name,
            "uid": request.owner.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    if !request.annotations.is_empty() && kind != "ServiceAccount" {
        metadata["annotations"] = json!(request.annotations);
    }
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
    for (key, value) in members {
        object[key] = value;
    }
    object
}

fn template(request: &WorkloadRequest, image: &str, openshift: bool) -> Value {
    let written = &request.pod_template;
    let mut labels = texts(written.pointer("/metadata/labels"));
    labels.extend(request.labels.clone());
    labels.extend(request.selector.clone());
    let mut annotations = texts(written.pointer("/metadata/annotations"));
    annotations.extend(request.pod_annotations.clone());
    let mut metadata = json!({"labels": labels});
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    let mut pod = written.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    if request.own_account && !names_account(&pod) {
        pod.insert("serviceAccountName".to_owned(), json!(request.owner.name));
    }
    if request.profile != LockdownProfile::Open {
        closed(&mut pod, request, image, openshift);
    }
    // Members of the template besides these two do not exist; whatever the API server kept is passed on.
    let mut template = written.as_object().cloned().unwrap_or_default();
    template.insert("metadata".to_owned(), metadata);
    template.insert("spec".to_owned(), Value::Object(pod));
    Value::Object(template)
}

/// Locks down what was left open, and gives the agent's container its image, its port and places to write to.
fn closed(pod: &mut Map<String, Value>, request: &WorkloadRequest, image: &str, openshift: bool) {
    set_if_open(pod, "automountServiceAccountToken", json!(false));
    lockdown::close(pod, request.profile, openshift);
    let agent = agent_index(pod);
    if let Some(container) = container_mut(pod, agent) {
        container.insert("image".to_owned(), json!(image));
        if container.get("ports").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            let port = json!([{"name": PORT_NAME, "containerPort": request.container_port, "protocol": "TCP"}]);
            container.insert("ports".to_owned(), port);
        }
    }
    volumes::add(pod, agent);
}

/// Whether the Pod has a ServiceAccount of its own; the old name of the field counts.
pub(super) fn names_account(pod: &Map<String, Value>) -> bool {
    let given = |key: &str| pod.get(key).and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    given("serviceAccountName") || given("serviceAccount")
}

fn texts(map: Option<&Value>) -> BTreeMap<String, String> {
    let members = map.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// Sets a member that is absent or null.
fn set_if_open(of: &mut Map<String, Value>, key: &str, value: Value) {
    if of.get(key).is_none_or(Value::is_null) {
        of.insert(key.to_owned(), value);
    }
}

/// Place of the agent's container.
fn agent_index(pod: &Map<String, Value>) -> usize {
    let containers = pod.get("containers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    containers.iter().position(|container| container["name"] == AGENT_CONTAINER).unwrap_or(0)
}

fn container_mut(pod: &mut Map<String, Value>, index: usize) -> Option<&mut Map<String, Value>> {
    pod.get_mut("containers")?.as_array_mut()?.get_mut(index)?.as_object_mut()
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
