//! What an AgentBuild leaves open is filled in: mode, revision, namespace of the pipeline, steps of the template; and
//! whose the steps are is recorded.
//!
//! Out: operations on the object as received, as few as possible; none for an object that is complete or on its way
//! out. The annotations of the webhook are always computed anew: what a user writes into them has no effect.

use std::collections::BTreeMap;

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation};
use serde_json::{Map, Value, json};

use super::read::pinned;
use super::{CUSTOM, Change, DEFAULT_MODE, DEFAULT_REVISION, Origin, annotation, at, mode, steps, template_name, text};
use crate::api::findings::Note;
use crate::api::secrets;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::settings::Settings;
use crate::pipelines::template::{Template, TemplateStep};
use crate::pipelines::templates::TemplatesView;

/// The annotations that only the webhook writes.
const OURS: [&str; 4] = [
    keys::ANNOTATION_PIPELINE_ORIGIN,
    keys::ANNOTATION_PIPELINE_TEMPLATE,
    keys::ANNOTATION_STEP_HASHES,
    keys::ANNOTATION_REFRESH_HANDLED,
];

/// What becomes of the steps.
enum Steps {
    /// They stay as they are in the request.
    Keep,
    /// These take their place.
    Put(Value),
}

/// What was decided about the pipeline.
struct Decision {
    steps: Steps,
    /// Whose they are; `None` while there are none.
    origin: Option<Origin>,
    /// Which template, in which state.
    template: Option<String>,
    /// Whether the steps' ConfigMaps are looked at anew.
    records: bool,
}

/// The operations that complete an AgentBuild.
#[must_use]
pub fn complete(change: &Change<'_>, view: &TemplatesView, settings: &Settings) -> Vec<PatchOperation> {
    let object = change.object;
    // Nothing can be filled in where there is nowhere to put it; what is wrong there, the schema says.
    let is_mapping = |key| object.get(key).is_some_and(Value::is_object);
    if change.is_deleting() || !is_mapping("spec") || !is_mapping("metadata") {
        return Vec::new();
    }
    let namespace = pipeline_namespace(object, settings);
    let decision = decide(change, view, settings);
    let mut operations = Vec::new();
    if text(object, "/spec/mode").is_empty() && is_open(object, "/spec/mode") {
        operations.push(add(&["spec", "mode"], json!(DEFAULT_MODE)));
    }
    if at(object, "/spec/source").is_some_and(Value::is_object) && is_open(object, "/spec/source/sourceRevision") {
        operations.push(add(&["spec", "source", "sourceRevision"], json!(DEFAULT_REVISION)));
    }
    pipeline(object, namespace, &decision, &mut operations);
    annotations(change, &recorded(change, view, namespace, &decision), &mut operations);
    operations
}

/// Absent, null or an empty text: something else is the schema's to refuse.
fn is_open(object: &Value, pointer: &str) -> bool {
    at(object, pointer).is_none_or(|value| value.is_null() || value.as_str() == Some(""))
}

fn pipeline_namespace<'a>(object: &'a Value, settings: &'a Settings) -> &'a str {
    Some(text(object, "/spec/pipeline/namespace"))
        .filter(|name| !name.is_empty())
        .unwrap_or(&settings.operator_namespace)
}

fn add(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path.iter().copied()), value })
}

fn pipeline(object: &Value, namespace: &str, decision: &Decision, operations: &mut Vec<PatchOperation>) {
    let mut members = Map::new();
    if is_open(object, "/spec/pipeline/namespace") {
        members.insert("namespace".to_owned(), json!(namespace));
    }
    if let Steps::Put(steps) = &decision.steps
        && at(object, "/spec/pipeline/steps") != Some(steps)
    {
        members.insert("steps".to_owned(), steps.clone());
    }
    match at(object, "/spec/pipeline") {
        None | Some(Value::Null) => operations.push(add(&["spec", "pipeline"], Value::Object(members))),
        Some(Value::Object(_)) => {
            let each = members.into_iter().map(|(key, value)| add(&["spec", "pipeline", &key], value));
            operations.extend(each);
        }
        Some(_) => {}
    }
}

