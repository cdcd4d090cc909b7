//! What `validate` says about an object of ours that is no AgentRuntime: the schema's faults with their lines, then the webhooks' own
//! answer; and about the ConfigMaps that builds are made of.
//!
//! An AgentBuild is completed first, from the templates of this stream or those that ship with this binary, as the API server would have
//! the webhook do it. Faults that the schema told already are not told twice.

use json_patch::patch;
use serde_json::Value;

use super::{Findings, Placed, Severity, field_line, schema};
use crate::admission::verdict::Outcome;
use crate::api::review::Phase;
use crate::cli::offline::documents::Object;
use crate::cli::offline::review;
use crate::cli::survey::text;
use crate::cli::yaml::tree;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Kind, KindOrigin};

/// Whether an object is judged here: one of ours, but for AgentRuntimes, of which there is more to say.
pub(super) fn is_ours(object: &Value) -> bool {
    let group = text(object, "/apiVersion").split_once('/').map(|(group, _)| group);
    let kind = group.and_then(|group| Kind::of(group, text(object, "/kind")));
    let is_ours = |kind: Kind| matches!(kind.descriptor().origin, KindOrigin::Ours | KindOrigin::Compat);
    kind.is_some_and(|kind| kind != Kind::AgentRuntime && is_ours(kind))
}

/// Judges one of them.
pub(super) fn check(
    (document, Object { node, value }): &Placed<'_>,
    namespace: &str,
    snapshot: &Snapshot,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut object = value.clone();
    let title = format!("{} {}", text(&object, "/kind"), text(&object, "/metadata/name"));
    let Some(schema) = schema_of(&object) else {
        let sentence = format!("{title}: apiVersion: there is no such version of {}", text(&object, "/kind"));
        findings.add(document, node.line, Severity::Error, (Reason::FieldInvalid, sentence));
        return Ok(());
    };
    let place = text(&object, "/metadata/namespace").to_owned();
    let place = if place.is_empty() { namespace } else { &place };
    let completed = review::own_kind(&object, place, Phase::Mutate, snapshot)?;
    let written = object.clone();
    patch(&mut object, &completed.operations())?;
    name_generated(&mut object);
    // The API server asks the schema about the object as the webhook completed it.
    let is_filled_in = |path: &str| at_path(&written, path) != at_path(&object, path);
    let mut told = schema::check(node, &schema);
    told.retain(|found| found.severity != Severity::Error || !is_filled_in(&found.path));
    for found in &told {
        let code = if found.severity == Severity::Error { Reason::FieldInvalid } else { Reason::UnknownField };
        findings.add(document, found.line, found.severity, (code, format!("{title}: {}: {}", found.path, found.text)));
    }
    let verdict = review::own_kind(&object, place, Phase::Validate, snapshot)?;
    let at = |path: &str| field_line(node, path).unwrap_or(node.line);
    if let Outcome::Deny(denial) = &verdict.outcome {
        let news = denial.faults.iter().filter(|fault| {
            told.iter().all(|found| found.severity != Severity::Error || !concerns(&found.path, &fault.path))
        });
        for fault in news {
            findings.add(document, at(&fault.path), Severity::Error, (fault.reason, format!("{title}: {fault}")));
        }
    }
    for warning in &verdict.warnings {
        let path = warning.text.split(": ").next().unwrap_or("");
        findings.add(document, at(path), Severity::Warning, (warning.reason, format!("{title}: {}", warning.text)));
    }
    Ok(())
}

/// The API server makes the name between the two reviews, where the object has only its beginning.
fn name_generated(object: &mut Value) {
    const LONGEST: usize = 58;
    let beginning = text(object, "/metadata/generateName");
    if beginning.is_empty() || !text(object, "/metadata/name").is_empty() {
        return;
    }
    let beginning: String = beginning.chars().take(LONGEST).collect();
    object["metadata"]["name"] = Value::String(format!("{beginning}x7x7x"));
}

/// Judges a ConfigMap that is the template of a mode, or a step: whatever builds it would stop.
pub(super) fn check_content(
    (document, Object { node, value: object }): &Placed<'_>,
    namespace: &str,
    snapshot: &Snapshot,
    findings: &mut Findings,
) {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    if kind != "ConfigMap" || text(object, "/apiVersion") != "v1" {
        return;
    }
    let place = Some(text(object, "/metadata/namespace")).filter(|place| !place.is_empty()).unwrap_or(namespace);
    let view = &snapshot.builds.view;
    let template = name.strip_prefix(keys::PREFIX_TEMPLATE).and_then(|mode| view.template(place, mode));
    let (key, faults, notes) = match (template, view.steps(place).get(name).map(|entry| &entry.step)) {
        (Some(entry), _) => (keys::KEY_TEMPLATE, entry.template.as_ref().err(), None),
        (None, Some(Ok(step))) => (keys::KEY_TASK_SPEC, None, Some(&step.notes)),
        (None, Some(Err(faults))) => (keys::KEY_TASK_SPEC, Some(faults), None),
        (None, None) => return,
    };
    let line = node.at(&["data", key]).map_or(node.line, |text| text.line);
    for fault in faults.into_iter().flatten() {
        findings.add(document, line, Severity::Error, (fault.reason, fault.to_string()));
    }
    for note in notes.into_iter().flatten() {
        findings.add(document, line, Severity::Warning, (note.reason, format!("{}: {}", note.path, note.text)));
    }
}

/// What stands at a path such as `spec.pipeline.steps[0].name`.
fn at_path<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    object.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

/// Whether a fault of the schema at `told` is about the field at `path`, or about what it stands in.
fn concerns(told: &str, path: &str) -> bool {
    path.strip_prefix(told).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        || told.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// What the API server itself refuses of an object of ours before any webhook is asked: what its definition's schema does not allow, as `validate`
/// says it, without lines. Nothing of kinds and versions that have no definition here.
pub(in crate::cli) fn refused_by_schema(object: &Value) -> Vec<String> {
    let Some(schema) = schema_of(object) else { return Vec::new() };
    // JSON is YAML, and what was read once can be read again.
    let Ok(Some(node)) = tree::parse(&object.to_string()) else { return Vec::new() };
    let found = schema::check(&node, &schema).into_iter().filter(|found| found.severity == Severity::Error);
    found.map(|found| format!("{}: {}", found.path, found.text)).collect()
}

fn schema_of(object: &Value) -> Option<Value> {
    let version = text(object, "/apiVersion").rsplit('/').next()?;
    let versions = Kind::definition_of(text(object, "/apiVersion"), text(object, "/kind"))?.spec.versions;
    let served = versions.into_iter().find(|served| served.name == version)?;
    Some(serde_json::to_value(served.schema?.open_api_v3_schema?).unwrap_or_default())
}
