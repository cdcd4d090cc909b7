//! An Agent.

use serde_json::Value;

use super::Looked;
use super::env::{self, Placed};
use super::mcp_server::LONGEST_NAME as LONGEST_SERVER;
use super::model_api::LONGEST_NAME as LONGEST_API;
use super::place::{Found, Place};
use super::shared::{self, FROM_ZERO};
use super::spelling::Alias;
use crate::api::kaos_tools::DEFAULT_MODEL;
use crate::api::kaos_tools::shape::{Agent, Memory, Model};
use crate::domain::reason::Reason;

/// Service `agent-<name>` has at most 63 characters.
const LONGEST_NAME: usize = 57;
const MODEL_NAME: &str = "MODEL_NAME";
const LOOP_TOOLS: &str = "AGENTIC_LOOP_ENABLE_TOOLS";
const LOOP_DELEGATION: &str = "AGENTIC_LOOP_ENABLE_DELEGATION";
const DEBUG_MEMORY: &str = "AGENT_DEBUG_MEMORY_ENDPOINTS";
/// Steps of the loop where `config` is there and says nothing.
const DEFAULT_STEPS: i64 = 5;

pub(super) fn look(object: &Value) -> Looked<Agent> {
    let mut all = Found::default();
    let found = &mut all;
    let spec = shared::spec(object, ("agent-", LONGEST_NAME), found);
    let config = spec.mapping("config", found);
    let agentic = config.mapping("agenticLoop", found);
    let old_env = config.at("env");
    let mut env =
        env::joined(&[(old_env, Some(Alias::AgentEnv)), (spec.mapping("container", found).at("env"), None)], found);
    let model = model(&spec, &mut env, found);
    let max_steps = steps(&config, &agentic, found);
    let loop_tools = switch(&agentic.at("enableTools"), (LOOP_TOOLS, Alias::LoopTools), &mut env, found);
    let delegation = (LOOP_DELEGATION, Alias::LoopDelegation);
    let loop_delegation = switch(&agentic.at("enableDelegation"), delegation, &mut env, found);
    let old_resources = spec.at("resources");
    let debug_memory = debug_memory(agentic.is_there() || old_resources.is_there(), &mut env);
    let network = spec.mapping("agentNetwork", found);
    let api = spec.at("modelAPI");
    let model_api = api.text(found).unwrap_or_default();
    if model_api.is_empty() {
        found.required(&api.path, "name a ModelAPI of this namespace");
    }
    let (servers, access) = (spec.at("mcpServers"), network.at("access"));
    shared::refers(&api, ("ModelAPI", LONGEST_API), found);
    shared::refers(&servers, ("MCPServer", LONGEST_SERVER), found);
    shared::refers(&access, ("Agent", LONGEST_NAME), found);
    let memory = memory(&config.mapping("memory", found), found);
    let replicas = spec.at("replicas").integer(FROM_ZERO, found);
    if replicas.is_some_and(|pods| pods > 1) && memory.as_ref().is_none_or(|memory| memory.enabled) {
        let text = "memory is local to a Pod: each of several remembers only what it was asked itself";
        found.note(Reason::FieldUnused, "spec.replicas", text);
    }
    let value = Agent {
        model_api,
        model,
        mcp_servers: servers.names("an MCPServer", found),
        expose: network.at("expose").boolean(found).unwrap_or(true),
        access: access.names("an Agent", found),
        description: config.at("description").variable("AGENT_DESCRIPTION", found),
        instructions: config.at("instructions").variable("AGENT_INSTRUCTIONS", found),
        max_steps,
        loop_tools,
        loop_delegation,
        debug_memory,
        memory,
        telemetry: shared::telemetry(&config.at("telemetry"), found),
        waits: spec.at("waitForDependencies").boolean(found).unwrap_or(true),
        replicas,
        container: shared::container(&spec, (&old_resources, Alias::AgentResources), env, found),
        timeout: shared::timeout(&spec, found),
        pod_spec: shared::pod_spec(&spec, found),
    };
    all.looked(value)
}

