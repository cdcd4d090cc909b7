//! The real Tekton Pipelines beside a control plane: its webhook and its controller, from its own manifests.
//!
//! In: a running control plane. Out: PipelineRuns are defaulted, judged and run by Tekton's own code, with kwok as the
//! kubelet: a TaskRun's Pod runs its steps, which end at once; [`kubelet`] says how a test decides what they end with.
//! Promises: both processes live in a [`Network`] of their own (they listen on every interface, and on ports
//! that somebody may use) and under the ServiceAccounts and RBAC of Tekton's manifests; both are killed on drop.

pub mod install;
pub mod kubelet;
mod volumes;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use parking_lot::Mutex;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::access::Access;
use crate::control_plane::ControlPlane;
use crate::household::{self, Child};
use crate::network::{Entrance, Network};
use crate::patience::patience;
use crate::{Objects, background};

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Where the webhook listens in its own network.
const WEBHOOK_PORT: u16 = 8443;

/// Tekton's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Defaults and judges.
    Webhook,
    /// Runs.
    Controller,
}

impl Part {
    fn program(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Controller => "controller",
        }
    }

    fn account(self) -> &'static str {
        match self {
            Self::Webhook => "tekton-pipelines-webhook",
            Self::Controller => "tekton-pipelines-controller",
        }
    }

    /// What Tekton's Deployments set; the ports differ between the parts, which share a network here.
    fn environment(self) -> Vec<(&'static str, &'static str)> {
        let mut all = vec![
            ("SYSTEM_NAMESPACE", install::NAMESPACE),
            ("KUBERNETES_MIN_VERSION", "v1.28.0"),
            ("CONFIG_LOGGING_NAME", "config-logging"),
            ("CONFIG_OBSERVABILITY_NAME", "config-observability"),
            ("CONFIG_FEATURE_FLAGS_NAME", "feature-flags"),
            ("METRICS_DOMAIN", "tekton.dev/pipeline"),
        ];
        all.extend(match self {
            Self::Webhook => [
                ("POD_NAME", "webhook-0"),
                ("CONFIG_LEADERELECTION_NAME", "config-leader-election-webhook"),
                ("PROBES_PORT", "8081"),
                ("METRICS_PROMETHEUS_PORT", "9091"),
                ("PROFILING_PORT", "8011"),
            ],
            Self::Controller => [
                ("POD_NAME", "controller-0"),
                ("CONFIG_LEADERELECTION_NAME", "config-leader-election-controller"),
                ("PROBES_PORT", "8082"),
                ("METRICS_PROMETHEUS_PORT", "9092"),
                ("PROFILING_PORT", "8012"),
            ],
        });
        all.extend(match self {
            Self::Webhook => [
                ("WEBHOOK_PORT", "8443"),
                ("WEBHOOK_ADMISSION_CONTROLLER_NAME", "webhook.pipeline.tekton.dev"),
                ("WEBHOOK_SERVICE_NAME", install::SERVICE),
                ("WEBHOOK_SECRET_NAME", "webhook-certs"),
            ]
            .as_slice(),
            Self::Controller => &[("CONFIG_DEFAULTS_NAME", "config-defaults"), ("CONFIG_SPIRE", "config-spire")],
        });
        all
    }

    /// The controller is told its own images; no kubelet of ours pulls them.
    fn arguments(self) -> Vec<String> {
        let images = ["entrypoint", "nop", "sidecarlogresults", "workingdirinit", "shell", "shell-image-win"];
        match self {
            Self::Webhook => Vec::new(),
            Self::Controller => images
                .iter()
                .flat_map(|name| {
                    let flag = name
                        .strip_suffix("-image-win")
                        .map_or(format!("-{name}-image"), |shell| format!("-{shell}-image-win"));
                    [flag, format!("tekton.invalid/{name}:test")]
                })
                .collect(),
        }
    }
}

/// A running Tekton; dropping it ends its processes. One per control plane: the names are Tekton's.
pub struct Tekton {
    webhook: Mutex<Option<Child>>,
    controller: Mutex<Option<Child>>,
    access: [Access; 2],
    programs: PathBuf,
    logs: PathBuf,
    number: u64,
    entrance: Entrance,
    network: Network,
    provisioner: JoinHandle<()>,
    admin: Access,
}

