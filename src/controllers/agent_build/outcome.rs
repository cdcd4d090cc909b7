//! What a run that has ended comes to.
//!
//! A green run is not enough: every task must have succeeded, or have been skipped by a condition of its own; and an image
//! is believed only from a task that succeeded, when any task of the run tells one at all.

use serde_json::{Value, json};

use super::failure;
use super::follow::failed;
use super::image::{self, Built, Told};
use super::provenance;
use super::status::{Phase, READY, State};
use super::subject::Subject;
use crate::api::agent_kagenti_dev::provenance::INPUTS;
use crate::domain::reason::Reason;
use crate::pipelines::names::LABEL_LIMIT;
use crate::store::kinds::tekton::{ChildSeen, RESULT_COMMIT, RESULTS_DIGEST, RESULTS_IMAGE, ResultSeen, TaskSeen};
use crate::store::objects::{RunRef, TaskRunRef};
use crate::store::{PipelineRunSeen, TaskRunSeen};

/// Tekton's words for a task whose own condition was false; another reason means that something it needs was missing.
const SKIPPED_BY_ITSELF: &str = "When Expressions evaluated to false";
/// Most tasks in the summary.
const TASKS: usize = 32;
/// Longest message of a task in the summary.
const MESSAGE: usize = 300;

/// What is known.
pub(super) enum Outcome {
    /// TaskRuns that the run names have not been seen to end.
    Wait,
    /// The judgement.
    Is(Box<State>),
}

/// What Tekton lists as made for a task, where it has made that. It takes up every TaskRun whose labels name run and task and whose first owner is the
/// run, whoever made it; one of its own has a name that follows from both. Where that name would be too long it ends in a digest, and what is
/// listed alone counts.
fn made_for<'a>(run: &RunRef<'a>, task: &TaskSeen) -> Option<&'a ChildSeen> {
    let seen: &'a PipelineRunSeen = run.seen;
    let mut listed = seen.children.iter().filter(|child| is_listed_for(child, task));
    let name = format!("{}-{}", run.name, task.name);
    if name.len() <= LABEL_LIMIT {
        return listed.find(|child| *child.name == *name);
    }
    let first = listed.next()?;
    listed.all(|other| other.name == first.name).then_some(first)
}

fn is_listed_for(child: &ChildSeen, task: &TaskSeen) -> bool {
    &*child.kind == "TaskRun" && child.task == task.name
}

/// The TaskRuns of a run with their tasks, in the order of the tasks. Only those that Tekton made: owners and labels are whatever somebody wrote who
/// may make TaskRuns.
pub(super) fn children<'a>(
    subject: &Subject<'a>,
    run: &RunRef<'a>,
) -> impl Iterator<Item = (&'a TaskSeen, TaskRunRef<'a>)> {
    let (store, namespace) = (subject.cx.store, subject.namespace());
    let (seen, uid): (&'a PipelineRunSeen, &'a str) = (run.seen, run.uid);
    seen.tasks.iter().filter_map(move |task| {
        let child = store.task_run(namespace, &made_for(run, task)?.name)?;
        let is_of_run = child.seen.controller.as_ref().is_some_and(|owner| owner.uid == uid);
        is_of_run.then_some((task, child))
    })
}

/// The TaskRuns that Tekton made for a run and that have not been seen to end.
pub(super) fn unseen<'a>(subject: &Subject<'a>, run: &RunRef<'a>) -> impl Iterator<Item = &'a ChildSeen> {
    let (store, namespace) = (subject.cx.store, subject.namespace());
    let seen: &'a PipelineRunSeen = run.seen;
    let made = seen.tasks.iter().filter_map(move |task| made_for(run, task));
    made.filter(move |child| {
        let known = store.task_run(namespace, &child.name);
        !known.is_some_and(|child| is_over(child.seen))
    })
}

