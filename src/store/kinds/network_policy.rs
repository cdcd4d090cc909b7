//! NetworkPolicies: whose they are, and their `spec` where it is small enough.
//!
//! Promise: what people write costs at most [`LARGEST`] bytes; a larger one, and one for which a namespace has no room, is known by its name and
//! whose it is, [`NetworkPolicySeen::spec`] is absent, and [`NetworkPolicySeen::over`] says why. One of ours that is larger, which somebody must have
//! written for us, is over no bound: what is over one is left as it is, and ours is put back.

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use super::claim::ClaimSeen;
use super::{Slim, What};
use crate::api::agent_kagenti_dev::agent_card::is_within;
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::{Bounded, Small};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Key, Observed, Over, OwnerReference, Selection, UsedBy};

/// NetworkPolicies. Whether a namespace has the one that cuts off agents, admission asks.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    words: &["networkpolicy", "networkpolicies", "netpol"],
    selections: &[
        Selection::named(keys::DEFAULT_DENY, page::SMALL, UsedBy::Every),
        Selection { keep: |key, _| !is_deny(key), ..Selection::all(page::LARGE, UsedBy::Controllers) },
    ],
    slim,
    bounded: true,
    ..Descriptor::built_in("networking.k8s.io", "networkpolicies", "NetworkPolicy", Decode::Bounded(project))
};

/// Bytes of text that are kept of one `spec`.
pub const LARGEST: usize = 16 * 1024;
/// Bytes that are kept of the annotation which says what declares an agent's rules.
const LARGEST_DECLARED: usize = 12 * 1024;

fn is_deny(key: &Key) -> bool {
    &*key.name == keys::DEFAULT_DENY
}

/// A NetworkPolicy.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPolicySeen {
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// Whose it is, where it may be that of a ModelAPI of KAOS, by its name.
    pub claim: Option<Box<ClaimSeen>>,
    /// Label `managed-by`: ours, or the Go operator's.
    pub managed_by: Option<Box<str>>,
    /// Label `app.kubernetes.io/managed-by`.
    pub app_managed_by: Option<Box<str>>,
    /// Label `kagenti.dev/agentcard`.
    pub card: Option<Box<str>>,
    /// Which declarations made its rules, as we write it: annotation `agent.kagenti.dev/declared` of ours.
    pub declared: Option<Box<str>>,
    /// Being deleted.
    pub deleting: bool,
    /// `spec`, as stored; `None` when it is larger than [`LARGEST`] or not read.
    pub spec: Option<Arc<Value>>,
    /// A bound that it is over: what it allows was not read.
    pub over: Option<Over>,
}

impl NetworkPolicySeen {
    /// Carries the marks of what we make.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let ours = Some(keys::MANAGED_BY_DRAWBRIDGE);
        self.managed_by.as_deref() == ours && self.app_managed_by.as_deref() == ours
    }

    /// The same of which nothing is known but whose it is, because it is `over` a bound.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { spec: None, declared: None, over: Some(over), ..self.clone() }
    }

    /// Carries the marks of what the Go operator makes for a card.
    #[must_use]
    pub fn is_upstreams(&self) -> bool {
        self.managed_by.as_deref() == Some(keys::MANAGED_BY_UPSTREAM) && self.card.is_some()
    }
}

/// The policy that cuts off agents: the same for all namespaces.
static CUTS_OFF: LazyLock<Arc<Observed>> = LazyLock::new(|| Arc::new(Observed::nobodys(What::Slim(Slim::CutsOff))));

/// Admission reads whether agents are cut off.
fn slim(name: &str, now: &Arc<Observed>) -> Arc<Observed> {
    match &now.what {
        What::NetworkPolicy(seen) if name == keys::DEFAULT_DENY && seen.is_ours() && !seen.deleting => CUTS_OFF.clone(),
        What::NetworkPolicy(_) => Observed::known(),
        _ => now.clone(),
    }
}

fn project(object: Bounded) -> Option<What> {
    let metadata = &object.metadata;
    let label = |key: &str| metadata.label(key).map(Into::into);
    let spec = object.spec.map_or(Some(Value::Null), Small::into_value).filter(|spec| is_within(spec, LARGEST));
    let is_marked = |key: &str| metadata.label(key) == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let ours = is_marked(keys::LABEL_POLICY_MANAGED_BY);
    let all_ours = ours && is_marked(keys::LABEL_APP_MANAGED_BY);
    let is_left = spec.is_none() && !all_ours;
    // What is over a bound is counted nowhere.
    let is_declared = |says: &&str| ours && !is_left && says.len() <= LARGEST_DECLARED;
    let declared = metadata.annotation(keys::ANNOTATION_DECLARED).filter(is_declared);
    let of_kaos = metadata.name.as_deref().is_some_and(|name| name.starts_with(keys::PREFIX_MODEL_API));
    Some(What::NetworkPolicy(Box::new(NetworkPolicySeen {
        controller: owner(metadata),
        claim: of_kaos.then(|| Box::new(ClaimSeen::of_few_fields(metadata))),
        managed_by: label(keys::LABEL_POLICY_MANAGED_BY),
        app_managed_by: label(keys::LABEL_APP_MANAGED_BY),
        card: label(keys::LABEL_POLICY_CARD),
        declared: declared.map(Into::into),
        deleting: metadata.deletion_timestamp.is_some(),
        spec: spec.map(Arc::new),
        over: is_left.then_some(Over::Size),
    })))
}
