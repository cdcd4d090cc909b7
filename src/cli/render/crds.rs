//! The CustomResourceDefinitions, one file each, ahead of everything that speaks of their kinds.

use super::{Manifest, metadata, object};
use crate::store::Kind;

/// The definitions, in the order in which they are installed.
#[must_use]
pub fn parts() -> Vec<Manifest> {
    Kind::definitions()
        .map(|mut definition| {
            definition.metadata.labels = metadata("", None).labels;
            let name = definition.metadata.name.as_deref().unwrap_or_default();
            Manifest { path: format!("crds/{name}.yaml").into(), objects: vec![object(&definition)] }
        })
        .collect()
}
