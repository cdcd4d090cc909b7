//! `make demo`: an agent is applied, and what happened is shown.
//!
//! Without a kubeconfig a throw-away control plane is started and the product installed on it; it stays up until it is
//! interrupted. With one (`make demo KUBECONFIG=…`) the product must be installed there already, the agent is applied to
//! a namespace of its own, which is removed at the end.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::runtime::watcher;
use tokio::signal::unix::{SignalKind, signal};
use webhook_tests::{Access, ControlPlane, Installation, Installing, Options, kubectl, programs, wait_until};

/// Shows the main job: an agent is applied, its Pod comes up with the sidecars, and the reason is told.
#[derive(Parser)]
struct Arguments {
    /// Kubeconfig of a cluster on which the product is installed; without it a control plane is started.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// End when everything has been shown, instead of staying up.
    #[arg(long)]
    once: bool,
}

/// The quick start's agent, enrolled by label.
const AGENT: &str = include_str!("../../../manifests/samples/weather-agent.yaml");

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Runtime::new().context("no runtime")?.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<()> {
    webhook_tests::install_crypto();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let interrupted = async {
        tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
    };
    let showing = async {
        match &arguments.kubeconfig {
            Some(kubeconfig) => on_a_cluster(kubeconfig.clone()).await,
            None => on_our_own(arguments.once).await,
        }
    };
    tokio::select! { ended = showing => ended, () = interrupted => Ok(()) }
}

async fn on_our_own(once: bool) -> Result<()> {
    step("starting etcd, kube-apiserver, kube-controller-manager and a kwok node (seconds)")?;
    let cp = ControlPlane::start(Options::default()).await?;
    step("installing Drawbridge from its manifests: one webhook and one controllers process, under their own RBAC")?;
    let installation = Installation::start(&cp, &Installing::default()).await?;
    show(cp.admin(), "default").await?;
    say(&format!("\nTo look around:\n  export KUBECONFIG={}\n", cp.admin().kubeconfig().display()))?;
    if !once {
        say("It stays up until you interrupt it (Ctrl-C).\n")?;
        std::future::pending::<()>().await;
    }
    drop(installation);
    Ok(())
}

async fn on_a_cluster(kubeconfig: PathBuf) -> Result<()> {
    let access = Access::existing(kubeconfig);
    let namespaces: Api<Namespace> = Api::all(access.client().await?);
    let metadata = ObjectMeta { generate_name: Some("drawbridge-demo-".to_owned()), ..ObjectMeta::default() };
    let namespace = namespaces
        .create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() })
        .await?
        .metadata
        .name
        .context("a stored namespace has a name")?;
    let shown = show(&access, &namespace).await;
    step(&format!("removing namespace {namespace}"))?;
    namespaces.delete(&namespace, &DeleteParams::default()).await?;
    shown
}

async fn show(access: &Access, namespace: &str) -> Result<()> {
    let agent = AGENT.replace("namespace: default", &format!("namespace: {namespace}"));
    step("kubectl apply -f manifests/samples/weather-agent.yaml")?;
    let applied = kubectl::run(access, &["apply", "-f", "-"], &agent).await?;
    say(&format!("{}{}", applied.stderr, applied.stdout))?;
    if !applied.success {
        bail!("the agent could not be applied");
    }
    let pods: Api<Pod> = Api::namespaced(access.client().await?, namespace);
    let ours = watcher::Config::default().labels("app.kubernetes.io/name=weather-agent");
    let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let seen = wait_until(&pods, ours, |all| all.values().any(running)).await?;
    let pod = seen.into_iter().find(running).context("one of them is running")?;
    let name = pod.metadata.name.clone().context("a stored Pod has a name")?;
    step("the Pod that came of it, beside the template")?;
    side_by_side(&agent, &pod)?;
    step(&format!("drawbridge explain pod/{name} -n {namespace}"))?;
    let explained = tokio::process::Command::new(programs::workspace("drawbridge")?)
        .args(["explain", &format!("pod/{name}"), "-n", namespace, "--kubeconfig"])
        .arg(access.kubeconfig())
        .output()
        .await?;
    say(&format!("{}{}", String::from_utf8_lossy(&explained.stdout), String::from_utf8_lossy(&explained.stderr)))
}

fn side_by_side(agent: &str, pod: &Pod) -> Result<()> {
    let documents = webhook_tests::objects::documents(agent)?;
    let template = documents.first().map(|document| document["spec"]["template"]["spec"].clone()).unwrap_or_default();
    let wanted: Vec<&str> =
        template["containers"].as_array().into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
    let spec = pod.spec.clone().unwrap_or_default();
    let mut lines = format!("  {:<32}{}\n", "applied", "running");
    for container in spec.init_containers.unwrap_or_default() {
        let kind = if container.restart_policy.is_some() { "native sidecar" } else { "init container" };
        lines.push_str(&format!("  {:<32}{} ({kind})\n", "", container.name));
    }
    for container in spec.containers {
        let before = if wanted.contains(&container.name.as_str()) { container.name.as_str() } else { "" };
        lines.push_str(&format!("  {before:<32}{}\n", container.name));
    }
    let account = spec.service_account_name.unwrap_or_default();
    lines.push_str(&format!("  {:<32}serviceAccountName: {account}\n", ""));
    say(&lines)
}

fn step(text: &str) -> Result<()> {
    say(&format!("\n==> {text}\n"))
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
