//! What is kept of our own custom resources Agent and AgentBuild, and of what an Agent applies.
//!
//! `spec` and `status` are kept whole: they are ours to act on. What people write on one is bounded ([`LARGEST_TEXT`]), here as by
//! admission, which may have been away; of one that is larger its marks are kept, and [`Over`]. Of `metadata.managedFields` nothing is
//! kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::object::Whole;
use super::wire::Metadata;
use super::{Kind, LARGEST_TEXT, OwnerReference, What, owner};
use crate::domain::keys;

/// Names of finalizers that are kept of one object, in bytes: with more, none is.
const LARGEST_FINALIZERS: usize = 8 * 1024;

/// Why nothing of an object is read but its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Over {
    /// What is written on it is larger than [`LARGEST_TEXT`].
    Size,
    /// Its namespace holds too many of its kind.
    Count,
    /// There is no room for it beside the others.
    Total,
}

impl Over {
    /// Every one.
    pub const ALL: [Over; 3] = [Over::Size, Over::Count, Over::Total];

    /// The word of the metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Over::Size => "size",
            Over::Count => "count",
            Over::Total => "total",
        }
    }
}

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
    /// It is over a bound: labels, annotations and `spec` are empty here, whatever is written.
    pub over: Option<Over>,
}

impl CustomSeen {
    /// The same, of which nothing is read because it is `over` a bound: its marks and status.
    #[must_use]
    pub fn slim(&self, over: Over) -> Self {
        let (labels, annotations, spec) = (BTreeMap::new(), BTreeMap::new(), Arc::new(json!({})));
        Self { labels, annotations, spec, over: Some(over), ..self.clone() }
    }

    /// What people have written on it, in bytes of text.
    fn written(&self) -> usize {
        let texts =
            |map: &BTreeMap<String, String>| map.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        let mut spec = Length(0);
        // A sink that counts takes everything.
        let _ = serde_json::to_writer(&mut spec, &*self.spec);
        spec.0 + texts(&self.labels) + texts(&self.annotations)
    }

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

/// Counts what is written into it.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn custom(object: Whole) -> CustomSeen {
    let seen = whole(object);
    let finalizers: usize = seen.finalizers.iter().map(|name| name.len()).sum();
    if finalizers > LARGEST_FINALIZERS {
        // Nobody writes a list that is not known.
        return CustomSeen { finalizers: Box::default(), ..seen.slim(Over::Size) };
    }
    if seen.written() > LARGEST_TEXT { seen.slim(Over::Size) } else { seen }
}

fn whole(object: Whole) -> CustomSeen {
    let metadata = object.metadata;
    let mut annotations = metadata.annotations.unwrap_or_default();
    annotations.remove(keys::ANNOTATION_LAST_APPLIED);
    CustomSeen {
        over: None,
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
