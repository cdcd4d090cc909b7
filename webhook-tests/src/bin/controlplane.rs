//! A throw-away control plane for people: `cargo run -p webhook-tests --bin controlplane`.
//!
//! Prints the `export KUBECONFIG=…` line when it is ready, stays until interrupted, and takes everything with it.

use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use webhook_tests::{ControlPlane, Options};

/// Real etcd, kube-apiserver, kube-controller-manager and kwok nodes on free loopback ports, until interrupted.
#[derive(Parser)]
struct Arguments {
    /// Number of nodes
    #[arg(long, default_value_t = 1)]
    nodes: usize,
    /// One more argument for the API server; may be repeated
    #[arg(long = "api-server-arg", value_name = "ARG", allow_hyphen_values = true)]
    api_server_args: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Runtime::new().context("no runtime")?;
    runtime.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let extra: Vec<&str> = arguments.api_server_args.iter().map(String::as_str).collect();
    let options = Options { nodes: arguments.nodes, ..Options::default() }.api_server_args(&extra);
    let interrupted = async {
        tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
    };
    let lasting = async {
        let cp = ControlPlane::start(options).await?;
        writeln!(std::io::stdout(), "export KUBECONFIG={}", cp.admin().kubeconfig().display())?;
        std::future::pending::<()>().await;
        anyhow::Ok(())
    };
    tokio::select! { ended = lasting => ended, () = interrupted => Ok(()) }
}
