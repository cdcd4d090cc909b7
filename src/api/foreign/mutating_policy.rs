//! `admissionregistration.k8s.io/v1` MutatingAdmissionPolicy and its binding (Kubernetes 1.36 and later).
//!
//! Our bindings stop at 1.33, where the v1 kinds did not exist yet; selectors, rules and match conditions are the
//! bindings' own types, so that a policy and a webhook can be given the very same values. Written by `render`;
//! nothing here is read back.

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, NamedRuleWithOperations, ParamKind, ParamRef, Variable,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

/// Group and version of both kinds.
pub const API_VERSION: &str = "admissionregistration.k8s.io/v1";
/// Kind of [`MutatingAdmissionPolicy`].
pub const KIND_POLICY: &str = "MutatingAdmissionPolicy";
/// Kind of [`MutatingAdmissionPolicyBinding`].
pub const KIND_BINDING: &str = "MutatingAdmissionPolicyBinding";

/// A policy that changes objects in the API server itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MutatingAdmissionPolicy {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND_POLICY`].
    pub kind: String,
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// What it does to what.
    pub spec: PolicySpec,
}

/// `spec` of a [`MutatingAdmissionPolicy`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// `Fail` or `Ignore`, for expressions that end in an error and for missing parameters.
    pub failure_policy: String,
    /// `Never` or `IfNeeded`.
    pub reinvocation_policy: String,
    /// Kind of the parameter object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param_kind: Option<ParamKind>,
    /// Which objects.
    pub match_constraints: MatchConstraints,
    /// CEL conditions; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<MatchCondition>,
    /// Named CEL expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// What is changed, in order.
    pub mutations: Vec<Mutation>,
}

/// `spec.matchConstraints`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MatchConstraints {
    /// Namespaces of the objects.
    pub namespace_selector: LabelSelector,
    /// Labels of the objects.
    pub object_selector: LabelSelector,
    /// Resources and operations.
    pub resource_rules: Vec<NamedRuleWithOperations>,
    /// `Equivalent` or `Exact`.
    pub match_policy: String,
}

/// One entry of `spec.mutations`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mutation {
    /// `JSONPatch`; the other type, `ApplyConfiguration`, refuses Pods that repeat a key of a list map (such as an
    /// environment variable), which the API server accepts.
    pub patch_type: String,
    /// The expression.
    pub json_patch: JsonPatchExpression,
}

/// A CEL expression that gives a list of patch operations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JsonPatchExpression {
    /// The expression.
    pub expression: String,
}

/// Puts a policy in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MutatingAdmissionPolicyBinding {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND_BINDING`].
    pub kind: String,
    /// Name and labels.
    pub metadata: ObjectMeta,
    /// Which policy, with which parameters.
    pub spec: BindingSpec,
}

/// `spec` of a [`MutatingAdmissionPolicyBinding`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingSpec {
    /// The policy.
    pub policy_name: String,
    /// The parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param_ref: Option<ParamRef>,
}
