//! An installed system that is left alone, and what it does when something happens at last.
//!
//! In: how long it is left alone, and how often. Out: [`Report`]: what the product asked, and how long each repair took.
//! Judged of the quiet: no line at WARN, hardly a list, no watch more than its renewals, no write but that of the
//! Lease. Judged of the repairs: each within [`SOON`]; the times are in the report.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drawbridge::domain::keys;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::load::injected;
use super::until_created;
use crate::dial::leaf;
use crate::pki::{Authority, Pair};
use crate::{ControlPlane, Drawbridge, Installation, Installing, Options, Request, wait_for};

/// Whom the product writes as.
const US: &str = "system:serviceaccount:kagenti-system:drawbridge-";
/// How long anything may take that is repaired or taken up. On an idle machine everything is there within a second; a machine that
/// does other things as well is slow, not wrong.
const SOON: Duration = Duration::from_secs(10);
/// What never comes is given up after this.
const PATIENCE: Duration = Duration::from_secs(120);
/// From here on hardly a list is forgiven.
const LONG: Duration = Duration::from_secs(60);
/// A Secret as cert-manager writes it.
const SECRET: &str = "quiet-certificate";

/// One trial.
#[derive(Debug, Clone)]
pub struct Quiet {
    /// How long the system is left alone, each time.
    pub duration: Duration,
    /// How often.
    pub times: u32,
    /// How long one watch lasts, in seconds.
    pub period: u32,
    /// How long the Lease lasts, in seconds: beside other work an API server may be away for longer than that of a real system.
    pub lease: u32,
}

/// What one quiet time was.
#[derive(Debug, Clone, Default)]
pub struct Silence {
    /// Watches begun, by who and what; the number of renewals that there may be is in it.
    pub watches: BTreeMap<String, usize>,
    /// Renewals of the Lease.
    pub renewals: usize,
    /// Lists: of a watch whose bookmark came too late, on a machine that does other things as well.
    pub lists: usize,
    /// How long each repair took after it.
    pub repairs: Vec<(&'static str, Duration)>,
}

/// The numbers of a trial that held.
#[derive(Debug)]
pub struct Report(Quiet, Vec<Silence>);

/// The system under trial.
struct System {
    cp: ControlPlane,
    installation: Installation,
    client: Client,
    authority: Authority,
    /// A webhook with a Secret of somebody else's, and one with files.
    others: [Drawbridge; 2],
    files: tempfile::TempDir,
}

impl Quiet {
    /// Runs the trial on a control plane of its own.
    ///
    /// # Errors
    /// When the system was not quiet, or a repair did not come in time; the message says what.
    pub async fn run(&self) -> Result<Report> {
        let system = System::start(self.period, self.lease).await?;
        let mut all = Vec::new();
        for round in 0..self.times {
            system.settled(self.period).await?;
            let mut silence = self.listen(&system).await.with_context(|| format!("quiet time {}", round + 1))?;
            silence.repairs = system.disturbed(round).await?;
            for (what, took) in &silence.repairs {
                ensure!(*took <= SOON, "{what}: repaired after {took:.1?} only: {:?}", silence.repairs);
            }
            all.push(silence);
        }
        Ok(Report(self.clone(), all))
    }

