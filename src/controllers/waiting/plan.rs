//! Which workloads still wait although what they waited for is there, and which notes of ours are out of date.
//!
//! In: workloads with unmet Pods, their ServiceAccount, and where it is enforced the NetworkPolicy that cuts off agents and that it was told of; annotations of ours
//! on what makes Pods. Out: one annotation per workload and digest of these facts, which makes its controller look again at once instead of
//! after its own back-off (measured: 0.13 s instead of 74 s), and its removal once nothing waits any more. Promises: once all of them are
//! there, and once per digest, remembered in the workload itself for as long as it
//! waits; never in the first moments, in which the ordinary retries come (measured: after 0.05 s five times, then 0.4, 0.7 and 1.3 s);
//! what is over leaves nothing behind, nor do the copies that the Deployment controller makes of our annotations.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::admission::inject::needs;
use crate::controllers::parameters;
use crate::controllers::scaffold::plan::{Context, Name, Op, Plan, Row};
use crate::controllers::trust;
use crate::domain::digest::of_bytes;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;
use crate::store::objects::WorkloadRef;
use crate::store::{Key, Kind, Store};

/// How long the ordinary retries have first, where the workload says that its Pods are refused.
const REFUSED: Duration = Duration::from_millis(500);
/// The same for kinds that do not say so: all ordinary retries that follow quickly.
const MISSING: Duration = Duration::from_secs(3);
/// The kinds whose controllers make Pods themselves.
const KINDS: [Kind; 4] = [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job];

/// Hexadecimal digits of the digest of what was waited for.
const DIGITS: usize = 32;

/// Something that Pods wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fact {
    /// They do not.
    Unneeded,
    /// It is not there.
    Missing,
    /// It is there, under this uid, since then.
    There(Arc<str>, Duration),
}

/// The controller's name.
pub const NAME: Name = Name::new("waiting");

/// The controller's row. Its items are `<plural>/<name>` of a workload.
pub const ROW: Row =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

fn item(namespace: &str, kind: Kind, name: &str) -> Key {
    Key::new(namespace, &format!("{}/{name}", kind.plural()))
}

/// Whether it waits, or carries a note that somebody does or did.
fn concerns(workload: &WorkloadRef<'_>) -> bool {
    workload.seen.unmet || workload.seen.retried.is_some() || copied(workload)
}

/// A ReplicaSet has what its Deployment's controller copied from the Deployment.
fn copied(workload: &WorkloadRef<'_>) -> bool {
    workload.kind == Kind::ReplicaSet && workload.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_some()
}

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    if kind == Kind::ServiceAccount && *key.namespace == *store.operator_namespace() && &*key.name == keys::ARMED {
        return store.namespaces().flat_map(|namespace| behind_the_deny(store, namespace)).collect();
    }
    if kind == Kind::ServiceAccount {
        let users = store.users(&key.namespace, &key.name).filter(|user| user.seen.unmet);
        return users.map(|user| item(&key.namespace, user.kind, user.name)).collect();
    }
    if kind == Kind::NetworkPolicy {
        let is_deny = &*key.name == keys::DEFAULT_DENY;
        return if is_deny { behind_the_deny(store, &key.namespace) } else { Vec::new() };
    }
    if kind == Kind::Deployment {
        return copies_of(store, key);
    }
    let workload = store.workload(kind, &key.namespace, &key.name).filter(concerns);
    workload.map(|workload| item(&key.namespace, kind, workload.name)).into_iter().collect()
}

/// Those that wait where something cuts off.
fn behind_the_deny(store: &Store, namespace: &str) -> Vec<Key> {
    if store.network_policy(namespace, keys::DEFAULT_DENY).is_none() {
        return Vec::new();
    }
    let waiting = store.workloads(namespace).filter(|workload| workload.seen.unmet);
    waiting.map(|workload| item(namespace, workload.kind, workload.name)).collect()
}

/// The ReplicaSets that keep a copy of what is no longer on their Deployment. Asked of Deployments that are not enrolled: the last
/// change of theirs takes the entry off, and no change of the ReplicaSet need follow it.
fn copies_of(store: &Store, key: &Key) -> Vec<Key> {
    let Some(above) = store.workload(Kind::Deployment, &key.namespace, &key.name) else { return Vec::new() };
    if above.is_governed() || above.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_some() {
        return Vec::new();
    }
    store.children(&key.namespace, &above).filter(copied).map(|one| item(&key.namespace, one.kind, one.name)).collect()
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.workloads(namespace).filter(concerns).map(|workload| item(namespace, workload.kind, workload.name)).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Some((plural, name)) = cx.key.name.split_once('/') else { return Plan::nothing() };
    let Some(kind) = KINDS.into_iter().find(|kind| kind.plural() == plural) else { return Plan::nothing() };
    let workload = cx.store.workload(kind, &cx.key.namespace, name).filter(|workload| !workload.seen.deleting);
    let Some(workload) = workload else { return Plan::nothing() };
    waiting(&cx, &workload).unwrap_or_else(|| Plan::of(over(&cx, &workload).into_iter().collect()))
}

