//! `make demo`: a running agent is enrolled by an AgentRuntime, its Pods roll into sidecars, and back when it is deleted.
//!
//! Without a kubeconfig a throw-away control plane is started and the product installed on it; it stays up until it is
//! interrupted. With one (`make demo KUBECONFIG=…`) the product must be installed there already, the agent is applied to
//! a namespace of its own, which is removed at the end. `make demo WITH=tekton` goes on with builds ([`builds`], [`beeai`]), `make demo WITH=spire`
//! with the card of an agent ([`cards`]), `make demo WITH=kaos` with a team of KAOS agents ([`kaos`]).
//! On a control plane of its own a second act breaks four things ([`faults`]).

mod beeai;
mod builds;
mod cards;
mod faults;
mod kaos;
mod quarantine;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use drawbridge::domain::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt as _};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use webhook_tests::essence::essence;
use webhook_tests::patience::timeout;
use webhook_tests::{Access, ControlPlane, Installation, Installing, Options, kubectl, programs, wait_until};

/// Shows the main job: an AgentRuntime turns a running agent into a governed one, and back.
#[derive(Parser)]
struct Arguments {
    /// Kubeconfig of a cluster on which the product is installed; without it a control plane is started.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// End when everything has been shown, instead of staying up.
    #[arg(long)]
    once: bool,
    /// What else is brought along: tekton, on which a build is shown; spire, by which an agent's card is verified; kaos: a team of its
    /// agents is shown.
    #[arg(long, value_name = "PEER", value_enum, conflicts_with = "kubeconfig")]
    with: Option<Peer>,
}

/// What may be brought along.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Peer {
    /// Tekton Pipelines.
    Tekton,
    /// SPIRE, and an agent by the published A2A SDK.
    Spire,
    /// Nothing that has to be installed: a team of KAOS agents.
    Kaos,
}

/// The quick start's agent and the AgentRuntime that points at it.
const OPTION_1: &str = include_str!("../../../../manifests/samples/weather-agent-runtime.yaml");
/// Where people find it.
const SAMPLE: &str = "manifests/samples/weather-agent-runtime.yaml";

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
            None => on_our_own(arguments.once, arguments.with).await,
        }
    };
    tokio::select! { ended = showing => ended, () = interrupted => Ok(()) }
}

async fn on_our_own(once: bool, with: Option<Peer>) -> Result<()> {
    step("starting etcd, kube-apiserver, kube-controller-manager and a kwok node (seconds)")?;
    let cp = ControlPlane::start(Options::default()).await?;
    let stage = match with {
        Some(Peer::Spire) => Some(cards::Stage::set().await?),
        _ => None,
    };
    step("installing Drawbridge from its manifests: one webhook and one controllers process, under their own RBAC")?;
    let installing = stage.as_ref().map_or_else(Installing::default, cards::Stage::installing);
    let installation = Installation::start(&cp, &installing).await?;
    show(cp.admin(), "default", !once).await?;
    if !once {
        say(
            "  kwok plays the kubelet and no container runs, so nothing answers at the agent's address: its AgentCard says FetchFailed\n",
        )?;
    }
    let agent = match &stage {
        Some(stage) => Some(stage.show(&cp).await?),
        None => {
            step(
                "not shown: cards of agents, which need SPIRE (built once, some minutes) and root: make demo WITH=spire",
            )?;
            None
        }
    };
    let tekton = match with {
        Some(Peer::Tekton) => Some(builds::show(&cp).await?),
        _ => {
            step(
                "not shown: builds, which need Tekton Pipelines (built once, about 8 minutes): make demo WITH=tekton",
            )?;
            None
        }
    };
    match with {
        Some(Peer::Kaos) => kaos::show(&cp).await?,
        _ => step("not shown: agents, model APIs and tool servers of KAOS: make demo WITH=kaos")?,
    }
    faults::show(&cp).await?;
    at_the_end(cp.admin(), once && !matches!(with, Some(Peer::Tekton | Peer::Kaos))).await?;
    say(&format!("\nTo look around:\n  export KUBECONFIG={}\n", cp.admin().kubeconfig().display()))?;
    if !once {
        say("It stays up until you interrupt it (Ctrl-C).\n")?;
        std::future::pending::<()>().await;
    }
    drop((installation, tekton, agent, stage));
    Ok(())
}

