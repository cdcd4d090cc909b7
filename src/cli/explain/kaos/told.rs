//! What is told of an object of KAOS; pure.
//!
//! In: what the cluster has. Out: what has to be so, in the order in which the operator goes, and what is made of it.

use serde_json::Value;

use super::facts::{Facts, Named, role};
use super::{Check, Spelling, State, Told, Variable, origin};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::api::findings::Fault;
use crate::api::kaos_tools::models::allows;
use crate::api::kaos_tools::read::{self, Alias, Looked, OldSpelling};
use crate::api::kaos_tools::shape::{Agent, Budget, Mode, Model, Offer, Runtime};
use crate::api::owner::Owner;
use crate::cli::explain::card::{check, unknown};
use crate::cli::survey::{label, text};
use crate::domain::keys;
use crate::domain::printable::printable;
use crate::store::Kind;
use crate::workloads::kaos::compose::{ComposeFault, Composed};
use crate::workloads::kaos::identity::Identity;
use crate::workloads::kaos::names::{ANNOTATION_HASH, PORT, PORT_OLLAMA, Role, config_map};
use crate::workloads::kaos::registry::{Registry, RuntimeFault};
use crate::workloads::kaos::{agent as agents, mcp_server as tools, model_api as apis};

/// What was read of the object, whatever its kind.
struct Seen {
    faults: Vec<Fault>,
    conflicts: Vec<Fault>,
    notes: Vec<String>,
    old: Vec<OldSpelling>,
    /// What is made of it; `None` where it cannot be read.
    composed: Option<Result<Composed, ComposeFault>>,
    port: u16,
    /// It has an address.
    exposed: bool,
}

impl Seen {
    fn of<T>(
        looked: Looked<T>,
        (port, exposed): (u16, bool),
        make: impl FnOnce(&T) -> Result<Composed, ComposeFault>,
    ) -> Self {
        let composed = looked.faults.is_empty().then(|| make(&looked.value));
        Self {
            notes: looked.notes.iter().map(ToString::to_string).collect(),
            faults: looked.faults,
            conflicts: looked.conflicts,
            old: looked.old,
            composed,
            port,
            exposed,
        }
    }
}

/// Everything.
pub(super) fn told(facts: &Facts) -> Told {
    let kind = facts.kind.unwrap_or(Kind::KaosAgent);
    let (role, object) = (role(kind), &facts.object);
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let mut told =
        Told { subject: format!("{} {namespace}/{name}", kind.label()), says: says(object), ..Told::default() };
    let identity = identity(object);
    let seen = match role {
        Role::Agent => of_agent(facts, &identity, &mut told.checks),
        Role::ModelApi => of_model_api(facts, &identity, &mut told.checks),
        Role::McpServer => of_mcp_server(facts, &identity, &mut told.checks),
    };
    told.checks.splice(0..0, spelled(facts, &seen));
    if let Some(Err(fault)) = &seen.composed {
        let remedy = match fault {
            ComposeFault::NoImage(key) => format!("set {key} in the platform file"),
            ComposeFault::Runtime(_) => "see runtime above".to_owned(),
            _ => "correct the field that it names".to_owned(),
        };
        told.checks.push(check("template", Err((fault.to_string(), remedy))));
    }
    let composed = seen.composed.as_ref().and_then(|made| made.as_ref().ok());
    // Nobody has made anything of manifests.
    if !facts.offline {
        told.checks.push(deployment(facts, role, composed));
        told.checks.extend(service(facts, role, &seen));
    }
    told.checks.extend(route(facts, role, seen.exposed));
    told.checks.extend(conditions(facts));
    told.checks.extend(offered_tools(facts, role));
    told.checks.extend(enrolment(facts, role));
    if seen.exposed {
        told.endpoint = Some(role.endpoint((namespace, name), seen.port, &facts.settings.cluster_domain));
    }
    if let Some(composed) = composed {
        told.environment = environment(composed, object, (&seen.old, role));
        told.objects = objects(facts, role, name, (composed, seen.exposed));
        for ignored in &composed.ignored {
            let text = format!(
                "variable {} of yours is not used: its name is the operator's, which sets it from {}",
                ignored.name,
                origin::field(&ignored.instead, object, &seen.old)
            );
            told.notes.push(text);
        }
    }
    told.old_spellings = seen.old.iter().filter(|old| old.alias != Alias::NoModel).map(spelling).collect();
    told.notes.extend(seen.notes);
    told.notes.extend(facts.notes.iter().cloned());
    told
}

