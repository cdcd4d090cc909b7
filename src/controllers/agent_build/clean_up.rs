//! What a judged build leaves behind.
//!
//! After a success finished Pods and the workspace go, older runs after any end; `cleanupAfterBuild: false` keeps all.
//! Promises: only what a TaskRun of our run controls is ever deleted, in the build's own namespace, by uid; a failure
//! changes no phase; what is done is noted once, when it is: what is only on its way out is not gone.

use std::time::Duration;

use serde_json::{Map, Value};

use super::face::Face;
use super::status;
use super::subject::Subject;
use crate::controllers::agent_build::memory::Plan;
use crate::controllers::scaffold::plan::Op;
use crate::domain::reason::Reason;
use crate::pipelines::names;
use crate::store::objects::{Ref, RunRef};
use crate::store::{BuildPodSeen, ClaimSeen, Key, Kind, PodPhase, Store, What};

/// How often unfinished Pods are looked at without being asked to.
const LATER: Duration = Duration::from_secs(30);
/// Failures in a row that people are told of.
const FAILURES: u32 = 3;

const DONE: &str = "Build complete, cleanup done";

/// What to do about a build that is judged.
pub(super) fn plan(subject: &Subject<'_>) -> Plan {
    let mut members = Map::new();
    if subject.cancels() {
        // There is nothing to cancel; the next build is not meant.
        members.insert("handledCancel".to_owned(), subject.cancel().map_or(Value::Null, Value::from));
    }
    let had_run =
        status::stored_reason(&subject.build.seen.status, status::SUCCEEDED) != Some(Reason::ImageKnown.code());
    if !subject.cleans_up() {
        return Plan::of(status::note(subject, &members));
    }
    if !had_run {
        return Plan::of(without_run(subject, &members));
    }
    let mut ops = history(subject);
    let mut again = None;
    let mut told = None;
    if subject.phase() == subject.face.words.succeeded && subject.recorded("message") != DONE {
        match leftovers(subject) {
            Leftovers::Unfinished => again = Some(LATER),
            Leftovers::Delete(more) => ops.extend(more),
            Leftovers::Leaving => again = Some(LATER),
            Leftovers::Gone => {
                members.insert("message".to_owned(), DONE.into());
                let run = subject.recorded("pipelineRunName");
                let text = format!("finished Pods and the workspace of PipelineRun {run} were removed");
                told = Some(status::report(subject, Reason::CleanupCompleted, text));
            }
        }
    }
    let noted = status::note(subject, &members);
    let told = told.filter(|_| !noted.is_empty());
    let mut all: Vec<Op> = told.into_iter().chain(noted).collect();
    if !ops.is_empty() {
        all.extend(trouble(subject));
        all.extend(ops);
    }
    Plan { ops: all, again, ..Plan::default() }
}

/// Where no run was needed, none left anything; but an attempt before that failed may have.
fn without_run(subject: &Subject<'_>, members: &Map<String, Value>) -> Vec<Op> {
    let mut all = status::note(subject, members);
    let build = (&**subject.build.name, subject.build.uid);
    if let Some(left) = claim_of(subject.cx.store, subject.namespace(), subject.face, build) {
        all.extend(trouble(subject));
        all.push(left);
    }
    all
}

fn trouble(subject: &Subject<'_>) -> Option<Op> {
    let trouble = subject.trouble().filter(|trouble| trouble.times >= FAILURES)?;
    let Op::Delete { kind, key, .. } = &trouble.op else { return None };
    let text = format!("{} {} cannot be removed, and is tried again: {}", kind.as_str(), key.name, trouble.message);
    Some(status::report(subject, Reason::CleanupFailed, text))
}

enum Leftovers {
    /// A Pod of the run has not ended.
    Unfinished,
    /// These are to be deleted.
    Delete(Vec<Op>),
    /// All are being deleted, and some are there yet.
    Leaving,
    /// Nothing is left.
    Gone,
}

fn leftovers(subject: &Subject<'_>) -> Leftovers {
    let (store, namespace) = (subject.cx.store, subject.namespace());
    let runs = subject.run().into_iter();
    let tasks = runs.flat_map(|run| store.task_runs_of(namespace, run.uid));
    let pods =
        tasks.flat_map(|task| store.owned(namespace, task.uid)).filter_map(|(_, name, observed)| {
            match &observed.what {
                What::BuildPod(seen) => Some((name, &*observed.uid, seen)),
                _ => None,
            }
        });
    let (leaving, pods): (Vec<_>, Vec<_>) = pods.partition(|(_, _, seen)| seen.terminating);
    let unfinished = |seen: &BuildPodSeen| matches!(seen.phase, PodPhase::Pending | PodPhase::Running);
    if pods.iter().any(|(_, _, seen)| unfinished(seen)) {
        return Leftovers::Unfinished;
    }
    let build = (&**subject.build.name, subject.build.uid);
    let pods = pods.into_iter().map(|(name, uid, _)| delete(Kind::Pod, namespace, name, uid));
    let deletions: Vec<Op> = pods.chain(claim_of(store, namespace, subject.face, build)).collect();
    match () {
        () if !deletions.is_empty() => Leftovers::Delete(deletions),
        () if !leaving.is_empty() || own_claim(store, namespace, subject.face, build).is_some() => Leftovers::Leaving,
        () => Leftovers::Gone,
    }
}

/// The workspace of the build of that name and uid, where it is there: its name.
fn own_claim<'w>(
    store: &'w Store,
    namespace: &str,
    face: &Face,
    (build, uid): (&str, &str),
) -> Option<(String, Ref<'w, ClaimSeen>)> {
    let name = names::claim_name(build, face.front.claim_suffix);
    let claim = store.claim(namespace, &name).filter(|claim| claim.seen.is_controlled_by(uid))?;
    Some((name, claim))
}

/// The deletion of the claim of the build of that name and uid, unless it is on its way out.
pub(super) fn claim_of(store: &Store, namespace: &str, face: &Face, build: (&str, &str)) -> Option<Op> {
    let (name, claim) = own_claim(store, namespace, face, build).filter(|(_, claim)| !claim.seen.deleting)?;
    Some(delete(Kind::PersistentVolumeClaim, namespace, &name, claim.uid))
}

/// The deletion of that very object.
pub(super) fn delete(kind: Kind, namespace: &str, name: &str, uid: &str) -> Op {
    Op::Delete { kind, key: Key::new(namespace, name), uid: uid.to_owned() }
}

/// Runs older than those that are kept; never the one that the status names.
fn history(subject: &Subject<'_>) -> Vec<Op> {
    let ended = subject.runs().filter(|run| run.seen.is_done());
    let (mut well, mut badly): (Vec<_>, Vec<_>) =
        ended.partition(|run: &RunRef<'_>| run.seen.succeeded.as_ref().is_some_and(|one| &*one.status == "True"));
    let newest_first = |a: &RunRef<'_>, b: &RunRef<'_>| (&b.seen.created, b.name).cmp(&(&a.seen.created, a.name));
    let present = subject.recorded("pipelineRunName");
    let mut ops = Vec::new();
    for runs in [&mut well, &mut badly] {
        runs.sort_by(newest_first);
        let old = runs
            .iter()
            .skip(subject.builds().settings.pipelines.history)
            .filter(|run| &**run.name != present && !run.seen.deleting);
        ops.extend(old.map(|run| delete(Kind::PipelineRun, subject.namespace(), run.name, run.uid)));
    }
    ops
}
