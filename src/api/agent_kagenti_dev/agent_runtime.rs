//! `AgentRuntime` v1alpha1.
//!
//! The text of each field is what `kubectl explain` prints. Decisions:
//! nothing is immutable: a change of `type` re-labels, a change of `targetRef` enrols the new workload and cleans up the one in
//! `status.appliedTarget`, and the API server refuses pairs of (apiVersion, kind) that no controller could act on; `authBridgeMode` keeps the
//! reference's values so that its manifests apply, and the validating webhook and condition `Ready` say `ModeNotAvailable` for one without a plan.
//! Controllers and admission do not read objects through these types (a field that does not parse would hide all others): they
//! use `config::inputs::AgentRuntimeInput`.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path of its own")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, CustomResourceExt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Points at a workload of the same namespace and says what kind of agent it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "agent.kagenti.dev",
    version = "v1alpha1",
    kind = "AgentRuntime",
    plural = "agentruntimes",
    singular = "agentruntime",
    shortname = "art",
    shortname = "agentrt",
    category = "kagenti",
    namespaced,
    status = "AgentRuntimeStatus",
    derive = "PartialEq",
    doc = "AgentRuntime turns a workload of its namespace into a governed agent or tool: the workload's Pods roll once and come back with the AuthBridge sidecars; deleting the AgentRuntime takes the enrolment away.",
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.type", description = "agent or tool"),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".spec.targetRef.name",
        description = "Name of the workload"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "Pending, Active or Error"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        description = "Whether the enrolment is in place",
        priority = "1"
    ),
    printcolumn(
        name = "Protected",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Protected')].status",
        description = "Whether every Pod that runs has the sidecars of its configuration"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Protected')].reason",
        description = "Why it is protected or not"
    ),
    printcolumn(
        name = "Pods",
        type_ = "integer",
        json_path = ".status.configuredPods",
        description = "Pods that run with the current configuration",
        priority = "1"
    ),
    printcolumn(
        name = "Mode",
        type_ = "string",
        json_path = ".status.effective.mode",
        description = "Injection mode in force",
        priority = "1"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AgentRuntimeSpec {
    /// What the workload is; becomes label kagenti.io/type of the workload and of its Pods.
    #[serde(rename = "type")]
    pub type_: AgentType,
    /// The workload, in the namespace of this object. May be changed: the new workload is enrolled and the old one is left as it was.
    pub target_ref: TargetRef,
    /// Identity of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// OpenTelemetry settings, written as OTEL_* variables into the workload's containers that do not set them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Shape of the sidecars; stronger than the Pod's annotation and the namespace's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_bridge_mode: Option<AuthBridgeMode>,
}

/// What a workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "a documented variant would not become a plain enumeration in the schema")]
pub enum AgentType {
    Agent,
    Tool,
}

impl AgentType {
    /// Both, in documentation order.
    pub const ALL: [AgentType; 2] = [AgentType::Agent, AgentType::Tool];

    /// The value of label `kagenti.io/type`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AgentType::Agent => "agent",
            AgentType::Tool => "tool",
        }
    }
}

/// Names a workload of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{"rule": PAIRS, "message": PAIRS_MESSAGE}]))]
pub struct TargetRef {
    /// apps/v1, batch/v1 or agents.x-k8s.io/v1alpha1, as belongs to the kind.
    #[schemars(length(min = 1))]
    pub api_version: String,
    /// Deployment, StatefulSet, DaemonSet, CronJob or Sandbox.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// Name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The pairs of [`crate::domain::workload::WorkloadKind::TARGETS`], compared in a test. An empty value is the schema's to refuse.
const PAIRS: &str = "self.apiVersion == '' || self.kind == '' \
     || (self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet', 'DaemonSet']) \
     || (self.apiVersion == 'batch/v1' && self.kind == 'CronJob') \
     || (self.apiVersion == 'agents.x-k8s.io/v1alpha1' && self.kind == 'Sandbox')";
const PAIRS_MESSAGE: &str = "must be a Deployment, StatefulSet or DaemonSet of apps/v1, a CronJob of batch/v1, or a Sandbox of \
     agents.x-k8s.io/v1alpha1";

/// Identity of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// SPIFFE identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spiffe: Option<Spiffe>,
}

