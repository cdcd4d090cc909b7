//! An installation of the product on a control plane, as `manifests/` describes it, with processes in place of Pods.
//!
//! In: a control plane and what to vary. Out: running processes under the ServiceAccounts and the very RBAC, webhook
//! configurations and policies that `drawbridge render` prints; only the Deployments are left out, and the Service is
//! an ExternalName in front of a balancer that plays kube-proxy. One per control plane: the names are the product's.

pub(crate) mod lookup;
mod prepared;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use drawbridge::cli::render::kinds::Kinds;
use drawbridge::cli::render::{self, FailureMode, Install, platform};
use drawbridge::cli::serve::flags::Namespaces;
use drawbridge::config::gates::Gates;
use drawbridge::domain::keys;
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::OnceCell;

pub use prepared::plane;

use crate::control_plane::{ControlPlane, Options};
use crate::network::{Entrance, Network};
use crate::patience::{lease, patience};
use crate::{Balancer, BalancerOptions, Drawbridge, Objects, Port, household};

/// Times of the product that a test need not wait for as long as a cluster does; [`lease`] is another.
pub const BRISK: [&str; 3] = ["--drain-delay=500ms", "--absence-proof=1s", "--config-poll=100ms"];

/// What varies between installations.
#[derive(Debug, Clone)]
pub struct Installing {
    /// What happens to enrolled Pods while no replica answers.
    pub failure_mode: FailureMode,
    /// Replicas with role webhook.
    pub webhooks: usize,
    /// Replicas with role controllers.
    pub controllers: usize,
    /// More flags for every process.
    pub flags: Vec<String>,
    /// Lines behind the platform file that `render` ships.
    pub platform: String,
    /// The gates file.
    pub gates: String,
    /// Whether CSIDriver `csi.spiffe.io` exists.
    pub spiffe_driver: bool,
    /// Namespaces that are served, as `NAMESPACES2WATCH` spells them; empty for all.
    pub namespaces: String,
    /// Which kinds are served.
    pub kinds: Kinds,
    /// How the balancer behaves.
    pub balancer: BalancerOptions,
    /// Whether a Lease is there that its holder gave back (unless told otherwise, it is): where there is none, a candidate waits for as
    /// long as one lasts before it makes one, for each installation anew.
    pub lease_given_back: bool,
    /// Where the processes find the API server, in place of where it is.
    pub server: Option<String>,
    /// A command that each process is run by: its own command line follows.
    pub inside: Vec<String>,
    /// The network in which the replicas with role controllers run; they and the API server reach each other all the same.
    pub network: Option<Arc<Network>>,
}

impl Default for Installing {
    fn default() -> Self {
        Self {
            failure_mode: FailureMode::Fail,
            webhooks: 1,
            controllers: 1,
            flags: brisk(),
            platform: String::new(),
            gates: platform::gates_file(&Gates::default()),
            spiffe_driver: true,
            namespaces: String::new(),
            kinds: Kinds::All,
            lease_given_back: true,
            balancer: BalancerOptions::default(),
            server: None,
            inside: Vec::new(),
            network: None,
        }
    }
}

/// [`BRISK`], with a Lease that is not lost because its holder did not get to renewing it.
fn brisk() -> Vec<String> {
    let lease = format!("--lease-duration={}s", lease().as_secs());
    BRISK.map(str::to_owned).into_iter().chain([lease]).collect()
}

/// A running installation; dropping it ends its processes.
pub struct Installation {
    /// Replicas with role webhook.
    pub webhooks: Vec<Drawbridge>,
    /// Replicas with role controllers.
    pub controllers: Vec<Drawbridge>,
    /// What the Service leads to.
    pub balancer: Balancer,
    folder: TempDir,
    /// Ports here that lead to processes in a network of their own.
    entrances: Mutex<Vec<Entrance>>,
}

impl Installation {
    /// Applies the manifests, starts the processes and waits until all are ready, the balancer serves them and the API server reaches them.
    ///
    /// # Errors
    /// When an object is refused or a process does not become ready; the message has the end of its log.
    pub async fn start(cp: &ControlPlane, installing: &Installing) -> Result<Self> {
        let folder = tempfile::tempdir_in(&household::folders()?.disk)?;
        write(folder.path(), "config.yaml", &format!("{}{}", platform::platform_file(), installing.platform))?;
        write(folder.path(), "feature-gates.yaml", &installing.gates)?;
        let objects = cp.objects().await?;
        let balancer = Balancer::start(installing.balancer.clone()).await?;
        if installing.spiffe_driver {
            objects.apply(&spiffe_driver().to_string()).await?;
        }
        let wanted = rendered(installing, balancer.address().port())?;
        let kinds = lookup::defined(&wanted);
        apply_all(&objects, prepared::left_to_apply(cp, &objects, wanted).await?, &kinds).await?;
        if installing.lease_given_back {
            objects.apply(&lease_given_back().to_string()).await?;
        }
        cp.publish_service(keys::OPERATOR_NAMESPACE, keys::SERVICE_WEBHOOK, balancer.address().port()).await?;
        let mut this =
            Self { webhooks: Vec::new(), controllers: Vec::new(), balancer, folder, entrances: Mutex::default() };
        if let Some(network) = &installing.network {
            let port = cp.server().rsplit(':').next().and_then(|port| port.parse().ok());
            network.let_out(port.context("the API server has a port")?).await?;
        }
        for _ in 0..installing.controllers {
            this.controllers.push(this.launch(cp, installing, "controllers").await?);
        }
        for _ in 0..installing.webhooks {
            this.webhooks.push(this.launch(cp, installing, "webhook").await?);
        }
        for process in this.controllers.iter().chain(&this.webhooks) {
            process.ready().await?;
        }
        for webhook in &this.webhooks {
            this.balancer.add(webhook.webhook(), webhook.health());
        }
        this.balancer.wait_for_endpoints(installing.webhooks).await?;
        policies_in_force(cp, installing.kinds).await?;
        called(&objects, installing).await?;
        Ok(this)
    }

