//! The workload whose controller sends a Pod, made back from the Pod; what `kubectl apply` would have been given.

use drawbridge::cli::offline::workload::Subject;
use drawbridge::domain::keys;
use drawbridge::domain::workload::{Workload as Named, WorkloadKind};
use serde_json::{Map, Value, json};
use webhook_tests::corpus::fixture::Fixture;

/// A workload.
pub(super) struct Workload {
    /// The object.
    pub(super) object: Value,
    /// Its kind.
    pub(super) kind: &'static str,
    /// Its name.
    pub(super) name: String,
    /// The Pod that its controller sends.
    pub(super) pod: Value,
}

/// The workload of a Pod; `None` of one that nobody controls, or somebody of whom manifests do not tell.
pub(super) fn of(pod: &Value, (fixture, namespace): (&Fixture, &str)) -> Option<Workload> {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let text = |value: &Value, member: &str| value[member].as_str().unwrap_or_default().to_owned();
    let version = text(owner, "apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let label = pod.pointer("/metadata/labels")?.get(keys::LABEL_POD_TEMPLATE_HASH).and_then(Value::as_str);
    let Named { kind, name } = match WorkloadKind::from_group_kind(group, &text(owner, "kind"))? {
        WorkloadKind::ReplicaSet => Named::of_replica_set(&text(owner, "name"), label),
        WorkloadKind::Job => {
            let job = fixture.objects.values().find(|job| {
                let is = |member: &str| job["metadata"][member] == owner[member];
                job["kind"] == "Job" && is("uid") && is("name") && job["metadata"]["namespace"] == namespace
            })?;
            let above = job.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
            let above = above.filter(|above| above["controller"] == true);
            let above = above.map(|above| (text(above, "apiVersion"), text(above, "kind"), text(above, "name")));
            let above = above.map(|(version, kind, name)| {
                (version.split_once('/').map_or(String::new(), |(group, _)| group.to_owned()), kind, name)
            });
            let above = above.collect::<Vec<_>>().pop();
            let above = above.as_ref().map(|(group, kind, name)| (group.as_str(), kind.as_str(), name.as_str()));
            Named::of_job(&text(owner, "name"), above)
        }
        kind => Named { kind, name: text(owner, "name") },
    };
    let mut metadata = Map::new();
    for map in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = pod.pointer("/metadata").and_then(|metadata| metadata.get(map)) {
            let mut entries = entries.clone();
            entries.remove(keys::LABEL_POD_TEMPLATE_HASH);
            metadata.insert(map.to_owned(), Value::Object(entries));
        }
    }
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.as_str(),
        "metadata": {"name": name, "namespace": namespace}});
    if kind == WorkloadKind::Job {
        object["metadata"]["uid"] = owner["uid"].clone();
    }
    let mut place = &mut object;
    for step in kind.template_path() {
        place = &mut place[*step];
    }
    *place = json!({"metadata": metadata, "spec": pod["spec"]});
    let subject = Subject::of(&object, namespace)?;
    let mut sent = subject.pod(&object);
    // As the API server's controllers send it: with the owner that the case has.
    sent["metadata"]["ownerReferences"] = json!([owner]);
    if let Some(hash) = label {
        sent["metadata"]["labels"][keys::LABEL_POD_TEMPLATE_HASH] = json!(hash);
        sent["metadata"]["generateName"] = json!(format!("{}-{hash}-", subject.workload.name));
    }
    Some(Workload { object, kind: kind.as_str(), name, pod: sent })
}
