//! `drawbridge serve`: the operator.
//!
//! ```text
//! flags ─► files, cluster, sockets (any fault ends the start) ─► tasks ─► one select: signal, or the end of a task
//! ```
//!
//! In: flags, the settings files, a cluster. Out: a process that serves until it is told to stop. Promises: everything
//! that can fail at start fails before anything is served; no task ends unseen; the first signal drains, the second
//! aborts.

mod catalogue;
pub mod flags;
pub mod refused;
mod signed_cards;
pub mod times;
mod tool_servers;
mod versions;
mod wiring;

use std::pin::pin;

use anyhow::Context as _;

use super::Exit;
use super::io::Io;
use crate::server::memory;
use crate::server::shutdown::{self, Phase, Shutdown, Signals};
use crate::server::tasks::{End, How};
use crate::server::telemetry::log;
pub use flags::Args;
use wiring::Wiring;

/// Runs the operator until it is told to stop.
///
/// # Errors
/// When a flag, a file, the cluster or a socket cannot be used.
pub fn run(args: Args, _: &mut Io<'_>) -> anyhow::Result<Exit> {
    log::init(&args.log_level, args.log_format.into())?;
    memory::small_pages();
    // Fails only when a provider is installed already, and then it is this one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("threads for the server")?;
    let exit = threads.block_on(serve(args));
    // What still runs now has been told to end; nothing is waited for.
    threads.shutdown_background();
    log::finish();
    exit
}

async fn serve(args: Args) -> anyhow::Result<Exit> {
    let signals = Signals::listen().context("signal handlers")?;
    let shutdown = Shutdown::new();
    let delay = args.drain_delay.0;
    let wiring = Wiring::prepare(args, shutdown.clone()).await?;
    let readiness = wiring.readiness().clone();
    let mut running = wiring.start()?;
    let mut signalled = pin!(shutdown::drive(signals, shutdown.clone(), readiness, delay));
    loop {
        tokio::select! {
            () = &mut signalled => return Ok(Exit::Findings),
            Some(end) = running.endless.next_end() => {
                if shutdown.phase() == Phase::Running {
                    return Err(died(&end));
                }
            }
            end = running.finishing.next_end() => match end {
                None => {
                    tracing::info!("every request was answered: the process ends");
                    return Ok(Exit::Ok);
                }
                Some(end) if shutdown.phase() == Phase::Running || end.how != How::Finished => return Err(died(&end)),
                Some(_) => {}
            },
        }
    }
}

fn died(end: &End) -> anyhow::Error {
    let how = match &end.how {
        How::Finished => "ended by itself".to_owned(),
        How::Failed(error) => error.clone(),
        How::Panicked => "panicked".to_owned(),
    };
    tracing::error!(task = end.name, how, "a task that has to run as long as the process has ended: the process ends");
    anyhow::anyhow!("task {} {how}", end.name)
}
