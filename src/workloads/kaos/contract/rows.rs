//! The rows: of each container, in the order in which its variables are written.

use super::{Form, Name, Origin, Present, Row, Users};
use crate::workloads::kaos::names::Role;
use crate::workloads::kaos::settings::LogLevel;

/// Where the server listens that a model is pulled through, beside the one that serves it.
pub const PULL_HOST: &str = "127.0.0.1:11435";

const LEVELS: [&str; 5] =
    [LogLevel::ALL[0].0, LogLevel::ALL[1].0, LogLevel::ALL[2].0, LogLevel::ALL[3].0, LogLevel::ALL[4].0];
/// LiteLLM has no TRACE.
const LITELLM_LEVELS: [&str; 4] = [LEVELS[1], LEVELS[2], LEVELS[3], LEVELS[4]];

const TRUE: Form = Form::OneOf(&["true"]);
const TELEMETRY: &[Origin] = &[Origin::Telemetry, Origin::Platform("kaos.telemetry")];
const LOG: &[Origin] = &[Origin::Platform("kaos.logLevel")];
const SENT: Present = Present::When("traces are sent");
const SENT_TO: Present = Present::When("traces are sent, and an endpoint is said");
const MEMORY: Present = Present::When("spec.config.memory is written");
const MOVED: Present = Present::When("the Pod was injected in mode proxy-sidecar, whose proxy has port 8000");

const fn row(
    name: &'static str,
    form: Form,
    from: &'static [Origin],
    (present, users): (Present, Users),
    meaning: &'static str,
) -> Row {
    Row { name: Name::Fixed(name), form, from, present, users, meaning }
}

