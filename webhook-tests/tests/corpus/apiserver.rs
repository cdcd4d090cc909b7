//! The corpus through a real API server: `drawbridge serve --roles webhook` under its generated RBAC, registered as
//! `manifests/` says, asked by server-side dry runs of the very objects of the corpus.
//!
//! Cases that share their files (platform, gates) and the CSI driver share a process and run beside each other, each in namespaces
//! of its own; the next files are put in force when the last case of those before has ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use drawbridge::domain::keys;
use libtest_mimic::Trial;
use parking_lot::{Condvar, Mutex};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use webhook_tests::corpus::Case;
use webhook_tests::corpus::place::Place;
use webhook_tests::objects::documents;
use webhook_tests::patience::{lease, patience};
use webhook_tests::{ControlPlane, Drawbridge, Objects};

use super::verdict;

/// What cases can share.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    platform: String,
    gates: String,
    driver: Option<String>,
}

impl Group {
    fn of(case: &Case) -> Self {
        let driver = case.fixture.objects.get(&format!("CSIDriver//{}", keys::CSI_DRIVER_SPIFFE));
        Self {
            platform: case.fixture.platform.clone(),
            gates: case.fixture.gates.clone(),
            driver: driver.map(Value::to_string),
        }
    }
}

/// The installation under test; started by the first case.
pub(crate) struct World {
    runtime: Result<Runtime, String>,
    stage: Mutex<Stage>,
    /// A case has ended.
    ended: Condvar,
}

struct Stage {
    /// `None` before the first case; a start that failed is not tried again.
    installed: Option<Result<Installed, String>>,
    /// Cases that run with the files in force.
    running: usize,
}

struct Installed {
    cp: Arc<ControlPlane>,
    folder: TempDir,
    /// Publishes the bundle of certificates.
    _controllers: Drawbridge,
    webhook: Drawbridge,
    group: Group,
}

pub(crate) fn trials(world: &Arc<World>, mut cases: Vec<Case>) -> Vec<Trial> {
    cases.retain(|case| !case.expect.unreadable && case.expect.config_refused.is_none());
    cases.retain(|case| case.expect.not_on_api_server.is_none());
    cases.sort_by_cached_key(Group::of);
    cases
        .into_iter()
        .map(|case| {
            let world = Arc::clone(world);
            Trial::test(format!("apiserver::{}", case.name), move || verdict(world.run(&case)))
        })
        .collect()
}

impl World {
    pub(crate) fn shared() -> Arc<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let stage = Mutex::new(Stage { installed: None, running: 0 });
        Arc::new(Self { runtime: runtime.map_err(|error| error.to_string()), stage, ended: Condvar::new() })
    }

    fn run(&self, case: &Case) -> Result<Vec<String>> {
        let runtime = self.runtime.as_ref().map_err(|error| anyhow!("{error}"))?;
        let cp = self.enter(runtime, Group::of(case))?;
        let result = runtime.block_on(judged(&cp, case));
        self.stage.lock().running -= 1;
        self.ended.notify_all();
        result
    }

    /// Puts the files of `group` in force, once nobody needs those in force any more, and counts the caller as running.
    fn enter(&self, runtime: &Runtime, group: Group) -> Result<Arc<ControlPlane>> {
        let mut stage = self.stage.lock();
        let in_force = |stage: &Stage| matches!(&stage.installed, Some(Ok(installed)) if installed.group == group);
        while stage.running > 0 && !in_force(&stage) {
            self.ended.wait(&mut stage);
        }
        if stage.installed.is_none() {
            let installed = runtime.block_on(Installed::start(group.clone()));
            stage.installed = Some(installed.map_err(|error| format!("{error:#}")));
        }
        let cp = match stage.installed.as_mut() {
            Some(Ok(installed)) => {
                runtime.block_on(installed.enter(group))?;
                Arc::clone(&installed.cp)
            }
            Some(Err(error)) => bail!("{error}"),
            None => bail!("nothing was started"),
        };
        stage.running += 1;
        Ok(cp)
    }
}

