//! What is kept of Tekton's PipelineRuns and TaskRuns.
//!
//! Tekton copies whole pipelines into its objects; kept is what tells how a build goes: condition, children, results
//! that name an image or a commit, and of the tasks only name, guard and whether they tell an image. Members of unknown
//! type or shape count as absent: Tekton is installed, upgraded and removed by others.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::What;
use super::claim::digest;
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::Condition;
use crate::store::decode::{Members, TektonObject, lenient, lenient_list};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, OwnerReference, Selection, UsedBy};

const GROUP: (&str, &str) = ("tekton.dev", "v1");
/// What builds made carries their label, and Tekton passes it on to what it makes for them.
const OF_BUILDS: &[Selection] = &[Selection::labelled(keys::LABEL_AGENT_BUILD, page::RUNS, UsedBy::Controllers)];

/// PipelineRuns, of builds.
pub(super) const PIPELINE_RUN: Descriptor = Descriptor {
    selections: OF_BUILDS,
    ..Descriptor::optional(
        GROUP,
        "pipelineruns",
        "PipelineRun",
        Decode::Tekton(|object| Some(What::PipelineRun(Box::new(pipeline_run(object))))),
    )
};

/// TaskRuns of such runs.
pub(super) const TASK_RUN: Descriptor = Descriptor {
    selections: OF_BUILDS,
    ..Descriptor::optional(
        GROUP,
        "taskruns",
        "TaskRun",
        Decode::Tekton(|object| Some(What::TaskRun(Box::new(task_run(object))))),
    )
};

/// Results that name an image, in the order in which they are believed.
pub const RESULTS_IMAGE: [&str; 2] = ["IMAGE_URL", "image-url"];
/// Results that hold its digest.
pub const RESULTS_DIGEST: [&str; 2] = ["IMAGE_DIGEST", "image-digest"];
/// Result that holds the commit that was built.
pub const RESULT_COMMIT: &str = "commit";
/// Result that holds the name of the Dockerfile that a step found.
pub const RESULT_DOCKERFILE: &str = "dockerfile-name";
/// Longest name of an image that a step ran in, and most of them.
const RAN_IMAGES: (usize, usize) = (512, 32);
/// Parameters of a run that name its image by tag.
const PARAMETERS_IMAGE: [&str; 2] = ["IMAGE", "image"];

/// Condition `Succeeded`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SucceededSeen {
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// Tekton's reason.
    pub reason: Box<str>,
    /// Tekton's words.
    pub message: Box<str>,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct ResultSeen {
    pub name: Box<str>,
    pub value: Box<str>,
}

/// One task of the pipeline that a run embeds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskSeen {
    /// Its name.
    pub name: Box<str>,
    /// It carries when expressions of its own, so that it may be skipped in order.
    pub guarded: bool,
    /// Its TaskSpec declares a result that names an image or its digest.
    pub tells_image: bool,
}

/// A task that was not run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct SkippedSeen {
    pub task: Box<str>,
    pub reason: Box<str>,
}

/// What a run made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct ChildSeen {
    pub kind: Box<str>,
    pub name: Box<str>,
    pub task: Box<str>,
}

/// A PipelineRun.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineRunSeen {
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// Being deleted.
    pub deleting: bool,
    /// Annotation `agent.kagenti.dev/build-hash`, or `beeai.dev/build-hash`.
    pub build_hash: Option<Box<str>>,
    /// Annotation `agent.kagenti.dev/attempt`, or `beeai.dev/attempt`.
    pub attempt: Option<u32>,
    /// Annotation `agent.kagenti.dev/recipe`.
    pub recipe: Option<Box<str>>,
    /// `spec.status`: `Cancelled` and the like.
    pub spec_status: Option<Box<str>>,
    /// The value of its parameter that names the image by tag.
    pub image_parameter: Option<Box<str>>,
    /// Its tasks, in order.
    pub tasks: Box<[TaskSeen]>,
    /// `status.startTime`.
    pub started: Option<Box<str>>,
    /// `status.completionTime`.
    pub completed: Option<Box<str>>,
    /// Condition `Succeeded`.
    pub succeeded: Option<SucceededSeen>,
    /// `status.results` that are of interest.
    pub results: Box<[ResultSeen]>,
    /// `status.skippedTasks`.
    pub skipped: Box<[SkippedSeen]>,
    /// `status.childReferences`.
    pub children: Box<[ChildSeen]>,
}