/// The judgement of a run that is done; `late`: nothing more is waited for.
pub(super) fn of(subject: &Subject<'_>, run: &RunRef<'_>, late: bool) -> Outcome {
    if !late && unseen(subject, run).next().is_some() {
        return Outcome::Wait;
    }
    let succeeded = run.seen.succeeded.as_ref().is_some_and(|one| &*one.status == "True");
    let state = if succeeded { ended_well(subject, run) } else { failure::of(subject, run) };
    Outcome::Is(Box::new(state))
}

fn is_over(seen: &TaskRunSeen) -> bool {
    seen.succeeded.as_ref().is_some_and(|one| &*one.status != "Unknown")
}

fn has_succeeded(seen: &TaskRunSeen) -> bool {
    seen.succeeded.as_ref().is_some_and(|one| &*one.status == "True")
}

fn ended_well(subject: &Subject<'_>, run: &RunRef<'_>) -> State {
    let ran: Vec<_> = children(subject, run).collect();
    for task in &run.seen.tasks {
        let child = ran.iter().find(|(of, _)| of.name == task.name);
        let skipped = run.seen.skipped.iter().find(|one| one.task == task.name);
        let why = match (child, skipped) {
            (Some((_, child)), _) if has_succeeded(child.seen) => continue,
            (_, Some(skipped)) if task.guarded && &*skipped.reason == SKIPPED_BY_ITSELF => continue,
            (_, Some(skipped)) => format!("was skipped: {}", failure::words(&skipped.reason)),
            (Some(_), None) => "did not succeed".to_owned(),
            (None, None) => match stranger(run, task) {
                Some(name) => format!("was run by TaskRun {name}, which Tekton lists and has not made"),
                None => "was never run, or its TaskRun is gone".to_owned(),
            },
        };
        let message = format!("the run ended well, but task {} {why}; what it guards was not checked", task.name);
        return failed(subject, Reason::GateSkipped, message);
    }
    let told = match told(run, &ran) {
        Ok(told) => told,
        Err(message) => return failed(subject, Reason::NoImage, message),
    };
    match image::built(subject.request.image.as_ref(), &told) {
        Ok(built) => succeeded(subject, run, &ran, (&built, commit(&ran))),
        Err((reason, message)) => failed(subject, reason, message),
    }
}

/// The TaskRun that took the place of the one that Tekton makes for a task.
fn stranger<'a>(run: &RunRef<'a>, task: &TaskSeen) -> Option<&'a str> {
    let seen: &'a PipelineRunSeen = run.seen;
    let listed = seen.children.iter().find(|child| is_listed_for(child, task))?;
    made_for(run, task).is_none().then_some(&*listed.name)
}

fn result<'a>(results: &'a [ResultSeen], names: &[&str]) -> Option<&'a str> {
    let find = |name: &&str| results.iter().find(|one| *one.name == **name && !one.value.is_empty());
    names.iter().find_map(find).map(|one| &*one.value)
}

/// What the run told about its image, from whoever counts.
fn told<'a>(run: &RunRef<'a>, ran: &[(&TaskSeen, TaskRunRef<'a>)]) -> Result<Told<'a>, String> {
    let seen: &'a PipelineRunSeen = run.seen;
    let parameter = seen.image_parameter.as_deref();
    let of_results = |results: &'a [ResultSeen]| {
        let digest = result(results, &RESULTS_DIGEST).filter(|digest| image::is_digest(digest));
        let told = Told { image: result(results, &RESULTS_IMAGE), digest, parameter };
        (told.image.is_some() || (told.digest.is_some() && parameter.is_some())).then_some(told)
    };
    let tellers: Vec<&str> = seen.tasks.iter().filter(|task| task.tells_image).map(|task| &*task.name).collect();
    let written = ran.iter().rev().filter(|(_, child)| has_succeeded(child.seen));
    let from_task = written.map(|(_, child)| child.seen).find_map(|child: &'a TaskRunSeen| of_results(&child.results));
    match (of_results(&seen.results), from_task) {
        // A result of the run is one that a task wrote; without such a task nobody did.
        (Some(told), from) if tellers.is_empty() || from.is_some() => Ok(told),
        (_, Some(told)) => Ok(told),
        _ if tellers.is_empty() => {
            match parameter {
                Some(_) => Ok(Told { image: None, digest: None, parameter }),
                None => Err("no task of the pipeline reports which image it made, and the run has no parameter image"
                    .to_owned()),
            }
        }
        _ => Err(format!(
            "no task that succeeded reported which image it made; {} should have written {} or {}. Look at what was skipped in \
             status.tasks",
            tellers.join(", "),
            RESULTS_IMAGE[0],
            RESULTS_DIGEST[0],
        )),
    }
}

/// The commit that the first task which knows one tells.
fn commit<'a>(ran: &[(&TaskSeen, TaskRunRef<'a>)]) -> Option<&'a str> {
    let is_commit = |text: &&str| (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    ran.iter().map(|(_, child)| child.seen).find_map(|child| result(&child.results, &[RESULT_COMMIT]).filter(is_commit))
}

