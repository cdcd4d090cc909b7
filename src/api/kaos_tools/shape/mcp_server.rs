//! An MCPServer.

use super::{Container, Raw, Telemetry};

/// An MCPServer.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    /// What runs.
    pub runtime: Runtime,
    /// Handed to a registered runtime in the variable that it declares.
    pub params: Option<String>,
    /// ServiceAccount of its Pods, where one is named.
    pub service_account: Option<String>,
    /// Its own telemetry, where it is said.
    pub telemetry: Option<Telemetry>,
    /// Its container. Tools of a Secret are the first variable, `MCP_TOOLS_STRING`.
    pub container: Container,
    /// Timeout of its route, in Gateway API's form.
    pub timeout: Option<String>,
    /// Merged over the generated Pod.
    pub pod_spec: Option<Raw>,
}

/// What an MCPServer runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Runtime {
    /// The entry of that name in the registry; `python-string` for tools that are written as text.
    Registered(String),
    /// The image of its container; parameters are not for it.
    Custom,
    /// A Python package: installed at start, then run.
    Package(String),
}
