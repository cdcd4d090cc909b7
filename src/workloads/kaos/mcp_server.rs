//! What runs an MCPServer.
//!
//! In: what the MCPServer says, and the registry of runtimes. Out: a request of the workload engine. Promise: what a user wrote is an argument
//! or a variable, never part of a script.

use serde_json::{Map, Value, json};

use super::compose::{ComposeFault, Composed, Container, composed, probe};
use super::contract::{self, Place};
use super::identity::Identity;
use super::names::{PORT, Role};
use super::registry::{self, PYTHON_STRING, Registry, RuntimeFault};
use super::settings::Settings;
use super::variables::{Variables, telemetry, telemetry_of};
use crate::api::kaos_tools::shape::{McpServer, Runtime};

/// Installs the first argument; runs the second as a program or, where that fails, the third as a module.
const INSTALL: &str = r#"pip install --no-cache-dir -- "$1" && { "$2" || exec python -m "$3"; }"#;
/// The same with what follows as arguments of the program.
const INSTALL_WITH_ARGS: &str = r#"pip install --no-cache-dir -- "$1" && { program=$2 module=$3; shift 3; "$program" "$@" || exec python -m "$module" "$@"; }"#;

/// The request of an MCPServer; `old_text`: its tools are text in a spelling of before there were runtimes.
///
/// # Errors
/// When its runtime cannot be had, there is no image, or `podSpec` cannot be merged.
pub fn compose(
    identity: &Identity,
    (server, old_text): (&McpServer, bool),
    registry: &Result<Registry, RuntimeFault>,
    settings: &Settings,
) -> Result<Composed, ComposeFault> {
    let mut container = Map::new();
    let mut all = Variables::of_user(Place::Tools, &server.container);
    let mut executes = false;
    match &server.runtime {
        Runtime::Custom if server.container.image.is_none() => return Err(ComposeFault::CustomImage),
        Runtime::Custom => {}
        Runtime::Registered(name) => {
            executes = name == PYTHON_STRING;
            let variable = match settings.image_mcp_server.as_ref().filter(|_| old_text) {
                Some(image) => {
                    container.insert("image".to_owned(), json!(image));
                    container.insert("command".to_owned(), json!(["python", "-m", "mcptools.server"]));
                    Some(contract::PARAMS.name.of(""))
                }
                None => {
                    let runtime = registry.as_ref().map_err(Clone::clone)?.runtime(name)?;
                    if runtime.image.is_none() && server.container.image.is_none() {
                        return Err(RuntimeFault::Entry(name.clone(), "names no image".to_owned()).into());
                    }
                    start(&mut container, runtime);
                    runtime.params_variable.clone()
                }
            };
            if let (Some(variable), Some(params)) = (variable, &server.params) {
                all.set_for(&contract::PARAMS, &variable, params);
            }
        }
        Runtime::Package(package) => {
            let image = settings.image_python.as_ref().or(server.container.image.as_ref());
            container.insert("image".to_owned(), json!(image.ok_or(ComposeFault::NoImage("images.kaosPython"))?));
            container.insert("command".to_owned(), install(package, has_args(server)));
        }
    }
    all.users();
    let own = server.telemetry.as_ref();
    if let Some(endpoint) = settings.telemetry.effective(own) {
        telemetry(&mut all, (identity.namespace(), identity.name()), endpoint, telemetry_of(own));
    }
    all.set(&contract::LOG_LEVEL, settings.log_level.as_str());
    for (name, delay, period, failures) in [("livenessProbe", 20, 10, 3), ("readinessProbe", 15, 5, 2)] {
        let numbers = [
            ("initialDelaySeconds", delay),
            ("periodSeconds", period),
            ("timeoutSeconds", 3),
            ("failureThreshold", failures),
        ];
        container.insert(name.to_owned(), probe(("tcpSocket", json!({"port": PORT})), &numbers));
    }
    let pod = server.service_account.as_ref().map(|name| ("serviceAccountName".to_owned(), json!(name)));
    let container = Container {
        role: Role::McpServer,
        port: PORT,
        own: container,
        variables: all,
        pod: pod.into_iter().collect(),
        config: None,
        port_variable: executes.then_some(&contract::MCP_PORT),
    };
    composed(identity, (&server.container, server.pod_spec.as_ref()), container, settings)
}

fn start(container: &mut Map<String, Value>, runtime: &registry::Runtime) {
    // An entry without one leaves it to `container.image`.
    container.extend(runtime.image.as_ref().map(|image| ("image".to_owned(), json!(image))));
    for (name, words) in [("command", &runtime.command), ("args", &runtime.args)] {
        if !words.is_empty() {
            container.insert(name.to_owned(), json!(words));
        }
    }
}

/// Whether the container is given arguments: they follow those of the command.
fn has_args(server: &McpServer) -> bool {
    let containers = server.pod_spec.as_ref().and_then(|pod| pod.get("containers")?.as_array()).into_iter().flatten();
    let mut own = containers.filter(|container| container["name"] == Role::McpServer.container());
    let is_said = |args: Option<&Value>| args.and_then(Value::as_array).is_some_and(|args| !args.is_empty());
    server.container.args.as_ref().is_some_and(|args| !args.is_empty()) || own.any(|own| is_said(own.get("args")))
}

/// The command that installs a package and runs it; a version or an extra is no part of the program's name. A dot leads into a module, and stays.
fn install(package: &str, has_args: bool) -> Value {
    let name: String =
        package.chars().take_while(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(*letter)).collect();
    let script = if has_args { INSTALL_WITH_ARGS } else { INSTALL };
    json!(["/bin/sh", "-c", script, "install-and-run", package, name, name.replace('-', "_")])
}
