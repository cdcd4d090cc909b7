//! Look-ups about AgentCards.

use super::Store;
use super::builds::{Ref, of};
use crate::store::{AgentCardSeen, CardTarget, Kind, RightSeen, SignedCardSeen, What};

/// An AgentCard.
pub type CardRef<'a> = Ref<'a, AgentCardSeen>;

fn card(what: &What) -> Option<&AgentCardSeen> {
    match what {
        What::AgentCard(seen) => Some(seen),
        _ => None,
    }
}

fn signed(what: &What) -> Option<&SignedCardSeen> {
    match what {
        What::SignedCard(seen) => Some(seen),
        _ => None,
    }
}

fn right(what: &What) -> Option<&RightSeen> {
    match what {
        What::Right(seen) => Some(seen),
        _ => None,
    }
}

impl Store {
    /// The Role or RoleBinding by which Pods publish the signed card of that name.
    #[must_use]
    pub fn signing_right(&self, kind: Kind, namespace: &str, name: &str) -> Option<Ref<'_, RightSeen>> {
        of(self.object(kind, namespace, name)?, right)
    }

    /// The ConfigMaps with signed cards that a namespace has.
    pub fn signed_cards(&self, namespace: &str) -> impl Iterator<Item = Ref<'_, SignedCardSeen>> {
        self.of_kind(Kind::SignedCard, namespace).filter_map(|named| of(named, signed))
    }

    /// The ConfigMap with a signed card of that name.
    #[must_use]
    pub fn signed_card(&self, namespace: &str, name: &str) -> Option<Ref<'_, SignedCardSeen>> {
        of(self.object(Kind::SignedCard, namespace, name)?, signed)
    }

    /// One AgentCard.
    #[must_use]
    pub fn agent_card(&self, namespace: &str, name: &str) -> Option<CardRef<'_>> {
        of(self.object(Kind::AgentCard, namespace, name)?, card)
    }

    /// The AgentCards of a namespace.
    pub fn agent_cards(&self, namespace: &str) -> impl Iterator<Item = CardRef<'_>> {
        self.of_kind(Kind::AgentCard, namespace).filter_map(|named| of(named, card))
    }

    /// The AgentCards that point at that workload, whether or not it exists, by name.
    pub fn agent_cards_of<'a>(&'a self, namespace: &str, target: &CardTarget) -> impl Iterator<Item = CardRef<'a>> {
        let space = self.namespaces.get(namespace);
        let names = space.into_iter().flat_map(|space| space.cards_of(target));
        names.filter_map(move |name| of(space?.object(Kind::AgentCard, name)?, card))
    }
}
