//! Objects as a watch sends them. In: a byte that chooses the kind, then one JSON document. Laws: what Kubernetes' own types decode is read as
//! they write it; equal texts are read equally, however they are spaced; a member nobody knows changes nothing, at the top, in the metadata, nor
//! (where only chosen members are kept) in spec and status; what is kept of a run's results has no blanks around it.
#![no_main]

use drawbridge::store::decode::{Shape, change_of};
use drawbridge::store::{Change, Kind, What};
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
    // Nothing is stored without metadata.
    if object["metadata"].is_object()
        && let Some(sent) = as_sent(kind, &object)
    {
        let read = change_of(kind, &sent.to_string());
        assert!(read.is_ok(), "{kind:?}: {:?} for {sent}", read.err());
    }
    let Ok(read) = change_of(kind, &object.to_string()) else { return };
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

/// The object as the API server sends it, where its types decode it; of kinds that others define only the metadata is known.
fn as_sent(kind: Kind, object: &Value) -> Option<Value> {
    fn through<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Option<Value> {
        serde_json::to_value(serde_json::from_value::<T>(object.clone()).ok()?).ok()
    }
    match kind {
        Kind::Namespace => through::<core::Namespace>(object),
        Kind::ConfigMap => through::<core::ConfigMap>(object),
        Kind::ServiceAccount => through::<core::ServiceAccount>(object),
        Kind::Job => through::<batch::Job>(object),
        Kind::CsiDriver => through::<storage::CSIDriver>(object),
        Kind::Deployment => through::<apps::Deployment>(object),
        Kind::ReplicaSet => through::<apps::ReplicaSet>(object),
        Kind::StatefulSet => through::<apps::StatefulSet>(object),
        Kind::DaemonSet => through::<apps::DaemonSet>(object),
        Kind::CronJob => through::<batch::CronJob>(object),
        Kind::Pod => through::<core::Pod>(object),
        Kind::Service => through::<core::Service>(object),
        // Their definitions let spec and status be anything that the schema lets be; the schema is the API server's to keep.
        Kind::PipelineRun | Kind::TaskRun => {
            let known = through::<core::ConfigMap>(&json!({"metadata": object.get("metadata")}))?;
            let mut sent = object.clone();
            sent["metadata"] = known["metadata"].clone();
            Some(sent)
        }
        _ => None,
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
