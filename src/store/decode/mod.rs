//! Watched objects in the shapes in which they are decoded: one per family of kinds.
//!
//! In: JSON as the API server sends it. Out: a [`Change`]. [`Raw`] serves what Kubernetes itself defines: only members
//! that we read, whatever the kind. [`Whole`] serves objects whose `spec` and `status` we act on as they are, up to more than is kept of any: our own
//! custom resources. [`Bounded`] serves what Kubernetes itself defines, people write, and is acted on as it is where it is
//! small. [`TektonObject`] serves runs, which are large and of which little is read. Promise: the shape is a
//! matter of the kind alone ([`Kind::shape`]), and how deep an object is read one of its text alone ([`nesting`]), so that every reader decodes alike.

use std::fmt::Debug;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{ApiResource, DynamicResourceScope, Resource};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

pub mod fields;
pub mod identity;
mod lenient;
pub mod nesting;
pub mod pool;
mod small;
mod transcript;
pub mod variables;
pub mod wire;

use identity::Identity;
pub use lenient::Members;
pub(in crate::store) use lenient::{lenient, lenient_list};
pub use small::{Small, SmallMembers};
pub use wire::Raw;
use wire::{Metadata, resource_told_at_run_time};

use super::kinds::tekton;
use super::{Change, Decode, Kind};
use crate::domain::bounds::LARGEST_KAOS;

/// How objects of a kind are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// As [`Raw`].
    Common,
    /// As [`Whole`].
    Whole,
    /// As [`Bounded`].
    Bounded,
    /// As [`TektonObject`].
    Tekton,
}

impl Kind {
    /// How objects of the kind are decoded.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self.descriptor().decode {
            Decode::Common(_) | Decode::Written => Shape::Common,
            Decode::Whole(_) => Shape::Whole,
            Decode::Bounded(_) => Shape::Bounded,
            Decode::Tekton(_) => Shape::Tekton,
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
        Shape::Common => nesting::read::<Raw>(text)?.into_change(kind),
        Shape::Whole => nesting::read::<Whole>(text)?.into_change(kind),
        Shape::Bounded => nesting::read::<Bounded>(text)?.into_change(kind),
        Shape::Tekton => nesting::read::<TektonObject>(text)?.into_change(kind),
    })
}

/// An object of ours, with `spec` and `status` as they are, but for what is larger than what is read of any.
pub type Whole = Object<Small<{ LARGEST_KAOS }>, SmallMembers>;
/// An object of which `spec` is read where it is small.
pub type Bounded = Object<Small, IgnoredAny>;
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

/// Makes a type one of the shapes: its kinds' descriptors say what is kept of it.
macro_rules! decoded {
    ($type:ty, $kind:ident, $decode:pat => $kept:expr) => {
        impl Decoded for $type {
            fn metadata(&self) -> &Metadata {
                &self.metadata
            }

            fn into_change(self, $kind: Kind) -> Change {
                let identity = Identity::of(&self.metadata);
                let kept = match $kind.descriptor().decode {
                    $decode => $kept(self),
                    _ => None,
                };
                identity.change($kind, kept)
            }
        }
    };
}

decoded!(Raw, kind, Decode::Common(project) => |raw| project(kind, raw));
decoded!(Whole, kind, Decode::Whole(project) => project);
decoded!(Bounded, kind, Decode::Bounded(project) => project);
decoded!(TektonObject, kind, Decode::Tekton(project) => project);
