//! Whom a verified agent names, and who names it, where only that is open (`cards.verifiedPeers: declared`).
//!
//! In: the agent's workload; ConfigMap `authproxy-routes` of its namespace and of the enabled ones, links of KAOS, its AgentRuntime, Services. Out: peers, each with the words of what
//! declares it, and what was declared and opens nobody. Promises: a namespace's own word opens the ways out of its own agents alone; another namespace is
//! let in only while it has `kagenti-enabled: "true"`, which no tenant can set, and its Pods only while they are verified; what names no place that is known stays closed and is told.

use std::collections::BTreeMap;

use serde_json::Value;

use super::facts::peer;
use super::{kaos, plan};
use crate::api::routes::{Host, Routes, Whom as At};
use crate::config::trust::{CardPeer, PeerWhom};
use crate::controllers::network_policy::memory::Context;
use crate::controllers::scaffold::plan::Op;
use crate::domain::digest::of_bytes;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::policy::desired::{self, Declaration, Declared, Peer, Whom};
use crate::store::objects::{PolicyRef, WorkloadRef};
use crate::store::{Kept, Key, Kind, Store};

/// The ports of an address for which none is written: those of HTTP.
const HTTP: [u16; 2] = [80, 443];
/// Sentences that an Event has room for.
const TOLD: usize = 4;

/// What was found about an agent.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) declared: Declared,
    /// What opens nobody, in sentences without a full stop.
    pub(super) left: Vec<String>,
}

/// Whom the workload names, and who names it.
pub(super) fn of(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Found {
    let mut found = Found::default();
    found.routes(cx);
    found.runtime(cx, workload);
    let agent = kaos::agent_of(cx.store, &cx.key.namespace, workload);
    for (member, wanted) in kaos::links(cx, workload) {
        let by = agent.map_or_else(String::new, |agent| format!("{member} of Agent {} of KAOS", agent.name));
        // What does not exist is told at the Agent.
        found.declared.egress.extend(peer(cx.store, &wanted).map(|peer| Declaration { peer, by }));
    }
    found.declared.ingress.extend(by_routes(cx, workload));
    found.declared.ingress.extend(by_links(cx, workload));
    found
}

impl Found {
    fn routes(&mut self, cx: &Context<'_>) {
        let namespace = &cx.key.namespace;
        let Some(routes) = routes(cx.store, namespace) else { return };
        let hosts = routes.hosts.iter().map(|host| (host, "route"));
        for (host, what) in hosts.chain(routes.tokens.iter().map(|host| (host, "token_url at"))) {
            self.place(cx, host, format!("{what} {host} in ConfigMap {}", keys::CONFIG_MAP_ROUTES));
        }
        let of_it = routes.left.iter().map(|left| format!("ConfigMap {}: {left}", keys::CONFIG_MAP_ROUTES));
        self.left.extend(of_it);
    }

    fn runtime(&mut self, cx: &Context<'_>, workload: &WorkloadRef<'_>) {
        let Some(runtime) = workload.winner else { return };
        let Some(endpoint) = runtime.seen.input.trace.endpoint.as_deref() else { return };
        let by = format!("trace.endpoint of AgentRuntime {}", runtime.name);
        match Host::of_url(endpoint) {
            Ok(Some(host)) => self.place(cx, &host, by),
            Ok(None) => {}
            Err(why) => self.left.push(format!("the host in {by} {}", why.sentence())),
        }
    }

    fn place(&mut self, cx: &Context<'_>, host: &Host, by: String) {
        match peer(cx.store, &card_peer(host, &cx.key.namespace)) {
            Some(peer) => self.declared.egress.push(Declaration { peer, by }),
            None => self.left.push(format!("{by}: no Service of that name that has Pods and that port is known")),
        }
    }
}

/// Whom the agents of a namespace call, as its ConfigMap says.
fn routes<'a>(store: &'a Store, namespace: &str) -> Option<&'a Routes> {
    store.config_map(namespace, keys::CONFIG_MAP_ROUTES)?.0.routes.as_deref()
}

/// A place that a namespace names.
pub(super) fn card_peer(host: &Host, by: &str) -> CardPeer {
    match &host.whom {
        At::Service { namespace, name } => CardPeer {
            whom: PeerWhom::Service {
                namespace: namespace.as_deref().unwrap_or(by).to_owned(),
                name: name.clone().into(),
            },
            ports: host.port.into_iter().collect(),
        },
        At::Address(address) => CardPeer {
            whom: PeerWhom::Block(desired::block(*address)),
            ports: host.port.map_or_else(|| HTTP.to_vec(), |port| vec![port]),
        },
    }
}

