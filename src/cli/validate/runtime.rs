//! What `validate` says about an AgentRuntime: its fields beside the schema, and what becomes of it in this stream.
//!
//! Fields that nobody knows are found with the schema of our CustomResourceDefinition, for their lines; the rest is the validating webhook's own
//! answer, and what the controllers would find.

use serde_json::Value;

use super::{Findings, Placed, Severity, field_line, schema};
use crate::admission::verdict::Outcome;
use crate::api::review::Phase;
use crate::cli::offline::documents::Object;
use crate::cli::offline::review;
use crate::cli::offline::runtimes::{self, Workloads};
use crate::cli::survey::text;
use crate::cli::yaml::tree::Node;
use crate::config::snapshot::Snapshot;
use crate::domain::reason::{Class, Reason};
use crate::domain::suggest::nearest;
use crate::store::Kind;

/// Judges one AgentRuntime.
pub(super) fn check(
    (document, Object { node, value: object }): &Placed<'_>,
    namespace: &str,
    (workloads, snapshot): (&Workloads, &Snapshot),
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut fate = runtimes::fate(object, namespace, workloads, snapshot);
    let unknown = unknown(node, object);
    // A version that the definition does not have is told with those that it has.
    let of_version = |text: &str| text.strip_prefix(runtimes::API_VERSION).is_some_and(|rest| rest.starts_with(':'));
    if unknown.iter().any(|(.., text)| of_version(text)) {
        fate.obstacles.retain(|obstacle| obstacle.field != runtimes::API_VERSION);
    }
    for (line, severity, reason, text) in unknown {
        // What a field's own reading says of it is said below, in better words.
        if fate.obstacles.iter().any(|obstacle| text.starts_with(&format!("{}:", obstacle.field))) {
            continue;
        }
        findings.add(document, line, severity, (reason, text));
    }
    for obstacle in &fate.obstacles {
        let refused = obstacle.reason.class() == Class::Denied;
        let severity = if refused { Severity::Error } else { Severity::Warning };
        let line = field_line(node, obstacle.field).unwrap_or(node.line);
        let text = format!("{}: {}", fate.title, obstacle.text);
        findings.add(document, line, severity, (obstacle.reason, text));
    }
    let place = text(object, "/metadata/namespace");
    let place = if place.is_empty() { namespace } else { place };
    let verdict = review::own_kind(object, place, Phase::Validate, snapshot)?;
    // Unknown fields stand above, with their lines, and so does whatever is refused for a field.
    for warning in verdict.warnings.iter().filter(|warning| warning.reason != Reason::UnknownField) {
        let text = format!("{}: {}", fate.title, warning.text);
        findings.add(document, node.line, Severity::Warning, (warning.reason, text));
    }
    if let Outcome::Deny(denial) = &verdict.outcome
        && fate.obstacles.iter().all(|obstacle| obstacle.reason != denial.reason)
    {
        let line = denial.field.as_deref().and_then(|field| field_line(node, field)).unwrap_or(node.line);
        findings.add(document, line, Severity::Error, (denial.reason, format!("{}: {}", fate.title, denial.words())));
    }
    Ok(())
}

type Faults = Vec<(u64, Severity, Reason, String)>;

/// Members that no version of the schema has, values of another shape than it wants, and empty words where it names the words:
/// everywhere else an empty one counts as none.
fn unknown(node: &Node, object: &Value) -> Faults {
    let served = text(object, "/apiVersion").rsplit('/').next().unwrap_or_default().to_owned();
    let mut faults = Vec::new();
    if let Some(definition) = Kind::definition_of(text(object, "/apiVersion"), text(object, "/kind")) {
        match definition.spec.versions.iter().find(|version| version.name == served) {
            Some(version) => {
                let schema = serde_json::to_value(&version.schema).unwrap_or_default();
                below("", node, &schema["openAPIV3Schema"], &mut faults);
            }
            None => {
                let known: Vec<&str> = definition.spec.versions.iter().map(|version| version.name.as_str()).collect();
                let text = format!("apiVersion: version {served} does not exist; there is {}", known.join(", "));
                faults.push((node.line, Severity::Error, Reason::UnknownField, text));
            }
        }
    }
    faults
}

/// Members that the API server knows without a schema.
const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

fn below(path: &str, node: &Node, schema: &Value, faults: &mut Faults) {
    if let Some(words) = schema["enum"].as_array().filter(|_| node.to_json() == "") {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let text = format!(
            "{path}: the API server refuses an empty value; leave the field out, or write {}",
            words.join(" or ")
        );
        return faults.push((node.line, Severity::Error, Reason::InvalidSpec, text));
    }
    let Some(members) = schema["properties"].as_object() else { return };
    let value = node.to_json();
    if !value.is_object() {
        if !value.is_null() {
            faults.push((node.line, Severity::Error, Reason::UnknownField, format!("{path}: a mapping is expected")));
        }
        return;
    }
    for (key, child) in node.entries() {
        let place = schema::joined(path, &key.text);
        if path.is_empty() && (OF_EVERY_OBJECT.contains(&key.text.as_str()) || key.text == "status") {
            continue;
        }
        match members.get(&key.text) {
            Some(member) => below(&place, child, member, faults),
            None => {
                let hint = nearest(&key.text, members.keys().map(String::as_str)).map_or_else(
                    || format!("there are {}", members.keys().cloned().collect::<Vec<_>>().join(", ")),
                    |near| format!("did you mean {near}?"),
                );
                faults.push((
                    key.line,
                    Severity::Warning,
                    Reason::UnknownField,
                    format!("{place}: the API server knows no such field and drops it; {hint}"),
                ));
            }
        }
    }
}
