//! `kaos.toolDiscovery` with the published FastMCP at the addresses of Pods: an MCPServer that is applied has its tools in its status.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::json;
use webhook_tests::network::Network;
use webhook_tests::{ControlPlane, Installation, Installing, Options, wait_for};

use super::kaos;

const ON: &str = "kaos: {toolDiscovery: true}\n";

/// User of the processes that write.
const CONTROLLERS: &str = "system:serviceaccount:kagenti-system:drawbridge-controllers";

/// Ruling 18: what the server offers is listed; a restart writes nothing; a list that nobody keeps up to date goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ruling_18_the_tools_of_a_published_tool_server_stand_in_the_status_of_its_mcp_server() -> Result<()> {
    let text = "def echo(text: str) -> str:\n    return text\ndef add(a: int, b: int) -> int:\n    return a + b\n";
    let spec = json!({"runtime": "python-string", "params": text});
    let network = Arc::new(Network::new().await?.with_pods().await?);
    let running = kaos::tool_server(&network, &spec).await?;
    let cp = ControlPlane::start(Options::default()).await?;
    let installing = Installing { network: Some(network.clone()), platform: ON.to_owned(), ..Installing::default() };
    let installation = Installation::start(&cp, &installing).await?;
    let ns = cp.namespace("tools").await?;
    let server =
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "t"}, "spec": spec});
    ns.accepts(&server).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("kaos.tools", "v1alpha1", "MCPServer"));
    let servers: Api<DynamicObject> = Api::namespaced_with(ns.client(), ns.name(), &kind);
    let listed = |server: &DynamicObject| server.data["status"]["availableTools"] == json!(["add", "echo"]);
    let found = wait_for(&servers, "t", listed).await.with_context(|| running.tail())?;
    ensure!(found.data["status"]["toolDiscovery"].is_null(), "{}", found.data);

    let log = cp.audit();
    let mark = log.mark()?;
    let controllers = installation.controllers.first().context("a process with role controllers")?;
    controllers.kill().await;
    controllers.start_again()?;
    controllers.ready().await?;
    let written = log.settled(mark).await?.by(CONTROLLERS).writes().in_namespace(ns.name());
    ensure!(written.is_empty(), "{written}");

    let file = installation.settings().join("config.yaml");
    let without = std::fs::read_to_string(&file)?.replace(ON, "");
    let new = file.with_extension("new");
    std::fs::write(&new, without)?;
    std::fs::rename(&new, &file)?;
    wait_for(&servers, "t", |server| server.data["status"]["availableTools"].is_null()).await?;
    Ok(())
}
