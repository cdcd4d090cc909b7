//! The members of watched objects that are decoded at all; everything else is skipped without being built.
//!
//! One shape for every kind, because the members we read mean the same wherever they occur. Promise: `null`, absent and
//! future members never fail the decoding of an object that an API server has accepted.

pub mod binary;

use std::collections::BTreeMap;
use std::sync::Arc;

use binary::Binary;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use super::fields::{ManagedFields, WrittenBefore};
use super::variables::Variables;
use crate::domain::workload::WorkloadKind;
use crate::store::OwnerReference;

/// `metadata` of an object or a template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Metadata {
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    pub creation_timestamp: Option<String>,
    pub deletion_timestamp: Option<String>,
    pub labels: Option<BTreeMap<String, String>>,
    pub annotations: Option<BTreeMap<String, String>>,
    pub owner_references: Option<Vec<OwnerReference>>,
    pub generation: Option<i64>,
    pub finalizers: Option<Vec<String>>,
    pub managed_fields: Option<Vec<ManagedFields>>,
}

impl Metadata {
    /// Name, namespace and version, as the client library asks for them.
    pub(super) fn identity(&self) -> ObjectMeta {
        ObjectMeta {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            resource_version: self.resource_version.clone(),
            ..ObjectMeta::default()
        }
    }

    /// The value of a label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }

    /// Whether an Agent is among the owners.
    #[must_use]
    pub fn has_agent(&self) -> bool {
        self.owner_references.iter().flatten().any(OwnerReference::is_agent)
    }

    /// The fields that the Agent's controller has applied and nobody has taken since, as FieldsV1, of an Agent's object.
    #[must_use]
    pub fn applied_by_agent(&self) -> Option<Arc<str>> {
        let manager = self.owner_references.iter().flatten().find_map(OwnerReference::agent_manager)?;
        self.managed_fields.iter().flatten().find(|entry| entry.is(manager, "Apply"))?.set()
    }

    /// What was written on an Agent's object before the Agent's controller had applied anything.
    #[must_use]
    pub fn written_before(&self) -> Option<WrittenBefore> {
        let manager = self.owner_references.iter().flatten().find_map(OwnerReference::agent_manager)?;
        WrittenBefore::of(self.managed_fields.as_deref().unwrap_or_default(), manager)
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// A Pod template; also the `jobTemplate` of a CronJob, one level deeper.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Template {
    pub metadata: Option<Metadata>,
    pub spec: Option<Box<Spec>>,
}

/// `spec` of any watched kind, and of Pod templates.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Spec {
    pub replicas: Option<i64>,
    pub suspend: Option<bool>,
    pub template: Option<Template>,
    pub job_template: Option<Template>,
    pub pod_template: Option<Template>,
    pub paused: Option<bool>,
    pub update_strategy: Option<Strategy>,
    pub scheduling_gates: Option<Vec<Named>>,
    pub service_account_name: Option<String>,
    pub service_account: Option<String>,
    pub host_network: Option<bool>,
    pub os: Option<Named>,
    pub node_selector: Option<BTreeMap<String, String>>,
    pub containers: Option<Vec<Container>>,
    pub init_containers: Option<Vec<Container>>,
    pub restart_policy: Option<String>,
    pub selector: Option<Value>,
    #[serde(rename = "type")]
    pub type_: Option<Value>,
    pub target_ref: Option<Value>,
    pub identity: Option<Value>,
    pub trace: Option<Value>,
    pub auth_bridge_mode: Option<Value>,
}

impl Spec {
    /// The Pod template, where that kind keeps it.
    #[must_use]
    pub fn template_of(&self, kind: WorkloadKind) -> Option<&Template> {
        match kind {
            WorkloadKind::CronJob => self.job_template.as_ref()?.spec.as_ref()?.template.as_ref(),
            WorkloadKind::Sandbox => self.pod_template.as_ref(),
            _ => self.template.as_ref(),
        }
    }
}

/// `updateStrategy`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Strategy {
    #[serde(rename = "type")]
    pub type_: Option<String>,
    #[serde(rename = "rollingUpdate")]
    pub rolling_update: Option<RollingUpdate>,
}

/// `updateStrategy.rollingUpdate`, as far as StatefulSets have it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the field is that of the API")]
pub struct RollingUpdate {
    pub partition: Option<i64>,
}

/// A container of a Pod or of a Pod template.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Container {
    pub name: String,
    pub image: Option<String>,
    pub ports: Option<Vec<ContainerPort>>,
    pub restart_policy: Option<String>,
    /// Of the variables that are set, those that Drawbridge may set.
    pub env: Variables,
}

/// A port of a container.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct ContainerPort {
    pub name: Option<String>,
    pub container_port: Option<i64>,
    pub protocol: Option<String>,
}

/// An address of a Pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the field is that of the API")]
pub struct PodIp {
    pub ip: String,
}

/// Anything with a name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the field is that of the API")]
pub struct Named {
    pub name: String,
}