fn spelling(old: &OldSpelling) -> Spelling {
    Spelling { path: old.path.clone(), means: old.alias.row().new.to_owned() }
}

fn says(object: &Value) -> String {
    match (text(object, "/status/phase"), text(object, "/status/message")) {
        ("", _) if text(object, "/metadata/uid").is_empty() => "a manifest: what would be made of it".to_owned(),
        ("", _) => "no controller has written its status yet".to_owned(),
        (phase, "") => phase.to_owned(),
        (phase, message) => format!("{phase}: {message}"),
    }
}

fn identity(object: &Value) -> Identity {
    let of = |pointer: &str| {
        let entries = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
    };
    let at = |pointer: &str| text(object, pointer).to_owned();
    Identity {
        owner: Owner { name: at("/metadata/name"), namespace: at("/metadata/namespace"), uid: at("/metadata/uid") },
        labels: of("/metadata/labels"),
        annotations: of("/metadata/annotations"),
    }
}

/// Whether the object can be read, and whether anybody acts on it.
fn spelled(facts: &Facts, seen: &Seen) -> Vec<Check> {
    let mut checks = Vec::new();
    if !facts.watched {
        let namespace = text(&facts.object, "/metadata/namespace");
        let seen = format!("the operator does not watch namespace {namespace}: nobody acts on this object");
        checks.push(check("namespace", Err((seen, "add it to the watched namespaces of the installation".to_owned()))));
    }
    for fault in &seen.faults {
        let seen = format!("{} {}", fault.path, fault.sentence);
        checks.push(check("spec", Err((seen, fault.remedy.clone()))));
    }
    for fault in &seen.conflicts {
        let seen = format!("{} {}; the new spelling counts", fault.path, fault.sentence);
        checks.push(check("spelling", Err((seen, fault.remedy.clone()))));
    }
    checks
}

fn is_ready(object: &Value) -> bool {
    object.pointer("/status/ready").and_then(Value::as_bool) == Some(true)
}

fn of_agent(facts: &Facts, identity: &Identity, checks: &mut Vec<Check>) -> Seen {
    let looked = read::agent(&facts.object);
    let agent = &looked.value;
    // Once the Deployment is there nothing is held back.
    let gates = facts.deployment.is_none();
    let held = |waits: bool| match (gates, waits) {
        (true, true) => "; the Deployment is made once it is",
        (true, false) => "; that holds nothing back, since waitForDependencies is false",
        (false, _) => "; the Deployment exists already, so that holds nothing back",
    };
    let offered = facts.model_api.as_ref().and_then(|(_, api)| api.as_ref()).map(read::model_api);
    if let Some(named) = &facts.model_api {
        checks.push(match facts.offline {
            true => among("ModelAPI", named),
            false => dependency(("ModelAPI", "modelapi"), named, held(agent.waits), gates),
        });
        checks.extend(offered.as_ref().map(|offered| model(&looked, offered)));
    }
    for named in &facts.mcp_servers {
        checks.push(match facts.offline {
            true => among("MCPServer", named),
            false => dependency(("MCPServer", "mcpserver"), named, held(agent.waits), gates),
        });
    }
    let mut peers = Vec::new();
    for (name, peer) in &facts.peers {
        let exposed = peer.as_ref().map(|peer| read::agent(peer).value.expose);
        checks.push(match exposed {
            Some(true) => {
                peers.push(name.clone());
                check("peer", Ok(format!("{name} exists; peers hold nothing back")))
            }
            Some(false) => check(
                "peer",
                Err((
                    format!("{name} is not exposed, so it is left out"),
                    format!("set spec.agentNetwork.expose of {name}"),
                )),
            ),
            None => unknown(
                "peer",
                &format!("{name} does not exist; its variables come once it does, and hold nothing back"),
            ),
        });
    }
    let hosted = offered.as_ref().is_some_and(|offered| offered.value.mode == Mode::Hosted);
    let wiring = agents::Wiring { model_port: if hosted { PORT_OLLAMA } else { PORT }, peers };
    let exposed = agent.expose;
    Seen::of(looked, (PORT, exposed), |agent: &Agent| agents::compose(identity, agent, &wiring, &facts.settings))
}

