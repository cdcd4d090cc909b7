//! Which ServiceAccount a workload needs, and what to do about the one of that name.
//!
//! In: the workloads of one identity, enrolled or about to be, their needs, the ServiceAccount of that name. Out: create it, add or take away
//! owners, or say that it is somebody else's. Promises: a foreign one is never touched; the last owner is never taken
//! away, because an ownerless object would stay for ever; `default`, which every Pod runs under that names none, is neither made nor owned: it would
//! go with its last owner.

use serde_json::{Value, json};

use crate::admission::inject::needs;
use crate::controllers::scaffold::plan::{Context, Name, Op, Plan, Report, Row, escaped};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::objects::WorkloadRef;
use crate::store::{Key, Kind, Observed, OwnerReference, ServiceAccountSeen, Store};

/// The controller's name.
pub const NAME: Name = Name::new("service-account");

/// The account of whoever names none: nobody's to be made, owned or handed over.
const DEFAULT: &str = "default";

/// The controller's row. Its items are ServiceAccount names.
pub const ROW: Row =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    if kind == Kind::ServiceAccount {
        return vec![key.clone()];
    }
    let workload = match kind {
        Kind::AgentRuntime => {
            let runtime = store.agent_runtime(&key.namespace, &key.name);
            runtime.and_then(|runtime| store.target_of(&key.namespace, &runtime))
        }
        _ => kind.workload().and_then(|_| store.workload(kind, &key.namespace, &key.name)),
    };
    workload.map(|workload| account(&key.namespace, &workload)).into_iter().collect()
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    store.workloads(namespace).filter(is_user).map(|workload| account(namespace, &workload)).collect()
}

fn account(namespace: &str, workload: &WorkloadRef<'_>) -> Key {
    Key::new(namespace, workload.identity().service_account())
}

fn is_user(workload: &WorkloadRef<'_>) -> bool {
    workload.is_root() && (workload.is_governed() || workload.may_ask())
}

fn plan(cx: Context<'_>) -> Plan {
    let Key { namespace, name } = cx.key;
    // A namespace that the snapshot does not know yet may turn out to be opted out: the snapshot brings us back here.
    if cx.store.namespace(namespace).is_none() || cx.facts.snapshot.namespace(namespace).is_none() {
        return Plan::nothing();
    }
    let users: Vec<_> = cx.store.users(namespace, name).filter(|user| is_user(user) && wants(&cx, user)).collect();
    if **name == *DEFAULT {
        return shared(&cx, &users);
    }
    if users.is_empty() {
        return Plan::nothing();
    }
    match cx.store.service_account(namespace, name) {
        None => Plan::of(vec![create(&cx, &users)]),
        // An Agent's own: its controller keeps it.
        Some((seen, ..)) if seen.is_dedicated() && !seen.ours => Plan::nothing(),
        Some((seen, observed, _)) if seen.ours => Plan::of(
            owners(&cx, seen, &users).map(|owners| set_owners(cx.key, seen, observed, &owners)).into_iter().collect(),
        ),
        Some(_) => Plan::of(users.iter().map(|user| conflict(cx.key, user)).collect()),
    }
}

/// The account of whoever names none: workloads of that name are told what to do, whoever has labelled it, since the webhook refuses their Pods
/// either way; and none of them stays its owner, as an earlier version made them once somebody had put our label on it.
fn shared(cx: &Context<'_>, users: &[WorkloadRef<'_>]) -> Plan {
    let Key { namespace, name } = cx.key;
    let Some((seen, observed, _)) = cx.store.service_account(namespace, name) else { return Plan::nothing() };
    let is_user = |uid: &str| cx.store.users(namespace, name).any(|user| user.uid == uid);
    let others: Vec<_> = seen.owners.iter().filter(|owner| !is_user(&owner.uid)).cloned().collect();
    let has_ours = seen.ours && others.len() < seen.owners.len();
    let mut ops: Vec<_> = users.iter().map(|user| conflict(cx.key, user)).collect();
    ops.extend(has_ours.then(|| set_owners(cx.key, seen, observed, &others)));
    Plan::of(ops)
}

