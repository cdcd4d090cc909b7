//! Whose an object is that an Agent or a build made; all that is kept of PersistentVolumeClaims.

use std::sync::Arc;

use super::{Kind, What};
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::{Metadata, Raw};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, OwnerReference, Selection, UsedBy};

/// PersistentVolumeClaims, of builds.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::labelled(keys::LABEL_AGENT_BUILD, page::LARGE, UsedBy::Controllers)],
    ..Descriptor::built_in("", "persistentvolumeclaims", "PersistentVolumeClaim", Decode::Common(project))
};

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

fn project(_: Kind, raw: Raw) -> Option<What> {
    Some(What::Claim(ClaimSeen::of(&raw.metadata)))
}
