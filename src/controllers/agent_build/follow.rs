//! A claimed attempt, from its run's creation to its judgement.

use std::time::Duration;

use serde_json::{Value, json};

use super::outcome::{self, Outcome};
use super::status::{self, EXISTS, Phase, READY, State, lacking};
use super::subject::Subject;
use super::{failure, start};
use crate::controllers::agent_build::memory::Plan;
use crate::controllers::agent_build::note::{Note, Read};
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::store::objects::RunRef;
use crate::store::{Key, Kind};

/// How long a run that is gone may be about to come back.
const GONE: Duration = Duration::from_secs(30);
/// How long a run that has ended may leave open how.
const OPEN: Duration = Duration::from_secs(60);
/// How long TaskRuns of a run that has ended are waited for.
const CHILDREN: Duration = Duration::from_secs(30);
/// How often a run is looked at without being asked to.
const SAFETY: Duration = Duration::from_secs(30);
/// After how long without a change a run is read that the watch shows, as far as anybody knows.
const QUIET: Duration = Duration::from_secs(120);
/// How long after the end of a run its TaskRuns are read that the watch has not shown.
const UNSEEN: Duration = Duration::from_secs(5);
/// Most TaskRuns that are read at once.
const MOST: usize = 32;

/// What Tekton calls a run that is to be cancelled.
const CANCELLED: &str = "Cancelled";
/// The same, and what leaves the run its last tasks. Whatever else stands there (`PipelineRunPending`) ends nothing.
const ENDING: [&str; 3] = [CANCELLED, "CancelledRunFinally", "StoppedRunFinally"];

/// What to do about the attempt that the status names.
pub(super) fn plan(subject: &Subject<'_>) -> Plan {
    match subject.run() {
        Some(run) if run.seen.deleting => leaving(subject, &run),
        Some(run) => of_run(subject, &run),
        None => without_run(subject),
    }
}

/// A run that the status names and no watch shows: whoever takes its label off hides it while it runs on. Before anything is concluded from
/// that, and another one made, it is read by its name, once each time it vanishes.
pub(super) fn sought(subject: &Subject<'_>) -> Option<Plan> {
    let name = subject.recorded("pipelineRunName");
    let stored = status::stored_reason(&subject.build.seen.status, EXISTS)?;
    let was_there = [Reason::PipelineRunFound, Reason::PipelineRunNotFound].map(Reason::code).contains(&stored);
    let is_known = subject.cx.store.run(subject.namespace(), name).is_some();
    let was_asked = subject.read_of(name).is_some_and(|read| read.version == 0);
    if name.is_empty() || !was_there || is_known || was_asked || subject.tekton_lacks().is_some() {
        return None;
    }
    let read = Read { run: name.to_owned(), version: 0, at: subject.cx.now, lost: true };
    let note = Note { read: Some(read), ..Note::held(subject.held()) };
    let key = Key::new(subject.namespace(), name);
    Some(Plan { ops: vec![Op::Find { kind: Kind::PipelineRun, key }], again: Some(Duration::ZERO), note })
}

/// The question how a run is, where its watch may not show it, and what is noted of it: one that was hidden once is read again and again, any other
/// after a long time without a change.
fn watched(subject: &Subject<'_>, run: &RunRef<'_>) -> (Option<Op>, Read) {
    let now = subject.cx.now;
    let before = subject.read_of(run.name);
    let lost = before.is_some_and(|read| read.lost);
    let quiet = if lost { SAFETY } else { QUIET };
    let anew = Read { run: run.name.to_string(), version: run.version, at: now, lost };
    match before.filter(|read| read.version == run.version) {
        Some(read) if now.saturating_sub(read.at) < quiet => (None, read.clone()),
        Some(_) => {
            let key = Key::new(subject.namespace(), run.name);
            (Some(Op::Find { kind: Kind::PipelineRun, key }), anew)
        }
        None => (None, anew),
    }
}

/// Waits up to `most` since the build was first held back, then does `then`.
fn held(subject: &Subject<'_>, most: Duration, then: impl FnOnce(&Subject<'_>) -> Plan) -> Plan {
    let now = subject.cx.now;
    let since = subject.held().unwrap_or(now);
    match most.checked_sub(now.saturating_sub(since)).filter(|left| !left.is_zero()) {
        Some(left) => {
            let note = Note::held(Some(since));
            Plan { ops: Vec::new(), again: Some(left.min(SAFETY)), note }
        }
        None => then(subject),
    }
}

