//! What is judged: Namespaces, Pods and policies together.
//!
//! In: objects, in any order. Out: the same in an order of their own, and every policy found from the Pods it selects. A Namespace that nobody
//! gave has the one label that the API server gives each of them.

use std::collections::BTreeMap;

use crate::policy::network_policy::{ClusterPolicy, Direction, NetworkPolicy, Tier};
use crate::policy::pod::Pod;
use crate::policy::selector::Labels;

/// Label with which the API server names every Namespace.
pub const LABEL_NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Namespaces, Pods and policies.
#[derive(Debug, Clone, Default)]
pub struct World {
    namespaces: BTreeMap<String, Labels>,
    pods: Vec<Pod>,
    policies: Vec<NetworkPolicy>,
    /// Where the policies of each namespace stand in `policies`.
    of: BTreeMap<String, std::ops::Range<usize>>,
    /// ClusterNetworkPolicies, in the order in which they are asked.
    cluster: Vec<ClusterPolicy>,
}

impl World {
    /// A world of these. Of two policies of one name the later one counts, as if it had been applied after the other; Pods keep their order, by
    /// which they are asked for.
    #[must_use]
    pub fn new(
        namespaces: impl IntoIterator<Item = (String, Labels)>,
        pods: Vec<Pod>,
        policies: impl IntoIterator<Item = NetworkPolicy>,
    ) -> Self {
        let mut world = Self { pods, ..Self::default() };
        world.namespaces.extend(namespaces);
        for pod in &world.pods {
            world.namespaces.entry(pod.namespace.clone()).or_default();
        }
        for (name, labels) in &mut world.namespaces {
            labels.insert(LABEL_NAMESPACE_NAME.to_owned(), name.clone());
        }
        world.with_policies(policies)
    }

    /// The same Namespaces and Pods under other policies.
    #[must_use]
    pub fn with_policies(mut self, policies: impl IntoIterator<Item = NetworkPolicy>) -> Self {
        let by_name: BTreeMap<_, _> =
            policies.into_iter().map(|policy| ((policy.namespace.clone(), policy.name.clone()), policy)).collect();
        self.policies = by_name.into_values().collect();
        self.of.clear();
        for (at, policy) in self.policies.iter().enumerate() {
            self.of.entry(policy.namespace.clone()).or_insert(at..at).end = at + 1;
        }
        self
    }

    /// The same under these ClusterNetworkPolicies. Of two of one name the later one counts; two of one priority, which no cluster has in an order of its own, are asked by
    /// name.
    #[must_use]
    pub fn with_cluster(mut self, policies: impl IntoIterator<Item = ClusterPolicy>) -> Self {
        let by_name: BTreeMap<_, _> = policies.into_iter().map(|policy| (policy.name.clone(), policy)).collect();
        self.cluster = by_name.into_values().collect();
        self.cluster.sort_by_key(|policy| (policy.tier, policy.priority));
        self
    }

    /// The ClusterNetworkPolicies, in the order in which they are asked.
    #[must_use]
    pub fn cluster(&self) -> &[ClusterPolicy] {
        &self.cluster
    }

    /// Those of a tier that are about a Pod, with their places in [`World::cluster`].
    pub fn about<'w>(&'w self, tier: Tier, pod: &'w Pod) -> impl Iterator<Item = (usize, &'w ClusterPolicy)> + 'w {
        let namespace = self.namespaces.get(&pod.namespace);
        let of_tier = self.cluster.iter().enumerate().filter(move |(_, policy)| policy.tier == tier);
        of_tier.filter(move |(_, policy)| namespace.is_some_and(|labels| policy.is_about(pod, labels)))
    }

    /// The Pods.
    #[must_use]
    pub fn pods(&self) -> &[Pod] {
        &self.pods
    }

    /// The policies, by namespace and name.
    #[must_use]
    pub fn policies(&self) -> &[NetworkPolicy] {
        &self.policies
    }

    /// The labels of a Namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get(name)
    }

    /// The policies that select a Pod and say something about that direction, by their places in [`World::policies`].
    pub fn selecting<'w>(&'w self, pod: &'w Pod, direction: Direction) -> impl Iterator<Item = usize> + 'w {
        let range = self.of.get(&pod.namespace).cloned().unwrap_or_default();
        range.filter(move |&at| {
            let policy = &self.policies[at];
            policy.rules(direction).is_some() && policy.selects.matches(&pod.labels)
        })
    }
}
