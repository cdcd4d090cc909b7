//! What is kept of an AgentCard: its marks, `spec`, and `status` without the card itself.
//!
//! Promise: an object is a few hundred bytes here and never more than [`LARGEST`], however large the card is that an agent serves, and whatever
//! people write beside it. What is over a bound is left out and [`AgentCardSeen::over`] says so: nobody writes a list that is not known.

use std::sync::Arc;

use serde_json::{Value, json};

use super::custom::{few, small_part};
use super::{Slim, What};
use crate::api::agent_kagenti_dev::{self as api, agent_card};
use crate::domain::bounds::Over;
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;
use crate::store::decode::identity::owner;
use crate::store::decode::wire::Metadata;
use crate::store::decode::{Small, SmallMembers, Whole};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Observed, OwnerReference, Selection, UsedBy};

/// AgentCards.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    words: &["agentcard", "agentcards", "card", "cards"],
    selections: &[Selection::all(page::RUNS, UsedBy::Every)],
    slim,
    ..Descriptor::ours((api::GROUP, api::VERSION), "agentcards", "AgentCard", (Decode::Whole(project), agent_card::crd))
};

/// Bytes of text that are kept of the marks, and of the status, of one object.
pub const LARGEST: usize = 16 * 1024;

/// Bytes that are kept of one text of a spec: more than the definition lets anybody write.
const LONGEST: usize = 320;

/// An AgentCard.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentCardSeen {
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, RFC 3339: sorts by age.
    pub created: Box<str>,
    /// Being deleted.
    pub deleting: bool,
    /// `metadata.finalizers`, in order.
    pub finalizers: Box<[Box<str>]>,
    /// `metadata.ownerReferences`, in order.
    pub owners: Box<[OwnerReference]>,
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `app.kubernetes.io/managed-by`.
    pub managed_by: Option<Box<str>>,
    /// Annotation `agentcard.kagenti.dev/refresh`.
    pub refresh: Option<Box<str>>,
    /// A bound that it is over: its owners are empty here, whatever is written, and so are its finalizers unless it is being deleted and they are few;
    /// where there are too many cards it proves nothing.
    pub over: Option<Over>,
    /// `spec`.
    pub spec: CardSpec,
    /// `status` as stored, without `card`; an empty object when there is none, or more than anybody of ours writes.
    pub status: Arc<Value>,
}

/// `spec` of an AgentCard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardSpec {
    /// `syncPeriod`, as written.
    pub sync_period: Option<Box<str>>,
    /// `targetRef`, when it is whole.
    pub target: Option<CardTarget>,
    /// `identityBinding`, when it is there.
    pub identity_binding: Option<CardBinding>,
}

/// The workload behind a card, of any kind, in the card's namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct CardTarget {
    pub api_version: Box<str>,
    pub kind: Box<str>,
    pub name: Arc<str>,
}

/// What a card proves of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust<'a> {
    /// Nothing.
    None,
    /// Whether it proves anything cannot be said at present.
    Unknown,
    /// That its agent is who it says, where a Pod runs under this ServiceAccount.
    Account(&'a str),
}

/// `identityBinding` of a card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardBinding {
    /// `trustDomain`.
    pub trust_domain: Option<Box<str>>,
}

impl CardTarget {
    /// The target in that `spec`; `None` when it names nothing.
    #[must_use]
    pub fn of_spec(spec: &Value) -> Option<Self> {
        let reference = spec.get("targetRef")?;
        let part = |key: &str| text(reference, key).filter(|part| !part.is_empty() && part.len() <= LONGEST);
        Some(Self { api_version: part("apiVersion")?.into(), kind: part("kind")?.into(), name: part("name")?.into() })
    }

    /// A workload of a kind that we know.
    #[must_use]
    pub fn of_workload(kind: WorkloadKind, name: &str) -> Self {
        Self { api_version: kind.api_version().into(), kind: kind.as_str().into(), name: name.into() }
    }

    /// The kind, when it is one that we know, at the version that we know.
    #[must_use]
    pub fn workload_kind(&self) -> Option<WorkloadKind> {
        let (group, _) = self.api_version.split_once('/').unwrap_or(("", &self.api_version));
        WorkloadKind::from_group_kind(group, &self.kind).filter(|kind| kind.api_version() == &*self.api_version)
    }
}

impl AgentCardSeen {
    /// Made by a controller, ours or the Go operator's: a card that a person makes for the same workload takes its place.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        self.managed_by.as_deref().is_some_and(is_automatic)
    }

    /// Carries that finalizer.
    #[must_use]
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|known| &**known == name)
    }

    /// What it proves of the workload of that uid: only what was written under our rules about the present
    /// object and that very workload counts.
    #[must_use]
    pub fn trust(&self, uid: &str) -> Trust<'_> {
        if self.is_one_too_many() || text(&self.status, "targetUID") != Some(uid) {
            return Trust::None;
        }
        vouched(&self.status, self.generation)
    }

    /// There is no room for it beside the other cards: nobody is asked for it, and what it proved counts no more.
    #[must_use]
    pub fn is_one_too_many(&self) -> bool {
        matches!(self.over, Some(Over::Count | Over::Total))
    }

    /// The same as one for which there is no room: what it is of is left, and of its status what is small.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self {
            over: Some(over),
            finalizers: left(&self.finalizers, self.deleting),
            owners: Box::default(),
            controller: None,
            refresh: None,
            spec: CardSpec { target: self.spec.target.clone(), ..CardSpec::default() },
            status: Arc::new(small_part(&self.status)),
            ..self.clone()
        }
    }

    /// Nothing could be said of its signature, because no trust bundle was ever readable.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        let conditions = self.status.get("conditions").and_then(Value::as_array);
        let mut verified =
            conditions.into_iter().flatten().filter(|one| one.get("type").is_some_and(|kind| kind == "Verified"));
        verified.any(|one| one.get("reason").is_some_and(|reason| reason == "TrustBundleUnavailable"))
    }

    /// One of its owners has that uid.
    #[must_use]
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid == uid)
    }
}

