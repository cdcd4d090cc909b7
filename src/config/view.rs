//! What admission knows of the cluster: projections, a few hundred bytes per object (design, law 9).
//!
//! In: what the watches saw (built by `runtime::stores`, or from a stream of manifests by the command line).
//! Out: look-ups without I/O. Promise: cloning a view costs one pointer per namespace.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::resolved::Resolved;
use crate::domain::workload::Workload;

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
    /// Carries `kagenti.io/managed-by: webhook`.
    Ours,
    /// Somebody else's.
    Foreign,
}

/// What a Job's Pods need to know of the Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOwner {
    /// `metadata.uid` of the Job: a Job of the same name made later is another one.
    pub uid: String,
    /// The CronJob that controls it, or the Job itself.
    pub workload: Workload,
}

/// One namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceView {
    /// Value of label `kagenti-enabled`.
    pub enabled_label: Option<String>,
    /// Pod Security level that is enforced.
    pub pod_security: PodSecurity,
    /// Data of ConfigMap `authbridge-config`; `None` when it does not exist.
    pub authbridge_config: Option<BTreeMap<String, String>>,
    /// SHA-256 (hex) of the data of each mounted ConfigMap that exists, by its fixed name.
    pub mounted: BTreeMap<&'static str, String>,
    /// ServiceAccounts by name.
    pub service_accounts: BTreeMap<Arc<str>, Ownership>,
    /// Jobs by name.
    pub jobs: BTreeMap<Arc<str>, JobOwner>,
    /// The configuration in force here.
    pub resolved: Arc<Resolved>,
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
