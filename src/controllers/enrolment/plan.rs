//! One target: what is written on it, on the AgentRuntimes that point at it, and on its Pods.
//!
//! In: the world's view of a target, the snapshot. Out: operations, in an order in which the first failure leaves
//! nothing half done: finalizer before enrolment, Event before status, un-enrolment before the finalizer goes. Promises:
//! whatever happens to target, namespace or CustomResourceDefinition, an AgentRuntime's deletion does not wait for it;
//! of several AgentRuntimes on one target only the oldest has an effect, and the next one takes over when it goes.

use std::time::Duration;

use serde_json::{Value, json};

use super::adopt::disown;
use super::effective;
use super::fields::Fields;
use super::judge::{CONFIG_MAPS, Judgement, Step, Subject, Wait, judge, may_pass, remedy};
use super::pods::Tally;
use super::sandbox::{self, Restart};
use super::status::{self, Findings, Governs};
use super::wave::{self, Rolling};
use crate::api::observed::{Key, Kind, Reach, Rollout};
use crate::config::agent_runtime::AgentRuntimeInput;
use crate::config::schema::Repair;
use crate::controllers::scaffold::memory::{Eviction, Note};
use crate::controllers::scaffold::plan::{Context, Controller, Item, Op, Plan, Report, Row};
use crate::controllers::scaffold::world::{RuntimeRef, WorkloadRef, World};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;

/// Statuses and finalizers that one plan writes; a target with more AgentRuntimes is looked at again at once.
const BATCH: usize = 32;
/// How long a short wait may last before people are told of it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often something short is looked at again.
const SOON: Duration = Duration::from_millis(100);
/// How often what waits for others is looked at again, should nobody wake it.
const LATER: Duration = Duration::from_secs(30);
/// How long a refused write is not tried again, unless the object changes.
const REFUSED: Duration = Duration::from_secs(60);
/// The same when it does.
const REFUSED_CHANGED: Duration = Duration::from_secs(5);
/// Failures in a row that people are told of (case 51).
const FAILURES: u32 = 5;
/// Pause between two evictions.
const EVICTION: Duration = Duration::from_secs(2);

/// The controller's row. Its items are targets.
pub const ROW: Row = Row { controller: Controller::Enrolment, touched, of_namespace, plan };

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

fn touched(world: &World, kind: Kind, key: &Key) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        Kind::AgentRuntime => {
            let runtime = world.agent_runtime(namespace, name);
            runtime.and_then(|runtime| of_runtime(namespace, &runtime)).into_iter().collect()
        }
        Kind::Pod => {
            let controller = world.pod(namespace, name).and_then(|pod| pod.seen.controller.as_deref());
            let root = controller.and_then(|controller| world.root_of(namespace, controller));
            root.and_then(|root| of_workload(namespace, &root)).into_iter().collect()
        }
        Kind::ServiceAccount => world.users(namespace, name).filter_map(|user| of_workload(namespace, &user)).collect(),
        Kind::Namespace => of_namespace(world, name),
        kind => kind.workload().and_then(|kind| item(namespace, kind, name)).into_iter().collect(),
    }
}

fn of_namespace(world: &World, namespace: &str) -> Vec<Key> {
    let concerned = |workload: &WorkloadRef<'_>| workload.is_governed() || workload.seen.applied.is_some();
    let workloads = world.workloads(namespace).filter(concerned);
    let workloads = workloads.filter_map(|workload| of_workload(namespace, &workload));
    let runtimes = world.agent_runtimes(namespace).filter_map(|runtime| of_runtime(namespace, &runtime));
    workloads.chain(runtimes).collect()
}

