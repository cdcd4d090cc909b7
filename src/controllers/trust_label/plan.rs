//! Whether a running Pod carries the trust label and the one of quarantine, and whether it should.
//!
//! In: the Pod, the workload that its owners lead to by their uids, and what its card proves. Out: the label, put or taken away. Promises:
//! only Pods that run under the account that the card proves carry it; templates never do, so nothing rolls; closing and opening wait for
//! nothing; where enforcement ends, the label goes last, when no NetworkPolicy of ours is left that asks for it; the label of quarantine is
//! put only while the NetworkPolicy is there that cuts off by it; at rest nothing is written.

use std::time::Duration;

use serde_json::json;

use super::quarantine;
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::controllers::looks;
use crate::controllers::scaffold::plan::{Context, Name, Op, Plan, Row, escaped};
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::trust::TrustLevel;
use crate::store::objects::{PodRef, PolicyRef, WorkloadRef};
use crate::store::{Key, Kind, Store, Trust};

/// The controller's name.
pub const NAME: Name = looks::TRUST_LABEL;

/// The controller's row. Its items are Pods.
pub const ROW: Row =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// Time until a Pod whose label has to wait is looked at again, should nothing bring us back.
const AGAIN: Duration = Duration::from_secs(5);

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::Pod => vec![key.clone()],
        Kind::Namespace => of_namespace(store, name),
        // Before it is there, nobody is labelled by whom it would cut off.
        Kind::NetworkPolicy if &**name == keys::QUARANTINE_POLICY => of_namespace(store, namespace),
        // What still asks for the label may be gone.
        Kind::NetworkPolicy if store.network_policy(namespace, name).is_some_and(|policy| policy.seen.is_ours()) => {
            let labelled = store.agent_pods(namespace).filter(|pod| pod.seen.verified);
            labelled.map(|pod| Key::new(namespace, pod.name)).collect()
        }
        Kind::AgentCard => {
            let card = store.agent_card(namespace, name);
            let target = card.as_ref().and_then(|card| card.seen.spec.target.as_ref());
            let workload = target.and_then(|target| {
                store.workload(Kind::of_workload(target.workload_kind()?)?, namespace, &target.name)
            });
            workload.map(|workload| pods_of(store, namespace, &workload)).unwrap_or_default()
        }
        kind if kind.workload().is_some() => {
            let workload = store.workload(kind, namespace, name);
            workload.map(|workload| pods_of(store, namespace, &workload)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// Those of its Pods about which something may be to be done: nothing is about one that carries neither label and is due neither, and most
/// changes of a workload find only such.
fn pods_of(store: &Store, namespace: &str, workload: &WorkloadRef<'_>) -> Vec<Key> {
    let is_quarantined = trust::quarantine(store, namespace).is_some();
    let pods = store.pods_of(namespace, workload).filter(|pod| {
        is_quarantined
            || pod.seen.verified
            || pod.seen.quarantined.is_some()
            || deserves(store, namespace, pod) == Some(true)
    });
    pods.map(|pod| Key::new(namespace, pod.name)).collect()
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.agent_pods(namespace).map(|pod| Key::new(namespace, pod.name)).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    let Some(pod) = cx.store.pod(namespace, name).filter(|pod| pod.seen.is_alive()) else { return Plan::nothing() };
    let Some(level) = trust::level(&cx, namespace) else { return Plan::nothing() };
    let is_asked_for = || {
        let ours = |policy: PolicyRef<'_>| policy.seen.is_ours() && &**policy.name != keys::QUARANTINE_POLICY;
        cx.store.network_policies(namespace).any(ours)
    };
    let wanted = if level >= TrustLevel::Audit {
        deserves(cx.store, namespace, &pod).unwrap_or(pod.seen.verified)
    } else {
        pod.seen.verified && is_asked_for() && !quarantine::holds(cx.store, namespace, &pod)
    };
    let verified = (wanted != pod.seen.verified)
        .then(|| Change { label: keys::LABEL_VERIFIED, value: wanted.then(|| keys::VERIFIED.to_owned()) });
    let changes: Vec<_> = verified.into_iter().chain(quarantine::change(&cx, &pod)).collect();
    let again = (level < TrustLevel::Audit && wanted).then_some(AGAIN);
    let ops = if changes.is_empty() { Vec::new() } else { vec![edit(&cx, &pod, changes)] };
    Plan { again, ..Plan::of(ops) }
}

/// What a label becomes; with no value it goes.
pub(super) struct Change {
    pub(super) label: &'static str,
    pub(super) value: Option<String>,
}

/// Whether a Pod is that of a verified agent; `None` while nothing can be said, and what was said stays.
pub(super) fn deserves(store: &Store, namespace: &str, pod: &PodRef<'_>) -> Option<bool> {
    if &*pod.seen.agent_type != AgentType::Agent.as_str() {
        return Some(false);
    }
    // By uid all the way: one of the same name that was made later is another one.
    let root = pod.seen.controller.as_deref().and_then(|owner| store.root_of(namespace, owner));
    let Some(root) = root else { return Some(false) };
    match trust::of_workload(store, namespace, &root) {
        Trust::None => Some(false),
        Trust::Unknown => None,
        Trust::Account(account) => {
            let runs_as = pod.seen.endpoint.as_ref().and_then(|endpoint| endpoint.account.as_deref());
            Some(runs_as == Some(account))
        }
    }
}

fn edit(cx: &Context<'_>, pod: &PodRef<'_>, changes: Vec<Change>) -> Op {
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": pod.uid})];
    operations.extend(changes.into_iter().map(|change| {
        let path = format!("/metadata/labels/{}", escaped(change.label));
        match change.value {
            Some(value) => json!({"op": "add", "path": path, "value": value}),
            None => json!({"op": "remove", "path": path}),
        }
    }));
    Op::Edit { kind: Kind::Pod, key: cx.key.clone(), operations: operations.into() }
}
