//! `make demo WITH=kaos`: a coordinator, its two peers, a tool server and a model API come up in the order of their dependencies, one of the
//! agents with sidecars; a peer goes and comes back, and the coordinator learns of it; what a person or an autoscaler scales stays.
//!
//! No container runs: kwok plays the kubelet. Everything else is real.

use anyhow::{Context as _, Result, bail};
use tokio::time::Instant;
use webhook_tests::patience::{patience, timeout};
use webhook_tests::{Access, ControlPlane};

use super::{drawbridge, kubectl, say, step, tell};

/// The team as it is shipped, and the tool server of another sample.
const TEAM: &str = include_str!("../../../../manifests/samples/kaos-m-team.yaml");
const TOOLS: &str = include_str!("../../../../manifests/samples/kaos-m-simple.yaml");
/// Where all of it happens.
const NAMESPACE: &str = "kaos";

/// Shows the life of a team.
pub(super) async fn show(cp: &ControlPlane) -> Result<()> {
    let access = cp.admin();
    kubectl(access, &["create", "namespace", NAMESPACE], "").await?;
    let tools =
        TOOLS.split("\n---\n").find(|one| one.contains("kind: MCPServer")).context("the sample has a tool server")?;
    // The coordinator uses the tool server, and the researcher has sidecars from the beginning.
    let team = TEAM
        .replace("  name: researcher\nspec:", "  name: researcher\n  labels: {kagenti.io/type: agent}\nspec:")
        .replace("  agentNetwork:\n    access:", "  mcpServers: [echo-tools]\n  agentNetwork:\n    access:");
    step(
        "kubectl apply: a coordinator, two peers (one of them enrolled) and their model API; the tool server does not exist yet",
    )?;
    tell(&kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], &team).await?)?;
    ready(access, &["modelapi/team-models", "agents.kaos.tools/researcher", "agents.kaos.tools/fact-checker"]).await?;
    phase(access, "coordinator", "Waiting").await?;
    step("drawbridge explain agent.kaos.tools/coordinator: why it waits, and each variable with its field")?;
    say(&drawbridge(access, &["explain", "agent.kaos.tools/coordinator", "-n", NAMESPACE]).await?)?;

    step("kubectl apply: the tool server comes, and the coordinator follows; nobody asked it to")?;
    tell(&kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], tools).await?)?;
    ready(access, &["mcpserver/echo-tools", "agents.kaos.tools/coordinator"]).await?;
    tell(&kubectl(access, &["get", "kaos", "-n", NAMESPACE], "").await?)?;
    say(&format!("  the coordinator may call: {}\n", peers(access).await?))?;
    say(&format!("\n{}", drawbridge(access, &["status", "-n", NAMESPACE]).await?))?;

    step("drawbridge graph: how they are wired")?;
    say(&drawbridge(access, &["graph", "-n", NAMESPACE]).await?)?;

    step("a peer goes: the coordinator is told so by its environment")?;
    kubectl(access, &["delete", "agents.kaos.tools/fact-checker", "-n", NAMESPACE, &timeout()], "").await?;
    until(access, "researcher").await?;
    step("and comes back")?;
    kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], &team).await?;
    until(access, "fact-checker,researcher").await?;
    // Until then the Deployment of that name may be the one that goes with the Agent before.
    phase(access, "fact-checker", "Ready").await?;

    step("kubectl scale deployment: what a person sets stays, also when the Agent is edited")?;
    let scale = ["scale", "deployment/agent-fact-checker", "--replicas=2", "-n", NAMESPACE];
    tell(&kubectl(access, &scale, "").await?)?;
    edited(access, "fact-checker").await?;
    replicas(access, "fact-checker", "2").await?;

    step("an autoscaler writes the scale subresource of the Agent: that stays as well")?;
    let scale = format!(
        r#"{{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {{"name": "coordinator", "namespace": "{NAMESPACE}"}}, "spec": {{"replicas": 3}}}}"#
    );
    let path = format!("/apis/kaos.tools/v1alpha1/namespaces/{NAMESPACE}/agents/coordinator/scale");
    tell(&kubectl(access, &["replace", "--raw", &path, "-f", "-"], &scale).await?)?;
    replicas(access, "coordinator", "3").await?;
    edited(access, "coordinator").await?;
    replicas(access, "coordinator", "3").await?;
    Ok(())
}

/// A person writes a description, and the Deployment follows.
async fn edited(access: &Access, agent: &str) -> Result<()> {
    let text = format!("edited {agent}");
    let patch = format!(r#"{{"spec":{{"config":{{"description":"{text}"}}}}}}"#);
    let name = format!("agents.kaos.tools/{agent}");
    kubectl(access, &["patch", &name, "-n", NAMESPACE, "--type=merge", "-p", &patch], "").await?;
    let path = "jsonpath={.spec.template.spec.containers[0].env[?(@.name==\"AGENT_DESCRIPTION\")].value}";
    let deployment = format!("agent-{agent}");
    settles(access, &["get", "deployment", &deployment, "-n", NAMESPACE, "-o", path], &text).await
}

async fn replicas(access: &Access, agent: &str, wanted: &str) -> Result<()> {
    let deployment = format!("agent-{agent}");
    let path = "jsonpath={.spec.replicas}";
    settles(access, &["get", "deployment", &deployment, "-n", NAMESPACE, "-o", path], wanted).await?;
    say(&format!("  Deployment {deployment} has {wanted} replicas\n"))
}

async fn phase(access: &Access, agent: &str, wanted: &str) -> Result<()> {
    let name = format!("agents.kaos.tools/{agent}");
    settles(access, &["get", &name, "-n", NAMESPACE, "-o", "jsonpath={.status.phase}"], wanted).await?;
    say(&format!("  Agent {agent} is {wanted}\n"))
}

/// Waits until kubectl prints that.
async fn settles(access: &Access, args: &[&str], wanted: &str) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < patience() {
        if kubectl(access, args, "").await? == wanted {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    bail!("kubectl {} prints {:?}, not {wanted:?}", args.join(" "), kubectl(access, args, "").await?)
}

async fn ready(access: &Access, names: &[&str]) -> Result<()> {
    let timeout = timeout();
    let args = [&["wait", "--for=jsonpath={.status.phase}=Ready", "-n", NAMESPACE, &timeout][..], names].concat();
    tell(&kubectl(access, &args, "").await?)
}

/// The peers that stand in the coordinator's environment.
async fn peers(access: &Access) -> Result<String> {
    let path = "jsonpath={.spec.template.spec.containers[0].env[?(@.name==\"PEER_AGENTS\")].value}";
    kubectl(access, &["get", "deployment", "agent-coordinator", "-n", NAMESPACE, "-o", path], "").await
}

async fn until(access: &Access, wanted: &str) -> Result<()> {
    let path = "jsonpath={.spec.template.spec.containers[0].env[?(@.name==\"PEER_AGENTS\")].value}";
    settles(access, &["get", "deployment", "agent-coordinator", "-n", NAMESPACE, "-o", path], wanted).await?;
    say(&format!("  PEER_AGENTS={wanted}\n"))
}
