//! What stands around the tasks: metadata, parameters, timeouts, Pod template, workspaces; and the claim.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Examined, task, workspaces};
use crate::domain::keys;
use crate::pipelines::check::is_reserved;
use crate::pipelines::names;
use crate::pipelines::settings::Settings;

/// The PipelineRun.
pub(super) fn run(examined: &Examined<'_>, settings: &Settings) -> Value {
    let request = examined.request;
    let name = names::run_name(&request.owner.name, &examined.attempt_hash);
    let mut annotations = annotations(examined);
    annotations.insert(request.front.annotation_hash.to_owned(), examined.build_hash.clone());
    annotations.insert(request.front.annotation_attempt.to_owned(), request.attempt.to_string());
    for task in &examined.tasks {
        annotations.insert(format!("{}{}", request.front.prefix_step_hash, task.name()), task.step.hash.clone());
    }
    object([
        ("apiVersion", json!("tekton.dev/v1")),
        ("kind", json!("PipelineRun")),
        ("metadata", metadata(examined, &name, annotations)),
        ("spec", spec(examined, settings)),
    ])
}

/// An object of values that are moved into it: `json!` would copy each, and a run has the scripts of all its steps.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The claim that the tasks share.
pub(super) fn claim(examined: &Examined<'_>) -> Value {
    let request = examined.request;
    let name = names::claim_name(&request.owner.name, request.front.claim_suffix);
    let size = examined.controls.size.as_ref().unwrap_or(&request.workspace_size);
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}});
    if let Some(class) = &examined.controls.storage_class {
        spec["storageClassName"] = json!(class);
    }
    object([
        ("apiVersion", json!("v1")),
        ("kind", json!("PersistentVolumeClaim")),
        ("metadata", metadata(examined, &name, annotations(examined))),
        ("spec", spec),
    ])
}

/// The user's annotations, without those of reserved domains.
fn annotations(examined: &Examined<'_>) -> BTreeMap<String, String> {
    let own = examined.request.annotations.iter().filter(|(key, _)| !is_reserved(key));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn metadata(examined: &Examined<'_>, name: &str, annotations: BTreeMap<String, String>) -> Value {
    let request = examined.request;
    let value = names::fit(&request.owner.name, names::LABEL_LIMIT);
    let mut labels: BTreeMap<String, String> = request
        .labels
        .iter()
        .filter(|(key, _)| !is_reserved(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    labels.insert(keys::LABEL_PART_OF.to_owned(), keys::PART_OF_OPERATOR.to_owned());
    labels.insert(keys::LABEL_APP_MANAGED_BY.to_owned(), keys::MANAGED_BY_DRAWBRIDGE.to_owned());
    labels.insert(keys::LABEL_COMPONENT.to_owned(), value.clone());
    labels.extend(request.front.label_name.map(|label| (label.to_owned(), value.clone())));
    labels.insert(request.front.label_build.to_owned(), value);
    if let Some((label, group)) = request.front.label_group {
        labels.insert(label.to_owned(), group.to_owned());
    }
    if let Some(label) = request.front.label_mode {
        labels.insert(label.to_owned(), request.mode.clone());
    }
    let mut metadata = json!({
        "name": name,
        "namespace": request.owner.namespace,
        "labels": labels,
        "ownerReferences": [{
            "apiVersion": request.front.api_version,
            "kind": request.front.kind,
            "name": request.owner.name,
            "uid": request.owner.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }],
    });
    if !annotations.is_empty() {
        metadata["annotations"] = json!(annotations);
    }
    metadata
}

fn spec(examined: &Examined<'_>, settings: &Settings) -> Value {
    let request = examined.request;
    let params: Vec<_> = examined.run.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let used: Vec<_> = examined.tasks.iter().flat_map(|task| &task.bindings).map(|binding| binding.workspace).collect();
    let claim = names::claim_name(&request.owner.name, request.front.claim_suffix);
    let bound = workspaces::of_run(request, &claim, settings, &used);
    let declared: Vec<_> = bound.iter().map(|workspace| json!({"name": workspace["name"]})).collect();
    let after = std::iter::once(None).chain(examined.tasks.iter().map(Some));
    let tasks: Vec<_> = examined.tasks.iter().zip(after).map(|(task, after)| task::render(task, after)).collect();
    let mut spec = object([
        ("taskRunTemplate", task_run_template(examined, settings)),
        ("workspaces", Value::Array(bound)),
        ("pipelineSpec", object([("workspaces", Value::Array(declared)), ("tasks", Value::Array(tasks))])),
    ]);
    if !params.is_empty() {
        spec["params"] = Value::Array(params);
    }
    if let Some(timeout) = &examined.controls.timeout {
        spec["timeouts"] = json!({"pipeline": timeout});
    }
    if let Some(resources) = &settings.resources {
        let per_task = |task: &task::Task<'_>| json!({"pipelineTaskName": task.name(), "computeResources": resources});
        spec["taskRunSpecs"] = examined.tasks.iter().map(per_task).collect();
    }
    spec
}

fn task_run_template(examined: &Examined<'_>, settings: &Settings) -> Value {
    let request = examined.request;
    let mut pod = Map::new();
    pod.insert("automountServiceAccountToken".to_owned(), json!(false));
    if !settings.openshift {
        pod.insert("securityContext".to_owned(), json!({"fsGroup": keys::BUILD_FS_GROUP}));
    }
    // Test tasks run the image that was built: the kubelet pulls it, the task never sees the Secret.
    if let Some(secret) = request.registry_auth.as_ref().filter(|_| request.gated) {
        pod.insert("imagePullSecrets".to_owned(), json!([{"name": secret.secret}]));
    }
    if !settings.node_selector.is_empty() {
        pod.insert("nodeSelector".to_owned(), json!(settings.node_selector));
    }
    if !settings.tolerations.is_empty() {
        pod.insert("tolerations".to_owned(), json!(settings.tolerations));
    }
    if !settings.environment.is_empty() {
        let env = settings.environment.iter().map(|(name, value)| json!({"name": name, "value": value}));
        pod.insert("env".to_owned(), env.collect());
    }
    let mut template = object([("podTemplate", Value::Object(pod))]);
    if let Some(account) = &examined.controls.account {
        template["serviceAccountName"] = json!(account);
    }
    template
}
