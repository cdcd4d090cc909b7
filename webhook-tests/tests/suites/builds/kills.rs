//! `SIGKILL` before and after a write of each kind of a build's life; in `make test-long`, of every write.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim};
use kube::api::ListParams;
use webhook_tests::{ControlPlane, Options, TestNamespace, trial, wait_gone};

use super::proxy::{End, Proxy, Side, kind};
use super::stage::{active_run, begin, build, define, digest, install, launch, release, runs, status, succeed, tekton};

/// From the creation of the AgentBuild to the end of its clean-up.
async fn life(ns: &TestNamespace) -> Result<()> {
    ns.accepts(&build()).await?;
    let run = active_run(ns).await?;
    begin(ns, &run).await?;
    status(ns, |status| status["message"] == "Tasks Completed: 0").await?;
    succeed(ns, &run).await?;
    status(ns, |status| status["message"] == "Build complete, cleanup done").await?;
    wait_gone(&ns.api::<PersistentVolumeClaim>(), "weather-build-workspace").await
}

/// What must hold at the end, whatever happened.
async fn is_whole(ns: &TestNamespace, made: usize) -> Result<()> {
    let status = status(ns, |_| true).await?;
    ensure!(status["phase"] == "Succeeded" && status["attempts"] == 1, "{status:#}");
    ensure!(status["builtImage"] == format!("registry.example.com/weather@{}", digest()), "{status:#}");
    ensure!(made == 1, "{made} runs were made");
    let all = runs(ns).list(&ListParams::default()).await?;
    ensure!(all.items.len() == 1, "{} runs", all.items.len());
    let events = ns.api::<Event>().list(&ListParams::default()).await?;
    for reason in ["BuildStarted", "BuildSucceeded", "CleanupCompleted"] {
        let told: Vec<_> = events.items.iter().filter(|event| event.reason.as_deref() == Some(reason)).collect();
        ensure!(told.len() == 1 && told[0].count == Some(1), "{reason}: {told:#?}");
    }
    Ok(())
}

/// Processes that are killed at every step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_around_any_write_a_build_has_one_run_per_attempt_and_the_right_status() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let access = install(&cp).await?;
    let objects = cp.objects().await?;
    for crd in tekton() {
        define(&objects, &crd).await?;
    }
    let proxy = Proxy::start(&access).await?;
    let controllers = launch(&access, &[("KUBECONFIG", &proxy.kubeconfig())])?;
    controllers.ready().await?;

    let ns = cp.namespace("undisturbed").await?;
    proxy.watch(ns.name(), None);
    life(&ns).await.context("undisturbed")?;
    let (writes, made) = proxy.seen();
    is_whole(&ns, made).await?;
    ensure!(writes.len() >= 8, "{writes:#?}");

    let mut kinds: Vec<_> = writes.iter().filter_map(|write| write.split_once(' ')).map(|(m, p)| kind(m, p)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    ensure!(kinds.len() >= 4, "{kinds:?}");
    let numbers = 1..=trial::size(0, writes.len());
    let ends: Vec<_> = kinds.iter().cloned().map(End::First).chain(numbers.map(End::Number)).collect();
    let mut killed = 0;
    for side in [Side::Before, Side::After] {
        for end in &ends {
            let ns = cp.namespace("killed").await?;
            proxy.watch(ns.name(), Some((end.clone(), side)));
            let mut living = std::pin::pin!(life(&ns));
            let lived = tokio::select! {
                lived = &mut living => lived,
                () = proxy.tripped() => {
                    // Statuses that follow each other closely may become one: the last numbers are not always reached.
                    killed += usize::from(matches!(end, End::First(_)));
                    controllers.kill().await;
                    release(&cp).await?;
                    controllers.start_again()?;
                    living.await
                }
            };
            let (seen, made) = proxy.seen();
            let context = || format!("killed {side:?} write {end:?} of {seen:#?}");
            lived.with_context(context)?;
            is_whole(&ns, made).await.with_context(context)?;
        }
    }
    ensure!(killed == 2 * kinds.len(), "{killed} kills around writes of {kinds:?}");
    Ok(())
}
