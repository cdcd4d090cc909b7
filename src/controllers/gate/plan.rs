//! Pods that were created while no replica answered, and how they come to run injected.
//!
//! ```text
//! gated Pods? ─► probe (dry-run create) ─► comes back ungated? ─► Pod with a controller: delete, it is made again
//!                       ▲                                        Pod of a Job: suspend, then resume (costs no try)
//!                       └─ every 2 s while there are any         ownerless: report, a person has to make it again
//! ```
//!
//! Promises: nothing is deleted before a probe of the last 10 s came back ungated; at most 10 replacements per 2 s; a
//! Job that a person suspended is not resumed. The ServiceAccount that parametrises the policy follows the gates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::gates::Gates;
use crate::controllers::gate::memory::{Context, Gate};
use crate::controllers::parameters;
use crate::controllers::scaffold::plan::{Name, Op, Plan, Report, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{Key, Kind, PodSeen, Store};

/// How long a probe proves anything.
const PROOF: Duration = Duration::from_secs(10);
/// Pause between two passes.
const PASS: Duration = Duration::from_secs(2);
/// Replacements per pass.
const BATCH: usize = 10;

/// The controller's name.
pub const NAME: Name = Name::new("gate");

/// The controller's row. Its only item is the operator's namespace.
pub const ROW: Row<Gate> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let concerns = match kind {
        Kind::Pod => true,
        Kind::Job => store.suspended().any(|(known, _)| known == key),
        Kind::ServiceAccount => *key.namespace == *store.operator_namespace() && &*key.name == keys::GATE,
        _ => false,
    };
    if concerns { vec![Key::new(store.operator_namespace(), "")] } else { Vec::new() }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    if namespace == store.operator_namespace() { vec![Key::new(namespace, "")] } else { Vec::new() }
}

/// The types of Pods that are gated, as the policy reads them: separated by commas, empty for none.
#[must_use]
pub fn types(gates: &Gates) -> String {
    let types = [("agent", gates.global_enabled), ("tool", gates.global_enabled && gates.inject_tools)];
    types.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect::<Vec<_>>().join(",")
}

fn plan(cx: Context<'_>) -> Plan {
    let mut plan = Plan::of(self::parameters(&cx).into_iter().collect());
    let (owned, ownerless): (Vec<_>, Vec<_>) = cx.store.gated().partition(|(_, pod, _)| pod.controller.is_some());
    plan.ops.extend(ownerless.into_iter().map(|(key, _, uid)| orphan(key, uid)));
    let suspended: Vec<_> = cx.store.suspended().collect();
    if owned.is_empty() && suspended.is_empty() {
        return plan;
    }
    plan.again = Some(PASS);
    if cx.own.memory.proved.is_none_or(|at| cx.now.saturating_sub(at) > PROOF) {
        let pods = owned.iter().map(|(key, pod, _)| (&*key.namespace, &*pod.agent_type));
        let jobs = suspended.iter().map(|(key, _)| (&*key.namespace, "agent"));
        let (proving, others): (Vec<_>, Vec<_>) =
            jobs.chain(pods).partition(|(namespace, agent_type)| is_held(&cx, namespace, agent_type));
        let places: BTreeMap<&str, &str> = if proving.is_empty() { others } else { proving }.into_iter().collect();
        let place = places.iter().nth(cx.own.memory.probes % places.len().max(1));
        plan.ops.extend(place.map(|(namespace, agent_type)| probe(namespace, agent_type)));
        return plan;
    }
    for (key, job) in suspended {
        if !job.seen.suspended || job.seen.active == 0 {
            plan.ops.push(resume(key, job.uid));
        }
    }
    plan.ops.extend(replacements(&cx, owned));
    plan
}

/// Whether the policy holds a Pod of that type back there. One that it lets pass proves nothing about the webhook, and whoever makes Pods
/// can put the gate on one of those himself.
fn is_held(cx: &Context<'_>, namespace: &str, agent_type: &str) -> bool {
    let snapshot = &cx.facts.snapshot;
    let opted_out = snapshot.namespace(namespace).is_some_and(|view| view.enabled_label.as_deref() == Some("false"));
    !opted_out && !agent_type.is_empty() && types(&snapshot.gates).split(',').any(|one| one == agent_type)
}

/// The ServiceAccount of the policy, where it says something else than the gates.
fn parameters(cx: &Context<'_>) -> Option<Op> {
    parameters::written(cx, keys::GATE, &[(keys::ANNOTATION_GATED_TYPES, types(&cx.facts.snapshot.gates))])
}

/// The oldest first.
fn replacements(cx: &Context<'_>, mut owned: Vec<(&Key, &PodSeen, &str)>) -> Vec<Op> {
    owned.sort_by(|(a, one, _), (b, other, _)| (&one.created, a).cmp(&(&other.created, b)));
    let (mut ops, mut jobs) = (Vec::new(), BTreeSet::new());
    for (key, pod, uid) in owned {
        if ops.len() >= BATCH {
            break;
        }
        let owner = pod.controller.as_ref();
        let job =
            owner.filter(|owner| WorkloadKind::from_group_kind(owner.group(), &owner.kind) == Some(WorkloadKind::Job));
        match job {
            None => ops.push(Op::Delete { kind: Kind::Pod, key: key.clone(), uid: uid.to_owned() }),
            Some(owner) if jobs.insert((&key.namespace, &owner.uid)) => {
                let job = cx.store.workload(Kind::Job, &key.namespace, &owner.name);
                let running = job.filter(|job| job.uid == owner.uid && !job.seen.suspended);
                ops.extend(running.map(|job| suspend(&Key::new(&key.namespace, &owner.name), job.uid, uid)));
            }
            Some(_) => {}
        }
    }
    ops
}

fn suspend(key: &Key, uid: &str, pod: &str) -> Op {
    let patch = json!({
        "metadata": {"uid": uid, "annotations": {keys::ANNOTATION_SUSPENDED: pod}},
        "spec": {"suspend": true},
    });
    Op::Merge { kind: Kind::Job, key: key.clone(), patch }
}

fn resume(key: &Key, uid: &str) -> Op {
    let patch = json!({
        "metadata": {"uid": uid, "annotations": {keys::ANNOTATION_SUSPENDED: Value::Null}},
        "spec": {"suspend": false},
    });
    Op::Merge { kind: Kind::Job, key: key.clone(), patch }
}

/// A Pod like those that wait, as harmless as Pod Security can ask for; it is never stored.
fn probe(namespace: &str, agent_type: &str) -> Op {
    let body = json!({
        "metadata": {"generateName": "drawbridge-probe-", "labels": {keys::LABEL_TYPE: agent_type}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "probe",
                "image": "drawbridge.invalid/probe",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}, "limits": {"cpu": "1m", "memory": "1Mi"}},
            }],
        },
    });
    Op::Probe { namespace: namespace.to_owned(), body }
}

fn orphan(key: &Key, uid: &str) -> Op {
    let message = format!(
        "The Pod was created while no replica of Drawbridge answered, so it waits behind scheduling gate {} and nobody \
         makes it again. Delete it and create it again: kubectl -n {} get pod {} -o yaml > pod.yaml; kubectl replace \
         --force -f pod.yaml",
        keys::SCHEDULING_GATE,
        key.namespace,
        key.name,
    );
    let reason = Reason::GatedWithoutController;
    Op::Report(Report {
        kind: Kind::Pod,
        about: key.clone(),
        uid: uid.to_owned(),
        reason,
        message,
        since: String::new(),
    })
}