/// What is left, in the words of `status`; with `clean`, nothing of it may need a person.
async fn at_the_end(access: &Access, clean: bool) -> Result<()> {
    step("drawbridge status -A, at the end")?;
    let mut command = tokio::process::Command::new(programs::workspace("drawbridge")?);
    let ran = command.args(["status", "-A", "--kubeconfig"]).arg(access.kubeconfig()).output().await?;
    say(&String::from_utf8_lossy(&ran.stdout))?;
    if clean && !ran.status.success() {
        bail!("status ends with {:?} where everything was put back", ran.status.code());
    }
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
    let shown = show(&access, &namespace, false).await;
    step(&format!("removing namespace {namespace}"))?;
    namespaces.delete(&namespace, &DeleteParams::default()).await?;
    shown
}

/// A plain agent runs; an AgentRuntime is pointed at it; it is taken away again; with `stay` it comes back.
async fn show(access: &Access, namespace: &str, stay: bool) -> Result<()> {
    let sample = OPTION_1.replace("namespace: default", &format!("namespace: {namespace}"));
    let (agent, runtime) = sample.rsplit_once("---\n").context("the sample ends with its AgentRuntime")?;
    step("an ordinary agent, as its author deployed it: kubectl apply (Deployment and Service)")?;
    tell(&kubectl(access, &["apply", "-f", "-"], agent).await?)?;
    let demo =
        Demo { access, namespace, name: "weather-agent", pods: Api::namespaced(access.client().await?, namespace) };
    let plain = demo.pod(false).await?;
    let original = demo.deployment().await?;
    say(&format!("  Pod {} runs with {}\n", plain.name_any(), containers(&plain)))?;

    step(&format!("kubectl apply -f {SAMPLE}: the AgentRuntime points at it, and its Pods roll once"))?;
    tell(&kubectl(access, &["apply", "-f", "-"], &sample).await?)?;
    let governed = demo.governed().await?;
    side_by_side(&plain, &governed)?;
    step("kubectl get agentruntime, deployment, and drawbridge status")?;
    say(&kubectl(access, &["get", "agentruntime,deployment", "-n", namespace], "").await?)?;
    say(&format!("\n{}", drawbridge(access, &["status", "-n", namespace]).await?))?;

    step("kubectl delete agentruntime weather-agent-runtime: the Pods roll back to plain")?;
    tell(&kubectl(access, &["delete", "agentruntime", "weather-agent-runtime", "-n", namespace], "").await?)?;
    let back = demo.pod(false).await?;
    say(&format!("  Pod {} runs with {}\n", back.name_any(), containers(&back)))?;
    if demo.deployment().await? != original {
        bail!(
            "the Deployment is not what it was before: kubectl get deployment weather-agent -o yaml --show-managed-fields"
        );
    }
    say("  the Deployment equals its original, field by field\n")?;
    if !stay {
        step("kubectl delete deployment,service weather-agent: its AgentCard goes with it")?;
        let delete = ["delete", "deployment,service", "weather-agent", "-n", namespace];
        tell(&kubectl(access, &delete, "").await?)?;
        let gone = ["wait", "--for=delete", "agentcard/weather-agent-deployment-card", &timeout(), "-n", namespace];
        tell(&kubectl(access, &gone, "").await?)?;
    }
    if stay {
        step(&format!("kubectl apply -f {SAMPLE}: once more, to play with"))?;
        tell(&kubectl(access, &["apply", "-f", "-"], runtime).await?)?;
        demo.governed().await?;
        say(
            "  Try: kubectl get pods,agentruntime · drawbridge status -w · drawbridge explain agentruntime/weather-agent-runtime\n",
        )?;
    }
    Ok(())
}

