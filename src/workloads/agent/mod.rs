//! The front end for Agent of `agent.kagenti.dev/v1alpha1`.
//!
//! In: the raw object of a review or a watch, the platform's settings, and the AgentBuilds of its namespace where they
//! are known. Out: a request of the engine ([`workload`]), and every fault and everything that deserves attention
//! ([`validate`]). An update that leaves the spec as it is, and an
//! object on its way out, are never refused.

mod applied;
mod lockdown;
mod ports;
pub mod privileges;
mod read;
mod unknown;

pub use read::workload;

use std::collections::BTreeSet;

use serde_json::Value;

use super::settings::Settings;
use super::workload::AGENT_CONTAINER;
use crate::api::findings::{Fault, Findings, Note};
use crate::api::syntax;
use crate::domain::keys;
use crate::domain::reason::Reason;

const CONTAINERS: &str = "spec.podTemplateSpec.spec.containers";

/// One review of an Agent.
#[derive(Debug, Clone, Copy)]
pub struct AgentChange<'a> {
    /// The object as it would be stored.
    pub object: &'a Value,
    /// The stored object; `None` when it is created.
    pub old: Option<&'a Value>,
    /// Names of the AgentBuilds of its namespace; `None` when they are not known.
    pub builds: Option<&'a BTreeSet<String>>,
    /// Version of the API server, major and minor: which fields of a Pod it knows.
    pub server: (u32, u32),
}

/// What is wrong with an Agent and what deserves attention.
#[must_use]
pub fn validate(change: &AgentChange<'_>, settings: &Settings) -> Findings {
    let object = change.object;
    let mut findings = Findings::default();
    let deleting = object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null());
    if deleting || change.old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return findings;
    }
    name(object, &mut findings);
    image_source(change, &mut findings);
    containers(object, &mut findings);
    applied::check(object, &mut findings);
    ports::check(object, &mut findings);
    metadata(object, &mut findings);
    lockdown::check(object, settings.lockdown, &mut findings);
    unknown::check(object, change.server, &mut findings);
    findings
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of.get(key).and_then(Value::as_str).unwrap_or("")
}

fn list<'v>(of: &'v Value, pointer: &str) -> &'v [Value] {
    of.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The Pod of the template.
fn pod(object: &Value) -> &Value {
    object.pointer("/spec/podTemplateSpec/spec").unwrap_or(&Value::Null)
}

/// The container that gets the image.
fn agent_container(object: &Value) -> Option<(usize, &Value)> {
    let containers = list(pod(object), "/containers");
    let named = containers.iter().position(|container| text(container, "name") == AGENT_CONTAINER);
    let index = named.unwrap_or(0);
    containers.get(index).map(|container| (index, container))
}

/// Deployment, Service and ServiceAccount have the Agent's name.
fn name(object: &Value, findings: &mut Findings) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
    if !syntax::is_service_name(name) {
        let sentence =
            "is not a name that a Service can have: a letter, then at most 62 of a-z, 0-9 and -, not ending in -";
        findings.fault(Fault::invalid("metadata.name", sentence, "rename the Agent").seeing(name));
    }
}

fn image_source(change: &AgentChange<'_>, findings: &mut Findings) {
    const PATH: &str = "spec.imageSource";
    let object = change.object;
    let at = |pointer: &str| object.pointer(pointer).filter(|value| !value.is_null());
    let image = at("/spec/imageSource/image").map(|image| ("spec.imageSource.image", image));
    let alias = at("/spec/image").map(|image| ("spec.image", image));
    let build = at("/spec/imageSource/buildRef");
    let given = [image.is_some(), alias.is_some(), build.is_some()].into_iter().filter(|given| *given).count();
    if given != 1 {
        let sentence =
            format!("must have exactly one of image, buildRef (or spec.image in its place); {given} were given");
        findings.fault(Fault::new(
            Reason::FieldRequired,
            PATH,
            sentence,
            "name an image, or the AgentBuild that makes it",
        ));
        return;
    }
    if let Some((path, image)) = image.or(alias) {
        let image = image.as_str().unwrap_or("");
        if image.is_empty() {
            findings.fault(Fault::required(path, "name the image"));
        } else if !syntax::is_image_reference(image) {
            let remedy = "write registry/path:tag, all but the tag in lower case";
            findings.fault(Fault::invalid(path, syntax::no_image(image), remedy).seeing(image));
        } else {
            moving(path, image, findings);
        }
    }
    let Some(build) = build else { return };
    let (path, name) = ("spec.imageSource.buildRef.name", text(build, "name"));
    if name.is_empty() {
        findings.fault(Fault::required(path, "name an AgentBuild of this namespace"));
    } else if !syntax::is_subdomain(name) {
        findings
            .fault(Fault::invalid(path, "is not the name of an AgentBuild", "name one of this namespace").seeing(name));
    } else if change.builds.is_some_and(|builds| !builds.contains(name)) {
        let text = format!("there is no AgentBuild {name} in this namespace yet; the Agent waits for it");
        findings.note(Note::new(Reason::BuildUnknown, path, text));
    }
}

