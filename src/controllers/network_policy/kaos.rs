//! What an Agent of KAOS is wired to, as what its Pods reach under enforcement.
//!
//! In: the workload, the store. Out: Services of its namespace, by the names that the Agent's own variables have, and where its traces go.
//! Promises: the same fields that make its environment open its way, so that nobody repeats them in `cards.restrictiveEgress`; a name that
//! nothing has opens nothing; a workload that no Agent of KAOS controls gets nothing.

use serde_json::Value;

use crate::config::trust::{CardPeer, PeerWhom};
use crate::controllers::network_policy::memory::Context;
use crate::store::objects::WorkloadRef;
use crate::store::{Key, Kind};
use crate::workloads::kaos::names::{PORT, PORT_OLLAMA, Role};

/// The workload that runs an Agent of that name.
pub(super) fn workload_of(agent: &str) -> String {
    Role::Agent.object(agent)
}

/// Whom the Agent behind a workload is wired to.
pub(super) fn wired(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<CardPeer> {
    let Key { namespace, .. } = cx.key;
    let name = workload.name.strip_prefix(Role::Agent.prefix());
    let agent = name.and_then(|name| cx.store.custom(Kind::KaosAgent, namespace, name));
    let owner = workload.seen.controller.as_deref();
    let Some(agent) = agent.filter(|agent| owner.is_some_and(|owner| owner.uid == agent.uid)) else {
        return Vec::new();
    };
    let spec = &*agent.seen.spec;
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
    let names = |pointer: &str| {
        let list = spec.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).collect::<Vec<_>>()
    };
    let one = |role: Role, name: &str, ports: &[u16]| CardPeer {
        whom: PeerWhom::Service { namespace: namespace.to_string(), name: role.object(name) },
        ports: ports.to_vec(),
    };
    let api = text("/modelAPI").into_iter().map(|name| one(Role::ModelApi, name, &[PORT, PORT_OLLAMA]));
    let tools = names("/mcpServers").into_iter().map(|name| one(Role::McpServer, name, &[PORT]));
    let peers = names("/agentNetwork/access").into_iter().map(|name| one(Role::Agent, name, &[PORT]));
    let platform = cx.facts.platform.kaos();
    let own = crate::api::kaos_tools::shape::Telemetry {
        enabled: spec.pointer("/config/telemetry/enabled").and_then(Value::as_bool).unwrap_or(false),
        endpoint: text("/config/telemetry/endpoint").map(str::to_owned),
    };
    let says = spec.pointer("/config/telemetry").is_some_and(Value::is_object);
    let traces = platform.telemetry.effective(says.then_some(&own)).flatten().and_then(super::facts::of_url);
    api.chain(tools).chain(peers).chain(traces).collect()
}
