//! Objects as a watch sends them. In: a byte that chooses the kind, then one JSON document. Laws: what Kubernetes' own types decode is read; equal
//! texts are read equally, however they are spaced; a member nobody knows changes nothing, at the top, in the metadata, nor (where only chosen
//! members are kept) in spec and status; what is kept of a run's results has no blanks around it.
#![no_main]

use drawbridge::api::observed::object::{Shape, change_of};
use drawbridge::api::observed::{Change, Kind, What};
use drawbridge_fuzz::{mutate, words};
use k8s_openapi::api::{apps::v1 as apps, batch::v1 as batch, core::v1 as core, storage::v1 as storage};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::{Value, json};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::behind_selector(data, (size, max_size), (seed, 8), &words::WATCHED)
});

/// In the order in which seeds name them.
const KINDS: [Kind; 18] = [
    Kind::Namespace,
    Kind::ConfigMap,
    Kind::ServiceAccount,
    Kind::Job,
    Kind::CsiDriver,
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::CronJob,
    Kind::Sandbox,
    Kind::AgentRuntime,
    Kind::Pod,
    Kind::Agent,
    Kind::AgentBuild,
    Kind::PipelineRun,
    Kind::TaskRun,
    Kind::Service,
];

fuzz_target!(|data: &[u8]| {
    let Some((selector, body)) = data.split_first() else { return };
    let kind = KINDS[usize::from(*selector) % KINDS.len()];
    let Ok(text) = std::str::from_utf8(body) else { return };
    let Ok(object) = serde_json::from_str::<Value>(text) else { return };
    let read = change_of(kind, &object.to_string());
    // Nothing is stored without metadata.
    if object["metadata"].is_object() && is_storable(kind, &object) {
        assert!(read.is_ok(), "{kind:?}: {:?} for {object}", read.err());
    }
    let Ok(read) = read else { return };
    let again = change_of(kind, &serde_json::to_string_pretty(&object).expect("a value serialises"));
    same(&read, &again.expect("spacing means nothing"));
    if let Some(What::PipelineRun(run)) = read.now.as_ref().map(|now| &now.what) {
        assert!(run.results.iter().all(|result| result.value.trim() == &*result.value));
    }
    future(kind, &object, &read);
});

fn same(one: &Change, other: &Change) {
    assert_eq!(one, other, "read differently");
}

/// Whether the API server's types decode it; of kinds that others define only the metadata is known.
fn is_storable(kind: Kind, object: &Value) -> bool {
    fn is<T: serde::de::DeserializeOwned>(object: &Value) -> bool {
        serde_json::from_value::<T>(object.clone()).is_ok()
    }
    match kind {
        Kind::Namespace => is::<core::Namespace>(object),
        Kind::ConfigMap => is::<core::ConfigMap>(object),
        Kind::ServiceAccount => is::<core::ServiceAccount>(object),
        Kind::Job => is::<batch::Job>(object),
        Kind::CsiDriver => is::<storage::CSIDriver>(object),
        Kind::Deployment => is::<apps::Deployment>(object),
        Kind::ReplicaSet => is::<apps::ReplicaSet>(object),
        Kind::StatefulSet => is::<apps::StatefulSet>(object),
        Kind::DaemonSet => is::<apps::DaemonSet>(object),
        Kind::CronJob => is::<batch::CronJob>(object),
        Kind::Pod => is::<core::Pod>(object),
        Kind::Service => is::<core::Service>(object),
        // Their definitions let spec and status be anything that the schema lets be; the schema is the API server's to keep.
        Kind::PipelineRun | Kind::TaskRun => is::<core::ConfigMap>(&json!({"metadata": object.get("metadata")})),
        _ => false,
    }
}

/// The same object with members from a later version of its API.
fn future(kind: Kind, object: &Value, read: &Change) {
    let mut later = object.clone();
    let places: &[&str] =
        if kind.shape() == Shape::Whole { &["", "/metadata"] } else { &["", "/metadata", "/spec", "/status"] };
    for place in places {
        if let Some(members) = later.pointer_mut(place).and_then(Value::as_object_mut) {
            members.insert("zzFromALaterVersion".to_owned(), json!({"a": [1, null, {"b": "c"}]}));
        }
    }
    same(read, &change_of(kind, &later.to_string()).expect("a later version is read"));
}
