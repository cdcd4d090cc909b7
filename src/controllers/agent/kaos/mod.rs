//! Agents, ModelAPIs and MCPServers of KAOS, on the frame of [`super`].
//!
//! In: an object, everything of its names, and the objects that it names. Out: one Deployment and one Service, the configuration of a proxy,
//! a route where there is a Gateway, and its status. Promises: those of the frame; addresses are computed, never awaited, so a dependency that
//! becomes ready causes no second rollout; what is not there holds back creation only; agents that name each other wait for nobody; a
//! dependency that flickers is not written; what the Go operator made runs on as it is until something else is wanted of it.

mod look;
mod status;
mod takeover;
mod wiring;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

pub(in crate::controllers::agent) use look::Look;

use super::claim::{Claim, Claims};
use super::face::Face;
use super::image::Image;
use super::plan::{all, concerned, planned};
use super::subject::Subject;
use crate::api::findings::Findings;
use crate::config::namesakes;
use crate::controllers::agent::memory::{Agents, Context, Plan};
use crate::controllers::scaffold::plan::{Name, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind, Store};

/// The name of the controller of the Agents.
const AGENT_NAME: Name = Name::new("kaos-agent");
/// The name of the controller of the ModelAPIs.
const MODEL_API_NAME: Name = Name::new("model-api");
/// The name of the controller of the MCPServers.
const MCP_SERVER_NAME: Name = Name::new("mcp-server");

/// The row of the Agents.
pub const AGENT_ROW: Row<Agents> = Row {
    controller: AGENT_NAME,
    touched: |store, own, kind, key| {
        let mut items = touched(store, (kind, key), &AGENT);
        if matches!(kind, Kind::KaosAgent | Kind::ModelApi | Kind::McpServer) {
            items.extend(wiring::stirred(store, own, kind, key));
        }
        items
    },
    of_namespace: |store, namespace| all(store, namespace, &AGENT),
    plan: |cx| alone(cx, &AGENT),
};

/// The row of the ModelAPIs.
pub const MODEL_API_ROW: Row<Agents> = Row {
    controller: MODEL_API_NAME,
    touched: |store, own, kind, key| {
        if kind == Kind::KaosAgent {
            return wiring::restricted(store, own, key);
        }
        touched(store, (kind, key), &MODEL_API)
    },
    of_namespace: |store, namespace| all(store, namespace, &MODEL_API),
    plan: |cx| alone(cx, &MODEL_API),
};

/// The row of the MCPServers.
pub const MCP_SERVER_ROW: Row<Agents> = Row {
    controller: MCP_SERVER_NAME,
    touched: |store, _, kind, key| {
        if kind == Kind::ConfigMap && is_registry(store, key) {
            // Every server's runtime may be another.
            return store.namespaces().flat_map(|namespace| all(store, namespace, &MCP_SERVER)).collect();
        }
        touched(store, (kind, key), &MCP_SERVER)
    },
    of_namespace: |store, namespace| all(store, namespace, &MCP_SERVER),
    plan: |cx| alone(cx, &MCP_SERVER),
};

static AGENT: Face = Face {
    others: &[(Kind::HttpRoute, "agent-")],
    ..face((Kind::KaosAgent, AGENT_NAME), keys::FINALIZER_KAOS_AGENT, look::agent)
};
static MODEL_API: Face = Face {
    others: &[
        (Kind::ConfigMap, "litellm-config-"),
        (Kind::NetworkPolicy, keys::PREFIX_MODEL_API),
        (Kind::HttpRoute, keys::PREFIX_MODEL_API),
    ],
    ..face((Kind::ModelApi, MODEL_API_NAME), keys::FINALIZER_MODEL_API, look::model_api)
};
static MCP_SERVER: Face = Face {
    others: &[(Kind::HttpRoute, "mcp-")],
    ..face((Kind::McpServer, MCP_SERVER_NAME), keys::FINALIZER_MCP_SERVER, look::mcp_server)
};

const fn face((kind, controller): (Kind, Name), finalizer: &'static str, look: fn(&Subject<'_>) -> Look) -> Face {
    Face {
        is_served: |_| true,
        kind,
        controller,
        prefix: namesakes::prefix(kind),
        others: &[],
        look: Some(look),
        finalizer,
        judge: |subject| subject.look.as_ref().map_or_else(Findings::default, |look| look.findings.clone()),
        image,
        request: |subject, _| {
            let composed = subject.look.as_ref().and_then(|look| look.composed.as_ref());
            composed.expect("an image is told only of what was composed").request.clone()
        },
        secrets,
        keeps: |_, _| false,
        inherits: takeover::inherits,
        status: status::update,
        leaves: takeover::left,
        collected: true,
        service_remedy: "delete or rename it, or give this object another name",
    }
}

