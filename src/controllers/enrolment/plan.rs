//! One target: what is written on it, on the AgentRuntimes that point at it, and on its Pods.
//!
//! In: the store's view of a target, the snapshot. Out: operations, in an order in which the first failure leaves
//! nothing half done: finalizer before enrolment, Event before status, un-enrolment before the finalizer goes. Promises:
//! whatever happens to target, namespace or CustomResourceDefinition, an AgentRuntime's deletion does not wait for it;
//! of several AgentRuntimes on one target only the oldest has an effect, and the next one takes over when it goes.

use std::time::Duration;

use serde_json::{Value, json};

use super::effective;
use super::judge::{Judgement, Step, Subject};
use super::protected;
use super::status::{self, Findings, Governs};
use super::work::Work;
use crate::config::agent_runtime::AgentRuntimeInput;
use crate::controllers::conditions;
use crate::controllers::enrolment::memory::{Context, Enrolment, Plan};
use crate::controllers::enrolment::note::Note;
use crate::controllers::scaffold::plan::{Name, Op, Row};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::{RuntimeRef, WorkloadRef};
use crate::store::{CardTarget, Key, Kind, Over, Reach, Store};

/// Statuses and finalizers that one plan writes; a target with more AgentRuntimes is looked at again at once.
const BATCH: usize = 32;
/// How often something short is looked at again.
pub(super) const SOON: Duration = Duration::from_millis(100);

/// How often counts alone are written.
const COUNTS: Duration = Duration::from_secs(5);

/// The controller's name.
pub const NAME: Name = Name::new("enrolment");

/// The controller's row. Its items are targets.
pub const ROW: Row<Enrolment> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

fn item(namespace: &str, kind: WorkloadKind, name: &str) -> Option<Key> {
    let kind = Kind::of_workload(kind).filter(|_| WorkloadKind::TARGETS.contains(&kind))?;
    Some(Key::new(namespace, &format!("{}/{name}", kind.plural())))
}

fn of_runtime(namespace: &str, runtime: &RuntimeRef<'_>) -> Option<Key> {
    match &runtime.seen.target {
        Some(target) => item(namespace, target.kind, &target.name),
        None => Some(Key::new(namespace, &format!("{}/{}", Kind::AgentRuntime.plural(), runtime.name))),
    }
}

fn of_workload(namespace: &str, workload: &WorkloadRef<'_>) -> Option<Key> {
    item(namespace, workload.seen.kind, workload.name)
}

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::AgentRuntime => {
            let runtime = store.agent_runtime(namespace, name);
            runtime.and_then(|runtime| of_runtime(namespace, &runtime)).into_iter().collect()
        }
        Kind::Pod => {
            let controller = store.pod(namespace, name).and_then(|pod| pod.seen.controller.as_deref());
            let root = controller.and_then(|controller| store.root_of(namespace, controller));
            root.and_then(|root| of_workload(namespace, &root)).into_iter().collect()
        }
        Kind::AgentCard => {
            let target = store.agent_card(namespace, name).and_then(|card| card.seen.spec.target.as_ref());
            target.and_then(|target| item(namespace, target.workload_kind()?, &target.name)).into_iter().collect()
        }
        Kind::ServiceAccount => store.users(namespace, name).filter_map(|user| of_workload(namespace, &user)).collect(),
        Kind::Namespace => of_namespace(store, name),
        kind => kind.workload().and_then(|kind| item(namespace, kind, name)).into_iter().collect(),
    }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    let concerned = |workload: &WorkloadRef<'_>| {
        let carries = workload.seen.annotations.get(keys::ANNOTATION_ROLLED_FOR).is_some();
        workload.is_governed() || workload.may_ask() || workload.seen.applied.is_some() || carries
    };
    let workloads = store.workloads(namespace).filter(concerned);
    let workloads = workloads.filter_map(|workload| of_workload(namespace, &workload));
    let runtimes = store.agent_runtimes(namespace).filter_map(|runtime| of_runtime(namespace, &runtime));
    workloads.chain(runtimes).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let namespace = &*cx.key.namespace;
    let Some((plural, name)) = cx.key.name.split_once('/') else { return Plan::nothing() };
    if plural == Kind::AgentRuntime.plural() {
        let runtime = cx.store.agent_runtime(namespace, name).filter(|runtime| runtime.seen.target.is_none());
        return runtime.map_or_else(Plan::nothing, |runtime| targetless(&cx, &runtime));
    }
    let kind = WorkloadKind::TARGETS.into_iter().filter_map(Kind::of_workload).find(|kind| kind.plural() == plural);
    let Some(kind) = kind else { return Plan::nothing() };
    target(cx, kind, name)
}

