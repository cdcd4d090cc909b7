//! What completing and judging an AgentBuild costs, beside echoes of the same two bodies.

use anyhow::{Context as _, Result, ensure};
use drawbridge::domain::keys;
use serde_json::Value;

use super::Size;
use super::reviews::{Lane, contains, rounds};
use super::world::World;
use crate::fixture::{self, Review};
use crate::load::Target;
use crate::peers::{self, Peers};
use crate::table::Row;

/// The two reviews of one AgentBuild that is created.
struct Pair {
    complete: Review,
    judge: Review,
}

impl Pair {
    /// Of an AgentBuild with that many steps; what the second review is about is what the API server makes of the first.
    async fn of(world: &World, steps: usize) -> Result<Self> {
        let written = fixture::agent_build(world.namespace.name(), steps);
        let stored = world.namespace.create(&written, true).await?.result;
        let stored = stored.map_err(|status| anyhow::anyhow!("{steps} steps: {}", status.message))?;
        let stored: Value = serde_json::to_value(stored)?;
        let count = stored["spec"]["pipeline"]["steps"].as_array().map_or(0, Vec::len);
        ensure!(count == steps, "the AgentBuild has {count} steps");
        Ok(Self { complete: Review::of_agent_build(&written), judge: Review::of_agent_build(&stored) })
    }
}

/// CPU of both reviews, and of echoes of both.
fn measured(world: &World, peers: &Peers, mut pair: Pair, size: Size) -> Result<(f64, f64)> {
    let process = world.webhook()?;
    let id = process.pid().context("the webhook has ended")?;
    let to = |path: &str| Target { path: format!("{path}?timeout=10s"), ..world.target(process) };
    let (complete, judge) = (to(keys::PATH_COMPLETE_BUILD), to(keys::PATH_AGENT_BUILD));
    let completed = peers::answer(&complete, pair.complete.numbered(1))?;
    ensure!(contains(&completed, "\"JSONPatch\""), "{}", String::from_utf8_lossy(&completed));
    let judged = peers::answer(&judge, pair.judge.numbered(1))?;
    ensure!(contains(&judged, "\"allowed\":true"), "{}", String::from_utf8_lossy(&judged));
    let (first, second) = (peers.echo(completed.len())?, peers.echo(judged.len())?);
    let mut lanes = [
        Lane::new(&first.target, first.id, &pair.complete, 1),
        Lane::new(&complete, id, &pair.complete, 1),
        Lane::new(&second.target, second.id, &pair.judge, 1),
        Lane::new(&judge, id, &pair.judge, 1),
    ];
    rounds(&mut lanes, size)?;
    let [first, complete, second, judge] = lanes.map(|lane| lane.cpu());
    Ok((complete + judge, first + second))
}

pub(super) async fn row(world: &World, peers: &Peers, size: Size) -> Result<Row> {
    let (few, many) = (Pair::of(world, 5).await?, Pair::of(world, 32).await?);
    let (few, many) = tokio::task::block_in_place(|| {
        anyhow::Ok((measured(world, peers, few, size)?, measured(world, peers, many, size)?))
    })?;
    Ok(Row::at_most(
        "CPU of completing and judging an AgentBuild (5 steps) ÷ echoes of both reviews",
        (3.0, 2.2),
        few.0 / few.1,
        "",
    )
    .noted(format!(
        "{:.1} ÷ {:.1} µs for both reviews; with 32 steps {:.1} ÷ {:.1} µs, which is {:.2}",
        few.0,
        few.1,
        many.0,
        many.1,
        many.0 / many.1
    )))
}
