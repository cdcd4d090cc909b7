//! A system that is cut off from its API server for a while, and what it has missed.
//!
//! In: an installation, how it is cut off and how that ends. Judged: every process notices; reviews are answered from what is known,
//! and readiness stays; what was made meanwhile is served afterwards, and what was there before is not written again.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::load::{injected, pod};
use super::until_created;
use crate::patience::patience;
use crate::{ControlPlane, Drawbridge, Installation, TestNamespace, dial, wait_for};

/// Whose writes are counted.
const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";
/// An enrolled workload of which the controllers make something: the ServiceAccount of its Pods.
#[must_use]
pub fn workload(name: &str) -> Value {
    let mut template = pod(Some(name));
    let (spec, labels) = (template["spec"].take(), template["metadata"]["labels"].take());
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": labels }, "spec": spec } } })
}

async fn failures(process: &Drawbridge) -> Result<f64> {
    Ok(process.metrics().await?.sum("drawbridge_watch_failures_total", &[]))
}

/// Cuts it off by `cut` and ends that by `mend`; a workload of that name is made in between.
///
/// # Errors
/// When what is judged does not hold; the message says what.
pub async fn off(
    (cp, installation): (&ControlPlane, &Installation),
    (ns, name): (&TestNamespace, &str),
    cut: impl AsyncFnOnce() -> Result<()>,
    mend: impl AsyncFnOnce() -> Result<()>,
) -> Result<()> {
    let processes: Vec<&Drawbridge> = installation.webhooks.iter().chain(&installation.controllers).collect();
    let mut before = Vec::new();
    for process in &processes {
        before.push((failures(process).await?, process.pid()));
    }
    let mark = cp.audit().mark()?;
    cut().await?;
    let deadline = Instant::now() + patience();
    for (process, (known, _)) in processes.iter().zip(&before) {
        while failures(process).await? <= *known {
            ensure!(Instant::now() < deadline, "{name}: a process does not notice:\n{}", process.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    until_created(ns, injected).await.context("reviews are answered from what is known")?;
    for webhook in &installation.webhooks {
        let ready = dial::get(webhook.health(), "/readyz").await?.0;
        ensure!(ready == 200, "{name}: a webhook that knows the cluster stays ready: {ready}");
    }
    ns.accepts(&workload(name)).await?;
    mend().await?;
    wait_for(&ns.api::<ServiceAccount>(), name, |_: &ServiceAccount| true).await.context("what was made meanwhile")?;
    until_created(ns, injected).await?;
    let written = cp.audit().settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    let others =
        written.filter(|write| write.name != name && ["deployments", "serviceaccounts"].contains(&&*write.resource));
    ensure!(others.is_empty(), "{name}: what was settled is written again: {others}");
    for (process, (_, pid)) in processes.iter().zip(&before) {
        ensure!(process.pid() == *pid, "{name}: a process was restarted");
    }
    Ok(())
}
