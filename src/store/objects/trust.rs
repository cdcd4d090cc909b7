//! Look-ups about NetworkPolicies and where the API server is.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use super::builds::{Ref, of};
use super::{PodRef, Store};
use crate::store::kinds::endpoint_slice;
use crate::store::{ClusterNetworkPolicySeen, Kind, NetworkPolicySeen, What};

/// A NetworkPolicy.
pub type PolicyRef<'a> = Ref<'a, NetworkPolicySeen>;

/// A ClusterNetworkPolicy.
pub type ClusterPolicyRef<'a> = Ref<'a, ClusterNetworkPolicySeen>;

fn policy(what: &What) -> Option<&NetworkPolicySeen> {
    match what {
        What::NetworkPolicy(seen) => Some(seen),
        _ => None,
    }
}

impl Store {
    /// One NetworkPolicy.
    #[must_use]
    pub fn network_policy(&self, namespace: &str, name: &str) -> Option<PolicyRef<'_>> {
        of(self.object(Kind::NetworkPolicy, namespace, name)?, policy)
    }

    /// One ClusterNetworkPolicy.
    #[must_use]
    pub fn cluster_policy(&self, name: &str) -> Option<ClusterPolicyRef<'_>> {
        of(self.object(Kind::ClusterNetworkPolicy, "", name)?, |what| match what {
            What::ClusterNetworkPolicy(seen) => Some(&**seen),
            _ => None,
        })
    }

    /// The NetworkPolicies of a namespace.
    pub fn network_policies(&self, namespace: &str) -> impl Iterator<Item = PolicyRef<'_>> {
        self.of_kind(Kind::NetworkPolicy, namespace).filter_map(|named| of(named, policy))
    }

    /// The Pods of a namespace that are kept: agents and tools.
    pub fn agent_pods(&self, namespace: &str) -> impl Iterator<Item = PodRef<'_>> {
        let pods = self.of_kind(Kind::Pod, namespace);
        pods.filter_map(|(name, observed)| match &observed.what {
            What::Pod(seen) => Some(PodRef { name, uid: &observed.uid, seen }),
            _ => None,
        })
    }

    /// When an object was first seen.
    #[must_use]
    pub fn arrived(&self, kind: Kind, namespace: &str, name: &str) -> Option<Duration> {
        Some(self.entry(kind, namespace, name)?.arrived)
    }

    /// Ports and addresses of the API server: at most [`endpoint_slice::PLACES`], the lowest ports first.
    #[must_use]
    pub fn api_server(&self) -> BTreeSet<(u16, IpAddr)> {
        let slice = self.object(Kind::EndpointSlice, endpoint_slice::NAMESPACE, endpoint_slice::NAME);
        let seen = slice.and_then(|(_, observed)| match &observed.what {
            What::EndpointSlice(seen) => Some(seen),
            _ => None,
        });
        let places = seen.into_iter().flat_map(|slice| {
            slice.ports.iter().flat_map(|port| slice.addresses.iter().map(|address| (*port, *address)))
        });
        let places: BTreeSet<_> = places.collect();
        places.into_iter().take(endpoint_slice::PLACES).collect()
    }
}
