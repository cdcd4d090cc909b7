//! From a wish to a run: everything is looked at before the status claims an attempt, then the run is created.
//!
//! Order of the writes: dry-run create, claim of the workspace, status, run. Whatever ends the process in between, the
//! next plan makes the same ones again: names follow from object, inputs and attempt, and what exists already counts.
//! The dry run is spared where a run of the same shape was taken in the namespace a short while ago: hundreds of builds
//! of one template cost whoever admits runs one question, not one each. A run that is refused all the same gives up
//! the attempt that was claimed for it.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::clean_up;
use super::known;
use super::prerequisites;
use super::provenance;
use super::status::{self, Phase, READY, State, lacking};
use super::subject::Subject;
use crate::api::agent_kagenti_dev::provenance::INPUTS;
use crate::api::digest;
use crate::api::findings::{Fault, Findings, printed};
use crate::controllers::agent_build::memory::Plan;
use crate::controllers::agent_build::note::Note;
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{NOW, Op};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::pipelines::compose::{Composition, Surroundings, compose};
use crate::pipelines::names;
use crate::pipelines::request::BuildRequest;
use crate::store::Kind;
use crate::store::objects::RunRef;

/// First and longest pause before something that failed is tried again.
const PAUSE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));
/// How soon a workspace that is on its way out is looked at again.
const SOON: Duration = Duration::from_secs(2);
/// Failures in a row that people are told of.
const FAILURES: u32 = 3;

/// What a build says whose last one is judged and whose next one is looked at.
const CHANGED: &str = "the build has changed since its last run; a new one is being prepared";

/// What to do about a build for which no run exists.
pub(super) fn plan(subject: &Subject<'_>) -> Plan {
    if let Some((kind, absent)) = subject.tekton_lacks() {
        return Plan::of(status::update(subject, &waiting_for_tekton(subject, kind, absent)));
    }
    if subject.cancels() {
        return Plan::of(status::update(subject, &cancelled(subject)));
    }
    if status::is_judged(&subject.build.seen.status) {
        // Secrets and Tekton are asked first, and may take their time: what is stored speaks of another build.
        let ops = status::update(subject, &State::new(Phase::Pending, Reason::BuildPending, CHANGED));
        return Plan { ops, again: Some(Duration::ZERO), note: Note::default() };
    }
    let held = subject.held();
    if subject.builds().view.is_waiting(subject.steps_namespace()) {
        // A step that is missing may only be late.
        return Plan { ops: Vec::new(), again: Some(SOON), note: Note::held(subject.held()) };
    }
    let questions = prerequisites::questions(subject);
    if !questions.is_empty() {
        return Plan { ops: questions, again: Some(Duration::ZERO), note: Note::held(held) };
    }
    let mut request = subject.request.clone();
    request.attempt = attempt(subject);
    provenance::pin(subject, &mut request);
    let mut found = Findings::default();
    let secrets = prerequisites::secrets(subject, &mut request);
    let asks_again = !secrets.is_empty();
    let judged = (subject.face.judge)(subject);
    secrets.into_iter().chain(judged).for_each(|fault| found.fault(fault));
    let composition = composed(subject, &request);
    let (composition, faults) = match composition {
        Ok(composition) => (Some(composition), Vec::new()),
        Err(faults) => (None, faults),
    };
    faults.into_iter().for_each(|fault| found.fault(fault));
    match composition.filter(|_| found.faults.is_empty()) {
        Some(composition) => {
            let composition = composition.recorded();
            match known::state(subject, &composition) {
                Some(state) => Plan::of(status::update(subject, &state)),
                None => claim(subject, &request, composition),
            }
        }
        None => wait(subject, &found.faults, asks_again),
    }
}

fn waiting_for_tekton(subject: &Subject<'_>, kind: Kind, absent: bool) -> State {
    let reason = if absent { Reason::TektonAbsent } else { Reason::TektonUnreachable };
    State::new(before_run(subject), reason, lacking(kind, absent))
}

/// Cancelled before there was a run: what was wanted counts as judged.
fn cancelled(subject: &Subject<'_>) -> State {
    let message = format!(
        "the build was cancelled before its run began; a change of the spec, or of annotation {}, starts it again",
        subject.face.front.annotation_rebuild
    );
    State::new(Phase::Failed, Reason::Cancelled, message.clone())
        .with("buildHash", subject.hash.clone())
        .with("attempts", attempt(subject))
        .with("pipelineRunName", Value::Null)
        .with("handledCancel", subject.cancel().map_or(Value::Null, Value::from))
        .with("tasks", Value::Null)
        .with(INPUTS, Value::Null)
        .telling(READY, Reason::BuildCancelled, format!("{message} (build {})", short(&subject.hash)))
}

