//! The one value a review is decided from.

use std::sync::Arc;

use super::gates::Gates;
use super::resolved::Resolved;
use super::schema::Platform;
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
    /// What admission decides from; the namespaces of `view` were made with the same `platform`.
    #[must_use]
    pub fn new(platform: &Platform, gates: Gates, view: ClusterView) -> Self {
        Self {
            gates,
            require_namespace_label: platform.require_namespace_label(),
            cluster_default: Arc::clone(platform.resolved()),
            view,
        }
    }

    /// What is known of that namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&Arc<NamespaceView>> {
        self.view.namespaces.get(name)
    }
}

/// A snapshot together with the configuration it was made from: what controllers plan with.
#[derive(Debug, Clone)]
pub struct Published {
    /// The snapshot in force: what admission decides from now.
    pub snapshot: Arc<Snapshot>,
    /// What counts for hashes: the same, but for surroundings that changed a short while ago ([`super::settle`]).
    pub settled: Arc<Snapshot>,
    /// The platform configuration, over the template of the operator's namespace.
    pub platform: Arc<Platform>,
}
