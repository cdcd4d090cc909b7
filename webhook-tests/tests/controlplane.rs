//! The control plane itself: ready within seconds, real behaviour, restarts, and nothing left behind.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test says what is wrong by panicking")]

use anyhow::Result;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use serde_json::json;
use webhook_tests::{ControlPlane, Options, Process, wait_for, wait_until};

#[tokio::test]
async fn a_deployments_pod_becomes_ready_and_a_job_with_a_native_sidecar_completes() -> Result<()> {
    let cp = ControlPlane::shared().await?;
    let ns = cp.namespace("workloads").await?;
    ns.apply(
        r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "example.com/app:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  template:
    spec:
      restartPolicy: Never
      initContainers: [{name: proxy, image: "example.com/proxy:1", restartPolicy: Always}]
      containers: [{name: app, image: "example.com/app:1"}, {name: second, image: "example.com/app:1"}]
"#,
    )
    .await?;
    let ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
    };
    let web = watcher::Config::default().labels("app=web");
    wait_until(&ns.api::<Pod>(), web, |pods| pods.len() == 1 && pods.values().all(ready)).await?;
    let succeeded = |job: &Job| job.status.as_ref().and_then(|status| status.succeeded) == Some(1);
    wait_for(&ns.api::<Job>(), "work", succeeded).await?;
    Ok(())
}

#[tokio::test]
async fn own_control_plane_prints_its_time_and_survives_kills() -> Result<()> {
    let began = std::time::Instant::now();
    let cp = ControlPlane::start(Options::default()).await?;
    println!("ready after {:?}", began.elapsed());
    let ns = cp.namespace("restart").await?;
    cp.kill(Process::ApiServer).await;
    assert!(cp.pid(Process::ApiServer).is_none());
    cp.start_again(Process::ApiServer).await?;
    ns.accepts(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "after" } })).await?;
    Ok(())
}
