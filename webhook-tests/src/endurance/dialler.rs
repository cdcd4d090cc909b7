//! A second client: a new TLS connection every 100 ms, against the bundle that the API server has just handed out.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::dial::{self, Trust};

/// What the second client has seen.
#[derive(Debug, Default)]
pub struct Dialled {
    /// Connections tried.
    pub calls: usize,
    /// Different bundles.
    pub bundles: BTreeSet<Vec<u8>>,
    /// Connections without an answer, and why.
    pub failures: Vec<String>,
}

/// The client at work.
pub struct Dialler {
    seen: Arc<Mutex<Dialled>>,
    task: JoinHandle<Result<()>>,
}

impl Dialler {
    /// Dials `address`, as the Service of the webhook.
    #[must_use]
    pub fn start(client: Client, address: SocketAddr) -> Self {
        let seen: Arc<Mutex<Dialled>> = Arc::default();
        let task = tokio::spawn(dialling(client, address, Arc::clone(&seen)));
        Self { seen, task }
    }

    /// Stops it.
    ///
    /// # Errors
    /// When it has ended before: the API server did not hand out a bundle.
    pub async fn end(self) -> Result<Dialled> {
        if self.task.is_finished() {
            self.task.await?.context("the second client")?;
            ensure!(false, "the second client has ended by itself");
        } else {
            self.task.abort();
        }
        Ok(std::mem::take(&mut *self.seen.lock()))
    }
}

async fn dialling(client: Client, address: SocketAddr, seen: Arc<Mutex<Dialled>>) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client);
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": { "uid": "by-hand" } });
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tick.tick().await;
        let stored = configurations.get(keys::WEBHOOK_CONFIGURATION).await?;
        for hook in stored.webhooks.unwrap_or_default() {
            let bundle = hook.client_config.ca_bundle.context("the entry has no caBundle")?.0;
            let trust = Trust::new(&host, &bundle)?;
            let answer = dial::post(address, &trust, keys::PATH_INJECT, review.to_string().into_bytes()).await;
            let mut seen = seen.lock();
            seen.calls += 1;
            seen.bundles.insert(bundle);
            seen.failures.extend(answer.err().map(|error| format!("{error:#}")));
        }
    }
}
