//! Which AgentBuild a change concerns, and which part of its life it is in.

use std::time::Duration;

use serde_json::{Value, json};

use super::face::{Face, KAGENTI};
use super::status::{self, Phase, State};
use super::subject::Subject;
use super::{ending, follow, start};
use crate::api::findings::Fault;
use crate::controllers::agent_build::memory::{AgentBuilds, Context, Plan};
use crate::controllers::scaffold::memory::Trouble;
use crate::controllers::scaffold::plan::{Name, Op, Row};
use crate::domain::reason::Reason;
use crate::store::objects::CustomRef;
use crate::store::{Key, Kind, OwnerReference, Store, What};

/// The controller's name.
pub const NAME: Name = Name::new("agent-build");

/// Failures in a row that people are told of.
const FAILURES: u32 = 3;
/// How long a build is left alone whose status was not kept.
const UNKEPT: Duration = Duration::from_secs(300);

/// The controller's row. Its items are AgentBuilds.
pub const ROW: Row<AgentBuilds> = Row {
    controller: NAME,
    touched: |store, _, kind, key| concerned(store, (kind, key), &KAGENTI),
    of_namespace: |store, namespace| all(store, namespace, &KAGENTI),
    plan: |cx| planned(cx, &KAGENTI),
};

/// The builds of that face that a change of an object may concern.
pub(super) fn concerned(store: &Store, (kind, key): (Kind, &Key), face: &Face) -> Vec<Key> {
    let Key { namespace, name } = key;
    match kind {
        kind if kind == face.kind => vec![key.clone()],
        Kind::PipelineRun | Kind::TaskRun | Kind::PersistentVolumeClaim | Kind::Pod => {
            build_of(store, (kind, namespace, name), face).into_iter().collect()
        }
        Kind::ServiceAccount => {
            let concerned = store.service_account(namespace, name).is_some_and(|(seen, _, _)| seen.for_builds);
            if concerned { unjudged(store, namespace, face) } else { Vec::new() }
        }
        Kind::Namespace => all(store, name, face),
        _ => Vec::new(),
    }
}

/// The AgentBuild of that face behind an object: its owner, or the one behind its run or TaskRun. Owners are whatever somebody wrote, and may lead in a
/// circle: only who is nearer to the build is followed.
fn build_of(store: &Store, (kind, namespace, name): (Kind, &str, &str), face: &Face) -> Option<Key> {
    let owner = controller_of(store, kind, namespace, name)?;
    let nearer = match (kind, owner.kind.as_str()) {
        (_, "AgentBuild") => {
            let build = store.custom(face.kind, namespace, &owner.name).filter(|build| build.uid == owner.uid)?;
            return Some(Key::new(namespace, build.name));
        }
        (Kind::Pod, "TaskRun") => Kind::TaskRun,
        (Kind::TaskRun, "PipelineRun") => Kind::PipelineRun,
        _ => return None,
    };
    build_of(store, (nearer, namespace, &owner.name), face)
}

fn unjudged(store: &Store, namespace: &str, face: &Face) -> Vec<Key> {
    let open = store.customs(face.kind, namespace).filter(|build| !status::is_judged(&build.seen.status));
    open.map(|build| Key::new(namespace, build.name)).collect()
}

/// The builds of that face in a namespace.
pub(super) fn all(store: &Store, namespace: &str, face: &Face) -> Vec<Key> {
    store.customs(face.kind, namespace).map(|build| Key::new(namespace, build.name)).collect()
}

/// What to do about one build of that face.
pub(super) fn planned(cx: Context<'_>, face: &'static Face) -> Plan {
    let Key { namespace, name } = cx.key;
    let Some(build) = cx.store.custom(face.kind, namespace, name) else { return Plan::nothing() };
    if build.seen.deleting {
        return ending::plan(&cx, face, &build);
    }
    if !(face.is_served)(&cx.facts.snapshot.builds.settings) {
        return Plan::nothing();
    }
    // In a namespace that goes, nothing can be made.
    if cx.store.namespace(namespace).is_none() {
        return Plan::nothing();
    }
    let subject = Subject::new(cx, face, build);
    if let Some(plan) = unkept(&subject) {
        return plan;
    }
    if let Some(over) = build.seen.over {
        return start::wait(&subject, &[Fault::over(over)], false);
    }
    if !build.seen.carries(face.finalizer) {
        return first_sight(&subject);
    }
    if status::is_judged(&build.seen.status) {
        return life(&subject);
    }
    if let Some(plan) = follow::sought(&subject) {
        return plan;
    }
    let mut plan = life(&subject);
    if plan.note.read.is_none() {
        // What was asked about the run that the status names is not asked anew by every look at the build.
        plan.note.read = subject.read_of(subject.recorded("pipelineRunName")).cloned();
    }
    plan
}

