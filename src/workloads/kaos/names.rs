//! What the objects of KAOS are called, and where they are reached: contract of the agent runtime, of its
//! command line and of the people who look for them.

use std::collections::BTreeMap;

use crate::domain::keys;

/// One of the three kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// An Agent.
    Agent,
    /// A ModelAPI.
    ModelApi,
    /// An MCPServer.
    McpServer,
}

/// Where agents, tools and proxies listen.
pub const PORT: u16 = 8000;
/// Where a hosted model is asked.
pub const PORT_OLLAMA: u16 = 11434;
/// Name of that port in the Pod and in the Service.
pub const PORT_NAME: &str = "http";
/// Annotation of the Pod template: digest of the Pod's spec.
pub const ANNOTATION_HASH: &str = "kaos.tools/pod-spec-hash";
/// Annotation of the Pod template: digest of the configuration that is mounted.
pub const ANNOTATION_CONFIG: &str = "kaos.tools/config-hash";
/// Key of the configuration in its ConfigMap and of the file in the container.
pub const CONFIG_FILE: &str = "config.yaml";

/// Member of an MCPServer's status: the names of its tools, as it answered last.
pub const STATUS_TOOLS: &str = "availableTools";
/// Member of a status: what will change with the next change of an object whose Deployment an earlier operator made.
pub const STATUS_TAKEOVER: &str = "takeover";
/// Member of an MCPServer's status: why that list is not newer, or not whole.
pub const STATUS_DISCOVERY: &str = "toolDiscovery";

impl Role {
    /// All of them.
    pub const ALL: [Role; 3] = [Role::Agent, Role::ModelApi, Role::McpServer];

    /// The kind as manifests spell it.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Role::Agent => "Agent",
            Role::ModelApi => "ModelAPI",
            Role::McpServer => "MCPServer",
        }
    }

    /// Value of label `app`, key of the second label, and beginning of the names of Deployment and Service.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::ModelApi => "modelapi",
            Role::McpServer => "mcpserver",
        }
    }

    /// Beginning of the route's name, and its second segment.
    #[must_use]
    pub const fn route_word(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::ModelApi => "modelapi",
            Role::McpServer => "mcp",
        }
    }

    /// Beginning of the names of Deployment and Service.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Role::Agent => keys::PREFIX_KAOS_AGENT,
            Role::ModelApi => keys::PREFIX_MODEL_API,
            Role::McpServer => keys::PREFIX_MCP_SERVER,
        }
    }

    /// The container that is the operator's.
    #[must_use]
    pub const fn container(self) -> &'static str {
        match self {
            Role::Agent => "agent",
            Role::ModelApi => "model-api",
            Role::McpServer => "mcp-server",
        }
    }

    /// Name of Deployment and Service.
    #[must_use]
    pub fn object(self, name: &str) -> String {
        format!("{}{name}", self.prefix())
    }

    /// Name of the HTTPRoute.
    #[must_use]
    pub fn route(self, name: &str) -> String {
        format!("{}-{name}", self.route_word())
    }

    /// The path under which a gateway leads there.
    #[must_use]
    pub fn path(self, namespace: &str, name: &str) -> String {
        format!("/{namespace}/{}/{name}", self.route_word())
    }

    /// The labels of all its objects, which select its Pods.
    #[must_use]
    pub fn labels(self, name: &str) -> BTreeMap<String, String> {
        [("app", self.word()), (self.word(), name)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    /// Its base URL: no slash at the end and no path.
    #[must_use]
    pub fn endpoint(self, (namespace, name): (&str, &str), port: u16, cluster_domain: &str) -> String {
        format!("http://{}.{namespace}.svc.{cluster_domain}:{port}", self.object(name))
    }
}

/// ConfigMap of a proxy's configuration.
#[must_use]
pub fn config_map(name: &str) -> String {
    format!("litellm-config-{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_runtime_and_its_command_line_look_for() {
        let all = Role::ALL.map(|role| (role.object("a-b"), role.route("a-b"), role.path("ns", "a-b")));
        let text = |text: &str| text.to_owned();
        assert_eq!(
            all,
            [
                (text("agent-a-b"), text("agent-a-b"), text("/ns/agent/a-b")),
                (text("modelapi-a-b"), text("modelapi-a-b"), text("/ns/modelapi/a-b")),
                (text("mcpserver-a-b"), text("mcp-a-b"), text("/ns/mcp/a-b")),
            ]
        );
        let endpoint = Role::ModelApi.endpoint(("ns", "m"), PORT_OLLAMA, "cluster.local");
        assert_eq!(endpoint, "http://modelapi-m.ns.svc.cluster.local:11434");
        assert_eq!(
            Role::McpServer.labels("t"),
            [("app", "mcpserver"), ("mcpserver", "t")].map(|(k, v)| (text(k), text(v))).into()
        );
    }
}
