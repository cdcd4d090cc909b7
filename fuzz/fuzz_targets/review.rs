//! Bodies of admission requests. In: a byte that chooses the world, then the body. Laws: a uid that can be read is
//! echoed; equal requests give equal verdicts, explained or not; every operation applies; a Pod that comes out needs
//! nothing more; no name is doubled, no mount is left without its volume, and no gate stays on what is allowed;
//! the answer is JSON that says what was decided.
#![no_main]

use std::collections::BTreeSet;

use drawbridge::admission::inject::uninject;
use drawbridge::admission::{evaluate, explain};
use drawbridge::api::json;
use drawbridge::api::review::{self, Operation, POD_UNREAD, Phase, Raw, Request};
use drawbridge::config::snapshot::Snapshot;
use drawbridge::domain::keys::{self, SCHEDULING_GATE};
use drawbridge_fuzz::answers::{applied, encoded, with_object};
use drawbridge_fuzz::{mutate, words, worlds};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::behind_selector(data, (size, max_size), (seed, 4), &words::PODS)
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
        assert!(verdict.operations().is_empty(), "a validating review changes nothing");
        // What is said of the project's own kinds is asked by their targets.
        let own = request.kind.group == keys::GROUP_AGENT;
        assert!(own || verdict.allowed(), "the review of workloads only warns");
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
    let second = with_object(request, &after, |request| evaluate(request, snapshot));
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

fn is_pod_creation(request: &Request<'_>) -> bool {
    request.phase == Phase::Mutate
        && request.operation == Operation::Create
        && request.kind.group.is_empty()
        && request.kind.kind == "Pod"
        && request.sub_resource.as_deref().is_none_or(str::is_empty)
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
