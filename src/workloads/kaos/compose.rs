//! What all three kinds have in common when their objects are made.
//!
//! In: what a kind runs, as a Pod's spec, and what its object says. Out: a request of the workload engine. Promises: nothing is set that
//! closes anything; labels and annotations of `kagenti.io` on the object reach the Deployment and its Pods, and never the
//! selector.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::contract::Row;
use super::identity::Identity;
use super::merge::MergeFault;
use super::names::{ANNOTATION_CONFIG, ANNOTATION_HASH, PORT_NAME, Role};
use super::rules::patched;
use super::settings::{Gateway, Settings};
use super::variables::{Ignored, Variable, Variables};
use crate::api::digest;
use crate::api::kaos_tools::shape;
use crate::domain::keys;
use crate::workloads::request::{LockdownProfile, WorkloadRequest};

/// `apiVersion` of the three kinds.
pub const API_VERSION: &str = "kaos.tools/v1alpha1";
/// Which container of a Pod kubectl means.
pub(super) const ANNOTATION_DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";
/// What we write on Deployments and Pods ourselves: said of an object, it would be taken for ours.
const WRITTEN: [&str; 9] = [
    keys::ANNOTATION_STATUS,
    keys::ANNOTATION_RUNTIME_CONFIG,
    keys::ANNOTATION_CONFIG_HASH,
    keys::ANNOTATION_CONTENT_DIGEST,
    keys::ANNOTATION_RETRY,
    keys::ANNOTATION_ROLLED_FOR,
    keys::ANNOTATION_SUSPENDED,
    keys::ANNOTATION_RESTART_PENDING,
    keys::ANNOTATION_RESTART_REPLICAS,
];

/// What an object asks for, ready to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Composed {
    /// For the workload engine: Deployment and Service.
    pub request: WorkloadRequest,
    /// What its container's environment is made of.
    pub variables: Vec<Variable>,
    /// Variables that the user wrote and that do not count.
    pub ignored: Vec<Ignored>,
    /// The port that it is reached at.
    pub port: u16,
    /// The text of its ConfigMap, where it has one.
    pub config: Option<String>,
}

