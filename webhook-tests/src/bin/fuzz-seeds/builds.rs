//! Builds, agents and what becomes of them.

use std::path::Path;

use anyhow::{Context as _, Result};
use drawbridge::api::agent_kagenti_dev::agent_build::MODES;
use drawbridge::api::yaml;
use drawbridge::domain::keys;
use drawbridge::pipelines::catalogue::{Values, config_maps};
use serde_json::{Value, json};

use super::write;

/// Worlds of `fuzz/src/builds.rs`.
const WORLDS: u8 = 4;

/// The first inputs of `agent_build`, `agent` and `steps`.
pub(super) fn all(folder: &Path) -> Result<()> {
    let mut build = sample("weather-agent-build.yaml")?;
    build["metadata"]["namespace"] = json!("team1");
    for (name, object, old) in builds(&build) {
        for world in 0..WORLDS {
            let body = review("AgentBuild", &object, old.as_ref());
            write(folder, "agent_build", &format!("{name}-{world}"), &[&[world], body.as_bytes()].concat())?;
        }
    }
    for (name, object) in agents(&sample("weather-built-agent.yaml")?) {
        for world in 0..WORLDS {
            let body = review("Agent", &object, None);
            write(folder, "agent", &format!("{name}-{world}"), &[&[world], body.as_bytes()].concat())?;
        }
    }
    catalogue(folder)
}

/// A file of `manifests/samples`.
pub(super) fn sample(file: &str) -> Result<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/samples").join(file);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(yaml::parse(&text).with_context(|| path.display().to_string())?.to_json())
}

fn review(kind: &str, object: &Value, old: Option<&Value>) -> String {
    let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
    json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "5f1c8a5e-0001-4a51-9d0c-0000000000f1",
            "kind": {"group": keys::GROUP_AGENT, "version": "v1alpha1", "kind": kind},
            "name": object["metadata"]["name"],
            "namespace": "team1",
            "operation": operation,
            "object": object,
            "oldObject": old,
        },
    })
    .to_string()
}

/// One of each mode, with steps of its own and without, and updates.
fn builds(build: &Value) -> Vec<(String, Value, Option<Value>)> {
    let mut all = Vec::new();
    for mode in MODES {
        let mut object = build.clone();
        object["spec"]["mode"] = json!(mode);
        all.push((mode.to_owned(), object.clone(), None));
        let mut elsewhere = object.clone();
        elsewhere["spec"]["pipeline"] = json!({"namespace": "team1", "parameters": [{"name": "tag", "value": "v2"}]});
        elsewhere["spec"]["zzFuture"] = json!([1, null]);
        all.push((format!("{mode}-here"), elsewhere.clone(), None));
        all.push((format!("{mode}-moved"), elsewhere, Some(object.clone())));
        let mut own = object;
        own["spec"]["source"]["sourceRepository"] = json!("github.com/kagenti/agent-examples.git");
        own["spec"]["buildOutput"]["imageRegistry"] = json!("ghcr.io/acme");
        own["spec"]["pipeline"] = json!({"steps": [
            {"name": "clone", "configMap": "github-clone-step"},
            {"name": "scan", "configMap": "scan-step", "parameters": [{"name": "image", "value": "x"}],
             "whenExpressions": [{"input": "$(tasks.clone.results.commit)", "operator": "notin", "values": [""]}]},
        ]});
        own["spec"]["buildArgs"] = json!([{"name": "VERSION", "value": "1"}]);
        all.push((format!("{mode}-own-steps"), own, None));
    }
    all
}