fn short(hash: &str) -> &str {
    hash.get(..12).unwrap_or(hash)
}

/// The attempt that is claimed; else the one after those that have runs; never one whose name somebody else has.
pub(super) fn attempt(subject: &Subject<'_>) -> u32 {
    let claimed = subject.is_claimed().then(|| subject.recorded_attempt());
    let made = subject.runs().filter_map(|run| run.seen.attempt.filter(|attempt| is_of(subject, &run, *attempt)));
    let is_free = |attempt: &u32| subject.cx.store.run(subject.namespace(), &run_name(subject, *attempt)).is_none();
    let next = || {
        let after = made.max().map_or(1, |last| last + 1);
        (after..).find(is_free).unwrap_or(after)
    };
    let wanted = claimed.unwrap_or_else(next);
    wanted.max(taken(subject).map_or(0, |taken| taken + 1))
}

/// Whether a run is that attempt at what is wanted. Its annotations are whatever somebody wrote, but its name follows from the attempt; and the number
/// of the one after it has to have room in the status.
fn is_of(subject: &Subject<'_>, run: &RunRef<'_>, attempt: u32) -> bool {
    attempt < i32::MAX.unsigned_abs() && **run.name == *run_name(subject, attempt)
}

/// The name of the run of that attempt at what is wanted.
fn run_name(subject: &Subject<'_>, attempt: u32) -> String {
    names::run_name(&subject.request.owner.name, &names::attempt_hash(&subject.hash, attempt))
}

/// The attempt whose name turned out to be somebody else's.
fn taken(subject: &Subject<'_>) -> Option<u32> {
    let trouble = subject.trouble().filter(|trouble| trouble.refused == Some(Reason::NameConflict))?;
    let (Op::Ensure { kind, body, .. } | Op::Try { kind, body, .. }) = &trouble.op else { return None };
    let annotation = |key: &str| body.get("metadata")?.get("annotations")?.get(key)?.as_str();
    let front = subject.face.front;
    let same = *kind == Kind::PipelineRun && annotation(front.annotation_hash) == Some(&*subject.hash);
    annotation(front.annotation_attempt).filter(|_| same)?.parse().ok()
}

fn composed(subject: &Subject<'_>, request: &BuildRequest) -> Result<Composition, Vec<Fault>> {
    let builds = subject.builds();
    let accounts: BTreeSet<String> = subject.cx.store.build_accounts(subject.namespace()).map(str::to_owned).collect();
    let around = Surroundings {
        steps: builds.view.steps(subject.steps_namespace()),
        settings: &builds.settings.pipelines,
        accounts: Some(&accounts),
    };
    compose(request, around).map_err(|mut found| {
        (subject.face.leave)(subject.face.front, &mut found);
        found.faults.into_iter().chain(found.content).collect()
    })
}

/// The build cannot start; it does once what is wrong is put right.
pub(super) fn wait(subject: &Subject<'_>, faults: &[Fault], asks_again: bool) -> Plan {
    let now = subject.cx.now;
    let held = subject.held().unwrap_or(now);
    let reason = reason_of(faults);
    let message = format!("Validation failed: {}", printed(faults).replace('\n', " "));
    let state = State::new(Phase::Waiting, reason, message.clone()).telling(READY, Reason::ValidationFailed, message);
    let again = if asks_again {
        prerequisites::interval(Some(held), now, subject.held_in_namespace())
    } else {
        now.saturating_sub(held).clamp(PAUSE.0, PAUSE.1)
    };
    let note = Note::held(Some(held));
    Plan { ops: status::update(subject, &state), again: Some(again), note }
}

/// The word for several faults: the one that most needs a person.
fn reason_of(faults: &[Fault]) -> Reason {
    let has = |reasons: &[Reason]| faults.iter().any(|fault| reasons.contains(&fault.reason));
    match () {
        () if has(&[Reason::StepDrift]) => Reason::StepDrift,
        () if has(&[Reason::TemplateDrift]) => Reason::TemplateDrift,
        () if has(&[Reason::SecretNotUsable]) => Reason::SecretNotUsable,
        () if has(&[Reason::PrerequisitesMissing, Reason::StepMissing, Reason::TemplateMissing]) => {
            Reason::PrerequisitesMissing
        }
        () => Reason::CompositionFailed,
    }
}

