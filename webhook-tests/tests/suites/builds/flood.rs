//! G8, measured: what a tenant that floods its namespace takes away from the others. The builds of the flood name Secrets that
//! are not there, so that each of them is worked on, held back, and asked about again and again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher;
use webhook_tests::{ControlPlane, Options, TestNamespace, wait_until};

use super::stage::{USER, build, builds, define, install, launch, runs, tekton};

/// Builds of the tenant that floods.
const FLOOD: usize = 1000;
/// Requests of that tenant on their way at once.
const AT_ONCE: usize = 32;
/// Builds of another tenant that are timed, one after the other.
const TIMED: usize = 30;
/// What two processes on a busy machine may differ by.
const NOISE: Duration = Duration::from_millis(100);

/// From the creation of a build to that of its run; the slowest but one of those that are timed.
async fn slowest(ns: &TestNamespace) -> Result<Duration> {
    let mut made = Box::pin(watcher(runs(ns), watcher::Config::default()).default_backoff().applied_objects());
    let mut took = Vec::with_capacity(TIMED);
    for number in 0..TIMED {
        let (name, mut object) = (format!("timed-{number}"), build());
        object["metadata"]["name"] = name.as_str().into();
        let began = Instant::now();
        ns.accepts(&object).await?;
        while let Some(run) = made.try_next().await? {
            if run.metadata.owner_references.iter().flatten().any(|owner| owner.name == name) {
                break;
            }
        }
        took.push(began.elapsed());
    }
    took.sort();
    Ok(took[TIMED - 2])
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement, of a minute on a quiet machine: make flood"]
async fn case_g8_a_flood_in_one_namespace_holds_no_other_up() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp).await?;
    for crd in tekton() {
        define(&cp.objects().await?, &crd).await?;
    }
    let controllers = launch(&access, &[])?;
    controllers.ready().await?;
    let (quiet, flooded) = (cp.namespace("quiet").await?, cp.namespace("beside").await?);
    // What is done once is not timed.
    slowest(&quiet).await?;
    let alone = slowest(&cp.namespace("alone").await?).await?;

    let flood = cp.namespace("flood").await?;
    let make = |number: usize| {
        let (flood, mut object) = (&flood, build());
        object["metadata"]["name"] = format!("flood-{number}").into();
        object["spec"]["source"]["sourceCredentials"] = serde_json::json!({"name": format!("absent-{number}")});
        async move { flood.accepts(&object).await.map(drop) }
    };
    futures::stream::iter(0..FLOOD).map(make).buffer_unordered(AT_ONCE).try_for_each(async |()| Ok(())).await?;
    let during = slowest(&flooded).await?;
    ensure!(
        during <= alone * 2 + NOISE,
        "a build beside {FLOOD} that arrived waits {during:?} for its run, and {alone:?} without"
    );
    // Once each has been looked at, they are asked about again and again.
    let held = |status: &serde_json::Value| status["phase"] == "Failed";
    let all =
        |seen: &BTreeMap<String, DynamicObject>| seen.values().filter(|one| held(&one.data["status"])).count() == FLOOD;
    wait_until(&builds(&flood), watcher::Config::default(), all).await?;
    let mark = cp.audit().mark()?;
    let since = Instant::now();
    let beside = slowest(&cp.namespace("later").await?).await?;
    println!(
        "a build waits {alone:?} for its run, {during:?} while {FLOOD} others come, {beside:?} while they are held"
    );
    ensure!(
        beside <= alone * 2 + NOISE,
        "a build beside {FLOOD} that are held waits {beside:?} for its run, and {alone:?} without"
    );
    // And their Secrets are asked for no more often than twenty times a second.
    let asked = cp.audit().settled(mark).await?.by(USER).in_namespace(flood.name());
    let secrets = asked.resource("secrets").len();
    let most = 20 * usize::try_from(since.elapsed().as_secs() + 5)?;
    ensure!(secrets <= most, "{secrets} questions for Secrets, where {most} are enough");
    Ok(())
}
