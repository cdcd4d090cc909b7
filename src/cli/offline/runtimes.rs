//! What becomes of the AgentRuntimes of a stream of manifests.
//!
//! In: an AgentRuntime, the workloads of the stream and those that are made of its objects, and a snapshot that knows all AgentRuntimes of the
//! stream. Out: whether it enrols its target, or what is in the way, with the field it is about. The reading and the winner are those of the
//! controllers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::workload::Subject;
use super::{agents, governed};
use crate::cli::survey::{AGENT_RUNTIME, label, text};
use crate::config::inputs::{AgentRuntimeInput, Target};
use crate::config::namesakes;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::store::Kind;

/// The workloads of a stream, and its AgentRuntimes.
#[derive(Debug, Clone, Default)]
pub struct Workloads {
    all: Vec<(Subject, Value)>,
    /// With namespace and name, in their order.
    runtimes: Vec<((String, String), Value)>,
}

/// Something in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Why.
    pub reason: Reason,
    /// Path of the field it is about.
    pub field: &'static str,
    /// What, and what to do.
    pub text: String,
}

/// What becomes of one AgentRuntime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fate {
    /// Such as `AgentRuntime team1/weather`.
    pub title: String,
    /// Such as `Deployment team1/weather`; `None` when it names nothing that can be enrolled.
    pub target: Option<String>,
    /// What is in the way; it enrols its target when there is nothing.
    pub obstacles: Vec<Obstacle>,
}

impl Workloads {
    /// The workloads among some objects, and those that a controller makes of the objects of KAOS among them. What the objects have themselves
    /// comes first: it is that which a cluster would have.
    pub fn of<'v>(objects: impl IntoIterator<Item = &'v Value>, namespace: &str) -> Self {
        let (mut all, mut made, mut runtimes) = (Vec::new(), Vec::new(), Vec::new());
        for object in objects {
            if is_agent_runtime(object) {
                let (place, name) = agents::place(object, namespace);
                runtimes.push(((place.to_owned(), name.to_owned()), object.clone()));
            } else if let Some(subject) = Subject::of(object, namespace) {
                all.push((subject, object.clone()));
            } else if let Some(deployment) = of_kaos(object, namespace)
                && let Some(subject) = Subject::of(&deployment, namespace)
            {
                made.push((subject, deployment));
            }
        }
        all.append(&mut made);
        Self { all, runtimes }
    }

    /// Another AgentRuntime of that name stands further down, which takes the place of this one when both are applied.
    fn is_replaced(&self, object: &Value, (place, name): (&str, &str)) -> bool {
        let last = self.runtimes.iter().rev().find(|((at, known), _)| at == place && known == name);
        !name.is_empty() && last.is_some_and(|(_, last)| last != object)
    }

    fn find(&self, namespace: &str, workload: &Workload) -> Option<&(Subject, Value)> {
        self.all.iter().find(|(subject, _)| subject.namespace == namespace && subject.workload == *workload)
    }
}

/// The kinds of KAOS of which a Deployment is made.
const OF_KAOS: [Kind; 3] = [Kind::KaosAgent, Kind::ModelApi, Kind::McpServer];

