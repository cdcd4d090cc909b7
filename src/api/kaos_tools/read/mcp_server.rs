//! An MCPServer.

use serde_json::{Value, json};

use super::Looked;
use super::env::{self, Placed};
use super::place::{Found, Place};
use super::shared;
use super::spelling::Alias;
use crate::api::kaos_tools::shape::{KeyRef, McpServer, Runtime, Variable};
use crate::domain::reason::Reason;

/// Service `mcpserver-<name>` has at most 63 characters.
pub(super) const LONGEST_NAME: usize = 53;
/// The runtime that runs tools which are written as text.
const PYTHON_STRING: &str = "python-string";
/// Its variable.
const TOOLS_STRING: &str = "MCP_TOOLS_STRING";
const CUSTOM: &str = "custom";

pub(super) fn look(object: &Value) -> Looked<McpServer> {
    let mut all = Found::default();
    let found = &mut all;
    let spec = shared::spec(object, ("mcpserver-", LONGEST_NAME), found);
    let config = spec.mapping("config", found);
    let mut env = env::joined(
        &[(config.at("env"), Some(Alias::McpEnv)), (spec.mapping("container", found).at("env"), None)],
        found,
    );
    let tools = Tools::of(&config, found);
    let (runtime, params) = runtime(&spec, &tools, &mut env, found);
    kind(&spec, found);
    let account = spec.at("serviceAccountName");
    let old_resources = spec.at("resources");
    let value = McpServer {
        runtime,
        params,
        service_account: account.text(found),
        telemetry: shared::telemetry(&spec.at("telemetry"), found),
        container: shared::container(&spec, (&old_resources, Alias::McpResources), env, found),
        timeout: shared::timeout(&spec, found),
        pod_spec: shared::pod_spec(&spec, found),
    };
    if value.runtime == Runtime::Custom && value.container.image.is_none() {
        let text =
            "runtime custom runs the image of container.image, and there is none; nothing is made until there is";
        found.note(Reason::FieldRequired, "spec.container.image", text);
    }
    all.looked(value)
}

/// Where the tools come from, as earlier versions wrote it.
struct Tools {
    text: Option<(String, String)>,
    secret: Option<(KeyRef, String)>,
    package: Option<(String, String)>,
}

impl Tools {
    fn of(config: &Place<'_>, found: &mut Found) -> Self {
        let place = config.mapping("tools", found);
        let pair =
            |new: &Place<'_>, old: &Place<'_>, variable: Option<&str>, aliases: (Alias, Alias), found: &mut Found| {
                let read = |place: &Place<'_>, found: &mut Found| match variable {
                    Some(variable) => place.variable(variable, found),
                    // As a shell took it, in which it stood once.
                    None => place.text(found).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
                };
                let (now, was) = (read(new, found), read(old, found));
                let path = if now.is_some() { new } else { old }.path.clone();
                if now.is_some() {
                    found.old(aliases.0, &new.path);
                }
                found.either((now, &new.path), (was, &old.path), aliases.1).map(|text| (text, path))
            };
        let (text_now, text_was) = (place.at("fromString"), config.at("toolsString"));
        let text = pair(&text_now, &text_was, Some(TOOLS_STRING), (Alias::ToolsString, Alias::ToolsText), found);
        let (package_now, package_was) = (place.at("fromPackage"), config.at("mcp"));
        let package = pair(&package_now, &package_was, None, (Alias::ToolsPackage, Alias::McpPackage), found);
        let secret = place.at("fromSecretKeyRef");
        let secret = shared::key_ref(&secret, found).map(|key| (key, secret.path.clone()));
        if let Some((_, path)) = &secret {
            found.old(Alias::ToolsSecret, path);
        }
        if let Some((package, path)) = &package {
            if package.starts_with('-') {
                found.invalid(
                    path,
                    "begins with -, so it is not the name of a package",
                    "name the package as pip install takes it",
                );
            } else if !is_named(package) {
                let text = "does not begin with the name of a Python package, by which it is run once it is installed; name it first, \
                            such as NAME @ ADDRESS";
                found.note(Reason::FieldInvalid, path, text);
            }
        }
        Self { text, secret, package }
    }

    /// The paths of the sources, in the order in which they count.
    fn paths(&self) -> Vec<&str> {
        let text = self.text.iter().map(|(_, path)| path.as_str());
        let secret = self.secret.iter().map(|(_, path)| path.as_str());
        text.chain(secret).chain(self.package.iter().map(|(_, path)| path.as_str())).collect()
    }
}

/// Whether a package begins with its name, and what follows is extras, a version, an address or a condition.
fn is_named(package: &str) -> bool {
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let rest = package.trim_start_matches(is_inner).chars().next();
    package.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && rest.is_none_or(|letter| letter.is_whitespace() || "[=<>!~@;(".contains(letter))
}