/// Where the agent runs.
struct Demo<'a> {
    access: &'a Access,
    namespace: &'a str,
    /// The agent's name, which its Pods bear.
    name: &'a str,
    pods: Api<Pod>,
}

impl Demo<'_> {
    /// The agent's only Pod, once it runs with sidecars or without.
    async fn pod(&self, injected: bool) -> Result<Pod> {
        let ours = watcher::Config::default().labels(&format!("app.kubernetes.io/name={}", self.name));
        let settled = |pod: &Pod| {
            let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
            phase == Some("Running") && pod.annotations().contains_key(keys::ANNOTATION_STATUS) == injected
        };
        let seen = wait_until(&self.pods, ours, |all| all.len() == 1 && all.values().all(settled)).await?;
        seen.into_iter().next().context("there is one")
    }

    /// The agent's Pod, once the AgentRuntime says that it is protected.
    async fn governed(&self) -> Result<Pod> {
        let pod = self.pod(true).await?;
        let ready = [
            "wait",
            "--for=condition=Protected",
            "agentruntime/weather-agent-runtime",
            &timeout(),
            "-n",
            self.namespace,
        ];
        tell(&kubectl(self.access, &ready, "").await?)?;
        Ok(pod)
    }

    /// What people wrote of the Deployment.
    async fn deployment(&self) -> Result<Value> {
        let deployments: Api<Deployment> = Api::namespaced(self.access.client().await?, self.namespace);
        Ok(essence(&serde_json::to_value(deployments.get("weather-agent").await?)?))
    }
}

/// Runs kubectl; what it says when it succeeds.
async fn kubectl(access: &Access, args: &[&str], input: &str) -> Result<String> {
    let ran = kubectl::run(access, args, input).await?;
    if !ran.success {
        bail!("kubectl {}: {}", args.join(" "), ran.stderr);
    }
    Ok(format!("{}{}", ran.stderr, ran.stdout))
}

async fn drawbridge(access: &Access, args: &[&str]) -> Result<String> {
    let ran = tokio::process::Command::new(programs::workspace("drawbridge")?)
        .args(args)
        .arg("--kubeconfig")
        .arg(access.kubeconfig())
        .output()
        .await?;
    Ok(format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr)))
}

fn containers(pod: &Pod) -> String {
    let spec = pod.spec.clone().unwrap_or_default();
    spec.containers.into_iter().map(|container| container.name).collect::<Vec<_>>().join(", ")
}

fn side_by_side(before: &Pod, after: &Pod) -> Result<()> {
    let was = before.spec.clone().unwrap_or_default();
    let wanted: Vec<&str> = was.containers.iter().map(|container| container.name.as_str()).collect();
    let spec = after.spec.clone().unwrap_or_default();
    let mut lines = format!("  {:<44}{}\n", before.name_any(), after.name_any());
    for container in spec.init_containers.unwrap_or_default() {
        let kind = if container.restart_policy.is_some() { "native sidecar" } else { "init container" };
        lines.push_str(&format!("  {:<44}{} ({kind})\n", "", container.name));
    }
    for container in spec.containers {
        let before = if wanted.contains(&container.name.as_str()) { container.name.as_str() } else { "" };
        lines.push_str(&format!("  {before:<44}{}\n", container.name));
    }
    let account = spec.service_account_name.unwrap_or_default();
    let was = was.service_account_name.unwrap_or_default();
    lines.push_str(&format!(
        "  {:<44}{}\n",
        format!("serviceAccountName: {was}"),
        format_args!("serviceAccountName: {account}")
    ));
    say(&lines)
}

/// Somebody else's words, indented.
fn tell(text: &str) -> Result<()> {
    text.lines().try_for_each(|line| say(&format!("  {line}\n")))
}

fn step(text: &str) -> Result<()> {
    say(&format!("\n==> {text}\n"))
}

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