/// A TaskRun.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskRunSeen {
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `metadata.creationTimestamp`.
    pub created: Box<str>,
    /// Label `tekton.dev/pipelineTask`.
    pub task: Box<str>,
    /// `status.startTime`.
    pub started: Option<Box<str>>,
    /// `status.completionTime`.
    pub completed: Option<Box<str>>,
    /// Condition `Succeeded`.
    pub succeeded: Option<SucceededSeen>,
    /// `status.podName`.
    pub pod: Option<Box<str>>,
    /// `status.results` that are of interest.
    pub results: Box<[ResultSeen]>,
    /// The images that its steps ran in, by digest, in order.
    pub images: Box<[Box<str>]>,
    /// The first step that ended the TaskRun with another code than 0: name, code, Kubernetes' reason.
    pub failed_step: Option<StepSeen>,
    /// The first step that waits for its image or its start: name, 0, Kubernetes' reason.
    pub waiting_step: Option<StepSeen>,
}

/// A step of a TaskRun.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct StepSeen {
    pub name: Box<str>,
    pub exit_code: i64,
    pub reason: Box<str>,
}

impl PipelineRunSeen {
    /// It has ended, by its own account.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.succeeded.as_ref().is_some_and(|one| &*one.status != "Unknown") && self.completed.is_some()
    }
}

/// `spec`, as far as it is read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Spec {
    #[serde(deserialize_with = "lenient")]
    pub status: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub params: Vec<Named>,
    #[serde(deserialize_with = "lenient")]
    pub pipeline_spec: Option<PipelineSpec>,
}

/// A name with a value of any type: a parameter or a result.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Named {
    pub name: String,
    pub value: Value,
}

/// `spec.pipelineSpec`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct PipelineSpec {
    #[serde(deserialize_with = "lenient_list")]
    pub tasks: Vec<PipelineTask>,
}

/// One of its tasks.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct PipelineTask {
    pub name: String,
    #[serde(deserialize_with = "lenient_list")]
    pub when: Vec<serde::de::IgnoredAny>,
    #[serde(deserialize_with = "lenient")]
    pub task_spec: Option<TaskSpec>,
}

/// Its TaskSpec.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct TaskSpec {
    #[serde(deserialize_with = "lenient_list")]
    pub results: Vec<Declared>,
}

/// A result that is declared.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Declared {
    pub name: String,
}

/// `status`, as far as it is read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Status {
    #[serde(deserialize_with = "lenient")]
    pub start_time: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub completion_time: Option<String>,
    #[serde(deserialize_with = "lenient_list")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "lenient_list")]
    pub results: Vec<Named>,
    #[serde(deserialize_with = "lenient_list")]
    pub skipped_tasks: Vec<Skipped>,
    #[serde(deserialize_with = "lenient_list")]
    pub child_references: Vec<Child>,
    #[serde(deserialize_with = "lenient_list")]
    pub steps: Vec<Step>,
    #[serde(deserialize_with = "lenient")]
    pub pod_name: Option<String>,
}

/// One of `status.skippedTasks`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Skipped {
    pub name: String,
    pub reason: String,
}

/// One of `status.childReferences`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Child {
    pub kind: String,
    pub name: String,
    pub pipeline_task_name: String,
}

/// One of `status.steps`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Step {
    pub name: String,
    pub terminated: Option<Terminated>,
    pub waiting: Option<Waiting>,
    #[serde(deserialize_with = "lenient")]
    pub termination_reason: Option<String>,
    #[serde(rename = "imageID", deserialize_with = "lenient")]
    pub image_id: Option<String>,
}

impl Step {
    /// How it ended the TaskRun; the failure of a step with `onError: continue` ends nothing.
    fn failed(&self) -> Option<&Terminated> {
        let continued = self.termination_reason.as_deref() == Some("Continued");
        self.terminated.as_ref().filter(|ended| ended.exit_code != 0 && !continued)
    }
}

/// How a step ended.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Terminated {
    pub exit_code: i64,
    pub reason: Option<String>,
}

/// Why a step has not begun.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Waiting {
    pub reason: Option<String>,
}

fn boxed(text: Option<String>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty()).map(Into::into)
}

fn succeeded(conditions: Vec<Condition>) -> Option<SucceededSeen> {
    conditions.into_iter().find(|one| one.type_ == "Succeeded").map(|one| SucceededSeen {
        status: one.status.into(),
        reason: one.reason.unwrap_or_default().into(),
        message: one.message.unwrap_or_default().into(),
    })
}

