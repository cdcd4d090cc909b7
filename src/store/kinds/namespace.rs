//! Namespaces: the labels that admission reads, who of one is in quarantine, and whether it is going.

use std::collections::BTreeMap;

use super::{Kind, What};
use crate::domain::keys;
use crate::domain::quarantine::Quarantine;
use crate::store::decode::wire::Raw;
use crate::store::kind::{page, whole};
use crate::store::{Decode, Descriptor, Selection, UsedBy};

/// Namespaces.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    namespaced: false,
    slim: whole,
    selections: &[Selection::all(page::SMALL, UsedBy::Every)],
    ..Descriptor::built_in("", "namespaces", "Namespace", Decode::Common(project))
};

/// Labels of a namespace that admission and the catalogue read.
const NAMESPACE_LABELS: [&str; 5] = [
    keys::LABEL_NAMESPACE_ENABLED,
    keys::LABEL_POD_SECURITY,
    keys::LABEL_USE_WAYPOINT,
    keys::LABEL_TRUST,
    keys::LABEL_CATALOGUE,
];

/// A namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NamespaceSeen {
    /// The labels that admission and the catalogue read.
    pub labels: BTreeMap<String, String>,
    /// Being deleted: nothing can be created in it.
    pub terminating: bool,
    /// Who of it is in quarantine; `None` where nobody is.
    pub quarantine: Option<Box<Quarantine>>,
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    let metadata = &raw.metadata;
    let labels = NAMESPACE_LABELS
        .iter()
        .filter_map(|key| metadata.label(key).map(|value| ((*key).to_owned(), value.to_owned())))
        .collect();
    let quarantine = metadata.annotation(keys::ANNOTATION_QUARANTINE).map(Quarantine::parse);
    let quarantine = quarantine.filter(|found| !found.is_empty()).map(Box::new);
    Some(What::Namespace(NamespaceSeen { labels, terminating: metadata.deletion_timestamp.is_some(), quarantine }))
}
