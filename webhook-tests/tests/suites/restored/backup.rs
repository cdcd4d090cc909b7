//! etcd is put back from a copy of its folder while every process of the product goes on (docs/cases.md D8): who leads,
//! the authority, the bundles and every cache follow the truth within a bounded time.
//!
//! Where the API server is not restarted, its lists and watches come from a cache that stopped, for ever: then only what
//! is read by name is true, and who leads is all that can be right. That is how such a cluster is found: restart it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge::server::certs::authority::content;
use drawbridge::server::certs::authority::mint::SigningAuthority;
use drawbridge::server::certs::authority::plan::{Authority as _, Generations};
use drawbridge::server::certs::{Lifetimes, read_bundle};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;
use webhook_tests::dial::{self, Trust};
use webhook_tests::endurance::load::{injected, pod};
use webhook_tests::endurance::quiet::repairs::bundles;
use webhook_tests::endurance::until_created;
use webhook_tests::patience::patience;
use webhook_tests::{
    ControlPlane, Drawbridge, Installation, Installing, Options, Process, TestNamespace, installation,
};

const TOLD: &str = "the cluster went back";

struct Cluster {
    cp: ControlPlane,
    installation: Installation,
    ns: TestNamespace,
}

/// A workload whose Pods want a ServiceAccount of its name; nothing runs.
fn workload(name: &str) -> Value {
    let mut template = pod(Some(name));
    let spec = template["spec"].take();
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "replicas": 0, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": template["metadata"]["labels"] }, "spec": spec } } })
}