fn plan(cx: Context<'_>) -> Plan {
    let namespace = &*cx.key.namespace;
    let Some((plural, name)) = cx.key.name.split_once('/') else { return Plan::nothing() };
    if plural == Kind::AgentRuntime.plural() {
        let runtime = cx.world.agent_runtime(namespace, name).filter(|runtime| runtime.seen.target.is_none());
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
    let claims: Vec<_> = cx.world.agent_runtimes_of(namespace, workload_kind, name).collect();
    let (ending, live): (Vec<_>, Vec<_>) = claims.into_iter().partition(|claim| claim.seen.deleting);
    let workload = cx.world.workload(kind, namespace, name).filter(|workload| !workload.seen.deleting);
    // In a namespace that goes, nothing can be made and every rollout is in vain.
    let here = cx.world.namespace(namespace).is_some();
    let mut work = match workload.filter(|_| here) {
        Some(workload) => Work::on(Subject { cx, workload }),
        None => Work::default(),
    };
    let mut plan = Plan { again: work.again, note: work.note.clone(), ops: Vec::new() };
    let winner = live.first().filter(|_| here);
    let first = winner.and_then(|winner| finalizer(namespace, winner, true));
    // A write of the status would come from the version before the finalizer.
    let is_new = first.is_some();
    plan.ops.extend(first);
    if !work.ops.is_empty() {
        // What a failing write is about has to be said before it fails again.
        if let (Some(winner), true, false) = (winner, work.trouble.is_some(), is_new) {
            let findings = governs(&cx, workload, &work);
            plan.ops.extend(findings.iter().flat_map(|findings| status::update(namespace, winner, findings)));
        }
        if winner.is_none() {
            plan.ops.extend(held_up(namespace, (kind, name), &ending, &work));
        }
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
        let news = findings.iter().flat_map(|findings| status::update(namespace, runtime, findings));
        let before = plan.ops.len();
        plan.ops.extend(news);
        told += usize::from(plan.ops.len() > before);
        if told == BATCH {
            plan.again = Some(SOON);
            break;
        }
    }
    if work.is_released || !live.is_empty() {
        let ours = ending.iter().filter_map(|runtime| finalizer(namespace, runtime, false));
        plan.ops.extend(ours.take(BATCH));
    } else {
        plan.ops.extend(held_up(namespace, (kind, name), &ending, &work));
    }
    plan
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

/// What there is to do about an existing workload.
struct Work {
    judgement: Option<Judgement>,
    ops: Vec<Op>,
    again: Option<Duration>,
    note: Note,
    /// Nothing of an AgentRuntime's enrolment stands on it, or none of it can be taken away.
    is_released: bool,
    /// It waits for something that comes in a moment: not worth a status.
    is_quiet: bool,
    /// A write has failed repeatedly.
    trouble: Option<String>,
    /// What its namespace lacks, although it was to be made.
    lacking: Option<String>,
    /// A restart made nothing better.
    in_vain: bool,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            judgement: None,
            ops: Vec::new(),
            again: None,
            note: Note::default(),
            is_released: true,
            is_quiet: false,
            trouble: None,
            lacking: None,
            in_vain: false,
        }
    }
}

impl Work {
    fn on(subject: Subject<'_>) -> Self {
        let mut judgement = judge(&subject);
        let mut work = Self { is_released: !judgement.standing.is_enrolment(), ..Self::default() };
        let known = subject.note().cloned().unwrap_or_default();
        work.note.settled = known.settled;
        let trouble =
            subject.cx.world.memory.trouble(&Item { controller: Controller::Enrolment, key: subject.cx.key.clone() });
        let write = write_of(&subject, &judgement);
        work.trouble = trouble
            .filter(|trouble| !write.is_empty() && trouble.refused.is_none() && trouble.times >= FAILURES)
            .map(|trouble| trouble.message.clone());
        let same = trouble.is_some_and(|trouble| write.last() == Some(&trouble.op));
        let pause = if same { REFUSED } else { REFUSED_CHANGED };
        let refused =
            trouble.filter(|trouble| trouble.refused.is_some() && subject.cx.now.saturating_sub(trouble.at) < pause);
        if let (Some((reason, message)), false) =
            (refused.and_then(|trouble| Some((trouble.refused?, trouble.message.clone()))), write.is_empty())
        {
            // What stands for ever because it cannot be taken away must not hold the AgentRuntime's deletion up.
            work.is_released |= judgement.step == Step::Release && !may_pass(reason, &message);
            judgement.step = Step::Refused { reason, message: format!("{message}. {}", remedy(reason)) };
            work.again = Some(pause);
        } else {
            work.ops = write;
        }
        work.look_around(&subject, &mut judgement, known.held);
        work.judgement = Some(judgement);
        work
    }

