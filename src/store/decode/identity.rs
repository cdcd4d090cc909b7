//! Which object something is that was decoded, at which version, and whose.

use std::sync::Arc;

use super::wire::Metadata;
use crate::store::{Change, Key, Kind, Observed, OwnerReference, Via, What};

/// Where an object lives, which one it is and at which version.
pub(super) struct Identity {
    key: Key,
    uid: Arc<str>,
    version: u64,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            key: metadata.key(),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version: metadata.version(),
        }
    }

    /// The object as a change; without anything that is kept it counts as gone.
    pub(super) fn change(self, kind: Kind, what: Option<What>) -> Change {
        let Self { key, uid, version } = self;
        let now = what.map(|what| Arc::new(Observed { uid, version, what }));
        Change { kind, key, version, via: Via::Answer, now }
    }
}

impl Metadata {
    /// Where the object lives.
    #[must_use]
    pub fn key(&self) -> Key {
        let part = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Key { namespace: part(&self.namespace), name: part(&self.name) }
    }

    /// Its resourceVersion as a number, 0 when it is not one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// Most bytes of an owner's apiVersion (a group of 253, a version of 63), kind, name and uid.
const OWNER: [usize; 4] = [317, 63, 253, 128];

/// The owner that controls an object. The API server takes references of any length: one that is longer than what it names can be names nothing,
/// and is not kept.
pub(in crate::store) fn owner(metadata: &Metadata) -> Option<Arc<OwnerReference>> {
    let mut owners = metadata.owner_references.iter().flatten();
    let can_be = |owner: &&OwnerReference| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        texts.into_iter().zip(OWNER).all(|(text, most)| text.len() <= most)
    };
    owners.find(|owner| owner.controller == Some(true)).filter(can_be).cloned().map(Arc::new)
}
