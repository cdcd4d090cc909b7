//! `drawbridge migrate values`: Helm values of KAOS's chart, or ConfigMap `kaos-operator-config`, as keys of the platform file.
//!
//! In: one document of either kind. Out: the keys as YAML on standard output, and on standard error a line for everything that has no key
//! and what stands in its place. Nothing that was written is passed over without a word.

use std::collections::BTreeSet;

use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use crate::api::yaml::kind;
use crate::cli::Exit;
use crate::cli::io::{Io, shown};
use crate::cli::offline::documents::{self, Input, Piece};
use crate::cli::yaml::emit;
use crate::domain::keys;

/// Arguments of `migrate values`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to read: the values file, or the ConfigMap.
    #[command(flatten)]
    pub input: Input,
}

/// One setting of the original: its path in the chart's values, its variable, its key here or what stands in its place.
struct Row {
    value: &'static str,
    variable: &'static str,
    means: Means,
}

enum Means {
    /// This key, with the same text.
    Key(&'static str),
    /// This key, which is a boolean: `true` alone was true.
    Switch(&'static str),
    /// This key, in upper case.
    Upper(&'static str),
    /// No key.
    None(&'static str),
}

const MCP_IMAGE: &str = "not taken over: tools that are text run in the registry's runtime python-string, as today's images need it; set \
                         images.kaosMcpServer only for an image that has the module mcptools.server";
const REGISTRY: &str =
    "stays in ConfigMap kaos-mcp-runtimes, key runtimes.yaml, in the namespace of kaos.registryNamespace";
const GATEWAY: &str = "the operator makes no Gateway: drawbridge render --kinds kaos --gateway-class CLASS prints one";
const OURS: &str = "is a matter of Drawbridge's own manifests: drawbridge render";

/// The ConfigMap whose data the Go operator has for its environment.
const CONFIG_MAP: &str = "kaos-operator-config";
/// The key that names where else the Go operator's Lease counts.
const OPERATORS: &str = "kaos.operatorNamespaces";

const ROWS: &[Row] = &[
    row("defaultImages.agentRuntime", "DEFAULT_AGENT_IMAGE", Means::Key("images.kaosAgent")),
    row("defaultImages.litellm", "DEFAULT_LITELLM_IMAGE", Means::Key("images.kaosLitellm")),
    row("defaultImages.ollama", "DEFAULT_OLLAMA_IMAGE", Means::Key("images.kaosOllama")),
    row("defaultImages.mcpServer", "DEFAULT_MCP_SERVER_IMAGE", Means::None(MCP_IMAGE)),
    row("defaultImages", "", Means::None(REGISTRY)),
    row("mcpRuntimes", "", Means::None(REGISTRY)),
    row("", "SYSTEM_NAMESPACE", Means::Key("kaos.registryNamespace")),
    row("gatewayAPI.enabled", "GATEWAY_API_ENABLED", Means::Switch("kaos.gateway.enabled")),
    row("gatewayAPI.gatewayName", "GATEWAY_NAME", Means::Key("kaos.gateway.name")),
    row("gatewayAPI.gatewayNamespace", "GATEWAY_NAMESPACE", Means::Key("kaos.gateway.namespace")),
    row("gatewayAPI", "", Means::None(GATEWAY)),
    row("gateway.defaultTimeouts.agent", "GATEWAY_DEFAULT_AGENT_TIMEOUT", Means::Key("kaos.gateway.timeouts.agent")),
    row(
        "gateway.defaultTimeouts.modelAPI",
        "GATEWAY_DEFAULT_MODELAPI_TIMEOUT",
        Means::Key("kaos.gateway.timeouts.modelAPI"),
    ),
    row("gateway.defaultTimeouts.mcp", "GATEWAY_DEFAULT_MCP_TIMEOUT", Means::Key("kaos.gateway.timeouts.mcp")),
    row("telemetry.enabled", "DEFAULT_TELEMETRY_ENABLED", Means::Switch("kaos.telemetry.enabled")),
    row("telemetry.endpoint", "DEFAULT_TELEMETRY_ENDPOINT", Means::Key("kaos.telemetry.endpoint")),
    row("logLevel", "DEFAULT_LOG_LEVEL", Means::Upper("kaos.logLevel")),
    row("kubernetesClusterDomain", "KUBERNETES_CLUSTER_DOMAIN", Means::Key("kaos.clusterDomain")),
    row("controllerManager", "", Means::None(OURS)),
    row("serviceAccount", "", Means::None(OURS)),
    row("nameOverride", "", Means::None(OURS)),
    row("fullnameOverride", "", Means::None(OURS)),
];

const fn row(value: &'static str, variable: &'static str, means: Means) -> Row {
    Row { value, variable, means }
}

pub(super) fn run(args: Args, io: &mut Io<'_>) -> anyhow::Result<Exit> {
    let sources = documents::read(&args.input.filename, io)?;
    let mut written = Vec::new();
    let mut operators = Vec::new();
    for piece in sources.iter().flat_map(documents::Source::pieces) {
        let Piece::Document(document) = piece? else { continue };
        let value = document.node.to_json();
        written.extend(settings(&value).with_context(|| document.file.to_owned())?);
        operators.push(operator(&value).map(str::to_owned));
    }
    let mut keys = json!({});
    let mut notes = Vec::new();
    for setting in written {
        setting.apply(&mut keys, &mut notes);
    }
    believe(&operators, &mut keys, &mut notes);
    if keys.as_object().is_some_and(|keys| !keys.is_empty()) {
        write!(io.out, "{}", emit::document(&keys, None))?;
    }
    for note in notes {
        writeln!(io.err, "{}", shown(&note))?;
    }
    Ok(Exit::Ok)
}

/// One setting that is written.
struct Setting {
    name: String,
    row: Option<&'static Row>,
    value: Value,
}

/// The settings of a document: data of the ConfigMap, or leaves of the values.
fn settings(document: &Value) -> anyhow::Result<Vec<Setting>> {
    if document.get("kind").and_then(Value::as_str) == Some("ConfigMap") {
        let data = document.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        return Ok(data.into_iter().map(|(name, value)| of_variable(name, value)).collect());
    }
    if document.get("apiVersion").is_some() {
        bail!("is an object of the cluster; give the values of the chart, or ConfigMap kaos-operator-config");
    }
    let Some(values) = document.as_object() else {
        bail!("holds no mapping; give the values of the chart, or ConfigMap {CONFIG_MAP}")
    };
    let mut found = Vec::new();
    leaves("", values, &mut found);
    Ok(found)
}

/// The namespace in which the Go operator runs: its Pods read the ConfigMap of their own namespace. Values do not say.
fn operator(document: &Value) -> Option<&str> {
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let is_its = text("/kind") == Some("ConfigMap") && text("/metadata/name") == Some(CONFIG_MAP);
    text("/metadata/namespace").filter(|_| is_its)
}

/// Lets the Lease of the Go operator count where that operator runs: elsewhere nobody would wait for it, and two operators would write.
fn believe(operators: &[Option<String>], keys: &mut Value, notes: &mut Vec<String>) {
    let registry = keys.pointer("/kaos/registryNamespace").and_then(Value::as_str);
    let counts = |namespace: &str| namespace == keys::KAOS_NAMESPACE || registry == Some(namespace);
    let named: BTreeSet<&str> = operators.iter().flatten().map(String::as_str).filter(|name| !counts(name)).collect();
    if !named.is_empty() {
        set(keys, OPERATORS, json!(named));
    }
    if operators.iter().any(Option::is_none) {
        notes.push(format!(
            "{OPERATORS}: the input does not say in which namespace the Go operator runs; where that is neither {} nor the one of \
             kaos.registryNamespace, name it in this key, so that its Lease counts",
            keys::KAOS_NAMESPACE
        ));
    }
}

fn of_variable(name: String, value: Value) -> Setting {
    let row = ROWS.iter().find(|row| !name.is_empty() && row.variable == name);
    Setting { name, row, value }
}

fn leaves(above: &str, values: &Map<String, Value>, found: &mut Vec<Setting>) {
    for (key, value) in values {
        // A dot in a key is a part of the key: the chart reads nothing from it, and neither may we.
        let step = if key.is_empty() || key.contains('.') { format!("{key:?}") } else { key.clone() };
        let name = if above.is_empty() { step } else { format!("{above}.{step}") };
        let exact = ROWS.iter().find(|row| row.value == name);
        match (value, exact) {
            (Value::Object(below), None) if !below.is_empty() => leaves(&name, below, found),
            (Value::Object(below), Some(Row { means: Means::None(_), .. })) if !below.is_empty() => {
                leaves(&name, below, found);
            }
            _ => {
                let covers = |row: &&Row| !row.value.is_empty() && name.starts_with(&format!("{}.", row.value));
                let row = exact.or_else(|| ROWS.iter().find(covers));
                found.push(Setting { name, row, value: value.clone() });
            }
        }
    }
}

impl Setting {
    fn apply(self, keys: &mut Value, notes: &mut Vec<String>) {
        let text = match &self.value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let Some(row) = self.row else {
            notes.push(format!("{}: Drawbridge has no setting for it", self.name));
            return;
        };
        let says_nothing = text.is_empty() || text == "{}";
        match row.means {
            _ if says_nothing => {}
            Means::None(instead) => notes.push(format!("{}: {instead}", self.name)),
            // The chart prints it as it prints a mapping, which is no image, name or address.
            Means::Key(key) | Means::Upper(key) | Means::Switch(key)
                if self.value.is_array() || self.value.is_object() =>
            {
                notes.push(format!(
                    "{}: a text is expected, {} was found, so that nothing is taken over; write what is meant as {key} of the platform file",
                    self.name,
                    kind(&self.value)
                ));
            }
            Means::Key(key) => set(keys, key, json!(text)),
            Means::Upper(key) => set(keys, key, json!(text.to_ascii_uppercase())),
            Means::Switch(key) => set(keys, key, json!(text == "true")),
        }
    }
}

fn set(keys: &mut Value, path: &str, value: Value) {
    let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
    let steps = above.split('.').filter(|step| !step.is_empty());
    if let Some(place) = crate::api::place::mapping(keys, steps) {
        place.insert(key.to_owned(), value);
    }
}
