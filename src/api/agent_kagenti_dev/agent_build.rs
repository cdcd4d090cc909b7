//! `AgentBuild` v1alpha1.
//!
//! The text of each field is what `kubectl explain` prints. Decisions: optional booleans and numbers are optional here, too, so that
//! `false` and nothing stay two things; what the schema cannot say is left to the validating webhook, which names all of it at once.
//! Controllers and admission read objects as JSON, not through these types.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path of its own")]

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::provenance::{EARLIER, Provenance};

/// Says where source code is and where its image goes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "agent.kagenti.dev",
    version = "v1alpha1",
    kind = "AgentBuild",
    plural = "agentbuilds",
    singular = "agentbuild",
    shortname = "agb",
    category = "kagenti",
    namespaced,
    status = "AgentBuildStatus",
    derive = "PartialEq",
    doc = "AgentBuild turns source code into an image with a Tekton pipeline that its mode selects.",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode", description = "Which pipeline"),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Pending, Building, Succeeded or Failed"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.builtImage",
        description = "What was built last"
    ),
    printcolumn(
        name = "Run",
        type_ = "string",
        json_path = ".status.pipelineRunName",
        description = "Current or last PipelineRun",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AgentBuildSpec {
    /// Source code.
    pub source: BuildSource,
    /// Where the image goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_output: Option<BuildOutput>,
    /// Which pipeline: dev, dev-local and buildpack-dev push to a registry in the cluster, dev-external to any; preprod and prod
    /// scan, test and promote; custom runs the steps given here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = MODES, "default" = "dev"))]
    pub mode: Option<String>,
    /// The pipeline; filled in from the template of the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Pipeline>,
    /// Arguments for the image's build, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_args: Option<Vec<BuildParameter>>,
    /// Whether finished Pods and the workspace are removed after a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub cleanup_after_build: Option<bool>,
    /// Further labels of the run and its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Further annotations of the run and its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The modes of `spec.mode`, in documentation order.
pub const MODES: [&str; 7] = ["dev", "buildpack-dev", "dev-local", "dev-external", "preprod", "prod", "custom"];

/// Source code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildSource {
    /// host/path, https://host/path, ssh://user@host/path or user@host:path; never with a token in it.
    pub source_repository: String,
    /// Branch, tag or commit; main when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_revision: Option<String>,
    /// Folder in the repository; its root when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_subfolder: Option<String>,
    /// User name that goes with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_user: Option<String>,
    /// Secret of this namespace with ssh-privatekey and known_hosts, username and password, user and token, or token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_credentials: Option<SecretName>,
}

/// Where the image goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildOutput {
    /// Path below the registry, such as weather-service.
    pub image: String,
    /// Tag, such as v0.0.1.
    pub image_tag: String,
    /// Host, optional port, optional path, such as ghcr.io/acme.
    pub image_registry: String,
    /// Secret of this namespace of type kubernetes.io/dockerconfigjson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_repo_credentials: Option<SecretName>,
}

/// Names a Secret of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretName {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The pipeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pipeline {
    /// Where the ConfigMaps of template and steps are; the run is in the namespace of the AgentBuild.
    pub namespace: String,
    /// Parameters for all steps; pipeline-timeout, workspace-size, workspace-storage-class and service-account steer the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<BuildParameter>>,
    /// The steps, in order; filled in from the template of the mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<PipelineStep>>,
}

/// A named value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildParameter {
    /// Its name.
    pub name: String,
    /// Its value, always text.
    pub value: String,
    /// Without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// One step of a pipeline: one Tekton task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStep {
    /// Name of the task.
    pub name: String,
    /// ConfigMap with its TaskSpec under key task-spec.yaml.
    pub config_map: String,
    /// Whether the step runs; false leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Parameters for this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<BuildParameter>>,
    /// Parameters that must have a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_parameters: Option<Vec<String>>,
    /// Conditions, all of which must hold, or the step is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_expressions: Option<Vec<WhenExpression>>,
}

/// A condition of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhenExpression {
    /// Left side; may refer to a result of an earlier step.
    pub input: String,
    /// How the sides are compared: in or notin.
    #[schemars(extend("enum" = ["in", "notin"]))]
    pub operator: String,
    /// Right side; at least one.
    pub values: Vec<String>,
}

/// What was observed of an AgentBuild.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBuildStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending, Building, Succeeded or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The phase in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Current or last PipelineRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_run_name: Option<String>,
    /// Identity of the inputs built last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_hash: Option<String>,
    /// Runs that were started for these inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i32>,
    /// When the last attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_build_time: Option<Time>,
    /// When the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The image that Agents run, by digest when the pipeline reported one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_image: Option<String>,
    /// The image that was built, by tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub built_image_tag: Option<String>,
    /// Its digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// The commit that was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_commit: Option<String>,
    /// What the last attempt was composed of, until it has made an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Provenance>,
    /// What the image of this status was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// What the images before it were made of, newest first, without their steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = EARLIER))]
    pub earlier: Vec<Provenance>,
    /// The value of annotation agent.kagenti.dev/cancel that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_cancel: Option<String>,
    /// The tasks of the last attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tasks: Vec<TaskSummary>,
    /// BuildSucceeded, PipelineRunExists, TektonAvailable, TemplateResolved and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// One task of an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSummary {
    /// The step.
    pub name: String,
    /// Its TaskRun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_run: Option<String>,
    /// Whether the task waits, runs, succeeded or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Tekton's reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    super::without_nullable(AgentBuild::crd())
}

#[cfg(test)]
mod tests;
