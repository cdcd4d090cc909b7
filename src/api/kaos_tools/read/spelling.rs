//! The alias table: every old spelling, and what it means today.

/// An old spelling. A row of the table; the order is that of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Alias {
    /// Environment of an Agent.
    AgentEnv,
    /// The model as a variable of an Agent.
    ModelVariable,
    /// No model at all.
    NoModel,
    /// Steps of the loop.
    LoopMaxSteps,
    /// Tools of the loop.
    LoopTools,
    /// Delegation of the loop.
    LoopDelegation,
    /// Resources of an Agent.
    AgentResources,
    /// Model of a server.
    ServerModel,
    /// Environment of a server.
    ServerEnv,
    /// Resources of a server.
    ServerResources,
    /// Environment of a hosted model.
    HostedEnv,
    /// Environment of a proxy.
    ProxyEnv,
    /// The one model of a proxy.
    ProxyModel,
    /// A proxy for whatever an address offers.
    ProxyWildcard,
    /// A proxy of which nothing is said.
    ProxyDefault,
    /// A configuration that is a text.
    ConfigText,
    /// A package of tools.
    McpPackage,
    /// A package of tools, later.
    ToolsPackage,
    /// Tools as text.
    ToolsText,
    /// Tools as text, later.
    ToolsString,
    /// Tools of a Secret.
    ToolsSecret,
    /// Environment of a tool server.
    McpEnv,
    /// Resources of a tool server.
    McpResources,
    /// The type of a tool server.
    McpType,
}

/// One row: kind, old spelling, what it means, and what is to be known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The kind.
    pub kind: &'static str,
    /// The field as it was.
    pub old: &'static str,
    /// The field or fields that mean it today.
    pub new: &'static str,
    /// Precedence and what else is to be known.
    pub note: &'static str,
}

const NEW_WINS: &str = "both saying different things is refused";
const JOINED: &str = "joined, the old one first; of one name the later wins";

impl Alias {
    /// Every row, in order.
    pub const ALL: &'static [Alias] = &[
        Alias::AgentEnv,
        Alias::ModelVariable,
        Alias::NoModel,
        Alias::LoopMaxSteps,
        Alias::LoopTools,
        Alias::LoopDelegation,
        Alias::AgentResources,
        Alias::ServerModel,
        Alias::ServerEnv,
        Alias::ServerResources,
        Alias::HostedEnv,
        Alias::ProxyEnv,
        Alias::ProxyModel,
        Alias::ProxyWildcard,
        Alias::ProxyDefault,
        Alias::ConfigText,
        Alias::McpPackage,
        Alias::ToolsPackage,
        Alias::ToolsText,
        Alias::ToolsString,
        Alias::ToolsSecret,
        Alias::McpEnv,
        Alias::McpResources,
        Alias::McpType,
    ];

    /// The row.
    #[must_use]
    pub fn row(self) -> Row {
        let (kind, old, new, note) = match self {
            Alias::AgentEnv => ("Agent", "config.env", "container.env", JOINED),
            Alias::ModelVariable => (
                "Agent",
                "config.env[MODEL_NAME]",
                "model",
                "from a Secret or ConfigMap it stays a variable; no check against the ModelAPI",
            ),
            Alias::NoModel => ("Agent", "no model", "model: smollm2:135m", "no check against the ModelAPI"),
            Alias::LoopMaxSteps => ("Agent", "config.agenticLoop.maxSteps", "config.reasoningLoopMaxSteps", NEW_WINS),
            Alias::LoopTools => {
                ("Agent", "config.agenticLoop.enableTools", "variable AGENTIC_LOOP_ENABLE_TOOLS", "only if set")
            }
            Alias::LoopDelegation => (
                "Agent",
                "config.agenticLoop.enableDelegation",
                "variable AGENTIC_LOOP_ENABLE_DELEGATION",
                "only if set",
            ),
            Alias::AgentResources => ("Agent", "resources", "container.resources", NEW_WINS),
            Alias::ServerModel => ("ModelAPI", "serverConfig.model", "hostedConfig.model", NEW_WINS),
            Alias::ServerEnv => ("ModelAPI", "serverConfig.env", "container.env", JOINED),
            Alias::ServerResources => ("ModelAPI", "serverConfig.resources", "container.resources", NEW_WINS),
            Alias::HostedEnv => ("ModelAPI", "hostedConfig.env", "container.env", JOINED),
            Alias::ProxyEnv => ("ModelAPI", "proxyConfig.env", "container.env", JOINED),
            Alias::ProxyModel => (
                "ModelAPI",
                "proxyConfig.model",
                "proxyConfig.models with that one item",
                "refused beside apiBase without models: two earlier versions understood it differently",
            ),
            Alias::ProxyWildcard => (
                "ModelAPI",
                "proxyConfig.apiBase alone",
                "proxyConfig.configYaml: any model, at that address",
                "no check of models",
            ),
            Alias::ProxyDefault => (
                "ModelAPI",
                "proxyConfig with env alone, or empty",
                "proxyConfig.configYaml: gpt-3.5-turbo, whatever is asked for",
                "no check of models",
            ),
            Alias::ConfigText => {
                ("ModelAPI", "proxyConfig.configYaml as a text", "proxyConfig.configYaml.fromString", NEW_WINS)
            }
            Alias::McpPackage => ("MCPServer", "config.mcp", "config.tools.fromPackage", NEW_WINS),
            Alias::ToolsPackage => {
                ("MCPServer", "config.tools.fromPackage", "itself: a package that is installed and run", NEW_WINS)
            }
            Alias::ToolsText => ("MCPServer", "config.toolsString", "runtime: python-string, and params", NEW_WINS),
            Alias::ToolsString => {
                ("MCPServer", "config.tools.fromString", "runtime: python-string, and params", NEW_WINS)
            }
            Alias::ToolsSecret => (
                "MCPServer",
                "config.tools.fromSecretKeyRef",
                "runtime: python-string, and variable MCP_TOOLS_STRING from the Secret",
                NEW_WINS,
            ),
            Alias::McpEnv => ("MCPServer", "config.env", "container.env", JOINED),
            Alias::McpResources => ("MCPServer", "resources", "container.resources", NEW_WINS),
            Alias::McpType => ("MCPServer", "type", "follows from the source of the tools", "runtime wins"),
        };
        Row { kind, old, new, note }
    }

    /// Whether it says, or leaves out, which model is meant.
    #[must_use]
    pub fn is_of_model(self) -> bool {
        matches!(
            self,
            Alias::ModelVariable
                | Alias::NoModel
                | Alias::ServerModel
                | Alias::ProxyModel
                | Alias::ProxyWildcard
                | Alias::ProxyDefault
        )
    }
}

/// An old spelling that an object uses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OldSpelling {
    /// Which row of the table.
    pub alias: Alias,
    /// Where it stands in the object.
    pub path: String,
}
