//! `drawbridge completion`: a script that completes this command in a shell.

use clap::CommandFactory;

use super::io::Io;
use super::{Cli, Exit};

/// Arguments of `completion`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Prints the script.
///
/// # Errors
/// When standard output is closed.
pub fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "drawbridge", &mut script);
    io.out.write_all(&script)?;
    Ok(Exit::Ok)
}
