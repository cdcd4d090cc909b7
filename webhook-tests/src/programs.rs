//! Where the programs are: the control plane's (asked from `controlplane/build --where`, which alone knows the rule)
//! and this workspace's own (beside the running executable). A missing one is an error that says what to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};

/// The path of a program of the control plane: `etcd`, `kube-apiserver`, `kube-controller-manager`, `kwok`, `kubectl`.
///
/// # Errors
/// When it is not built; the message names the command that builds it.
pub fn control_plane(name: &str) -> Result<PathBuf> {
    static PROGRAMS: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let programs = PROGRAMS
        .get_or_init(|| ask().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("{error}"))?;
    programs.get(name).cloned().with_context(|| format!("{name} is no program of the control plane"))
}

fn ask() -> Result<BTreeMap<String, PathBuf>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane/build");
    let output = Command::new(&script).arg("--where").output().with_context(|| script.display().to_string())?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(lines.lines().filter_map(|line| line.split_once('\t')).map(|(n, p)| (n.to_owned(), p.into())).collect())
}

/// The path of a binary of this workspace, built for the same profile as the running executable.
///
/// # Errors
/// When it is not there; the message names the command that builds it.
pub fn workspace(name: &str) -> Result<PathBuf> {
    let me = std::env::current_exe().context("the running executable has no path")?;
    let folder = me.ancestors().skip(1).find(|folder| !folder.ends_with("deps") && !folder.ends_with("examples"));
    let path = folder.context("the running executable lies in no folder")?.join(name);
    if !path.is_file() {
        let profile = if cfg!(debug_assertions) { "" } else { " --release" };
        bail!(
            "{} does not exist: run 'make build' first (or 'cargo build --workspace --features webhook-tests/peers --bins --tests{profile}')",
            path.display()
        );
    }
    Ok(path)
}
