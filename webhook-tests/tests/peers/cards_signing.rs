//! A Pod that signs its card, when it starts or anew at each renewal: what the webhook put into it is run as it is there, with the SVID of the real SPIRE and
//! the token of the Pod's account, and the AgentCard is verified by what it published.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use webhook_tests::household::Child;
use webhook_tests::patience::{delay, patience};
use webhook_tests::spire::{BundleForm, Spire, SpireOptions};
use webhook_tests::{ControlPlane, Installation, Installing, Options, TestNamespace, household, programs, wait_for};

use super::cards_cluster::{DOMAIN, NAME, account, agent, card, is, service};
use super::cards_rotation::{lasting, losses};

/// What a Pod sees of its account, in a place of its own, and then the program; both folders and the program are arguments.
const IN_POD: &str = r#"mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io/serviceaccount \
  && cp "$1"/token "$1"/ca.crt "$1"/namespace /run/secrets/kubernetes.io/serviceaccount/ && shift && exec "$@""#;

/// A cluster with SPIRE, a namespace whose agent asks for that signature, and what the webhook put into its Pod.
struct Trial {
    cp: ControlPlane,
    spire: Spire,
    ns: TestNamespace,
    /// How long SPIRE's SVIDs last: it renews them when half of that is over.
    svid_ttl: Duration,
    _installation: Installation,
    /// `sign-agentcard`.
    signer: Value,
    /// The ConfigMap that was made ahead.
    made: ConfigMap,
    folder: TempDir,
}

