//! `--what-if KEY=VALUE`: one change to the workload or the configuration, and the difference it makes.
//!
//! A key says by itself what it is: a known label or annotation, a feature gate, a key of the platform file, a field of an AgentRuntime
//! (`spec.authBridgeMode`). For anything else the prefixes `label:`, `annotation:`, `gate:`, `platform:` and `namespace:` (a label of the
//! namespace) say it. An empty value takes it out: what was below it, or is built in, counts.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Value, json};

use crate::admission::explanation::Explanation;
use crate::api::place::mapping;
use crate::cli::offline::workload::Subject;
use crate::cli::offline::world::World;
use crate::cli::reference::keys::{Carrier, ROWS};
use crate::config::gates::Gates;
use crate::config::schema::keys::{KEYS, key as platform_key};
use crate::domain::suggest::nearest;

/// What a change is made to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Label,
    Annotation,
    NamespaceLabel,
    Gate,
    Platform,
    AgentRuntime,
}

/// The fields of an AgentRuntime that can be tried.
const FIELDS: &[&str] = &[
    "spec.type",
    "spec.authBridgeMode",
    "spec.identity.spiffe.trustDomain",
    "spec.trace.endpoint",
    "spec.trace.protocol",
    "spec.trace.sampling.rate",
];

const PREFIXES: &[(&str, Target)] = &[
    ("label:", Target::Label),
    ("annotation:", Target::Annotation),
    ("namespace:", Target::NamespaceLabel),
    ("gate:", Target::Gate),
    ("platform:", Target::Platform),
];

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    target: Target,
    key: String,
    value: String,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "--what-if {}={}", self.key, self.value)
    }
}

impl Change {
    /// Reads `KEY=VALUE`.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let (key, value) = text.split_once('=').with_context(|| format!("--what-if {text}: KEY=VALUE is expected"))?;
        let prefixed = PREFIXES.iter().find_map(|(prefix, target)| Some((*target, key.strip_prefix(prefix)?)));
        let (target, key) = match prefixed {
            Some(found) => found,
            None => (target(key)?, key),
        };
        Ok(Self { target, key: key.to_owned(), value: value.to_owned() })
    }

    /// Makes it.
    pub(super) fn apply(&self, world: &mut World, object: &mut Value, namespace: &str) -> anyhow::Result<()> {
        let scalar = || serde_json::from_str(&self.value).unwrap_or_else(|_| json!(self.value));
        match self.target {
            Target::Label => self.mark(object, "labels", namespace),
            Target::Annotation => self.mark(object, "annotations", namespace),
            Target::NamespaceLabel => {
                let place = Subject::of(object, namespace).map_or_else(|| namespace.to_owned(), |s| s.namespace);
                world.label_namespace(&place, &self.key, &self.value);
                Ok(())
            }
            Target::Gate => World::set(&mut world.gates, &self.key, scalar()),
            Target::Platform => World::set(&mut world.platform, &self.key, scalar()),
            Target::AgentRuntime => {
                let subject = Subject::of(object, namespace).context("not a Pod and nothing that makes Pods")?;
                world
                    .set_agent_runtime(&subject, &self.key, scalar())
                    .with_context(|| format!("--what-if {}", self.key))
            }
        }
    }

    fn mark(&self, object: &mut Value, map: &str, namespace: &str) -> anyhow::Result<()> {
        let subject = Subject::of(object, namespace).context("not a Pod and nothing that makes Pods")?;
        let path = subject.workload.kind.template_path().iter().copied().chain(["metadata", map]);
        let marks = mapping(object, path).with_context(|| format!("{map} of the Pod are not a mapping"))?;
        if self.value.is_empty() {
            marks.remove(&self.key);
        } else {
            marks.insert(self.key.clone(), json!(self.value));
        }
        Ok(())
    }
}

