//! The kinds of KAOS.

/// API group of KAOS's Agent, ModelAPI and MCPServer.
pub const GROUP_KAOS: &str = "kaos.tools";
/// The group that they had before; read by `drawbridge migrate kaos` alone.
pub const GROUP_KAOS_BEFORE: &str = "ethical.institute";
/// Webhook entry that judges the kinds of KAOS.
pub const WEBHOOK_KAOS: &str = "vkaos.kb.io";
/// Path of the webhook that judges the kinds of KAOS.
pub const PATH_KAOS: &str = "/validate-kaos-tools-v1alpha1";
/// Finalizer of its Agents.
pub const FINALIZER_KAOS_AGENT: &str = "kaos.tools/agent-finalizer";
/// Finalizer of its ModelAPIs.
pub const FINALIZER_MODEL_API: &str = "kaos.tools/modelapi-finalizer";
/// Finalizer of its MCPServers.
pub const FINALIZER_MCP_SERVER: &str = "kaos.tools/mcpserver-finalizer";
/// Field manager of the controller of its Agents.
pub const MANAGER_KAOS_AGENT: &str = "drawbridge/kaos-agent";
/// Field manager of the controller of its ModelAPIs.
pub const MANAGER_MODEL_API: &str = "drawbridge/model-api";
/// Field manager of the controller of its MCPServers.
pub const MANAGER_MCP_SERVER: &str = "drawbridge/mcp-server";
/// ConfigMap that lists the runtimes of tool servers, in the namespace that the platform file names.
pub const CONFIG_MAP_MCP_RUNTIMES: &str = "kaos-mcp-runtimes";
/// Annotation of the Pod template of what runs an object of KAOS: digests of what its environment refers to, and in which version that was when
/// its Pods were last made again for it.
pub const ANNOTATION_KAOS_REFERENCES: &str = "kaos.tools/references";
/// Beginning of the names of what is made for an Agent of KAOS.
pub const PREFIX_KAOS_AGENT: &str = "agent-";
/// Beginning of the names of what is made for a ModelAPI of KAOS.
pub const PREFIX_MODEL_API: &str = "modelapi-";
/// Beginning of the names of what is made for an MCPServer of KAOS.
pub const PREFIX_MCP_SERVER: &str = "mcpserver-";
/// The Lease of the original operator of KAOS, in whichever namespace that runs.
pub const LEASE_KAOS_BEFORE: &str = "kaos-operator.kaos.tools";
/// The namespace that the original operator of KAOS had.
pub const KAOS_NAMESPACE: &str = "kaos-system";
/// Label of the Deployments and Services of KAOS: which kind they are made for.
pub const LABEL_KAOS_KIND: &str = "kaos.tools/kind";
/// Policy by which nothing is made for a KAOS Agent in a namespace that holds none.
pub const POLICY_OWN_KAOS_AGENTS_NEW: &str = "drawbridge-own-kaos-agents-new";
/// The same for ModelAPIs.
pub const POLICY_OWN_KAOS_MODEL_APIS_NEW: &str = "drawbridge-own-kaos-modelapis-new";
/// The same for MCPServers.
pub const POLICY_OWN_KAOS_MCP_SERVERS_NEW: &str = "drawbridge-own-kaos-mcpservers-new";