/// What to do about a build that has our finalizer.
fn life(subject: &Subject<'_>) -> Plan {
    let (build, face) = (&subject.build, subject.face);
    if subject.is_claimed() {
        if status::is_judged(&build.seen.status) { (face.settled)(subject) } else { follow::plan(subject) }
    } else if let Some(state) = (face.inherits)(subject) {
        Plan::of(status::update(subject, &state))
    } else {
        match subject.other_active_run() {
            Some(run) => follow::supersede(subject, &run),
            None => start::plan(subject),
        }
    }
}

/// A build whose status is not kept is left alone for a while, and people are told. What was claimed and found out would be forgotten at once: its
/// run would be taken for another build's and cancelled, and the next one made, without end.
fn unkept(subject: &Subject<'_>) -> Option<Plan> {
    let note = subject.cx.note()?;
    let (at, members) = note.unkept.as_ref()?;
    let left = UNKEPT.checked_sub(subject.cx.now.saturating_sub(*at)).filter(|left| !left.is_zero())?;
    let lacks = if members.is_empty() {
        "has no subresource status".to_owned()
    } else {
        format!("does not know {} in a status", members.join(", "))
    };
    let kind = subject.face.kind;
    let message = format!(
        "the installed definition {}.{} {lacks}, so what becomes of the build cannot be kept, and no run is made for it. What to do: apply the \
         definitions of this version (drawbridge doctor shows what the installed one lacks); the build follows within five minutes",
        kind.plural(),
        kind.group()
    );
    let told = status::report(subject, Reason::PrerequisitesMissing, message);
    Some(Plan { ops: vec![told], again: Some(left), note: note.clone() })
}

/// The finalizer, before anything is made; and a first word for people.
fn first_sight(subject: &Subject<'_>) -> Plan {
    let is_new = subject.build.seen.status.get(subject.face.words.phase).is_none();
    let pending = |message: String| {
        let mut state = State::new(Phase::Pending, Reason::BuildPending, message);
        if is_new {
            state.members.insert("handledCancel".to_owned(), subject.cancel().map_or(Value::Null, Value::from));
        }
        state
    };
    if let Some(trouble) = unmarked(subject) {
        // Whoever refuses that refuses changes of the object, and seldom those of its status.
        let message = format!("{UNMARKED} {} cannot be put on it: {}", subject.face.finalizer, trouble.message);
        let said = status::update(subject, &pending(message));
        return Plan { again: Some(Duration::ZERO), ..Plan::of(said) };
    }
    let mut ops = vec![finalizer(&subject.cx, subject.face, &subject.build, true)];
    if is_new {
        let state = pending("Build pending".to_owned());
        ops.extend(status::update(subject, &state).into_iter().map(without_version));
    }
    Plan::of(ops)
}

/// How it is said that our finalizer is refused.
const UNMARKED: &str = "nothing is made for the build yet, and it is tried again: finalizer";

/// Why our finalizer does not get onto a build that has not begun, where that is no accident and was not said yet.
fn unmarked<'a>(subject: &Subject<'a>) -> Option<&'a Trouble> {
    let is_said = subject.recorded("message").starts_with(UNMARKED);
    let has_begun = !matches!(subject.phase(), "" | "Pending");
    let trouble = subject.trouble().filter(|trouble| matches!(trouble.op, Op::Merge { .. }))?;
    (trouble.times >= FAILURES && !is_said && !has_begun).then_some(trouble)
}

/// The finalizer that is written first makes a new version.
fn without_version(mut op: Op) -> Op {
    if let Op::Status { patch, .. } = &mut op
        && let Some(metadata) = patch.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("resourceVersion");
    }
    op
}

/// Our finalizer on an AgentBuild, put on or taken off.
pub(super) fn finalizer(cx: &Context<'_>, face: &Face, build: &CustomRef<'_>, wanted: bool) -> Op {
    let others = build.seen.finalizers.iter().map(|name| &**name).filter(|name| *name != face.finalizer);
    let all: Vec<&str> = others.chain(wanted.then_some(face.finalizer)).collect();
    let patch = json!({"metadata": {
        "uid": build.uid,
        "resourceVersion": build.version.to_string(),
        "finalizers": if all.is_empty() { Value::Null } else { json!(all) },
    }});
    Op::Merge { kind: face.kind, key: Key::new(&cx.key.namespace, build.name), patch }
}

/// The owner that controls an object of those kinds for which that is looked up.
fn controller_of<'a>(store: &'a Store, kind: Kind, namespace: &str, name: &str) -> Option<&'a OwnerReference> {
    store.object(kind, namespace, name).map(|(_, observed)| &observed.what).and_then(What::controller)
}