/// An AgentRuntime that points at nothing that can be enrolled.
fn targetless(cx: &Context<'_>, runtime: &RuntimeRef<'_>) -> Plan {
    let namespace = &*cx.key.namespace;
    if runtime.seen.deleting {
        return Plan::of(finalizer(namespace, runtime, false).into_iter().collect());
    }
    if let Some(over) = runtime.seen.over {
        let message = format!("it {}. Delete AgentRuntimes that are not needed", over.sentence());
        let findings = Findings::Unresolved { reason: Reason::ConfigUnknown, message };
        return Plan::of(status::update(namespace, runtime, &findings));
    }
    let faults = AgentRuntimeInput::of_spec(&runtime.seen.spec).faults;
    let fault =
        faults.iter().find(|fault| fault.reason == Reason::UnsupportedTarget || fault.field.contains("targetRef"));
    let (reason, message) = fault.map_or((Reason::InvalidSpec, String::new()), |fault| {
        (fault.reason, format!("{}: {:?}: {}", fault.field, fault.seen, fault.message))
    });
    Plan::of(status::update(namespace, runtime, &Findings::Unresolved { reason, message }))
}

/// A target that can be enrolled, whether or not it exists.
fn target(cx: Context<'_>, kind: Kind, name: &str) -> Plan {
    let namespace = &*cx.key.namespace;
    let Some(workload_kind) = kind.workload() else { return Plan::nothing() };
    let claims: Vec<_> = cx.store.agent_runtimes_of(namespace, workload_kind, name).collect();
    let (ending, live): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| claim.seen.deleting);
    let workload = cx.store.workload(kind, namespace, name).filter(|workload| !workload.seen.deleting);
    // In a namespace that goes, nothing can be made and every rollout is in vain.
    let here = cx.store.namespace(namespace).is_some();
    let mut work = match workload.filter(|_| here) {
        Some(workload) => Work::on(Subject { cx, workload }),
        None => Work::default(),
    };
    let mut plan = Plan { again: work.again, note: work.note.clone(), ops: Vec::new() };
    let winner = live.first().filter(|_| here);
    // For one of which nothing is read nothing is written that would have to be taken back.
    let first = winner.filter(|winner| winner.seen.over.is_none());
    let first = first.and_then(|winner| finalizer(namespace, winner, true));
    // A write of the status would come from the version before the finalizer.
    let is_new = first.is_some();
    plan.ops.extend(first);
    if !work.ops.is_empty() {
        // What a failing write is about has to be said before it fails again, and what is refused before anything else is written.
        let refused = matches!(&work.judgement, Some(Judgement { step: Step::Refused { .. }, .. }));
        if let (Some(winner), true, false) = (winner, work.trouble.is_some() || refused, is_new) {
            let findings = governs(&cx, workload, &work);
            plan.ops.extend(findings.iter().flat_map(|findings| status::update(namespace, winner, findings)));
        }
        if winner.is_none() {
            plan.ops.extend(held_up(namespace, (kind, name), &ending, &work));
        }
        plan.ops.append(&mut work.news);
        plan.ops.append(&mut work.ops);
        return plan;
    }
    let mut told = 0;
    for (place, runtime) in live.iter().enumerate().skip(usize::from(is_new)).filter(|_| here) {
        let findings = match (place, &workload) {
            (0, Some(_)) if work.is_quiet => None,
            (0, Some(_)) => governs(&cx, workload, &work),
            (0, None) => Some(unresolved(&cx, kind, name)),
            _ => winner.map(|winner| Findings::Duplicate { winner: winner.name, target: (kind, name) }),
        };
        let mut news: Vec<Op> =
            findings.iter().flat_map(|findings| status::update(namespace, runtime, findings)).collect();
        if place == 0 {
            plan.note.protected = findings.as_ref().and_then(protected::known);
            if let Some(rest) = counts_later(&news, &mut plan.note, &cx) {
                news.clear();
                plan.again = Some(plan.again.map_or(rest, |again| again.min(rest)));
            }
        }
        let before = plan.ops.len();
        plan.ops.extend(news);
        told += usize::from(plan.ops.len() > before);
        if told == BATCH {
            plan.again = Some(SOON);
            break;
        }
    }
    plan.ops.append(&mut work.news);
    if work.is_released || !live.is_empty() {
        let ours = ending.iter().filter_map(|runtime| finalizer(namespace, runtime, false));
        plan.ops.extend(ours.take(BATCH));
    } else {
        plan.ops.extend(held_up(namespace, (kind, name), &ending, &work));
    }
    plan
}

/// How long to wait before a status is written that would change nothing but counts of Pods: while many Pods come and go, people are
/// told where it has come to, and not each step.
fn counts_later(news: &[Op], note: &mut Note, cx: &Context<'_>) -> Option<Duration> {
    let last = cx.note().and_then(|note| note.counted);
    let left = last.and_then(|at| COUNTS.checked_sub(cx.now.saturating_sub(at))).filter(|left| !left.is_zero());
    note.counted = last.filter(|_| left.is_some());
    if !matches!(news, [Op::Status { patch, .. }] if status::is_counts(patch)) {
        return None;
    }
    if left.is_none() {
        note.counted = Some(cx.now);
    }
    left
}