impl Tekton {
    /// The Tekton on the control plane that all tests of this process share; the first caller starts it.
    ///
    /// # Errors
    /// As [`Tekton::start`].
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Tekton> = OnceCell::const_new();
        let cp = ControlPlane::shared().await?;
        SHARED.get_or_try_init(|| background::run(Self::start(cp))).await
    }

    /// Installs Tekton on `cp`, starts both processes, and waits until PipelineRuns are judged.
    ///
    /// # Errors
    /// When Tekton is not built or does not become ready; the message has the end of its logs.
    pub async fn start(cp: &ControlPlane) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let programs = install::folder()?;
        let network = Network::new().await?;
        let api_server = cp.server().rsplit(':').next().and_then(|port| port.parse().ok());
        network.let_out(api_server.context("the API server has a port")?).await?;
        let entrance = network.let_in(WEBHOOK_PORT).await?;
        let objects = cp.objects().await?;
        install::apply(&objects, &programs, entrance.address().port()).await?;
        cp.publish_service(install::NAMESPACE, install::SERVICE, entrance.address().port()).await?;
        let access = [
            cp.service_account(install::NAMESPACE, Part::Webhook.account()).await?,
            cp.service_account(install::NAMESPACE, Part::Controller.account()).await?,
        ];
        let admin = cp.admin().clone();
        let provisioner = background::runtime().spawn(volumes::provide(admin.clone()));
        let this = Self {
            webhook: Mutex::default(),
            controller: Mutex::default(),
            access,
            programs,
            logs: household::folders()?.disk.clone(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            entrance,
            network,
            provisioner,
            admin,
        };
        this.start_again(Part::Webhook).await?;
        this.start_again(Part::Controller).await?;
        this.ready().await?;
        Ok(this)
    }

    async fn objects(&self) -> Result<Objects> {
        Ok(Objects::new(self.admin.client().await?, "default"))
    }

    fn slot(&self, part: Part) -> &Mutex<Option<Child>> {
        match part {
            Part::Webhook => &self.webhook,
            Part::Controller => &self.controller,
        }
    }

    /// Starts a part that is not running; does not wait for it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start_again(&self, part: Part) -> Result<()> {
        let access = &self.access[usize::from(part == Part::Controller)];
        let mut command = Command::new(self.programs.join(part.program()));
        command.args(part.arguments()).env("KUBECONFIG", access.kubeconfig()).envs(part.environment());
        let log = self.log_file(part);
        let spawn = move || household::spawn(&format!("tekton {}", part.program()), command, &log);
        let child = self.network.run(spawn).await?;
        *self.slot(part).lock() = Some(child);
        Ok(())
    }

    /// Waits until the webhook defaults what is right and refuses what is wrong.
    ///
    /// # Errors
    /// When a process ends, or after two minutes; the message has the last answer and the end of the logs.
    pub async fn ready(&self) -> Result<()> {
        let probe = |after: &str| {
            json!({
                "apiVersion": "tekton.dev/v1", "kind": "PipelineRun",
                "metadata": { "generateName": "probe-", "namespace": "default" },
                "spec": { "pipelineSpec": { "tasks": [{
                    "name": "one", "runAfter": [after],
                    "taskSpec": { "steps": [{ "name": "run", "image": "example.com/one:1" }] },
                }, { "name": "two", "taskSpec": { "steps": [{ "name": "run", "image": "example.com/two:1" }] } }] } },
            })
        };
        let (right, wrong) = (probe("two"), probe("missing"));
        let objects = self.objects().await?;
        let deadline = Instant::now() + patience();
        loop {
            let answers = (objects.create(&right, true).await, objects.create(&wrong, true).await);
            if let (Ok(right), Ok(wrong)) = &answers
                && right.result.as_ref().is_ok_and(|stored| stored.data.pointer("/spec/timeouts/pipeline").is_some())
                && wrong.result.as_ref().is_err_and(|status| status.message.contains("missing"))
            {
                return Ok(());
            }
            for part in [Part::Webhook, Part::Controller] {
                if let Some(status) = self.slot(part).lock().as_ref().and_then(Child::ended) {
                    bail!("Tekton's {} ended: {status}\n{}", part.program(), self.tail(part));
                }
            }
            if Instant::now() > deadline {
                let shown =
                    answers.0.map(|answer| answer.result.map(|stored| stored.data).map_err(|status| status.message));
                bail!(
                    "Tekton is not ready after {:?}; last answer {shown:?}\n{}",
                    patience(),
                    self.tail(Part::Webhook)
                );
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// SIGKILL, and waits until the part is gone (SIGTERM takes it minutes).
    pub async fn kill(&self, part: Part) {
        let child = self.slot(part).lock().take();
        if let Some(child) = child {
            child.kill().await;
        }
    }

    /// Freezes a part: connections are accepted and nothing answers.
    pub fn pause(&self, part: Part) {
        self.signal(part, Signal::STOP);
    }

    /// Lets a frozen part go on.
    pub fn resume(&self, part: Part) {
        self.signal(part, Signal::CONT);
    }

    fn signal(&self, part: Part, signal: Signal) {
        if let Some(child) = self.slot(part).lock().as_ref() {
            child.signal(signal);
        }
    }

    /// Where the API server reaches the webhook.
    #[must_use]
    pub fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// Ends both processes and removes what [`Tekton::start`] installed, the definitions and their objects included.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn uninstall(self) -> Result<()> {
        install::remove(&self.objects().await?, &self.programs).await
    }

    /// Everything a part has written.
    #[must_use]
    pub fn log(&self, part: Part) -> String {
        std::fs::read(self.log_file(part)).map(|log| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
    }

    fn log_file(&self, part: Part) -> PathBuf {
        self.logs.join(format!("tekton-{}-{}.log", part.program(), self.number))
    }

    fn tail(&self, part: Part) -> String {
        let log = self.log(part);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Tekton {
    fn drop(&mut self) {
        self.provisioner.abort();
    }
}

/// Whether a PipelineRun or TaskRun has ended, and how: status and reason of its condition `Succeeded`.
#[must_use]
pub fn outcome(run: &Value) -> Option<(bool, String)> {
    let conditions = run.pointer("/status/conditions")?.as_array()?;
    let condition = conditions.iter().find(|condition| condition["type"] == "Succeeded")?;
    let reason = condition["reason"].as_str().unwrap_or_default().to_owned();
    match condition["status"].as_str()? {
        "True" => Some((true, reason)),
        "False" => Some((false, reason)),
        _ => None,
    }
}
