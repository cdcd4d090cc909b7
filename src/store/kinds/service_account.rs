//! ServiceAccounts: whose they are, and what may be done with them.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::claim::ClaimSeen;
use super::{Kind, Slim, What};
use crate::domain::keys;
use crate::store::decode::wire::{Metadata, Raw};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, Key, Observed, Over, OwnerReference, Selection, UsedBy};

/// ServiceAccounts.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    selections: &[Selection::all(page::SMALL, UsedBy::Every)],
    slim,
    bounded: true,
    ..Descriptor::built_in("", "serviceaccounts", "ServiceAccount", Decode::Common(project))
};

/// Bytes of owners that are kept of one, each as [`OWNER`] and its texts: those of near a thousand workloads.
const OWNERS: usize = 256 * 1024;
/// Bytes that an owner takes besides its texts.
const OWNER: usize = 128;

/// A ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServiceAccountSeen {
    /// Carries `kagenti.io/managed-by: webhook`. One with more owners than are kept, or for which there is no room, counts as somebody else's, for
    /// nobody writes a list that is not known.
    pub ours: bool,
    /// `automountServiceAccountToken`.
    pub automount: Option<bool>,
    /// Owners; kept only of ours and of those that an Agent owns.
    pub owners: Vec<OwnerReference>,
    /// Carries `agent.kagenti.dev/build-account: "true"`: builds may use it.
    pub for_builds: bool,
    /// Of those that parametrise policies ([`keys::PARAMETERS`]), in the operator's namespace: what is written on them for that.
    pub parameters: Option<Box<BTreeMap<String, String>>>,
    /// Whose it is, when an Agent is among the owners.
    pub claim: Option<Box<ClaimSeen>>,
    /// There is no room for its owners, and for what was applied to it, beside what is written on others.
    pub over: Option<Over>,
}

impl ServiceAccountSeen {
    /// A parameter of a policy, as it is written.
    #[must_use]
    pub fn parameter(&self, annotation: &str) -> Option<&str> {
        self.parameters.as_deref()?.get(annotation).map(String::as_str)
    }

    /// What is kept of the ServiceAccount `key`, where that is not all of it: whoever gives one of another namespace the name of a parameter may
    /// write as much on it as the API server takes, and no policy reads it.
    pub(super) fn kept(&self, own: &str, key: &Key) -> Option<Self> {
        let foreign = self.parameters.is_some() && *key.namespace != *own;
        foreign.then(|| Self { parameters: None, ..self.clone() })
    }

    /// The same as somebody else's, because there is no room for what says whose it is.
    #[must_use]
    pub(super) fn slim(&self, over: Over) -> Self {
        Self { ours: false, owners: Vec::new(), claim: None, over: Some(over), ..self.clone() }
    }

    /// Pods may be given it without being asked: made for injected Pods, or controlled by an Agent.
    #[must_use]
    pub fn is_dedicated(&self) -> bool {
        let controller = self.claim.as_ref().and_then(|claim| claim.controller.as_ref());
        self.ours || controller.is_some_and(|owner| owner.is_agent())
    }
}

/// A ServiceAccount that Pods may be given without being asked: the same for all of them.
static DEDICATED: LazyLock<Arc<Observed>> =
    LazyLock::new(|| Arc::new(Observed::nobodys(What::Slim(Slim::DedicatedAccount))));

/// Admission reads whether Pods may be given it.
fn slim(_: &str, now: &Arc<Observed>) -> Arc<Observed> {
    match &now.what {
        What::ServiceAccount(seen) if seen.is_dedicated() => DEDICATED.clone(),
        What::ServiceAccount(_) => Observed::known(),
        _ => now.clone(),
    }
}

fn project(_: Kind, raw: Raw) -> Option<What> {
    let is_known = owners_of(&raw.metadata) <= OWNERS;
    let ours = is_known && raw.metadata.label(keys::LABEL_MANAGED_BY) == Some(keys::MANAGED_BY_WEBHOOK);
    let of_agent = is_known && raw.metadata.has_agent();
    let claim = of_agent.then(|| Box::new(ClaimSeen::of(&raw.metadata)));
    let for_builds = raw.metadata.label(keys::LABEL_BUILD_ACCOUNT) == Some("true");
    let is_parameter = raw.metadata.name.as_deref().is_some_and(|name| keys::PARAMETERS.contains(&name));
    let parameters = raw.metadata.annotations.as_ref().filter(|_| is_parameter).map(|annotations| {
        let of = |key: &str| Some((key.to_owned(), annotations.get(key)?.clone()));
        Box::new(keys::ANNOTATIONS_OF_PARAMETERS.into_iter().filter_map(of).collect())
    });
    let owners = if ours || of_agent { raw.metadata.owner_references.unwrap_or_default() } else { Vec::new() };
    let automount = raw.automount_service_account_token;
    Some(What::ServiceAccount(ServiceAccountSeen {
        ours,
        automount,
        owners,
        for_builds,
        parameters,
        claim,
        over: None,
    }))
}

/// Bytes of its owners.
fn owners_of(metadata: &Metadata) -> usize {
    let owners = metadata.owner_references.iter().flatten();
    let owners = owners.map(|owner| {
        let texts = [&owner.api_version, &owner.kind, &owner.name, &owner.uid];
        OWNER + texts.into_iter().map(String::len).sum::<usize>()
    });
    owners.sum()
}
