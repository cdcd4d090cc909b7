//! Who weakens the proxy of a running Pod hears it, and nobody is stopped: the API server's own policy warns.

use anyhow::{Result, ensure};
use drawbridge::domain::keys;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::TestNamespace;
use webhook_tests::patience::patience;

use super::{control_plane, labels, pod};

/// The warnings with which a change of the Pod is accepted.
async fn warned(ns: &TestNamespace, part: &str, patch: &Value) -> Result<Vec<String>> {
    let the_pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "weakened"}});
    let answer = ns.patch_part(&the_pod, part, patch).await?;
    if let Err(status) = answer.result {
        anyhow::bail!("{part} was refused: {}: {patch}", status.message);
    }
    Ok(answer.warnings.into_iter().filter(|text| text.contains("drawbridge-weakened-proxy")).collect())
}

/// An ephemeral container of that name.
fn debugger(name: &str, more: Value) -> Value {
    let mut container = json!({"name": name, "image": "example.com/debug:1"});
    for (key, value) in more.as_object().into_iter().flatten() {
        container[key] = value.clone();
    }
    json!({"spec": {"ephemeralContainers": [container]}})
}

fn resized(container: &str, list: &str, resources: Value) -> Value {
    json!({"spec": {list: [{"name": container, "resources": resources}]}})
}

#[tokio::test]
async fn mend_08_ephemeral_containers_and_resizes_that_weaken_the_proxy_are_warned_of() -> Result<()> {
    let ns = control_plane().await?.namespace("weakened").await?;
    let mut pod = pod("weakened", &labels("weakened", true));
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}});
    // The node here tells no resources of what runs, and without them the API server resizes only what does not run yet.
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/hold"}]);
    ns.accepts(&pod).await?;
    // A policy that was just applied is not in force at once.
    let begun = Instant::now();
    for attempt in 0.. {
        let as_proxy = debugger(&format!("early-{attempt}"), json!({"securityContext": {"runAsUser": 1337}}));
        if !warned(&ns, "ephemeralcontainers", &as_proxy).await?.is_empty() {
            break;
        }
        ensure!(begun.elapsed() < patience(), "the policy is not in force");
        sleep(Duration::from_millis(100)).await;
    }
    let table = [
        ("privileged", json!({"securityContext": {"privileged": true}}), true),
        ("ptrace", json!({"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}), true),
        ("target", json!({"targetContainerName": keys::CONTAINER_ENVOY}), true),
        ("own", json!({"securityContext": {"runAsUser": 1338}, "targetContainerName": "agent"}), false),
        ("plain", json!({}), false),
    ];
    for (name, more, expected) in table {
        let warnings = warned(&ns, "ephemeralcontainers", &debugger(name, more)).await?;
        ensure!(warnings.len() == usize::from(expected), "{name}: {warnings:?}");
        ensure!(warnings.iter().all(|text| text.contains(&format!(" {name}: an ephemeral"))), "{name}: {warnings:?}");
    }
    let small = json!({"limits": {"cpu": "1m"}, "requests": {"cpu": "1m"}});
    let warnings = warned(&ns, "resize", &resized(keys::CONTAINER_ENVOY, "initContainers", small)).await?;
    ensure!(warnings.len() == 1 && warnings[0].contains(" envoy-proxy: the sidecar has less"), "{warnings:?}");
    let more = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}});
    let warnings = warned(&ns, "resize", &resized(keys::CONTAINER_ENVOY, "initContainers", more)).await?;
    ensure!(warnings.is_empty(), "more than before starves nobody: {warnings:?}");
    let less = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}});
    let warnings = warned(&ns, "resize", &resized("agent", "containers", less)).await?;
    ensure!(warnings.is_empty(), "the agent's own are its author's: {warnings:?}");
    Ok(())
}
