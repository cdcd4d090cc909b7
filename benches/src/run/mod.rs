//! `make bench`: every row, in one run, with progress on standard error and the table on standard output.
//!
//! Everything that is compared is measured in turns: a round asks each process once, and the medians of the rounds are
//! divided, so that a slow moment of the machine hits all alike.

mod builds;
mod cards;
mod controllers;
mod create;
mod keeper;
mod memory;
mod reviews;
mod stamp;
mod start;
mod world;

use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;

use crate::peers::Peers;
use crate::table::{self, Row};
use world::World;

/// Which rows are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Every row.
    All,
    /// Reviews, Pods, memory and starts of the webhook.
    Webhook,
    /// Enrolments: writes and times.
    Enrolment,
    /// Enrolled workloads that stay: memory, CPU, restarts.
    Rest,
    /// All of that of KAOS' kinds.
    Kaos,
    /// The same of BeeAI's.
    Beeai,
    /// Verdicts on signed agent cards; needs no cluster.
    Cards,
    /// How long a change waits for the keeper while everything is planned anew; needs no cluster, and is measured only when it is asked for:
    /// every number is shown, and none is too large.
    Keeper,
}

/// How much is done.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Rounds of everything that is compared.
    pub rounds: usize,
    /// Requests of one process in a round.
    pub requests: usize,
    /// Pods created in a round, with and without the webhook each.
    pub creations: usize,
    /// Agents of the full cluster.
    pub agents: usize,
    /// Pods of the full cluster.
    pub pods: usize,
    /// Seconds after which no further Pod is created.
    pub patience: u64,
}

/// Runs everything; true when every must is met.
///
/// # Errors
/// When something cannot be measured.
pub async fn run(part: Part, size: Size) -> Result<bool> {
    let began = Instant::now();
    let mut rows = Vec::new();
    let measured = parts(part, size, began, &mut rows).await;
    step(began, if measured.is_ok() { "done" } else { "ended early: these rows were measured" });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", table::markdown(&rows))?;
    let missed: Vec<&Row> = rows.iter().filter(|row| !row.ok()).collect();
    for row in &missed {
        writeln!(out, "missed: {}", row.what)?;
    }
    measured?;
    Ok(missed.is_empty())
}

async fn parts(part: Part, size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    let measured = |one| part == Part::All || part == one;
    if measured(Part::Webhook) {
        webhook(size, began, rows).await?;
    }
    if measured(Part::Enrolment) {
        controllers::enrolment(size, began, rows).await?;
    }
    if measured(Part::Rest) {
        controllers::rest(size, began, rows).await?;
    }
    if measured(Part::Kaos) {
        controllers::kaos(size, began, rows).await?;
    }
    if measured(Part::Beeai) {
        controllers::beeai(size, began, rows).await?;
    }
    if measured(Part::Cards) {
        step(began, "signed agent cards");
        rows.push(cards::row(size)?);
    }
    if part == Part::Keeper {
        step(began, &format!("changes while {} agents are planned anew", size.agents));
        rows.push(keeper::row(size).await?);
    }
    Ok(())
}

async fn webhook(size: Size, began: Instant, rows: &mut Vec<Row>) -> Result<()> {
    step(began, "control plane and installation");
    let world = World::start().await?;
    rows.extend(memory::empty(&world).await?);
    step(began, "the peers: echo, Go injector");
    let peers = Peers::new()?;
    step(began, &format!("reviews: {} rounds", size.rounds));
    rows.splice(0..0, reviews::rows(&world, &peers, size).await?);
    step(began, "AgentBuilds");
    rows.extend(builds::rows(&world, &peers, size).await?);
    step(began, "10,000 agents known, and none");
    rows.push(reviews::known(&peers, size)?);
    step(began, &format!("Pods created: {} rounds, webhook on, off, and one that only answers", size.rounds));
    rows.extend(create::rows(&world, size).await?);
    step(began, "exec to first answer");
    rows.push(start::row(&world, size).await?);
    step(began, &format!("{} agents and {} Pods", size.agents, size.pods));
    rows.push(memory::full(&world, size).await?);
    Ok(())
}

/// Says what comes next, and how long everything took so far.
fn step(began: Instant, text: &str) {
    // Nobody listens when standard error is closed.
    let _ = writeln!(std::io::stderr(), "bench: {:4} s  {text}", began.elapsed().as_secs());
}
