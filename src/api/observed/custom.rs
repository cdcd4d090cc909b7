//! What is kept of our own custom resources Agent and AgentBuild, and of what an Agent applies.
//!
//! `spec` and `status` are kept whole: they are ours to act on, and their sizes are bounded by admission. Of
//! `metadata.managedFields` nothing is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::object::Whole;
use super::wire::Metadata;
use super::{Kind, OwnerReference, What, owner};
use crate::domain::keys;

/// An Agent or AgentBuild.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomSeen {
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// Being deleted.
    pub deleting: bool,
    /// `metadata.finalizers`, in order.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`, but for the copy of the object that `kubectl apply` leaves.
    pub annotations: BTreeMap<String, String>,
    /// `spec`, as stored; an empty object when there is none.
    pub spec: Arc<Value>,
    /// `status`, as stored; an empty object when there is none.
    pub status: Arc<Value>,
}

impl CustomSeen {
    /// Carries our finalizer.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.finalizers.iter().any(|name| &**name == keys::FINALIZER_AGENT)
    }

    /// The AgentBuild that an Agent takes its image from: `spec.imageSource.buildRef.name`.
    #[must_use]
    pub fn build_ref(&self) -> Option<&str> {
        let name = self.spec.pointer("/imageSource/buildRef/name")?.as_str()?;
        (!name.is_empty()).then_some(name)
    }

    /// The object as `build` reads it: metadata as far as it is kept, and `spec`.
    #[must_use]
    pub fn object(&self, namespace: &str, name: &str, uid: &str) -> Value {
        json!({
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid, "generation": self.generation,
                "labels": self.labels, "annotations": self.annotations,
            },
            "spec": &*self.spec,
        })
    }
}

/// Whose an object is, and what was applied to it last: enough to tell a conflict of names from an object of ours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimSeen {
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `app.kubernetes.io/managed-by`.
    pub managed_by: Option<Box<str>>,
    /// Digest of what we applied last (annotation `kagenti.io/content-digest`).
    pub applied: Option<Box<str>>,
    /// The fields that the Agent's controller has applied and nobody has taken since, as FieldsV1; kept only of what an
    /// object of our groups owns.
    pub fields: Option<Arc<str>>,
    /// Being deleted.
    pub deleting: bool,
}

impl ClaimSeen {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            controller: owner(metadata),
            managed_by: metadata.label(keys::LABEL_APP_MANAGED_BY).map(Into::into),
            applied: metadata.annotation(keys::ANNOTATION_CONTENT_DIGEST).map(Into::into),
            fields: metadata.applied_by_agent(),
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }

    /// Controlled by the object of that uid.
    #[must_use]
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|owner| owner.uid == uid)
    }
}

/// A Service.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceSeen {
    /// Whose it is.
    pub claim: ClaimSeen,
    /// `ports`, `selector` and `type` of its `spec`, as stored: what drifts from what was applied. Kept only of those
    /// that an object of our groups controls.
    pub spec: Option<Arc<Value>>,
}

pub(super) fn project(kind: Kind, object: Whole) -> Option<What> {
    match kind {
        Kind::Agent => Some(What::Agent(Box::new(custom(object)))),
        Kind::AgentBuild => Some(What::AgentBuild(Box::new(custom(object)))),
        Kind::Service => Some(What::Service(service(object))),
        _ => None,
    }
}

fn custom(object: Whole) -> CustomSeen {
    let metadata = object.metadata;
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.remove(keys::ANNOTATION_LAST_APPLIED);
    CustomSeen {
        generation: metadata.generation.unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers.into_iter().flatten().map(Into::into).collect(),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        labels: metadata.labels.unwrap_or_default(),
        annotations,
        spec: Arc::new(object.spec.filter(Value::is_object).unwrap_or_else(|| json!({}))),
        status: Arc::new(object.status.filter(Value::is_object).unwrap_or_else(|| json!({}))),
    }
}

fn service(object: Whole) -> ServiceSeen {
    let claim = ClaimSeen::of(&object.metadata);
    let ours = claim.controller.as_ref().is_some_and(|owner| owner.group() == keys::GROUP_AGENT);
    let spec = object.spec.filter(|_| ours).map(|spec| {
        let kept = ["ports", "selector", "type"].into_iter();
        Arc::new(Value::Object(kept.filter_map(|key| Some((key.to_owned(), spec.get(key)?.clone()))).collect()))
    });
    ServiceSeen { claim, spec }
}
