//! AgentCards as admission reads them: which workload each is of, and whether a person made it.
//!
//! In: what is kept of a card, or its JSON. Out: an [`AgentCardInput`], and [`ManualCards`] of a namespace. Promise: a card that a
//! controller made never stands in the way of a person's, and one that is being deleted in nobody's.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::crypto::TrustDomain;
use crate::domain::keys;
use crate::store::kinds::agent_card::is_automatic;
use crate::store::{AgentCardSeen, CardTarget};

/// One AgentCard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentCardInput {
    /// The workload that it is of.
    pub target: Option<CardTarget>,
    /// A controller made it.
    pub automatic: bool,
    /// It is being deleted.
    pub deleting: bool,
}

impl AgentCardInput {
    /// What is kept of it.
    #[must_use]
    pub fn of_seen(seen: &AgentCardSeen) -> Self {
        Self { target: seen.spec.target.clone(), automatic: seen.is_automatic(), deleting: seen.deleting }
    }

    /// The same, of its JSON.
    #[must_use]
    pub fn of_object(object: &Value) -> Self {
        let metadata = object.get("metadata");
        let label = metadata.and_then(|metadata| metadata.get("labels")?.get(keys::LABEL_APP_MANAGED_BY)?.as_str());
        let deleting = metadata.and_then(|metadata| metadata.get("deletionTimestamp"));
        Self {
            target: object.get("spec").and_then(CardTarget::of_spec),
            automatic: label.is_some_and(is_automatic),
            deleting: deleting.is_some_and(|time| !time.is_null()),
        }
    }
}

/// Why that text is no trust domain, in words; `None` of one that is.
#[must_use]
pub fn trust_domain_fault(text: &str) -> Option<String> {
    TrustDomain::read(text).err().map(|fault| fault.to_string())
}

/// The cards of a namespace that persons made, by what they are of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManualCards(BTreeMap<CardTarget, BTreeSet<Arc<str>>>);

impl ManualCards {
    /// Of these, by name.
    #[must_use]
    pub fn of(cards: &BTreeMap<Arc<str>, AgentCardInput>) -> Self {
        let mut manual = Self::default();
        for (name, card) in cards.iter().filter(|(_, card)| !card.automatic && !card.deleting) {
            if let Some(target) = &card.target {
                manual.0.entry(target.clone()).or_default().insert(Arc::clone(name));
            }
        }
        manual
    }

    /// Another one than `but` that is of that workload.
    #[must_use]
    pub fn another(&self, target: &CardTarget, but: &str) -> Option<&str> {
        self.0.get(target)?.iter().map(|name| &**name).find(|name| *name != but)
    }
}
