//! Plays the storage: every claim without a class gets a volume, which the cluster's own controller then binds.

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use crate::access::Access;

/// Provides volumes until the task is aborted.
pub(super) async fn provide(access: Access) {
    let Ok(client) = access.client().await else { return };
    let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
    let claims = watcher(claims, watcher::Config::default()).default_backoff().applied_objects().into_stream();
    claims
        .filter_map(|claim| async { claim.ok() })
        .for_each_concurrent(4, |claim| {
            let client = client.clone();
            async move {
                // A volume that exists already is what was wanted; any other refusal leaves the claim pending, which
                // is what the test that waits for it shows.
                let _ = volume(client, &claim).await;
            }
        })
        .await;
}

async fn volume(client: Client, claim: &PersistentVolumeClaim) -> Result<()> {
    let spec = claim.spec.clone().unwrap_or_default();
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    if spec.volume_name.is_some() || phase == Some("Bound") || claim.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let name = format!("pv-{}", claim.uid().unwrap_or_default());
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": spec.resources.and_then(|resources| resources.requests),
            "accessModes": spec.access_modes,
            "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": { "path": format!("/var/{name}") },
            "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": claim.name_any(),
                          "namespace": claim.namespace(), "uid": claim.uid() },
        },
    }))?;
    Api::all(client).create(&PostParams::default(), &volume).await?;
    Ok(())
}
