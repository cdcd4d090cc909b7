//! The command line: clap types and wiring, one file per subcommand.

use std::process::ExitCode;

/// Parses the arguments and runs the subcommand.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