/// `AGENT_NAME`.
pub static AGENT_NAME: Row = row(
    "AGENT_NAME",
    Form::Object,
    &[Origin::Field("metadata.name")],
    (Present::Always, Users::MayNot),
    "The agent's name.",
);
/// `AGENT_DESCRIPTION`.
pub static AGENT_DESCRIPTION: Row = row(
    "AGENT_DESCRIPTION",
    Form::Text,
    &[Origin::Field("spec.config.description")],
    (Present::When("spec.config.description is written"), Users::May),
    "What the agent is for.",
);
/// `AGENT_INSTRUCTIONS`.
pub static AGENT_INSTRUCTIONS: Row = row(
    "AGENT_INSTRUCTIONS",
    Form::Text,
    &[Origin::Field("spec.config.instructions")],
    (Present::When("spec.config.instructions is written"), Users::May),
    "The agent's system prompt, as it was written, `$` included.",
);
/// `MODEL_API_URL`.
pub static MODEL_API_URL: Row = row(
    "MODEL_API_URL",
    Form::Endpoint(Role::ModelApi),
    &[Origin::Field("spec.modelAPI")],
    (Present::Always, Users::MayNot),
    "Where models are asked: port 8000 of a proxy, 11434 of a hosted model.",
);
/// `MODEL_NAME`.
pub static MODEL_NAME: Row = row(
    "MODEL_NAME",
    Form::Text,
    &[Origin::Field("spec.model")],
    (Present::Always, Users::May),
    "The model that the agent asks for.",
);
/// `AGENT_DEBUG_MEMORY_ENDPOINTS`.
pub static AGENT_DEBUG_MEMORY_ENDPOINTS: Row = row(
    "AGENT_DEBUG_MEMORY_ENDPOINTS",
    TRUE,
    &[Origin::Spelling("S3")],
    (Present::When("the Agent is in the spelling of 2025: config.agenticLoop or resources"), Users::May),
    "The agent lets its memory be inspected.",
);
/// `AGENTIC_LOOP_MAX_STEPS`.
pub static AGENTIC_LOOP_MAX_STEPS: Row = row(
    "AGENTIC_LOOP_MAX_STEPS",
    Form::Number,
    &[Origin::Field("spec.config.reasoningLoopMaxSteps")],
    (Present::When("spec.config is written"), Users::May),
    "How often the agent may ask its model before it has to answer.",
);
/// `AGENTIC_LOOP_ENABLE_TOOLS`.
pub static AGENTIC_LOOP_ENABLE_TOOLS: Row = row(
    "AGENTIC_LOOP_ENABLE_TOOLS",
    Form::Flag,
    &[Origin::Field("spec.config.agenticLoop.enableTools")],
    (Present::When("that field is written"), Users::May),
    "Whether tools are used.",
);
/// `AGENTIC_LOOP_ENABLE_DELEGATION`.
pub static AGENTIC_LOOP_ENABLE_DELEGATION: Row = row(
    "AGENTIC_LOOP_ENABLE_DELEGATION",
    Form::Flag,
    &[Origin::Field("spec.config.agenticLoop.enableDelegation")],
    (Present::When("that field is written"), Users::May),
    "Whether peers are called.",
);
/// `MEMORY_ENABLED`.
pub static MEMORY_ENABLED: Row = row(
    "MEMORY_ENABLED",
    Form::Flag,
    &[Origin::Field("spec.config.memory.enabled")],
    (MEMORY, Users::May),
    "Whether the agent remembers a session.",
);
/// `MEMORY_TYPE`.
pub static MEMORY_TYPE: Row = row(
    "MEMORY_TYPE",
    Form::OneOf(&["local"]),
    &[Origin::Field("spec.config.memory.type")],
    (MEMORY, Users::May),
    "Where it remembers: in its own process.",
);
/// `MEMORY_CONTEXT_LIMIT`.
pub static MEMORY_CONTEXT_LIMIT: Row = row(
    "MEMORY_CONTEXT_LIMIT",
    Form::Number,
    &[Origin::Field("spec.config.memory.contextLimit")],
    (MEMORY, Users::May),
    "How many messages of a session are sent to the model.",
);
/// `MEMORY_MAX_SESSIONS`.
pub static MEMORY_MAX_SESSIONS: Row = row(
    "MEMORY_MAX_SESSIONS",
    Form::Number,
    &[Origin::Field("spec.config.memory.maxSessions")],
    (MEMORY, Users::May),
    "How many sessions are kept.",
);
/// `MEMORY_MAX_SESSION_EVENTS`.
pub static MEMORY_MAX_SESSION_EVENTS: Row = row(
    "MEMORY_MAX_SESSION_EVENTS",
    Form::Number,
    &[Origin::Field("spec.config.memory.maxSessionEvents")],
    (MEMORY, Users::May),
    "How many events of a session are kept.",
);
/// `MCP_SERVERS`.
pub static MCP_SERVERS: Row = row(
    "MCP_SERVERS",
    Form::Objects,
    &[Origin::Field("spec.mcpServers")],
    (Present::When("spec.mcpServers names any"), Users::MayNot),
    "The tool servers that the agent uses, in the order of their bytes.",
);
/// `MCP_SERVER_<name>_URL`.
pub static MCP_SERVER_URL: Row = Row {
    name: Name::AsWritten("MCP_SERVER_", "_URL"),
    form: Form::Endpoint(Role::McpServer),
    from: &[Origin::Field("spec.mcpServers")],
    present: Present::When("MCP_SERVERS has that name: one for each"),
    users: Users::MayNot,
    meaning: "Where that tool server is; its name as it is, hyphens included, which a shell cannot read.",
};
/// `PEER_AGENTS`.
pub static PEER_AGENTS: Row = row(
    "PEER_AGENTS",
    Form::Objects,
    &[Origin::Field("spec.agentNetwork.access")],
    (Present::When("spec.agentNetwork.access names an Agent that is there and exposed"), Users::MayNot),
    "The agents that this one may call, in the order of their bytes.",
);
/// `PEER_AGENT_<NAME>_CARD_URL`.
pub static PEER_AGENT_CARD_URL: Row = Row {
    name: Name::UpperCase("PEER_AGENT_", "_CARD_URL"),
    form: Form::Endpoint(Role::Agent),
    from: &[Origin::Field("spec.agentNetwork.access")],
    present: Present::When("PEER_AGENTS has that name: one for each"),
    users: Users::MayNot,
    meaning: "Where that agent is; its card is below /.well-known/agent. Its name in upper case, hyphens as underscores.",
};
/// `OTEL_SDK_DISABLED`.
pub static OTEL_SDK_DISABLED: Row =
    row("OTEL_SDK_DISABLED", Form::Flag, TELEMETRY, (SENT, Users::May), "OpenTelemetry is on: false.");