/// How often an object is looked at again while that operator holds its Lease: of one in a namespace that only the settings name nobody tells.
const HELD: Duration = Duration::from_secs(60);

/// What to do about an object, once the operator that was here before does not write any more (ruling 20). What is being deleted waits for
/// nobody: whoever takes our finalizer off first, it is off.
fn alone(cx: Context<'_>, face: &'static Face) -> Plan {
    let Key { namespace, name } = cx.key;
    let deleting = cx.store.custom(face.kind, namespace, name).is_some_and(|found| found.seen.deleting);
    let believed = cx.facts.platform.kaos().believed(cx.store.operator_namespace());
    match cx.store.held_by_the_operator_before(cx.now, &believed).filter(|_| !deleting) {
        Some(left) => Plan::later(left.min(HELD)),
        None => planned(cx, face),
    }
}

/// The objects of that face that a change may concern, but for what they name.
fn touched(store: &Store, (kind, key): (Kind, &Key), face: &Face) -> Vec<Key> {
    // A Lease that is renewed says nothing new; one that is let go, that everything may begin.
    if kind == Kind::Lease {
        let known = BTreeSet::from([keys::KAOS_NAMESPACE, store.operator_namespace(), store.registry_namespace()]);
        let free = known.contains(&*key.namespace) && !store.names_the_operator_before(&known);
        let namespaces = store.namespaces().filter(|_| free);
        return namespaces.flat_map(|namespace| all(store, namespace, face)).collect();
    }
    let prefix = match kind {
        Kind::Deployment | Kind::Service => Some(face.prefix),
        kind => face.others.iter().find(|(other, _)| *other == kind).map(|(_, prefix)| *prefix),
    };
    match prefix {
        Some(prefix) => {
            let name = key.name.strip_prefix(prefix);
            let found = name.and_then(|name| store.custom(face.kind, &key.namespace, name));
            found.map(|found| Key::new(&key.namespace, found.name)).into_iter().collect()
        }
        None if kind == Kind::AgentRuntime => {
            let runtime = store.agent_runtime(&key.namespace, &key.name);
            let target = runtime.and_then(|runtime| runtime.seen.target.clone());
            let name = target.as_ref().and_then(|target| target.name.strip_prefix(face.prefix));
            let found = name.and_then(|name| store.custom(face.kind, &key.namespace, name));
            found.map(|found| Key::new(&key.namespace, found.name)).into_iter().collect()
        }
        None if kind == face.kind || kind == Kind::Namespace => concerned(store, (kind, key), face),
        None => Vec::new(),
    }
}

/// Whether a ConfigMap is the registry of tool runtimes.
fn is_registry(store: &Store, key: &Key) -> bool {
    *key.name == *keys::CONFIG_MAP_MCP_RUNTIMES && *key.namespace == *store.registry_namespace()
}

fn image(subject: &Subject<'_>, claims: &Claims<'_>) -> Image {
    let none = |reason, message: &str| Image { runs: None, reason, message: message.to_owned(), build: None };
    let Some(look) = &subject.look else { return none(Reason::InvalidSpec, "its state is not known") };
    if let Some(why) = &look.failed {
        return none(why.0, &why.1);
    }
    // What holds back holds back creation only.
    if let (Some((reason, message)), Claim::Absent) = (&look.waits, claims.deployment) {
        return none(*reason, message);
    }
    match &look.composed {
        Some(composed) => Image {
            runs: Some(composed.request.image.clone().unwrap_or_default()),
            reason: Reason::ImageAvailable,
            message: String::new(),
            build: None,
        },
        None => none(Reason::InvalidSpec, "it cannot be read"),
    }
}

/// The Secrets that an object refers to.
fn secrets(object: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Some(spec) = object.get("spec") {
        collect(spec, &mut names);
    }
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    let named = |name: Option<&Value>| name.and_then(Value::as_str).map(str::to_owned);
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match key.as_str() {
                    "secretKeyRef" | "fromSecretKeyRef" | "secretRef" => names.extend(named(member.get("name"))),
                    "secretName" => names.extend(named(Some(member))),
                    "imagePullSecrets" => {
                        let all = member.as_array().into_iter().flatten();
                        names.extend(all.filter_map(|one| named(one.get("name"))));
                    }
                    _ => collect(member, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}
