//! `make demo WITH=tekton`, an act of it: a build of BeeAI, and the Agent that it keeps.
//!
//! kwok plays the kubelet: the digest comes from an annotation of the run. API server, Drawbridge, and Tekton's webhook and controller are real.

use anyhow::{Result, bail};
use webhook_tests::patience::timeout;
use webhook_tests::tekton::{Part, kubelet};
use webhook_tests::{Access, Tekton};

use super::builds::{DIGEST, NAMESPACE, within};
use super::{kubectl, say, step, tell};

/// A build of BeeAI, as it is shipped.
const BEEAI: &str = include_str!("../../../../manifests/samples/beeai-agentbuild-deployed.yaml");

/// A build of BeeAI as it is shipped, from its token to an Agent by digest.
pub(super) async fn show(access: &Access, tekton: &Tekton) -> Result<()> {
    step(
        "kubectl apply -f manifests/samples/beeai-agentbuild-deployed.yaml: a build of BeeAI, and the Agent that it keeps",
    )?;
    let secret =
        ["create", "secret", "generic", "github-token-secret", "--from-literal=token=ghp_demo", "-n", NAMESPACE];
    tell(&kubectl(access, &secret, "").await?)?;
    // Its tasks begin once their run says what they end with.
    tekton.pause(Part::Controller);
    tell(&kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], BEEAI).await?)?;
    let (build, run) = ("agentbuilds.beeai.dev/research-agent", "-o=jsonpath={.status.pipelineRunName}");
    kubectl(access, &["wait", "--for=jsonpath={.status.buildStatus}=Building", build, &timeout(), "-n", NAMESPACE], "")
        .await?;
    let run = kubectl(access, &["get", build, "-n", NAMESPACE, run], "").await?;
    let image = "ghcr.io/acme/research-agent";
    let (key, value) = kubelet::results("push", &[("IMAGE_URL", &format!("{image}:v0.0.2")), ("IMAGE_DIGEST", DIGEST)]);
    let (run, wrote) = (format!("pipelinerun/{}", run.trim()), format!("{key}={value}"));
    // The build says the name of its run before that is there.
    kubectl(access, &["wait", "--for=create", &run, &timeout(), "-n", NAMESPACE], "").await?;
    kubectl(access, &["annotate", &run, &wrote, "-n", NAMESPACE], "").await?;
    tekton.resume(Part::Controller);
    kubectl(access, &["wait", "--for=condition=Ready", build, &within(), "-n", NAMESPACE], "").await?;
    tell(&kubectl(access, &["get", "beeai", "-n", NAMESPACE], "").await?)?;
    let runs = "-o=jsonpath={.spec.template.spec.containers[0].image}";
    let runs = kubectl(access, &["get", "deployment", "research-agent", "-n", NAMESPACE, runs], "").await?;
    if runs != format!("{image}@{DIGEST}") {
        bail!("the Agent runs {runs:?}, not what the build pushed");
    }
    say(&format!(
        "  only task pull had the Git token, only task push the login of ghcr.io (Secret research-agent-docker); the Agent runs\n  {runs}\n"
    ))
}
