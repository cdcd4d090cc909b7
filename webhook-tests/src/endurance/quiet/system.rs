//! The system of the trial: an installation, and two webhooks with certificates of somebody else's.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::domain::keys;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{LATE, US, asked_for, until};
use crate::control_plane::Process;
use crate::dial::leaf;
use crate::endurance::load::{self, injected};
use crate::endurance::until_created;
use crate::patience::patience;
use crate::pki::{Authority, Pair};
use crate::{ControlPlane, Drawbridge, Installation, Installing, Options, installation, wait_for};

/// A Secret as cert-manager writes it.
pub(super) const SECRET: &str = "quiet-certificate";

/// The system under trial.
pub(super) struct System {
    pub(super) cp: ControlPlane,
    pub(super) installation: Installation,
    pub(super) client: Client,
    pub(super) authority: Authority,
    /// A webhook with a Secret of somebody else's, and one with files.
    pub(super) others: [Drawbridge; 2],
    pub(super) files: tempfile::TempDir,
}

impl System {
    pub(super) async fn start(period: u32, lease: u32) -> Result<Self> {
        let cp = installation::plane(options(period)).await?;
        let installing = Installing {
            flags: vec![
                "--drain-delay=500ms".to_owned(),
                format!("--watch-period={period}s"),
                format!("--lease-duration={lease}s"),
                // Says which lists follow a watch that ended without a word.
                "--log-level=debug".to_owned(),
            ],
            ..Installing::default()
        };
        let installation = Installation::start(&cp, &installing).await?;
        let client = cp.client().await?;
        let authority = Authority::new("somebody-else")?;
        let files = tempfile::tempdir()?;
        let pair = serving(&authority)?;
        mount(files.path(), &pair)?;
        let objects = cp.objects().await?;
        objects.apply(&secret(&pair).to_string()).await?;
        for object in right_to_read() {
            objects.apply(&object.to_string()).await?;
        }
        let folder = files.path().display().to_string();
        let others = [
            launch(&cp, &installation, period, format!("--webhook-cert-secret={SECRET}")).await?,
            launch(&cp, &installation, period, format!("--webhook-cert-path={folder}")).await?,
        ];
        others[1].ready().await?;
        let system = Self { cp, installation, client, authority, others, files };
        let first = pem_leaf(&pair)?;
        for other in &system.others {
            system.serves(other.webhook(), &first).await?;
        }
        let ns = system.cp.namespace("quiet").await?;
        until_created(&ns, injected).await?;
        ns.accepts(&workload()).await?;
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = ns.api();
        wait_for(&accounts, "agent", |_: &k8s_openapi::api::core::v1::ServiceAccount| true).await?;
        Ok(system)
    }

    pub(super) fn processes(&self) -> impl Iterator<Item = &Drawbridge> {
        self.installation.webhooks.iter().chain(&self.installation.controllers).chain(&self.others)
    }

    pub(super) async fn failures(&self) -> Result<f64> {
        let mut sum = 0.0;
        for process in self.processes() {
            sum += process.metrics().await?.sum("drawbridge_watch_failures_total", &[]);
        }
        Ok(sum)
    }

    /// Waits until nothing is written any more (certificates settle for a while after a change) for as long as a watch lasts, and a
    /// while; returns the watches that were renewed meanwhile, which are all there are.
    pub(super) async fn settled(&self, period: u32) -> Result<BTreeSet<String>> {
        let (deadline, quiet) = (Instant::now() + patience() * 3, Duration::from_secs(u64::from(period) + LATE));
        loop {
            let mark = self.cp.audit().mark()?;
            tokio::time::sleep(quiet).await;
            let requests = self.cp.audit().settled(mark).await?.filter(|request| request.user.starts_with(US));
            let written = requests.clone().writes().filter(|write| write.resource != "leases");
            if written.is_empty() {
                return Ok(requests.verb("watch").iter().map(asked_for).collect());
            }
            ensure!(Instant::now() < deadline, "the system does not come to rest: {}", written[0]);
        }
    }

    /// Waits until `address` serves that leaf.
    pub(super) async fn serves(&self, address: SocketAddr, expected: &[u8]) -> Result<()> {
        until(|| async move { Ok(leaf(address).await.is_ok_and(|served| served == expected)) }).await
    }
}

/// A control plane whose etcd tells every watch of its progress, as clusters have it (kubeadm: every 5 s). Without, an API server
/// has no bookmark for a kind of which nothing happens, and each watch of it is followed by a list.
fn options(period: u32) -> Options {
    let mut options = Options::default();
    let progress = format!("--watch-progress-notify-interval={}ms", u64::from(period) * 1000 / 5);
    options.args.entry(Process::Etcd).or_default().push(progress);
    options
}

pub(super) fn serving(authority: &Authority) -> Result<Pair> {
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    authority.server(&host, &[&host])
}

pub(super) fn pem_leaf(pair: &Pair) -> Result<Vec<u8>> {
    let read = drawbridge::server::certs::read_bundle(pair.certificate.as_bytes());
    Ok(read.certificates.first().context("no certificate")?.der.to_vec())
}

/// Puts a pair into the folder, each file at once.
pub(super) fn mount(folder: &Path, pair: &Pair) -> Result<()> {
    for (name, text) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
        let new = folder.join(format!(".{name}"));
        std::fs::write(&new, text)?;
        std::fs::rename(new, folder.join(name))?;
    }
    Ok(())
}

/// Without ca.crt a new pair is served at once.
pub(super) fn secret(pair: &Pair) -> Value {
    json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": { "name": SECRET, "namespace": keys::OPERATOR_NAMESPACE },
        "data": { "tls.crt": STANDARD.encode(&pair.certificate), "tls.key": STANDARD.encode(&pair.key) } })
}

/// What who installs gives the webhook for a Secret of cert-manager's.
fn right_to_read() -> [Value; 2] {
    let metadata = json!({ "name": SECRET, "namespace": keys::OPERATOR_NAMESPACE });
    let rule = json!({ "apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET],
        "verbs": ["get", "list", "watch"] });
    let account =
        json!({ "kind": "ServiceAccount", "name": "drawbridge-webhook", "namespace": keys::OPERATOR_NAMESPACE });
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": SECRET });
    [
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": [rule] }),
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "subjects": [account], "roleRef": role }),
    ]
}

/// An enrolled workload with one Pod.
fn workload() -> Value {
    let mut template = load::pod(Some("agent"));
    let spec = template["spec"].take();
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "agent" },
        "spec": { "selector": { "matchLabels": { "app": "agent" } },
            "template": { "metadata": { "labels": template["metadata"]["labels"] }, "spec": spec } } })
}

async fn launch(cp: &ControlPlane, installation: &Installation, period: u32, source: String) -> Result<Drawbridge> {
    let access = cp.service_account(keys::OPERATOR_NAMESPACE, "drawbridge-webhook").await?;
    let file = |name: &str| installation.settings().join(name).display().to_string();
    Drawbridge::launch(&access, &[("POD_NAMESPACE", keys::OPERATOR_NAMESPACE)], |ports| {
        vec![
            "serve".to_owned(),
            "--roles=webhook".to_owned(),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            format!("--metrics-bind-address={}", ports.metrics.address()),
            format!("--config-path={}", file("config.yaml")),
            format!("--feature-gates-path={}", file("feature-gates.yaml")),
            "--drain-delay=500ms".to_owned(),
            format!("--watch-period={period}s"),
            "--log-level=debug".to_owned(),
            source,
        ]
    })
}
