//! `Agent` v1alpha1.
//!
//! The text of each field is what `kubectl explain` prints. Decisions: the Pod template has Kubernetes' whole schema without its
//! descriptions, so that wrong types are refused, and keeps fields nobody knows, so that a newer API server gets them; of its
//! metadata labels and annotations are kept. `imageSource` or `image`, and in `imageSource` one of two: held by rules in the schema.
//! Controllers and admission read objects as JSON, not through these types.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path of its own")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{PodTemplateSpec, ServicePort};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Says what to run, and from where its image comes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "agent.kagenti.dev",
    version = "v1alpha1",
    kind = "Agent",
    plural = "agents",
    singular = "agent",
    category = "kagenti",
    category = "all",
    namespaced,
    status = "AgentStatus",
    derive = "PartialEq",
    doc = "Agent runs an image under a lock-down: one Deployment, one Service and a ServiceAccount of its name.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Replicas",
        type_ = "integer",
        json_path = ".spec.replicas",
        description = "Pods that are wanted"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.deploymentStatus.phase",
        description = "Pending, Deploying, Ready or Failed"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        description = "Whether the wanted Pods run the wanted image"
    ),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.image",
        description = "Image in the Deployment",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{"rule": ONE_SOURCE, "message": ONE_SOURCE_MESSAGE}]))]
pub struct AgentSpec {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The Pod. The container named agent, or the first, gets the image; what the lock-down needs and the template leaves open is added.
    #[schemars(schema_with = "pod_template")]
    pub pod_template_spec: Value,
    /// Pods that are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 1))]
    pub replicas: Option<i32>,
    /// Where the image comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_source: Option<ImageSource>,
    /// The image, in place of imageSource.image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Ports of the Service; an empty list means no Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "service_ports")]
    pub service_ports: Option<Vec<Value>>,
    /// Further labels of the Deployment and its Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Further annotations of the Deployment and its Pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

const ONE_SOURCE: &str = "has(self.image) != has(self.imageSource)";
const ONE_SOURCE_MESSAGE: &str =
    "spec.imageSource: exactly one of image, buildRef must be given, or spec.image in place of imageSource";
const ONE_MEMBER: &str = "has(self.image) != has(self.buildRef)";
const ONE_MEMBER_MESSAGE: &str = "exactly one of image, buildRef must be given";

/// Where the image comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{"rule": ONE_MEMBER, "message": ONE_MEMBER_MESSAGE}]))]
pub struct ImageSource {
    /// An image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The AgentBuild of this namespace that makes the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_ref: Option<BuildRef>,
}

/// Names an AgentBuild.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildRef {
    /// Its name.
    pub name: String,
}

/// What was observed of an Agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Image in the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Pods that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Selector of the Pods, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_status: Option<DeploymentStatus>,
    /// ImageReady, DeploymentAvailable, PodsScheduled, LockdownRelaxed and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The rollout of an Agent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentStatus {
    /// Pending, Deploying, Ready or Failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The replicas of the Deployment, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_message: Option<String>,
    /// When the phase became Ready last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
}

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    super::without_nullable(Agent::crd())
}

/// Kubernetes' schema of a Pod template: without descriptions, keeping fields nobody knows; of its metadata labels and annotations.
#[must_use]
pub fn pod_template_schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        let mut schema = plain_schema::<PodTemplateSpec>();
        let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
        schema["properties"]["metadata"] =
            json!({"type": "object", "properties": {"labels": texts, "annotations": texts}});
        schema
    });
    &SCHEMA
}

fn pod_template(_: &mut SchemaGenerator) -> Schema {
    schema_of(pod_template_schema().clone(), "The Pod. The container named agent, or the first, gets the image.")
}

fn service_ports(_: &mut SchemaGenerator) -> Schema {
    let ports = json!({
        "type": "array",
        "items": plain_schema::<ServicePort>(),
        "default": [{"name": "http", "port": 8080, "targetPort": 8000, "protocol": "TCP"}],
    });
    schema_of(ports, "Ports of the Service; an empty list means no Service.")
}

fn schema_of(mut schema: Value, description: &str) -> Schema {
    schema["description"] = json!(description);
    Schema::try_from(schema).expect("an object is a schema")
}

/// The structural schema of a type of Kubernetes': every reference written out, no description.
pub(in crate::api) fn plain_schema<T: JsonSchema>() -> Value {
    let mut generator = SchemaSettings::openapi3().into_generator();
    let root = generator.subschema_for::<T>().to_value();
    let definitions = generator.definitions().clone();
    plain(&root, &definitions)
}

fn plain(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    if let Some(name) = members.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or_default();
        return definitions.get(name).map_or(Value::Null, |target| plain(target, definitions));
    }
    let mut result = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "description" | "title" | "nullable" | "default" => {}
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                let properties = properties.map(|(name, property)| (name.clone(), plain(property, definitions)));
                result.insert(key.clone(), properties.collect());
                result.insert("x-kubernetes-preserve-unknown-fields".to_owned(), json!(true));
            }
            "items" | "additionalProperties" => {
                result.insert(key.clone(), plain(value, definitions));
            }
            _ => {
                result.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(result)
}

#[cfg(test)]
pub(crate) mod tests;