fn is_image(name: &str) -> bool {
    RESULTS_IMAGE.contains(&name) || RESULTS_DIGEST.contains(&name)
}

fn results(all: Vec<Named>) -> Box<[ResultSeen]> {
    let kept =
        all.into_iter().filter(|one| is_image(&one.name) || [RESULT_COMMIT, RESULT_DOCKERFILE].contains(&&*one.name));
    let text = |one: Named| match one.value {
        // What a script writes ends in a new line more often than not.
        Value::String(value) => Some(ResultSeen { name: one.name.into(), value: value.trim().into() }),
        _ => None,
    };
    kept.filter_map(text).collect()
}

fn pipeline_run(object: TektonObject) -> PipelineRunSeen {
    let metadata = object.metadata;
    let (Members(spec), Members(status)) = (object.spec.unwrap_or_default(), object.status.unwrap_or_default());
    let image = PARAMETERS_IMAGE.iter().find_map(|name| {
        let parameter = spec.params.iter().find(|one| one.name == *name)?;
        parameter.value.as_str().filter(|value| !value.is_empty()).map(Into::into)
    });
    let tasks = spec.pipeline_spec.into_iter().flat_map(|pipeline| pipeline.tasks).map(|task| TaskSeen {
        guarded: !task.when.is_empty(),
        tells_image: task.task_spec.is_some_and(|spec| spec.results.iter().any(|one| is_image(&one.name))),
        name: task.name.into(),
    });
    let skipped = status.skipped_tasks.into_iter();
    let children = status.child_references.into_iter();
    let either = |ours: &str, other: &str| digest(&metadata, ours).or_else(|| digest(&metadata, other));
    PipelineRunSeen {
        controller: owner(&metadata),
        deleting: metadata.deletion_timestamp.is_some(),
        build_hash: either(keys::ANNOTATION_BUILD_HASH, keys::ANNOTATION_BEEAI_BUILD_HASH).map(Into::into),
        attempt: either(keys::ANNOTATION_ATTEMPT, keys::ANNOTATION_BEEAI_ATTEMPT).and_then(|text| text.parse().ok()),
        recipe: digest(&metadata, keys::ANNOTATION_RECIPE).map(Into::into),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        spec_status: boxed(spec.status),
        image_parameter: image,
        tasks: tasks.collect(),
        started: boxed(status.start_time),
        completed: boxed(status.completion_time),
        succeeded: succeeded(status.conditions),
        results: results(status.results),
        skipped: skipped.map(|one| SkippedSeen { task: one.name.into(), reason: one.reason.into() }).collect(),
        children: children
            .map(|one| ChildSeen { kind: one.kind.into(), name: one.name.into(), task: one.pipeline_task_name.into() })
            .collect(),
    }
}

/// The image that a container runtime reports, without what Docker put before it.
#[must_use]
pub fn image_of(reported: &str) -> &str {
    reported.split_once("://").map_or(reported, |(_, image)| image)
}

fn task_run(object: TektonObject) -> TaskRunSeen {
    let metadata = object.metadata;
    let Members(status) = object.status.unwrap_or_default();
    let failed_step = status.steps.iter().find_map(|step| {
        let ended = step.failed()?;
        let reason = ended.reason.as_deref().unwrap_or_default().into();
        Some(StepSeen { name: step.name.as_str().into(), exit_code: ended.exit_code, reason })
    });
    let waiting_step = status.steps.iter().find_map(|step| {
        let reason = step.waiting.as_ref()?.reason.as_deref()?.into();
        Some(StepSeen { name: step.name.as_str().into(), exit_code: 0, reason })
    });
    let (longest, most) = RAN_IMAGES;
    let images = status.steps.iter().filter_map(|step| step.image_id.as_deref().map(image_of));
    let images = images.filter(|image| image.contains("sha256:") && image.len() <= longest).take(most);
    let images = images.map(Into::into).collect();
    TaskRunSeen {
        controller: owner(&metadata),
        task: metadata.label(keys::LABEL_PIPELINE_TASK).unwrap_or_default().into(),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        started: boxed(status.start_time),
        completed: boxed(status.completion_time),
        succeeded: succeeded(status.conditions),
        pod: boxed(status.pod_name),
        results: results(status.results),
        images,
        failed_step,
        waiting_step,
    }
}