/// What manifests say of an object that is named.
fn among(kind: &'static str, (name, there): &Named) -> Check {
    match there {
        Some(_) => check(kind, Ok(format!("{name} is among the manifests"))),
        None => unknown(kind, &format!("{name} is not among the manifests; nothing is made before it exists")),
    }
}

fn dependency((kind, word): (&'static str, &str), (name, there): &Named, held: &str, gates: bool) -> Check {
    match there {
        None => check(
            kind,
            Err((
                format!(
                    "{name} does not exist in this namespace{}",
                    if gates { "; the Deployment is made once it does" } else { "" }
                ),
                "create it, or name another one".to_owned(),
            )),
        ),
        Some(object) if is_ready(object) => check(kind, Ok(format!("{name} is ready"))),
        Some(object) => {
            let text = format!("{name} is not ready ({}){held}", says(object));
            check(kind, Err((text, format!("drawbridge explain {word}/{name} shows why"))))
        }
    }
}

/// Whether the ModelAPI offers the model, as far as that is held against it (ruling 4).
fn model(looked: &Looked<Agent>, api: &Looked<crate::api::kaos_tools::shape::ModelApi>) -> Check {
    const NAME: &str = "model";
    let offered = api.value.offered();
    let offers = if offered.is_empty() { "whatever its configuration lists".to_owned() } else { offered.join(", ") };
    let Model::Named(model) = &looked.value.model else {
        return unknown(NAME, &format!("is read from elsewhere, so it is not checked; the ModelAPI offers {offers}"));
    };
    if !looked.checks_model() || !api.checks_model() {
        let text = format!(
            "asks for {model}; the ModelAPI offers {offers}; one of them is spelled as it was, so it is not checked"
        );
        return unknown(NAME, &text);
    }
    if offered.is_empty() || allows(&offered, model) {
        return check(NAME, Ok(format!("asks for {model}; the ModelAPI offers {offers}")));
    }
    let text = format!("asks for {model}, and the ModelAPI offers {offers}");
    check(NAME, Err((text, "add it to spec.proxyConfig.models, or ask for one that is offered".to_owned())))
}

fn of_model_api(facts: &Facts, identity: &Identity, checks: &mut Vec<Check>) -> Seen {
    let looked = read::model_api(&facts.object);
    let offers = looked.value.proxy.iter().filter(|_| looked.value.mode == Mode::Proxy).flat_map(|proxy| &proxy.offers);
    checks.extend(offers.map(|offer| check("model", Ok(offered(offer)))));
    let port = if looked.value.mode == Mode::Hosted { PORT_OLLAMA } else { PORT };
    Seen::of(looked, (port, true), |api| apis::compose(identity, api, &facts.settings))
}

/// A model of `spec.models` in one line.
fn offered(offer: &Offer) -> String {
    let mut text = offer.name.clone();
    let asked = [
        offer.model.as_ref().map(|model| format!("is {model}")),
        offer.provider.as_ref().map(|one| format!("of {one}")),
    ];
    for words in asked.into_iter().flatten() {
        text = format!("{text} {words}");
    }
    if let Some(Budget { limit, period }) = &offer.budget {
        text = format!("{text}; may cost {} US dollars in {period}, as each Pod counts", limit.shown());
    }
    match &*offer.fallbacks {
        [] => text,
        others => format!("{text}; while it is refused {} answers", others.join(", then ")),
    }
}

fn of_mcp_server(facts: &Facts, identity: &Identity, checks: &mut Vec<Check>) -> Seen {
    const NAME: &str = "runtime";
    let looked = read::mcp_server(&facts.object);
    let old = [Alias::ToolsText, Alias::ToolsString, Alias::ToolsSecret].into_iter().any(|alias| looked.uses(alias));
    let (place, text) = &facts.registry;
    let registry = match text {
        Some(Some(text)) => Registry::read(text),
        Some(None) => Err(RuntimeFault::NoKey),
        None => Err(RuntimeFault::NoRegistry(place.clone())),
    };
    let listed = || format!("ConfigMap {} in namespace {place}, key runtimes.yaml", keys::CONFIG_MAP_MCP_RUNTIMES);
    let own_image = old && facts.settings.image_mcp_server.is_some();
    checks.push(match &looked.value.runtime {
        Runtime::Custom => check(NAME, Ok("custom: the image of spec.container".to_owned())),
        Runtime::Package(package) => {
            check(NAME, Ok(format!("package {package}: installed when the Pod starts, then run")))
        }
        Runtime::Registered(name) if own_image => {
            check(NAME, Ok(format!("{name}: images.kaosMcpServer of the platform file")))
        }
        Runtime::Registered(name) => check(
            NAME,
            match registry.as_ref().map_err(Clone::clone).and_then(|registry| registry.runtime(name)) {
                Ok(runtime) => match (&looked.value.container.image, &runtime.image) {
                    (Some(image), _) => Ok(format!("{name} runs image {image} (spec.container.image)")),
                    (None, Some(image)) => Ok(format!("{name} runs image {image} ({})", listed())),
                    (None, None) => Err((
                        format!("{name} names no image"),
                        format!("name one in spec.container.image, or correct {}", listed()),
                    )),
                },
                Err(RuntimeFault::Unknown(fault)) => {
                    let known = registry.iter().flat_map(Registry::names).collect::<Vec<_>>().join(", ");
                    Err((format!("{fault} is not listed"), format!("name one of {known}, or add it to {}", listed())))
                }
                Err(fault) => Err((fault.to_string(), format!("correct {}", listed()))),
            },
        ),
    });
    Seen::of(looked, (PORT, true), |server| tools::compose(identity, (server, old), &registry, &facts.settings))
}

/// An object is controlled by what is explained.
fn is_owned(object: &Value, by: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.into_iter().any(|owner| owner["controller"] == true && owner["uid"] == by["metadata"]["uid"])
}

fn deployment(facts: &Facts, role: Role, composed: Option<&Composed>) -> Check {
    const NAME: &str = "Deployment";
    let called = role.object(text(&facts.object, "/metadata/name"));
    let namespace = text(&facts.object, "/metadata/namespace");
    let Some(there) = &facts.deployment else {
        return unknown(NAME, &format!("{called} does not exist yet"));
    };
    if !is_owned(there, &facts.object) {
        let seen = format!("{called} is not this object's and is left alone");
        return check(NAME, Err((seen, "delete or rename it, or give this object another name".to_owned())));
    }
    let count = |pointer: &str| there.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let (ready, wanted) = (count("/status/readyReplicas"), there["spec"]["replicas"].as_i64().unwrap_or(1));
    let hash =
        |template: &Value| template.pointer("/metadata/annotations")?.get(ANNOTATION_HASH)?.as_str().map(str::to_owned);
    let same = composed.is_none_or(|composed| {
        hash(&there["spec"]["template"]).as_ref() == composed.request.pod_annotations.get(ANNOTATION_HASH)
    });
    let behind = if same { "" } else { "; its template is not what is wanted now" };
    let text = format!("{called}: {ready} of {wanted} Pods ready{behind}");
    match (ready > 0, wanted) {
        (true, _) => check(NAME, Ok(text)),
        (false, 0) => {
            check(NAME, Err((text, format!("kubectl -n {namespace} scale deployment/{called} --replicas=1"))))
        }
        (false, _) => check(
            NAME,
            Err((text, format!("kubectl -n {namespace} describe pods shows why, and so does drawbridge status"))),
        ),
    }
}

fn service(facts: &Facts, role: Role, seen: &Seen) -> Option<Check> {
    const NAME: &str = "Service";
    let called = role.object(text(&facts.object, "/metadata/name"));
    match &facts.service {
        Some(there) if !is_owned(there, &facts.object) => {
            let seen = format!("{called} is not this object's and is left alone");
            Some(check(NAME, Err((seen, "delete or rename it, or give this object another name".to_owned()))))
        }
        Some(_) => Some(check(NAME, Ok(format!("{called}, port {}", seen.port)))),
        None if !seen.exposed => Some(check(NAME, Ok("none: spec.agentNetwork.expose is false".to_owned()))),
        None => Some(unknown(NAME, &format!("{called} does not exist yet"))),
    }
}

fn condition<'o>(object: &'o Value, kind: &str) -> Option<&'o Value> {
    let all = object.pointer("/status/conditions").and_then(Value::as_array)?;
    all.iter().find(|one| one["type"] == kind)
}