/// Why nothing can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComposeFault {
    /// The platform file names no image.
    #[error("{0} is not set in the platform file, so nothing says which image runs this")]
    NoImage(&'static str),
    /// `podSpec` cannot be merged.
    #[error("spec.podSpec.{0}")]
    Merge(#[from] MergeFault),
    /// The runtime of a tool server cannot be had.
    #[error(transparent)]
    Runtime(#[from] super::registry::RuntimeFault),
    /// A custom runtime names no image.
    #[error("custom runtime requires container.image to be set")]
    CustomImage,
    /// No model, or no configuration of a proxy.
    #[error("{0}")]
    NoModel(&'static str),
}

/// A container while it is made.
pub(super) struct Container {
    pub(super) role: Role,
    pub(super) port: u16,
    /// Without what the object overrides.
    pub(super) own: Map<String, Value>,
    pub(super) variables: Variables,
    /// Members of the Pod's spec beside it.
    pub(super) pod: Map<String, Value>,
    /// The configuration that is mounted, where we know it.
    pub(super) config: Option<String>,
    /// The variable that tells the process its port, where there is one.
    pub(super) port_variable: Option<&'static Row>,
}

/// The container's port, as it stands in it.
pub(super) fn ports(port: u16) -> Value {
    json!([{"name": PORT_NAME, "containerPort": port, "protocol": "TCP"}])
}

/// A probe of that kind, with the numbers of the contract: initial delay, period, timeout, failures.
pub(super) fn probe(handler: (&str, Value), numbers: &[(&str, i64)]) -> Value {
    let mut probe = Map::from_iter([(handler.0.to_owned(), handler.1)]);
    probe.extend(numbers.iter().map(|(name, number)| ((*name).to_owned(), json!(number))));
    Value::Object(probe)
}

/// The request for that container.
pub(super) fn composed(
    identity: &Identity,
    (said, pod_spec): (&shape::Container, Option<&shape::Raw>),
    container: Container,
    settings: &Settings,
) -> Result<Composed, ComposeFault> {
    let Container { role, port, mut own, variables, mut pod, config, port_variable } = container;
    let (variables, ignored) = variables.all();
    own.insert("name".to_owned(), json!(role.container()));
    own.insert("imagePullPolicy".to_owned(), json!("IfNotPresent"));
    own.insert("ports".to_owned(), ports(port));
    if !variables.is_empty() {
        own.insert("env".to_owned(), variables.iter().map(|variable| variable.entry.clone()).collect());
    }
    let texts = |texts: &Option<Vec<String>>| texts.as_ref().map(|texts| json!(texts));
    for (name, value) in [
        ("image", said.image.as_ref().map(|image| json!(image))),
        ("command", texts(&said.command)),
        ("args", texts(&said.args)),
        ("resources", said.resources.clone()),
    ] {
        if let Some(value) = value {
            own.insert(name.to_owned(), value);
        }
    }
    pod.insert("containers".to_owned(), json!([own]));
    let mut spec = Value::Object(pod);
    if let Some(patch) = pod_spec {
        spec = patched(&spec, patch, role.container())?;
    }
    let mut pod_annotations = carried(&identity.annotations);
    let port_variable = port_variable.map_or_else(|| "none".to_owned(), |row| row.name.of(""));
    pod_annotations.entry(keys::ANNOTATION_PORT_VARIABLE.to_owned()).or_insert(port_variable);
    if spec.get("containers").and_then(Value::as_array).is_some_and(|containers| containers.len() > 1) {
        pod_annotations.insert(ANNOTATION_DEFAULT_CONTAINER.to_owned(), role.container().to_owned());
    }
    if let Some(config) = &config {
        pod_annotations.insert(ANNOTATION_CONFIG.to_owned(), short(&digest::of_bytes(config.as_bytes())));
    }
    pod_annotations.insert(ANNOTATION_HASH.to_owned(), short(&digest::of_json(&spec)));
    let image = spec.pointer("/containers/0/image").and_then(Value::as_str).map(str::to_owned);
    let request = WorkloadRequest {
        owner: identity.owner.clone(),
        name: role.object(identity.name()),
        api_version: API_VERSION,
        kind: role.kind(),
        image,
        selector: role.labels(identity.name()),
        labels: carried(&identity.labels),
        marks: BTreeMap::from([(keys::LABEL_KAOS_KIND.to_owned(), role.word().to_owned())]),
        annotations: carried(&identity.annotations),
        pod_annotations,
        pod_template: json!({"spec": spec}),
        replicas: None,
        service_ports: service_ports(role, port, settings),
        service_type: Some("ClusterIP"),
        container_port: i64::from(port),
        profile: LockdownProfile::Open,
        own_account: false,
    };
    Ok(Composed { request, variables, ignored, port, config })
}

/// An object of that name beside the workload, owned by what asked, with one member.
#[must_use]
pub fn beside(role: Role, identity: &Identity, name: &str, (member, value): (&str, Value)) -> Value {
    let mut labels = role.labels(identity.name());
    labels.insert(keys::LABEL_APP_MANAGED_BY.to_owned(), keys::MANAGED_BY_DRAWBRIDGE.to_owned());
    let owner = json!({
        "apiVersion": API_VERSION, "kind": role.kind(), "name": identity.name(), "uid": identity.owner.uid,
        "controller": true, "blockOwnerDeletion": true,
    });
    json!({
        "metadata": {"name": name, "namespace": identity.namespace(), "labels": labels, "ownerReferences": [owner]},
        member: value,
    })
}

/// As long as the original's.
fn short(digest: &str) -> String {
    digest.chars().take(16).collect()
}

/// What of an object's labels or annotations is said of its workload: enrolment and protocols.
fn carried(of: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let ours = |key: &str| key.starts_with("kagenti.io/") || key.starts_with("protocol.kagenti.io/");
    let kept = of.iter().filter(|(key, _)| ours(key) && !WRITTEN.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn service_ports(role: Role, port: u16, settings: &Settings) -> Vec<Value> {
    let one = |name: &str, from: u16| json!({"name": name, "port": from, "targetPort": port, "protocol": "TCP"});
    let mut ports = vec![one(PORT_NAME, port)];
    // The first is what the command line and other tools use.
    if settings.service_port_80 && role != Role::ModelApi {
        ports.push(one("http-80", 80));
    }
    ports
}

/// The spec of the HTTPRoute through that Gateway, which is in that namespace; `0s` is no timeout.
#[must_use]
pub fn route(
    role: Role,
    identity: &Identity,
    (port, timeout): (u16, Option<&str>),
    (gateway, namespace): (&Gateway, &str),
) -> Value {
    let default = match role {
        Role::Agent => &*gateway.agent_timeout,
        Role::ModelApi => &*gateway.model_api_timeout,
        Role::McpServer => &*gateway.mcp_timeout,
    };
    let timeout = timeout.unwrap_or(default);
    let mut rule = json!({
        "matches": [{"path": {"type": "PathPrefix", "value": role.path(identity.namespace(), identity.name())}}],
        "filters": [{"type": "URLRewrite", "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}}],
        "backendRefs": [{"name": role.object(identity.name()), "port": port}],
    });
    if timeout != "0s" {
        rule["timeouts"] = json!({"request": timeout});
    }
    json!({"parentRefs": [{"name": gateway.name, "namespace": namespace}], "rules": [rule]})
}
