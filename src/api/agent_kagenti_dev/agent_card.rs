//! `AgentCard` v1alpha1.
//!
//! The text of each field is what `kubectl explain` prints. Decisions: state is in conditions, a map by type; column Verified is the condition,
//! not the signature alone; every text and list is bounded, those of `status.card` by [`shape`] so that what [`fits`] is stored whole.
//! Controllers and admission read objects as `store::kinds::agent_card` keeps them, not through these types.

#![expect(clippy::duplicated_attributes, reason = "each printer column has a type and a path of its own")]

mod project;
mod shape;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use project::{WrongType, project};
pub use shape::{CARD_BYTES, CARD_ITEMS, fits, is_within};

/// What the card is of, and how it is looked after.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "agent.kagenti.dev",
    version = "v1alpha1",
    kind = "AgentCard",
    plural = "agentcards",
    singular = "agentcard",
    shortname = "cards",
    category = "kagenti",
    namespaced,
    status = "AgentCardStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "AgentCard is what an agent says of itself over A2A, whether that is signed, and whether the signer is the identity that the agent runs as.",
    printcolumn(
        name = "Protocol",
        type_ = "string",
        json_path = ".status.protocol",
        description = "Protocol that the agent speaks"
    ),
    printcolumn(
        name = "Kind",
        type_ = "string",
        json_path = ".status.targetRef.kind",
        description = "Kind of the workload"
    ),
    printcolumn(
        name = "Target",
        type_ = "string",
        json_path = ".status.targetRef.name",
        description = "Name of the workload"
    ),
    printcolumn(
        name = "Agent",
        type_ = "string",
        json_path = ".status.card.name",
        description = "Name that the agent gives itself"
    ),
    printcolumn(
        name = "Verified",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Verified')].status",
        description = "Whether the card is signed by whom it has to be"
    ),
    printcolumn(
        name = "Bound",
        type_ = "boolean",
        json_path = ".status.bindingStatus.bound",
        description = "Whether the signer is the identity that the workload runs as"
    ),
    printcolumn(
        name = "Synced",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Synced')].status",
        description = "Whether the card could be read"
    ),
    printcolumn(
        name = "LastSync",
        type_ = "date",
        json_path = ".status.lastSyncTime",
        description = "When the card last changed"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Skills",
        type_ = "string",
        json_path = ".status.skills",
        description = "Ids of its skills",
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AgentCardSpec {
    /// Time between two looks at the agent's card, such as 30s or 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("default" = "30s"))]
    pub sync_period: Option<String>,
    /// The workload behind the card, in the namespace of this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<CardTargetRef>,
    /// Asks whether the card is signed by the identity that the workload runs as; an empty object is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_binding: Option<IdentityBinding>,
}

/// Names a workload of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardTargetRef {
    /// API version of the workload, such as apps/v1.
    #[schemars(length(min = 1, max = 317))]
    pub api_version: String,
    /// Kind of the workload, such as Deployment, StatefulSet or Sandbox.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the workload.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What the signer of a card has to be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IdentityBinding {
    /// Trust domain of the signer, in place of the platform's; one of those that the platform allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255), regex(pattern = r"^[a-zA-Z0-9]([a-zA-Z0-9\-\.]*[a-zA-Z0-9])?$"))]
    pub trust_domain: Option<String>,
    /// For manifests of other operators: a card that is signed by somebody else is never trusted here, whatever is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub strict: Option<bool>,
}

/// What was read and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentCardStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The card as it was read last: at most 64 KiB, its url replaced by the one inside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "shape::schema")]
    pub card: Option<Value>,
    /// Synced, Reachable, SignatureVerified, Bound, Verified, Ready and what else there is to say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"])
    )]
    pub conditions: Vec<Condition>,
    /// When the content of the card last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_sync_time: Option<Time>,
    /// SHA-256 of the card as it is published here, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub card_id: Option<String>,
    /// What is shown of the card was covered by a good signature; absent when nobody vouches for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_covered: Option<bool>,
    /// Where it was read: Agent (a Pod serves it) or ConfigMap (the one with the workload's signed card).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub card_source: Option<String>,
    /// Protocol that the agent speaks, from the labels of its workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub protocol: Option<String>,
    /// The workload that was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<CardTargetRef>,
    /// metadata.uid of the workload: one of the same name made later is another one.
    #[serde(rename = "targetUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub target_uid: Option<String>,
    /// ServiceAccount in the identity by which the card is verified; what is trusted is this account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub trusted_account: Option<String>,
    /// The url that the agent itself serves in its card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub served_url: Option<String>,
    /// Where the agent is reached inside the cluster, one entry per interface that it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub endpoints: Vec<CardEndpoint>,
    /// Ids of its skills, separated by commas, at most 256 bytes of plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub skills: Option<String>,
    /// Whether a signature of the card is valid; absent while signatures are not looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_signature: Option<bool>,
    /// What was found of the signatures, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub signature_verification_details: Option<String>,
    /// Key id in the header of the signature that is valid; anybody can write any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub signature_key_id: Option<String>,
    /// SPIFFE ID of the signer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub signature_spiffe_id: Option<String>,
    /// Which rules for the signed bytes fitted: kagenti-v2, kagenti-v1 or a2a-sdk-1.x.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub signature_profile: Option<String>,
    /// Whether the signature is valid and the signer is the identity that the workload runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature_identity_match: Option<bool>,
    /// SPIFFE ID that the signer has to have: the one that the workload runs as.
    #[serde(rename = "expectedSpiffeID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub expected_spiffe_id: Option<String>,
    /// SPIFFE ID that the agent has proved to have, over TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub attested_agent_spiffe_id: Option<String>,
    /// Whether the signer is the identity that the workload runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding_status: Option<BindingStatus>,
    /// The value of annotation agentcard.kagenti.dev/refresh that was acted on last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub handled_refresh: Option<String>,
}

/// Where an interface of an agent is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardEndpoint {
    /// Transport or protocol binding, such as JSONRPC, GRPC or HTTP+JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub transport: Option<String>,
    /// Host and port of the Service, with the path that the agent serves.
    #[schemars(length(max = 2048))]
    pub url: String,
}

/// Whether a signer is the identity that its workload runs as.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingStatus {
    /// Whether the card is signed by the identity that the workload runs as.
    pub bound: bool,
    /// Why, as one code of docs/reference/reasons.md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,
    /// When the answer last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_evaluation_time: Option<Time>,
}

/// The CustomResourceDefinition.
#[must_use]
pub fn crd() -> CustomResourceDefinition {
    super::without_nullable(AgentCard::crd())
}

#[cfg(test)]
mod tests;