    /// Leaves the system alone, and looks at what it did meanwhile.
    async fn listen(&self, system: &System) -> Result<Silence> {
        let mark = system.cp.audit().mark()?;
        let logs: Vec<usize> = system.processes().map(|process| process.log().len()).collect();
        let before = system.failures().await?;
        tokio::time::sleep(self.duration).await;
        for (process, from) in system.processes().zip(logs) {
            let log = process.log();
            let told: Vec<_> = log.get(from..).unwrap_or_default().lines().filter(|line| is_warning(line)).collect();
            ensure!(told.is_empty(), "told while nothing happened:\n{}", told.join("\n"));
        }
        ensure!(system.failures().await? == before, "watches failed");
        let mut silence = Silence::default();
        for request in system.cp.audit().settled(mark).await?.filter(|request| request.user.starts_with(US)) {
            judge(&mut silence, &request)?;
        }
        let allowed = usize::try_from(self.duration.as_secs() / u64::from(self.period))? + 2;
        for (what, count) in &silence.watches {
            ensure!(*count <= allowed, "{what}: {count} watches in {:?}, {allowed} at most", self.duration);
        }
        let (watches, patience) = (silence.watches.values().sum::<usize>(), if self.duration < LONG { 4 } else { 100 });
        ensure!(silence.lists * patience <= watches, "{} lists beside {watches} watches", silence.lists);
        ensure!(!silence.watches.is_empty() && silence.renewals > 0, "nobody watched or led: {silence:?}");
        Ok(silence)
    }
}

/// Files one request under what it is; anything that has no place in a quiet time is an error.
fn judge(silence: &mut Silence, request: &Request) -> Result<()> {
    match request.verb.as_str() {
        "watch" => {
            let path = request.uri.split('?').next().unwrap_or_default();
            let pairs = request.uri.split('?').nth(1).unwrap_or_default().split('&');
            let selectors: Vec<_> = pairs.filter(|pair| pair.contains("Selector")).collect();
            let who = request.user.rsplit(':').next().unwrap_or_default();
            let key = format!("{who} {} {path} {}", request.credential, selectors.join("&"));
            *silence.watches.entry(key).or_default() += 1;
        }
        "update" if request.resource == "leases" => silence.renewals += 1,
        // A kind that is not served is asked for now and then.
        "list" if request.code.is_none_or(|code| code == 404) => {}
        // The object that was listed by name is read, too.
        "list" => silence.lists += 1,
        "get"
            if [keys::SECRET_AUTHORITY, keys::WEBHOOK_CONFIGURATION, keys::LEASE, SECRET].contains(&&*request.name) => {
        }
        _ => anyhow::bail!("while nothing happened: {request}"),
    }
    Ok(())
}

/// WARN or ERROR, in a JSON log.
fn is_warning(line: &str) -> bool {
    serde_json::from_str::<Value>(line).map_or(true, |line| !matches!(line["level"].as_str(), Some("INFO" | "DEBUG")))
}

impl System {
    async fn start(period: u32, lease: u32) -> Result<Self> {
        let cp = ControlPlane::start(Options::default()).await?;
        let installing = Installing {
            flags: vec![
                "--drain-delay=500ms".to_owned(),
                format!("--watch-period={period}s"),
                format!("--lease-duration={lease}s"),
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

    fn processes(&self) -> impl Iterator<Item = &Drawbridge> {
        self.installation.webhooks.iter().chain(&self.installation.controllers).chain(&self.others)
    }

    async fn failures(&self) -> Result<f64> {
        let mut sum = 0.0;
        for process in self.processes() {
            sum += process.metrics().await?.sum("drawbridge_watch_failures_total", &[]);
        }
        Ok(sum)
    }

    /// Waits until nothing is written any more: certificates settle for a while after a change.
    async fn settled(&self, period: u32) -> Result<()> {
        let (deadline, quiet) = (Instant::now() + PATIENCE * 2, Duration::from_secs(u64::from(period).max(15)));
        loop {
            let mark = self.cp.audit().mark()?;
            tokio::time::sleep(quiet).await;
            let written = self.cp.audit().settled(mark).await?.writes();
            let written = written.filter(|write| write.user.starts_with(US) && write.resource != "leases");
            if written.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "the system does not come to rest: {}", written[0]);
        }
    }

    /// Waits until `address` serves that leaf.
    async fn serves(&self, address: SocketAddr, expected: &[u8]) -> Result<()> {
        until(|| async move { Ok(leaf(address).await.is_ok_and(|served| served == expected)) }).await
    }

    /// Everything that somebody else may do to a quiet system, and how long it takes until it is as it was, or in use.
    async fn disturbed(&self, round: u32) -> Result<Vec<(&'static str, Duration)>> {
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let roots = self.authority.certificate();
        let stranger = STANDARD.encode(&roots);
        let mut repairs = Vec::new();
        // A writer that comes again is answered once a minute, so each round has another configuration.
        let overwrite = json!([{ "op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": stranger }]);
        let began = if round.is_multiple_of(2) {
            overwritten(&mutating, overwrite).await?
        } else {
            overwritten(&validating, overwrite).await?
        };
        self.bundles_hold_our_root().await?;
        repairs.push(("an overwritten caBundle", began.elapsed()));

        let began = self.entry_taken_out_and_put_back().await?;
        self.bundles_hold_our_root().await?;
        repairs.push(("a webhook entry that came back without caBundle", began.elapsed()));

        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), keys::OPERATOR_NAMESPACE);
        let uid = secrets.get(keys::SECRET_AUTHORITY).await?.metadata.uid;
        secrets.delete(keys::SECRET_AUTHORITY, &DeleteParams::default()).await?;
        let began = Instant::now();
        wait_for(&secrets, keys::SECRET_AUTHORITY, |secret: &Secret| secret.metadata.uid != uid).await?;
        repairs.push(("a deleted CA Secret", began.elapsed()));

        let pair = serving(&self.authority)?;
        let expected = pem_leaf(&pair)?;
        let change = Patch::Merge(secret(&pair));
        secrets.patch(SECRET, &PatchParams::default(), &change).await?;
        let began = Instant::now();
        self.serves(self.others[0].webhook(), &expected).await?;
        repairs.push(("a Secret of cert-manager", began.elapsed()));

        let pair = serving(&self.authority)?;
        let expected = pem_leaf(&pair)?;
        mount(self.files.path(), &pair)?;
        let began = Instant::now();
        self.serves(self.others[1].webhook(), &expected).await?;
        repairs.push(("a mounted certificate", began.elapsed()));
        Ok(repairs)
    }