/// Claims the attempt and creates its run, unless that was refused a short while ago.
fn claim(subject: &Subject<'_>, request: &BuildRequest, composition: Composition) -> Plan {
    let namespace = subject.namespace().to_owned();
    let owner = subject.build.uid.to_owned();
    let text = |value: &Value| value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (name, workspace) = (text(&composition.run), text(&composition.claim));
    let existing = subject.cx.store.claim(&namespace, &workspace);
    if existing.is_some_and(|claim| claim.seen.deleting) {
        let ops = status::update(subject, &awaiting(subject, &workspace));
        return Plan { ops, again: Some(SOON), note: Note::default() };
    }
    let Composition { run: body, claim, inputs, .. } = composition;
    let (claim, content) = marked(claim);
    let is_other = existing.and_then(|claim| claim.seen.applied.as_deref()).is_some_and(|applied| applied != content);
    if is_other && !subject.is_claimed() && subject.cleans_up() {
        let build = (&**subject.build.name, subject.build.uid);
        if let Some(delete) = clean_up::claim_of(subject.cx.store, &namespace, subject.face, build) {
            let said = status::update(subject, &awaiting(subject, &workspace));
            return Plan { ops: said.into_iter().chain([delete]).collect(), again: Some(SOON), note: Note::default() };
        }
    }
    let kind = Kind::PipelineRun;
    let shape = names::run_shape(&body);
    // One that had trouble is asked about, so that it does not claim and give up again and again.
    let known = request.attempt == 1
        && subject.trouble().is_none()
        && subject.cx.own.memory.shapes.is_taken(&namespace, &shape, subject.cx.now);
    let attempt = Op::Try { kind, namespace: namespace.clone(), body: body.clone(), shape, owner: owner.clone() };
    let made = existing.is_some_and(|claim| claim.seen.is_controlled_by(&owner));
    let room = Op::Ensure {
        kind: Kind::PersistentVolumeClaim,
        namespace: namespace.clone(),
        body: claim,
        owner: owner.clone(),
    };
    let run = Op::Ensure { kind, namespace, body, owner };
    let demands = prerequisites::demands(subject);
    let consent = Op::Consent { namespace: subject.namespace().to_owned(), demands };
    let login = request.login.as_ref().map(|login| super::beeai::login(subject, login));
    let tried: Vec<&Op> = login.iter().chain([&attempt, &consent, &room, &run]).collect();
    if let Some(plan) = hindered(subject, &tried) {
        return plan;
    }
    let mut ops = Vec::new();
    ops.extend(login);
    // At this moment, not when its keys were looked at.
    ops.extend(matches!(&consent, Op::Consent { demands, .. } if !demands.is_empty()).then_some(consent));
    ops.extend((!known).then_some(attempt));
    ops.extend((!made).then_some(room));
    ops.extend(status::update(subject, &claimed(subject, request, &name).with(INPUTS, json!(inputs))));
    ops.push(run);
    Plan::of(ops)
}

/// The claim with a digest of what is asked for: its size and class cannot be changed, so one of another build before may be another one.
fn marked(mut claim: Value) -> (Value, String) {
    let content = digest::of_json(&claim["spec"]);
    claim["metadata"]["annotations"][keys::ANNOTATION_CONTENT_DIGEST] = content.clone().into();
    (claim, content)
}

/// The workspace of the run before is on its way out, which lasts as long as a Pod uses it.
fn awaiting(subject: &Subject<'_>, workspace: &str) -> State {
    let namespace = subject.namespace();
    let message = format!(
        "waiting for PersistentVolumeClaim {workspace} to be gone: it is being deleted, and Kubernetes keeps it while a Pod \
         uses it; the new run follows by itself. Who uses it: kubectl -n {namespace} describe pvc {workspace}"
    );
    State::new(before_run(subject), Reason::WorkspaceTerminating, message)
}

/// The phase of a build whose run does not exist: an attempt that is claimed has begun.
fn before_run(subject: &Subject<'_>) -> Phase {
    if subject.is_claimed() { Phase::Building } else { Phase::Pending }
}

fn claimed(subject: &Subject<'_>, request: &BuildRequest, name: &str) -> State {
    let mut state = State::new(Phase::Building, Reason::PipelineRunPending, "Creating PipelineRun")
        .with("pipelineRunName", name)
        .with("buildHash", subject.hash.clone())
        .with("attempts", request.attempt)
        .with("completionTime", Value::Null)
        .with("tasks", Value::Null)
        .with(INPUTS, Value::Null)
        .with("handledCancel", subject.cancel().map_or(Value::Null, Value::from));
    state.exists = Some(Reason::PipelineRunPending);
    // An attempt that is claimed already began when it was.
    let began = subject.face.words.began;
    if subject.recorded("pipelineRunName") != name || subject.recorded(began).is_empty() {
        state = state.with(began, NOW);
    }
    state
}

