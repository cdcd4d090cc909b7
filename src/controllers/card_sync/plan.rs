//! Which AgentCard a workload needs, and what to do about those that are there.
//!
//! In: a workload, the cards that point at it, and the card of the name that its own would have. Out: create it, adopt it, or take it away
//! because somebody made another one. Promises: a card that a person made is never changed and never owned by the workload; what the Go
//! operator made is taken over where it is; a card that is being deleted is as good as gone, and its finalizers of ours and of that
//! operator come off whatever else is wrong; at rest nothing is written.

use std::time::Duration;

use serde_json::{Value, json};

use super::names::{card_name, label, workload_of};
use crate::api::agent_kagenti_dev::agent_runtime::AgentType;
use crate::config::resolved::SpireSwitch;
use crate::controllers::scaffold::plan::{Context, Name, Op, Plan, Report, Row, escaped};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::{CardRef, WorkloadRef};
use crate::store::{AgentCardSeen, CardTarget, Key, Kind, OwnerReference, Reach, Store};

/// The controller's name.
pub const NAME: Name = Name::new("card-sync");

/// The controller's row. Its items are workloads, and cards that are being deleted.
pub const ROW: Row =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// The kinds whose workloads get a card by themselves.
const KINDS: [WorkloadKind; 3] = [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::Sandbox];
/// How often the card of a workload is looked at while something stands in its way that nobody tells us the end of.
const BLOCKED: Duration = Duration::from_secs(300);
/// Time between two looks at an agent's card that a made one starts with.
const PERIOD: &str = "30s";

fn item(namespace: &str, kind: WorkloadKind, name: &str) -> Option<Key> {
    let kind = Kind::of_workload(kind).filter(|_| KINDS.contains(&kind))?;
    Some(Key::new(namespace, &format!("{}/{name}", kind.plural())))
}

/// Those that a card concerns: what it points at, what controls it, and what its name is that of.
fn of_card(namespace: &str, card: &CardRef<'_>) -> Vec<Key> {
    let target = card.seen.spec.target.as_ref().and_then(|target| Some((target.workload_kind()?, &*target.name)));
    let owner = card.seen.controller.as_deref();
    let owner =
        owner.and_then(|owner| Some((WorkloadKind::from_group_kind(owner.group(), &owner.kind)?, &*owner.name)));
    let named = KINDS.into_iter().filter_map(|kind| Some((kind, workload_of(kind, card.name)?)));
    let workloads = target.into_iter().chain(owner).chain(named);
    let mut keys: Vec<_> = workloads.filter_map(|(kind, name)| item(namespace, kind, name)).collect();
    keys.extend(ending(card).then(|| Key::new(namespace, &format!("{}/{}", Kind::AgentCard.plural(), card.name))));
    keys
}

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::AgentCard => store.agent_card(namespace, name).map(|card| of_card(namespace, &card)).unwrap_or_default(),
        Kind::Namespace => of_namespace(store, name),
        kind => {
            let workload = store.workload(kind, namespace, name).filter(|workload| is_agent(workload));
            workload.and_then(|workload| item(namespace, workload.seen.kind, name)).into_iter().collect()
        }
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    let agents = store.workloads(namespace).filter(is_agent);
    let agents = agents.filter_map(|workload| item(namespace, workload.seen.kind, workload.name));
    agents.chain(store.agent_cards(namespace).flat_map(|card| of_card(namespace, &card))).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    let Some((plural, name)) = name.split_once('/') else { return Plan::nothing() };
    if plural == Kind::AgentCard.plural() {
        let card = cx.store.agent_card(namespace, name).filter(ending);
        return card.map_or_else(Plan::nothing, |card| Plan::of(vec![released(namespace, &card)]));
    }
    let kind = KINDS.into_iter().filter_map(Kind::of_workload).find(|kind| kind.plural() == plural);
    let workload = kind.and_then(|kind| cx.store.workload(kind, namespace, name));
    // In a namespace that goes nothing can be made; one that the snapshot does not know yet brings us back.
    let here = cx.store.namespace(namespace).is_some() && cx.facts.snapshot.namespace(namespace).is_some();
    match workload.filter(|workload| here && is_eligible(workload)) {
        Some(workload) => of_workload(&cx, &workload),
        None => Plan::nothing(),
    }
}

