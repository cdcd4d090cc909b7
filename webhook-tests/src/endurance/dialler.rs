//! A second client: a new TLS connection every 100 ms, against the bundle that the API server has just handed out.
//!
//! Roots settle before anything depends on them; a client that is held up for longer than that between reading and dialling
//! (a machine with other work) has not just read, and its certificate failures say nothing. They are counted, not judged.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge::server::certs::Lifetimes;
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
    /// Connections that trusted no certificate of a bundle read too long before.
    pub late: usize,
}

/// The client at work.
pub struct Dialler {
    seen: Arc<Mutex<Dialled>>,
    task: JoinHandle<Result<()>>,
}

impl Dialler {
    /// Dials `address`, as the Service of a webhook whose certificates live so long.
    #[must_use]
    pub fn start(client: Client, address: SocketAddr, lifetimes: &Lifetimes) -> Self {
        let settle = Duration::from_millis(lifetimes.settle.unsigned_abs());
        let seen: Arc<Mutex<Dialled>> = Arc::default();
        let task = tokio::spawn(dialling(client, address, settle, Arc::clone(&seen)));
        Self { seen, task }
    }

    /// Connections tried so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.seen.lock().calls
    }

    /// Different bundles seen so far.
    #[must_use]
    pub fn bundles(&self) -> usize {
        self.seen.lock().bundles.len()
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

async fn dialling(client: Client, address: SocketAddr, settle: Duration, seen: Arc<Mutex<Dialled>>) -> Result<()> {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(client);
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": { "uid": "by-hand" } });
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    loop {
        tick.tick().await;
        let read = Instant::now();
        let stored = configurations.get(keys::WEBHOOK_CONFIGURATION).await?;
        for hook in stored.webhooks.unwrap_or_default() {
            let bundle = hook.client_config.ca_bundle.context("the entry has no caBundle")?.0;
            let trust = Trust::new(&host, &bundle)?;
            let answer = dial::post(address, &trust, keys::PATH_INJECT, review.to_string().into_bytes()).await;
            let failure = answer.err().map(|error| format!("{error:#}"));
            let mut seen = seen.lock();
            if read.elapsed() > settle && failure.as_ref().is_some_and(|failure| failure.contains("certificate")) {
                seen.late += 1;
                break;
            }
            seen.calls += 1;
            seen.bundles.insert(bundle);
            seen.failures.extend(failure);
        }
    }
}
