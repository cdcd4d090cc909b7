//! An Agent.

use super::{Container, Raw, Telemetry};

/// An Agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Name of the ModelAPI.
    pub model_api: String,
    /// The model it asks for.
    pub model: Model,
    /// Names of MCPServers, in the order written.
    pub mcp_servers: Vec<String>,
    /// Whether it has a Service, an endpoint and a route.
    pub expose: bool,
    /// Names of the Agents that it may call, in the order written.
    pub access: Vec<String>,
    /// `AGENT_DESCRIPTION`.
    pub description: Option<String>,
    /// `AGENT_INSTRUCTIONS`.
    pub instructions: Option<String>,
    /// `AGENTIC_LOOP_MAX_STEPS`: 5 where `config` is there and says nothing.
    pub max_steps: Option<i64>,
    /// `AGENTIC_LOOP_ENABLE_TOOLS`, only if set.
    pub loop_tools: Option<bool>,
    /// `AGENTIC_LOOP_ENABLE_DELEGATION`, only if set.
    pub loop_delegation: Option<bool>,
    /// `AGENT_DEBUG_MEMORY_ENDPOINTS=true`: objects of the oldest spelling had it.
    pub debug_memory: bool,
    /// Memory, where it is said; all five variables are set then.
    pub memory: Option<Memory>,
    /// Its own telemetry, where it is said.
    pub telemetry: Option<Telemetry>,
    /// Whether its Deployment is created only once what it names is ready.
    pub waits: bool,
    /// Pods that are wanted; `None`: not ours to say.
    pub replicas: Option<i64>,
    /// Its container.
    pub container: Container,
    /// Timeout of its route, in Gateway API's form.
    pub timeout: Option<String>,
    /// Merged over the generated Pod.
    pub pod_spec: Option<Raw>,
}

/// Which model an Agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Model {
    /// `MODEL_NAME` is this.
    Named(String),
    /// `MODEL_NAME` is a variable of the environment that nobody can read here: it stays one.
    Variable,
}

/// The memory of an Agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// `MEMORY_ENABLED`.
    pub enabled: bool,
    /// `MEMORY_TYPE`.
    pub kind: String,
    /// `MEMORY_CONTEXT_LIMIT`, messages.
    pub context_limit: i64,
    /// `MEMORY_MAX_SESSIONS`.
    pub max_sessions: i64,
    /// `MEMORY_MAX_SESSION_EVENTS`.
    pub max_session_events: i64,
}