/// What to do instead of trying the very same again at once.
fn hindered(subject: &Subject<'_>, ops: &[&Op]) -> Option<Plan> {
    let trouble = subject.trouble().filter(|trouble| ops.contains(&&trouble.op))?;
    let Some(reason) = trouble.refused else {
        let ops = unreachable(subject, trouble);
        return (!ops.is_empty()).then_some(Plan { ops, again: Some(Duration::ZERO), note: Note::default() });
    };
    if reason == Reason::NameConflict
        && matches!(&trouble.op, Op::Ensure { kind, .. } | Op::Try { kind, .. } if *kind == Kind::PipelineRun)
    {
        return None;
    }
    let pause = PAUSE.0.saturating_mul(1 << trouble.times.saturating_sub(1).min(5)).min(PAUSE.1);
    let since = subject.cx.now.saturating_sub(trouble.at);
    if since >= pause {
        return None;
    }
    let message = format!("Validation failed: {}", refused(&trouble.op, reason, &trouble.message));
    let mut state =
        State::new(Phase::Waiting, reason, message.clone()).telling(READY, Reason::ValidationFailed, message);
    if subject.is_claimed() && subject.recorded_attempt() == 1 {
        // No run was made: the status names none, and the next one to be made is the same one.
        state = ["pipelineRunName", "buildHash", "attempts", INPUTS]
            .iter()
            .fold(state, |state, key| state.with(key, Value::Null));
        state.exists = Some(Reason::PipelineRunNotFound);
    }
    Some(Plan { ops: status::update(subject, &state), again: Some(pause - since), note: Note::default() })
}

/// What is said of an operation that was refused, with what to do about it.
fn refused(op: &Op, reason: Reason, words: &str) -> String {
    let is_workspace = matches!(op, Op::Ensure { kind: Kind::PersistentVolumeClaim, .. });
    // A quota counts what is there, whatever the build says.
    let is_full = words.contains("exceeded quota");
    if reason != Reason::RunRefused || !(is_workspace || is_full) {
        return refusal(reason, words);
    }
    let what = if is_workspace { "the workspace (a PersistentVolumeClaim)" } else { "the run" };
    let remedy = if is_full {
        "make room in that quota, or have it raised"
    } else {
        "change the size or storage class that is asked for, or what refuses it"
    };
    format!("{what} was refused: {words}. What to do: {remedy}; the build follows by itself")
}

/// What is said of a refusal, with what to do about it.
pub(super) fn refusal(reason: Reason, words: &str) -> String {
    match reason {
        Reason::NameConflict => format!(
            "{words}. What to do: delete or rename it; the build needs that name and never takes over what it has not made"
        ),
        Reason::SecretNotUsable => words.to_owned(),
        Reason::PrerequisitesMissing => {
            format!("{words}. What to do: put the token there; the build follows by itself")
        }
        Reason::LoginRefused => {
            format!(
                "the Secret with the login of the registry was refused: {words}. What to do: make room for it, or name a Secret by IMAGE_REPO_SECRET"
            )
        }
        Reason::NotPermitted => {
            format!(
                "{words}. What to do: apply what drawbridge render prints for this installation; drawbridge doctor shows which right is missing"
            )
        }
        _ => format!(
            "the run was refused: {words}. What to do: change the build or the ConfigMap of the step that it names"
        ),
    }
}

/// Somebody on the way to creating runs does not answer: said once it is no accident.
fn unreachable(subject: &Subject<'_>, trouble: &Trouble) -> Vec<Op> {
    if trouble.times < FAILURES {
        return Vec::new();
    }
    let message = format!("runs cannot be created at present, and are tried again: {}", trouble.message);
    let mut state = State::new(before_run(subject), Reason::TektonUnreachable, message.clone());
    state.tekton = Some((Reason::TektonUnreachable, message));
    status::update(subject, &state)
}

/// The plan that starts the next attempt, after the run of the one before is gone.
pub(super) fn next_attempt(subject: &Subject<'_>) -> Plan {
    let attempt = subject.recorded_attempt().saturating_add(1);
    let message = format!("PipelineRun {} is gone; attempt {attempt} follows", subject.recorded("pipelineRunName"));
    let mut request = subject.request.clone();
    request.attempt = attempt;
    let mut state = claimed(subject, &request, &run_name(subject, attempt));
    state.message = message;
    Plan { ops: status::update(subject, &state), again: Some(Duration::ZERO), note: Note::default() }
}
