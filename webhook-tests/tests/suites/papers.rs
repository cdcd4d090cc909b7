//! The commands that README and the tasks print, run as they stand: in the order of each page, by a shell, against a cluster on which the
//! product is installed from its manifests.
//!
//! In: every line of a console block. Out: how it ended. What a cluster of this kind cannot run stands in [`NOT_HERE`], each with the reason.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tokio::process::Command;
use webhook_tests::{ControlPlane, Installation, Installing, Options, programs};

/// What is not run here, by the beginning of its line, and why.
const NOT_HERE: &[(&str, &str)] = &[
    ("make ", "runs the tests, or a cluster of its own"),
    ("docker ", "no container engine is needed to run the tests"),
    (
        "kubectl apply -f manifests/install.yaml",
        "the installation of this test, with the address of its processes in place of a Service",
    ),
    ("kubectl apply --server-side --force-conflicts -f drawbridge.yaml", "the same"),
    ("drawbridge uninstall --yes", "the suite of uninstall: it ends the installation"),
    ("drawbridge status -n default -w", "never ends by itself; the suite of status follows it"),
    ("drawbridge card get", "needs an agent that serves a card: make demo WITH=spire"),
    ("drawbridge explain agentcard/", "needs an agent that serves a card: make demo WITH=spire"),
    (
        "kubectl wait --for=condition=Ready agents.kaos.tools/simple",
        "needs an image of KAOS in the platform file: make demo WITH=kaos",
    ),
    ("drawbridge explain reach", "needs Pods of two namespaces: tests/product/cli_reach.rs runs it on their objects"),
];

/// What may end with 1, because it finds something in this cluster.
const FINDS: &[&str] = &[
    "drawbridge doctor",
    "drawbridge status",
    "drawbridge policy preview",
    "drawbridge explain",
    "drawbridge validate",
];

/// The lines of the console blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        let line = line.trim_start();
        if line.starts_with("```") {
            inside = !inside && ["```", "```console", "```sh"].contains(&line);
            continue;
        }
        let line = line.trim_start_matches("$ ");
        let known = ["drawbridge ", "kubectl ", "make ", "docker ", "curl "];
        if inside && known.iter().any(|word| line.starts_with(word)) {
            found.push(line.to_owned());
        }
    }
    found
}

async fn shell(line: &str, root: &Path, folder: &Path, path: &str, kubeconfig: &Path) -> Result<Output> {
    // What a line writes, it writes into a folder of the test; what it reads of the repository it finds by its link.
    let manifests = folder.join("manifests");
    if !manifests.exists() {
        std::os::unix::fs::symlink(root.join("manifests"), &manifests)?;
    }
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", line]).current_dir(folder).env("PATH", path).env("KUBECONFIG", kubeconfig);
    Ok(tokio::time::timeout(Duration::from_secs(120), command.kill_on_drop(true).output()).await??)
}

#[tokio::test]
async fn answers_20_every_command_that_readme_and_tasks_print_runs() -> Result<()> {
    let cp = ControlPlane::start(Options::default()).await?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository")?;
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("more.yaml"),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "more", "namespace": "team1"},
            "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": []}})
        .to_string(),
    )?;
    std::fs::write(folder.path().join("values.yaml"), "replicaCount: 1\n")?;
    std::fs::write(
        folder.path().join("old.yaml"),
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "old"},
            "spec": {"mode": "Hosted", "serverConfig": {"model": "smollm2:135m"}}})
        .to_string(),
    )?;
    for namespace in ["team1", "monitoring"] {
        let made = cp.kubectl(cp.admin(), &["create", "namespace", namespace], "").await?;
        ensure!(made.success, "{made:?}");
    }
    let binary = programs::workspace("drawbridge")?;
    let kubectl = programs::control_plane("kubectl")?;
    let folders = [&binary, &kubectl]
        .map(|program| program.parent().map_or_else(String::new, |place| place.display().to_string()));
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
    let mut pages = vec![root.join("README.md")];
    for entry in std::fs::read_dir(root.join("docs/tasks"))? {
        pages.push(entry?.path());
    }
    pages.sort();
    let (mut ran, mut left) = (0, Vec::new());
    for page in &pages {
        for line in commands(&std::fs::read_to_string(page)?) {
            if let Some((beginning, _)) = NOT_HERE.iter().find(|(beginning, _)| line.starts_with(beginning)) {
                left.push(*beginning);
                continue;
            }
            let output = shell(&line, root, folder.path(), &path, cp.admin().kubeconfig())
                .await
                .with_context(|| line.clone())?;
            let may_find = FINDS.iter().any(|beginning| line.starts_with(beginning));
            let code = output.status.code();
            ensure!(
                code == Some(0) || (code == Some(1) && may_find),
                "{}: {line}: {code:?}\n{}{}",
                page.display(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            ran += 1;
        }
    }
    ensure!(ran >= 20, "only {ran} commands were run");
    let idle = NOT_HERE.iter().map(|(beginning, _)| beginning).filter(|beginning| !left.contains(beginning));
    ensure!(idle.clone().next().is_none(), "no page prints these any more: {:?}", idle.collect::<Vec<_>>());
    drop(installation);
    Ok(())
}
