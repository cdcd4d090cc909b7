//! What runs beside an agent is what was admitted: the API server's own policy keeps it so, whichever way an update comes.

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::patience::patience;

use super::{control_plane, labels, pod};

/// The words with which a merge patch of the Pod or its status is refused; `None` when it is not.
async fn refused(pods: &Api<Pod>, patch: &Value, status: bool) -> Result<Option<String>> {
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
    let answer = match status {
        true => pods.patch_status("fixed", &parameters, &patch).await,
        false => pods.patch("fixed", &parameters, &patch).await,
    };
    match answer {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.message.contains("drawbridge-runtime-config") => {
            Ok(Some(status.message))
        }
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn configuration_and_images_of_sidecars_stay_as_they_were_admitted() -> Result<()> {
    let ns = control_plane().await?.namespace("fixed").await?;
    ns.accepts(&pod("fixed", &labels("fixed", true))).await?;
    let pods: Api<Pod> = ns.api();
    let spec = pods.get("fixed").await?.spec.context("no spec")?;
    let mut containers = spec.init_containers.unwrap_or_default();
    containers.iter_mut().for_each(|one| {
        if one.name == keys::CONTAINER_ENVOY {
            one.image = Some("example.com/other:1".to_owned())
        }
    });
    let image = json!({"spec": {"initContainers": containers}});
    let configuration = json!({"metadata": {"annotations": {keys::ANNOTATION_RUNTIME_CONFIG: "mode: waypoint"}}});
    // A policy that was just applied is not in force at once.
    let begun = Instant::now();
    while refused(&pods, &configuration, false).await?.is_none() {
        ensure!(begun.elapsed() < patience(), "the policy is not in force");
        sleep(Duration::from_millis(100)).await;
    }
    let again = json!({"metadata": {"annotations": {keys::ANNOTATION_RUNTIME_CONFIG: "mode: proxy-sidecar"}}});
    for (patch, status) in [(&again, false), (&again, true), (&image, false)] {
        let Some(message) = refused(&pods, patch, status).await? else { bail!("accepted, status {status}: {patch}") };
        ensure!(message.contains("restart the workload"), "{message}");
    }
    let mine = json!({"spec": {"containers": [{"name": "agent", "image": "example.com/agent:2"}]}});
    let answer = pods.patch("fixed", &PatchParams::default(), &Patch::Strategic(&mine)).await?;
    ensure!(answer.spec.is_some_and(|spec| spec.containers[0].image.as_deref() == Some("example.com/agent:2")));
    for status in [false, true] {
        ensure!(refused(&pods, &json!({"metadata": {"labels": {"mine": "x"}}}), status).await?.is_none());
    }
    Ok(())
}

/// The images of our containers with another one in place of one of them, as a merge patch of the list.
fn other_image(list: &[k8s_openapi::api::core::v1::Container], name: &str) -> Value {
    let swapped = list.iter().cloned().map(|mut one| {
        if one.name == name {
            one.image = Some("example.com/evil:1".to_owned());
        }
        one
    });
    json!(swapped.collect::<Vec<_>>())
}

/// Two updates do what one may not: neither the note nor the label goes first, and neither comes later.
#[tokio::test]
async fn mend_05_no_order_of_updates_swaps_what_protects_a_running_pod() -> Result<()> {
    let ns = control_plane().await?.namespace("fixed").await?;
    let mut agent = pod("fixed", &labels("fixed", true));
    agent["metadata"]["annotations"] = json!({keys::ANNOTATION_CONFIG_HASH: "given"});
    ns.accepts(&agent).await?;
    let pods: Api<Pod> = ns.api();
    let stored = pods.get("fixed").await?;
    let spec = stored.spec.context("no spec")?;
    let init = spec.init_containers.clone().unwrap_or_default();
    let annotation = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    let label = |value: Value| json!({"metadata": {"labels": {keys::LABEL_TYPE: value}}});
    let first = annotation(keys::ANNOTATION_STATUS, Value::Null);
    let begun = Instant::now();
    while refused(&pods, &json!({"metadata": {"annotations": {keys::ANNOTATION_STATUS: null}}, "spec": {}}), false)
        .await?
        .is_none()
    {
        // The policy was not in force yet, and the note is gone: another Pod shows more.
        ensure!(begun.elapsed() < patience(), "the policy is not in force");
        pods.delete("fixed", &kube::api::DeleteParams::default().grace_period(0)).await?;
        webhook_tests::wait_gone(&pods, "fixed").await?;
        ns.accepts(&agent).await?;
    }
    for (patch, status) in [
        (first.clone(), true),
        (annotation(keys::ANNOTATION_STATUS, json!("{}")), false),
        (annotation(keys::ANNOTATION_RUNTIME_CONFIG, Value::Null), false),
        (annotation(keys::ANNOTATION_CONFIG_HASH, json!("of another configuration")), false),
        (annotation(keys::ANNOTATION_CONFIG_HASH, Value::Null), true),
        (label(Value::Null), false),
        (label(Value::Null), true),
        (label(json!("tool")), false),
        (
            json!({"metadata": {"annotations": {keys::ANNOTATION_STATUS: null}, "labels": {keys::LABEL_TYPE: null}}}),
            false,
        ),
        (json!({"spec": {"initContainers": other_image(&init, keys::CONTAINER_ENVOY)}}), false),
        (json!({"spec": {"initContainers": other_image(&init, keys::CONTAINER_PROXY_INIT)}}), false),
    ] {
        let Some(message) = refused(&pods, &patch, status).await? else { bail!("accepted, status {status}: {patch}") };
        ensure!(message.contains("What to do: ") && message.contains(keys::LABEL_TYPE), "{message}");
    }
    // What is the user's stays the user's.
    let mine = json!({"spec": {"containers": [{"name": "agent", "image": "example.com/agent:3"}]}});
    pods.patch("fixed", &PatchParams::default(), &Patch::Strategic(&mine)).await?;
    for (patch, status) in [
        (json!({"metadata": {"labels": {"mine": "x"}, "annotations": {"mine": "x"}}}), false),
        (json!({"status": {"message": "by a kubelet"}}), true),
    ] {
        ensure!(refused(&pods, &patch, status).await?.is_none(), "{patch}");
    }
    Ok(())
}

/// A Pod that was never injected does not become one that counts as protected.
#[tokio::test]
async fn mend_05_a_note_is_not_put_on_later_in_any_order() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace_with("bare", &[(keys::LABEL_NAMESPACE_ENABLED, "false")]).await?;
    let pods: Api<Pod> = ns.api();
    let note = json!({"metadata": {"annotations": {keys::ANNOTATION_STATUS: "{\"version\":1}"}}});
    let untyped = json!({"metadata": {"labels": {keys::LABEL_TYPE: null}}});
    let typed = json!({"metadata": {"labels": {keys::LABEL_TYPE: "agent"}}});
    ns.accepts(&pod("fixed", &labels("fixed", true))).await?;
    let begun = Instant::now();
    while refused(&pods, &note, false).await?.is_none() {
        ensure!(begun.elapsed() < patience(), "the policy is not in force");
        pods.delete("fixed", &kube::api::DeleteParams::default().grace_period(0)).await?;
        webhook_tests::wait_gone(&pods, "fixed").await?;
        ns.accepts(&pod("fixed", &labels("fixed", true))).await?;
    }
    // A Pod that was never injected is its user's: the label comes off, and then a note means nothing.
    ensure!(refused(&pods, &untyped, false).await?.is_none());
    ensure!(refused(&pods, &note, false).await?.is_none());
    ensure!(refused(&pods, &typed, false).await?.is_some(), "label after note");
    ensure!(refused(&pods, &typed, true).await?.is_some(), "label after note, by the status");
    Ok(())
}

/// Kubernetes' own controllers are not asked, and what has ended or is on its way out is nobody's to protect.
#[tokio::test]
async fn mend_05_the_api_servers_controllers_and_ended_pods_are_not_asked() -> Result<()> {
    let cp = control_plane().await?;
    let ns = cp.namespace("fixed").await?;
    // No kubelet plays its part in the end of a Pod that waits.
    let mut waits = pod("fixed", &labels("fixed", true));
    waits["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    ns.accepts(&waits).await?;
    let pods: Api<Pod> = ns.api();
    let annotation = |value: &str| json!({"metadata": {"annotations": {keys::ANNOTATION_CONFIG_HASH: value}}});
    let begun = Instant::now();
    let mut value = 0;
    while refused(&pods, &annotation(&value.to_string()), false).await?.is_none() {
        ensure!(begun.elapsed() < patience(), "the policy is not in force");
        value += 1;
    }
    for (user, groups) in [
        ("system:serviceaccount:kube-system:job-controller", vec!["system:masters"]),
        ("system:kube-controller-manager", vec!["system:masters"]),
        ("system:node:n1", vec!["system:nodes", "system:masters"]),
    ] {
        let client = cp.user(user, &groups)?.client().await?;
        let answer = refused(&Api::namespaced(client, ns.name()), &annotation(user), false).await?;
        ensure!(answer.is_none(), "{user}: {answer:?}");
    }
    let other = cp.user("system:serviceaccount:team:job-controller", &["system:masters"])?.client().await?;
    ensure!(refused(&Api::namespaced(other, ns.name()), &annotation("other"), false).await?.is_some());
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    ensure!(refused(&pods, &held, false).await?.is_none());
    pods.delete("fixed", &kube::api::DeleteParams::default()).await?;
    ensure!(refused(&pods, &annotation("on its way out"), false).await?.is_none());
    let free = json!({"metadata": {"finalizers": null}});
    ensure!(refused(&pods, &free, false).await?.is_none());
    Ok(())
}

/// A Binding brings labels and annotations to its Pod past every policy on Pods: not ours.
#[tokio::test]
async fn mend_05_a_binding_brings_nothing_of_ours() -> Result<()> {
    let ns = control_plane().await?.namespace("bound").await?;
    let pods: Api<Pod> = ns.api();
    let mut waits = pod("waits", &labels("waits", true));
    waits["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
    ns.accepts(&waits).await?;
    let binding = |metadata: Value| {
        let mut binding = json!({"apiVersion": "v1", "kind": "Binding", "target": {"apiVersion": "v1", "kind": "Node", "name": "none"}});
        binding["metadata"] = metadata;
        binding["metadata"]["name"] = json!("waits");
        binding
    };
    for path in [format!("{}/waits/binding", pods.resource_url()), pods.resource_url().replace("/pods", "/bindings")] {
        for metadata in [
            json!({"annotations": {keys::ANNOTATION_RUNTIME_CONFIG: "mode: waypoint"}}),
            json!({"labels": {keys::LABEL_TYPE: "tool"}}),
        ] {
            let send = async |dry: bool| -> Result<Option<String>> {
                let request = http::Request::post(format!("{path}{}", if dry { "?dryRun=All" } else { "" }))
                    .header("content-type", "application/json")
                    .body(binding(metadata.clone()).to_string().into_bytes())?;
                match ns.client().request::<Value>(request).await {
                    Ok(_) => Ok(None),
                    Err(kube::Error::Api(status)) => Ok(Some(status.message.clone())),
                    Err(error) => Err(error.into()),
                }
            };
            let begun = Instant::now();
            let told = loop {
                match send(true).await? {
                    Some(message) if message.contains("drawbridge-pod-bindings") => break message,
                    answer => ensure!(begun.elapsed() < patience(), "{path}: {metadata}: {answer:?}"),
                }
                sleep(Duration::from_millis(50)).await;
            };
            ensure!(told.contains("What to do: "), "{told}");
            ensure!(send(false).await?.is_some());
        }
    }
    let request = http::Request::post(format!("{}/waits/binding", pods.resource_url()))
        .header("content-type", "application/json")
        .body(binding(json!({"annotations": {"scheduler.example.com/why": "x"}})).to_string().into_bytes())?;
    // Its gate holds the Pod back, which the API server looks at after every policy.
    match ns.client().request::<Value>(request).await {
        Err(kube::Error::Api(status)) => ensure!(status.message.contains("schedulingGates"), "{}", status.message),
        other => bail!("bound: {other:?}"),
    }
    let stored = pods.get("waits").await?;
    ensure!(stored.metadata.labels.unwrap_or_default().get(keys::LABEL_TYPE).map(String::as_str) == Some("agent"));
    Ok(())
}