/// Somebody is taking the run away: what follows is decided once it is gone.
fn leaving(subject: &Subject<'_>, run: &RunRef<'_>) -> Plan {
    let message = format!("PipelineRun {} is being deleted; the build goes on once it is gone", run.name);
    let mut state = State::new(Phase::Building, Reason::BuildInProgress, message);
    state.exists = Some(Reason::PipelineRunFound);
    let (question, read) = watched(subject, run);
    let ops = status::update(subject, &state).into_iter().chain(question).collect();
    let held = subject.held().unwrap_or(subject.cx.now);
    Plan { ops, again: Some(SAFETY), note: Note { read: Some(read), ..Note::held(Some(held)) } }
}

/// Not created yet, or taken away by somebody.
fn without_run(subject: &Subject<'_>) -> Plan {
    if let Some((kind, absent)) = subject.tekton_lacks() {
        let reason = if absent { Reason::TektonAbsent } else { Reason::TektonUnreachable };
        return Plan::of(status::update(subject, &State::new(Phase::Building, reason, lacking(kind, absent))));
    }
    let stored = status::stored_reason(&subject.build.seen.status, EXISTS);
    let was_there = [Reason::PipelineRunFound, Reason::PipelineRunNotFound].map(Reason::code);
    if !stored.is_some_and(|stored| was_there.contains(&stored)) {
        return start::plan(subject);
    }
    if subject.cancels() {
        return Plan::of(status::update(subject, &judged(subject, Reason::Cancelled, "Build failed: cancelled")));
    }
    let mut state = State::new(Phase::Building, Reason::PipelineRunNotFound, "Pipeline run not found");
    state.exists = Some(Reason::PipelineRunNotFound);
    let mut plan = held(subject, GONE, |subject| {
        let of_hash = |run: &RunRef<'_>| run.seen.build_hash.as_deref() == Some(subject.hash.as_str());
        let attempts = usize::try_from(subject.recorded_attempt()).unwrap_or(usize::MAX);
        let lost = attempts.saturating_sub(subject.runs().filter(of_hash).count());
        if lost < subject.builds().settings.pipelines.lost_runs {
            return start::next_attempt(subject);
        }
        let message = format!("Pipeline run not found: the runs of {lost} attempts were taken away before they ended");
        Plan::of(status::update(subject, &judged(subject, Reason::PipelineRunNotFound, message)))
    });
    if plan.note.held.is_some() {
        plan.ops = status::update(subject, &state);
    }
    plan
}

fn of_run(subject: &Subject<'_>, run: &RunRef<'_>) -> Plan {
    let seen = run.seen;
    if seen.is_done() {
        let plan = held(subject, CHILDREN, |_| Plan::nothing());
        return match outcome::of(subject, run, plan.note.held.is_none()) {
            Outcome::Wait => awaited(subject, run, plan),
            Outcome::Is(state) => Plan::of(status::update(subject, &finished(subject, run, *state))),
        };
    }
    if seen.completed.is_some() {
        return held(subject, OPEN, |subject| {
            let message = format!("PipelineRun {} ended without saying whether it succeeded", run.name);
            let state = judged(subject, Reason::RunEndedUnknown, format!("Build failed: {message}"));
            Plan::of(status::update(subject, &finished(subject, run, state)))
        });
    }
    let cancels = subject.cancels();
    let mut ops = status::update(subject, &building(subject, run, cancels));
    if cancels && is_to_be_cancelled(run) {
        ops.push(cancel(subject.namespace(), run));
    }
    let (question, read) = watched(subject, run);
    ops.extend(question);
    Plan { ops, again: Some(SAFETY), note: Note { read: Some(read), ..Note::default() } }
}

/// TaskRuns of a run that has ended are on their way, as a rule. Those of a run that lost its label have none either, and are read by their names, once.
fn awaited(subject: &Subject<'_>, run: &RunRef<'_>, plan: Plan) -> Plan {
    let now = subject.cx.now;
    let since = plan.note.held.unwrap_or(now);
    let was_asked = subject.read_of(run.name).is_some_and(|read| read.at > since);
    let asks = !was_asked && now.saturating_sub(since) >= UNSEEN;
    let find = |name: &str| Op::Find { kind: Kind::TaskRun, key: Key::new(subject.namespace(), name) };
    let unseen = outcome::unseen(subject, run).take(MOST).filter(|_| asks);
    let ops = unseen.map(|child| find(&child.name)).collect();
    let lost = subject.read_of(run.name).is_some_and(|read| read.lost);
    let at = if asks || was_asked { now } else { since };
    let read = Read { run: run.name.to_string(), version: run.version, at, lost };
    Plan { ops, again: Some(Duration::from_secs(1)), note: Note { read: Some(read), ..plan.note } }
}