fn succeeded(
    subject: &Subject<'_>,
    run: &RunRef<'_>,
    ran: &[(&TaskSeen, TaskRunRef<'_>)],
    (built, commit): (&Built, Option<&str>),
) -> State {
    let message =
        if subject.cleans_up() { "Build completed successfully" } else { "Build complete, no cleanup performed" };
    let image = &built.image;
    let mut state = State::new(Phase::Succeeded, Reason::BuildReady, message)
        .with("builtImage", image.clone())
        .with("builtImageTag", built.tag.clone().map_or(Value::Null, Value::from))
        .with("imageDigest", built.digest.clone().map_or(Value::Null, Value::from))
        .with("sourceCommit", commit.map_or(Value::Null, Value::from))
        .with(INPUTS, Value::Null)
        .telling(READY, Reason::BuildSucceeded, format!("PipelineRun {} made {image}", run.name));
    state.members.extend(provenance::members(subject, &provenance::of(subject, run, ran, (built, commit))));
    state.ready = Some(format!("{image} is ready"));
    if built.digest.is_none() {
        let text = format!(
            "PipelineRun {} reported no digest of {image}: what runs may change when the tag does. Let a task write result {}",
            run.name, RESULTS_DIGEST[0]
        );
        state = state.telling(READY, Reason::NoDigest, text);
    }
    state
}

/// `status.tasks`: the tasks of the attempt, in order.
pub(super) fn tasks(subject: &Subject<'_>, run: &RunRef<'_>) -> Value {
    let ran: Vec<_> = children(subject, run).collect();
    let of_task = |task: &TaskSeen| {
        let child = ran.iter().find(|(of, _)| of.name == task.name).map(|(_, child)| child);
        let skipped = run.seen.skipped.iter().find(|one| one.task == task.name);
        let mut summary = json!({"name": &*task.name});
        match (child, skipped) {
            (Some(child), _) => {
                summary["taskRun"] = json!(&**child.name);
                summary["state"] = json!(state_of(child.seen));
                if let Some(one) = &child.seen.succeeded {
                    put(&mut summary, "reason", &one.reason);
                    put(&mut summary, "message", &failure::cut(&failure::words(&one.message), MESSAGE));
                }
            }
            (None, Some(skipped)) => {
                summary["state"] = json!("Skipped");
                put(&mut summary, "reason", &failure::cut(&failure::words(&skipped.reason), MESSAGE));
            }
            (None, None) => summary["state"] = json!(if run.seen.completed.is_some() { "NotRun" } else { "Pending" }),
        }
        summary
    };
    run.seen.tasks.iter().take(TASKS).map(of_task).collect()
}

fn put(summary: &mut Value, key: &str, text: &str) {
    if !text.is_empty() {
        summary[key] = json!(text);
    }
}

fn state_of(seen: &TaskRunSeen) -> &'static str {
    match seen.succeeded.as_ref().map(|one| (&*one.status, &*one.reason)) {
        Some(("True", _)) => "Succeeded",
        Some(("False", "TaskRunCancelled")) => "Cancelled",
        Some(("False", _)) => "Failed",
        _ if seen.started.is_some() => "Running",
        _ => "Pending",
    }
}