    /// Takes the last entry out of the mutating configuration and puts it back, as a person has it who knows no caBundle.
    async fn entry_taken_out_and_put_back(&self) -> Result<Instant> {
        let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
        let stored = serde_json::to_value(api.get(keys::WEBHOOK_CONFIGURATION).await?)?;
        let entries = stored["webhooks"].as_array().context("no entries")?;
        let last = entries.len().checked_sub(1).context("no entry")?;
        let mut entry = entries[last].clone();
        entry["clientConfig"].as_object_mut().context("no client")?.remove("caBundle");
        let path = format!("/webhooks/{last}");
        let patch =
            |operations: Value| Ok::<_, serde_json::Error>(Patch::<()>::Json(serde_json::from_value(operations)?));
        let taken_out = patch(json!([{ "op": "remove", "path": path }]))?;
        api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &taken_out).await?;
        let back = patch(json!([{ "op": "add", "path": path, "value": entry }]))?;
        api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &back).await?;
        Ok(Instant::now())
    }

    /// Waits until every entry holds every root of the Secret.
    async fn bundles_hold_our_root(&self) -> Result<()> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), keys::OPERATOR_NAMESPACE);
        let secret = secrets.get(keys::SECRET_AUTHORITY).await?;
        let root = secret.data.as_ref().and_then(|data| data.get("ca.crt")).context("no ca.crt")?.0.clone();
        let roots = drawbridge::runtime::certs::read_bundle(&root).certificates;
        let roots = &roots;
        until(|| async move {
            let bundles = bundles(&self.client).await?;
            let held = bundles.iter().map(|bundle| drawbridge::runtime::certs::read_bundle(bundle).certificates);
            Ok(held.into_iter().all(|held| roots.iter().all(|root| held.contains(root))))
        })
        .await
    }
}

/// The caBundle of every entry of both configurations.
///
/// # Errors
/// When they cannot be read.
pub async fn bundles(client: &Client) -> Result<Vec<Vec<u8>>> {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let validating =
        Api::<ValidatingWebhookConfiguration>::all(client.clone()).get(keys::WEBHOOK_CONFIGURATION).await?;
    let mutating = mutating.webhooks.unwrap_or_default().into_iter().map(|hook| hook.client_config);
    let validating = validating.webhooks.unwrap_or_default().into_iter().map(|hook| hook.client_config);
    let bundle = |bundle: Option<ByteString>| bundle.map(|bundle| bundle.0).unwrap_or_default();
    Ok(mutating.chain(validating).map(|client| bundle(client.ca_bundle)).collect())
}

async fn overwritten<K>(api: &Api<K>, operations: Value) -> Result<Instant>
where
    K: kube::Resource + Clone + serde::de::DeserializeOwned + fmt::Debug,
{
    let patch = Patch::<()>::Json(serde_json::from_value(operations)?);
    api.patch(keys::WEBHOOK_CONFIGURATION, &PatchParams::default(), &patch).await?;
    Ok(Instant::now())
}

/// Asks again and again, 20 ms apart.
async fn until<F: Future<Output = Result<bool>>>(mut so: impl FnMut() -> F) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !so().await? {
        ensure!(Instant::now() < deadline, "not within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

fn serving(authority: &Authority) -> Result<Pair> {
    let host = format!("{}.{}.svc", keys::SERVICE_WEBHOOK, keys::OPERATOR_NAMESPACE);
    authority.server(&host, &[&host])
}

fn pem_leaf(pair: &Pair) -> Result<Vec<u8>> {
    let read = drawbridge::runtime::certs::read_bundle(pair.certificate.as_bytes());
    Ok(read.certificates.first().context("no certificate")?.der.to_vec())
}

/// Puts a pair into the folder, each file at once.
fn mount(folder: &Path, pair: &Pair) -> Result<()> {
    for (name, text) in [("tls.crt", &pair.certificate), ("tls.key", &pair.key)] {
        let new = folder.join(format!(".{name}"));
        std::fs::write(&new, text)?;
        std::fs::rename(new, folder.join(name))?;
    }
    Ok(())
}

/// Without ca.crt a new pair is served at once.
fn secret(pair: &Pair) -> Value {
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
    let mut template = super::load::pod(Some("agent"));
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
            source,
        ]
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report(quiet, all) = self;
        for (number, silence) in all.iter().enumerate() {
            let most = silence.watches.values().max().copied().unwrap_or_default();
            writeln!(
                f,
                "quiet time {} of {:?}: no warning, {} lists, no write but {} renewals of the Lease; {} watches, each renewed at most \
                 {most} times",
                number + 1,
                quiet.duration,
                silence.lists,
                silence.renewals,
                silence.watches.len(),
            )?;
            for (what, took) in &silence.repairs {
                writeln!(f, "  {what}: {:.0} ms", took.as_secs_f64() * 1000.0)?;
            }
        }
        Ok(())
    }
}
