//! The status of one AgentBuild: phase, words, conditions, and what people are told.
//!
//! In: the status as stored and what was found. Out: the operations that bring it up to date: none when it is. Promises:
//! an Event only with a condition that changes; conditions of others stay; times move only with the judgement.

use serde_json::{Map, Value, json};

use super::face::Words;
use super::failure::cut;
use super::subject::Subject;
use crate::controllers::conditions::{self, Condition};
use crate::controllers::scaffold::plan::{Op, Report};
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::store::{Key, Kind};

pub(super) const READY: &str = "Ready";
pub(super) const SUCCEEDED: &str = "BuildSucceeded";
pub(super) const EXISTS: &str = "PipelineRunExists";
const TEKTON: &str = "TektonAvailable";
const TEMPLATE: &str = "TemplateResolved";
const OURS: [&str; 7] = [READY, SUCCEEDED, EXISTS, TEKTON, TEMPLATE, "Reconciling", "Stalled"];
const KEPT: [&str; 1] = [EXISTS];
/// Longest `status.message`, in bytes. Names from ConfigMaps stand in it as often as steps have them, and with a hundred of the longest the API server
/// would take no status at all.
const LONGEST: usize = 32 * 1024;

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Pending,
    Building,
    Succeeded,
    /// The run, or what was to become one, is judged: it is not tried again by itself.
    Failed,
    /// It could not start: it does once what is missing is there.
    Waiting,
}

impl Phase {
    fn as_str(self, words: &Words) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Building => "Building",
            Phase::Succeeded => words.succeeded,
            Phase::Failed | Phase::Waiting => "Failed",
        }
    }
}

/// How a build stands.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) phase: Phase,
    /// Why, in one word: the reason of condition `Ready`.
    pub(super) reason: Reason,
    /// Why, for people.
    pub(super) message: String,
    /// What condition `Ready` says instead of the message.
    pub(super) ready: Option<String>,
    /// Condition `PipelineRunExists`; `None` leaves what is stored.
    pub(super) exists: Option<Reason>,
    /// No run is spoken of any more: what the status says of one goes.
    pub(super) gone: bool,
    /// What is said of Tekton instead of what the watches know.
    pub(super) tekton: Option<(Reason, String)>,
    /// Members of the status; null takes one away.
    pub(super) members: Map<String, Value>,
    /// What people are told when that condition changes.
    pub(super) told: Vec<(&'static str, Reason, String)>,
}

impl State {
    pub(super) fn new(phase: Phase, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            phase,
            reason,
            message: message.into(),
            ready: None,
            exists: None,
            gone: false,
            tekton: None,
            members: Map::new(),
            told: Vec::new(),
        }
    }

    pub(super) fn telling(mut self, with: &'static str, reason: Reason, message: impl Into<String>) -> Self {
        self.told.push((with, reason, message.into()));
        self
    }

    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.members.insert(key.to_owned(), value.into());
        self
    }
}

/// Whether the stored status holds a judgement about the attempt it names.
pub(super) fn is_judged(status: &Value) -> bool {
    let list = status.get("conditions").unwrap_or(&Value::Null);
    let stored = conditions::stored(list, SUCCEEDED).and_then(|entry| entry.get("status")?.as_str());
    matches!(stored, Some("True" | "False"))
}

/// The reason of a stored condition.
pub(super) fn stored_reason<'s>(status: &'s Value, type_: &str) -> Option<&'s str> {
    conditions::stored(status.get("conditions")?, type_)?.get("reason")?.as_str()
}