pub(in crate::workloads) fn moving(path: &str, image: &str, findings: &mut Findings) {
    if image.contains('@') {
        return;
    }
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let what = match tag {
        None => "has no tag, which means latest",
        Some("latest") => "has tag latest",
        Some(_) => return,
    };
    let text = format!("{image} {what}; what runs can change with every Pod, use a version or a digest");
    findings.note(Note::new(Reason::MovingReference, path, text));
}

fn containers(object: &Value, findings: &mut Findings) {
    let pod = pod(object);
    let containers = list(pod, "/containers");
    if containers.is_empty() {
        findings.fault(Fault::new(
            Reason::FieldRequired,
            CONTAINERS,
            "must have at least one container",
            "add a container named agent",
        ));
    }
    let agent = agent_container(object).map(|(index, _)| index);
    let mut names = BTreeSet::new();
    for (kind, items) in [("containers", containers), ("initContainers", list(pod, "/initContainers"))] {
        for (index, container) in items.iter().enumerate() {
            let at = format!("spec.podTemplateSpec.spec.{kind}[{index}]");
            let name = text(container, "name");
            if !syntax::is_label(name) {
                let fault =
                    Fault::invalid(format!("{at}.name"), format!("is not {}", syntax::LABEL), "rename the container");
                findings.fault(fault.seeing(name));
            } else if !names.insert(name) {
                let sentence = "is a duplicate of another container's";
                let fault = Fault::new(Reason::DuplicateName, format!("{at}.name"), sentence, "rename one of them");
                findings.fault(fault.seeing(name));
            }
            let gets_image = kind == "containers" && Some(index) == agent;
            if !gets_image && text(container, "image").is_empty() {
                let remedy = "name its image; only the agent's container gets one";
                findings.fault(Fault::required(format!("{at}.image"), remedy));
            }
        }
    }
}

/// Whether a label is one that the operator sets itself.
fn is_reserved(key: &str) -> bool {
    [keys::LABEL_APP_NAME, keys::LABEL_APP_MANAGED_BY].contains(&key)
        || key.split_once('/').is_some_and(|(domain, _)| domain == keys::GROUP_AGENT)
}

fn metadata(object: &Value, findings: &mut Findings) {
    let entries = |pointer: &str| object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    for (key, value) in entries("/spec/labels") {
        let at = format!("spec.labels[{key}]");
        if is_reserved(key) {
            findings.fault(Fault::invalid(at, "is a reserved label, which the operator sets", "remove it"));
        } else if !syntax::is_metadata_key(key) || !value.as_str().is_some_and(syntax::is_label_value) {
            let fault = Fault::invalid(at, "is not a label that Kubernetes allows", "correct key or value");
            findings.fault(fault.seeing(value.as_str().unwrap_or("")));
        }
    }
    const TEMPLATE: &str = "spec.podTemplateSpec.metadata";
    for (key, value) in entries("/spec/podTemplateSpec/metadata/labels") {
        if !syntax::is_metadata_key(key) || !value.as_str().is_some_and(syntax::is_label_value) {
            let at = format!("{TEMPLATE}.labels[{key}]");
            let fault = Fault::invalid(at, "is not a label that Kubernetes allows", "correct key or value");
            findings.fault(fault.seeing(value.as_str().unwrap_or("")));
        }
    }
    for (at, pointer) in [
        ("spec.annotations".to_owned(), "/spec/annotations"),
        (format!("{TEMPLATE}.annotations"), "/spec/podTemplateSpec/metadata/annotations"),
    ] {
        // Of an annotation's key the API server does not mind the case.
        let refused = |key: &str| !syntax::is_metadata_key(&key.to_ascii_lowercase());
        for (key, _) in entries(pointer).filter(|(key, _)| refused(key)) {
            let sentence = "has a key that Kubernetes does not allow";
            findings.fault(Fault::invalid(&*at, sentence, "correct the key").seeing(key));
        }
        // What it says about a Pod, the webhook takes back: another ServiceAccount, a port of the node. Whoever may write Pods can
        // have these anyway; whoever writes an Agent cannot (docs/cases.md G3, G5).
        if entries(pointer).any(|(key, _)| key == keys::ANNOTATION_STATUS) {
            let at = format!("{at}[{}]", keys::ANNOTATION_STATUS);
            let sentence = "is what the webhook notes on Pods about its own parts, and nobody else may write";
            findings.fault(Fault::invalid(at, sentence, "remove it"));
        }
    }
}

#[cfg(test)]
mod tests;
