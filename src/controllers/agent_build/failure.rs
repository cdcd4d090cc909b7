//! Why a run failed: which class of failure, which task and step, Tekton's last words about it, and what to do.
//!
//! Everything comes from the API: conditions and exit codes of Tekton's objects. What a step printed is not read: it may
//! hold anything, a credential included; the hint names the command that shows it to those who may see it.

use super::follow::failed;
use super::outcome::children;
use super::status::State;
use super::subject::Subject;
use crate::domain::reason::Reason;
use crate::store::TaskRunSeen;
use crate::store::objects::{RunRef, TaskRunRef};

/// So many lines of Tekton's are repeated, from the end.
const LINES: usize = 3;
/// Longest text of Tekton's that is repeated.
const LONGEST: usize = 600;

/// Tekton's reasons, and what they mean for people. What is not listed is a failure of the run without a class of its own.
const CLASSES: &[(&str, Reason)] = &[
    ("Cancelled", Reason::Cancelled),
    ("CancelledRunFinally", Reason::Cancelled),
    ("StoppedRunFinally", Reason::Cancelled),
    ("TaskRunCancelled", Reason::Cancelled),
    ("PipelineRunTimeout", Reason::BuildTimedOut),
    ("TaskRunTimeout", Reason::BuildTimedOut),
    ("TaskRunImagePullFailed", Reason::StepImagePullFailed),
    ("PodEvicted", Reason::TaskPodFailed),
    ("Evicted", Reason::TaskPodFailed),
    ("PodCreationFailed", Reason::TaskPodFailed),
    ("CouldntCreateTaskRunPod", Reason::TaskPodFailed),
    ("PodAdmissionFailed", Reason::TaskPodFailed),
    ("ExceededResourceQuota", Reason::TaskPodFailed),
    ("ExceededNodeResources", Reason::TaskPodFailed),
    ("CreateRunFailed", Reason::TaskPodFailed),
    ("CreateContainerConfigError", Reason::TaskPodFailed),
    ("TaskRunValidationFailed", Reason::RunInvalid),
    ("PipelineValidationFailed", Reason::RunInvalid),
    ("InvalidWorkspaceBindings", Reason::RunInvalid),
    ("InvalidTaskResultReference", Reason::RunInvalid),
    ("InvalidMatrixParameterTypes", Reason::RunInvalid),
    ("RequiredWorkspaceMarkedOptional", Reason::RunInvalid),
    ("ParameterMissing", Reason::RunInvalid),
    ("ParameterTypeMismatch", Reason::RunInvalid),
    ("ParamValidationFailed", Reason::RunInvalid),
    ("CouldntGetTask", Reason::RunInvalid),
    ("CouldntGetPipelineResult", Reason::RunInvalid),
    ("InvalidPipelineResultReference", Reason::RunInvalid),
    ("PipelineInvalidGraph", Reason::RunInvalid),
    ("AdmissionPolicyDenied", Reason::RunInvalid),
];

fn class(reason: &str) -> Option<Reason> {
    CLASSES.iter().find(|(name, _)| *name == reason).map(|(_, class)| *class)
}

/// What to do about a failure of that class; what differs between groups stands in `<…>`.
fn hint(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::BuildTimedOut => "<more time>, or look at what the last task waited for",
        Reason::StepOutOfMemory => "give the steps more memory (builds.resources of the platform file)",
        Reason::StepImagePullFailed => {
            "check that nodes may pull the step's image, and its name in the step's ConfigMap"
        }
        Reason::TaskPodFailed => {
            "check quota, Pod Security and the nodes of the namespace; then set annotation <rebuild>"
        }
        Reason::RunInvalid => "correct the ConfigMap of the step that is named",
        Reason::StepFailed => "read what the step printed",
        _ => return None,
    })
}

/// The judgement of a run whose condition is False.
pub(super) fn of(subject: &Subject<'_>, run: &RunRef<'_>) -> State {
    let (tekton, said) = run.seen.succeeded.as_ref().map_or(("", ""), |one| (&*one.reason, &*one.message));
    let of_run = class(tekton);
    let failing = children(subject, run).map(|(_, child)| child).find(|child| is_cause(child.seen));
    if of_run == Some(Reason::Cancelled) {
        return failed(subject, Reason::Cancelled, format!("{tekton}: {}", words(said)));
    }
    let Some(child) = failing else {
        let reason = of_run.unwrap_or(Reason::BuildFailed);
        return failed(subject, reason, hinted(subject, format!("{tekton}: {}", words(said)), reason, None));
    };
    let reason = match (of_run, of_task(child.seen)) {
        (Some(Reason::BuildTimedOut), _) => Reason::BuildTimedOut,
        (_, found) => found,
    };
    let mut message = about(child.seen);
    if of_run == Some(Reason::BuildTimedOut) {
        message = format!("{tekton}: {}; {message}", words(said));
    }
    let logs = logs(subject.namespace(), &child);
    failed(subject, reason, hinted(subject, message, reason, logs))
}