/// The operations that store `state`.
pub(super) fn update(subject: &Subject<'_>, state: &State) -> Vec<Op> {
    let build = &subject.build;
    let before = before(subject, &state.members);
    let list = build.seen.status.get("conditions").unwrap_or(&Value::Null);
    let wanted = conditions_of(subject, state);
    let kept: &[&str] = if state.gone { &[] } else { &KEPT };
    let mut now = before.clone();
    now.insert("observedGeneration".to_owned(), build.seen.generation.into());
    now.insert(subject.face.words.phase.to_owned(), state.phase.as_str(&subject.face.words).into());
    now.insert("message".to_owned(), cut(&state.message, LONGEST).into());
    put(&mut now, &state.members);
    now.insert("conditions".to_owned(), conditions::merged(list, &wanted, &OURS, kept, build.seen.generation));
    let is_news = |type_: &str| wanted.iter().any(|one| one.type_ == type_ && conditions::is_news(list, one));
    let news = state.told.iter().filter(|(with, _, _)| is_news(with));
    let reports = news.map(|(_, reason, message)| report(subject, *reason, message.clone()));
    let patch = stored(subject, before, now);
    // What is told comes first: told twice it makes one Event, and written it would not be told at all.
    if patch.is_empty() { Vec::new() } else { reports.chain(patch).collect() }
}

/// The operation that stores what a judged build still has to note: the generation that was seen, and these members.
pub(super) fn note(subject: &Subject<'_>, members: &Map<String, Value>) -> Vec<Op> {
    let build = &subject.build;
    let before = before(subject, members);
    let mut now = before.clone();
    now.insert("observedGeneration".to_owned(), build.seen.generation.into());
    put(&mut now, members);
    for entry in now.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        if entry.get("type").and_then(Value::as_str).is_some_and(|type_| OURS.contains(&type_)) {
            entry["observedGeneration"] = build.seen.generation.into();
        }
    }
    stored(subject, before, now)
}

/// The operations that store members and conditions of a judged build, and leave everything else of its status.
pub(super) fn amend(
    subject: &Subject<'_>,
    members: &Map<String, Value>,
    (wanted, ours): (&[Condition], &[&str]),
) -> Vec<Op> {
    let build = &subject.build;
    let before = before(subject, members);
    let mut now = before.clone();
    put(&mut now, members);
    let list = build.seen.status.get("conditions").unwrap_or(&Value::Null);
    let merged = conditions::merged(list, wanted, ours, &[], build.seen.generation);
    now.insert("conditions".to_owned(), in_order(list, merged));
    stored(subject, before, now)
}

/// Those conditions in the order in which they are stored, new ones last: what several parts of a plan say in turn moves nothing.
fn in_order(stored: &Value, mut conditions: Value) -> Value {
    let stored = stored.as_array().map_or(&[][..], Vec::as_slice);
    let place = |one: &Value| stored.iter().position(|known| known.get("type") == one.get("type"));
    if let Some(conditions) = conditions.as_array_mut() {
        conditions.sort_by_key(|one| place(one).unwrap_or(usize::MAX));
    }
    conditions
}

/// The status as stored, as far as an update with these members can change it: of what is kept as text, only what is among them is read.
fn before(subject: &Subject<'_>, members: &Map<String, Value>) -> Map<String, Value> {
    let seen = subject.build.seen;
    let mut status = seen.status.as_object().cloned().unwrap_or_default();
    let touched = seen.records.iter().filter(|(member, _)| members.contains_key(*member));
    status.extend(touched.map(|(member, kept)| ((*member).to_owned(), kept.value())));
    status
}

fn put(status: &mut Map<String, Value>, members: &Map<String, Value>) {
    for (key, value) in members {
        if value.is_null() {
            status.remove(key);
        } else {
            status.insert(key.clone(), value.clone());
        }
    }
}

fn stored(subject: &Subject<'_>, before: Map<String, Value>, now: Map<String, Value>) -> Vec<Op> {
    let build = &subject.build;
    let (before, now) = (Value::Object(before), Value::Object(now));
    let Some(patch) = conditions::difference(&before, &now) else { return Vec::new() };
    let metadata = json!({"uid": build.uid, "resourceVersion": build.version.to_string()});
    let patch = json!({"metadata": metadata, "status": patch});
    vec![Op::Status { kind: subject.face.kind, key: Key::new(subject.namespace(), build.name), patch }]
}

