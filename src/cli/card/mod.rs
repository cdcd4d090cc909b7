//! `drawbridge card`: agent cards, signed ones above all.

pub mod row;
mod show;
mod sign;
mod tls;
mod url;
mod verify;

use clap::Subcommand;

use super::Exit;
use super::io::Io;

/// Arguments of `card`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one agent's card: what it says it can do, where it is, and whether that is signed.
    Get(show::GetArgs),
    /// List the agents of a cluster by their cards.
    List(show::ListArgs),
    /// Say whether a signed agent card is what it claims to be, and by whom it is signed; needs no cluster.
    Verify(verify::Args),
    /// Sign an agent card with the key and the certificates of an SVID; needs no cluster.
    Sign(sign::Args),
}

/// Runs the subcommand.
///
/// # Errors
/// When the input cannot be used.
pub fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    match args.command {
        Command::Get(args) => show::get(args, io),
        Command::List(args) => show::list(args, io),
        Command::Verify(args) => verify::run(&args, io),
        Command::Sign(args) => sign::run(&args, io),
    }
}
