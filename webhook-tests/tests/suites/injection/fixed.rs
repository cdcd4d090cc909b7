//! What runs beside an agent is what was admitted: the API server's own policy keeps it so, whichever way an update comes.

use anyhow::{Context as _, Result, bail, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};
use webhook_tests::objects::PATIENCE;

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
        ensure!(begun.elapsed() < PATIENCE, "the policy is not in force");
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
