//! Resident memory: of an idle process on an empty cluster, and of one that knows many agents and Pods.
//!
//! Measured is a process with both roles, which holds everything that either role holds.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use drawbridge::domain::keys;
use futures::{StreamExt as _, TryStreamExt as _};
use webhook_tests::{Drawbridge, Objects};

use super::Size;
use super::world::{World, deployment};
use crate::cpu;
use crate::table::Row;
use drawbridge_counts::fixture;

/// Requests under way at once while the cluster is filled.
const AT_ONCE: usize = 16;
/// Agents in one namespace.
const PER_NAMESPACE: usize = 50;

/// A process with both roles, ready.
async fn both_roles(world: &World) -> Result<Drawbridge> {
    let file = |name: &str| world.installation.settings().join(name).display().to_string();
    let process = Drawbridge::launch(world.cp.admin(), &[("POD_NAMESPACE", keys::OPERATOR_NAMESPACE)], |ports| {
        vec![
            "serve".to_owned(),
            format!("--webhook-bind-address={}", ports.webhook.address()),
            format!("--health-probe-bind-address={}", ports.health.address()),
            format!("--metrics-bind-address={}", ports.metrics.address()),
            format!("--config-path={}", file("config.yaml")),
            format!("--feature-gates-path={}", file("feature-gates.yaml")),
        ]
    })?;
    process.ready().await?;
    Ok(process)
}

/// MiB of a process, and how many of them are pages of files.
#[expect(clippy::cast_precision_loss, reason = "megabytes")]
pub(super) fn mib(process: &Drawbridge) -> Result<(f64, f64)> {
    let resident = cpu::resident(process.pid().context("the process has ended")?)?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok((mib(resident.total), mib(resident.files)))
}

pub(super) async fn empty(world: &World) -> Result<Vec<Row>> {
    let process = both_roles(world).await?;
    let (total, files) = mib(&process)?;
    let note = format!("both roles in one process; {files:.0} MiB of it code");
    Ok(vec![Row::at_most("RSS, empty cluster", (32.0, 18.0), total, " MiB").noted(note)])
}

/// Fills the cluster, then starts a process on it.
pub(super) async fn full(world: &World, size: Size) -> Result<Row> {
    let objects = world.cp.objects().await?;
    let began = Instant::now();
    let mut namespaces = Vec::new();
    for _ in 0..size.agents.div_ceil(PER_NAMESPACE) {
        namespaces.push(world.cp.namespace("full").await?);
    }
    let names: Vec<&str> = namespaces.iter().map(|namespace| namespace.name()).collect();
    let agent = |index: usize| (names[index / PER_NAMESPACE], format!("agent-{}", index % PER_NAMESPACE));
    let objects = &objects;
    futures::stream::iter(0..size.agents)
        .map(|index| async move {
            let (namespace, name) = agent(index);
            objects.accepts(&deployment(namespace, &name)).await.map(drop)
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    let pods = pods(objects, size, agent).await?;
    let took = began.elapsed().as_secs();
    let process = both_roles(world).await?;
    let (total, files) = mib(&process)?;
    Ok(Row::at_most("RSS, 1,000 agents + 10,000 Pods", (64.0, 32.0), total, " MiB").noted(format!(
        "{} agents (Deployments, {} namespaces), {pods} injected Pods, made in {took} s; {files:.0} MiB of it code",
        size.agents,
        namespaces.len()
    )))
}

/// Pods of agents, as many as are asked for and there is time for; `agent` tells namespace and name of one.
pub(super) async fn pods<'a>(
    objects: &Objects,
    size: Size,
    agent: impl Fn(usize) -> (&'a str, String),
) -> Result<usize> {
    let deadline = Instant::now() + Duration::from_secs(size.patience);
    let created: Vec<bool> = futures::stream::iter(0..size.pods)
        .map(|index| {
            let (namespace, name) = agent(index % size.agents);
            async move {
                if Instant::now() > deadline {
                    return Ok(false);
                }
                let mut pod = fixture::manifest(namespace, 2048);
                pod["metadata"]["generateName"] = format!("{name}-7d4f8b9c5-").into();
                pod["metadata"]["labels"]["app.kubernetes.io/name"] = name.into();
                // A bare Pod: what is known of it is the same, and it needs no ReplicaSet.
                let answer = objects.create(&pod, false).await?;
                answer.result.map(|_| true).map_err(|status| anyhow!("a Pod is refused: {}", status.message))
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await?;
    Ok(created.iter().filter(|created| **created).count())
}
