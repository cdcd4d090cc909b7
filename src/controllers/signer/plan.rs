//! Which workloads sign their card, and what each of them has for that.
//!
//! In: the workloads of one name, what admission says of their Pods, what is there under the name of the signed card. Out: Role, RoleBinding and
//! ConfigMap made, mended, or taken away, or that the name is somebody else's. Promises: only workloads that ask for it get a right, on one
//! ConfigMap and no more; what nobody of ours made is never changed and nobody gets a right on it; the ConfigMap comes last, so whoever sees it
//! may write it; a signature that is there is never overwritten; at rest nothing is written, and what was refused is told and asked for again after
//! minutes alone.

use std::time::Duration;

use serde_json::{Value, json};

use crate::admission::inject::needs;
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{Context, Item, Name, Op, Plan, Report, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::WorkloadRef;
use crate::store::{Key, Kind, Over, Store};

/// The controller's name.
pub const NAME: Name = Name::new("signer");

/// The controller's row. Its items are ConfigMaps with signed cards, by the name that they have or would have.
pub const ROW: Row =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// The kinds whose cards are read; of several of one name the first has it.
const KINDS: [WorkloadKind; 4] =
    [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet, WorkloadKind::Sandbox];
/// What a Pod does to the ConfigMap.
const VERBS: [&str; 2] = ["get", "patch"];
/// Longest name of an object.
const LONGEST: usize = 253;
/// How long what was refused is not asked for again: nobody tells once its cause is gone.
const REFUSED: Duration = Duration::from_secs(300);

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::SignedCard | Kind::Role | Kind::RoleBinding => vec![key.clone()],
        Kind::AgentRuntime => {
            let runtime = store.agent_runtime(namespace, name);
            let target = runtime.and_then(|runtime| store.target_of(namespace, &runtime));
            target.filter(asks).map(|workload| item(namespace, workload.name)).into_iter().collect()
        }
        kind if kind.workload().is_some_and(|kind| KINDS.contains(&kind)) => {
            let is_known = store.signed_card(namespace, &name_of(name)).is_some();
            let workload = store.workload(kind, namespace, name);
            if is_known || workload.is_some_and(|workload| asks(&workload)) {
                vec![item(namespace, name)]
            } else {
                Vec::new()
            }
        }
        _ => Vec::new(),
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    let asking = store.workloads(namespace).filter(asks).map(|workload| item(namespace, workload.name));
    let ours = store.signed_cards(namespace).filter(|card| card.seen.ours).map(|card| Key::new(namespace, card.name));
    asking.chain(ours).collect()
}

fn name_of(workload: &str) -> String {
    format!("{workload}{}", keys::SUFFIX_SIGNED_CARD)
}

fn item(namespace: &str, workload: &str) -> Key {
    Key::new(namespace, &name_of(workload))
}

/// Its template says something of signing: whether that counts, admission says.
fn asks(workload: &WorkloadRef<'_>) -> bool {
    let template = workload.seen.template.as_ref();
    KINDS.contains(&workload.seen.kind)
        && workload.is_root()
        && template.is_some_and(|template| template.annotations.get(keys::ANNOTATION_SIGN).is_some())
}

/// What is to be done for a name.
enum Wanted<'a> {
    /// Nobody signs.
    Nothing,
    /// It is not known at the moment, so all stays as it is.
    Open,
    /// That workload does, its Pods under that account.
    Right(WorkloadRef<'a>, String),
}

