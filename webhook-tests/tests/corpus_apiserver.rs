//! The corpus through a real API server: `drawbridge serve --roles webhook` under its generated RBAC, registered as
//! `manifests/` says, asked by server-side dry runs of the very objects of the corpus.
//!
//! Cases that share their files (platform, gates) and the CSI driver share a process; they run one after the other, in
//! that order.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use drawbridge::domain::keys;
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use webhook_tests::corpus::place::Place;
use webhook_tests::corpus::{Case, load};
use webhook_tests::objects::documents;
use webhook_tests::{ControlPlane, Drawbridge, Objects};

/// How long a change of the cluster may take until decisions follow it.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to end.
const FAREWELL: Duration = Duration::from_secs(20);

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
struct World {
    runtime: Runtime,
    /// `None` before the first case; a start that failed is not tried again.
    installed: Mutex<Option<Result<Installed, String>>>,
}

struct Installed {
    cp: ControlPlane,
    folder: TempDir,
    /// Publishes the bundle of certificates.
    _controllers: Drawbridge,
    webhook: Drawbridge,
    group: Group,
}

fn main() -> Result<()> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let world = Arc::new(World { runtime, installed: Mutex::new(None) });
    let trials = match load() {
        Ok(mut cases) => {
            cases.retain(|case| !case.expect.unreadable && case.expect.config_refused.is_none());
            cases.retain(|case| case.expect.not_on_api_server.is_none());
            cases.sort_by_cached_key(Group::of);
            cases.into_iter().map(|case| trial(&world, case)).collect()
        }
        Err(error) => {
            let failed = Failed::from(format!("{error:#}"));
            vec![Trial::test("the corpus can be read", move || Err(failed))]
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: processes and folders go first.
    drop(world.installed.lock().take());
    conclusion.exit()
}

fn trial(world: &Arc<World>, case: Case) -> Trial {
    let world = Arc::clone(world);
    Trial::test(case.name.clone(), move || {
        let mut installed = world.installed.lock();
        match world.runtime.block_on(run(&mut installed, &case)) {
            Ok(wrong) if wrong.is_empty() => Ok(()),
            Ok(wrong) => Err(format!("\n  {}", wrong.join("\n  ")).into()),
            Err(error) => Err(format!("{error:#}").into()),
        }
    })
}

async fn run(installed: &mut Option<Result<Installed, String>>, case: &Case) -> Result<Vec<String>> {
    let group = Group::of(case);
    if installed.is_none() {
        *installed = Some(Installed::start(group.clone()).await.map_err(|error| format!("{error:#}")));
    }
    let installed = match installed.as_mut() {
        Some(Ok(installed)) => installed,
        Some(Err(error)) => bail!("{error}"),
        None => bail!("nothing was started"),
    };
    installed.enter(group).await?;
    let place = Place::prepare(&installed.cp, case).await?;
    // The webhook learns of the objects by watches of its own; nothing but its decision tells that it has.
    let deadline = Instant::now() + PATIENCE;
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
        let cp = ControlPlane::start(webhook_tests::Options::default()).await?;
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
        self.webhook.stop(FAREWELL).await?;
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
        ]
        .into()
    })
}

fn manifest(file: &str) -> Result<String> {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "manifests", file].iter().collect();
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}
