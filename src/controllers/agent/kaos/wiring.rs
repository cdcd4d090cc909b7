//! What an Agent of KAOS names: whether it is there, and whether it is ready; pure.
//!
//! In: the store. Out: what is missing, and which Agents a change concerns. Promises: a look-up by name for each, never a list of all; while a
//! dependency flickers, the Agents that run with it are looked at once in [`HOLD`].

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::Value;

use crate::api::kaos_tools::MOST_ITEMS;
use crate::api::syntax::is_label_value;
use crate::controllers::agent::memory::Notes;
use crate::controllers::agent::note;
use crate::store::objects::CustomRef;
use crate::store::{CustomSeen, Key, Kind, Store};

/// How long a dependency has to be as it is before the status of what runs says so.
pub(super) const HOLD: Duration = Duration::from_secs(5);

/// An object that an Agent names.
pub(super) struct Named<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    /// `None`: there is none.
    pub(super) found: Option<CustomRef<'a>>,
}

impl Named<'_> {
    /// Its status says that it is ready.
    pub(super) fn is_ready(&self) -> bool {
        self.found.is_some_and(|found| is_ready(found.seen))
    }
}

/// Whether the status of an object says that it is ready.
pub(super) fn is_ready(seen: &CustomSeen) -> bool {
    !seen.deleting && seen.status.get("ready").and_then(Value::as_bool) == Some(true)
}

/// The ModelAPI and the MCPServers that an Agent of that spec names, in this order, each once.
pub(super) fn dependencies<'a>(store: &'a Store, namespace: &str, spec: &'a Value) -> Vec<Named<'a>> {
    let api = spec.get("modelAPI").and_then(Value::as_str).unwrap_or_default();
    let servers = spec.get("mcpServers").and_then(Value::as_array).into_iter().flatten().take(MOST_ITEMS);
    let mut known = BTreeSet::new();
    let servers = servers.filter_map(Value::as_str).filter(|name| known.insert(*name));
    let names = std::iter::once((Kind::ModelApi, api)).chain(servers.map(|name| (Kind::McpServer, name)));
    let named = |(kind, name)| Named { kind, name, found: store.custom(kind, namespace, name) };
    names.map(named).collect()
}

/// The peers that an Agent of that spec may call and that are there and exposed.
pub(super) fn peers<'a>(store: &'a Store, namespace: &str, spec: &'a Value) -> Vec<CustomRef<'a>> {
    let names = spec.pointer("/agentNetwork/access").and_then(Value::as_array).into_iter().flatten().take(MOST_ITEMS);
    let found = names.filter_map(Value::as_str).filter_map(|name| store.custom(Kind::KaosAgent, namespace, name));
    found.filter(|peer| !peer.seen.deleting && is_exposed(peer.seen)).collect()
}

/// Of one that is over a bound nothing is read: its status says whether it was.
fn is_exposed(seen: &CustomSeen) -> bool {
    match seen.over {
        Some(_) => seen.status.get("endpoint").is_some(),
        None => seen.spec.pointer("/agentNetwork/expose").and_then(Value::as_bool) != Some(false),
    }
}

/// Of what is there, and of what is written on what counts.
pub(super) fn digest(store: &Store, namespace: &str, spec: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for one in dependencies(store, namespace, spec) {
        let generation = one.found.filter(|_| one.kind == Kind::ModelApi).map(|found| found.seen.generation);
        (one.found.map(|found| found.uid), generation).hash(&mut hasher);
    }
    for peer in peers(store, namespace, spec) {
        peer.uid.hash(&mut hasher);
    }
    hasher.finish()
}

/// The Agents that name that object and that a change of it concerns.
pub(super) fn stirred(store: &Store, own: &Notes, kind: Kind, key: &Key) -> Vec<Key> {
    let agents = store.wired_to(kind, &key.namespace, &key.name);
    let stirred = agents.filter(|agent| stirs(store, own, &key.namespace, agent));
    stirred.map(|agent| Key::new(&key.namespace, agent.name)).collect()
}

/// The names of the Agents that ask a ModelAPI, but for those that no Pod can carry as a label.
pub(super) fn users<'a>(store: &'a Store, namespace: &str, api: &str) -> BTreeSet<&'a str> {
    let users = store.wired_to(Kind::ModelApi, namespace, api).filter(|agent| !agent.seen.deleting);
    users.map(|agent| &**agent.name).filter(|name| is_label_value(name)).collect()
}

/// An Agent of a namespace of which nothing is read, because it is over a bound: nobody knows which ModelAPI it asks.
pub(super) fn unread<'a>(store: &'a Store, namespace: &str) -> Option<&'a str> {
    let mut all = store.customs(Kind::KaosAgent, namespace);
    let unread = all.find(|agent| agent.seen.over.is_some() && !agent.seen.deleting);
    unread.map(|agent| &**agent.name)
}

/// What is remembered of them, and of whether there are more that nobody knows.
pub(super) fn of_users(users: &BTreeSet<&str>, unread: bool) -> note::Wiring {
    let mut hasher = DefaultHasher::new();
    (users, unread).hash(&mut hasher);
    note::Wiring { digest: hasher.finish(), ready: true, gated: false, unsettled: None }
}

/// The ModelAPIs of the namespace of an Agent that lets only theirs in, and whose Agents are others since. Nothing is remembered of those
/// that let everybody in.
pub(super) fn restricted(store: &Store, own: &Notes, agent: &Key) -> Vec<Key> {
    let namespace = &agent.namespace;
    let known = |api: CustomRef<'_>| {
        let key = Key::new(namespace, api.name);
        let wiring = own.of(&key).and_then(|note| note.wiring)?;
        Some((key, wiring))
    };
    let apis: Vec<_> = store.customs(Kind::ModelApi, namespace).filter_map(known).collect();
    let unread = !apis.is_empty() && unread(store, namespace).is_some();
    let others =
        apis.into_iter().filter(|(key, known)| *known != of_users(&users(store, namespace, &key.name), unread));
    others.map(|(key, _)| key).collect()
}

fn stirs(store: &Store, own: &Notes, namespace: &str, agent: &CustomRef<'_>) -> bool {
    let Some(known) = own.of(&Key::new(namespace, agent.name)).and_then(|note| note.wiring) else { return true };
    let spec = &agent.seen.spec;
    if known.gated || known.digest != digest(store, namespace, spec) {
        return true;
    }
    // It is looked at again as it is.
    if known.unsettled.is_some() {
        return false;
    }
    known.ready != dependencies(store, namespace, spec).iter().all(Named::is_ready)
}
