//! Pods that were created while no replica answered, and how they come to run injected.
//!
//! ```text
//! gated Pods? ─► probe (dry-run create) ─► comes back ungated? ─► Pod with a controller: delete, it is made again
//!                       ▲                                        Pod of a Job: suspend, then resume (costs no try)
//!                       └─ every 2 s while there are any         ownerless: report, a person has to make it again
//! ```
//!
//! Promises: nothing is deleted before a probe of the last 10 s came back ungated; at most 10 replacements per 2 s, by turns of the namespaces, and of
//! each namespace no more than as many reports, and Jobs resumed, so that nobody waits for what another one's bring, nor for what fails there; a
//! Job that a person suspended is not resumed; whoever puts the gate on its Pods itself is told, and not served for ever: Pods that opted out
//! are not replaced, nor those whose owner's come back gated three times. The ServiceAccount that parametrises the policy follows the gates.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value, json};

use crate::config::gates::Gates;
use crate::controllers::gate::memory::{Context, Gate, Note, Plan};
use crate::controllers::parameters;
use crate::controllers::scaffold::plan::{Name, Op, Report, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::{Key, Kind, OwnerReference, PodSeen, Store};

/// How long a probe proves anything.
const PROOF: Duration = Duration::from_secs(10);
/// Pause between two passes.
const PASS: Duration = Duration::from_secs(2);
/// Replacements per pass, and what else is done for one namespace in it.
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

/// Lets [`BATCH`] of each namespace pass, the first of them.
#[derive(Default)]
struct Few<'a>(BTreeMap<&'a str, usize>);

impl<'a> Few<'a> {
    fn passes(&mut self, namespace: &'a str) -> bool {
        let passed = self.0.entry(namespace).or_default();
        *passed += 1;
        *passed <= BATCH
    }
}

/// A Pod behind the gate that somebody controls.
struct Gated<'a> {
    key: &'a Key,
    pod: &'a PodSeen,
    uid: &'a str,
    owner: &'a OwnerReference,
}

fn plan(cx: Context<'_>) -> Plan {
    let mut plan = pass(&cx);
    if !plan.ops.is_empty() {
        plan.note.at = cx.now;
    }
    plan
}

fn pass(cx: &Context<'_>) -> Plan {
    let mut plan = Plan::of(self::parameters(cx).into_iter().collect());
    let (mut owned, mut told) = (Vec::new(), Few::default());
    for (key, pod, uid) in cx.store.gated() {
        match pod.controller.as_deref() {
            Some(owner) => owned.push(Gated { key, pod, uid, owner }),
            None if told.passes(&key.namespace) => plan.ops.push(orphan(key, uid)),
            // Told of once one of those before it is gone.
            None => {}
        }
    }
    let (owned, (left, rest)) = served(cx, owned, &mut told);
    plan.ops.extend(left);
    let mut left = Left::default();
    let owned: Vec<_> = owned.into_iter().filter(|one| left.may(cx, &one.key.namespace)).collect();
    let suspended: Vec<_> = cx.store.suspended().filter(|(key, _)| left.may(cx, &key.namespace)).collect();
    if owned.is_empty() && suspended.is_empty() {
        plan.again = rest.into_iter().chain(left.least).min();
        return plan;
    }
    plan.again = Some(PASS);
    if cx.own.memory.proved.is_none_or(|at| cx.now.saturating_sub(at) > PROOF) {
        let pods = owned.iter().map(|one| (&*one.key.namespace, &*one.pod.agent_type));
        let jobs = suspended.iter().map(|(key, _)| (&*key.namespace, "agent"));
        let (proving, others): (Vec<_>, Vec<_>) =
            jobs.chain(pods).partition(|(namespace, agent_type)| is_held(cx, namespace, agent_type));
        let places: BTreeMap<&str, &str> = if proving.is_empty() { others } else { proving }.into_iter().collect();
        let place = places.iter().nth(cx.own.memory.probes % places.len().max(1));
        plan.ops.extend(place.map(|(namespace, agent_type)| probe(namespace, agent_type)));
        return plan;
    }
    let mut resumed = Few::default();
    for (key, job) in suspended {
        if (!job.seen.suspended || job.seen.active == 0) && resumed.passes(&key.namespace) {
            plan.ops.push(resume(key, job.uid));
        }
    }
    let (replaced, note) = replacements(cx, &owned);
    plan.ops.extend(replaced);
    Plan { note, ..plan }
}

