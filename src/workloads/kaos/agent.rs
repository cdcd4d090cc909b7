//! What runs an Agent.
//!
//! In: what the Agent says, and which of the objects that it names are there. Out: a request of the workload engine. Promise: addresses are
//! computed from names, so that it is the same whether or not what it names is ready.

use serde_json::{Map, json};

use super::compose::{ComposeFault, Composed, Container, composed, probe};
use super::contract::{self, Place};
use super::identity::Identity;
use super::names::{PORT, Role};
use super::settings::Settings;
use super::variables::{Variables, telemetry, telemetry_of};
use crate::api::kaos_tools::shape::{Agent, Memory, Model};

/// What an Agent is wired to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wiring {
    /// The port of its ModelAPI.
    pub model_port: u16,
    /// The peers that are there and exposed.
    pub peers: Vec<String>,
}

/// The request of an Agent.
///
/// # Errors
/// When there is no image, or `podSpec` cannot be merged.
pub fn compose(
    identity: &Identity,
    agent: &Agent,
    wiring: &Wiring,
    settings: &Settings,
) -> Result<Composed, ComposeFault> {
    if agent.container.image.is_none() && settings.image_agent.is_none() {
        return Err(ComposeFault::NoImage("images.kaosAgent"));
    }
    let get = |path: &str| ("httpGet", json!({"path": path, "port": PORT, "scheme": "HTTP"}));
    let mut own = Map::new();
    own.insert("image".to_owned(), json!(settings.image_agent));
    own.insert(
        "livenessProbe".to_owned(),
        probe(get("/health"), &[("initialDelaySeconds", 30), ("periodSeconds", 10)]),
    );
    own.insert("readinessProbe".to_owned(), probe(get("/ready"), &[("initialDelaySeconds", 10), ("periodSeconds", 5)]));
    let container = Container {
        role: Role::Agent,
        port: PORT,
        own,
        variables: variables(identity, agent, wiring, settings),
        pod: Map::new(),
        config: None,
        port_variable: Some(&contract::AGENT_PORT),
    };
    let mut composed = composed(identity, (&agent.container, agent.pod_spec.as_ref()), container, settings)?;
    composed.request.replicas = agent.replicas;
    if !agent.expose {
        composed.request.service_ports.clear();
    }
    Ok(composed)
}

fn variables(identity: &Identity, agent: &Agent, wiring: &Wiring, settings: &Settings) -> Variables {
    let url =
        |role: Role, name: &str, port: u16| role.endpoint((identity.namespace(), name), port, &settings.cluster_domain);
    let mut all = Variables::of_user(Place::Agent, &agent.container);
    all.set(&contract::AGENT_NAME, identity.name());
    for (row, text) in
        [(&contract::AGENT_DESCRIPTION, &agent.description), (&contract::AGENT_INSTRUCTIONS, &agent.instructions)]
    {
        if let Some(text) = text {
            all.set(row, text);
        }
    }
    all.users();
    all.set(&contract::MODEL_API_URL, &url(Role::ModelApi, &agent.model_api, wiring.model_port));
    if let Model::Named(model) = &agent.model {
        all.set(&contract::MODEL_NAME, model);
    }
    if agent.debug_memory {
        all.set(&contract::AGENT_DEBUG_MEMORY_ENDPOINTS, "true");
    }
    if let Some(steps) = agent.max_steps {
        all.set(&contract::AGENTIC_LOOP_MAX_STEPS, &steps.to_string());
    }
    for (row, flag) in [
        (&contract::AGENTIC_LOOP_ENABLE_TOOLS, agent.loop_tools),
        (&contract::AGENTIC_LOOP_ENABLE_DELEGATION, agent.loop_delegation),
    ] {
        if let Some(flag) = flag {
            all.set(row, &flag.to_string());
        }
    }
    if let Some(said) = &agent.memory {
        memory(said, &mut all);
    }
    wired(agent, wiring, &mut all, url);
    let own = agent.telemetry.as_ref();
    if let Some(endpoint) = settings.telemetry.effective(own) {
        telemetry(&mut all, (identity.namespace(), identity.name()), endpoint, telemetry_of(own));
    }
    all.set(&contract::LOG_LEVEL, settings.log_level.as_str());
    all
}

fn memory(memory: &Memory, all: &mut Variables) {
    all.set(&contract::MEMORY_ENABLED, &memory.enabled.to_string());
    all.set(&contract::MEMORY_TYPE, &memory.kind);
    all.set(&contract::MEMORY_CONTEXT_LIMIT, &memory.context_limit.to_string());
    all.set(&contract::MEMORY_MAX_SESSIONS, &memory.max_sessions.to_string());
    all.set(&contract::MEMORY_MAX_SESSION_EVENTS, &memory.max_session_events.to_string());
}

/// Tool servers and peers, each once, in the order of their bytes.
fn wired(agent: &Agent, wiring: &Wiring, all: &mut Variables, url: impl Fn(Role, &str, u16) -> String) {
    let sorted = |names: &[String]| {
        let mut names: Vec<String> = names.iter().filter(|name| !name.is_empty()).cloned().collect();
        names.sort();
        names.dedup();
        names
    };
    let servers = sorted(&agent.mcp_servers);
    if !servers.is_empty() {
        all.set(&contract::MCP_SERVERS, &servers.join(","));
        for name in &servers {
            all.set_for(&contract::MCP_SERVER_URL, name, &url(Role::McpServer, name, PORT));
        }
    }
    let peers = sorted(&wiring.peers);
    if !peers.is_empty() {
        all.set(&contract::PEER_AGENTS, &peers.join(","));
        for name in &peers {
            all.set_for(&contract::PEER_AGENT_CARD_URL, name, &url(Role::Agent, name, PORT));
        }
    }
}