/// Which row of the table of 6.3 rule 7 applies, as corrected.
fn decide(change: &Change<'_>, view: &TemplatesView, settings: &Settings) -> Decision {
    let (object, mode) = (change.object, mode(change.object));
    let namespace = pipeline_namespace(object, settings);
    let written = steps(object);
    let inject = || injected(view, namespace, mode);
    let users = || Decision { steps: Steps::Keep, origin: Some(Origin::User), template: None, records: true };
    let nothing = || Decision { steps: Steps::Keep, origin: None, template: None, records: true };
    // What equals the template is the template's, whoever sends it: this webhook's own second call, a restored backup.
    let sent = |written: &Value| match inject() {
        Some(decision) if matches!(&decision.steps, Steps::Put(steps) if steps == written) => decision,
        _ => users(),
    };
    let Some(old) = change.old else {
        return match written {
            Some(written) => sent(written),
            None => inject().unwrap_or_else(nothing),
        };
    };
    let origin = Origin::of(old);
    let template = annotation(old, keys::ANNOTATION_PIPELINE_TEMPLATE).map(str::to_owned);
    let kept = |steps| Decision { steps, origin: Some(origin.clone()), template: template.clone(), records: false };
    let moved = mode != super::mode(old) || namespace != pipeline_namespace(old, settings);
    let of_template = matches!(origin, Origin::Template(_));
    let anew = of_template && asks_for_refresh(change);
    match (written, steps(old)) {
        (None, Some(before)) if of_template && !moved && !anew => kept(Steps::Put(before.clone())),
        (None, _) => inject().unwrap_or_else(nothing),
        (Some(_), _) if anew && mode != CUSTOM => inject().unwrap_or_else(|| kept(Steps::Keep)),
        (Some(now), Some(before)) if now == before => {
            if moved && of_template && mode == CUSTOM {
                // The steps that the user has seen become the user's own.
                users()
            } else if moved && of_template {
                inject().unwrap_or_else(|| kept(Steps::Keep))
            } else {
                Decision { records: moved, ..kept(Steps::Keep) }
            }
        }
        (Some(now), _) => sent(now),
    }
}

/// A value of the annotation that has not been acted on.
fn asks_for_refresh(change: &Change<'_>) -> bool {
    let handled = change.old.and_then(|old| annotation(old, keys::ANNOTATION_REFRESH_HANDLED));
    annotation(change.object, keys::ANNOTATION_REFRESH_TEMPLATE).is_some_and(|wish| Some(wish) != handled)
}

/// That a wish for the template's steps comes to nothing, because there is none that could be used. It counts as acted on all the same: what comes
/// later nobody has seen.
#[must_use]
pub fn unrefreshed(change: &Change<'_>, view: &TemplatesView, settings: &Settings) -> Option<Note> {
    let old = change.old.filter(|_| !change.is_deleting() && asks_for_refresh(change))?;
    let (mode, namespace) = (mode(change.object), pipeline_namespace(change.object, settings));
    // Where the build asks for another template, that one's absence is refused.
    let stays = mode == super::mode(old) && namespace == pipeline_namespace(old, settings);
    let of_template = matches!(Origin::of(old), Origin::Template(_)) && mode != CUSTOM;
    if !stays || !of_template || steps(change.object).is_none() || injected(view, namespace, mode).is_some() {
        return None;
    }
    let (reason, why) = match view.template(namespace, mode) {
        Some(_) => (Reason::TemplateInvalid, "cannot be used"),
        None if view.is_waiting(namespace) => (Reason::TemplateMissing, "has not been read yet"),
        None => (Reason::TemplateMissing, "is not there"),
    };
    let config_map = format!("{}/{}", view.namespace(namespace), template_name(mode));
    let text = format!(
        "has no effect, and the steps stay as they are: template ConfigMap {config_map} {why}. Once it can be used, set the annotation to a value that \
         it has not had"
    );
    let path = format!("metadata.annotations[{}]", keys::ANNOTATION_REFRESH_TEMPLATE);
    Some(Note::new(reason, path, text))
}

/// The steps of the mode's template, when there is one that can be used.
fn injected(view: &TemplatesView, namespace: &str, mode: &str) -> Option<Decision> {
    let entry = view.template(namespace, mode).filter(|_| mode != CUSTOM)?;
    let template = entry.template.as_ref().ok()?;
    Some(Decision {
        steps: Steps::Put(steps_of(template)),
        origin: Some(Origin::Template(mode.to_owned())),
        template: Some(entry.title()),
        records: true,
    })
}

/// The steps of a template as they stand in a build.
pub(super) fn steps_of(template: &Template) -> Value {
    template.steps.iter().filter(|entry| entry.step.enabled).map(step_of).collect()
}

fn step_of(entry: &TemplateStep) -> Value {
    let step = &entry.step;
    let mut members = Map::new();
    members.insert("name".to_owned(), json!(step.name));
    members.insert("configMap".to_owned(), json!(step.config_map));
    if entry.says_enabled {
        members.insert("enabled".to_owned(), json!(step.enabled));
    }
    if !step.parameters.is_empty() {
        let parameters = step.parameters.iter().map(|one| json!({"name": one.name, "value": one.value}));
        members.insert("parameters".to_owned(), parameters.collect());
    }
    if !step.when.is_empty() {
        let whens = step.when.iter();
        let whens = whens.map(|one| json!({"input": one.input, "operator": one.operator, "values": one.values}));
        members.insert("whenExpressions".to_owned(), whens.collect());
    }
    Value::Object(members)
}