/// Verified agents of namespaces whose routes name the workload.
fn by_routes(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<Declaration> {
    let own = &cx.key.namespace;
    let mut found = Vec::new();
    for caller in cx.store.namespaces() {
        let is_own = caller == own;
        if !is_own && !is_enabled(cx.store, caller) {
            continue;
        }
        let Some(routes) = routes(cx.store, caller) else { continue };
        for host in &routes.hosts {
            let wanted = card_peer(host, caller);
            let PeerWhom::Service { namespace, name } = &wanted.whom else { continue };
            if **namespace != **own || !leads_to(cx.store, (own, name), workload) {
                continue;
            }
            let Some(Peer { ports, .. }) = peer(cx.store, &wanted) else { continue };
            let whom = Whom::Verified { namespace: (!is_own).then(|| caller.to_string()), labels: BTreeMap::new() };
            let whose = if is_own { String::new() } else { format!(" of namespace {caller}") };
            let by = format!("route {host} in ConfigMap {}{whose}", keys::CONFIG_MAP_ROUTES);
            found.push(Declaration { peer: Peer { whom, ports }, by });
        }
    }
    found
}

/// Agents of KAOS that name the one behind the workload.
fn by_links(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Vec<Declaration> {
    let namespace = &cx.key.namespace;
    let Some(agent) = kaos::agent_of(cx.store, namespace, workload) else { return Vec::new() };
    let Some(Peer { ports, .. }) = peer(cx.store, &kaos::peer_of(namespace, agent.name)) else { return Vec::new() };
    let one = |caller: &str| {
        let runs = cx.store.workload(Kind::Deployment, namespace, &kaos::workload_of(caller))?;
        let by = kaos::agent_of(cx.store, namespace, &runs).filter(|by| **by.name == *caller)?;
        let labels = labels_of(&runs.seen.selector.as_ref()?.value())?;
        let whom = Whom::Verified { namespace: None, labels };
        let by = format!("agentNetwork.access of Agent {} of KAOS", by.name);
        Some(Declaration { peer: Peer { whom, ports: ports.clone() }, by })
    };
    cx.store.wired_to(Kind::KaosAgent, namespace, agent.name).filter_map(|caller| one(caller.name)).collect()
}

/// The labels that a selector asks for; `None` of one that asks for more than labels.
fn labels_of(selector: &Value) -> Option<BTreeMap<String, String>> {
    let labels = selector.get("matchLabels")?.as_object().filter(|_| selector.get("matchExpressions").is_none())?;
    labels.iter().map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn is_enabled(store: &Store, namespace: &str) -> bool {
    let seen = store.namespace(namespace);
    seen.and_then(|seen| seen.labels.get(keys::LABEL_NAMESPACE_ENABLED)).is_some_and(|value| value == "true")
}

/// Whether a Service of the workload's namespace has its name, or selects by labels by which the workload does.
fn leads_to(store: &Store, (namespace, name): (&str, &str), workload: &WorkloadRef<'_>) -> bool {
    if **workload.name == *name {
        return true;
    }
    let Some(service) = store.service(namespace, name) else { return false };
    let own = workload.seen.selector.as_ref().map(Kept::value);
    let own = own.as_ref().and_then(|selector| selector.get("matchLabels"));
    let Some((wanted, own)) = service.seen.selector.as_ref().zip(own) else { return false };
    wanted.iter().all(|(key, value)| own.get(key).and_then(Value::as_str) == Some(value))
}

/// The policies of the agents that the routes of a namespace name in other namespaces: what is open to them follows from these.
pub(super) fn named_elsewhere(store: &Store, namespace: &str) -> Vec<Key> {
    let mut by_namespace: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for host in routes(store, namespace).into_iter().flat_map(|routes| routes.hosts.iter()) {
        if let At::Service { namespace: Some(other), name } = &host.whom
            && **other != *namespace
        {
            by_namespace.entry(other).or_default().push(name);
        }
    }
    let of_one = |(other, names): (&str, Vec<&str>)| {
        let agents = plan::agents(store, other);
        let named = agents.filter(|one| names.iter().any(|name| leads_to(store, (other, name), one)));
        named.map(|workload| plan::policy_key(other, &workload)).collect::<Vec<_>>()
    };
    by_namespace.into_iter().filter(|(other, _)| plan::has_ours(store, other)).flat_map(of_one).collect()
}

/// Says what is declared and opens nobody.
pub(super) fn told(cx: &Context<'_>, policy: &PolicyRef<'_>, left: &[String]) -> Option<Op> {
    if left.is_empty() {
        return None;
    }
    let more = left.len().saturating_sub(TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let message = format!(
        "some of what the agent declares opens nobody: {}{more}. What to do: name a Service or an address there, or allow it with a NetworkPolicy of your \
         own in namespace {}",
        left.iter().take(TOLD).map(String::as_str).collect::<Vec<_>>().join("; "),
        cx.key.namespace
    );
    // Of what else it is told anew.
    let since = of_bytes(left.join("\n").as_bytes()).to_string();
    Some(plan::report(cx, policy, Reason::DeclaredNotOpened, message, since))
}
