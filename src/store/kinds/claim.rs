//! Whose an object is that an Agent or a build made; all that is kept of PersistentVolumeClaims.

use std::sync::Arc;

use super::{Kind, What};
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::{Metadata, Raw};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Over, OwnerReference, Selection, UsedBy, WrittenBefore};

/// PersistentVolumeClaims, of builds.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::labelled(keys::LABEL_AGENT_BUILD, page::LARGE, UsedBy::Controllers)],
    ..Descriptor::built_in("", "persistentvolumeclaims", "PersistentVolumeClaim", Decode::Common(project))
};

/// Bytes of a SHA-256 in hex.
const DIGEST: usize = 64;
/// Bytes of fields, as FieldsV1: four times the largest `spec` that is read, more than its text ever takes there.
const FIELDS: usize = 256 * 1024;
/// The same of an object of which we write always the same few labels, and lists that are owned as a whole: some hundred bytes.
const FEW_FIELDS: usize = 2 * 1024;

/// The digest that an annotation holds. The API server takes 256 KiB there: what is longer than a digest is none, and is not kept.
pub(super) fn digest<'m>(metadata: &'m Metadata, annotation: &str) -> Option<&'m str> {
    metadata.annotation(annotation).filter(|text| text.len() <= DIGEST)
}

/// What the Agent's controller has applied, as far as that can be: anybody may write under the name of its manager.
pub(super) fn applied_fields(metadata: &Metadata) -> Option<Arc<str>> {
    metadata.applied_by_agent().filter(|fields| fields.len() <= FIELDS)
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
    /// What was written on it before the Agent's controller had applied anything.
    pub written_before: Option<WrittenBefore>,
    /// Being deleted.
    pub deleting: bool,
    /// There is no room for [`Self::fields`] beside what is written on others: what was applied counts as lost.
    pub over: Option<Over>,
}

impl ClaimSeen {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            controller: owner(metadata),
            managed_by: metadata.label(keys::LABEL_APP_MANAGED_BY).map(Into::into),
            applied: digest(metadata, keys::ANNOTATION_CONTENT_DIGEST).map(Into::into),
            fields: applied_fields(metadata),
            written_before: metadata.written_before(),
            deleting: metadata.deletion_timestamp.is_some(),
            over: None,
        }
    }

    /// The same without what was applied, for which there is no room.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { fields: None, over: Some(over), ..self.clone() }
    }

    /// The same of what stands beside the workload of an object of KAOS, of which we write the same few fields whatever is asked for, and of what
    /// no Agent makes. With more than these somebody has written under the name of its manager: what was applied counts as lost, and the next
    /// apply takes the others off.
    pub(super) fn of_few_fields(metadata: &Metadata) -> Self {
        let claim = Self::of(metadata);
        Self { fields: claim.fields.filter(|fields| fields.len() <= FEW_FIELDS), ..claim }
    }

    /// Controlled by the object of that uid.
    #[must_use]
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|owner| owner.uid == uid)
    }
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    Some(What::Claim(ClaimSeen::of_few_fields(&raw.metadata)))
}
