//! Benchmarks of Drawbridge: `bench run` is what `make bench` calls; the other commands are the processes it starts.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use drawbridge_bench::{echo, offline, run, stamp};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Benchmarks of Drawbridge")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure every row and print the table; status 1 when a must is missed.
    Run {
        /// Which rows.
        #[arg(value_enum, default_value_t = run::Part::All)]
        part: run::Part,
        /// Rounds of everything that is compared.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Requests of one process in a round.
        #[arg(long, default_value_t = 3200)]
        requests: usize,
        /// Pods created in a round, with and without the webhook each.
        #[arg(long, default_value_t = 300)]
        creations: usize,
        /// Agents of the full cluster.
        #[arg(long, default_value_t = 1000)]
        agents: usize,
        /// Pods of the full cluster.
        #[arg(long, default_value_t = 10_000)]
        pods: usize,
        /// Seconds after which the full cluster is full enough.
        #[arg(long, default_value_t = 120)]
        patience: u64,
    },
    /// Serve the bare TLS echo.
    Echo {
        /// Port on 127.0.0.1.
        #[arg(long)]
        port: u16,
        /// Folder with tls.crt and tls.key.
        #[arg(long)]
        certificates: PathBuf,
        /// Bytes of every answer.
        #[arg(long)]
        answer: usize,
    },
    /// Serve a webhook that answers to every Pod what the product answered to one.
    Stamp {
        /// Port on 127.0.0.1.
        #[arg(long)]
        port: u16,
        /// Folder with tls.crt and tls.key.
        #[arg(long)]
        certificates: PathBuf,
        #[command(flatten)]
        source: stamp::Source,
    },
    /// Serve reviews from a snapshot that is made up, without a cluster.
    Offline {
        /// Port on 127.0.0.1.
        #[arg(long)]
        port: u16,
        /// Folder with tls.crt and tls.key.
        #[arg(long)]
        certificates: PathBuf,
        /// Agents that the snapshot knows besides the one that is reviewed.
        #[arg(long)]
        others: usize,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    webhook_tests::install_crypto();
    let threads = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
    match arguments.command {
        Command::Run { part, rounds, requests, creations, agents, pods, patience } => {
            let size = run::Size { rounds, requests, creations, agents, pods, patience };
            if !threads()?.block_on(run::run(part, size))? {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Echo { port, certificates, answer } => {
            threads()?.block_on(echo::serve(port, &certificates, answer))?
        }
        Command::Stamp { port, certificates, source } => {
            threads()?.block_on(stamp::serve(port, &certificates, &source))?;
        }
        Command::Offline { port, certificates, others } => {
            threads()?.block_on(offline::serve(port, &certificates, others))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
