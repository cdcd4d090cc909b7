//! What an Agent of KAOS is wired to, as what its Pods reach under enforcement.
//!
//! In: the workload, the store. Out: Services of its namespace, by the names that the Agent's own variables have, and where its traces go: where the
//! Agent says, or in the tier of administrators where the platform says.
//! Promises: the same fields that make its environment open its way, so that nobody repeats them in `cards.restrictiveEgress`; a name that
//! nothing has opens nothing; of a list no more is opened than stands in the environment; a workload that no Agent of KAOS controls gets nothing.

use serde_json::Value;

use crate::api::kaos_tools::MOST_ITEMS;
use crate::config::trust::{CardPeer, PeerWhom};
use crate::controllers::network_policy::memory::Context;
use crate::store::objects::{CustomRef, WorkloadRef};
use crate::store::{Key, Kind, Store};
use crate::workloads::kaos::names::{PORT, PORT_OLLAMA, Role};

/// The workload that runs an Agent of that name.
pub(super) fn workload_of(agent: &str) -> String {
    Role::Agent.object(agent)
}

/// Whom the Agent behind a workload is wired to.
pub(super) fn wired(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<CardPeer> {
    links(cx, workload).into_iter().map(|(_, peer)| peer).collect()
}

/// The same, with the platform's collector in place of one that the Agent names itself: nobody of those is outside of its namespace by its own word.
pub(super) fn wired_by_platform(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<CardPeer> {
    found(cx, workload, |_| None).into_iter().map(|(_, peer)| peer).collect()
}

/// The Agent behind a workload: the one that controls it.
pub(super) fn agent_of<'a>(store: &'a Store, namespace: &str, workload: &WorkloadRef<'_>) -> Option<CustomRef<'a>> {
    let name = workload.name.strip_prefix(Role::Agent.prefix())?;
    let owner = workload.seen.controller.as_deref()?;
    store.custom(Kind::KaosAgent, namespace, name).filter(|agent| owner.uid == agent.uid)
}

/// The names of the Agents that an Agent calls.
pub(super) fn called(spec: &Value) -> impl Iterator<Item = &str> {
    let list = spec.pointer("/agentNetwork/access").and_then(Value::as_array).into_iter().flatten();
    list.take(MOST_ITEMS).filter_map(Value::as_str)
}

/// Where an Agent of that name is called.
pub(super) fn peer_of(namespace: &str, agent: &str) -> CardPeer {
    let (namespace, name) = (namespace.to_owned(), Role::Agent.object(agent));
    CardPeer { whom: PeerWhom::Service { namespace, name }, ports: vec![PORT] }
}

/// The same, each with the member of the Agent's `spec` that names it.
pub(super) fn links(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<(&'static str, CardPeer)> {
    found(cx, workload, |spec| spec.pointer("/config/telemetry/endpoint").and_then(Value::as_str))
}

/// `collector`: the one that counts of those that the Agent names.
fn found(
    cx: &Context<'_>,
    workload: &WorkloadRef<'_>,
    collector: fn(&Value) -> Option<&str>,
) -> Vec<(&'static str, CardPeer)> {
    let Key { namespace, .. } = cx.key;
    let Some(agent) = agent_of(cx.store, namespace, workload) else { return Vec::new() };
    let spec = &*agent.seen.spec;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
    let names = |pointer: &str| {
        let list = spec.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.take(MOST_ITEMS).filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let one = |role: Role, name: &str, ports: &[u16]| CardPeer {
        whom: PeerWhom::Service { namespace: namespace.to_string(), name: role.object(name) },
        ports: ports.to_vec(),
    };
    let api = text("/modelAPI").into_iter().map(|name| ("modelAPI", one(Role::ModelApi, name, &[PORT, PORT_OLLAMA])));
    let tools = names("/mcpServers").into_iter().map(|name| ("mcpServers", one(Role::McpServer, name, &[PORT])));
    let peers = called(spec).map(|name| ("agentNetwork.access", peer_of(namespace, name)));
    let platform = cx.facts.platform.kaos();
    let own = crate::api::kaos_tools::shape::Telemetry {
        enabled: spec.pointer("/config/telemetry/enabled").and_then(Value::as_bool).unwrap_or(false),
        // An empty one is none, as in the environment: the platform's counts.
        endpoint: collector(spec).filter(|url| !url.is_empty()).map(str::to_owned),
    };
    let says = spec.pointer("/config/telemetry").is_some_and(Value::is_object);
    let traces = platform.telemetry.effective(says.then_some(&own)).flatten();
    let traces = traces.and_then(|url| super::facts::of_url(url, namespace));
    let traces = traces.map(|peer| ("config.telemetry", peer));
    api.chain(tools).chain(peers).chain(traces).collect()
}
