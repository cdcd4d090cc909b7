//! A workload as its AgentRuntime makes it: what the enrolment controller applies, without a cluster.
//!
//! In: a workload, and a snapshot that knows the AgentRuntimes. Out: the workload with what enrolment writes on it: the type as a label of
//! itself and of its Pod template, the marker, and the configuration hash of that template; of a workload that nothing governs and whose
//! own label enrols it, the label and the hash of the template. What neither is true of comes out as it is, and so
//! does what the controller would leave alone: a type label that somebody else wrote, and Pods that would be refused. A template that its
//! user has labelled is governed and stays as it is, because a manifest, unlike an object, does not say who wrote a label: it could not be
//! taken back.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::workload::Subject;
use crate::admission::inject;
use crate::api::place::mapping;
use crate::config::agent_runtime::{Governor, out_of_conflict};
use crate::config::enrolment::Asks;
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::{TypeLabel, selects_type};

/// The AgentRuntime that governs a workload.
#[must_use]
pub fn governor<'s>(subject: &Subject, snapshot: &'s Snapshot) -> Option<&'s Governor> {
    snapshot.namespace(&subject.namespace)?.governors.winner(subject.workload.kind, &subject.workload.name)
}

/// The type that an AgentRuntime gives the workload, when no label of its own says another one; else the type that the label on the
/// workload itself gives its Pods.
fn agent_type(object: &Value, subject: &Subject, snapshot: &Snapshot) -> Option<&'static str> {
    match governor(subject, snapshot) {
        Some(governor) => {
            let wanted = governor.says.agent_type?.as_str();
            conflict(object, subject, snapshot).is_none().then_some(wanted)
        }
        None => match asks(object, subject, snapshot) {
            Some(Asks::Enrolment(agent_type)) => Some(agent_type.as_str()),
            _ => None,
        },
    }
}

/// What the label on the workload itself asks for; `None` without one, where the Pod template carries a label, where an AgentRuntime
/// governs, and of kinds that cannot be enrolled.
#[must_use]
pub fn asks(object: &Value, subject: &Subject, snapshot: &Snapshot) -> Option<Asks> {
    let is_target = WorkloadKind::TARGETS.contains(&subject.workload.kind);
    let labels = subject.template(object)?.pointer("/metadata/labels");
    let carries_its_own = labels.is_some_and(|labels| labels.get(keys::LABEL_TYPE).is_some());
    if !is_target || carries_its_own || governor(subject, snapshot).is_some() {
        return None;
    }
    Some(snapshot.labels.asks(&TypeLabel::of_object(object)?))
}

/// A type label of the workload or its Pod template that contradicts the AgentRuntime, in words.
#[must_use]
pub fn conflict(object: &Value, subject: &Subject, snapshot: &Snapshot) -> Option<String> {
    let governor = governor(subject, snapshot)?;
    let wanted = governor.says.agent_type?.as_str();
    let places = [(Some(object), "label"), (subject.template(object), "label of the Pod template")];
    let selected = object.pointer("/spec/selector").is_some_and(selects_type);
    places.into_iter().find_map(|(place, called)| {
        let found =
            place?.pointer("/metadata/labels")?.get(keys::LABEL_TYPE)?.as_str().filter(|found| *found != wanted)?;
        Some(format!(
            "{} carries {called} {}={found}, and AgentRuntime {} says type {wanted}. {}",
            subject.title(),
            keys::LABEL_TYPE,
            governor.name,
            out_of_conflict(found, selected && called != "label"),
        ))
    })
}

/// The workload with the label of the AgentRuntime that governs it, and nothing else of what enrolment writes.
#[must_use]
pub fn with_type<'v>(object: &'v Value, subject: &Subject, snapshot: &Snapshot) -> Cow<'v, Value> {
    let labelled = || {
        let agent_type = agent_type(object, subject, snapshot)?;
        let mut changed = object.clone();
        mark(&mut changed, &[], "labels", (keys::LABEL_TYPE, agent_type))?;
        mark(&mut changed, subject.workload.kind.template_path(), "labels", (keys::LABEL_TYPE, agent_type))?;
        Some(changed)
    };
    labelled().map_or(Cow::Borrowed(object), Cow::Owned)
}