/// `OTEL_SERVICE_NAME`.
pub static OTEL_SERVICE_NAME: Row = row(
    "OTEL_SERVICE_NAME",
    Form::Text,
    TELEMETRY,
    (SENT, Users::May),
    "What traces call the process: the object's name.",
);
/// `OTEL_EXPORTER_OTLP_ENDPOINT`.
pub static OTEL_EXPORTER_OTLP_ENDPOINT: Row = row(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    Form::Text,
    TELEMETRY,
    (SENT_TO, Users::May),
    "Where traces go, by OTLP over gRPC.",
);
/// `OTEL_RESOURCE_ATTRIBUTES`.
pub static OTEL_RESOURCE_ATTRIBUTES: Row = row(
    "OTEL_RESOURCE_ATTRIBUTES",
    Form::Text,
    TELEMETRY,
    (SENT, Users::May),
    "service.namespace and kaos.resource.name; a text of the user's stands behind them, a reference in their place.",
);
/// `OTEL_PYTHON_FASTAPI_EXCLUDED_URLS`.
pub static OTEL_PYTHON_FASTAPI_EXCLUDED_URLS: Row = row(
    "OTEL_PYTHON_FASTAPI_EXCLUDED_URLS",
    Form::Text,
    TELEMETRY,
    (SENT, Users::May),
    "Paths that no trace is made of: those of the probes.",
);
/// `LOG_LEVEL`.
pub static LOG_LEVEL: Row =
    row("LOG_LEVEL", Form::OneOf(&LEVELS), LOG, (Present::Always, Users::May), "How much is logged.");
/// `AGENT_PORT`.
pub static AGENT_PORT: Row = row(
    "AGENT_PORT",
    Form::Number,
    &[Origin::BuiltIn("written into the Pod at admission")],
    (MOVED, Users::May),
    "Where the process has to listen; 8000 without it.",
);

/// `PROXY_API_BASE`.
pub static PROXY_API_BASE: Row = row(
    "PROXY_API_BASE",
    Form::Text,
    &[Origin::Field("spec.proxyConfig.apiBase")],
    (Present::When("that field is written, and is not the whole of proxyConfig"), Users::May),
    "Where the provider is; the configuration refers to it.",
);
/// `PROXY_API_KEY`.
pub static PROXY_API_KEY: Row = row(
    "PROXY_API_KEY",
    Form::Text,
    &[Origin::Field("spec.proxyConfig.apiKey.value"), Origin::Field("spec.proxyConfig.apiKey.valueFrom")],
    (Present::When("spec.proxyConfig.apiKey is written"), Users::May),
    "The provider's key; the configuration refers to it.",
);
/// `LITELLM_LOG`.
pub static LITELLM_LOG: Row =
    row("LITELLM_LOG", Form::OneOf(&LITELLM_LEVELS), LOG, (Present::Always, Users::May), "How much LiteLLM logs.");
/// The variable without which a current LiteLLM does not start when there is no master key.
pub static LITELLM_OPEN: Row = row(
    crate::workloads::kaos::litellm::OPEN,
    TRUE,
    &[Origin::BuiltIn("the configuration has no master key")],
    (
        Present::When("neither the configuration nor LITELLM_MASTER_KEY has a master key, or nobody can tell"),
        Users::May,
    ),
    "A current LiteLLM does not start without a master key unless this is true.",
);
/// `OTEL_EXPORTER`.
pub static OTEL_EXPORTER: Row =
    row("OTEL_EXPORTER", Form::Text, TELEMETRY, (SENT, Users::May), "How traces are sent: otlp_grpc.");
/// `OTEL_PYTHON_EXCLUDED_URLS`.
pub static OTEL_PYTHON_EXCLUDED_URLS: Row =
    row("OTEL_PYTHON_EXCLUDED_URLS", Form::Text, TELEMETRY, (SENT, Users::May), "Paths that no trace is made of.");

