//! Bodies of admission requests. In: a byte that chooses the world, then the body. Laws: a uid that can be read is
//! echoed; equal requests give equal verdicts, explained or not; every operation applies; a Pod that comes out needs
//! nothing more; no name is doubled, no mount is left without its volume, and no gate stays on what is allowed;
//! the answer is JSON that says what was decided.
#![no_main]

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::admission::inject::uninject;
use drawbridge::admission::patch::PatchOperation;
use drawbridge::admission::verdict::{Outcome, Verdict};
use drawbridge::admission::{evaluate, explain};
use drawbridge::api::json;
use drawbridge::api::review::{self, Encoded, Operation, POD_UNREAD, Phase, Raw, Request, Response, Status};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys::SCHEDULING_GATE;
use drawbridge_fuzz::{mutate, worlds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if size > 1 && seed % 4 != 0 {
        if let Some(mutant) = mutate::json(&data[1..size], seed).filter(|mutant| mutant.len() < max_size) {
            data[1..=mutant.len()].copy_from_slice(&mutant);
            return mutant.len() + 1;
        }
    }
    fuzzer_mutate(data, size, max_size)
});

fuzz_target!(|data: &[u8]| {
    let Some((selector, body)) = data.split_first() else { return };
    let phase = if selector & 0x80 == 0 { Phase::Mutate } else { Phase::Validate };
    let snapshot = worlds::world(selector & 0x0f);
    match review::parse(body, phase) {
        Err(bad) => {
            assert!(!bad.to_string().is_empty());
            if let Some(uid) = &bad.uid {
                assert_eq!(review::uid(body).as_ref(), Some(uid));
            }
        }
        Ok(request) => {
            assert_eq!(review::uid(body).as_deref(), Some(request.uid.as_ref()));
            decided(&request, snapshot);
        }
    }
});

fn decided(request: &Request<'_>, snapshot: &Snapshot) {
    let verdict = evaluate(request, snapshot);
    assert_eq!(verdict, evaluate(request, snapshot), "equal requests, different verdicts");
    assert_eq!(verdict, explain(request, snapshot).0, "explained and decided differ");
    encoded(request, &verdict);
    let Some(before) = request.object.as_ref().and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok()) else {
        // What the review of a Pod has no use for is passed over, be it JSON or not; what is read is JSON.
        let is_read = |raw: &Raw<'_>| json::tree(raw.get(), POD_UNREAD).is_ok();
        let patched = !verdict.operations().is_empty();
        assert!(!patched || request.object.as_ref().is_some_and(is_read), "a patch for something that is no object");
        return;
    };
    if request.phase == Phase::Validate {
        assert!(verdict.allowed() && verdict.operations().is_empty(), "the review of workloads only warns");
    }
    if !verdict.allowed() {
        return;
    }
    let after = applied(&before, &verdict.operations());
    names_and_mounts(&before, &after);
    if is_pod_creation(request) {
        assert!(!has_gate(&after), "the gate stays, for {}", verdict.reason.code());
    }
    if !is_storable(&before) {
        return;
    }
    let raw = to_raw_value(&after).expect("a value serialises");
    let second = evaluate(&with_object(request, &raw), snapshot);
    assert!(second.allowed(), "refused on the second call: {:?}", second.outcome);
    assert_eq!(second.operations(), Vec::new(), "the second call changes something");

    let without = applied(&after, &uninject(&after));
    assert_eq!(uninject(&without), [], "something of ours is left");
}

/// Whether the API server could send this object and would store it: it decodes what it sends, and refuses lists whose
/// names double after the webhooks have answered. Nobody sees a second call for anything else.
fn is_storable(object: &Value) -> bool {
    let mounts_differ = |container: &Value| {
        let mut seen = BTreeSet::new();
        list(container, "/volumeMounts").iter().all(|mount| seen.insert(mount["mountPath"].as_str()))
    };
    serde_json::from_value::<k8s_openapi::api::core::v1::Pod>(object.clone()).is_ok()
        && doubled(containers(object)).is_empty()
        && doubled(list(object, "/spec/volumes").iter()).is_empty()
        && containers(object).all(|container| !named(container).is_empty() && mounts_differ(container))
        && list(object, "/spec/volumes").iter().all(|volume| !named(volume).is_empty())
}

fn named(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}