/// The model: `spec.model`, else a literal variable, else the default; a variable that nobody can read here stays one.
fn model(spec: &Place<'_>, env: &mut Vec<Placed>, found: &mut Found) -> Model {
    let new = spec.at("model");
    let named = new.variable(MODEL_NAME, found);
    let Some(placed) = env::find(env, MODEL_NAME).cloned() else {
        return Model::Named(named.unwrap_or_else(|| {
            found.old(Alias::NoModel, &new.path);
            DEFAULT_MODEL.to_owned()
        }));
    };
    let literal = placed.variable.literal().filter(|text| !text.is_empty() && env::is_plain(text)).map(str::to_owned);
    match (named, literal) {
        (Some(named), literal) => {
            if placed.old {
                found.old(Alias::ModelVariable, &placed.path);
                if literal.as_deref() != Some(&named) {
                    found.conflict(&new.path, &placed.path);
                }
            } else if literal.as_deref() != Some(&named) {
                let text = format!("variable {MODEL_NAME} is set by {}, which counts", new.path);
                found.note(Reason::ValueShadowed, &placed.path, text);
            }
            env::take(env, MODEL_NAME);
            Model::Named(named)
        }
        (None, literal) => {
            found.old(Alias::ModelVariable, &placed.path);
            if literal.is_some() {
                env::take(env, MODEL_NAME);
            }
            literal.map_or(Model::Variable, Model::Named)
        }
    }
}

fn steps(config: &Place<'_>, agentic: &Place<'_>, found: &mut Found) -> Option<i64> {
    let bounds = (1, 20);
    let (new, old) = (config.at("reasoningLoopMaxSteps"), agentic.at("maxSteps"));
    let (said, was) = (new.integer(bounds, found), old.integer(bounds, found));
    let steps = found.either((said, &new.path), (was, &old.path), Alias::LoopMaxSteps);
    steps.or(config.is_there().then_some(DEFAULT_STEPS))
}

/// A switch of the oldest spelling; the same as a literal variable counts, since that is how it is written today.
fn switch(
    place: &Place<'_>,
    (variable, alias): (&str, Alias),
    env: &mut Vec<Placed>,
    found: &mut Found,
) -> Option<bool> {
    let said = place.boolean(found);
    if said.is_some() {
        found.old(alias, &place.path);
    }
    if let Some((value, path)) = env::take_boolean(env, variable) {
        if said.is_some_and(|said| said != value) {
            let text = format!("is set to {value} by variable {variable} at {path}, which counts");
            found.note(Reason::ValueShadowed, &place.path, text);
        }
        return Some(value);
    }
    if said.is_some() && env::find(env, variable).is_some() {
        let text = format!("variable {variable} is set in the environment, which counts");
        found.note(Reason::ValueShadowed, &place.path, text);
        return None;
    }
    said
}

/// Whether memory can be inspected as the oldest agents let it, unless the user says something else of it.
fn debug_memory(oldest: bool, env: &mut Vec<Placed>) -> bool {
    match env::find(env, DEBUG_MEMORY).map(|placed| placed.variable.literal() == Some("true")) {
        None => oldest,
        Some(true) => {
            env::take(env, DEBUG_MEMORY);
            true
        }
        Some(false) => false,
    }
}

fn memory(place: &Place<'_>, found: &mut Found) -> Option<Memory> {
    if !place.value.is_some_and(Value::is_object) {
        return None;
    }
    let kind = place.at("type");
    let local = kind.text(found).unwrap_or_else(|| "local".to_owned());
    if local != "local" {
        found.invalid(&kind.path, format!("is {local:?}; only local is supported"), "write local, or leave it out");
    }
    let mut number = |name: &str, most: i64, default: i64| place.at(name).integer((1, most), found).unwrap_or(default);
    let context_limit = number("contextLimit", 100, 6);
    let max_sessions = number("maxSessions", 100_000, 1000);
    let max_session_events = number("maxSessionEvents", 10_000, 500);
    let enabled = place.at("enabled").boolean(found).unwrap_or(true);
    Some(Memory { enabled, kind: local, context_limit, max_sessions, max_session_events })
}