/// It failed by itself; what is cancelled in the wake of another failure did not.
fn is_cause(seen: &TaskRunSeen) -> bool {
    seen.succeeded.as_ref().is_some_and(|one| &*one.status == "False" && &*one.reason != "TaskRunCancelled")
}

fn of_task(seen: &TaskRunSeen) -> Reason {
    let tekton = seen.succeeded.as_ref().map_or("", |one| &*one.reason);
    match &seen.failed_step {
        Some(step) if &*step.reason == "OOMKilled" => Reason::StepOutOfMemory,
        Some(step) if &*step.reason == "Evicted" => Reason::TaskPodFailed,
        _ => match class(tekton) {
            Some(class) => class,
            None if seen.failed_step.is_some() => Reason::StepFailed,
            None => Reason::BuildFailed,
        },
    }
}

/// `task T, step S: exit N (Tekton's reason): Tekton's words`.
fn about(seen: &TaskRunSeen) -> String {
    let (tekton, said) = seen.succeeded.as_ref().map_or(("", ""), |one| (&*one.reason, &*one.message));
    let step = seen.failed_step.as_ref().map_or(String::new(), |step| {
        let why =
            if matches!(&*step.reason, "" | "Error") { String::new() } else { format!(" {}", words(&step.reason)) };
        format!(", step {}: exit {}{why}", step.name, step.exit_code)
    });
    format!("task {}{step} ({tekton}): {}", seen.task, words(said))
}

fn hinted(subject: &Subject<'_>, message: String, reason: Reason, logs: Option<String>) -> String {
    let message = message.trim_end_matches([':', ' ']).to_owned();
    let in_words = |hint: &str| {
        let hint = hint.replace("<rebuild>", subject.face.front.annotation_rebuild);
        hint.replace("<more time>", subject.face.words.more_time)
    };
    let hint = hint(reason).map(in_words);
    match (hint, logs) {
        (Some(hint), Some(logs)) => format!("{message}. What to do: {hint}: {logs}"),
        (Some(hint), None) => format!("{message}. What to do: {hint}"),
        (None, Some(logs)) => format!("{message}. More: {logs}"),
        (None, None) => message,
    }
}

/// Why a TaskRun ended whose Pod Tekton deletes itself, or whose containers the node has taken away: nobody can read what
/// its steps printed any more.
const SILENCED: [&str; 5] = ["TaskRunTimeout", "TaskRunCancelled", "TaskRunImagePullFailed", "PodEvicted", "Evicted"];

/// The command that shows what a step printed, where that can still be read.
fn logs(namespace: &str, child: &TaskRunRef<'_>) -> Option<String> {
    let pod = child.seen.pod.as_ref()?;
    let step = child.seen.failed_step.as_ref()?;
    let ended = child.seen.succeeded.as_ref().map_or("", |one| &*one.reason);
    if SILENCED.contains(&ended) || SILENCED.contains(&&*step.reason) {
        return None;
    }
    Some(format!("kubectl -n {namespace} logs {pod} -c step-{}", step.name))
}

/// What a task waits for that will not come by itself.
pub(super) fn stuck(seen: &TaskRunSeen) -> Option<String> {
    let waits = seen.succeeded.as_ref().filter(|one| &*one.status == "Unknown")?;
    let reason = match &seen.waiting_step {
        Some(step)
            if matches!(
                &*step.reason,
                "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "CreateContainerConfigError"
            ) =>
        {
            format!("step {}: {}", step.name, step.reason)
        }
        _ if matches!(&*waits.reason, "ExceededNodeResources" | "ExceededResourceQuota" | "PodPending") => {
            waits.reason.to_string()
        }
        _ => return None,
    };
    Some(format!("task {} waits ({reason}): {}", seen.task, words(&waits.message)))
}

/// The last lines of a text of Tekton's, without control characters.
pub(super) fn words(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES)..];
    let joined: String = last.join(" / ").chars().filter(|letter| !letter.is_control()).collect();
    cut(&joined, LONGEST)
}

/// At most that many bytes, whole characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most { text.to_owned() } else { format!("{}…", &text[..text.floor_char_boundary(most)]) }
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn of_a_long_text_the_last_lines_are_repeated() {
        assert_eq!(words("a\n\nb\u{1b}[31m\nc\nd\n"), "b[31m / c / d");
        assert_eq!(words(""), "");
        assert!(words(&"é".repeat(900)).len() <= 604);
    }
}
