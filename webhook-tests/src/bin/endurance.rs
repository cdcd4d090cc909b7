//! `make chaos`, `make soak` and `make test-quiet`: the long forms of what `make test` tries for a short while.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use drawbridge::cli::render::FailureMode;
use webhook_tests::endurance::chaos::Chaos;
use webhook_tests::endurance::quiet::{Length, Quiet};
use webhook_tests::endurance::soak;
use webhook_tests::endurance::tenants::Tenants;

/// Trials that take as long as one likes, on a control plane of their own.
#[derive(Parser)]
enum Trial {
    /// Kills one of two instances every 20 s while certificates rotate, under 50 Pods a second.
    Chaos {
        /// How long, per failure mode.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// One failure mode only; without it `fail` and `gate`, one after the other.
        #[arg(long)]
        failure_mode: Option<FailureMode>,
    },
    /// Watches memory, open files and tasks under everyday work.
    Soak {
        /// How long.
        #[arg(long, default_value_t = 1440)]
        minutes: u64,
    },
    /// Leaves an installed system alone, twice, and times what it does about what happens after.
    Quiet {
        /// How long, each time.
        #[arg(long, default_value_t = 10)]
        minutes: u64,
    },
    /// Times creations while other namespaces edit as many and as large ConfigMaps as they can.
    Tenants {
        /// How many namespaces attack.
        #[arg(long, default_value_t = 100)]
        namespaces: usize,
        /// How many creations are timed, before and during the attack.
        #[arg(long, default_value_t = 300)]
        creations: usize,
    },
}

fn main() -> Result<()> {
    let trial = Trial::parse();
    tokio::runtime::Runtime::new().context("no runtime")?.block_on(run(trial))
}

async fn run(trial: Trial) -> Result<()> {
    match trial {
        Trial::Chaos { minutes, failure_mode } => {
            let modes = failure_mode.map_or(vec![FailureMode::Fail, FailureMode::Gate], |mode| vec![mode]);
            for failure_mode in modes {
                let (duration, kill_every) = (Duration::from_secs(60 * minutes), Duration::from_secs(20));
                let report = Box::pin(Chaos { failure_mode, duration, kill_every }.run()).await?;
                writeln!(std::io::stdout(), "{report}")?;
            }
        }
        Trial::Soak { minutes } => {
            let report = Box::pin(soak::run(Duration::from_secs(60 * minutes))).await?;
            write!(std::io::stdout(), "{report}")?;
        }
        Trial::Quiet { minutes } => {
            let length = Length::Time(Duration::from_secs(60 * minutes));
            let quiet = Quiet { length, times: 2, period: 25, lease: 20 };
            write!(std::io::stdout(), "{}", Box::pin(quiet.run()).await?)?;
        }
        Trial::Tenants { namespaces, creations } => {
            let report = Box::pin(Tenants { namespaces, creations }.run()).await?;
            write!(std::io::stdout(), "{report}")?;
        }
    }
    Ok(())
}