fn runtime(spec: &Place<'_>, tools: &Tools, env: &mut Vec<Placed>, found: &mut Found) -> (Runtime, Option<String>) {
    let (place, given) = (spec.at("runtime"), spec.at("params"));
    let params = given.variable(TOOLS_STRING, found);
    let sources = tools.paths();
    if let [first, others @ ..] = &sources[..]
        && !others.is_empty()
    {
        let text = format!("has no effect beside {first}; name one source of tools");
        others.iter().for_each(|path| found.note(Reason::FieldUnused, path, text.clone()));
    }
    let Some(name) = place.text(found) else {
        if sources.is_empty() {
            let remedy = "name a runtime of the registry (python-string takes the tools in params), or custom with container.image";
            found.required(&place.path, remedy);
        }
        return of_tools(tools, params.map(|text| (text, given.path)), env, found);
    };
    if name == PYTHON_STRING && tools.package.is_none() {
        let fits = match (&tools.text, &params) {
            (Some((text, _)), Some(params)) => text == params,
            (None, Some(_)) => tools.secret.is_none(),
            _ => true,
        };
        if fits {
            return of_tools(tools, params.map(|text| (text, given.path.clone())), env, found);
        }
        sources.iter().for_each(|path| found.conflict(&given.path, path));
        return (Runtime::Registered(name), params);
    }
    sources.iter().for_each(|path| found.conflict(&place.path, path));
    if name == CUSTOM {
        if params.is_some() {
            found.note(
                Reason::FieldUnused,
                &given.path,
                "is not handed to runtime custom; set a variable in container.env",
            );
        }
        return (Runtime::Custom, params);
    }
    (Runtime::Registered(name), params)
}

/// What runs for tools that earlier versions' fields name, beside parameters of today.
fn of_tools(
    tools: &Tools,
    params: Option<(String, String)>,
    env: &mut Vec<Placed>,
    found: &mut Found,
) -> (Runtime, Option<String>) {
    let python = Runtime::Registered(PYTHON_STRING.to_owned());
    let source = tools.text.as_ref().map(|(_, path)| path).or(tools.secret.as_ref().map(|(_, path)| path));
    if let (Some((params, at)), Some(path)) = (&params, source)
        && tools.text.as_ref().is_none_or(|(text, _)| text != params)
    {
        // The new spelling wins.
        found.conflict(at, path);
        return (python, Some(params.clone()));
    }
    if let Some((text, path)) = &tools.text {
        superseded(env, path, found);
        return (python, Some(text.clone()));
    }
    if let Some((secret, path)) = &tools.secret {
        superseded(env, path, found);
        env.insert(0, from_secret(secret, path));
        return (python, None);
    }
    match &tools.package {
        Some((package, _)) => {
            if let Some((_, at)) = &params {
                found.note(Reason::FieldUnused, at, "is not handed to a package; set a variable in container.env");
            }
            (Runtime::Package(package.clone()), None)
        }
        None => (python, params.map(|(text, _)| text)),
    }
}

/// The tools' variable is made of a field: one of that name in the environment never counted.
fn superseded(env: &mut Vec<Placed>, by: &str, found: &mut Found) {
    if let Some(placed) = env::take(env, TOOLS_STRING) {
        let text = format!("variable {TOOLS_STRING} is made of {by}, which counts");
        found.note(Reason::ValueShadowed, &placed.path, text);
    }
}

fn from_secret(secret: &KeyRef, path: &str) -> Placed {
    let mut from = json!({"name": secret.name, "key": secret.key});
    if let Some(optional) = secret.optional {
        from["optional"] = json!(optional);
    }
    let entry = json!({"name": TOOLS_STRING, "valueFrom": {"secretKeyRef": from}});
    let variable = Variable { name: TOOLS_STRING.to_owned(), entry, path: path.to_owned() };
    Placed { variable, path: path.to_owned(), old: true }
}

/// `type`, which says nothing any more.
fn kind(spec: &Place<'_>, found: &mut Found) {
    let place = spec.at("type");
    let Some(kind) = place.text(found) else { return };
    found.old(Alias::McpType, &place.path);
    match kind.as_str() {
        "python-runtime" => {}
        "node-runtime" => {
            let text = "was always run as Python, and still is; name a runtime of the registry, or custom with container.image";
            found.note(Reason::FieldUnused, &place.path, text);
        }
        other => {
            let sentence = format!("is {other:?}; python-runtime and node-runtime are supported");
            found.invalid(&place.path, sentence, "leave it out: the source of the tools says what runs");
        }
    }
}
