//! `drawbridge version`: what this binary is and what it speaks.

use serde::Serialize;

use super::io::{self, Io};
use super::{Exit, Format};

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    version: &'static str,
    /// Oldest Kubernetes whose API the binary is built for; `gate` mode needs 1.36.
    kubernetes_minimum: &'static str,
    platform: String,
}

/// Prints the version.
///
/// # Errors
/// When standard output is closed.
pub fn run(args: &Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        kubernetes_minimum: super::render::KUBERNETES_MINIMUM,
        platform: format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    };
    io::print(args.output, &version, io.out, |out| {
        writeln!(
            out,
            "drawbridge {} ({}), for Kubernetes {} and later",
            version.version, version.platform, version.kubernetes_minimum
        )
    })?;
    Ok(Exit::Ok)
}
