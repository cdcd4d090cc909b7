//! AgentBuilds of BeeAI beside the same number of existing ones, of as many tasks: from the first that is created until each has its PipelineRun.
//!
//! Both are made by the same controllers, in turns, in namespaces of their own, and waited for in the same way. Tekton is its two definitions and
//! nobody behind them: what is measured ends where it would begin.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use drawbridge_counts::fixture;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use webhook_tests::TestNamespace;

use super::beeai::tekton;
use super::{PATIENCE, ROUNDS, Stage, real};
use crate::table::{Row, median};

/// Objects that are made at once.
const HANDS: usize = 16;
/// Pull, check, build, push.
const TASKS: usize = 4;

/// Whose builds.
#[derive(Clone, Copy)]
enum Front {
    Existing,
    Beeai,
}

impl Front {
    fn api_version(self) -> (&'static str, &'static str) {
        match self {
            Front::Existing => (keys::GROUP_AGENT, "v1alpha1"),
            Front::Beeai => (keys::GROUP_BEEAI, "v1"),
        }
    }

    fn build(self, namespace: &str, name: &str) -> Value {
        let mut build = match self {
            Front::Existing => fixture::agent_build(namespace, TASKS),
            Front::Beeai => fixture::beeai_build(namespace),
        };
        build["metadata"] = serde_json::json!({"name": name});
        build
    }
}

fn objects(ns: &TestNamespace, (group, version): (&str, &str), kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(ns.client(), ns.name(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}

fn runs(ns: &TestNamespace) -> Api<DynamicObject> {
    objects(ns, ("tekton.dev", "v1"), "PipelineRun")
}

/// Waits until so many builds have their run; each of as many tasks.
async fn there(ns: &TestNamespace, count: usize) -> Result<()> {
    let watching = async {
        let mut seen = BTreeSet::new();
        let mut events =
            std::pin::pin!(watcher(runs(ns), watcher::Config::default()).default_backoff().applied_objects());
        while let Some(event) = events.next().await {
            let Ok(run) = event else { continue };
            let tasks = run.data["spec"]["pipelineSpec"]["tasks"].as_array().map_or(0, Vec::len);
            ensure!(tasks == TASKS, "{} has {tasks} tasks", run.name_any());
            seen.extend(run.owner_references().first().map(|owner| owner.uid.clone()));
            if seen.len() >= count {
                break;
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(PATIENCE, watching).await.with_context(|| format!("not {count} runs are ever there"))?
}

/// One round.
async fn round(stage: &Stage, front: Front, count: usize) -> Result<Duration> {
    let ns = stage.cp.namespace(if matches!(front, Front::Beeai) { "runs-beeai" } else { "runs-existing" }).await?;
    let making = async {
        let made = futures::stream::iter(0..count).map(|index| {
            let build = front.build(ns.name(), &format!("build-{index:04}"));
            let ns = &ns;
            async move { ns.accepts(&build).await.map(drop) }
        });
        made.buffer_unordered(HANDS).try_collect::<()>().await
    };
    let began = Instant::now();
    let (made, there) = tokio::join!(making, there(&ns, count));
    made.and(there)?;
    let took = began.elapsed();
    // The next round has the API server to itself.
    let builds = objects(&ns, front.api_version(), "AgentBuild");
    builds.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let deadline = Instant::now() + PATIENCE;
    while !builds.list(&ListParams::default().limit(1)).await?.items.is_empty() {
        ensure!(Instant::now() < deadline, "the builds do not go");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    runs(&ns).delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    Ok(took)
}

/// Time per run of `count` builds of each.
pub(super) async fn row(stage: &Stage, count: usize) -> Result<Row> {
    let objects = stage.cp.objects().await?;
    for kind in ["PipelineRun", "TaskRun"] {
        objects.apply(&tekton(kind).to_string()).await?;
    }
    stage.resume().await?;
    // Both have begun to be served, and policies to find what they compare with.
    for front in [Front::Existing, Front::Beeai] {
        round(stage, front, 1).await?;
    }
    let (mut ratios, mut note) = (Vec::new(), String::new());
    for _ in 0..ROUNDS {
        let theirs = round(stage, Front::Existing, count).await?;
        let ours = round(stage, Front::Beeai, count).await?;
        ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
        let each = |took: Duration| took.as_secs_f64() * 1e3 / real(count);
        note = format!("last of {ROUNDS} rounds: {:.1} ÷ {:.1} ms for a run", each(ours), each(theirs));
    }
    let what =
        format!("{count} AgentBuilds of BeeAI, each with its PipelineRun ÷ as many existing ones of as many tasks");
    Ok(Row::at_most(what, (1.1, 1.0), median(ratios), "").noted(note))
}