/// Whether Pods of `user` will ask for the account.
fn wants(cx: &Context<'_>, user: &WorkloadRef<'_>) -> bool {
    user.governed_template(&cx.facts.snapshot.labels).is_some_and(|template| {
        let needs = needs(&cx.key.namespace, &user.identity(), &template, &cx.facts.snapshot);
        needs.service_account.as_deref() == Some(&*cx.key.name)
    })
}

fn reference(user: &WorkloadRef<'_>) -> OwnerReference {
    OwnerReference {
        api_version: user.kind.api_version(),
        kind: user.kind.as_str().to_owned(),
        name: user.name.to_string(),
        uid: user.uid.to_owned(),
        controller: None,
        block_owner_deletion: None,
    }
}

fn create(cx: &Context<'_>, users: &[WorkloadRef<'_>]) -> Op {
    let Key { namespace, name } = cx.key;
    let owners: Vec<_> = users.iter().map(reference).collect();
    let mut body = json!({"metadata": {
        "name": &**name,
        "namespace": &**namespace,
        "labels": {
            keys::LABEL_MANAGED_BY: keys::MANAGED_BY_WEBHOOK,
            keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
        },
        "ownerReferences": owners,
    }});
    let default = cx.store.service_account(namespace, DEFAULT);
    if let Some(automount) = default.and_then(|(seen, _, _)| seen.automount) {
        body["automountServiceAccountToken"] = Value::Bool(automount);
    }
    Op::Create { kind: Kind::ServiceAccount, namespace: namespace.to_string(), body }
}

/// The owners as they should be; `None` when they are so. Owners that are not workloads of ours to judge stay.
fn owners(cx: &Context<'_>, seen: &ServiceAccountSeen, users: &[WorkloadRef<'_>]) -> Option<Vec<OwnerReference>> {
    let used = |uid: &str| users.iter().any(|user| user.uid == uid);
    let idle = |uid: &str| cx.store.users(&cx.key.namespace, &cx.key.name).any(|known| known.uid == uid) && !used(uid);
    let mut wanted: Vec<_> = seen.owners.iter().filter(|owner| !idle(&owner.uid)).cloned().collect();
    let missing = users.iter().filter(|user| seen.owners.iter().all(|owner| owner.uid != user.uid));
    wanted.extend(missing.map(reference));
    (wanted != seen.owners).then_some(wanted)
}

/// Sets the owners, if it is still ours and has the owners that were seen.
fn set_owners(key: &Key, seen: &ServiceAccountSeen, observed: &Observed, owners: &[OwnerReference]) -> Op {
    let label = format!("/metadata/labels/{}", escaped(keys::LABEL_MANAGED_BY));
    let seen = match &seen.owners[..] {
        // That a list is not there cannot be tested.
        [] => json!({"op": "test", "path": "/metadata/resourceVersion", "value": observed.version.to_string()}),
        owners => json!({"op": "test", "path": "/metadata/ownerReferences", "value": owners}),
    };
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": &*observed.uid},
        {"op": "test", "path": label, "value": keys::MANAGED_BY_WEBHOOK},
        seen,
        {"op": "add", "path": "/metadata/ownerReferences", "value": owners},
    ]);
    Op::Edit { kind: Kind::ServiceAccount, key: key.clone(), operations }
}

fn conflict(key: &Key, user: &WorkloadRef<'_>) -> Op {
    let Key { namespace, name } = key;
    let remedy = if **name == *DEFAULT {
        format!("Set spec.serviceAccountName to another one than {DEFAULT}, or give the workload another name")
    } else {
        format!(
            "Either name a ServiceAccount in the Pod template (spec.serviceAccountName), or hand this one over: kubectl -n {namespace} label \
             serviceaccount {name} {}={}",
            keys::LABEL_MANAGED_BY,
            keys::MANAGED_BY_WEBHOOK,
        )
    };
    let message = format!(
        "ServiceAccount {name} of this namespace is not managed by Drawbridge, so Pods of {} {} are refused. {remedy}",
        user.kind.as_str(),
        user.name,
    );
    Op::Report(Report {
        kind: user.kind,
        about: Key::new(&key.namespace, user.name),
        uid: user.uid.to_owned(),
        reason: Reason::ServiceAccountConflict,
        message,
        since: String::new(),
    })
}