    /// The folder with `config.yaml` and `feature-gates.yaml`.
    #[must_use]
    pub fn settings(&self) -> &Path {
        self.folder.path()
    }

    /// Kills every replica with role controllers, starts them again and waits until they are ready.
    ///
    /// # Errors
    /// When one does not start or become ready; the message has the end of its log.
    pub async fn restart_controllers(&self) -> Result<()> {
        for process in &self.controllers {
            process.kill().await;
        }
        for process in &self.controllers {
            process.start_again()?;
        }
        for process in &self.controllers {
            process.ready().await?;
        }
        Ok(())
    }

    async fn launch(&self, cp: &ControlPlane, installing: &Installing, role: &str) -> Result<Drawbridge> {
        let access = cp.service_account(keys::OPERATOR_NAMESPACE, &format!("drawbridge-{role}")).await?;
        let access = installing.server.as_deref().map_or(Ok(access.clone()), |server| access.at(server))?;
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mode = match installing.failure_mode {
            FailureMode::Fail => "fail",
            FailureMode::Gate => "gate",
        };
        let served = ("NAMESPACES2WATCH", installing.namespaces.as_str());
        let env = [("POD_NAMESPACE", keys::OPERATOR_NAMESPACE), served];
        let network = installing.network.as_ref().filter(|_| role == "controllers");
        let inside: Vec<_> = network
            .map_or_else(Vec::new, |network| network.command())
            .into_iter()
            .chain(installing.inside.clone())
            .collect();
        let launched = Drawbridge::launch_inside(&inside, &access, &env, |ports| {
            let mut arguments = vec![
                "serve".to_owned(),
                format!("--roles={role}"),
                format!("--failure-mode={mode}"),
                format!("--webhook-bind-address={}", ports.webhook.address()),
                format!("--catalogue-bind-address={}", ports.catalogue.address()),
                format!("--health-probe-bind-address={}", ports.health.address()),
                format!("--metrics-bind-address={}", ports.metrics.address()),
                format!("--config-path={}", file("config.yaml")),
                format!("--feature-gates-path={}", file("feature-gates.yaml")),
            ];
            arguments.extend(installing.kinds.argument());
            arguments.extend(installing.flags.iter().cloned());
            arguments
        })?;
        if let Some(network) = network {
            for port in [&launched.ports().health, &launched.ports().metrics].map(Port::number) {
                let entrance = network.let_in_at(port, port).await?;
                self.entrances.lock().push(entrance);
            }
        }
        Ok(launched)
    }
}

/// The control plane with the product installed as [`Installing::default`] says, for all tests of this process that leave its
/// processes alone and work in namespaces of their own; the first caller starts both.
///
/// # Errors
/// As [`ControlPlane::start`] and [`Installation::start`].
pub async fn shared() -> Result<&'static ControlPlane> {
    static SHARED: OnceCell<(ControlPlane, Installation)> = OnceCell::const_new();
    let start = || {
        Box::pin(async {
            let cp = plane(Options::default()).await?;
            let installation = Installation::start(&cp, &Installing::default()).await?;
            anyhow::Ok((cp, installation))
        })
    };
    let (cp, _) = SHARED.get_or_try_init(start).await?;
    Ok(cp)
}

/// Applies the manifests, but the Deployments and what belongs to their Pods; webhooks call the Service at `port`.
///
/// # Errors
/// When an object is refused.
pub async fn apply(objects: &Objects, failure_mode: FailureMode, port: u16) -> Result<()> {
    let wanted = rendered(&Installing { failure_mode, ..Installing::default() }, port)?;
    let kinds = lookup::defined(&wanted);
    apply_all(objects, wanted, &kinds).await
}