/// SPIFFE identity of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spiffe {
    /// Trust domain of the workload's SPIFFE ID, in place of the platform's.
    #[schemars(regex(pattern = r"^[a-zA-Z0-9]([a-zA-Z0-9\-\.]*[a-zA-Z0-9])?$"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_domain: Option<String>,
}

/// OpenTelemetry settings of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// Address of the collector (OTEL_EXPORTER_OTLP_ENDPOINT).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Transport (OTEL_EXPORTER_OTLP_PROTOCOL; http is written as http/protobuf).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TraceProtocol>,
    /// Which share of traces is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
}

/// Transport to the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "a documented variant would not become a plain enumeration in the schema")]
pub enum TraceProtocol {
    Grpc,
    Http,
}

/// Sampling of traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Sampling {
    /// From 0 (none) to 1 (all); 0 is a value, not the absence of one (OTEL_TRACES_SAMPLER_ARG).
    #[schemars(schema_with = "rate")]
    pub rate: f64,
}

fn rate(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0.0, "maximum": 1.0})
}

/// The shapes of the sidecars that the reference's schema knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "a documented variant would not become a plain enumeration in the schema")]
pub enum AuthBridgeMode {
    ProxySidecar,
    EnvoySidecar,
    Lite,
    Waypoint,
}

/// What the controller found and did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRuntimeStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// One word for older readers; the conditions say more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Pods of the workload that run with the current configuration and are not being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured_pods: Option<i32>,
    /// Pods of the workload that run, whatever they carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running_pods: Option<i32>,
    /// TargetResolved, ConfigResolved, Ready, Protected and, while something is under way or stuck, Reconciling or Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Hash of everything that would change the injected result, as the workload's template carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_hash: Option<String>,
    /// The configuration in force, and where overriding values came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Effective>,
    /// The workload that was enrolled last: what is cleaned up when targetRef changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_target: Option<AppliedTarget>,
    /// The card of the workload, in a few words; the AgentCard of that name says more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<CardSummary>,
}

/// A card in a few words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardSummary {
    /// Name of the AgentCard.
    pub name: String,
    /// Whether the card is signed by the identity that the workload runs as; absent while nobody has judged it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// Why, as one code of docs/reference/reasons.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state of an AgentRuntime in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "a documented variant would not become a plain enumeration in the schema")]
pub enum Phase {
    Pending,
    Active,
    Error,
}

/// The configuration in force for a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effective {
    /// The injection mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The SPIFFE ID that the workload's Pods are expected to have; absent without SPIRE.
    #[serde(rename = "spiffeID", default, skip_serializing_if = "Option::is_none")]
    pub spiffe_id: Option<String>,
    /// Values that were set by the AgentRuntime, the Pod template or the namespace, in place of the platform's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["field"]))]
    pub values: Vec<EffectiveValue>,
}

/// One value in force, and who set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveValue {
    /// Key of the platform file, such as mode or trace.endpoint.
    pub field: String,
    /// The value in force.
    pub value: String,
    /// Layer of the configuration that set the value.
    pub from: String,
    /// Values of weaker layers, weakest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<ShadowedValue>,
}

/// A value that a stronger one overrode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowedValue {
    /// Layer of the configuration that set the value.
    pub from: String,
    /// The value.
    pub value: String,
}

/// A workload that was enrolled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedTarget {
    /// As in spec.targetRef.
    pub api_version: String,
    /// As in spec.targetRef.
    pub kind: String,
    /// As in spec.targetRef.
    pub name: String,
    /// metadata.uid of the workload: one of the same name made later is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// `metav1.Condition` as a list with one entry per type, with the limits of the Kubernetes API.
fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "description": "TargetResolved, ConfigResolved, Ready, Protected and, while something is under way or stuck, Reconciling or Stalled.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What is judged.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
                },
                "status": {
                    "description": "The judgement.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"]
                },
                "reason": {
                    "description": "Why, as one code of docs/reference/reasons.md.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
                },
                "message": {
                    "description": "Why, for people.",
                    "type": "string",
                    "maxLength": 32768
                },
                "lastTransitionTime": {
                    "description": "When the judgement last changed.",
                    "type": "string",
                    "format": "date-time"
                },
                "observedGeneration": {
                    "description": "The generation of the spec that was judged.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0
                }
            }
        }
    })
}

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    super::without_nullable(AgentRuntime::crd())
}