fn agents(agent: &Value) -> Vec<(&'static str, Value)> {
    let mut rich = agent.clone();
    rich["spec"]["imageSource"] = json!({"image": "ghcr.io/acme/weather:v1"});
    rich["spec"]["servicePorts"] = json!([{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}]);
    rich["spec"]["replicas"] = json!(2);
    rich["spec"]["labels"] = json!({"team": "weather"});
    rich["spec"]["podTemplateSpec"]["metadata"] = json!({"labels": {"tier": "a"}, "annotations": {"note": "b"}});
    let pod = &mut rich["spec"]["podTemplateSpec"]["spec"];
    pod["volumes"] = json!([{"name": "tmp", "emptyDir": {}}, {"name": "data", "configMap": {"name": "data"}}]);
    pod["initContainers"] = json!([{"name": "warm", "image": "alpine:3.22", "zzFuture": {"a": null}}]);
    pod["zzFuture"] = json!(1);
    pod["containers"] = json!([
        {"name": "proxy", "image": "p:1", "ports": [{"containerPort": 9000, "name": "p"}]},
        {"name": "agent", "volumeMounts": [{"name": "data", "mountPath": "/data"}],
         "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}, "readOnlyRootFilesystem": false}},
    ]);
    vec![("built", agent.clone()), ("rich", rich)]
}

/// The templates that are shipped, each with its steps, under the names that the target gives them.
fn catalogue(folder: &Path) -> Result<()> {
    let all = config_maps("team1", &Values::default());
    let text = |name: &str, key: &str| {
        all.iter().find(|map| map.name == name).and_then(|map| map.data.get(key)).cloned().unwrap_or_default()
    };
    for template in all.iter().filter(|map| map.name.starts_with(keys::PREFIX_TEMPLATE)) {
        let mut document: Value = serde_json::from_str(&text(&template.name, keys::KEY_TEMPLATE))?;
        let mut texts = Vec::new();
        for step in document["steps"].as_array_mut().into_iter().flatten().take(6) {
            let name = step["configMap"].as_str().unwrap_or_default().to_owned();
            step["configMap"] = json!(format!("step-{}", texts.len()));
            texts.push(text(&name, keys::KEY_TASK_SPEC));
        }
        if let Some(steps) = document["steps"].as_array_mut() {
            steps.truncate(6);
        }
        let parts = [vec![document.to_string()], texts].concat();
        write(folder, "steps", &template.name, parts.join("\n%%\n").as_bytes())?;
    }
    let small = "params: [{name: A, default: 1}]\nsteps:\n- {name: run, image: 'alpine:3.22', script: 'true'}\n";
    let template = json!({"name": "x", "steps": [{"name": "a", "configMap": "step-0", "defaultParameters": [{"name": "A", "value": "{{.image}}"}]}]});
    write(folder, "steps", "small", format!("{template}\n%%\n{small}").as_bytes())
}

/// A run that went, and one of its tasks.
pub(super) fn runs() -> [(&'static str, Value); 2] {
    let owner = |kind: &str| json!([{"apiVersion": "agent.kagenti.dev/v1alpha1", "kind": kind, "name": "w", "uid": "u", "controller": true}]);
    let succeeded = json!([{"type": "Succeeded", "status": "True", "reason": "Completed", "message": "done"}]);
    let results = json!([{"name": "IMAGE_URL", "value": "r.example/w:v1\n"}, {"name": "IMAGE_DIGEST", "value": "sha256:0"}, {"name": "list", "value": ["a"]}]);
    let run = json!({
        "metadata": {"name": "w-1", "namespace": "team1", "uid": "r", "resourceVersion": "7", "ownerReferences": owner("AgentBuild"),
            "annotations": {keys::ANNOTATION_BUILD_HASH: "abc", keys::ANNOTATION_ATTEMPT: "1"}},
        "spec": {"params": [{"name": "image", "value": "r.example/w:v1"}], "status": "Cancelled",
            "pipelineSpec": {"tasks": [{"name": "clone", "when": [{}], "taskSpec": {"results": [{"name": "IMAGE_URL"}]}}]}},
        "status": {"startTime": "2026-05-01T00:00:00Z", "completionTime": "2026-05-01T00:01:00Z", "conditions": succeeded, "results": results,
            "skippedTasks": [{"name": "scan", "reason": "When"}],
            "childReferences": [{"kind": "TaskRun", "name": "w-1-clone", "pipelineTaskName": "clone"}]},
    });
    let task = json!({
        "metadata": {"name": "w-1-clone", "namespace": "team1", "uid": "t", "resourceVersion": "8", "ownerReferences": owner("PipelineRun"),
            "labels": {keys::LABEL_PIPELINE_TASK: "clone"}},
        "status": {"podName": "p", "conditions": succeeded, "results": results,
            "steps": [{"name": "run", "terminated": {"exitCode": 1, "reason": "Error"}}, {"name": "b", "waiting": {"reason": "ImagePullBackOff"}}]},
    });
    [("PipelineRun", run), ("TaskRun", task)]
}
