//! Watched objects in the shapes in which they are decoded: one per family of kinds.
//!
//! In: JSON as the API server sends it. Out: a [`Change`]. [`Raw`] serves what Kubernetes itself defines: only members
//! that we read, whatever the kind. [`Whole`] serves objects whose `spec` and `status` we act on as they are: our own
//! custom resources. [`TektonObject`] serves runs, which are large and of which little is read. Promise: the shape is a
//! matter of the kind alone ([`Kind::shape`]), so that every reader decodes alike.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::lenient::Members;
use super::wire::{Metadata, Raw, resource_told_at_run_time};
use super::{Change, Kind, custom, project, tekton};

/// How objects of a kind are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// As [`Raw`].
    Common,
    /// As [`Whole`].
    Whole,
    /// As [`TektonObject`].
    Tekton,
}

impl Kind {
    /// How objects of the kind are decoded.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Kind::Agent | Kind::AgentBuild | Kind::Service => Shape::Whole,
            Kind::PipelineRun | Kind::TaskRun => Shape::Tekton,
            _ => Shape::Common,
        }
    }
}

/// A watched object in one of the shapes.
pub trait Decoded:
    Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
    + DeserializeOwned
    + Clone
    + Debug
    + Send
    + Sync
    + 'static
{
    /// Its metadata.
    fn metadata(&self) -> &Metadata;
    /// The object as a change of that kind; an object that is of no interest counts as gone.
    fn into_change(self, kind: Kind) -> Change;
}

/// One object of that kind, from its JSON text.
///
/// # Errors
/// When the text is not an object of that kind.
pub fn change_of(kind: Kind, text: &str) -> serde_json::Result<Change> {
    Ok(match kind.shape() {
        Shape::Common => serde_json::from_str::<Raw>(text)?.into_change(kind),
        Shape::Whole => serde_json::from_str::<Whole>(text)?.into_change(kind),
        Shape::Tekton => serde_json::from_str::<TektonObject>(text)?.into_change(kind),
    })
}

/// An object of ours, with `spec` and `status` as they are.
pub type Whole = Object<Value, Value>;
/// A PipelineRun or TaskRun.
pub type TektonObject = Object<Members<tekton::Spec>, Members<tekton::Status>>;

#[derive(Debug, Clone, Deserialize)]
#[serde(bound(deserialize = "S: Deserialize<'de>, T: Deserialize<'de>"))]
struct Parts<S, T> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default = "none")]
    spec: Option<S>,
    #[serde(default = "none")]
    status: Option<T>,
}

fn none<T>() -> Option<T> {
    None
}

/// Metadata, `spec` and `status`.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "Parts<S, T>", bound(deserialize = "S: Deserialize<'de>, T: Deserialize<'de>"))]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct Object<S, T> {
    /// Name, namespace and version only: what the client library asks for.
    pub meta: ObjectMeta,
    pub metadata: Metadata,
    pub spec: Option<S>,
    pub status: Option<T>,
}

impl<S, T> From<Parts<S, T>> for Object<S, T> {
    fn from(parts: Parts<S, T>) -> Self {
        let meta = parts.metadata.identity();
        Self { meta, metadata: parts.metadata, spec: parts.spec, status: parts.status }
    }
}

resource_told_at_run_time!([S: 'static, T: 'static] Object<S, T>);

impl Decoded for Raw {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn into_change(self, kind: Kind) -> Change {
        Raw::into_change(self, kind)
    }
}

impl Decoded for Whole {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn into_change(self, kind: Kind) -> Change {
        let identity = project::Identity::of(&self.metadata);
        identity.change(kind, custom::project(kind, self))
    }
}

impl Decoded for TektonObject {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn into_change(self, kind: Kind) -> Change {
        let identity = project::Identity::of(&self.metadata);
        identity.change(kind, tekton::project(kind, self))
    }
}
