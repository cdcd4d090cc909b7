//! What completing and judging an AgentBuild costs, beside echoes of the same two bodies, and what composing its run does,
//! which the controller does at every look.

use std::hint::black_box;

use anyhow::{Context as _, Result, ensure};
use drawbridge::config::builds::Builds;
use drawbridge::domain::keys;
use serde_json::Value;

use super::Size;
use super::reviews::{Lane, contains, rounds};
use super::world::World;
use crate::cpu;
use crate::load::Target;
use crate::peers::{self, Peers};
use crate::table::{Row, median};
use drawbridge_counts::fixture::{self, Review};

/// The two reviews of one AgentBuild that is created, and what it is then.
struct Pair {
    complete: Review,
    judge: Review,
    stored: Value,
}

/// Microseconds of CPU.
struct Measured {
    /// Both reviews.
    ours: f64,
    /// Echoes of both.
    echo: f64,
    /// From the object to the PipelineRun.
    composed: f64,
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
        let (complete, judge) = (Review::of_agent_build(&written), Review::of_agent_build(&stored));
        Ok(Self { complete, judge, stored })
    }
}

/// Microseconds of CPU to compose the run of an AgentBuild, in one round.
fn composing(stored: &Value, builds: &Builds, times: usize) -> Result<f64> {
    let before = cpu::of_this_thread()?;
    for _ in 0..times {
        drop(black_box(fixture::composition(stored, builds)?));
    }
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    Ok((cpu::of_this_thread()? - before).as_secs_f64() * 1e6 / times as f64)
}

/// So many runs of each front end.
const BESIDE: usize = 100;

/// CPU of composing the runs of BeeAI's AgentBuilds, beside the same number of existing ones of as many tasks.
fn beeai(world: &World, existing: &Value, size: Size) -> Result<Row> {
    let (builds, beeai) = (fixture::builds(), fixture::beeai_build(world.namespace.name()));
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..size.rounds {
        theirs.push(composing(existing, &builds, BESIDE)?);
        let before = cpu::of_this_thread()?;
        for _ in 0..BESIDE {
            drop(black_box(fixture::beeai_composition(&beeai, &builds)?));
        }
        #[expect(clippy::cast_precision_loss, reason = "a hundred")]
        ours.push((cpu::of_this_thread()? - before).as_secs_f64() * 1e6 / BESIDE as f64);
    }
    let (theirs, ours) = (median(theirs), median(ours));
    let what = format!("CPU of composing {BESIDE} AgentBuilds of BeeAI ÷ as many existing ones of as many tasks");
    Ok(Row::at_most(what, (1.1, 1.0), ours / theirs, "").noted(format!("{ours:.1} ÷ {theirs:.1} µs for a run")))
}

/// CPU of both reviews, of echoes of both, and of composing.
fn measured(world: &World, peers: &Peers, mut pair: Pair, size: Size) -> Result<Measured> {
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
    let builds = fixture::builds();
    let mut composed = Vec::new();
    for _ in 0..size.rounds {
        rounds(&mut lanes, Size { rounds: 1, ..size })?;
        composed.push(composing(&pair.stored, &builds, size.requests)?);
    }
    let [first, complete, second, judge] = lanes.map(|lane| lane.cpu());
    Ok(Measured { ours: complete + judge, echo: first + second, composed: median(composed) })
}

pub(super) async fn rows(world: &World, peers: &Peers, size: Size) -> Result<Vec<Row>> {
    let (few, many) = (Pair::of(world, 5).await?, Pair::of(world, 32).await?);
    // Pull, check, build, push.
    let four = Pair::of(world, 4).await?.stored;
    let beeai = tokio::task::block_in_place(|| beeai(world, &four, size))?;
    let (few, many) = tokio::task::block_in_place(|| {
        anyhow::Ok((measured(world, peers, few, size)?, measured(world, peers, many, size)?))
    })?;
    let ratio = |measured: &Measured| measured.ours / measured.echo;
    let reviews = Row::at_most(
        "CPU of completing and judging an AgentBuild (5 steps) ÷ echoes of both reviews",
        (3.0, 2.2),
        ratio(&few),
        "",
    );
    let composing = Row::at_most(
        "CPU of composing the PipelineRun of an AgentBuild (5 steps) ÷ echoes of both reviews",
        (3.0, 1.5),
        few.composed / few.echo,
        "",
    );
    Ok(vec![
        reviews.noted(format!(
            "{:.1} ÷ {:.1} µs for both reviews; with 32 steps {:.1} ÷ {:.1} µs, which is {:.2}",
            few.ours,
            few.echo,
            many.ours,
            many.echo,
            ratio(&many)
        )),
        composing.noted(format!("{:.1} µs; with 32 steps {:.1} µs", few.composed, many.composed)),
        beeai,
    ])
}
