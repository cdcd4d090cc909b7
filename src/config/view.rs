//! What admission knows of the cluster: projections, a few hundred bytes per object.
//!
//! In: what the watches saw (built by `server::stores`, or from a stream of manifests by the command line).
//! Out: look-ups without I/O. Promise: cloning a view costs one pointer per namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::agent_card::ManualCards;
use super::agent_runtime::Governors;
use super::content;
use super::inputs::NamespaceInputs;
use super::namesakes::Named;
use super::namespace::{self, LastGood};
use super::reading::{self, Known};
use super::resolved::Resolved;
use super::schema::Platform;
use crate::domain::keys::{
    CONFIG_MAP_AUTHBRIDGE, LABEL_CATALOGUE, LABEL_NAMESPACE_ENABLED, LABEL_POD_SECURITY, LABEL_TRUST,
    LABEL_USE_WAYPOINT, MOUNTED_CONFIG_MAPS, SHARED, SYSTEM_NAMESPACES,
};
use crate::domain::quarantine::Quarantine;
use crate::domain::trust::TrustLevel;
pub use crate::store::JobOwner;

/// Pod Security level of a namespace (`pod-security.kubernetes.io/enforce`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum PodSecurity {
    /// No restrictions; also when the label is absent.
    #[default]
    Privileged,
    /// Prevents known privilege escalations.
    Baseline,
    /// Hardened.
    Restricted,
}

/// Whose ServiceAccount it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Carries `kagenti.io/managed-by: webhook`, or an Agent of the namespace controls it.
    Ours,
    /// Somebody else's.
    Foreign,
}

/// One namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceView {
    /// Value of label `kagenti-enabled`.
    pub enabled_label: Option<String>,
    /// Value of label `istio.io/use-waypoint`.
    pub waypoint: Option<String>,
    /// How far trust is enforced.
    pub trust: TrustLevel,
    /// The NetworkPolicy that cuts off unproven Pods is there, and ours.
    pub cut_off: bool,
    /// Pod Security level that is enforced.
    pub pod_security: PodSecurity,
    /// Data of ConfigMap `authbridge-config`, as it is or will be made.
    pub authbridge_config: Option<Arc<BTreeMap<String, String>>>,
    /// SHA-256 (hex) of the data of each mounted ConfigMap, as it is or will be made, by its fixed name.
    pub mounted: BTreeMap<&'static str, String>,
    /// ServiceAccounts by name.
    pub service_accounts: BTreeMap<Arc<str>, Ownership>,
    /// Jobs by name.
    pub jobs: BTreeMap<Arc<str>, Arc<JobOwner>>,
    /// Which AgentRuntime governs which workload.
    pub governors: Governors,
    /// Cards that persons made.
    pub cards: ManualCards,
    /// What is run here, under which names.
    pub named: Named,
    /// Callers of other namespaces find its verified agents in the catalogue.
    pub shared: bool,
    /// Who of it is in quarantine; nobody of a system namespace ever is.
    pub quarantine: Option<Arc<Quarantine>>,
    /// The configuration in force here.
    pub resolved: Arc<Resolved>,
    /// What is known of the namespace's ConfigMaps.
    pub last_good: LastGood,
}

/// The cluster, as far as admission needs it.
#[derive(Debug, Clone)]
pub struct ClusterView {
    /// The operator's own namespace.
    pub operator_namespace: Arc<str>,
    /// API server version, major and minor.
    pub server_version: (u32, u32),
    /// CSIDriver `csi.spiffe.io` exists.
    pub spiffe_driver: bool,
    /// By name.
    pub namespaces: HashMap<Arc<str>, Arc<NamespaceView>>,
}

/// One namespace, resolved. `last` is what its ConfigMaps said before this change: what serves where one cannot be read; `None` when
/// nobody has looked yet, and empty when it was looked and there was no namespace.
#[must_use]
pub fn namespace_view(
    platform: &Platform,
    name: &str,
    inputs: &NamespaceInputs,
    last: Option<&LastGood>,
) -> NamespaceView {
    resolved_view(platform, name, (inputs, &reading::known(&inputs.config_maps)), last)
}

/// The same where the ConfigMaps have been read before: the texts in `inputs` are not looked at.
#[must_use]
pub fn resolved_view(
    platform: &Platform,
    name: &str,
    (inputs, config_maps): (&NamespaceInputs, &BTreeMap<Arc<str>, Known>),
    last: Option<&LastGood>,
) -> NamespaceView {
    let (resolved, last_good) = namespace::resolve(platform, name, config_maps, last);
    let in_force = |config_map: &str| content::in_force(config_map, platform, config_maps, &resolved);
    NamespaceView {
        enabled_label: inputs.labels.get(LABEL_NAMESPACE_ENABLED).cloned(),
        waypoint: inputs.labels.get(LABEL_USE_WAYPOINT).cloned(),
        trust: platform.cards().trust.in_force(name, "", inputs.labels.get(LABEL_TRUST).map(String::as_str)),
        cut_off: inputs.cut_off,
        pod_security: PodSecurity::of_label(inputs.labels.get(LABEL_POD_SECURITY).map(String::as_str)),
        authbridge_config: in_force(CONFIG_MAP_AUTHBRIDGE).map(|content| content.data),
        mounted: MOUNTED_CONFIG_MAPS
            .into_iter()
            .filter_map(|name| Some((name, in_force(name)?.digest.to_string())))
            .collect(),
        service_accounts: inputs.service_accounts.clone(),
        jobs: inputs.jobs.clone(),
        governors: Governors::of(&inputs.agent_runtimes),
        cards: ManualCards::of(&inputs.agent_cards),
        named: inputs.named.clone(),
        shared: inputs.labels.get(LABEL_CATALOGUE).is_some_and(|value| value == SHARED),
        quarantine: inputs.quarantine.clone().filter(|_| !SYSTEM_NAMESPACES.contains(&name)),
        resolved: Arc::clone(&resolved),
        last_good,
    }
}

impl PodSecurity {
    /// The level of a namespace whose label [`LABEL_POD_SECURITY`] is `label`; absent is privileged, and a word that is no level
    /// restricted, as Kubernetes has it.
    #[must_use]
    pub fn of_label(label: Option<&str>) -> Self {
        match label {
            None | Some("privileged") => PodSecurity::Privileged,
            Some("baseline") => PodSecurity::Baseline,
            Some(_) => PodSecurity::Restricted,
        }
    }
}

impl Default for NamespaceView {
    /// A namespace of which nothing is known, under the built-in configuration.
    fn default() -> Self {
        namespace_view(&Platform::built_in(), "", &NamespaceInputs::default(), None)
    }
}

#[cfg(test)]
mod tests;
