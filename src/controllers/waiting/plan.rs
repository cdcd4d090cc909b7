//! Which workloads still wait although the ServiceAccount they waited for is there, and which notes of ours are out of date.
//!
//! In: workloads with unmet Pods, their ServiceAccount; annotations of ours on what makes Pods. Out: one annotation per workload and
//! ServiceAccount, which makes its controller look again at once instead of after its own back-off (measured: 0.13 s instead of 74 s),
//! and its removal once nothing waits any more. Promises: once per ServiceAccount, remembered in the workload itself for as long as it
//! waits; never in the first moments, in which the ordinary retries come (measured: after 0.05 s five times, then 0.4, 0.7 and 1.3 s);
//! what is over leaves nothing behind, nor do the copies that the Deployment controller makes of our annotations.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::admission::inject::needs;
use crate::controllers::scaffold::plan::{Context, Controller, Op, Plan, Row};
use crate::controllers::scaffold::world::{WorkloadRef, World};
use crate::domain::keys;
use crate::store::{Key, Kind};

/// How long the ordinary retries have first, where the workload says that its Pods are refused.
const REFUSED: Duration = Duration::from_millis(500);
/// The same for kinds that do not say so: all ordinary retries that follow quickly.
const MISSING: Duration = Duration::from_secs(3);
/// The kinds whose controllers make Pods themselves.
const KINDS: [Kind; 4] = [Kind::ReplicaSet, Kind::StatefulSet, Kind::DaemonSet, Kind::Job];

/// The controller's row. Its items are `<plural>/<name>` of a workload.
pub const ROW: Row = Row { controller: Controller::Waiting, touched, of_namespace, plan };

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

fn touched(world: &World, kind: Kind, key: &Key) -> Vec<Key> {
    if kind == Kind::ServiceAccount {
        let users = world.users(&key.namespace, &key.name).filter(|user| user.seen.unmet);
        return users.map(|user| item(&key.namespace, user.kind, user.name)).collect();
    }
    if kind == Kind::Deployment {
        return copies_of(world, key);
    }
    let workload = world.workload(kind, &key.namespace, &key.name).filter(concerns);
    workload.map(|workload| item(&key.namespace, kind, workload.name)).into_iter().collect()
}

/// The ReplicaSets that keep a copy of what is no longer on their Deployment. Asked of Deployments that are not enrolled: the last
/// change of theirs takes the entry off, and no change of the ReplicaSet need follow it.
fn copies_of(world: &World, key: &Key) -> Vec<Key> {
    let Some(above) = world.workload(Kind::Deployment, &key.namespace, &key.name) else { return Vec::new() };
    if above.is_governed() || above.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_some() {
        return Vec::new();
    }
    let below = |one: &WorkloadRef<'_>| {
        copied(one) && one.seen.controller.as_deref().is_some_and(|owner| *owner.uid == *above.uid)
    };
    world.workloads(&key.namespace).filter(below).map(|one| item(&key.namespace, one.kind, one.name)).collect()
}

fn of_namespace(world: &World, namespace: &str) -> Vec<Key> {
    world.workloads(namespace).filter(concerns).map(|workload| item(namespace, workload.kind, workload.name)).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Some((plural, name)) = cx.key.name.split_once('/') else { return Plan::nothing() };
    let Some(kind) = KINDS.into_iter().find(|kind| kind.plural() == plural) else { return Plan::nothing() };
    let workload = cx.world.workload(kind, &cx.key.namespace, name).filter(|workload| !workload.seen.deleting);
    let Some(workload) = workload else { return Plan::nothing() };
    waiting(&cx, &workload).unwrap_or_else(|| Plan::of(over(&cx, &workload).into_iter().collect()))
}

/// What is done for one that waits for its account; `None` for one that waits for none.
fn waiting(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Plan> {
    let (namespace, kind) = (&*cx.key.namespace, workload.kind);
    let template = workload.seen.template.as_ref().filter(|_| workload.seen.unmet)?;
    let account = needs(namespace, &workload.identity(), &template.value(), &cx.facts.snapshot).service_account?;
    let Some((_, account, arrived)) =
        cx.world.service_account(namespace, &account).filter(|(seen, _, _)| seen.is_dedicated())
    else {
        return Some(Plan::nothing());
    };
    if workload.seen.retried.as_deref() == Some(&*account.uid) {
        return Some(Plan::nothing());
    }
    let (waited, grace) = (cx.now.saturating_sub(arrived), if kind == Kind::ReplicaSet { REFUSED } else { MISSING });
    if waited < grace {
        return Some(Plan::later(grace.saturating_sub(waited)));
    }
    let patch = json!({"metadata": {"uid": workload.uid, "annotations": {keys::ANNOTATION_RETRY: &*account.uid}}});
    Some(Plan::of(vec![Op::Merge { kind, key: Key::new(namespace, workload.name), patch }]))
}

/// Takes off what is not about anything any more.
fn over(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Op> {
    let retry = workload.seen.retried.as_ref().map(|_| keys::ANNOTATION_RETRY);
    let owner = workload.seen.controller.as_deref().filter(|_| copied(workload));
    let above = owner.and_then(|owner| cx.world.root_of(&cx.key.namespace, owner));
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
