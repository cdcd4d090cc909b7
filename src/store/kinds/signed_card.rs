//! ConfigMaps that may hold a signed card, of which nothing but their metadata is ever listed or watched.
//!
//! In: metadata. Out: that one of that name exists, in which version. Promise: a ConfigMap of any other name is not kept, and of none the content:
//! whoever needs that reads it, and again when the version is another; one for which a namespace has no room is read by nobody.

use super::{Kind, What};
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::Raw;
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Key, Over, Selection, UsedBy};

/// ConfigMaps whose name says that they hold a signed card. The signer of the Go operator replaces the object, so no label can be relied on.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection {
        metadata: true,
        keep: |key, _| is_signed_card(key),
        ..Selection::all(page::MARKS, UsedBy::Controllers)
    }],
    bounded: true,
    full: Some("SignedCard"),
    ..Descriptor::built_in("", "configmaps", "ConfigMap", Decode::Common(project))
};

/// That a signed card is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCardSeen {
    /// `metadata.resourceVersion`: what was read in another one says nothing.
    pub version: Box<str>,
    /// Made ahead of the signature by us ([`keys::LABEL_APP_MANAGED_BY`]).
    pub ours: bool,
    /// It was made ahead of the signature, and holds none yet.
    pub awaits: bool,
    /// The owner that controls it, by its uid.
    pub owner: Option<Box<str>>,
    /// A bound that it is over: what it holds is not read.
    pub over: Option<Over>,
}

impl SignedCardSeen {
    /// The same of which nothing is known but that it is there and whose it is, because it is `over` a bound.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { version: Box::default(), over: Some(over), ..self.clone() }
    }
}

pub(super) fn is_signed_card(key: &Key) -> bool {
    key.name.strip_suffix(keys::SUFFIX_SIGNED_CARD).is_some_and(|workload| !workload.is_empty())
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    let metadata = &raw.metadata;
    let owner = owner(metadata).map(|owner| owner.uid.as_str().into());
    Some(What::SignedCard(SignedCardSeen {
        ours: metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE),
        awaits: metadata.annotation(keys::ANNOTATION_AWAITS_SIGNATURE).is_some(),
        owner,
        over: None,
        version: raw.metadata.resource_version.unwrap_or_default().into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::decode::change_of;

    #[test]
    fn only_names_of_signed_cards_are_kept_and_no_content() {
        for (name, kept) in [
            ("w-card-signed", true),
            ("a-card-signed-card-signed", true),
            ("-card-signed", false),
            ("w-card-signed-2", false),
            ("w-card-unsigned", false),
            ("authbridge-config", false),
        ] {
            assert_eq!(is_signed_card(&Key::new("n", name)), kept, "{name}");
        }
        let text = r#"{"metadata": {"name": "w-card-signed", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "annotations": {"a": "b"}}, "data": {"agent-card.json": "{}"}}"#;
        let change = change_of(Kind::SignedCard, text).unwrap();
        let seen = SignedCardSeen { version: "7".into(), ours: false, awaits: false, owner: None, over: None };
        assert_eq!(change.now.unwrap().what, What::SignedCard(seen));
    }
}
