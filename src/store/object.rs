//! One object at one version: where it lives, whose it is, and what is kept of it.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::kinds::What;
use crate::domain::keys;

/// Where an object lives. The namespace is empty for cluster-scoped kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the fields are what their names say")]
pub struct Key {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl Key {
    /// A key from its parts.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// One entry of `metadata.ownerReferences`, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields are those of the API")]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// An Agent of `agent.kagenti.dev`.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.group() == keys::GROUP_AGENT && self.kind == "Agent"
    }

    /// The field manager of the controller that makes what this owner controls, where the owner is an Agent of one of our groups.
    #[must_use]
    pub fn agent_manager(&self) -> Option<&'static str> {
        match (self.group(), &*self.kind) {
            (keys::GROUP_AGENT, "Agent") => Some(keys::MANAGER_AGENT),
            (keys::GROUP_BEEAI, "Agent") => Some(keys::MANAGER_BEEAI_AGENT),
            (keys::GROUP_BEEAI_COMPAT, "Agent") => Some(keys::MANAGER_BEEAI_COMPAT_AGENT),
            (keys::GROUP_KAOS, "Agent") => Some(keys::MANAGER_KAOS_AGENT),
            (keys::GROUP_KAOS, "ModelAPI") => Some(keys::MANAGER_MODEL_API),
            (keys::GROUP_KAOS, "MCPServer") => Some(keys::MANAGER_MCP_SERVER),
            _ => None,
        }
    }

    /// The API group, empty for core.
    #[must_use]
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// One object at one version.
#[derive(Debug, Clone, PartialEq)]
pub struct Observed {
    /// `metadata.uid`.
    pub uid: Arc<str>,
    /// `metadata.resourceVersion` as a number (0 when it is not one); later versions of an object are larger.
    pub version: u64,
    /// What is kept of it.
    pub what: What,
}

/// That an object is there: the same for all of them.
static KNOWN: LazyLock<Arc<Observed>> = LazyLock::new(|| Arc::new(Observed::nobodys(What::Known)));

impl Observed {
    /// An object of which it is known that it is there, and nothing else.
    #[must_use]
    pub fn known() -> Arc<Self> {
        KNOWN.clone()
    }

    /// What may be said of several objects: which of them it is does not count.
    pub(super) fn nobodys(what: What) -> Self {
        Self { uid: Arc::default(), version: 0, what }
    }

    /// Whether it is the same object, and the same is kept of it.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.what == other.what
    }

    /// What a store of the operator in namespace `own` keeps of the object `key`; `None` where that is all of it.
    pub(super) fn kept(&self, own: &str, key: &Key) -> Option<Self> {
        Some(Self { what: self.what.kept(own, key)?, uid: self.uid.clone(), version: self.version })
    }

    /// A Pod that waits behind our scheduling gate.
    #[must_use]
    pub fn is_gated(&self) -> bool {
        matches!(&self.what, What::Pod(seen) if seen.gated)
    }
}