async fn judged(cp: &ControlPlane, case: &Case) -> Result<Vec<String>> {
    let place = Place::prepare(cp, case).await?;
    // The webhook learns of the objects by watches of its own; nothing but its decision tells that it has.
    let deadline = Instant::now() + patience();
    loop {
        let wrong = place.ask().await?;
        if wrong.is_empty() || Instant::now() > deadline {
            return Ok(wrong);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

impl Installed {
    async fn start(group: Group) -> Result<Self> {
        let cp = Arc::new(ControlPlane::start(webhook_tests::Options::default()).await?);
        let objects = cp.objects().await?;
        for file in [
            "crds/agentruntimes.agent.kagenti.dev.yaml",
            "deploy/namespace.yaml",
            "rbac/webhook.yaml",
            "rbac/controllers.yaml",
        ] {
            objects.apply(&manifest(file)?).await?;
        }
        let folder = tempfile::tempdir()?;
        group.lay_out(folder.path(), &objects).await?;
        let webhook = serve(&cp, folder.path(), "webhook").await?;
        cp.publish_service(keys::OPERATOR_NAMESPACE, keys::SERVICE_WEBHOOK, webhook.webhook().port()).await?;
        for mut document in documents(&manifest("webhooks/fail.yaml")?)? {
            for entry in document.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                entry["clientConfig"]["service"]["port"] = webhook.webhook().port().into();
            }
            objects.apply(&document.to_string()).await?;
        }
        let controllers = serve(&cp, folder.path(), "controllers").await?;
        controllers.ready().await?;
        webhook.ready().await?;
        Ok(Self { cp, folder, _controllers: controllers, webhook, group })
    }

    /// Starts the webhook anew with other files, unless they are in force.
    async fn enter(&mut self, group: Group) -> Result<()> {
        if self.group == group {
            return Ok(());
        }
        self.webhook.stop(patience()).await?;
        group.lay_out(self.folder.path(), &self.cp.objects().await?).await?;
        self.webhook.start_again()?;
        self.webhook.ready().await?;
        self.group = group;
        Ok(())
    }
}

impl Group {
    async fn lay_out(&self, folder: &Path, objects: &Objects) -> Result<()> {
        std::fs::write(folder.join("config.yaml"), &self.platform)?;
        std::fs::write(folder.join("feature-gates.yaml"), &self.gates)?;
        let drivers: kube::Api<k8s_openapi::api::storage::v1::CSIDriver> = kube::Api::all(objects.client());
        match &self.driver {
            Some(driver) => {
                objects.apply(driver).await?;
            }
            None => {
                if drivers.get_opt(keys::CSI_DRIVER_SPIFFE).await?.is_some() {
                    drivers.delete(keys::CSI_DRIVER_SPIFFE, &kube::api::DeleteParams::default()).await?;
                }
            }
        }
        Ok(())
    }
}

async fn serve(cp: &ControlPlane, folder: &Path, role: &str) -> Result<Drawbridge> {
    let access = cp.service_account(keys::OPERATOR_NAMESPACE, &format!("drawbridge-{role}")).await?;
    let file = |name: &str| folder.join(name).display().to_string();
    Drawbridge::launch(&access, &[("POD_NAMESPACE", keys::OPERATOR_NAMESPACE)], |ports| {
        [
            "serve".to_owned(),
            format!("--roles={role}"),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            format!("--metrics-bind-address={}", ports.metrics.address()),
            format!("--config-path={}", file("config.yaml")),
            format!("--feature-gates-path={}", file("feature-gates.yaml")),
            "--drain-delay=0s".to_owned(),
            format!("--lease-duration={}s", lease().as_secs()),
        ]
        .into()
    })
}

fn manifest(file: &str) -> Result<String> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "manifests", file].iter().collect();
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}