fn route(facts: &Facts, role: Role, exposed: bool) -> Option<Check> {
    const NAME: &str = "route";
    let there = facts.route.as_ref()?;
    let (namespace, name) = (text(&facts.object, "/metadata/namespace"), text(&facts.object, "/metadata/name"));
    if !exposed {
        return Some(check(NAME, Ok("none: spec.agentNetwork.expose is false".to_owned())));
    }
    if !facts.routes_served {
        let seen = "kaos.gateway.enabled is true, and the API server does not serve HTTPRoutes".to_owned();
        return Some(check(NAME, Err((seen, "install Gateway API, or set kaos.gateway.enabled to false".to_owned()))));
    }
    let gateway = &facts.settings.gateway;
    let place = gateway.namespace.as_deref().unwrap_or(&facts.operator);
    let leads = format!("{} through Gateway {place}/{}", role.path(namespace, name), gateway.name);
    if there.is_none() {
        return Some(unknown(NAME, &format!("HTTPRoute {} does not exist yet: {leads}", role.route(name))));
    }
    let said = condition(&facts.object, "RouteAccepted");
    let words = said.map(|said| format!(": {}", text(said, "/message"))).unwrap_or_default();
    Some(match said.map(|said| text(said, "/status")) {
        Some("True") => check(NAME, Ok(leads)),
        Some("False") => {
            let remedy = format!("kubectl -n {namespace} describe httproute {}", role.route(name));
            check(NAME, Err((format!("{leads}{words}"), remedy)))
        }
        _ => unknown(NAME, &format!("{leads}{words}")),
    })
}

