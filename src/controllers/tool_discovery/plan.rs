//! What to do about one MCPServer.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::question::{NAMES, Tools, ToolsOf};
use crate::controllers::scaffold::lane::{Ask, AskError, Fact, Facts};
use crate::controllers::scaffold::plan::{Asked, AskingRow, Context, Name, Op, Plan};
use crate::controllers::tool_discovery::memory::{Discovery, Note};
use crate::domain::reason::Reason;
use crate::store::objects::CustomRef;
use crate::store::{Key, Kind, Store};
use crate::workloads::kaos::names::{PORT, Role, STATUS_DISCOVERY, STATUS_TOOLS};

/// The controller's name.
pub const NAME: Name = Name::new("tool-discovery");

/// The controller's row. Its items are MCPServers.
pub const ROW: AskingRow<ToolsOf, Discovery> =
    AskingRow { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// How often each is asked.
const PERIOD: Duration = Duration::from_secs(300);
/// Time until one is asked again that could not be.
const AGAIN: Duration = Duration::from_secs(60);
/// So many times in a row, and it is said that there is no answer: a Pod that has just become ready may not listen yet.
const TOLD: u32 = 2;

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    match kind {
        Kind::Namespace => of_namespace(store, &key.name),
        Kind::McpServer => vec![key.clone()],
        Kind::Deployment => {
            let name = key.name.strip_prefix(Role::McpServer.prefix());
            name.map(|name| Key::new(&key.namespace, name)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.customs(Kind::McpServer, namespace).map(|server| Key::new(namespace, server.name)).collect()
}

fn plan(cx: Context<'_, Discovery>, facts: &Facts<ToolsOf>) -> Asked<ToolsOf, Note> {
    let nothing = (Plan::nothing(), Vec::new());
    let Key { namespace, name } = cx.key;
    if !cx.facts.platform.kaos().tool_discovery {
        return nothing;
    }
    let believed = cx.facts.platform.kaos().believed(cx.store.operator_namespace());
    if let Some(left) = cx.store.held_by_the_operator_before(cx.now, &believed) {
        return (Plan::later(left.min(AGAIN)), Vec::new());
    }
    let here = cx.store.namespace(namespace).is_some() && cx.facts.snapshot.namespace(namespace).is_some();
    let Some(server) = cx.store.custom(Kind::McpServer, namespace, name).filter(|_| here) else { return nothing };
    let ready = server.seen.status.get("ready").and_then(Value::as_bool) == Some(true);
    let Some(question) = question(&cx, &server).filter(|_| ready && !server.seen.deleting) else { return nothing };
    let other = ToolsOf { rolled: !question.rolled, ..question.clone() };
    let (began, next) = turn(cx.now, server.uid);
    let before = cx.note().and_then(|note| note.first);
    let known = facts.get(&question).or_else(|| facts.get(&other));
    // All at once at the beginning of a term would be a herd; what is listed already can wait for its turn.
    let listed = server.seen.status.get(STATUS_TOOLS).is_some();
    let first = before.unwrap_or(if listed && known.is_none() { next } else { cx.now });
    let note = Note { first: Some(first) };
    if cx.now < first {
        return (Plan { again: Some(first - cx.now), note, ..Plan::nothing() }, Vec::new());
    }
    let mut since = began;
    let mut again = next;
    let fact = facts.get(&question);
    if let Some(failed) = fact.filter(|fact| fact.value.is_err()) {
        again = again.min(failed.at + AGAIN).max(cx.now);
        if cx.now >= failed.at + AGAIN {
            since = since.max(failed.at + AGAIN);
            again = next;
        }
    }
    let mut asks = vec![Ask { question, since }];
    // While Pods come and go, what was answered before is not forgotten.
    if facts.get(&other).is_some() {
        asks.push(Ask { question: other, since: Duration::ZERO });
    }
    let ops = fact.and_then(|fact| update(&cx, &server, fact)).into_iter().collect();
    (Plan { ops, again: Some(again.saturating_sub(cx.now).max(Duration::from_millis(100))), note }, asks)
}

/// Whom to ask; nobody while it has no Deployment of its own.
fn question(cx: &Context<'_, Discovery>, server: &CustomRef<'_>) -> Option<ToolsOf> {
    let Key { namespace, name } = cx.key;
    let made = Role::McpServer.object(name);
    let deployment = cx.store.workload(Kind::Deployment, namespace, &made)?;
    let ours = deployment.seen.controller.as_ref().is_some_and(|owner| owner.uid == server.uid);
    if !ours || deployment.seen.deleting {
        return None;
    }
    let domain = &cx.facts.platform.kaos().cluster_domain;
    Some(ToolsOf {
        namespace: namespace.clone(),
        name: name.clone(),
        authority: format!("{made}.{namespace}.svc.{domain}:{PORT}").into(),
        deployment: deployment.uid.into(),
        generation: deployment.seen.rollout.generation,
        rolled: deployment.seen.rollout.is_complete(),
    })
}

/// When the present turn of a server began, and when the next one does: each has its own second of the period.
pub(super) fn turn(now: Duration, uid: &str) -> (Duration, Duration) {
    let mut hasher = DefaultHasher::new();
    uid.hash(&mut hasher);
    let offset = Duration::from_secs(hasher.finish() % PERIOD.as_secs());
    let passed = Duration::from_secs((now + offset).as_secs() % PERIOD.as_secs());
    let began = Duration::from_secs(now.as_secs()).saturating_sub(passed);
    (began, Duration::from_secs(now.as_secs()) + PERIOD - passed)
}

/// The write that makes the status say what was answered; none where it does.
fn update(cx: &Context<'_, Discovery>, server: &CustomRef<'_>, fact: &Fact<Tools>) -> Option<Op> {
    let mut wanted = Map::new();
    match &fact.value {
        Ok(tools) => {
            wanted.insert(STATUS_TOOLS.to_owned(), json!(tools.names));
            let problem = tools.more.then(|| {
                let text = format!("it offers more than {NAMES} tools; the first {NAMES} by name are listed");
                said(Reason::ToolsTruncated, &text)
            });
            wanted.insert(STATUS_DISCOVERY.to_owned(), problem.unwrap_or(Value::Null));
        }
        Err(_) if fact.failures < TOLD => return None,
        Err(AskError { reason, message, .. }) => {
            wanted.insert(STATUS_DISCOVERY.to_owned(), said(*reason, message));
        }
    }
    let status = &*server.seen.status;
    if wanted.iter().all(|(key, value)| status.get(key).unwrap_or(&Value::Null) == value) {
        return None;
    }
    let metadata = json!({"uid": server.uid, "resourceVersion": server.version.to_string()});
    let patch = json!({"metadata": metadata, "status": wanted});
    Some(Op::Status { kind: Kind::McpServer, key: cx.key.clone(), patch })
}

fn said(reason: Reason, message: &str) -> Value {
    json!({"reason": reason.code(), "message": message})
}