fn with_object<'r>(request: &Request<'r>, object: &'r RawValue) -> Request<'r> {
    Request {
        phase: request.phase,
        uid: request.uid.clone(),
        kind: request.kind.clone(),
        sub_resource: request.sub_resource.clone(),
        name: request.name.clone(),
        namespace: request.namespace.clone(),
        operation: request.operation,
        dry_run: request.dry_run,
        object: Some(object.into()),
        old_object: request.old_object.clone(),
    }
}

fn is_pod_creation(request: &Request<'_>) -> bool {
    request.phase == Phase::Mutate
        && request.operation == Operation::Create
        && request.kind.group.is_empty()
        && request.kind.kind == "Pod"
        && request.sub_resource.as_deref().is_none_or(str::is_empty)
}

fn applied(object: &Value, operations: &[PatchOperation]) -> Value {
    let mut object = object.clone();
    json_patch::patch(&mut object, operations).unwrap_or_else(|error| panic!("{error} in {operations:?}"));
    object
}

fn has_gate(pod: &Value) -> bool {
    list(pod, "/spec/schedulingGates").iter().any(|gate| gate["name"] == SCHEDULING_GATE)
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["/spec/initContainers", "/spec/containers"].into_iter().flat_map(|pointer| list(pod, pointer))
}

/// Names that stand twice in `items`.
fn doubled<'v>(items: impl Iterator<Item = &'v Value>) -> BTreeSet<&'v str> {
    let mut seen = BTreeSet::new();
    items.filter_map(|item| item["name"].as_str()).filter(|name| !seen.insert(*name)).collect()
}

/// Volumes that a container mounts and nobody declares.
fn dangling(pod: &Value) -> BTreeSet<&str> {
    let volumes: BTreeSet<_> = list(pod, "/spec/volumes").iter().filter_map(|volume| volume["name"].as_str()).collect();
    let mounts = containers(pod).flat_map(|container| list(container, "/volumeMounts"));
    mounts.filter_map(|mount| mount["name"].as_str()).filter(|name| !volumes.contains(name)).collect()
}

/// We add neither a double nor a mount without volume to what the user sent.
fn names_and_mounts(before: &Value, after: &Value) {
    assert!(doubled(containers(after)).is_subset(&doubled(containers(before))), "a container stands twice: {after}");
    let volumes = |pod| doubled(list(pod, "/spec/volumes").iter());
    assert!(volumes(after).is_subset(&volumes(before)), "a volume stands twice: {after}");
    assert!(dangling(after).is_subset(&dangling(before)), "a mount has no volume: {after}");
}

fn encoded(request: &Request<'_>, verdict: &Verdict) {
    let patch = match &verdict.outcome {
        Outcome::Patch(operations) => {
            assert!(!operations.is_empty(), "a patch without operations");
            Some(serde_json::to_vec(operations).expect("a patch serialises"))
        }
        Outcome::Allow | Outcome::Deny(_) => None,
    };
    let (code, message) = match &verdict.outcome {
        Outcome::Deny(denial) => {
            assert!((400..600).contains(&denial.code), "code {}", denial.code);
            (denial.code, denial.to_string())
        }
        _ => (200, verdict.reason.code().to_owned()),
    };
    let warnings: Vec<String> = verdict.warnings.iter().map(ToString::to_string).collect();
    let audit: Vec<(&str, &str)> = verdict.audit.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let encoded = patch.as_deref().map(Encoded::of);
    let response = Response {
        version: review::API_VERSION,
        uid: &request.uid,
        allowed: verdict.allowed(),
        status: Status { code, message: &message },
        patch: encoded.as_ref(),
        warnings: &warnings,
        audit: &audit,
    };
    let bytes = review::encode(&response).expect("a verdict serialises");
    let answer: Value = serde_json::from_slice(&bytes).expect("an answer is JSON");
    let response = &answer["response"];
    assert_eq!(response["uid"], request.uid.as_ref());
    assert_eq!(response["allowed"], verdict.allowed());
    assert_eq!(response["status"]["code"], code);
    assert!(bytes.len() < 64 * 1024 * 1024);
    let sent = response["patch"].as_str().map(|patch| STANDARD.decode(patch).expect("the patch is base64"));
    let sent: Option<Value> = sent.map(|patch| serde_json::from_slice(&patch).expect("the patch is JSON"));
    assert_eq!(sent, patch.map(|patch| serde_json::from_slice(&patch).expect("a patch is JSON")));
}
