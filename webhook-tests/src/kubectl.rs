//! kubectl, as people use it: what it prints is part of what they are promised.

use std::process::Stdio;

use anyhow::{Context as _, Result};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::access::Access;
use crate::programs;

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// Whether the exit status was 0.
    pub success: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error: warnings and refusals.
    pub stderr: String,
}

/// Runs kubectl as `access`, with `input` on its standard input.
///
/// # Errors
/// When it cannot be started; an exit status other than 0 is no error here.
pub async fn run(access: &Access, args: &[&str], input: &str) -> Result<Output> {
    let program = programs::control_plane("kubectl")?;
    let home = access.kubeconfig().parent().context("a kubeconfig lies in a folder")?;
    let mut child = Command::new(&program)
        .args(args)
        .env("KUBECONFIG", access.kubeconfig())
        // Caches and preferences of the person who runs the tests stay out of it.
        .env("HOME", home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| program.display().to_string())?;
    let mut pipe = child.stdin.take().context("kubectl has a standard input")?;
    let feeding = async {
        // kubectl may end without reading everything; its own words say why.
        let _ = pipe.write_all(input.as_bytes()).await;
        drop(pipe);
    };
    let ((), output) = tokio::join!(feeding, child.wait_with_output());
    let output = output?;
    Ok(Output {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}