/// An Event about the build.
pub(super) fn report(subject: &Subject<'_>, reason: Reason, message: String) -> Op {
    Op::Report(Report {
        kind: subject.face.kind,
        about: Key::new(subject.namespace(), subject.build.name),
        uid: subject.build.uid.to_owned(),
        reason,
        message,
        since: String::new(),
    })
}

fn conditions_of(subject: &Subject<'_>, state: &State) -> Vec<Condition> {
    let State { phase, reason, message, .. } = state;
    let mut all = vec![
        (subject.face.ready)(subject, state).filter(|_| *phase == Phase::Succeeded).unwrap_or_else(|| {
            Condition::new(READY, *phase == Phase::Succeeded, *reason, state.ready.as_ref().unwrap_or(message).clone())
        }),
        succeeded(*phase, *reason, message),
    ];
    if let Some(exists) = state.exists {
        let name = state.members.get("pipelineRunName").and_then(Value::as_str);
        let name = name.unwrap_or_else(|| subject.recorded("pipelineRunName"));
        let words = exists.sentence();
        all.push(Condition::new(EXISTS, exists == Reason::PipelineRunFound, exists, format!("{name}: {words}")));
    }
    all.push(tekton(subject, state));
    if let Some(template) = subject.build.seen.annotations.get(keys::ANNOTATION_PIPELINE_TEMPLATE) {
        let drifted = *reason == Reason::TemplateDrift;
        let why = if drifted { Reason::TemplateDrift } else { Reason::TemplateResolved };
        all.push(Condition::new(TEMPLATE, !drifted, why, template.clone()));
    }
    match phase {
        Phase::Pending | Phase::Building => {
            all.push(Condition::new("Reconciling", true, *reason, message.clone()));
        }
        Phase::Failed | Phase::Waiting => all.push(Condition::new("Stalled", true, *reason, message.clone())),
        Phase::Succeeded => {}
    }
    all
}

fn succeeded(phase: Phase, reason: Reason, message: &str) -> Condition {
    match phase {
        Phase::Pending | Phase::Waiting => {
            let words = "no run of the present spec has ended";
            Condition::unknown(SUCCEEDED, Reason::BuildPending, words)
        }
        Phase::Building if reason == Reason::PipelineRunPending => {
            Condition::unknown(SUCCEEDED, Reason::BuildStarted, message)
        }
        Phase::Building => Condition::unknown(SUCCEEDED, Reason::BuildInProgress, message),
        Phase::Succeeded if reason == Reason::ImageKnown => Condition::new(SUCCEEDED, true, reason, message),
        Phase::Succeeded => Condition::new(SUCCEEDED, true, Reason::BuildCompleted, message),
        Phase::Failed => Condition::new(SUCCEEDED, false, Reason::BuildFailed, message),
    }
}

fn tekton(subject: &Subject<'_>, state: &State) -> Condition {
    if let Some((reason, message)) = &state.tekton {
        return Condition::new(TEKTON, false, *reason, message.clone());
    }
    match subject.tekton_lacks() {
        None => {
            Condition::new(TEKTON, true, Reason::TektonServed, "PipelineRuns and TaskRuns of tekton.dev/v1 are served")
        }
        Some((kind, absent)) => {
            let reason = if absent { Reason::TektonAbsent } else { Reason::TektonUnreachable };
            Condition::new(TEKTON, false, reason, lacking(kind, absent))
        }
    }
}

/// That Tekton is not there, and what to do.
pub(super) fn lacking(kind: Kind, absent: bool) -> String {
    let kind = kind.as_str();
    if absent {
        format!(
            "the API server does not serve {kind} of tekton.dev/v1: install Tekton Pipelines; the build follows by itself"
        )
    } else {
        format!("tekton.dev/v1 {kind} cannot be read at present; the build goes on once it can")
    }
}
