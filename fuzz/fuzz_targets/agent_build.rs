//! Reviews of AgentBuilds, and what is composed from them. In: a byte that chooses the world, then the body of a review. Laws: equal requests
//! give equal verdicts; completing refuses nothing that is an object and touches nothing that is being deleted; its operations apply to the
//! object as received, write only what the webhook may write, take no step and no value from the user, and are none on a second call; judging
//! changes nothing, and refuses nothing that is left alone; what it accepts without a word about ConfigMaps composes, twice the same, into a run
//! that our own watch reads and that has no placeholder left.
#![no_main]

use std::collections::BTreeMap;

use drawbridge::admission::verdict::Verdict;
use drawbridge::admission::{evaluate, explain};
use drawbridge::store::{Kind, change_of};
use drawbridge::api::review::{self, Operation, Phase, Request};
use drawbridge::pipelines::agent_build::{Change, MODES, read, validate};
use drawbridge::pipelines::compose::{MAX_RUN, Surroundings, compose};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys;
use drawbridge::domain::reason::Class;
use drawbridge_fuzz::answers::{applied, encoded, in_phase, short, with_objects};
use drawbridge_fuzz::{builds, mutate, words};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Value, json};

/// What the webhook may write.
const WRITTEN: [&str; 5] = [
    "/spec/mode",
    "/spec/source/sourceRevision",
    "/spec/pipeline/namespace",
    "/spec/pipeline/steps",
    "/metadata/annotations",
];
const ANNOTATIONS: [&str; 4] = [
    keys::ANNOTATION_PIPELINE_ORIGIN,
    keys::ANNOTATION_PIPELINE_TEMPLATE,
    keys::ANNOTATION_STEP_HASHES,
    keys::ANNOTATION_REFRESH_HANDLED,
];

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::behind_selector(data, (size, max_size), (seed, 8), &words::BUILDS)
});

fuzz_target!(|data: &[u8]| {
    let Some((selector, body)) = data.split_first() else { return };
    let Ok(request) = review::parse(body, Phase::Mutate) else { return };
    if request.kind.group != keys::GROUP_AGENT || request.kind.kind != "AgentBuild" {
        return;
    }
    let snapshot = builds::world(*selector);
    let completed = decided(&request, snapshot);
    let parsed = |raw: &Option<review::Raw<'_>>| {
        serde_json::from_str::<Value>(raw.as_ref()?.get()).ok().filter(Value::is_object)
    };
    let (Some(before), old) = (parsed(&request.object), parsed(&request.old_object)) else { return };
    let readable = old.is_some() || request.operation != Operation::Update;
    let judged = matches!(request.operation, Operation::Create | Operation::Update)
        && request.sub_resource.as_deref().is_none_or(str::is_empty);
    if !readable || !judged {
        return;
    }
    assert!(completed.allowed(), "completing refuses: {:?}", completed.outcome);
    let after = applied(&before, &completed.operations());
    if is_deleting(&before) {
        assert_eq!(before, after, "something on its way out is changed");
    }
    only_ours(&before, &after);
    if old.is_none() {
        keeps_what_is_written(&before, &after);
    }
    let old = old.filter(|_| request.operation == Operation::Update);
    let second = decided_on(&request, &after, old.as_ref(), Phase::Mutate, snapshot);
    assert_eq!(second.operations(), [], "the second call changes something");
    let stored = decided_on(&request, &after, Some(&after), Phase::Mutate, snapshot);
    assert_eq!(stored.operations(), [], "an update that changes nothing is changed");

    let judged = decided_on(&request, &after, old.as_ref(), Phase::Validate, snapshot);
    assert!(judged.operations().is_empty(), "a validating review changes something");
    assert!(!is_deleting(&after) || judged.allowed(), "something on its way out is refused");
    let alone = decided_on(&request, &after, Some(&after), Phase::Validate, snapshot);
    assert!(alone.allowed(), "what is left alone is refused: {:?}", alone.outcome);
    composed(&after, request.namespace(), snapshot);
});