/// What the status says besides.
fn conditions(facts: &Facts) -> Vec<Check> {
    let told = |kind: &str| condition(&facts.object, kind).filter(|one| text(one, "/status") == "True");
    let mut checks = Vec::new();
    if let Some(open) = told("ProxyOpen") {
        let remedy = "set kaos.restrictModelAPIs in the platform file, or give LiteLLM a master key";
        checks.push(Check {
            name: "proxy",
            state: State::Unknown,
            text: text(open, "/message").to_owned(),
            remedy: Some(remedy.to_owned()),
        });
    }
    if let Some(pending) = told("TakeoverPending") {
        checks.push(unknown("takeover", text(pending, "/message")));
    }
    if let Some(stalled) = told("Stalled") {
        let words = format!("{}: {}", text(stalled, "/reason"), text(stalled, "/message"));
        checks.push(check(
            "rollout",
            Err((words, "the message of the condition says what; drawbridge status shows what Pods lack".to_owned())),
        ));
    }
    // What only says once more why it is not ready stands above.
    if let Some(goes_on) =
        told("Reconciling").filter(|one| text(one, "/message") != text(&facts.object, "/status/message"))
    {
        checks.push(unknown("rollout", text(goes_on, "/message")));
    }
    for kind in ["ReferencesPending", "ReferencesUnfollowed"] {
        checks.extend(told(kind).map(|one| unknown("references", text(one, "/message"))));
    }
    checks.extend(restriction(facts));
    checks
}

/// That others may reach a ModelAPI than those that name it, or not all of those, though the platform restricts it.
fn restriction(facts: &Facts) -> Option<Check> {
    const NAME: &str = "restriction";
    let said = condition(&facts.object, "Restricted")?;
    let words = text(said, "/message");
    Some(match text(said, "/status") {
        "False" => {
            check(NAME, Err((words.to_owned(), "do what it says; the policy is then made by itself".to_owned())))
        }
        _ => unknown(NAME, words),
    })
}

/// Which tools a server offers, where it is asked.
fn offered_tools(facts: &Facts, role: Role) -> Vec<Check> {
    const NAME: &str = "tools";
    if role != Role::McpServer || facts.offline {
        return Vec::new();
    }
    if !facts.settings.tool_discovery {
        return vec![unknown(NAME, "not asked for: kaos.toolDiscovery of the platform file is not true")];
    }
    let mut checks = Vec::new();
    match facts.object.pointer("/status/availableTools").and_then(Value::as_array) {
        Some(names) if names.is_empty() => checks.push(check(NAME, Ok("none".to_owned()))),
        Some(names) => {
            let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
            checks.push(check(NAME, Ok(printable(&names.join(", "), 4096))));
        }
        None => checks.push(unknown(NAME, "it has not said yet which tools it offers")),
    }
    let problem = text(&facts.object, "/status/toolDiscovery/message");
    if !problem.is_empty() {
        checks.push(unknown(NAME, &format!("the list is not newer, or not whole: {}", printable(problem, 600))));
    }
    checks
}