/// What is done for one that waits for something of ours; `None` for one that does not.
fn waiting(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Plan> {
    let (namespace, kind) = (&*cx.key.namespace, workload.kind);
    workload.seen.template.as_ref().filter(|_| workload.seen.unmet)?;
    let facts = match (account(cx, workload), cuts_off(cx, workload)) {
        (Fact::Unneeded, Fact::Unneeded) => return None,
        (account, cut) => [account, cut],
    };
    let there = facts.iter().filter_map(|fact| match fact {
        Fact::There(uid, arrived) => Some((&**uid, *arrived)),
        Fact::Unneeded | Fact::Missing => None,
    });
    let (uids, arrivals): (Vec<_>, Vec<_>) = there.unzip();
    if facts.contains(&Fact::Missing) {
        return Some(Plan::nothing());
    }
    let digest = &of_bytes(uids.join(" ").as_bytes())[..DIGITS];
    if workload.seen.retried.as_deref() == Some(digest) {
        return Some(Plan::nothing());
    }
    let arrived = arrivals.into_iter().max().unwrap_or_default();
    let (waited, grace) = (cx.now.saturating_sub(arrived), if kind == Kind::ReplicaSet { REFUSED } else { MISSING });
    if waited < grace {
        return Some(Plan::later(grace.saturating_sub(waited)));
    }
    let patch = json!({"metadata": {"uid": workload.uid, "annotations": {keys::ANNOTATION_RETRY: digest}}});
    Some(Plan::of(vec![Op::Merge { kind, key: Key::new(namespace, workload.name), patch }]))
}

/// The dedicated ServiceAccount of its Pods.
fn account(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Fact {
    let template = workload.seen.template.as_ref().map(|template| template.value());
    let needs = template
        .map(|template| needs(&cx.key.namespace, &workload.identity(), &template, &cx.facts.snapshot).service_account);
    let Some(name) = needs.flatten() else { return Fact::Unneeded };
    let account = cx.store.service_account(&cx.key.namespace, &name).filter(|(seen, _, _)| seen.is_dedicated());
    account.map_or(Fact::Missing, |(_, account, arrived)| Fact::There(account.uid.clone(), arrived))
}

/// What cuts off its Pods, where they have to prove first who they are.
fn cuts_off(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Fact {
    let is_agent = workload.seen.template.as_ref().and_then(|template| template.agent_type()) == Some("agent");
    let all = match trust::level(cx, &cx.key.namespace) {
        Some(TrustLevel::Enforced) if is_agent => false,
        Some(TrustLevel::EnforcedAll) => true,
        _ => return Fact::Unneeded,
    };
    // Until the API server's policy has been told, it refuses.
    if !parameters::is_told(cx.store, &cx.key.namespace, all) {
        return Fact::Missing;
    }
    let policy = cx.store.network_policy(&cx.key.namespace, keys::DEFAULT_DENY).filter(|policy| policy.seen.is_ours());
    let arrived = cx.store.arrived(Kind::NetworkPolicy, &cx.key.namespace, keys::DEFAULT_DENY);
    policy.zip(arrived).map_or(Fact::Missing, |(policy, arrived)| Fact::There(policy.uid.into(), arrived))
}

/// Takes off what is not about anything any more.
fn over(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Op> {
    let retry = workload.seen.retried.as_ref().map(|_| keys::ANNOTATION_RETRY);
    let owner = workload.seen.controller.as_deref().filter(|_| copied(workload));
    let above = owner.and_then(|owner| cx.store.root_of(&cx.key.namespace, owner));
    let standing = above.filter(|above| above.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_none());
    let copy = standing.map(|_| keys::ANNOTATION_ROLLED_FOR);
    let annotations: Map<String, Value> =
        retry.into_iter().chain(copy).map(|key| (key.to_owned(), Value::Null)).collect();
    if annotations.is_empty() {
        return None;
    }
    let patch = json!({"metadata": {"uid": workload.uid, "annotations": annotations}});
    Some(Op::Merge { kind: workload.kind, key: Key::new(&cx.key.namespace, workload.name), patch })
}