/// The Deployment that a controller makes of an object of KAOS, as far as an AgentRuntime asks for it: where it is, and the type label that reaches
/// it and its Pods from the object. More than the object itself goes into the rest of it. `None` of every other object.
fn of_kaos(object: &Value, namespace: &str) -> Option<Value> {
    let version = text(object, "/apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = Kind::of(group, text(object, "/kind"))?;
    let (place, name) = agents::place(object, namespace);
    if !OF_KAOS.contains(&kind) || kind.api_version() != version || name.is_empty() {
        return None;
    }
    let labels = label(object, keys::LABEL_TYPE).map_or_else(|| json!({}), |own| json!({keys::LABEL_TYPE: own}));
    Some(json!({
        "apiVersion": WorkloadKind::Deployment.api_version(),
        "kind": WorkloadKind::Deployment.as_str(),
        "metadata": {"name": namesakes::made(kind, name), "namespace": place, "labels": labels},
        "spec": {"template": {"metadata": {"labels": labels}}},
    }))
}

/// Whether an object is meant as an AgentRuntime, of whichever version.
#[must_use]
pub fn is_agent_runtime(object: &Value) -> bool {
    let version = text(object, "/apiVersion");
    let group = version.split_once('/').map_or(version, |(group, _)| group);
    Kind::of(group, text(object, "/kind")) == Some(Kind::AgentRuntime)
}

/// Where the version of an object stands.
pub const API_VERSION: &str = "apiVersion";

/// What becomes of an AgentRuntime.
#[must_use]
pub fn fate(object: &Value, namespace: &str, workloads: &Workloads, snapshot: &Snapshot) -> Fate {
    let place = Some(text(object, "/metadata/namespace")).filter(|place| !place.is_empty()).unwrap_or(namespace);
    let name = text(object, "/metadata/name");
    let title = format!("{AGENT_RUNTIME} {place}/{name}");
    let (served, version) = (Kind::AgentRuntime.api_version(), text(object, "/apiVersion"));
    // Nobody reads what the API server does not know.
    if version != served {
        let text = format!("{API_VERSION}: the API server knows no {AGENT_RUNTIME} of {version:?}; write {served}");
        let obstacles = vec![Obstacle { reason: Reason::FieldInvalid, field: API_VERSION, text }];
        return Fate { title, target: None, obstacles };
    }
    let says = AgentRuntimeInput::of_object(object);
    let replaced = workloads.is_replaced(object, (place, name)).then(|| Obstacle {
        reason: Reason::FieldInvalid,
        field: "metadata.name",
        text: format!(
            "metadata.name: the input has another {title}, and whichever is applied last is the only one; keep one of them, or give them two names"
        ),
    });
    let of_fields = says.faults.iter().map(|fault| Obstacle {
        reason: fault.reason,
        field: fault.field,
        text: format!("{}: {} ({} was found)", fault.field, fault.message, fault.seen),
    });
    let mut obstacles: Vec<Obstacle> = replaced.into_iter().chain(of_fields).collect();
    let workload = says.target.as_ref().map(|Target { kind, name }| Workload { kind: *kind, name: name.to_string() });
    if let Some(workload) = &workload {
        let more = of_target((place, name), workload, workloads, snapshot);
        obstacles.extend(more);
    }
    let target = workload.map(|Workload { kind, name }| format!("{} {place}/{name}", WorkloadKind::as_str(kind)));
    Fate { title, target, obstacles }
}

fn of_target(
    (place, name): (&str, &str),
    workload: &Workload,
    workloads: &Workloads,
    snapshot: &Snapshot,
) -> Option<Obstacle> {
    let governor = snapshot.namespace(place).and_then(|view| view.governors.winner(workload.kind, &workload.name));
    let title = format!("{} {place}/{}", workload.kind.as_str(), workload.name);
    if let Some(other) = governor.filter(|governor| *governor.name != *name) {
        let text = format!(
            "AgentRuntime {} points at {title}, too, and governs it; the oldest one does, and of those not stored yet the first by name: \
             keep one of them",
            other.name
        );
        return Some(Obstacle { reason: Reason::DuplicateTarget, field: "spec.targetRef", text });
    }
    let Some((subject, object)) = workloads.find(place, workload) else {
        let text = format!("{title} is not in the input: give its manifest as well, or check kind, name and namespace");
        return Some(Obstacle { reason: Reason::TargetNotFound, field: "spec.targetRef.name", text });
    };
    let text = governed::conflict(object, subject, snapshot)?;
    Some(Obstacle { reason: Reason::LabelConflict, field: "spec.type", text })
}

/// The namespaces of AgentRuntimes and workloads, so that the world knows them.
#[must_use]
pub fn namespaces<'v>(objects: impl IntoIterator<Item = &'v Value>, namespace: &str) -> BTreeSet<String> {
    let of = |object: &Value| match text(object, "/metadata/namespace") {
        "" => namespace.to_owned(),
        own => own.to_owned(),
    };
    objects
        .into_iter()
        .filter(|object| is_agent_runtime(object) || Subject::of(object, namespace).is_some())
        .map(of)
        .collect()
}