/// The workload with everything that enrolment writes on it, where its user has not labelled the template himself.
#[must_use]
pub fn enrolled<'v>(object: &'v Value, subject: &Subject, snapshot: &Snapshot) -> Cow<'v, Value> {
    let Cow::Owned(mut changed) = with_type(object, subject, snapshot) else { return Cow::Borrowed(object) };
    let marker = object.pointer("/metadata/labels").and_then(|labels| labels.get(keys::LABEL_MANAGED_BY));
    let labels = subject.template(object).and_then(|template| template.pointer("/metadata/labels"));
    if marker.is_none() && labels.is_some_and(|labels| labels.get(keys::LABEL_TYPE).is_some()) {
        return Cow::Borrowed(object);
    }
    let template = subject.template(&changed).cloned().unwrap_or_default();
    let needs = inject::needs(&subject.namespace, &subject.workload, &template, snapshot);
    if needs.refused.is_some() {
        return Cow::Borrowed(object);
    }
    let is_governed = governor(subject, snapshot).is_some();
    if !is_governed && needs.config_hash.is_none() {
        return Cow::Borrowed(object);
    }
    let marked = || {
        if marker.is_none() && is_governed {
            mark(&mut changed, &[], "labels", (keys::LABEL_MANAGED_BY, keys::MANAGED_BY_DRAWBRIDGE))?;
        }
        let hash = needs.config_hash.unwrap_or_else(|| keys::HASH_OF_NOTHING.to_owned());
        let template = subject.workload.kind.template_path();
        mark(&mut changed, template, "annotations", (keys::ANNOTATION_CONFIG_HASH, &hash))?;
        Some(changed)
    };
    marked().map_or(Cow::Borrowed(object), Cow::Owned)
}

/// The workload without what [`enrolled`] wrote on it; it is told by the marker, or by the hash of the template beside a label on the
/// workload itself: people write neither marker nor hash.
#[must_use]
pub fn released<'v>(object: &'v Value, subject: &Subject) -> Cow<'v, Value> {
    let of = |place: Option<&'v Value>, map: &str, key: &str| place?.pointer("/metadata")?.get(map)?.get(key)?.as_str();
    let template = subject.workload.kind.template_path();
    let of_template = [(template, "labels", keys::LABEL_TYPE), (template, "annotations", keys::ANNOTATION_CONFIG_HASH)];
    let of_itself = [(&[][..], "labels", keys::LABEL_MANAGED_BY), (&[][..], "labels", keys::LABEL_TYPE)];
    let is_marked = of(Some(object), "labels", keys::LABEL_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let is_labelled = of(Some(object), "labels", keys::LABEL_TYPE).is_some()
        && of(subject.template(object), "annotations", keys::ANNOTATION_CONFIG_HASH).is_some();
    let written: &[_] = if is_marked { &of_itself } else { &[] };
    if !is_marked && !is_labelled {
        return Cow::Borrowed(object);
    }
    let mut changed = object.clone();
    for (path, map, key) in written.iter().chain(&of_template) {
        unmark(&mut changed, path, map, key);
    }
    Cow::Owned(changed)
}

/// Takes an entry out of a map of an object's metadata; what is empty then goes, too.
fn unmark(object: &mut Value, path: &[&str], map: &str, key: &str) {
    let Some(place) = path.iter().try_fold(object, |place, step| place.get_mut(*step)) else { return };
    let Some(metadata) = place.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(entries) = metadata.get_mut(map).and_then(Value::as_object_mut) else { return };
    if entries.remove(key).is_some() && entries.is_empty() {
        metadata.remove(map);
    }
    if metadata.is_empty()
        && let Some(place) = place.as_object_mut()
    {
        place.remove("metadata");
    }
}

/// Sets an entry of a map of an object's metadata, which is made when it is not there; `None` where something else stands in its
/// place, which the API server refuses.
fn mark(object: &mut Value, path: &[&str], map: &str, (key, value): (&str, &str)) -> Option<()> {
    let entries = mapping(object, path.iter().copied().chain(["metadata", map]))?;
    entries.insert(key.to_owned(), json!(value));
    Some(())
}
