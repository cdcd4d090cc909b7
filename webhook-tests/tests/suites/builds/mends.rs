//! What a build says while the workspace of its last run is on its way out.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use webhook_tests::{TestNamespace, wait_for};

use super::life::{condition, patch, shared};
use super::stage::{active_run, begin, build, status, succeed};

const WORKSPACE: &str = "weather-build-workspace";
/// A finalizer of somebody else, as a backup or a storage driver has one.
const HELD: &str = "tests.example/held";

async fn finalizers(ns: &TestNamespace, wanted: serde_json::Value) -> Result<()> {
    let claims: Api<PersistentVolumeClaim> = ns.api();
    let patch = Patch::Merge(json!({"metadata": {"finalizers": wanted}}));
    claims.patch(WORKSPACE, &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn cleaned(ns: &TestNamespace) -> Result<usize> {
    let events = ns.api::<Event>().list(&ListParams::default()).await?.items;
    Ok(events.iter().filter(|event| event.reason.as_deref() == Some("CleanupCompleted")).count())
}

/// It is clean when the workspace is gone, and not before; a change in between is said to wait, at once, and goes on by itself.
#[tokio::test]
async fn mend_11_an_old_workspace_that_stays_is_waited_for_in_words() -> Result<()> {
    let led = shared().await?;
    let cp = &led.cp;
    let ns = cp.namespace("stays").await?;
    ns.accepts(&build()).await?;
    let run = active_run(&ns).await?;
    begin(&ns, &run).await?;
    wait_for(&ns.api::<PersistentVolumeClaim>(), WORKSPACE, |_| true).await?;
    finalizers(&ns, json!([HELD])).await?;
    succeed(&ns, &run).await?;
    let leaving = |claim: &PersistentVolumeClaim| claim.metadata.deletion_timestamp.is_some();
    wait_for(&ns.api::<PersistentVolumeClaim>(), WORKSPACE, leaving).await?;
    for (revision, generation) in [("v2.0.0", 2), ("v3.0.0", 3)] {
        patch(&ns, &json!({"spec": {"source": {"sourceRevision": revision}}})).await?;
        let waits = status(&ns, |status| {
            condition(status, "Ready")["reason"] == "WorkspaceTerminating" && status["observedGeneration"] == generation
        })
        .await?;
        assert_eq!((&waits["phase"], &condition(&waits, "Ready")["status"]), (&json!("Pending"), &json!("False")));
        assert_eq!(condition(&waits, "BuildSucceeded")["status"], "Unknown");
        let message = waits["message"].as_str().unwrap_or_default();
        ensure!(message.contains(WORKSPACE) && message.contains("describe pvc"), "{message}");
    }
    // The clean-up of the first run was not complete, so nobody was told that it is.
    assert_eq!(cleaned(&ns).await?, 0);
    finalizers(&ns, json!(null)).await?;
    let next = active_run(&ns).await?;
    assert_ne!(next.name_any(), run.name_any());
    // Nobody holds this one: it is clean, and told once.
    begin(&ns, &next).await?;
    succeed(&ns, &next).await?;
    status(&ns, |status| status["message"] == "Build complete, cleanup done").await?;
    assert_eq!(cleaned(&ns).await?, 1);
    Ok(())
}
