//! `drawbridge migrate`: what was written for an earlier operator, in the spelling of today.

mod beeai;
mod kaos;
mod values;

use clap::Subcommand;

use super::Exit;
use super::io::Io;

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What is to be migrated.
    #[command(subcommand)]
    pub what: What,
}

/// What can be.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Write Agents and AgentBuilds of BeeAI as those of agent.kagenti.dev, and give running Agents another owner.
    Beeai(beeai::Args),
    /// Write Agents, ModelAPIs and MCPServers of KAOS, of every earlier spelling and group, as they are spelled today.
    Kaos(kaos::Args),
    /// Write the Helm values of KAOS's chart, or its ConfigMap kaos-operator-config, as keys of the platform file.
    Values(values::Args),
}

/// Migrates.
///
/// # Errors
/// When the input cannot be read.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    match args.what {
        What::Beeai(args) => beeai::run(args, io),
        What::Kaos(args) => kaos::run(args, io),
        What::Values(args) => values::run(args, io),
    }
}

#[cfg(test)]
mod tests;
