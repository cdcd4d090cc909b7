//! The kinds of KAOS: Agent, ModelAPI and MCPServer of `kaos.tools`, kept whole as [`CustomSeen`] has them.
//!
//! What is written on one may be larger than on our other kinds: instructions and tools stand in them as text.

use super::What;
use super::custom::CustomSeen;
use crate::api::kaos_tools::{VERSION, agent, mcp_server, model_api};
use crate::domain::bounds::LARGEST_KAOS;
use crate::domain::keys::GROUP_KAOS;
use crate::store::decode::Whole;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Selection};

/// Agents of `kaos.tools`.
pub(super) const AGENT: Descriptor = Descriptor {
    selections: &[Selection::named_to_all(page::RUNS)],
    full: Some("Agent.kaos.tools"),
    words: &["agent.kaos.tools", "agents.kaos.tools", "kaosagent"],
    ..Descriptor::ours((GROUP_KAOS, VERSION), "agents", "Agent", (Decode::Whole(of_agent), agent::crd))
};

/// ModelAPIs.
pub(super) const MODEL_API: Descriptor = Descriptor {
    selections: &[Selection::named_to_all(page::RUNS)],
    words: &["modelapi", "modelapis", "api", "apis", "modelapi.kaos.tools", "modelapis.kaos.tools"],
    ..Descriptor::ours((GROUP_KAOS, VERSION), "modelapis", "ModelAPI", (Decode::Whole(of_model_api), model_api::crd))
};

/// MCPServers.
pub(super) const MCP_SERVER: Descriptor = Descriptor {
    selections: &[Selection::named_to_all(page::RUNS)],
    words: &["mcpserver", "mcpservers", "mcp", "mcps", "mcpserver.kaos.tools", "mcpservers.kaos.tools"],
    ..Descriptor::ours(
        (GROUP_KAOS, VERSION),
        "mcpservers",
        "MCPServer",
        (Decode::Whole(of_mcp_server), mcp_server::crd),
    )
};

fn of_agent(object: Whole) -> Option<What> {
    Some(What::KaosAgent(Box::new(CustomSeen::of_at_most(object, LARGEST_KAOS))))
}

fn of_model_api(object: Whole) -> Option<What> {
    Some(What::ModelApi(Box::new(CustomSeen::of_at_most(object, LARGEST_KAOS))))
}

fn of_mcp_server(object: Whole) -> Option<What> {
    Some(What::McpServer(Box::new(CustomSeen::of_at_most(object, LARGEST_KAOS))))
}
