//! AgentRuntimes. In: one JSON document, or a list of them: the AgentRuntimes of a namespace. Laws: any document is read, twice the same; what a
//! reading shows of wrong values is short; a field that is right in itself is read whatever the others are; a workload has at most one governor,
//! which points at it and is not being deleted; a review has an answer, and never refuses what is being deleted or left alone.
#![no_main]

use std::collections::BTreeMap;
use std::sync::Arc;

use drawbridge::admission::evaluate;
use drawbridge::api::review::{GroupVersionKind, Operation, Phase, Request};
use drawbridge::config::agent_runtime::Governors;
use drawbridge::config::inputs::{AgentRuntimeInput, NamespaceInputs};
use drawbridge::config::schema::Platform;
use drawbridge::config::snapshot::Snapshot;
use drawbridge::config::view::namespace_view;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;

fuzz_target!(|data: &[u8]| {
    let Ok(document) = serde_json::from_slice::<Value>(data) else { return };
    let objects: &[Value] = document.as_array().map_or(std::slice::from_ref(&document), Vec::as_slice);
    let mut inputs = NamespaceInputs::default();
    for (index, object) in objects.iter().take(16).enumerate() {
        let read = AgentRuntimeInput::of_object(object);
        assert_eq!(read, AgentRuntimeInput::of_object(object));
        assert!(read.faults.iter().all(|fault| fault.seen.len() <= 512 && fault.message.len() <= 1024));
        assert!(read.trace.rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
        alone(object, &read);
        inputs.agent_runtimes.insert(Arc::from(format!("ar-{index}")), Arc::new(read));
    }
    governed(&inputs.agent_runtimes);
    let snapshot = snapshot(&inputs);
    for object in objects.iter().take(16) {
        reviewed(object, &snapshot);
    }
});

/// A mode, a trust domain and a trace read the same when nothing else stands beside them.
fn alone(object: &Value, read: &AgentRuntimeInput) {
    for key in ["authBridgeMode", "identity", "trace"] {
        let Some(value) = object.get("spec").and_then(|spec| spec.get(key)) else { continue };
        let only = AgentRuntimeInput::of_spec(&serde_json::json!({key: value}));
        match key {
            "authBridgeMode" => assert_eq!(only.mode, read.mode),
            "identity" => assert_eq!(only.trust_domain, read.trust_domain),
            _ => assert_eq!(only.trace, read.trace),
        }
    }
}

fn governed(all: &BTreeMap<Arc<str>, Arc<AgentRuntimeInput>>) {
    let governors = Governors::of(all);
    for target in all.values().filter_map(|says| says.target.as_ref()) {
        let Some(governor) = governors.winner(target.kind, &target.name) else {
            assert!(all.values().all(|says| says.deleting || says.target.as_ref() != Some(target)));
            continue;
        };
        assert!(!governor.says.deleting && governor.says.target.as_ref() == Some(target));
        let rivals = all.values().filter(|says| !says.deleting && says.target.as_ref() == Some(target));
        assert!(
            rivals.into_iter().all(|says| (&governor.says.created, &governor.says.uid) <= (&says.created, &says.uid))
        );
    }
}

fn snapshot(inputs: &NamespaceInputs) -> Snapshot {
    let platform = Platform::built_in();
    let mut snapshot = drawbridge_fuzz::worlds::world(0).clone();
    let view = namespace_view(&platform, "team1", inputs, None);
    snapshot.view.namespaces.insert("team1".into(), Arc::new(view));
    snapshot
}

fn reviewed(object: &Value, snapshot: &Snapshot) {
    let Ok(raw) = serde_json::value::to_raw_value(object) else { return };
    let review = |old: Option<&RawValue>| {
        let kind = GroupVersionKind {
            group: "agent.kagenti.dev".into(),
            version: "v1alpha1".into(),
            kind: "AgentRuntime".into(),
        };
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let request = Request {
            phase: Phase::Validate,
            uid: "fuzz".into(),
            kind,
            sub_resource: None,
            name: None,
            namespace: Some("team1".into()),
            operation,
            dry_run: None,
            object: Some((&*raw).into()),
            old_object: old.map(Into::into),
        };
        evaluate(&request, snapshot)
    };
    let created = review(None);
    assert!(created.operations().is_empty(), "a validating webhook changes nothing");
    if object.is_object() {
        assert!(review(Some(&raw)).allowed(), "what is left alone is never refused");
        if AgentRuntimeInput::of_object(object).deleting {
            assert!(created.allowed(), "what is being deleted is never refused");
        }
    }
}