fn wanted<'a>(cx: &Context<'a>) -> Wanted<'a> {
    let Key { namespace, name } = cx.key;
    let Some(short) = name.strip_suffix(keys::SUFFIX_SIGNED_CARD) else { return Wanted::Nothing };
    let mut is_open = false;
    for kind in KINDS {
        let workload = Kind::of_workload(kind).and_then(|kind| cx.store.workload(kind, namespace, short));
        let Some(workload) = workload.filter(|workload| asks(workload) && !workload.seen.deleting) else { continue };
        let Some(template) = workload.governed_template(&cx.facts.snapshot.labels) else { continue };
        let needs = needs(namespace, &workload.identity(), &template, &cx.facts.snapshot);
        match needs.signs_as {
            Some(account) => return Wanted::Right(workload, account),
            None => is_open |= needs.refused.is_some(),
        }
    }
    if is_open { Wanted::Open } else { Wanted::Nothing }
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    let is_known = [Kind::SignedCard, Kind::Role, Kind::RoleBinding].iter().all(|kind| cx.store.is_certain(*kind));
    let is_there = cx.store.namespace(namespace).is_some() && cx.facts.snapshot.namespace(namespace).is_some();
    if !is_known || !is_there || name.len() > LONGEST {
        return Plan::nothing();
    }
    match wanted(&cx) {
        Wanted::Open => Plan::nothing(),
        Wanted::Nothing => taken_away(&cx),
        Wanted::Right(workload, account) => match cx.store.signed_card(namespace, name) {
            Some(card) if !card.seen.ours => Plan::of(vec![foreign(&cx, &workload)]),
            // The garbage collector takes it, and what its workload had with it; then it is made for this one.
            Some(card) if card.seen.owner.as_deref() != Some(workload.uid) => taken_away(&cx),
            card => {
                let mut ops: Vec<Op> = [Kind::Role, Kind::RoleBinding]
                    .into_iter()
                    .filter_map(|kind| right(&cx, kind, &workload, &account))
                    .collect();
                if card.is_none() {
                    ops.push(made(Kind::SignedCard, namespace, card_body(&cx, &workload), &workload));
                }
                held_back(&cx, &workload, ops)
            }
        },
    }
}

/// These writes, unless one of them was refused a moment ago: that is told then. A Role of that name without our label is not watched, so whoever
/// makes one is heard of in this way alone.
fn held_back(cx: &Context<'_>, workload: &WorkloadRef<'_>, ops: Vec<Op>) -> Plan {
    let item = Item { controller: NAME, key: cx.key.clone() };
    let trouble = cx.memory.trouble(&item).filter(|trouble| ops.contains(&trouble.op));
    let refused = trouble.and_then(|trouble| Some((trouble.refused?, trouble)));
    let left = refused.and_then(|(_, trouble)| REFUSED.checked_sub(cx.now.saturating_sub(trouble.at)));
    match (refused, left) {
        (Some(refused), Some(left)) if !left.is_zero() => {
            Plan { again: Some(left), ..Plan::of(vec![not_made(cx, workload, refused)]) }
        }
        _ => Plan::of(ops),
    }
}

/// What was made is taken away, the right first.
fn taken_away(cx: &Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    let delete = |kind, uid: &str| Op::Delete { kind, key: cx.key.clone(), uid: uid.to_owned() };
    let rights = [Kind::RoleBinding, Kind::Role].into_iter().filter_map(|kind| {
        let seen = cx.store.signing_right(kind, namespace, name)?;
        Some(delete(kind, seen.uid))
    });
    let card = cx.store.signed_card(namespace, name).filter(|card| card.seen.ours);
    Plan::of(rights.chain(card.map(|card| delete(Kind::SignedCard, card.uid))).collect())
}

/// The Role or RoleBinding, made or mended; `None` when it is as it should be.
fn right(cx: &Context<'_>, kind: Kind, workload: &WorkloadRef<'_>, account: &str) -> Option<Op> {
    let Key { namespace, name } = cx.key;
    let gives = gives(kind, cx.key, account);
    let Some(seen) = cx.store.signing_right(kind, namespace, name) else {
        let mut body = json!({"metadata": metadata(cx, workload)});
        for (member, value) in gives.as_object().into_iter().flatten() {
            body[member.as_str()] = value.clone();
        }
        return Some(made(kind, namespace, body, workload));
    };
    if seen.seen.owner.as_deref() != Some(workload.uid) {
        return Some(Op::Delete { kind, key: cx.key.clone(), uid: seen.uid.to_owned() });
    }
    if let Some(over) = seen.seen.over {
        return Some(unread(cx, kind, workload, over));
    }
    if seen.seen.gives == gives {
        return None;
    }
    // To what a binding refers cannot be changed.
    if seen.seen.gives.get("roleRef") != gives.get("roleRef") {
        return Some(Op::Delete { kind, key: cx.key.clone(), uid: seen.uid.to_owned() });
    }
    let member = if kind == Kind::Role { "rules" } else { "subjects" };
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": seen.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": seen.version.to_string()},
        {"op": "add", "path": format!("/{member}"), "value": gives[member]},
    ]);
    Some(Op::Edit { kind, key: cx.key.clone(), operations })
}