/// Whether its Pods get sidecars, and AgentRuntimes that mean it by a wrong name.
fn enrolment(facts: &Facts, role: Role) -> Vec<Check> {
    const NAME: &str = "enrolment";
    let name = text(&facts.object, "/metadata/name");
    let made = role.object(name);
    let mut checks = Vec::new();
    let said = label(&facts.object, keys::LABEL_TYPE);
    let enrols = said.is_none_or(|value| AgentType::ALL.into_iter().any(|known| known.as_str() == value));
    let mut by = said.map(|value| format!("label {}={value}", keys::LABEL_TYPE));
    for runtime in &facts.agent_runtimes {
        let target = |key: &str| text(runtime, &format!("/spec/targetRef/{key}"));
        let called = text(runtime, "/metadata/name");
        if target("kind") == "Deployment" && target("name") == made {
            by = Some(format!("AgentRuntime {called}"));
        } else if target("apiVersion").starts_with(keys::GROUP_KAOS)
            && target("kind") == role.kind()
            && target("name") == name
        {
            let seen = format!("AgentRuntime {called} points at the {} itself, which makes no Pods", role.kind());
            let remedy = format!("point spec.targetRef of {called} at Deployment {made} (apps/v1)");
            checks.push(check(NAME, Err((seen, remedy))));
        }
    }
    if let Some(value) = said.filter(|_| !enrols) {
        // It comes onto the Pods, and an AgentRuntime leaves alone what somebody else wrote there.
        let seen = format!("label {}={value} enrols nothing", keys::LABEL_TYPE);
        checks.push(check(NAME, Err((seen, "write agent or tool, in small letters".to_owned()))));
    } else if let Some(by) = by {
        checks.push(check(NAME, Ok(format!("{by}; drawbridge explain deployment/{made} shows what its Pods get"))));
    }
    checks
}

/// The environment of the container as it is made, each variable with the field that it came from.
fn environment(composed: &Composed, object: &Value, (old, role): (&[OldSpelling], Role)) -> Vec<Variable> {
    let entries = composed.request.pod_template.pointer("/spec/containers/0/env").and_then(Value::as_array);
    let patch = format!("spec.podSpec.containers[name={}].env", role.container());
    let one = |entry: &Value| {
        let name = text(entry, "/name").to_owned();
        let made = composed.variables.iter().find(|made| made.name == name && made.entry == *entry);
        let from = made.map_or_else(|| patch.clone(), |made| origin::field(&made.from, object, old));
        Variable { value: origin::value(entry), name, from }
    };
    entries.into_iter().flatten().map(one).collect()
}

fn objects(facts: &Facts, role: Role, name: &str, (composed, exposed): (&Composed, bool)) -> Vec<String> {
    let made = role.object(name);
    let mut all = vec![format!("Deployment {made}")];
    if exposed {
        all.push(format!("Service {made}"));
    }
    if composed.config.is_some() {
        all.push(format!("ConfigMap {}", config_map(name)));
    }
    if facts.route.is_some() && facts.routes_served && exposed {
        all.push(format!("HTTPRoute {}", role.route(name)));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Facts, Role, State, enrolment};

    #[test]
    fn only_agent_and_tool_enrol() {
        let runtime =
            json!({"metadata": {"name": "r"}, "spec": {"targetRef": {"kind": "Deployment", "name": "agent-clerk"}}});
        for (value, runtimes, enrols) in [
            ("agent", Vec::new(), true),
            ("tool", Vec::new(), true),
            ("agnet", Vec::new(), false),
            ("Agent", Vec::new(), false),
            ("agnet", vec![runtime], false),
        ] {
            let object =
                json!({"metadata": {"name": "clerk", "namespace": "shop", "labels": {"kagenti.io/type": value}}});
            let facts = Facts { object, agent_runtimes: runtimes, ..Facts::default() };
            let checks = enrolment(&facts, Role::Agent);
            let [check] = &checks[..] else { panic!("{value}: one answer") };
            assert_eq!(check.state == State::Ok, enrols, "{value}: {}", check.text);
            assert_eq!(check.text.contains("enrols nothing"), !enrols, "{value}: {}", check.text);
        }
    }
}
