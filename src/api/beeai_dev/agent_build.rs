//! BeeAI's `AgentBuild` v1.
//!
//! The text of each field is what `kubectl explain` prints. What the schema cannot say is left to the validating webhook, which names all of
//! it at once. Controllers and admission read objects as JSON, not through these types.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path of its own")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent::{env_of, resources_of};
use crate::api::agent_kagenti_dev::agent_build::TaskSummary;
use crate::api::agent_kagenti_dev::provenance::{EARLIER, Provenance};
use crate::api::agent_kagenti_dev::without_nullable;

/// Says where source code is, where its image goes, and which Agent runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "beeai.dev",
    version = "v1",
    kind = "AgentBuild",
    plural = "agentbuilds",
    singular = "agentbuild",
    shortname = "bbuild",
    category = "beeai",
    namespaced,
    status = "AgentBuildStatus",
    derive = "PartialEq",
    doc = "AgentBuild turns a Dockerfile of a Git repository into an image, and keeps an Agent that runs it where it asks for one.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.buildStatus",
        description = "Pending, Building, Completed or Failed"
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
    /// Git URL, with https:// or without; never with a token in it.
    pub repo_url: String,
    /// Folder in the repository whose Dockerfile is built; its root when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_subfolder: Option<String>,
    /// User name that goes with a token; x-access-token when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo_user: Option<String>,
    /// Branch, tag or commit.
    pub revision: String,
    /// Path of the image below the registry, such as weather-agent.
    pub image: String,
    /// Tag, such as v0.0.1.
    pub image_tag: String,
    /// Host, optional port, optional path, such as ghcr.io/acme.
    pub image_registry: String,
    /// Credentials and build arguments. SOURCE_REPO_SECRET or GITHUB_TOKEN take the Git token from a Secret, IMAGE_REPO_TOKEN the
    /// registry's; a literal IMAGE_REPO_SECRET names a Secret of type kubernetes.io/dockerconfigjson; every other literal is a build
    /// argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "build_env")]
    pub env: Option<Vec<Value>>,
    /// Whether an Agent is kept that runs the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_after_build: Option<bool>,
    /// Whether finished Pods and the workspace are removed after a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup_after_build: Option<bool>,
    /// The Agent that runs the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentOfBuild>,
    /// Dockerfile, from the folder that is built; Dockerfile when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<String>,
}

/// The Agent that runs the image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOfBuild {
    /// Its name; that of the AgentBuild when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "agent_env")]
    pub env: Option<Vec<Value>>,
    /// Its requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "agent_resources")]
    pub resources: Option<Value>,
}

/// What was observed of an AgentBuild.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentBuildStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Pending, Building, Completed or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_status: Option<String>,
    /// The status of the build in words.
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
    pub start_time: Option<Time>,
    /// When the last attempt ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// The image, by digest when the pipeline reported one.
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
    /// The Agent that runs the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Field deploymentStatus of the Agent that runs the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_status: Option<String>,
    /// The value of annotation beeai.dev/cancel that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handled_cancel: Option<String>,
    /// The tasks of the last attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub tasks: Vec<TaskSummary>,
    /// Ready, BuildSucceeded, Deployed, LoginCurrent, PipelineRunExists, TektonAvailable, and Reconciling or Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The CustomResourceDefinition of `beeai.dev`.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    without_nullable(AgentBuild::crd())
}

/// The CustomResourceDefinition of `beeai.beeai.dev`.
#[must_use]
pub fn compat_crd() -> CustomResourceDefinition {
    super::compat(crd())
}

fn build_env(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    env_of(
        "Credentials and build arguments. SOURCE_REPO_SECRET or GITHUB_TOKEN take the Git token from a Secret, IMAGE_REPO_TOKEN the \
         registry's; a literal IMAGE_REPO_SECRET names a Secret of type kubernetes.io/dockerconfigjson; every other literal is a build \
         argument.",
    )
}

fn agent_env(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    env_of("Its environment.")
}

fn agent_resources(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    resources_of()
}
