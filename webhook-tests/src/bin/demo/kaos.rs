//! `make demo WITH=kaos`: a coordinator, its two peers, a tool server and a model API come up in the order of their dependencies, one of the
//! agents with sidecars; a peer goes and comes back, and the coordinator learns of it.
//!
//! No container runs: kwok plays the kubelet. Everything else is real.

use anyhow::{Context as _, Result, bail};
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
    step("kubectl apply -f manifests/samples/kaos-m-team.yaml: a coordinator, two peers, one model API; in any order")?;
    tell(&kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], TEAM).await?)?;
    wait(access, &["modelapi/team-models", "agents.kaos.tools/coordinator", "agents.kaos.tools/researcher"]).await?;
    tell(&kubectl(access, &["get", "kaos", "-n", NAMESPACE], "").await?)?;
    say(&format!("  the coordinator may call: {}\n", peers(access).await?))?;

    step("a tool server joins, and the coordinator names it: one rollout")?;
    let tools =
        TOOLS.split("\n---\n").find(|one| one.contains("kind: MCPServer")).context("the sample has a tool server")?;
    tell(&kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], tools).await?)?;
    wait(access, &["mcpserver/echo-tools"]).await?;
    let patch = r#"{"spec":{"mcpServers":["echo-tools"]}}"#;
    let named = ["patch", "agents.kaos.tools/coordinator", "-n", NAMESPACE, "--type=merge", "-p", patch];
    tell(&kubectl(access, &named, "").await?)?;

    step("kubectl label: the researcher is enrolled, and its Pod comes up with sidecars")?;
    let label = ["label", "agents.kaos.tools/researcher", "kagenti.io/type=agent", "-n", NAMESPACE];
    tell(&kubectl(access, &label, "").await?)?;
    let rolled = ["rollout", "status", "deployment/agent-researcher", "-n", NAMESPACE, "--timeout=60s"];
    tell(&kubectl(access, &rolled, "").await?)?;
    say(&format!("\n{}", drawbridge(access, &["status", "-n", NAMESPACE]).await?))?;

    step("a peer goes: the coordinator is told so by its environment")?;
    kubectl(access, &["delete", "agents.kaos.tools/fact-checker", "-n", NAMESPACE, "--timeout=60s"], "").await?;
    until(access, "researcher").await?;
    step("and comes back")?;
    kubectl(access, &["apply", "-n", NAMESPACE, "-f", "-"], TEAM).await?;
    until(access, "fact-checker,researcher").await?;

    step("kubectl scale: what a person or an autoscaler sets stays")?;
    let scale = ["scale", "deployment/agent-researcher", "--replicas=2", "-n", NAMESPACE];
    tell(&kubectl(access, &scale, "").await?)?;
    Ok(())
}

async fn wait(access: &Access, names: &[&str]) -> Result<()> {
    let args =
        [&["wait", "--for=jsonpath={.status.phase}=Ready", "-n", NAMESPACE, "--timeout=120s"][..], names].concat();
    tell(&kubectl(access, &args, "").await?)
}

/// The peers that stand in the coordinator's environment.
async fn peers(access: &Access) -> Result<String> {
    let path = "jsonpath={.spec.template.spec.containers[0].env[?(@.name==\"PEER_AGENTS\")].value}";
    kubectl(access, &["get", "deployment", "agent-coordinator", "-n", NAMESPACE, "-o", path], "").await
}

async fn until(access: &Access, wanted: &str) -> Result<()> {
    for _ in 0..100 {
        if peers(access).await? == wanted {
            return say(&format!("  PEER_AGENTS={wanted}\n"));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    bail!("PEER_AGENTS is {:?}, not {wanted:?}", peers(access).await?)
}
