//! `drawbridge policy`: what NetworkPolicies mean, and what would change; and what `explain reach` shares with it.

pub(in crate::cli) mod left;
pub(in crate::cli) mod overridden;
pub(in crate::cli) mod population;
mod preview;
mod rehearsal;
pub(in crate::cli) mod target;

#[cfg(test)]
mod tests;

use clap::Subcommand;
use serde::Serialize;

use super::Exit;
use super::io::Io;

/// Arguments of `policy`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say what would be cut, per agent and peer, before the trust of a namespace is enforced; nothing is written.
    Preview(preview::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// When the input or the cluster cannot be used.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    match args.command {
        Command::Preview(args) => preview::run(args, io),
    }
}

/// One end of what is judged, the same in every output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli) struct End {
    /// Its namespace; addresses have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::cli) namespace: Option<String>,
    /// The kind of the workload, `Pod`, `Service`, `Address`, `Addresses` or `Outside`.
    pub(in crate::cli) kind: String,
    /// Its name, or the addresses.
    pub(in crate::cli) name: String,
    /// Pods that are there.
    pub(in crate::cli) pods: usize,
    /// There is none, and the template of the workload is judged.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::cli) template: bool,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            None => f.write_str(&self.name),
            Some(namespace) => write!(f, "{namespace}/{}/{}", self.kind.to_lowercase(), self.name),
        }
    }
}
