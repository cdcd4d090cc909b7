//! BeeAI's `Agent` v1.
//!
//! The text of each field is what `kubectl explain` prints. `env` and `resources` have Kubernetes' whole schema without its descriptions, so
//! that wrong types are refused. Controllers and admission read objects as JSON, not through these types.

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::agent_kagenti_dev::{agent::plain_schema, without_nullable};

/// Says what to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "beeai.dev",
    version = "v1",
    kind = "Agent",
    plural = "agents",
    singular = "agent",
    shortname = "bagent",
    category = "beeai",
    namespaced,
    status = "AgentStatus",
    derive = "PartialEq",
    doc = "Agent runs an image under a lock-down: one Deployment and one Service on port 8000, of its name.",
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image", description = "Image that is wanted"),
    printcolumn(
        name = "Ready",
        type_ = "boolean",
        json_path = ".status.ready",
        description = "Whether the wanted Pods run the wanted image"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The image of container agent.
    #[schemars(length(min = 1))]
    pub image: String,
    /// Its environment, in order. A literal PORT is the port it listens on, 8000 without one; a literal IMAGE_REPO_SECRET names the
    /// Secret that its image is pulled with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "env")]
    pub env: Option<Vec<Value>>,
    /// Its requests and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<Value>,
}

/// What was observed of an Agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Creating, NotReady, Ready or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_status: Option<String>,
    /// Whether condition Ready is True.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// Image in the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Ready, LockdownRelaxed, LockdownPending, and Reconciling or Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The CustomResourceDefinition of `beeai.dev`.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    without_nullable(Agent::crd())
}

/// The CustomResourceDefinition of `beeai.beeai.dev`.
#[must_use]
pub fn compat_crd() -> CustomResourceDefinition {
    super::compat(crd())
}

fn env(_: &mut SchemaGenerator) -> Schema {
    env_of(
        "Its environment, in order. A literal PORT is the port it listens on, 8000 without one; a literal IMAGE_REPO_SECRET names the Secret \
         that its image is pulled with.",
    )
}

/// Variables with the whole schema that Kubernetes has for them.
pub(super) fn env_of(description: &str) -> Schema {
    let env = json!({"type": "array", "items": plain_schema::<EnvVar>(), "description": description});
    Schema::try_from(env).expect("an object is a schema")
}

fn resources(_: &mut SchemaGenerator) -> Schema {
    resources_of()
}

/// Requests and limits with the whole schema that Kubernetes has for them.
pub(super) fn resources_of() -> Schema {
    let mut resources = plain_schema::<ResourceRequirements>();
    resources["description"] = json!("Its requests and limits.");
    Schema::try_from(resources).expect("an object is a schema")
}
