//! `make demo WITH=tekton`: a build is refused, corrected, run by real Tekton Pipelines, and its Agent deployed.
//!
//! No container runs: kwok plays the kubelet, and what the build's tasks would write comes from annotations of the
//! build. Everything else is real: the API server, Drawbridge, Tekton's webhook and its controller.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use webhook_tests::patience::{patience, timeout};
use webhook_tests::tekton::kubelet;
use webhook_tests::{Access, ControlPlane, Tekton};

use super::{Demo, beeai, containers, drawbridge, kubectl, say, step, tell};

/// A build, and the Agent that runs what it makes, as they are shipped.
const BUILD: &str = include_str!("../../../../manifests/samples/weather-agent-build.yaml");
const AGENT: &str = include_str!("../../../../manifests/samples/weather-built-agent.yaml");
/// Where all of it happens.
pub(super) const NAMESPACE: &str = "builds";
/// What the build task is said to have pushed.
const IMAGE: &str = "registry.cr-system.svc.cluster.local:5000/weather-service";
pub(super) const DIGEST: &str = "sha256:8f3c5d0a7be2149c60d1f4a9e7b83c2512ab90cd34ef5678901a2b3c4d5e6f70";

/// Starts Tekton and shows the life of a build.
pub(super) async fn show(cp: &ControlPlane) -> Result<Tekton> {
    step("starting Tekton Pipelines: its webhook and its controller, in a network namespace of their own")?;
    let tekton = Tekton::start(cp).await?;
    let access = cp.admin();
    kubectl(access, &["create", "namespace", NAMESPACE], "").await?;

    step("kubectl apply: an AgentBuild with two mistakes is refused at once, each field named")?;
    let wrong = build("weather-build", "").replace("sourceRevision: main", "sourceRevision: --upload-pack=x");
    let wrong = wrong.replace("imageTag: v0.0.1", "imageTag: v 1");
    let refused = webhook_tests::kubectl::run(access, &["apply", "-f", "-"], &wrong).await?;
    if refused.success {
        bail!("the broken AgentBuild was accepted: {}", refused.stdout);
    }
    tell(&refused.stderr)?;

    step("corrected: Drawbridge completes it from the template of mode dev and hands Tekton one PipelineRun")?;
    say(
        "  No container runs here: kwok plays the kubelet. What the tasks would write comes from annotations kwok.test/… of\n  \
         the build; webhook and controller of Tekton and Drawbridge are the real ones.\n",
    )?;
    let pushed =
        kubelet::results("buildah-build", &[("IMAGE_URL", &format!("{IMAGE}:v0.0.1")), ("IMAGE_DIGEST", DIGEST)]);
    run(access, "weather-build", &[pushed], "Succeeded").await?;
    let image = field(access, "weather-build", "{.status.builtImage}").await?;
    if image != format!("{IMAGE}@{DIGEST}") {
        bail!("builtImage is {image:?}, not what the task wrote");
    }
    say(&format!("  builtImage is the digest that the task wrote: {image}\n"))?;

    step("kubectl apply -f manifests/samples/weather-built-agent.yaml: its Agent runs that digest, with sidecars")?;
    tell(&kubectl(access, &["apply", "-f", "-"], &here(AGENT)).await?)?;
    let pods: Api<Pod> = Api::namespaced(access.client().await?, NAMESPACE);
    let pod = Demo { access, namespace: NAMESPACE, name: "weather-built-agent", pods }.pod(true).await?;
    let spec = pod.spec.as_ref().context("a Pod has a spec")?;
    if !spec.containers.iter().any(|container| container.image.as_deref() == Some(&image)) {
        bail!("no container of {} runs {image}", pod.name_any());
    }
    say(&format!("  Pod {} runs {} with {}\n", pod.name_any(), image, containers(&pod)))?;
    let wait = ["wait", "--for=condition=Ready", "agent/weather-built-agent", &timeout(), "-n", NAMESPACE];
    tell(&kubectl(access, &wait, "").await?)?;

    beeai::show(access, &tekton).await?;

    step("the same build once more, and this time no task says what it pushed")?;
    run(access, "weather-silent", &[], "Failed").await?;
    let reason = field(access, "weather-silent", "{.status.conditions[?(@.type==\"Ready\")].reason}").await?;
    if reason != "NoImage" {
        bail!("the build without a result ended as {reason:?}, not NoImage");
    }
    say(&format!("  Failed/{reason}: {}\n", field(access, "weather-silent", "{.status.message}").await?))?;
    say(&format!("\n{}", drawbridge(access, &["status", "-n", NAMESPACE]).await?))?;
    Ok(tekton)
}

/// How long a build may take.
pub(super) fn within() -> String {
    format!("--timeout={}s", patience().max(Duration::from_secs(180)).as_secs())
}

/// Applies the build, waits for its end, and shows what Tekton has run.
async fn run(access: &Access, name: &str, says: &[(String, String)], phase: &str) -> Result<()> {
    let mut all = vec![
        kubelet::results("github-clone", &[("commit", "1f0c7a9be2d34c5f60718293a4b5c6d7e8f90123")]),
        kubelet::results("dockerfile-check", &[("has-dockerfile", "true"), ("dockerfile-name", "Dockerfile")]),
    ];
    all.extend_from_slice(says);
    let annotations: String = all.iter().map(|(key, value)| format!("    {key}: '{value}'\n")).collect();
    tell(&kubectl(access, &["apply", "-f", "-"], &build(name, &format!("  annotations:\n{annotations}"))).await?)?;
    let state = format!("--for=jsonpath={{.status.phase}}={phase}");
    kubectl(access, &["wait", &state, &format!("agentbuild/{name}"), &within(), "-n", NAMESPACE], "").await?;
    let label = format!("agent.kagenti.dev/agentbuild={name}");
    tell(&kubectl(access, &["get", "agentbuild", name, "-n", NAMESPACE], "").await?)?;
    tell(&kubectl(access, &["get", "pipelinerun,taskrun", "-l", &label, "-n", NAMESPACE], "").await?)
}

/// The shipped build under another name, with more members of its spec.
fn build(name: &str, members: &str) -> String {
    here(BUILD).replace("name: weather-build\n", &format!("name: {name}\n")) + members
}

fn here(sample: &str) -> String {
    sample.replace("namespace: default", &format!("namespace: {NAMESPACE}"))
}

async fn field(access: &Access, name: &str, path: &str) -> Result<String> {
    let output = format!("-o=jsonpath={path}");
    kubectl(access, &["get", "agentbuild", name, "-n", NAMESPACE, &output], "").await
}