/// What the webhook's annotations are to say.
fn recorded(
    change: &Change<'_>,
    view: &TemplatesView,
    namespace: &str,
    decision: &Decision,
) -> BTreeMap<&'static str, String> {
    let mut recorded = BTreeMap::new();
    if let Some(origin) = &decision.origin {
        recorded.insert(keys::ANNOTATION_PIPELINE_ORIGIN, origin.value());
    }
    if let Some(template) = &decision.template {
        recorded.insert(keys::ANNOTATION_PIPELINE_TEMPLATE, template.clone());
    }
    let handled = annotation(change.object, keys::ANNOTATION_REFRESH_TEMPLATE)
        .or_else(|| change.old.and_then(|old| annotation(old, keys::ANNOTATION_REFRESH_HANDLED)));
    if let Some(handled) = handled {
        recorded.insert(keys::ANNOTATION_REFRESH_HANDLED, handled.to_owned());
    }
    let hashes = if decision.records || asks_for_refresh(change) {
        let steps = match &decision.steps {
            Steps::Put(steps) => Some(steps),
            Steps::Keep => steps(change.object),
        };
        hashes(change, (view, namespace), (steps, decision.origin.as_ref()))
    } else {
        change.old.and_then(|old| annotation(old, keys::ANNOTATION_STEP_HASHES)).map(str::to_owned)
    };
    if let Some(hashes) = hashes {
        recorded.insert(keys::ANNOTATION_STEP_HASHES, hashes);
    }
    recorded.extend(consented(change, (view, namespace), decision));
    recorded
}

/// The annotation of the Secrets that are used by their own consent: what it says, and what a template of the platform brings, so that
/// nobody needs rights to what he has not chosen.
fn consented(
    change: &Change<'_>,
    (view, namespace): (&TemplatesView, &str),
    decision: &Decision,
) -> Option<(&'static str, String)> {
    let is_platforms = view.namespace(namespace) == view.operator_namespace();
    let brought = match (&decision.origin, &decision.steps) {
        (Some(Origin::Template(_)), _) if !is_platforms => return None,
        (Some(Origin::Template(_)), Steps::Put(steps)) => secrets::of_steps(steps),
        (Some(Origin::Template(_)), Steps::Keep) => secrets::of_steps(steps(change.object)?),
        _ => return None,
    };
    let mut listed = secrets::by_consent(change.object);
    if brought.is_subset(&listed) {
        return None;
    }
    listed.extend(brought);
    let names: Vec<_> = listed.into_iter().collect();
    Some((keys::ANNOTATION_SECRETS_BY_CONSENT, names.join(",")))
}

/// What the ConfigMaps outside the operator's namespace are now: the steps', and the template's, which gives them
/// parameters for as long as the steps are its own.
fn hashes(
    change: &Change<'_>,
    (view, namespace): (&TemplatesView, &str),
    (steps, origin): (Option<&Value>, Option<&Origin>),
) -> Option<String> {
    if view.namespace(namespace) == view.operator_namespace() {
        return None;
    }
    let names = steps?.as_array()?.iter().filter_map(|step| step.get("configMap")?.as_str());
    let known = view.steps(namespace);
    let mut hashes: BTreeMap<String, String> =
        names.filter_map(|name| Some((name.to_owned(), known.get(name)?.hash.clone()))).collect();
    if let Some(Origin::Template(mode)) = origin {
        // One that is gone or broken is still the one that was reviewed: another that comes in its place was not.
        let name = template_name(mode);
        let before = || change.old.and_then(|old| pinned(old).remove(&name));
        let usable = view.template(namespace, mode).filter(|entry| entry.template.is_ok());
        let now = usable.map(|entry| entry.hash.clone());
        hashes.extend(now.or_else(before).map(|hash| (name.clone(), hash)));
    }
    (!hashes.is_empty()).then(|| json!(hashes).to_string())
}

fn annotations(change: &Change<'_>, wanted: &BTreeMap<&'static str, String>, operations: &mut Vec<PatchOperation>) {
    let present = at(change.object, "/metadata/annotations").and_then(Value::as_object);
    if present.is_none() && !wanted.is_empty() {
        operations.push(add(&["metadata", "annotations"], json!(wanted)));
        return;
    }
    let Some(present) = present else { return };
    let shared = wanted.keys().copied().filter(|key| !OURS.contains(key));
    for key in OURS.into_iter().chain(shared) {
        let path = ["metadata", "annotations", key];
        match (present.get(key), wanted.get(key)) {
            (seen, Some(value)) if seen.and_then(Value::as_str) != Some(value) => {
                operations.push(add(&path, json!(value)))
            }
            (Some(_), None) => {
                operations.push(PatchOperation::Remove(RemoveOperation { path: PointerBuf::from_tokens(path) }));
            }
            _ => {}
        }
    }
}