fn target(key: &str) -> anyhow::Result<Target> {
    if let Some(row) = ROWS.iter().find(|row| row.key == key) {
        return match row.carrier {
            Carrier::PodLabel => Ok(Target::Label),
            Carrier::NamespaceLabel => Ok(Target::NamespaceLabel),
            Carrier::PodAnnotation | Carrier::Ours => Ok(Target::Annotation),
            Carrier::ConfigMapLabel => {
                bail!("--what-if {key}: labels of ConfigMaps cannot be tried; try the platform key it would set")
            }
            Carrier::NamespaceAnnotation => {
                bail!(
                    "--what-if {key}: decides nothing about what Pods get; the API server refuses new Pods of whom it names, see drawbridge \
                     status -A"
                )
            }
            Carrier::ServiceAnnotation | Carrier::AgentCardAnnotation => {
                bail!("--what-if {key}: decides nothing about Pods; see drawbridge explain agentcard/NAME")
            }
            Carrier::AgentBuildAnnotation
            | Carrier::AgentAnnotation
            | Carrier::ConsentingAnnotation
            | Carrier::ServiceAccountLabel
            | Carrier::SecretAnnotation => {
                bail!("--what-if {key}: decides nothing about Pods; see drawbridge build explain")
            }
        };
    }
    let gates = Gates::default().named().map(|(name, _)| name);
    if gates.contains(&key) {
        return Ok(Target::Gate);
    }
    if platform_key(key).is_some() {
        return Ok(Target::Platform);
    }
    if FIELDS.contains(&key) {
        return Ok(Target::AgentRuntime);
    }
    let known = ROWS.iter().map(|row| row.key).chain(gates).chain(KEYS.iter().map(|key| key.path));
    let known = known.chain(FIELDS.iter().copied());
    let hint = nearest(key, known).map_or_else(
        || "say what it is with label:, annotation:, namespace:, gate: or platform:".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    bail!("--what-if {key}: not a known label, annotation, gate, platform key or field of an AgentRuntime; {hint}")
}

/// What a change would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The outcome and reason after the change, such as `skipped (OptedOut)`.
    pub outcome: String,
    /// Every line of the tree that differs.
    pub changes: Vec<Changed>,
}

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Where in the tree.
    pub path: String,
    /// Before; `None` when it was not there.
    pub before: Option<String>,
    /// After; `None` when it is gone.
    pub after: Option<String>,
}

impl Difference {
    /// The lines in which two trees differ, and the containers of ours that are in both Pods.
    pub(super) fn between(
        (before, pod_before): (&Explanation, &Value),
        (after, pod_after): (&Explanation, &Value),
    ) -> anyhow::Result<Self> {
        let is_in = |tree: &Explanation, (kind, name): (&str, &str)| {
            tree.parts.iter().any(|part| part.kind == kind && part.name == name)
        };
        let lines = |tree: &Explanation, pod: &Value| -> anyhow::Result<BTreeMap<String, String>> {
            let mut lines = BTreeMap::new();
            flatten("", &serde_json::to_value(tree).context("tree")?, &mut lines);
            for (kind, list) in [("container", "containers"), ("initContainer", "initContainers")] {
                for container in pod["spec"][list].as_array().into_iter().flatten() {
                    let name = container["name"].as_str().unwrap_or_default();
                    // The tree tells of whole containers that come or go.
                    if is_in(before, (kind, name)) && is_in(after, (kind, name)) {
                        // Its image stands in the tree.
                        let mut rest = container.clone();
                        drop(rest.as_object_mut().and_then(|members| members.remove("image")));
                        flatten(&format!("parts.{kind}.{name}"), &rest, &mut lines);
                    }
                }
            }
            Ok(lines)
        };
        let (old, new) = (lines(before, pod_before)?, lines(after, pod_after)?);
        let mut paths: Vec<&String> = old.keys().chain(new.keys()).collect();
        paths.sort();
        paths.dedup();
        let changes = paths
            .into_iter()
            .filter(|path| old.get(*path) != new.get(*path))
            .map(|path| Changed { path: path.clone(), before: old.get(path).cloned(), after: new.get(path).cloned() })
            .collect();
        Ok(Self { outcome: format!("{} ({})", after.outcome, after.reason), changes })
    }
}

/// Paths such as `parts.container.envoy-proxy`, so that an added item does not move all others.
fn flatten(path: &str, value: &Value, lines: &mut BTreeMap<String, String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        // What an item is called stands in its path already.
        Value::Object(map) => {
            let told = ["name", "kind"];
            let members = map.iter().filter(|(name, _)| !told.contains(&name.as_str()));
            members.for_each(|(name, value)| flatten(&below(name), value, lines));
        }
        Value::Array(items) => {
            for item in items {
                let text = |key: &str| item[key].as_str();
                match (text("kind"), text("name")) {
                    (Some(kind), Some(name)) => flatten(&below(&format!("{kind}.{name}")), item, lines),
                    (None, Some(name)) => flatten(&below(name), item, lines),
                    _ => {
                        let shown = item.as_str().map_or_else(|| item.to_string(), str::to_owned);
                        lines.insert(below(&shown), "present".to_owned());
                    }
                }
            }
        }
        Value::String(text) => {
            lines.insert(path.to_owned(), text.clone());
        }
        other => {
            lines.insert(path.to_owned(), other.to_string());
        }
    }
}