/// `status` of any watched kind.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Status {
    pub replicas: Option<i64>,
    pub desired_number_scheduled: Option<i64>,
    pub current_number_scheduled: Option<i64>,
    /// A number in Jobs, a list in CronJobs.
    pub active: Option<Value>,
    pub succeeded: Option<i64>,
    pub failed: Option<i64>,
    pub completion_time: Option<String>,
    pub conditions: Option<Vec<Condition>>,
    pub phase: Option<String>,
    pub observed_generation: Option<i64>,
    pub updated_replicas: Option<i64>,
    pub available_replicas: Option<i64>,
    pub ready_replicas: Option<i64>,
    pub unavailable_replicas: Option<i64>,
    pub updated_number_scheduled: Option<i64>,
    pub number_available: Option<i64>,
    pub number_ready: Option<i64>,
    #[serde(rename = "podIPs")]
    pub pod_ips: Option<Vec<PodIp>>,
    pub configured_pods: Option<Value>,
    pub running_pods: Option<Value>,
    pub config_hash: Option<String>,
    pub effective: Option<Value>,
    pub applied_target: Option<Value>,
    #[serde(deserialize_with = "super::lenient")]
    pub card: Option<CardSummary>,
}

/// `status.card` of an AgentRuntime.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct CardSummary {
    pub name: Option<String>,
    pub verified: Option<bool>,
    pub reason: Option<String>,
}

impl Status {
    /// `status.active` of a Job, as a number.
    #[must_use]
    pub fn active(&self) -> i64 {
        self.active.as_ref().and_then(Value::as_i64).unwrap_or_default()
    }

    /// Whether a condition of that type is true.
    #[must_use]
    pub fn is(&self, condition: &str) -> bool {
        self.conditions.iter().flatten().any(|one| one.type_ == condition && one.status == "True")
    }
}

/// One condition.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Condition {
    #[serde(rename = "type")]
    pub type_: String,
    pub status: String,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub last_transition_time: Option<String>,
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// The condition as JSON.
    #[must_use]
    pub fn into_value(self) -> Value {
        let mut value = json!({"type": self.type_, "status": self.status});
        let texts = [("reason", self.reason), ("message", self.message)];
        for (key, text) in texts.into_iter().chain([("lastTransitionTime", self.last_transition_time)]) {
            if let Some(text) = text {
                value[key] = text.into();
            }
        }
        if let Some(generation) = self.observed_generation {
            value["observedGeneration"] = generation.into();
        }
        value
    }
}

/// A watched object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wire {
    metadata: Metadata,
    data: Option<BTreeMap<String, String>>,
    binary_data: Option<Binary>,
    immutable: Option<bool>,
    automount_service_account_token: Option<bool>,
    spec: Option<Box<Spec>>,
    status: Option<Box<Status>>,
    endpoints: Option<Value>,
    ports: Option<Value>,
    rules: Option<Value>,
    role_ref: Option<Value>,
    subjects: Option<Value>,
}

/// A watched object as the client hands it over.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "Wire")]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Raw {
    /// Name, namespace and version only: what the client library asks for.
    pub meta: ObjectMeta,
    pub metadata: Metadata,
    pub data: Option<BTreeMap<String, String>>,
    /// Of ConfigMaps.
    pub binary_data: Option<Binary>,
    pub immutable: Option<bool>,
    pub automount_service_account_token: Option<bool>,
    pub spec: Option<Box<Spec>>,
    pub status: Option<Box<Status>>,
    /// Of EndpointSlices.
    pub endpoints: Option<Value>,
    /// Of EndpointSlices.
    pub ports: Option<Value>,
    /// Of Roles.
    pub rules: Option<Value>,
    /// Of RoleBindings.
    pub role_ref: Option<Value>,
    /// Of RoleBindings.
    pub subjects: Option<Value>,
}

impl From<Wire> for Raw {
    fn from(wire: Wire) -> Self {
        Self {
            meta: wire.metadata.identity(),
            metadata: wire.metadata,
            data: wire.data,
            binary_data: wire.binary_data,
            immutable: wire.immutable,
            automount_service_account_token: wire.automount_service_account_token,
            spec: wire.spec,
            status: wire.status,
            endpoints: wire.endpoints,
            ports: wire.ports,
            rules: wire.rules,
            role_ref: wire.role_ref,
            subjects: wire.subjects,
        }
    }
}

/// What the client library asks of a type whose kind is told at run time: the kind's names, and the little that is
/// decoded into `meta`. Which kinds have which type is told by [`super`].
macro_rules! resource_told_at_run_time {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> kube::core::Resource for $type {
            type DynamicType = kube::core::ApiResource;
            type Scope = kube::core::DynamicResourceScope;

            fn kind(resource: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                resource.kind.as_str().into()
            }

            fn group(resource: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                resource.group.as_str().into()
            }

            fn version(resource: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                resource.version.as_str().into()
            }

            fn plural(resource: &Self::DynamicType) -> std::borrow::Cow<'_, str> {
                resource.plural.as_str().into()
            }

            fn meta(&self) -> &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
                &mut self.meta
            }
        }
    };
}
pub(super) use resource_told_at_run_time;

resource_told_at_run_time!([] Raw);