/// What AgentRuntimes whose deletion waits for their enrolment to be taken away are told about that.
fn held_up(namespace: &str, target: (Kind, &str), ending: &[RuntimeRef<'_>], work: &Work) -> Vec<Op> {
    let step = work.judgement.as_ref().map(|judgement| &judgement.step);
    let (reason, message) = match (step, &work.trouble) {
        (Some(Step::Refused { reason, message }), _) => (*reason, message),
        (Some(Step::Release), Some(message)) => (Reason::ConfigApplyError, message),
        _ => return Vec::new(),
    };
    let held = ending.iter().filter(|runtime| finalizer(namespace, runtime, false).is_some()).take(BATCH);
    held.flat_map(|runtime| status::update(namespace, runtime, &Findings::HeldUp { reason, message, target })).collect()
}

/// Why there is no workload to enrol.
fn unresolved(cx: &Context<'_>, kind: Kind, name: &str) -> Findings<'static> {
    let (called, namespace) = (kind.as_str(), &cx.key.namespace);
    let (reason, message) = match (cx.store.workload(kind, namespace, name), cx.store.reach(kind)) {
        (Some(_), _) => (
            Reason::TargetNotFound,
            format!(
                "{called} {name} in namespace {namespace} is being deleted; one that is made in its place is enrolled"
            ),
        ),
        (None, Reach::Absent) => (
            Reason::TargetKindAbsent,
            format!(
                "the API server does not serve {called} of {}: install its CustomResourceDefinition; the enrolment follows by \
                 itself",
                kind.api_version(),
            ),
        ),
        (None, Reach::Unknown) => (
            Reason::TargetUnreadable,
            format!("{}/{called} cannot be read at present; nothing is changed until it can", kind.api_version()),
        ),
        (None, Reach::Listed) => (
            Reason::TargetNotFound,
            format!(
                "there is no {} {called} {name} in namespace {namespace}; it is enrolled as soon as it is created",
                kind.api_version(),
            ),
        ),
    };
    Findings::Unresolved { reason, message }
}

fn governs<'a>(cx: &Context<'a>, workload: Option<WorkloadRef<'a>>, work: &'a Work) -> Option<Findings<'a>> {
    let (workload, judgement) = (workload?, work.judgement.as_ref()?);
    let subject = Subject { cx: *cx, workload };
    let tally = judgement.wanted.as_deref().map(|wanted| subject.tally(wanted));
    let is_nothing = judgement.wanted.as_deref() == Some(keys::HASH_OF_NOTHING);
    let nothing = is_nothing.then(|| subject.needs().map_or(Reason::NothingToInject, |needs| needs.reason));
    let (effective, mut notices, unread) = effective::of(&subject);
    notices.extend(work.lacking.clone());
    let (trouble, in_vain) = (work.trouble.clone(), work.in_vain);
    let (namespace, is_slow) = (subject.namespace(), work.note.slow);
    Some(Findings::Governs(Box::new(Governs {
        namespace,
        workload,
        judgement,
        nothing,
        tally,
        trouble,
        notices,
        unread,
        effective,
        card: card(cx, &workload),
        in_vain,
        is_slow,
    })))
}

/// The card of a workload in a few words, as its AgentRuntime shows it: of several the one that counts.
fn card(cx: &Context<'_>, workload: &WorkloadRef<'_>) -> Option<Value> {
    let target = CardTarget::of_workload(workload.seen.kind, workload.name);
    let cards = cx.store.agent_cards_of(&cx.key.namespace, &target).filter(|card| !card.seen.deleting);
    let card = cards.min_by_key(|card| (card.seen.is_automatic(), &card.seen.created, card.name))?;
    let conditions = card.seen.status.get("conditions").unwrap_or(&Value::Null);
    let stored = |type_: &str| conditions::stored(conditions, type_);
    let is = |one: &Value, status: &str| one["status"] == status;
    let mut summary = json!({"name": &**card.name});
    let verified = stored("Verified").filter(|one| is(one, "True") || is(one, "False"));
    if let Some(verified) = verified {
        summary["verified"] = is(verified, "True").into();
    }
    // What keeps the card from being read is why nothing else is known.
    let unread = stored("Synced").filter(|one| is(one, "False"));
    if let Some(reason) = unread.or(verified).or(stored("Synced")).and_then(|one| one["reason"].as_str()) {
        summary["reason"] = reason.into();
    }
    Some(summary)
}

/// Our finalizer on an AgentRuntime, put on or taken off; `None` when that is so, and while the list is not known.
fn finalizer(namespace: &str, runtime: &RuntimeRef<'_>, wanted: bool) -> Option<Op> {
    let seen = runtime.seen;
    if seen.over == Some(Over::Size) {
        return None;
    }
    if seen.finalizers.iter().any(|name| &**name == keys::FINALIZER) == wanted {
        return None;
    }
    let others = seen.finalizers.iter().map(|name| &**name).filter(|name| *name != keys::FINALIZER);
    let all: Vec<&str> = others.chain(wanted.then_some(keys::FINALIZER)).collect();
    let patch = json!({"metadata": {
        "uid": runtime.uid,
        "resourceVersion": runtime.version.to_string(),
        "finalizers": if all.is_empty() { Value::Null } else { json!(all) },
    }});
    Some(Op::Merge { kind: Kind::AgentRuntime, key: Key::new(namespace, runtime.name), patch })
}