/// What the object of that kind gives, as the API server stores it.
fn gives(kind: Kind, key: &Key, account: &str) -> Value {
    let Key { namespace, name } = key;
    match kind {
        Kind::Role => json!({"rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [&**name], "verbs": VERBS}]}),
        _ => json!({
            "roleRef": {"apiGroup": Kind::Role.group(), "kind": Kind::Role.as_str(), "name": &**name},
            "subjects": [{"kind": Kind::ServiceAccount.as_str(), "name": account, "namespace": &**namespace}],
        }),
    }
}

fn made(kind: Kind, namespace: &str, body: Value, workload: &WorkloadRef<'_>) -> Op {
    Op::Ensure { kind, namespace: namespace.to_owned(), body, owner: workload.uid.to_owned() }
}

/// Name, label and owner: with the workload it goes.
fn metadata(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Value {
    let Key { namespace, name } = cx.key;
    json!({
        "name": &**name,
        "namespace": &**namespace,
        "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE},
        "ownerReferences": [{
            "apiVersion": workload.kind.api_version(),
            "kind": workload.kind.as_str(),
            "name": &**workload.name,
            "uid": workload.uid,
            "controller": true,
        }],
    })
}

/// The ConfigMap, which holds nothing until a Pod has signed.
fn card_body(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Value {
    let mut metadata = metadata(cx, workload);
    metadata["annotations"] = json!({keys::ANNOTATION_AWAITS_SIGNATURE: "true"});
    json!({"metadata": metadata})
}

/// What a right gives is not read, so whether it is as it should be nobody can say.
fn unread(cx: &Context<'_>, kind: Kind, workload: &WorkloadRef<'_>, over: Over) -> Op {
    let Key { namespace, name } = cx.key;
    let message = format!(
        "{} {name} {}, so it is left as it is. What to do: kubectl -n {namespace} get roles,rolebindings -l {}={} shows them all; delete those that are \
         not needed",
        kind.as_str(),
        over.sentence(),
        keys::LABEL_APP_MANAGED_BY,
        keys::MANAGED_BY_DRAWBRIDGE,
    );
    told(workload, namespace, Reason::ConfigUnknown, message)
}

fn told(workload: &WorkloadRef<'_>, namespace: &str, reason: Reason, message: String) -> Op {
    Op::Report(Report {
        kind: workload.kind,
        about: Key::new(namespace, workload.name),
        uid: workload.uid.to_owned(),
        reason,
        message,
        since: String::new(),
    })
}

/// Why what is to be made is not there.
fn not_made(cx: &Context<'_>, workload: &WorkloadRef<'_>, (reason, trouble): (Reason, &Trouble)) -> Op {
    let Key { namespace, name } = cx.key;
    let (_, kind, _) = trouble.op.asks();
    let (kind, whose) = (kind.as_str(), workload.kind.as_str());
    let no_right = format!("no Pod of {whose} {} gets the right to publish its signed card", workload.name);
    let (reason, message) = match reason {
        Reason::NameConflict => {
            let message = format!(
                "{kind} {name} is not Drawbridge's, so it is left as it is, and {no_right}. What to do: kubectl -n {namespace} delete {} {name}, or \
                 take annotation {} off the Pod template where the card is signed by other means; Drawbridge looks again within five minutes",
                kind.to_lowercase(),
                keys::ANNOTATION_SIGN,
            );
            (reason, message)
        }
        reason => {
            let reason = if reason == Reason::NotPermitted { reason } else { Reason::ConfigApplyError };
            let message = format!(
                "{kind} {name} is refused by the API server, so {no_right}: {}. What to do: remove what refuses it; Drawbridge tries again within \
                 five minutes",
                trouble.message,
            );
            (reason, message)
        }
    };
    told(workload, namespace, reason, message)
}

fn foreign(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Op {
    let Key { namespace, name } = cx.key;
    let message = format!(
        "ConfigMap {name} is not Drawbridge's, so it is left as it is, and no Pod of {} {} gets the right to publish its signed card there. What to \
         do: kubectl -n {namespace} delete configmap {name}, or take annotation {} off the Pod template where the card is signed by other means",
        workload.kind.as_str(),
        workload.name,
        keys::ANNOTATION_SIGN,
    );
    told(workload, namespace, Reason::NameConflict, message)
}