/// It carries the label of an agent itself.
fn is_agent(workload: &WorkloadRef<'_>) -> bool {
    workload.seen.labels.get(keys::LABEL_TYPE) == Some(AgentType::Agent.as_str())
}

/// It says that it is an agent, and which protocol it speaks.
fn is_eligible(workload: &WorkloadRef<'_>) -> bool {
    let labels = &workload.seen.labels;
    let says = |(key, value): (&str, &str)| {
        key.starts_with(keys::PREFIX_PROTOCOL) || (keys::LABELS_PROTOCOL.contains(&key) && !value.is_empty())
    };
    is_agent(workload) && !workload.seen.deleting && labels.iter().any(says)
}

/// It is being deleted, and a finalizer of ours or of the Go operator holds it up.
fn ending(card: &CardRef<'_>) -> bool {
    card.seen.deleting && FINALIZERS.iter().any(|name| card.seen.has_finalizer(name))
}

const FINALIZERS: [&str; 2] = [keys::FINALIZER_CARD, keys::FINALIZER_CARD_POLICY];

fn of_workload(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Plan {
    // That no card is there can only be said once they have been read; without their definition none can be made.
    if cx.store.reach(Kind::AgentCard) != Reach::Listed {
        return Plan::nothing();
    }
    let namespace = &cx.key.namespace;
    let target = CardTarget::of_workload(workload.seen.kind, workload.name);
    let name = card_name(workload.seen.kind, workload.name);
    let mut others = cx.store.agent_cards_of(namespace, &target).filter(|card| **card.name != *name);
    let is_taken_care_of = others.any(|card| !card.seen.deleting);
    let Some(card) = cx.store.agent_card(namespace, &name) else {
        return if is_taken_care_of { Plan::nothing() } else { Plan::of(vec![create(cx, workload, &name)]) };
    };
    let is_ours = card.seen.is_automatic() && card.seen.spec.target.as_ref() == Some(&target);
    // Once it is gone, its deletion brings us back.
    if card.seen.deleting {
        return Plan::nothing();
    }
    if is_taken_care_of {
        let key = Key::new(namespace, &name);
        let delete = || Op::Delete { kind: Kind::AgentCard, key, uid: card.uid.to_owned() };
        return Plan::of(is_ours.then(delete).into_iter().collect());
    }
    let points_here = card.seen.spec.target.as_ref() == Some(&target);
    match (is_ours, points_here) {
        (true, _) => adopted(cx, workload, &card),
        // Somebody made the workload's card himself, under the very name that ours would have.
        (false, true) => Plan::nothing(),
        (false, false) => blocked(cx.key, workload, &card),
    }
}

fn owner(workload: &WorkloadRef<'_>) -> OwnerReference {
    OwnerReference {
        api_version: workload.kind.api_version(),
        kind: workload.kind.as_str().to_owned(),
        name: workload.name.to_string(),
        uid: workload.uid.to_owned(),
        controller: Some(true),
        // A workload that is deleted with what it owns waits for nobody's finalizers, and naming one that blocks takes a right.
        block_owner_deletion: None,
    }
}

fn create(cx: &Context<'_>, workload: &WorkloadRef<'_>, name: &str) -> Op {
    let namespace = &*cx.key.namespace;
    let snapshot = &cx.facts.snapshot;
    let spire = snapshot.namespace(namespace).map(|view| view.resolved.spire.value);
    let has_identities = match spire {
        Some(SpireSwitch::Required) => true,
        Some(SpireSwitch::Auto) => snapshot.view.spiffe_driver,
        Some(SpireSwitch::Disabled) | None => false,
    };
    let called = workload.seen.labels.get(keys::LABEL_APP_NAME).filter(|called| !called.is_empty());
    let target = CardTarget::of_workload(workload.seen.kind, workload.name);
    let mut body = json!({
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                keys::LABEL_APP_NAME: called.map_or_else(|| label(workload.name), str::to_owned),
                keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
            },
            "ownerReferences": [owner(workload)],
        },
        "spec": {
            "syncPeriod": PERIOD,
            "targetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": &*target.name},
        },
    });
    if has_identities {
        body["spec"]["identityBinding"] = json!({});
    }
    Op::Create { kind: Kind::AgentCard, namespace: namespace.to_owned(), body }
}