    /// The note of this plan, and what follows from Pods.
    fn look_around(&mut self, subject: &Subject<'_>, judgement: &mut Judgement, held: Option<Duration>) {
        let (seen, now) = (subject.workload.seen, subject.cx.now);
        let rolling = wave::rolling(seen);
        let failed = rolling == Rolling::Failed && judgement.standing.hash() == judgement.wanted.as_deref();
        // What the status says from before it saw the template is about that rollout, unless this one was known to fail.
        let stale = failed && !wave::has_failed(seen) && !subject.note().is_some_and(|note| note.failed);
        self.note.failed = failed && !stale;
        self.note.rolling =
            rolling == Rolling::Yes || stale || matches!(judgement.step, Step::Apply { wave: true, .. });
        match &judgement.step {
            Step::Wait(Wait::Configuration | Wait::ServiceAccount(_) | Wait::ConfigMaps) => {
                let since = held.unwrap_or(now);
                self.note.held = Some(since);
                self.is_quiet = now.saturating_sub(since) < PATIENCE;
                let waited = now.saturating_sub(since);
                let given_up = CONFIG_MAPS.saturating_sub(waited).max(SOON);
                self.again = Some(match &judgement.step {
                    _ if self.is_quiet => SOON,
                    Step::Wait(Wait::ConfigMaps) => given_up,
                    _ => LATER,
                });
            }
            Step::Wait(Wait::Spread | Wait::Turn { .. } | Wait::Halted(_)) => {
                self.note.waits = true;
                self.again = Some(LATER);
            }
            // Written under this configuration of the fleet: what changes from now on is this workload's own.
            Step::Apply { .. } => self.note.settled = Some(subject.cx.world.memory.epoch),
            Step::Settled => {
                self.note.settled = Some(subject.cx.world.memory.epoch);
                self.note.evicted = subject.note().and_then(|note| note.evicted.clone());
                let Some(tally) = judgement.wanted.as_deref().map(|wanted| subject.tally(wanted)) else { return };
                self.restart(subject, &tally, judgement, held);
                self.drift(subject, &tally, judgement);
                self.look_away(subject, held);
                self.lack(subject, judgement.wanted.as_deref().unwrap_or(keys::HASH_OF_NOTHING));
            }
            _ => {}
        }
    }

    /// Somebody's annotation on a Deployment counts as a generation, which its controller has not seen for a moment: not worth
    /// saying that Pods are being replaced.
    fn look_away(&mut self, subject: &Subject<'_>, held: Option<Duration>) {
        let (rollout, now) = (subject.workload.seen.rollout, subject.cx.now);
        // Others do not say which generation they have seen.
        let says = [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet];
        if !says.contains(&subject.workload.seen.kind) {
            return;
        }
        let reason = match (Rollout { observed: rollout.generation, ..rollout }, rollout.deadline_exceeded) {
            (_, true) => Reason::ProgressDeadlineExceeded,
            (seen, false) if seen.is_complete() => Reason::RolloutComplete,
            _ => return,
        };
        let told = |winner| status::says_over(&winner, subject.workload.seen, reason);
        if !rollout.is_observed() && subject.workload.winner.is_some_and(told) {
            let since = held.unwrap_or(now);
            let waited = now.saturating_sub(since);
            self.note.held = Some(since);
            self.is_quiet = waited < PATIENCE;
            self.again = self.is_quiet.then(|| PATIENCE.saturating_sub(waited));
        }
    }

    /// ConfigMaps that have not come, for whatever reason the server gave: said, and looked at again until they have.
    fn lack(&mut self, subject: &Subject<'_>, wanted: &str) {
        let (cx, missing) = (&subject.cx, subject.lacking());
        if missing.is_empty() || wanted == keys::HASH_OF_NOTHING {
            return;
        }
        let since = subject.note().and_then(|note| note.lacks).unwrap_or(cx.now);
        self.note.lacks = Some(since);
        let waited = cx.now.saturating_sub(since);
        if waited < CONFIG_MAPS {
            self.again = Some(self.again.unwrap_or(LATER).min(CONFIG_MAPS.saturating_sub(waited)));
            return;
        }
        self.again = Some(self.again.unwrap_or(LATER).min(LATER));
        let maker = Item { controller: Controller::NamespaceConfig, key: Key::new(subject.namespace(), "") };
        let why = cx.world.memory.trouble(&maker).map(|trouble| format!(": {}", trouble.message)).unwrap_or_default();
        let list = missing.join(", ");
        self.lacking =
            Some(format!("ConfigMaps that its Pods refer to could not be made in this namespace ({list}){why}"));
    }

    fn restart(&mut self, subject: &Subject<'_>, tally: &Tally<'_>, judgement: &Judgement, held: Option<Duration>) {
        match sandbox::restart(subject, tally, judgement) {
            Restart::No => {
                let is_good = tally.configured > 0 && tally.configured == tally.running();
                if is_good && subject.workload.seen.kind == WorkloadKind::Sandbox {
                    self.note.evicted = None;
                }
            }
            Restart::Go(op) => {
                let (hash, rolled) = (judgement.standing.hash(), judgement.standing.rolled());
                self.note.rolling |= rolled.is_some() && rolled == hash;
                self.note.evicted =
                    Some(Eviction { youngest: tally.youngest().unwrap_or_default(), at: subject.cx.now });
                self.ops.push(op);
            }
            Restart::Back(ops) => self.ops.extend(ops),
            Restart::Wait(time) => {
                self.note.held = held.or(Some(subject.cx.now));
                self.again = Some(time);
            }
            Restart::Vain(time) => {
                self.in_vain = true;
                self.again = Some(time);
            }
        }
    }

