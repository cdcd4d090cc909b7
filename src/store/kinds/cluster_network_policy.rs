//! ClusterNetworkPolicies of `policy.networking.k8s.io`, where their definition is installed: whose they are, and of ours their `spec`.

use std::sync::Arc;

use serde_json::Value;

use super::What;
use crate::domain::keys;
use crate::store::decode::identity::owner;
use crate::store::decode::{Small, Whole};
use crate::store::kind::page;
use crate::store::{Decode, Descriptor, OwnerReference, Selection, UsedBy};

/// ClusterNetworkPolicies. Those of others are kept by their names, since one may have ours.
pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    namespaced: false,
    words: &["clusternetworkpolicy", "clusternetworkpolicies", "cnp"],
    selections: &[Selection::all(page::LARGE, UsedBy::Controllers)],
    ..Descriptor::optional(
        ("policy.networking.k8s.io", "v1alpha2"),
        "clusternetworkpolicies",
        "ClusterNetworkPolicy",
        Decode::Whole(|object| Some(What::ClusterNetworkPolicy(Box::new(policy(object))))),
    )
};

/// A ClusterNetworkPolicy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClusterNetworkPolicySeen {
    /// Carries the marks of what we make.
    pub ours: bool,
    /// Being deleted.
    pub deleting: bool,
    /// The owner that controls it.
    pub controller: Option<Arc<OwnerReference>>,
    /// `spec`, as stored, of one of ours.
    pub spec: Option<Arc<Value>>,
}

fn policy(object: Whole) -> ClusterNetworkPolicySeen {
    let metadata = &object.metadata;
    let is_marked = |key: &str| metadata.label(key) == Some(keys::MANAGED_BY_DRAWBRIDGE);
    let ours = is_marked(keys::LABEL_POLICY_MANAGED_BY) && is_marked(keys::LABEL_APP_MANAGED_BY);
    ClusterNetworkPolicySeen {
        ours,
        deleting: metadata.deletion_timestamp.is_some(),
        controller: owner(metadata),
        spec: object.spec.filter(|_| ours).and_then(Small::into_value).map(Arc::new),
    }
}