/// `OLLAMA_DEBUG`.
pub static OLLAMA_DEBUG: Row = row(
    "OLLAMA_DEBUG",
    Form::OneOf(&["1", "2"]),
    LOG,
    (Present::When("kaos.logLevel is DEBUG or TRACE"), Users::May),
    "How much Ollama logs.",
);
/// `OLLAMA_HOST`.
pub static OLLAMA_HOST: Row = row(
    "OLLAMA_HOST",
    Form::OneOf(&[PULL_HOST]),
    &[Origin::BuiltIn("where the model is pulled through")],
    (Present::Always, Users::MayNot),
    "Where the server listens that the model is pulled through.",
);

/// The text of tools, or what another runtime calls its parameters.
pub static PARAMS: Row = Row {
    name: Name::Registered("MCP_TOOLS_STRING"),
    form: Form::Text,
    from: &[Origin::Field("spec.params"), Origin::Field("spec.config.tools.fromSecretKeyRef")],
    present: Present::When("spec.params is written and the runtime takes any, or the tools are text"),
    users: Users::May,
    meaning: "The text of the tools, as it was written; for another runtime than python-string its entry in the registry says what \
              the variable is called (paramsEnvVar).",
};
/// `MCP_PORT`.
pub static MCP_PORT: Row = row(
    "MCP_PORT",
    Form::Number,
    &[Origin::BuiltIn("written into the Pod at admission")],
    (MOVED, Users::May),
    "Where tools that are text have to be served; 8000 without it.",
);

/// Of an Agent.
pub(super) static AGENT: &[&Row] = &[
    &AGENT_NAME,
    &AGENT_DESCRIPTION,
    &AGENT_INSTRUCTIONS,
    &MODEL_API_URL,
    &MODEL_NAME,
    &AGENT_DEBUG_MEMORY_ENDPOINTS,
    &AGENTIC_LOOP_MAX_STEPS,
    &AGENTIC_LOOP_ENABLE_TOOLS,
    &AGENTIC_LOOP_ENABLE_DELEGATION,
    &MEMORY_ENABLED,
    &MEMORY_TYPE,
    &MEMORY_CONTEXT_LIMIT,
    &MEMORY_MAX_SESSIONS,
    &MEMORY_MAX_SESSION_EVENTS,
    &MCP_SERVERS,
    &MCP_SERVER_URL,
    &PEER_AGENTS,
    &PEER_AGENT_CARD_URL,
    &OTEL_SDK_DISABLED,
    &OTEL_SERVICE_NAME,
    &OTEL_EXPORTER_OTLP_ENDPOINT,
    &OTEL_RESOURCE_ATTRIBUTES,
    &OTEL_PYTHON_FASTAPI_EXCLUDED_URLS,
    &LOG_LEVEL,
    &AGENT_PORT,
];

/// Of a proxy.
pub(super) static PROXY: &[&Row] = &[
    &PROXY_API_BASE,
    &PROXY_API_KEY,
    &LITELLM_LOG,
    &LITELLM_OPEN,
    &OTEL_EXPORTER,
    &OTEL_EXPORTER_OTLP_ENDPOINT,
    &OTEL_SERVICE_NAME,
    &OTEL_PYTHON_EXCLUDED_URLS,
];

/// Of a hosted model.
pub(super) static HOSTED: &[&Row] = &[&OLLAMA_DEBUG];

/// Of what pulls it.
pub(super) static PULL: &[&Row] = &[&OLLAMA_DEBUG, &OLLAMA_HOST];

/// Of a tool server.
pub(super) static TOOLS: &[&Row] = &[
    &PARAMS,
    &OTEL_SDK_DISABLED,
    &OTEL_SERVICE_NAME,
    &OTEL_EXPORTER_OTLP_ENDPOINT,
    &OTEL_RESOURCE_ATTRIBUTES,
    &OTEL_PYTHON_FASTAPI_EXCLUDED_URLS,
    &LOG_LEVEL,
    &MCP_PORT,
];