/// Waits until the API server holds requests against the policies: it takes note of new ones once a second. The last one is asked, by a write that is
/// only tried and that it refuses.
async fn policies_in_force(cp: &ControlPlane, kinds: Kinds) -> Result<()> {
    let metadata =
        serde_json::json!({"name": "tried", "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE}});
    let (asks, place, object, policy) = if kinds == Kinds::All {
        // Where no Agent has the mark, a policy that compares refuses whoever writes.
        let service = serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}});
        (cp.client().await?, "/api/v1/namespaces/kube-public/services", service, lookup::LAST)
    } else {
        let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let ours = cp.service_account(keys::OPERATOR_NAMESPACE, "drawbridge-controllers").await?.client().await?;
        (ours, "/api/v1/namespaces/kube-system/configmaps", map, "drawbridge-own-")
    };
    let refused = async {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        loop {
            tick.tick().await;
            let request = http::Request::post(format!("{place}?dryRun=All")).header("content-type", "application/json");
            let answer = asks.request::<Value>(request.body(object.to_string().into_bytes())?).await;
            let Err(kube::Error::Api(status)) = answer else { continue };
            // Where the account has no right there, or the kind is not defined, no policy is asked.
            let unasked = status.code == 404 || status.message.contains("cannot create resource");
            if unasked || status.message.contains(&format!("'{policy}")) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(patience(), refused).await.with_context(|| format!("{policy} never refuses anything"))?
}

/// Waits until the API server reaches the webhooks. A process is ready once the authority that it serves by is published, and the API server, which hears
/// of that by a watch, refuses until then whatever it would ask them about.
async fn called(objects: &Objects, installing: &Installing) -> Result<()> {
    // Who is given a certificate publishes no authority: that is up to the trial.
    let is_given = installing.flags.iter().any(|flag| flag.starts_with("--webhook-cert-"));
    if installing.webhooks == 0 || is_given {
        return Ok(());
    }
    let served = installing.namespaces.split(',').map(str::trim).find(|name| !name.is_empty()).unwrap_or("default");
    let tried = judged(installing.kinds, served);
    let begun = tokio::time::Instant::now();
    loop {
        match objects.create(&tried, true).await?.result {
            Err(status) if status.message.contains("failed calling webhook") => {
                ensure!(begun.elapsed() < patience(), "no webhook is reached: {}", status.message);
            }
            // Allowed or refused, somebody answered.
            _ => return Ok(()),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An object that is stored only if a webhook has answered, those of both configurations where both have any.
fn judged(kinds: Kinds, namespace: &str) -> Value {
    let (api_version, kind, spec) = match kinds {
        Kinds::All => (
            "agent.kagenti.dev/v1alpha1",
            "AgentBuild",
            serde_json::json!({
                "source": {"sourceRepository": "github.com/kagenti/agent-examples.git", "sourceSubfolder": "a2a/weather_service"},
                "buildOutput": {"imageRegistry": "registry.cr-system.svc.cluster.local:5000", "image": "weather-service", "imageTag": "v0.0.1"},
            }),
        ),
        Kinds::Kaos => (
            "kaos.tools/v1alpha1",
            "MCPServer",
            serde_json::json!({"runtime": "python-string", "params": "def add(a: int, b: int) -> int:\n    return a + b\n"}),
        ),
        Kinds::Beeai => ("beeai.dev/v1", "Agent", serde_json::json!({"image": "example.com/agent:1"})),
    };
    serde_json::json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": "tried", "namespace": namespace}, "spec": spec,
    })
}

/// What compares with objects of `kinds` comes last, once the API server knows these kinds.
async fn apply_all(objects: &Objects, rendered: Vec<(String, Value)>, kinds: &[lookup::Defined]) -> Result<()> {
    let (comparing, rest): (Vec<_>, Vec<_>) = rendered.into_iter().partition(|(_, object)| lookup::compares(object));
    for (path, object) in rest {
        objects.apply(&object.to_string()).await.with_context(|| format!("{path}: {}", object["kind"]))?;
    }
    lookup::served(objects, kinds).await?;
    for (path, object) in lookup::last_at_the_end(comparing) {
        objects.apply(&object.to_string()).await.with_context(|| format!("{path}: {}", object["kind"]))?;
    }
    Ok(())
}

/// The manifests, but the Deployments and what belongs to their Pods, each with its file.
fn rendered(installing: &Installing, port: u16) -> Result<Vec<(String, Value)>> {
    let mut install =
        Install::new(installing.failure_mode, keys::OPERATOR_NAMESPACE, "drawbridge.invalid/drawbridge:test");
    let served: Namespaces = installing.namespaces.parse().map_err(anyhow::Error::msg)?;
    install.namespaces = served.0;
    install.kinds = installing.kinds;
    let mut rendered = Vec::new();
    for part in render::parts(&install) {
        for mut object in part.objects {
            if matches!(object["kind"].as_str(), Some("Deployment" | "Service" | "PodDisruptionBudget")) {
                continue;
            }
            for entry in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                entry["clientConfig"]["service"]["port"] = port.into();
            }
            rendered.push((part.path.to_string(), object));
        }
    }
    Ok(rendered)
}

fn lease_given_back() -> Value {
    serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": keys::LEASE, "namespace": keys::OPERATOR_NAMESPACE },
        "spec": { "holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 0 },
    })
}

fn spiffe_driver() -> Value {
    serde_json::json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIDriver",
        "metadata": { "name": keys::CSI_DRIVER_SPIFFE },
        "spec": { "attachRequired": false, "podInfoOnMount": true, "volumeLifecycleModes": ["Ephemeral"] },
    })
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::write(folder.join(name), text).with_context(|| name.to_owned())
}
