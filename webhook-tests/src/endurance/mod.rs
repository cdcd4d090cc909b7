//! Trials that take as long as one likes: the short forms run in `make test`, the long ones are commands
//! (`make chaos`, `make soak`, `make test-quiet`), and both are the same code.
//!
//! - [`chaos`]: instances are killed while certificates and authorities rotate, under a steady load of Pods.
//! - [`soak`]: nothing happens but everyday work, and nothing may grow.
//! - [`quiet`]: nothing happens at all, nothing may be said or asked, and what happens at last is answered at once.
//! - [`cut`]: the API server cannot be reached for a while, in whatever way.
//! - [`tenants`]: some namespaces write as much as they can, and nobody else may notice.

pub mod chaos;
pub mod cut;
pub mod dialler;
pub mod judge;
pub mod load;
pub mod quiet;
pub mod soak;
pub mod tenants;

use std::time::Duration;

use anyhow::{Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use tokio::time::Instant;

use crate::patience::patience;
use crate::{Metrics, Objects};

/// What the API server counted so far: webhook calls that failed and cost the request, and those it let pass.
///
/// # Errors
/// When it does not answer.
pub async fn counted(client: &Client) -> Result<(f64, f64)> {
    let metrics = Metrics::of_api_server(client).await?;
    let failed = &[("name", keys::WEBHOOK_INJECT), ("error_type", "calling_webhook_error")];
    let open = &[("name", keys::WEBHOOK_INJECT)];
    let rejected = metrics.sum("apiserver_admission_webhook_rejection_count", failed);
    Ok((rejected, metrics.sum("apiserver_admission_webhook_fail_open_count", open)))
}

/// Tries a creation (nothing is stored) until its answer is as wanted: the API server learns of configurations,
/// policies and their parameters by watches of its own, and offers nothing to await.
///
/// # Errors
/// After [`patience`]; the message has the last answer.
pub async fn until_created(ns: &Objects, wanted: impl Fn(&Pod) -> bool) -> Result<()> {
    let deadline = Instant::now() + patience();
    loop {
        let answer = ns.create(&load::pod(None), true).await?;
        if let Ok(stored) = &answer.result
            && wanted(&stored.clone().try_parse()?)
        {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the last answer was {:?}", answer.result);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