    /// Pods that nothing will replace: reported, and evicted if that is wanted.
    fn drift(&mut self, subject: &Subject<'_>, tally: &Tally<'_>, judgement: &Judgement) {
        let (seen, cx) = (subject.workload.seen, &subject.cx);
        let over = match seen.kind {
            WorkloadKind::CronJob => false,
            WorkloadKind::Sandbox => self.in_vain || !sandbox::is_ours_to_restart(subject, judgement),
            _ => seen.rollout.is_complete(),
        };
        if !over {
            return;
        }
        (self.note.unprotected, self.note.outdated) = (tally.unprotected.len(), tally.outdated.len());
        let Some((reason, message)) = status::drift(tally) else {
            self.note.evicted = None;
            return;
        };
        if subject.workload.winner.is_none() {
            let about = Key::new(subject.namespace(), subject.workload.name);
            let uid = subject.workload.uid.to_owned();
            let (kind, since) = (subject.workload.kind, String::new());
            self.ops.push(Op::Report(Report { kind, about, uid, reason, message, since }));
        }
        // What a partition holds is held by a person, and a Sandbox is restarted instead.
        let may = wave::rolls(seen) && seen.rollout.held == 0 && seen.kind != WorkloadKind::Sandbox;
        if cx.facts.platform.repair() != Repair::Evict || !may {
            return;
        }
        self.evict(subject, tally);
    }

    /// Evicts one Pod, so that its controller makes a better one. When those that were made since the last eviction are no
    /// better, nobody injects at present, and another eviction would only harm: it waits.
    fn evict(&mut self, subject: &Subject<'_>, tally: &Tally<'_>) {
        let cx = &subject.cx;
        if let Some(rest) = self.note.evicted.as_ref().and_then(|last| tally.in_vain(last, cx.now)) {
            self.again = Some(rest);
            return;
        }
        self.again = Some(EVICTION);
        let item = Item { controller: Controller::Enrolment, key: cx.key.clone() };
        let memory = &cx.world.memory;
        let recent = memory.evicted.is_some_and(|at| cx.now.saturating_sub(at) < EVICTION);
        if recent || memory.evicts_besides(&item) || memory.is_blocked(&item, cx.now) || tally.ending > 0 {
            return;
        }
        let oldest = tally.drifted().min_by_key(|pod| (&pod.seen.created, pod.name));
        self.ops.extend(
            oldest.map(|pod| Op::Evict { key: Key::new(subject.namespace(), pod.name), uid: pod.uid.to_owned() }),
        );
        self.note.evicted = tally.youngest().map(|youngest| Eviction { youngest, at: cx.now });
        self.note.evicting = oldest.is_some();
    }
}

/// The writes on the workload that follow from the judgement.
fn write_of(subject: &Subject<'_>, judgement: &Judgement) -> Vec<Op> {
    let (workload, namespace) = (&subject.workload, subject.namespace());
    let apply = |fields: &Fields| Op::Apply {
        kind: workload.kind,
        key: Key::new(namespace, workload.name),
        body: fields.body(namespace, workload),
        seen: workload.version,
    };
    let taken_over = || workload.winner.and_then(|_| disown(namespace, workload)).into_iter();
    match &judgement.step {
        Step::Apply { fields, .. } => taken_over().chain([apply(fields)]).collect(),
        Step::Settled => taken_over().collect(),
        Step::Release => {
            let back = if sandbox::pending(subject) { sandbox::come_back(subject) } else { Vec::new() };
            let rest = disown(namespace, workload).into_iter().chain([apply(&Fields::default())]);
            back.into_iter().chain(rest).collect()
        }
        Step::Wait(_) | Step::Refused { .. } => Vec::new(),
    }
}

/// Why there is no workload to enrol.
fn unresolved(cx: &Context<'_>, kind: Kind, name: &str) -> Findings<'static> {
    let (called, namespace) = (kind.as_str(), &cx.key.namespace);
    let (reason, message) = match (cx.world.workload(kind, namespace, name), cx.world.reach(kind)) {
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
    let (effective, mut notices) = effective::of(&subject);
    notices.extend(work.lacking.clone());
    let (trouble, in_vain) = (work.trouble.clone(), work.in_vain);
    Some(Findings::Governs(Box::new(Governs { workload, judgement, tally, trouble, notices, effective, in_vain })))
}

/// Our finalizer on an AgentRuntime, put on or taken off; `None` when that is so.
fn finalizer(namespace: &str, runtime: &RuntimeRef<'_>, wanted: bool) -> Option<Op> {
    let seen = runtime.seen;
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
