//! The AdmissionReview envelope, ours: the object stays raw, the patch goes out as base64.
//!
//! In: the body of a request, capped by the caller. Out: a borrowed [`Request`], and for the way back the bytes of
//! an AdmissionReview. Promises: the uid is echoed whenever it can be read; nothing here copies the object, and no
//! depth of nesting costs stack, since what is not needed is skipped without recursion.
//! kube's own types buffer the whole document and write the patch as a list of integers.

mod encoded;
mod parse;
mod quick;
mod response;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::api::json::Unwanted;
use crate::domain::keys;

pub use encoded::{Encoded, Encoder, Piece};
pub use parse::{BadReview, Fault, parse, uid};
pub use response::{Response, Status, encode, status_reason};

/// The version we ask for in our webhook configurations.
pub const API_VERSION: &str = "admission.k8s.io/v1";

/// What is done to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is new.
    Create,
    /// The object exists and changes.
    Update,
    /// The object goes away; `object` is null.
    Delete,
    /// A connection to a subresource.
    Connect,
}

/// Group, version and kind (or resource) of the reviewed object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct GroupVersionKind<'a> {
    /// API group, empty for core.
    #[serde(borrow, default)]
    pub group: Cow<'a, str>,
    /// API version.
    #[serde(borrow, default)]
    pub version: Cow<'a, str>,
    /// Kind.
    #[serde(borrow, default)]
    pub kind: Cow<'a, str>,
}

/// Which of our webhooks was called; set by the route, never by the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// A mutating webhook.
    #[default]
    Mutate,
    /// A validating webhook.
    Validate,
}

/// A piece of JSON as it was sent: its brackets match, the rest is for whoever reads it to find out.
#[derive(Debug, Clone, PartialEq)]
pub struct Raw<'a> {
    text: &'a str,
    pod: Option<PodTree<'a>>,
}

/// A Pod that is created, as it was read on the way through the envelope.
#[derive(Debug, Clone, PartialEq)]
pub struct PodTree<'a> {
    /// The tree, without [`POD_UNREAD`].
    pub tree: Value,
    /// The text of `metadata.managedFields`; `None` where there are none.
    pub managed_fields: Option<&'a str>,
}

impl<'a> Raw<'a> {
    /// The text.
    #[must_use]
    pub fn get(&self) -> &'a str {
        self.text
    }

    /// The Pod that is created, when it was read on the way through the envelope.
    #[must_use]
    pub fn pod(&self) -> Option<&PodTree<'a>> {
        self.pod.as_ref()
    }
}

impl<'a> From<&'a RawValue> for Raw<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self { text: raw.get(), pod: None }
    }
}

/// What the review of a Pod that is created has no use for, most of its bytes. Who set which field is of interest only
/// where a status annotation is there, or where variables are added; so that text is kept. A Pod with that annotation
/// has containers of ours, which are looked at as a whole; of others, only what may stand in our way.
pub const POD_UNREAD: &Unwanted = &Unwanted {
    members: &["status"],
    within: &[
        (
            "metadata",
            &Unwanted {
                members: &["managedFields"],
                kept: Some("managedFields"),
                within: &[("annotations", &Unwanted { mark: Some(keys::ANNOTATION_STATUS), ..Unwanted::NOTHING })],
                ..Unwanted::NOTHING
            },
        ),
        (
            "spec",
            &Unwanted {
                members: &["tolerations", "topologySpreadConstraints"],
                within: &[
                    ("containers", CONTAINER_UNREAD),
                    ("initContainers", CONTAINER_UNREAD),
                    ("affinity", AFFINITY_UNREAD),
                ],
                ..Unwanted::NOTHING
            },
        ),
    ],
    ..Unwanted::NOTHING
};

/// Of affinity, only what kind of node a Pod cannot do without.
const AFFINITY_UNREAD: &Unwanted = &Unwanted {
    members: &["podAffinity", "podAntiAffinity"],
    within: &[(
        "nodeAffinity",
        &Unwanted { members: &["preferredDuringSchedulingIgnoredDuringExecution"], ..Unwanted::NOTHING },
    )],
    ..Unwanted::NOTHING
};

/// Of the variables of a container, only those are read that may be set for it.
const CONTAINER_UNREAD: &Unwanted = &Unwanted {
    members: &[
        "image",
        "command",
        "args",
        "resources",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
    ],
    within: &[("env", &Unwanted { named: Some(&keys::AGENT_VARIABLES), ..Unwanted::NOTHING })],
    unless_marked: true,
    ..Unwanted::NOTHING
};

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&'de RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// One admission request, borrowed from the body.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request<'a> {
    /// Which webhook asks.
    #[serde(skip)]
    pub phase: Phase,
    /// Identifies the review; echoed in the answer.
    #[serde(borrow)]
    pub uid: Cow<'a, str>,
    /// Kind of `object`.
    #[serde(borrow, default)]
    pub kind: GroupVersionKind<'a>,
    /// Subresource, when the request is for one.
    #[serde(borrow, default, deserialize_with = "text")]
    pub sub_resource: Option<Cow<'a, str>>,
    /// Name, empty while the API server has still to generate it.
    #[serde(borrow, default, deserialize_with = "text")]
    pub name: Option<Cow<'a, str>>,
    /// Namespace; the object's own may be empty.
    #[serde(borrow, default, deserialize_with = "text")]
    pub namespace: Option<Cow<'a, str>>,
    /// What is done.
    pub operation: Operation,
    /// Nothing will be stored.
    #[serde(default)]
    pub dry_run: Option<bool>,
    /// The object as received; `None` for DELETE.
    #[serde(borrow, default)]
    pub object: Option<Raw<'a>>,
    /// The stored object, for UPDATE and DELETE.
    #[serde(borrow, default)]
    pub old_object: Option<Raw<'a>>,
}

impl Request<'_> {
    /// The namespace, empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("")
    }
}

/// An optional string that stays borrowed where it has no escapes (serde's derive copies it inside an `Option`).
fn text<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'a>>::deserialize(deserializer)?.map(|text| text.0))
}