impl Trial {
    async fn new(sign: &str, lasting: fn() -> Duration, cards: &str) -> Result<Self> {
        let cp = ControlPlane::start(Options::default()).await?;
        let svid_ttl = lasting();
        let spire = SpireOptions { trust_domain: DOMAIN.to_owned(), svid_ttl, ..SpireOptions::default() };
        let spire = Spire::start(spire).await?;
        let bundles = cp.namespace("bundles").await?;
        let bundle = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "spire-bundle"},
            "data": {"bundle.spiffe": spire.bundle(BundleForm::Spiffe)?}});
        bundles.accepts(&bundle).await?;
        let platform = format!(
            "cards: {{audit: false, minimumPeriodSeconds: 5{cards}, trustBundle: {{trustDomain: {DOMAIN}, configMap: {{name: spire-bundle, namespace: {}}}}}}}\n",
            bundles.name()
        );
        let installation = Installation::start(&cp, &Installing { platform, ..Installing::default() }).await?;
        let ns = cp.namespace("signing").await?;
        // The program of the test runs as root.
        spire.entitle(&spire.account(ns.name(), "weather"), 0)?;
        let mut deployment = agent();
        deployment["spec"]["template"]["metadata"] = json!({
            "labels": {"app": NAME, "kagenti.io/type": "agent"},
            "annotations": {"agentcard.kagenti.dev/sign": sign},
        });
        for object in [account(), service(), deployment] {
            ns.accepts(&object).await?;
        }
        let made = wait_for(&ns.api::<ConfigMap>(), &format!("{NAME}-card-signed"), |_| true).await?;
        ensure!(made.data.is_none(), "{made:?}");
        let signer = signer(&ns).await?;
        let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
        Ok(Self { cp, spire, ns, svid_ttl, _installation: installation, signer, made, folder })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The card that is to be signed, in a step as the kubelet shows it.
    fn unsigned(&self, card: &Value) -> Result<()> {
        std::fs::write(self.path("agent.json.new"), card.to_string())?;
        Ok(std::fs::rename(self.path("agent.json.new"), self.path("agent.json"))?)
    }

    /// The program of the container, with these arguments, in a Pod as far as it can tell.
    async fn program(&self, arguments: &[&str]) -> Result<Command> {
        let asked = TokenRequest {
            spec: TokenRequestSpec { expiration_seconds: Some(3600), ..TokenRequestSpec::default() },
            ..TokenRequest::default()
        };
        let accounts = self.ns.api::<ServiceAccount>();
        let token = accounts.create_token_request("weather", &PostParams::default(), &asked).await?;
        std::fs::write(self.path("token"), token.status.context("a token")?.token)?;
        std::fs::write(self.path("ca.crt"), self.cp.authority())?;
        std::fs::write(self.path("namespace"), self.ns.name())?;
        let port = self.cp.server().rsplit(':').next().unwrap_or_default().to_owned();
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", IN_POD, "sh"]);
        command.arg(self.folder.path()).arg(programs::workspace("drawbridge")?).args(arguments);
        for variable in self.signer["env"].as_array().into_iter().flatten() {
            let value = variable["value"].as_str().unwrap_or(self.ns.name());
            command.env(variable["name"].as_str().unwrap_or_default(), value);
        }
        command.env("SPIFFE_ENDPOINT_SOCKET", format!("unix://{}", self.spire.socket().display()));
        command.env("UNSIGNED_CARD_PATH", self.path("agent.json"));
        command.env("AGENT_CARD_PATH", self.path("out/agent-card.json"));
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1").env("KUBERNETES_SERVICE_PORT", port);
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// The words of a list of the container.
    fn words(&self, at: &str) -> Vec<&str> {
        self.signer.pointer(at).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Whether its startup probe succeeds.
    async fn has_started(&self) -> Result<bool> {
        let words: Vec<&str> = self.words("/startupProbe/exec/command").into_iter().skip(1).collect();
        Ok(tokio::process::Command::from(self.program(&words).await?).status().await?.success())
    }

    /// Starts it as it stands in the Pod.
    async fn start(&self) -> Result<Child> {
        household::spawn("sign-agentcard", self.program(&self.words("/args")).await?, &self.path("log"))
    }

    async fn signed(&self) -> Result<ConfigMap> {
        Ok(self.ns.api::<ConfigMap>().get(&format!("{NAME}-card-signed")).await?)
    }
}

fn weather(skill: &str) -> Value {
    json!({"name": "Weather", "version": "1.0.0", "skills": [{"id": skill}], "protocolVersion": "0.3.0"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_signs_its_card_when_it_starts_and_publishes_it_by_its_own_account() -> Result<()> {
    let trial = Trial::new("true", || Duration::from_secs(3600), "").await?;
    trial.unsigned(&weather("echo"))?;
    let output = tokio::process::Command::from(trial.program(&trial.words("/args")).await?).output().await?;
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success() && log.contains("the signed card is published"), "{log}");

    let written: Value = serde_json::from_slice(&std::fs::read(trial.path("out/agent-card.json"))?)?;
    ensure!(written["protocolVersion"] == "0.3.0", "case 145: {written}");
    let (signed, made) = (trial.signed().await?, &trial.made);
    ensure!(signed.uid() == made.uid() && signed.owner_references() == made.owner_references(), "{signed:?}");
    let good = card(&trial.ns, "verified", |card| is(card, "Verified", "True")).await?;
    ensure!(good["status"]["cardSource"] == "ConfigMap" && good["status"]["card"]["name"] == "Weather", "{good:#}");
    Ok(())
}

/// What the sidecar has published, once that holds.
async fn published(trial: &Trial, what: &str, holds: impl Fn(&str) -> bool) -> Result<(String, String)> {
    let deadline = Instant::now() + patience().max(trial.svid_ttl * 2);
    loop {
        let map = trial.signed().await?;
        let card = map.data.as_ref().and_then(|data| data.get("agent-card.json")).cloned().unwrap_or_default();
        if holds(&card) {
            return Ok((card, map.resource_version().unwrap_or_default()));
        }
        ensure!(Instant::now() < deadline, "{what}: {card}");
        sleep(Duration::from_millis(250)).await;
    }
}

/// The certificates that signed a card.
fn signed_with(card: &str) -> Option<String> {
    let card: Value = serde_json::from_str(card).ok()?;
    Some(card["signatures"][0]["protected"].as_str()?.to_owned())
}

/// One process: it signs before it lets the agent start, at each renewal, and when the card changes; no signature counts a second longer than its SVID, and trust is
/// never lost; at rest nothing is written; at the end it goes at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sidecar_signs_anew_at_each_renewal_and_nothing_restarts() -> Result<()> {
    let trial = Trial::new("sidecar", lasting, ", expiredSvidSeconds: 0").await?;
    ensure!(trial.signer["restartPolicy"] == "Always", "{:#}", trial.signer);
    ensure!(!trial.has_started().await?, "nothing is signed, so the agent waits");
    trial.unsigned(&weather("echo"))?;
    let sidecar = trial.start().await?;
    let (first, _) = published(&trial, "the first", |card| signed_with(card).is_some()).await?;
    let deadline = Instant::now() + patience();
    while !trial.has_started().await? {
        ensure!(Instant::now() < deadline, "signed, and the agent is not let go: {}", sidecar.log());
        sleep(Duration::from_millis(100)).await;
    }
    card(&trial.ns, "verified", |card| is(card, "Verified", "True")).await?;
    let losses = losses(trial.ns.api());

    let mut last = first;
    for renewal in 1..=2 {
        let by = signed_with(&last);
        let (next, version) = published(&trial, "a renewal", |card| signed_with(card) != by).await?;
        ensure!(sidecar.ended().is_none(), "it ended: {}", sidecar.log());
        let file = std::fs::read_to_string(trial.path("out/agent-card.json"))?;
        ensure!(file == next, "renewal {renewal}: the file says what is published");
        // For some looks at the card nothing is written.
        sleep(Duration::from_secs(12)).await;
        ensure!(trial.signed().await?.resource_version() == Some(version), "renewal {renewal}: {}", sidecar.log());
        last = next;
    }
    trial.unsigned(&weather("talk"))?;
    published(&trial, "another card", |card| card.contains("talk") && signed_with(card).is_some()).await?;
    card(&trial.ns, "the other card", |card| {
        is(card, "Verified", "True") && card["status"]["card"]["skills"][0]["id"] == "talk"
    })
    .await?;
    let lost = losses.lock().clone();
    ensure!(lost.is_empty(), "trust was lost: {lost:#?}\n{}", sidecar.log());
    let status = std::fs::read_to_string(format!("/proc/{}/status", sidecar.id()))?;
    let most: Vec<&str> =
        status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("RssAnon")).collect();
    let asked = Instant::now();
    // Two seconds, and as much longer as the machine is slower.
    let ended = sidecar.stop(delay() * 4).await?;
    ensure!(ended.success(), "{ended}: {}", sidecar.log());
    eprintln!("gone {:.0?} after SIGTERM; memory: {most:?}", asked.elapsed());

    // One that is started anew in the same Pod holds up nobody, and leaves what is published: it is good.
    let before = trial.signed().await?.resource_version();
    ensure!(trial.has_started().await?, "the agent runs already");
    const STANDS: &str = "the card that is published says the same";
    let again = trial.start().await?;
    let deadline = Instant::now() + patience();
    while again.log().matches("the signed card is published").count() < 4 && !again.log().contains(STANDS) {
        ensure!(Instant::now() < deadline, "{}", again.log());
        sleep(Duration::from_millis(100)).await;
    }
    // Its SVID may have been renewed in between.
    let stood = again.log().contains(STANDS);
    ensure!(!stood || trial.signed().await?.resource_version() == before, "{}", again.log());
    let log = again.log();
    ensure!(!log.contains("PRIVATE") && log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{log}");
    Ok(())
}

/// The init container that the webhook put into the agent's Pod.
async fn signer(ns: &TestNamespace) -> Result<Value> {
    let named = |pod: &Pod| {
        let mut inits = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        inits.find(|container| container.name == "sign-agentcard").cloned()
    };
    let config = kube::runtime::watcher::Config::default();
    let pods: kube::Api<Pod> = ns.api();
    let pods = webhook_tests::wait_until(&pods, config, |all| all.values().any(|pod| named(pod).is_some()));
    let found = pods.await?.iter().find_map(named).context("the signer")?;
    Ok(serde_json::to_value(found)?)
}
