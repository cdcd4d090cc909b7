//! The one value a review is decided from.

use std::sync::Arc;

use super::builds::Builds;
use super::enrolment::WorkloadLabels;
use super::gates::Gates;
use super::inputs::NamespaceInputs;
use super::schema::Platform;
use super::view::{ClusterView, NamespaceView, namespace_view};

/// Everything admission may know: immutable, swapped as a whole.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Feature gates in force.
    pub gates: Gates,
    /// `requireNamespaceLabel` of the platform file.
    pub require_namespace_label: bool,
    /// What holds in a namespace about which nothing is known yet.
    pub fresh: Arc<NamespaceView>,
    /// Which labels on workloads themselves enrol.
    pub labels: WorkloadLabels,
    /// The cluster.
    pub view: ClusterView,
    /// Builds and agents: settings, templates, steps.
    pub builds: Arc<Builds>,
}

impl Snapshot {
    /// What admission decides from; the namespaces of `view` were made with the same `platform`. Of builds nothing is
    /// known but the settings, until [`Snapshot::with_builds`].
    #[must_use]
    pub fn new(platform: &Platform, gates: Gates, view: ClusterView) -> Self {
        let settings = platform.builds(&view.operator_namespace, false);
        Self {
            gates,
            require_namespace_label: platform.require_namespace_label(),
            fresh: Arc::new(namespace_view(platform, "", &NamespaceInputs::default(), None)),
            labels: platform.workload_labels(),
            view,
            builds: Arc::new(Builds::new(settings)),
        }
    }

    /// The same in an installation that was made then.
    #[must_use]
    pub fn installed(self, since: Option<Arc<str>>) -> Self {
        Self { labels: self.labels.installed(since), ..self }
    }

    /// The same with what is known of builds.
    #[must_use]
    pub fn with_builds(self, builds: Arc<Builds>) -> Self {
        Self { builds, ..self }
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
    /// The files changed less than [`Platform::rollout_delay`] ago: a webhook in another process may not have read them yet, and
    /// Pods that are made now may be made by the old ones.
    pub spreading: bool,
}

impl Published {
    /// Whether what counts for hashes is what admission decides from.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        Arc::ptr_eq(&self.snapshot, &self.settled)
    }
}
