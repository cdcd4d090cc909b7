//! The CustomResourceDefinitions, one file each, ahead of everything that speaks of their kinds.

use serde_json::Value;

use super::kinds::Kinds;
use super::{Manifest, metadata, object};
use crate::store::{Kind, KindOrigin};

/// The definitions of an installation, in the order in which they are installed.
#[must_use]
pub fn parts(kinds: Kinds) -> Vec<Manifest> {
    Kind::definitions(KindOrigin::Ours)
        .filter(|definition| kinds.serves(&definition.spec.group))
        .map(|mut definition| {
            definition.metadata.labels = metadata("", None).labels;
            let name = definition.metadata.name.as_deref().unwrap_or_default();
            Manifest { path: format!("crds/{name}.yaml").into(), objects: vec![object(&definition)] }
        })
        .collect()
}

/// The definitions of the compatible group.
#[must_use]
pub fn compat() -> Vec<Value> {
    let labelled = Kind::definitions(KindOrigin::Compat).map(|mut definition| {
        definition.metadata.labels = metadata("", None).labels;
        object(&definition)
    });
    labelled.collect()
}
