//! Where an agent may write: a cache, and `/tmp` when its root filesystem is read-only.

use serde_json::{Map, Value, json};

use super::container_mut;

const CACHE: &str = "cache";
const CACHE_PATH: &str = "/app/.cache";
const TMP: &str = "tmp";
const TMP_PATH: &str = "/tmp";
/// Name in place of [`TMP`] when the user has a volume of that name.
const TMP_OTHER: &str = "agent-tmp";

/// Adds what the agent's container has not.
pub(super) fn add(pod: &mut Map<String, Value>, agent: usize) {
    let mounts_cache = mounts(pod).any(|mount| mount["name"] == CACHE);
    if !mounts_cache && !has_mount(pod, agent, CACHE_PATH) {
        mount(pod, agent, (CACHE, CACHE_PATH));
    }
    let read_only = container_mut(pod, agent)
        .and_then(|container| container.get("securityContext")?.get("readOnlyRootFilesystem")?.as_bool())
        .unwrap_or(false);
    if read_only && !has_mount(pod, agent, TMP_PATH) {
        let name = if has_volume(pod, TMP) { TMP_OTHER } else { TMP };
        mount(pod, agent, (name, TMP_PATH));
    }
}

fn items<'v>(of: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn mounts(pod: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let containers = ["containers", "initContainers"].into_iter().flat_map(move |kind| items(pod, kind));
    containers.filter_map(Value::as_object).flat_map(|container| items(container, "volumeMounts"))
}

fn has_mount(pod: &Map<String, Value>, agent: usize, path: &str) -> bool {
    let container = items(pod, "containers").get(agent).and_then(Value::as_object);
    let same = |mount: &Value| mount["mountPath"].as_str().is_some_and(|at| at.trim_end_matches('/') == path);
    container.is_some_and(|container| items(container, "volumeMounts").iter().any(same))
}

fn has_volume(pod: &Map<String, Value>, name: &str) -> bool {
    items(pod, "volumes").iter().any(|volume| volume["name"] == name)
}

/// Mounts a volume of that name, which is made when there is none.
fn mount(pod: &mut Map<String, Value>, agent: usize, (name, path): (&str, &str)) {
    let Some(container) = container_mut(pod, agent) else { return };
    push(container, "volumeMounts", json!({"name": name, "mountPath": path}));
    if !has_volume(pod, name) {
        push(pod, "volumes", json!({"name": name, "emptyDir": {}}));
    }
}

fn push(of: &mut Map<String, Value>, key: &str, item: Value) {
    match of.get_mut(key).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => {
            of.insert(key.to_owned(), json!([item]));
        }
    }
}