/// Asks again and again until it is so; returns after how long.
async fn until(what: &str, mut so: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    let began = Instant::now();
    loop {
        let answer = so().await;
        if matches!(answer, Ok(true)) {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < patience(), "{what}: not within {:?}; at last {answer:?}", patience());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

impl Cluster {
    async fn start() -> Result<Self> {
        let cp = installation::plane(Options { scheduling: false, ..Options::default() }).await?;
        let flags = ["--drain-delay=500ms", "--watch-period=6s"].map(str::to_owned).to_vec();
        let installing = Installing { webhooks: 2, controllers: 2, flags, ..Installing::default() };
        let installation = Installation::start(&cp, &installing).await?;
        let ns = cp.namespace("restored").await?;
        until_created(&ns, injected).await?;
        Ok(Self { cp, installation, ns })
    }

    fn processes(&self) -> impl Iterator<Item = &Drawbridge> {
        self.installation.webhooks.iter().chain(&self.installation.controllers)
    }

    /// Exactly one process says that it leads, and the Lease is renewed under its name, as a read by name tells.
    async fn led(&self) -> Result<Duration> {
        let leases: Api<Lease> = Api::namespaced(self.cp.client().await?, keys::OPERATOR_NAMESPACE);
        let renewed = async || anyhow::Ok(leases.get(keys::LEASE).await?.spec.and_then(|spec| spec.renew_time));
        let mut last = renewed().await.ok().flatten();
        let mut seen = 0;
        until("somebody leads", async || {
            let mut leaders = 0.0;
            for process in &self.installation.controllers {
                leaders += process.metrics().await?.sum("leader_election_master_status", &[]);
            }
            let now = renewed().await?;
            // Three renewals: not one that was about to fail.
            seen += usize::from(now != last);
            last = now;
            Ok(leaders == 1.0 && seen >= 3)
        })
        .await
    }

    /// A workload of that name gets its ServiceAccount.
    async fn served(&self, name: &str) -> Result<Duration> {
        self.ns.accepts(&workload(name)).await?;
        let accounts: Api<ServiceAccount> = self.ns.api();
        until(&format!("the ServiceAccount of {name}"), async || Ok(accounts.get_opt(name).await?.is_some())).await
    }

    async fn removed(&self, name: &str) -> Result<()> {
        let (deployments, accounts) = (self.ns.api::<Deployment>(), self.ns.api::<ServiceAccount>());
        deployments.delete(name, &DeleteParams::default()).await?;
        // The garbage collector may have been first.
        match accounts.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => drop(other?),
        }
        until("the removal", async || {
            Ok(deployments.get_opt(name).await?.is_none() && accounts.get_opt(name).await?.is_none())
        })
        .await
        .map(drop)
    }

    fn secrets(&self, client: kube::Client) -> Api<Secret> {
        Api::namespaced(client, keys::OPERATOR_NAMESPACE)
    }

    /// Another authority takes the place of the present one, and is in use everywhere.
    async fn rotated(&self) -> Result<()> {
        let secrets = self.secrets(self.cp.client().await?);
        let old = secrets.get(keys::SECRET_AUTHORITY).await?;
        let now = i64::try_from(std::time::UNIX_EPOCH.elapsed()?.as_millis())?;
        let fresh = SigningAuthority::found(&Lifetimes::default(), now)?;
        let root = fresh.root();
        let generations = Generations { current: fresh, next: None, previous: Vec::new() };
        let secret = content::write(Some(&old), keys::OPERATOR_NAMESPACE, &generations);
        secrets.replace(keys::SECRET_AUTHORITY, &PostParams::default(), &secret).await?;
        let held = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("no ca.crt")?.0.clone();
        ensure!(read_bundle(&held).certificates.iter().any(|certificate| certificate.root == root), "not written");
        self.all_serve(&held).await.map(drop)
    }

    /// Every webhook serves what the bundle covers, and so does each bundle that the API server holds.
    async fn all_serve(&self, bundle: &[u8]) -> Result<Duration> {
        let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
        let trust = Trust::new(&host, bundle)?;
        until("every webhook serves the authority's certificate", async || {
            for webhook in &self.installation.webhooks {
                if dial::post(webhook.webhook(), &trust, keys::PATH_INJECT, b"{}".to_vec()).await.is_err() {
                    return Ok(false);
                }
            }
            Ok(true)
        })
        .await
    }

    /// What the API server holds covers what every webhook serves, and that is what the Secret says.
    async fn trusted(&self) -> Result<Duration> {
        let client = self.cp.client().await?;
        let secret = self.secrets(client.clone()).get(keys::SECRET_AUTHORITY).await?;
        let root = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("no ca.crt")?.0.clone();
        let began = Instant::now();
        self.all_serve(&root).await?;
        let roots = read_bundle(&root).certificates;
        until("every bundle holds it", async || {
            let held = bundles(&client).await?;
            Ok(held.iter().all(|held| {
                let held = read_bundle(held).certificates;
                roots.iter().all(|root| held.contains(root))
            }))
        })
        .await?;
        Ok(began.elapsed())
    }

    /// Positions move on: what was known lies well behind what the store holds now.
    async fn passes(&self) -> Result<()> {
        for number in 0..30 {
            let name = format!("passes-{number}");
            self.ns.accepts(&json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } })).await?;
        }
        // The Secret and both configurations are watched by name: an event moves their positions at once.
        let client = self.cp.client().await?;
        let note = kube::api::Patch::Merge(json!({ "metadata": { "annotations": { "example.org/passes": "yes" } } }));
        let parameters = kube::api::PatchParams::default();
        self.secrets(client.clone()).patch(keys::SECRET_AUTHORITY, &parameters, &note).await?;
        let hooks: Api<k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration> = Api::all(client);
        hooks.patch(keys::WEBHOOK_CONFIGURATION, &parameters, &note).await?;
        Ok(())
    }

    /// Everything follows the truth.
    async fn follows(&self, what: &str) -> Result<()> {
        let began = Instant::now();
        let led = self.led().await?;
        let trusted = self.trusted().await?;
        let asked = Instant::now();
        until_created(&self.ns, injected).await?;
        let admission = asked.elapsed();
        // A version below that of its own deletion in the other history.
        let again = self.served("again").await?;
        let new = self.served("new").await?;
        let elsewhere = self.cp.namespace("elsewhere").await?;
        until_created(&elsewhere, injected).await?;
        println!(
            "{what}: led after {led:.1?}, served and trusted after {trusted:.1?} more, admission {admission:.1?}; a \
             ServiceAccount for what was deleted in the other history after {again:.1?}, for something new after \
             {new:.1?}; all in {:.1?}",
            began.elapsed()
        );
        for process in self.processes() {
            let until_ready = until("readiness", async || {
                Ok(dial::get(process.health(), "/readyz").await.is_ok_and(|(status, _)| status == 200))
            });
            until_ready.await.with_context(|| process.log())?;
            let told = process.log().matches(TOLD).count();
            ensure!(told >= 1, "a process went on as if nothing had happened:\n{}", process.log());
        }
        Ok(())
    }
}

/// The story: a backup, something happens, the backup is put back.
async fn story(what: &str, rotated: bool, restarted: bool) -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.served("before").await?;
    let backup = cluster.cp.backup().await?;
    cluster.led().await?;
    if rotated {
        cluster.rotated().await?;
    }
    cluster.passes().await?;
    cluster.served("again").await?;
    cluster.removed("again").await?;
    cluster.cp.restore(&backup, restarted).await?;
    if !restarted {
        println!("{what}: not restarted, led after {:.1?}", cluster.led().await?);
        cluster.cp.restart(Process::ApiServer).await?;
    }
    cluster.cp.restart(Process::ControllerManager).await?;
    cluster.follows(what).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_03_a_backup_is_put_back_and_the_api_server_restarted() -> Result<()> {
    story("a backup put back", false, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_03_a_backup_of_before_a_rotation_is_put_back() -> Result<()> {
    story("a backup of before a rotation", true, true).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mend_03_a_backup_is_put_back_and_the_api_server_goes_on() -> Result<()> {
    story("a backup put back behind the API server", true, false).await
}
