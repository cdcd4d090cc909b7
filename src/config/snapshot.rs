//! The one value a review is decided from.

use std::sync::Arc;

use super::gates::Gates;
use super::resolved::Resolved;
use super::view::{ClusterView, NamespaceView};

/// Everything admission may know: immutable, swapped as a whole.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Feature gates in force.
    pub gates: Gates,
    /// `requireNamespaceLabel` of the platform file.
    pub require_namespace_label: bool,
    /// The configuration of a namespace about which nothing special is known.
    pub cluster_default: Arc<Resolved>,
    /// The cluster.
    pub view: ClusterView,
}

impl Snapshot {
    /// What is known of that namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Arc<NamespaceView>> {
        self.view.namespaces.get(name)
    }
}