fn building(subject: &Subject<'_>, run: &RunRef<'_>, cancels: bool) -> State {
    let message = match &run.seen.succeeded {
        _ if cancels => format!("PipelineRun {} is being cancelled", run.name),
        Some(succeeded) if !succeeded.message.is_empty() => failure::words(&succeeded.message),
        _ => format!("PipelineRun {} has been created", run.name),
    };
    let stuck = outcome::children(subject, run).find_map(|(_, child)| failure::stuck(child.seen));
    let message = stuck.map_or(message.clone(), |stuck| format!("{message}; {stuck}"));
    let mut state = State::new(Phase::Building, Reason::BuildInProgress, message);
    state.members.insert("tasks".to_owned(), outcome::tasks(subject, run));
    state.exists = Some(Reason::PipelineRunFound);
    let attempt = subject.recorded_attempt();
    state.telling(EXISTS, Reason::BuildStarted, format!("PipelineRun {} runs attempt {attempt}", run.name))
}

/// The end of an attempt.
fn judged(subject: &Subject<'_>, reason: Reason, message: impl Into<String>) -> State {
    let message = message.into();
    let run = subject.recorded("pipelineRunName");
    let told = if reason == Reason::Cancelled { Reason::BuildCancelled } else { Reason::BuildFailed };
    let text = format!("PipelineRun {run}: {message}");
    let mut state = State::new(Phase::Failed, reason, message).telling(READY, told, text);
    state.members.insert("handledCancel".to_owned(), subject.cancel().map_or(Value::Null, Value::from));
    state
}

fn finished(subject: &Subject<'_>, run: &RunRef<'_>, mut state: State) -> State {
    state.exists = Some(Reason::PipelineRunFound);
    state.members.insert("tasks".to_owned(), outcome::tasks(subject, run));
    let ended = run.seen.completed.as_deref().map_or(Value::Null, Value::from);
    state.members.insert("completionTime".to_owned(), ended);
    state.members.insert("handledCancel".to_owned(), subject.cancel().map_or(Value::Null, Value::from));
    let attempt = subject.recorded_attempt();
    // A run may end before it was ever seen to run.
    state.told.insert(0, (EXISTS, Reason::BuildStarted, format!("PipelineRun {} runs attempt {attempt}", run.name)));
    state
}

/// Another build is wanted than the one that runs: it is cancelled, and the other one waits for its end.
pub(super) fn supersede(subject: &Subject<'_>, run: &RunRef<'_>) -> Plan {
    let goes = if run.seen.deleting { "deleted" } else { "cancelled" };
    let message = format!("the build has changed; PipelineRun {} is being {goes}, and a new one follows", run.name);
    let mut state = State::new(Phase::Building, Reason::BuildNotReady, message);
    let stored = status::stored_reason(&subject.build.seen.status, READY);
    if stored != Some(Reason::BuildNotReady.code()) {
        // A wish to cancel that was there before meant this run; one that comes now means the build that waits.
        state = state.with("handledCancel", subject.cancel().map_or(Value::Null, Value::from));
    }
    let mut ops = status::update(subject, &state);
    if !run.seen.deleting && is_to_be_cancelled(run) {
        ops.push(cancel(subject.namespace(), run));
    }
    let (question, read) = watched(subject, run);
    ops.extend(question);
    Plan { ops, again: Some(SAFETY), note: Note { read: Some(read), ..Note::default() } }
}

/// Whether nobody has asked Tekton yet to end a run.
pub(super) fn is_to_be_cancelled(run: &RunRef<'_>) -> bool {
    run.seen.spec_status.as_deref().is_none_or(|status| !ENDING.contains(&status))
}

/// Asks Tekton to cancel a run.
pub(super) fn cancel(namespace: &str, run: &RunRef<'_>) -> Op {
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": run.uid},
        {"op": "add", "path": "/spec/status", "value": CANCELLED},
    ]);
    Op::Edit { kind: Kind::PipelineRun, key: Key::new(namespace, run.name), operations }
}

/// The judgement of a run that failed.
pub(super) fn failed(subject: &Subject<'_>, reason: Reason, message: impl Into<String>) -> State {
    judged(subject, reason, format!("Build failed: {}", message.into()))
}