fn decided(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let verdict = evaluate(request, snapshot);
    assert_eq!(verdict, evaluate(request, snapshot), "equal requests, different verdicts");
    assert_eq!(verdict, explain(request, snapshot).0, "explained and decided differ");
    encoded(request, &verdict);
    short(&verdict);
    verdict
}

fn decided_on(
    request: &Request<'_>,
    object: &Value,
    old: Option<&Value>,
    phase: Phase,
    snapshot: &Snapshot,
) -> Verdict {
    with_objects(request, object, old, |request| decided(&in_phase(request, phase), snapshot))
}

fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// Everything but what the webhook may write is as it was.
fn only_ours(before: &Value, after: &Value) {
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()));
        }
        let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        for pointer in WRITTEN {
            let (parent, key) = pointer.rsplit_once('/').expect("pointers begin with a slash");
            let own = object
                .pointer(pointer)
                .is_none_or(|value| key != "annotations" || is_empty(value) || !value.is_object());
            if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut).filter(|_| own) {
                parent.remove(key);
            }
        }
        if object.pointer("/spec/pipeline").is_some_and(is_empty)
            && let Some(spec) = object.pointer_mut("/spec").and_then(Value::as_object_mut)
        {
            spec.remove("pipeline");
        }
        if object.get("metadata").is_some_and(is_empty)
            && let Some(object) = object.as_object_mut()
        {
            object.remove("metadata");
        }
        object
    };
    assert_eq!(rest(before), rest(after), "more than the webhook's own is written");
}

/// At creation a value that stands there stays, steps included.
fn keeps_what_is_written(before: &Value, after: &Value) {
    for pointer in WRITTEN.iter().filter(|pointer| **pointer != "/metadata/annotations") {
        let Some(written) = before.pointer(pointer) else { continue };
        let open = written.is_null() || written == "" || written == &json!([]);
        assert!(open || after.pointer(pointer) == Some(written), "{pointer} is overwritten");
    }
}

fn composed(object: &Value, namespace: &str, snapshot: &Snapshot) {
    let builds = &snapshot.builds;
    let findings = validate(&Change { namespace, object, old: None }, &builds.view, &builds.settings.pipelines);
    let (request, _) = read(object, namespace, &builds.view, 1);
    let around = Surroundings {
        steps: builds.view.steps(builds.view.namespace(&request.steps_namespace)),
        settings: &builds.settings.pipelines,
        accounts: None,
    };
    let composed = compose(&request, around);
    assert_eq!(composed, compose(&request, around), "equal requests compose differently");
    let mode = object.pointer("/spec/mode").and_then(Value::as_str).unwrap_or("");
    let waits = findings.notes.iter().any(|note| note.reason.class() == Class::Denied);
    let is_accepted = findings.faults.is_empty() && !is_deleting(object) && MODES.contains(&mode);
    assert!(
        !is_accepted || composed.is_ok() != waits,
        "accepted, waits: {waits}, but composed: {composed:?} of {object}"
    );
    let Ok(composition) = composed else { return };
    let text = composition.run.to_string();
    assert!(text.len() <= MAX_RUN);
    assert!(change_of(Kind::PipelineRun, &text).is_ok(), "our own watch does not read {text}");
    assert!(change_of(Kind::PersistentVolumeClaim, &composition.claim.to_string()).is_ok());
    for object in [&composition.run, &composition.claim] {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("");
        assert!(!name.is_empty() && name.len() <= 253, "{name:?}");
        let labels: BTreeMap<&str, &str> = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect();
        assert!(labels.values().all(|value| value.len() <= 63), "{labels:?}");
    }
    if !object.to_string().contains("{{") {
        let tasks = composition.run.pointer("/spec/pipelineSpec/tasks").and_then(Value::as_array);
        for task in tasks.into_iter().flatten() {
            assert!(!task["params"].to_string().contains("{{"), "a placeholder is left in {}", task["params"]);
            assert!(!task["when"].to_string().contains("{{"), "a placeholder is left in {}", task["when"]);
        }
    }
}
