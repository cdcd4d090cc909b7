//! `counts gate` is what `make instructions` calls; `counts run` is the process whose instructions valgrind counts.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use drawbridge_counts::{cases, gate};

#[derive(Debug, Parser)]
#[command(name = "counts", about = "Instruction counts of Drawbridge's hot paths")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the instructions of each case with the numbers in force; status 1 when one is off.
    Gate {
        /// Write the numbers down instead.
        #[arg(long)]
        refresh: bool,
    },
    /// Decide one case some times: what valgrind counts.
    Run {
        /// Which case.
        case: cases::Case,
        /// How often.
        times: u64,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Gate { refresh } => {
            if !gate::gate(refresh)? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Run { case, times } => {
            tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(cases::run(case, times))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