/// What is left alone because something failed in its namespace a moment ago.
#[derive(Default)]
struct Left {
    /// Time until the first of it has its turn again.
    least: Option<Duration>,
}

impl Left {
    /// Whether something is done in that namespace now.
    fn may(&mut self, cx: &Context<'_>, namespace: &str) -> bool {
        let left = cx.own.memory.leaves(namespace, cx.now);
        self.least = self.least.into_iter().chain(left).min();
        left.is_none()
    }
}

/// The Pods that are replaced when it is their turn; what is told of the others, of one for each owner, and for how long they are left alone.
fn served<'a>(
    cx: &Context<'_>,
    owned: Vec<Gated<'a>>,
    told: &mut Few<'a>,
) -> (Vec<Gated<'a>>, (Vec<Op>, Option<Duration>)) {
    let mut served = Vec::new();
    let mut left: BTreeMap<&str, (Gated<'a>, Option<Duration>)> = BTreeMap::new();
    for one in owned {
        let rests = cx.own.memory.rests(&one.owner.uid, cx.now);
        if one.pod.opted_out || rests.is_some() {
            left.entry(&one.owner.uid).or_insert((one, rests));
        } else {
            served.push(one);
        }
    }
    let rest = left.values().filter_map(|(_, rests)| *rests).min();
    let few = left.into_values().filter(|(one, _)| told.passes(&one.key.namespace));
    (served, (few.map(|(one, _)| kept(&one)).collect(), rest))
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

/// Of each namespace its oldest first, so that nobody waits for the many of another one; and whose they are.
fn replacements(cx: &Context<'_>, owned: &[Gated<'_>]) -> (Vec<Op>, Note) {
    let mut by_age: Vec<_> = owned.iter().collect();
    by_age.sort_by_key(|one| (&one.pod.created, one.key));
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut turns: Vec<_> = by_age
        .into_iter()
        .map(|one| {
            let place = places.entry(&one.key.namespace).or_default();
            *place += 1;
            (*place, one)
        })
        .collect();
    // What is equal stays in the order of age.
    turns.sort_by_key(|(place, _)| *place);
    let (mut ops, mut jobs, mut owners) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (_, Gated { key, uid, owner, .. }) in turns {
        if ops.len() >= BATCH {
            break;
        }
        owners.insert(&*owner.uid);
        let is_job = WorkloadKind::from_group_kind(owner.group(), &owner.kind) == Some(WorkloadKind::Job);
        if !is_job {
            ops.push(Op::Delete { kind: Kind::Pod, key: (*key).clone(), uid: (*uid).to_owned() });
        } else if jobs.insert((&key.namespace, &owner.uid)) {
            let job = cx.store.workload(Kind::Job, &key.namespace, &owner.name);
            let running = job.filter(|job| job.uid == owner.uid && !job.seen.suspended);
            ops.extend(running.map(|job| suspend(&Key::new(&key.namespace, &owner.name), job.uid, uid)));
        }
    }
    let mut replaced: BTreeMap<Box<str>, Box<str>> = BTreeMap::new();
    for one in owned.iter().filter(|one| owners.contains(&*one.owner.uid)) {
        let youngest = replaced.entry((*one.owner.uid).into()).or_default();
        if one.pod.created > *youngest {
            youngest.clone_from(&one.pod.created);
        }
    }
    (ops, Note { replaced, at: cx.now })
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

/// Says that a Pod is left behind the gate although somebody would make it again.
fn kept(one: &Gated<'_>) -> Op {
    let Gated { key, pod, uid, owner } = one;
    let (kind, name, gate) = (&owner.kind, &owner.name, keys::SCHEDULING_GATE);
    let why = if pod.opted_out {
        format!(
            "label {}: {} keeps it out of injection, so nobody but its template can have put the gate on it",
            keys::LABEL_INJECT,
            keys::INJECT_DISABLED
        )
    } else {
        format!(
            "Pods of {kind} {name} came back behind it three times while the webhook answered, so they are left alone for \
             an hour"
        )
    };
    let message = format!(
        "The Pod waits behind scheduling gate {gate} and is not made again: {why}. What to do: take the gate out of spec.schedulingGates of the Pod \
         template from which {kind} {name} is made, then: kubectl -n {} delete pod {}",
        key.namespace, key.name,
    );
    let (about, uid, reason) = ((*key).clone(), (*uid).to_owned(), Reason::PodsGated);
    Op::Report(Report { kind: Kind::Pod, about, uid, reason, message, since: String::new() })
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