/// Whether that value of `app.kubernetes.io/managed-by` is a controller's, ours or the Go operator's.
#[must_use]
pub fn is_automatic(managed_by: &str) -> bool {
    [keys::MANAGED_BY_DRAWBRIDGE, keys::MANAGED_BY_UPSTREAM].contains(&managed_by)
}

/// What the status of a card of that generation vouches for, of whatever workload it speaks.
#[must_use]
pub fn vouched(status: &Value, generation: i64) -> Trust<'_> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let verified = conditions.into_iter().flatten().find(|one| one.get("type").is_some_and(|kind| kind == "Verified"));
    let Some(verified) = verified else { return Trust::None };
    match (verified.get("status").and_then(Value::as_str), text(status, "trustedAccount")) {
        (Some("True"), Some(account))
            if verified.get("observedGeneration").and_then(Value::as_i64) == Some(generation) =>
        {
            Trust::Account(account)
        }
        // No bundle could ever be read: what was concluded before stays.
        (Some("Unknown"), _) => Trust::Unknown,
        _ => Trust::None,
    }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn short(text: &str) -> Box<str> {
    text[..text.floor_char_boundary(LONGEST)].into()
}

fn project(object: Whole) -> Option<What> {
    let Whole { mut metadata, spec, status, .. } = object;
    let over = (marks(&metadata) > LARGEST).then_some(Over::Size);
    let deleting = metadata.deletion_timestamp.is_some();
    let finalizers: Box<[Box<str>]> =
        metadata.finalizers.take().into_iter().flatten().map(String::into_boxed_str).collect();
    Some(What::AgentCard(Box::new(AgentCardSeen {
        generation: metadata.generation.unwrap_or_default(),
        deleting,
        controller: owner(&metadata).filter(|_| over.is_none()),
        managed_by: metadata.label(keys::LABEL_APP_MANAGED_BY).map(Into::into),
        refresh: metadata.annotation(keys::ANNOTATION_CARD_REFRESH).map(short),
        finalizers: if over.is_none() { finalizers } else { left(&finalizers, deleting) },
        owners: metadata.owner_references.filter(|_| over.is_none()).unwrap_or_default().into(),
        created: metadata.creation_timestamp.unwrap_or_default().into(),
        over,
        spec: spec_of(&spec.and_then(Small::into_value).unwrap_or_default()),
        status: Arc::new(status_of(status)),
    })))
}

/// Admission reads of which workload a card is that a person made. Those that controllers make, which are many, stand in nobody's way,
/// nor does one that is being deleted.
fn slim(_: &str, now: &Arc<Observed>) -> Arc<Observed> {
    let What::AgentCard(seen) = &now.what else { return now.clone() };
    match &seen.spec.target {
        Some(target) if !seen.is_automatic() && !seen.deleting => {
            Arc::new(Observed::nobodys(What::Slim(Slim::Card(target.clone()))))
        }
        _ => Observed::known(),
    }
}

/// The finalizers that are kept of one that is over a bound: while it is being deleted, so that ours come off.
fn left(finalizers: &[Box<str>], deleting: bool) -> Box<[Box<str>]> {
    if deleting { few(finalizers) } else { Box::default() }
}

/// Bytes of the lists that controllers write.
fn marks(metadata: &Metadata) -> usize {
    let finalizers = metadata.finalizers.iter().flatten().map(String::len);
    let owners = metadata.owner_references.iter().flatten();
    let owners = owners.map(|owner| {
        [&owner.api_version, &owner.kind, &owner.name, &owner.uid].into_iter().map(String::len).sum::<usize>()
    });
    finalizers.chain(owners).sum()
}

fn spec_of(spec: &Value) -> CardSpec {
    let binding = spec.get("identityBinding").filter(|binding| binding.is_object());
    CardSpec {
        sync_period: text(spec, "syncPeriod").map(short),
        target: CardTarget::of_spec(spec),
        identity_binding: binding.map(|binding| CardBinding { trust_domain: text(binding, "trustDomain").map(short) }),
    }
}

fn status_of(status: Option<SmallMembers>) -> Value {
    let mut members = status.unwrap_or_default().into_members();
    members.remove("card");
    let status = Value::Object(members);
    if api::agent_card::is_within(&status, LARGEST) { status } else { json!({}) }
}

#[cfg(test)]
mod tests;
