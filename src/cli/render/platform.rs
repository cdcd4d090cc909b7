//! The files the process reads, as the ConfigMaps that `render` ships.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::Value;

use super::{FailureMode, IMAGE, Install, metadata, object, settings};
use crate::config::gates::Gates;
use crate::domain::keys;
use crate::workloads::kaos::registry;

/// Tag of upstream's public images; operator and images move together.
pub const IMAGE_TAG: &str = "v0.5.0-alpha.14";
/// Where upstream publishes them.
pub const IMAGE_REPOSITORY: &str = "ghcr.io/kagenti/kagenti-extensions";
/// Folder the platform file is mounted in.
pub const FOLDER_PLATFORM: &str = "/etc/kagenti";
/// Folder the feature gates are mounted in.
pub const FOLDER_GATES: &str = "/etc/kagenti/feature-gates";
/// Key, and so file name, of the platform file.
pub const KEY_PLATFORM: &str = "config.yaml";
/// Key, and so file name, of the feature gates.
pub const KEY_GATES: &str = "feature-gates.yaml";

/// Platform file and feature gates, and the record of when they were first applied.
#[must_use]
pub fn objects(install: &Install) -> Vec<Value> {
    let platform = install.platform_file.clone().unwrap_or_else(|| platform_file_with(&install.image));
    let gates = install.feature_gates.clone().unwrap_or_else(|| gates_file(&Gates::default()));
    let files = [(keys::CONFIG_MAP_PLATFORM, KEY_PLATFORM, platform), (keys::CONFIG_MAP_GATES, KEY_GATES, gates)].map(
        |(name, key, text)| {
            let data = BTreeMap::from([(key.to_owned(), text)]);
            settings(metadata(name, Some(&install.namespace)), data)
        },
    );
    files.into_iter().chain([record(install), runtimes(install)]).collect()
}

/// When the installation was made: of labels on workloads that are older, nobody knew what they would do. Its time of creation counts.
fn record(install: &Install) -> Value {
    let words = "Its creationTimestamp tells labels kagenti.io/type on workloads from before this installation from later ones.\n";
    let data = BTreeMap::from([("about".to_owned(), words.to_owned())]);
    settings(metadata(keys::CONFIG_MAP_ENROLMENT, Some(&install.namespace)), data)
}

/// The runtimes of tool servers that come with the installation; whoever runs the platform adds others.
fn runtimes(install: &Install) -> Value {
    let data = BTreeMap::from([(registry::KEY.to_owned(), RUNTIMES.to_owned())]);
    settings(metadata(registry::CONFIG_MAP, Some(&install.namespace)), data)
}

/// What is a program's own flag stands in `args`: as a command it would take the place of the image's entry point.
pub const RUNTIMES: &str = "\
# The runtimes that spec.runtime of an MCPServer may name.
runtimes:
  python-string:
    type: python
    description: executes the text of spec.params; every function in it is a tool
    image: axsauze/kaos-mcp-python-string:0.1.4
    paramsEnvVar: MCP_TOOLS_STRING
  kubernetes:
    type: kubernetes
    description: reads and changes a cluster; needs spec.serviceAccountName with rights for that
    image: quay.io/containers/kubernetes_mcp_server:v0.0.67
    args: [--port, '8000']
  slack:
    type: slack
    description: needs SLACK_BOT_TOKEN and SLACK_TEAM_ID in spec.container.env
    image: zencoderai/slack-mcp:latest
    args: [--transport, http, --port, '8000']
";

/// What parametrises policies, without what those go by: that is the leader's, and a GitOps tool would fight it for what the manifest says. Until
/// it has come, the policies refuse.
pub fn parameters(install: &Install) -> impl Iterator<Item = Value> {
    let gate = (install.mode() == FailureMode::Gate).then_some(keys::GATE);
    gate.into_iter().chain([keys::ARMED]).map(|name| {
        object(&ServiceAccount {
            metadata: metadata(name, Some(&install.namespace)),
            automount_service_account_token: Some(false),
            ..ServiceAccount::default()
        })
    })
}

/// What runs the kinds of KAOS, pinned: the original's own images, LiteLLM, Ollama and Python.
const KAOS_IMAGES: [(&str, &str); 4] = [
    ("kaosAgent", "axsauze/kaos-agent:0.1.4"),
    ("kaosLitellm", "ghcr.io/berriai/litellm:v1.106.2"),
    ("kaosOllama", "ollama/ollama:0.12.6"),
    ("kaosPython", "python:3.12-slim"),
];

/// The platform file of a fresh installation: the images, which have no built-in value, and nothing else.
#[must_use]
pub fn platform_file() -> String {
    platform_file_with(IMAGE)
}

/// The same for an operator of that image, which signs cards, too.
#[must_use]
pub fn platform_file_with(operator: &str) -> String {
    let image = |key: &str, name: &str| format!("  {key}: {IMAGE_REPOSITORY}/{name}:{IMAGE_TAG}\n");
    let images: String = [
        image("envoyProxy", "authbridge-envoy"),
        image("authbridgeLight", "authbridge-light"),
        image("proxyInit", "proxy-init"),
        image("spiffeHelper", "spiffe-helper"),
        image("clientRegistration", "client-registration"),
        image("authbridge", "authbridge"),
    ]
    .concat();
    let kaos: String = KAOS_IMAGES.map(|(key, image)| format!("  {key}: {image}\n")).concat();
    format!(
        "# What is not set here has its built-in value; see docs/reference/platform.md.\nimages:\n{images}  cardSigner: {operator}\n{kaos}  pullPolicy: IfNotPresent\n"
    )
}

/// The feature gates, spelt out.
#[must_use]
pub fn gates_file(gates: &Gates) -> String {
    let Gates {
        global_enabled,
        envoy_proxy,
        spiffe_helper,
        client_registration,
        inject_tools,
        per_workload_config_resolution,
        combined_sidecar,
    } = *gates;
    format!(
        "globalEnabled: {global_enabled}\nenvoyProxy: {envoy_proxy}\nspiffeHelper: {spiffe_helper}\n\
         clientRegistration: {client_registration}\ninjectTools: {inject_tools}\n\
         perWorkloadConfigResolution: {per_workload_config_resolution}\ncombinedSidecar: {combined_sidecar}\n"
    )
}