/// A card that a controller made for this workload: it is owned by the workload, and ours by its label.
fn adopted(cx: &Context<'_>, workload: &WorkloadRef<'_>, card: &CardRef<'_>) -> Plan {
    let seen = card.seen;
    if seen.is_one_too_many() {
        // Whose it is is not known while there is no room for it; it is judged again when there is some.
        return Plan::nothing();
    }
    if seen.over.is_some() {
        return blocked(cx.key, workload, card);
    }
    let is_owned = seen.is_owned_by(workload.uid);
    if let Some(other) = seen.controller.as_deref().filter(|_| !is_owned) {
        // One of a workload of this name that is gone goes with it; its deletion brings us back.
        let before = other.kind == workload.kind.as_str() && *other.name == **workload.name;
        return if before { Plan::nothing() } else { blocked(cx.key, workload, card) };
    }
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": card.uid})];
    if !is_owned {
        operations.extend(with_owner(seen, card.version, &owner(workload)));
    }
    if seen.managed_by.as_deref() != Some(keys::MANAGED_BY_DRAWBRIDGE) {
        let path = format!("/metadata/labels/{}", escaped(keys::LABEL_APP_MANAGED_BY));
        operations.push(json!({"op": "test", "path": path, "value": seen.managed_by}));
        operations.push(json!({"op": "replace", "path": path, "value": keys::MANAGED_BY_DRAWBRIDGE}));
    }
    if operations.len() == 1 {
        return Plan::nothing();
    }
    let key = Key::new(&cx.key.namespace, card.name);
    Plan::of(vec![Op::Edit { kind: Kind::AgentCard, key, operations: Value::Array(operations) }])
}

/// Adds an owner to those that were seen.
fn with_owner(seen: &AgentCardSeen, version: u64, owner: &OwnerReference) -> [Value; 2] {
    match &*seen.owners {
        // That a list is not there cannot be tested.
        [] => [
            json!({"op": "test", "path": "/metadata/resourceVersion", "value": version.to_string()}),
            json!({"op": "add", "path": "/metadata/ownerReferences", "value": [owner]}),
        ],
        owners => [
            json!({"op": "test", "path": "/metadata/ownerReferences", "value": owners}),
            json!({"op": "add", "path": "/metadata/ownerReferences/-", "value": owner}),
        ],
    }
}

/// Takes our finalizers, and those of the Go operator, off a card that is being deleted.
fn released(namespace: &str, card: &CardRef<'_>) -> Op {
    let mut operations = vec![json!({"op": "test", "path": "/metadata/uid", "value": card.uid})];
    // From the end, so that a place is still right once those behind it are gone.
    for (at, name) in card.seen.finalizers.iter().enumerate().rev() {
        if FINALIZERS.contains(&&**name) {
            let path = format!("/metadata/finalizers/{at}");
            operations.push(json!({"op": "test", "path": path, "value": name}));
            operations.push(json!({"op": "remove", "path": path}));
        }
    }
    let key = Key::new(namespace, card.name);
    Op::Edit { kind: Kind::AgentCard, key, operations: Value::Array(operations) }
}

/// Somebody else's card has the name that the workload's would have.
fn blocked(key: &Key, workload: &WorkloadRef<'_>, card: &CardRef<'_>) -> Plan {
    let seen = match &card.seen.spec.target {
        _ if card.seen.over.is_some() => "has more owners and finalizers than are read".to_owned(),
        Some(target) => {
            let owner = card.seen.controller.as_deref().filter(|_| card.seen.is_automatic());
            let owned = owner.map(|owner| format!(" and is owned by {} {}", owner.kind, owner.name));
            format!("is of {} {} ({}){}", target.kind, target.name, target.api_version, owned.unwrap_or_default())
        }
        None => "names no workload in spec.targetRef".to_owned(),
    };
    let message = format!(
        "AgentCard {} of this namespace {seen}, so that {} {} gets no card. Delete it or make it under another name: kubectl -n {} \
         delete agentcard {}",
        card.name,
        workload.kind.as_str(),
        workload.name,
        key.namespace,
        card.name,
    );
    let report = Report {
        kind: workload.kind,
        about: Key::new(&key.namespace, workload.name),
        uid: workload.uid.to_owned(),
        reason: Reason::NameConflict,
        message,
        since: String::new(),
    };
    Plan { ops: vec![Op::Report(report)], again: Some(BLOCKED), ..Plan::default() }
}
