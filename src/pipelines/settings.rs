//! What the platform decides about all builds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::domain::keys;

/// The registry of a cluster that the original project sets up, which speaks no TLS.
pub const INSECURE_REGISTRY: &str = "registry.cr-system.svc.cluster.local:5000";
/// The registry that belongs to the host of most repositories.
pub const TOKEN_REGISTRY: &str = "ghcr.io";

/// Settings of the platform, as admission and composition read them.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Namespace of the operator: its ConfigMaps are the platform's own.
    pub operator_namespace: String,
    /// Further namespaces whose templates and steps any build may name; `kagenti-system` always counts.
    pub pipeline_namespaces: BTreeSet<String>,
    /// Whether `http://` repositories are allowed.
    pub insecure_git: bool,
    /// Whether a git Secret must list its hosts (annotation `agent.kagenti.dev/git-hosts`, 14.2).
    pub require_git_hosts: bool,
    /// Whether steps outside the operator's namespace may be privileged and mount node paths.
    pub privileged_steps: bool,
    /// Registries, as host or host:port, that builds of BeeAI push to without TLS.
    pub insecure_registries: BTreeSet<String>,
    /// Registries to which a Git token of a build of BeeAI may be sent as login.
    pub token_registries: BTreeSet<String>,
    /// Whether logins of registries are made from tokens at all.
    pub registry_secrets: bool,
    /// Whether a build whose image is known from the same inputs is spared its run.
    pub by_content: bool,
    /// Whether the cluster assigns users and groups itself.
    pub openshift: bool,
    /// ConfigMap of the build's namespace with further certificate authorities under `ca.crt`.
    pub trust_bundle: Option<String>,
    /// Environment of build Pods, such as proxy variables.
    pub environment: BTreeMap<String, String>,
    /// Node selector of build Pods.
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations of build Pods.
    pub tolerations: Vec<Value>,
    /// Resources of each task.
    pub resources: Option<Value>,
    /// Runs of a build that are kept after a clean-up: as many that succeeded, and as many that did not (11.6).
    pub history: usize,
    /// Runs of a build's inputs that may be taken away before they ended, until no other is made and the build has failed.
    pub lost_runs: usize,
}

impl Settings {
    /// The built-in settings of an operator in that namespace.
    #[must_use]
    pub fn new(operator_namespace: impl Into<String>) -> Self {
        Self {
            operator_namespace: operator_namespace.into(),
            pipeline_namespaces: BTreeSet::new(),
            insecure_git: false,
            require_git_hosts: false,
            privileged_steps: false,
            insecure_registries: BTreeSet::from([INSECURE_REGISTRY.to_owned()]),
            token_registries: BTreeSet::from([TOKEN_REGISTRY.to_owned()]),
            registry_secrets: true,
            by_content: false,
            openshift: false,
            trust_bundle: None,
            environment: BTreeMap::new(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            resources: None,
            history: 3,
            lost_runs: 3,
        }
    }

    /// Whether a build in `own` may take templates and steps from `namespace`.
    #[must_use]
    pub fn allows_pipeline_namespace(&self, namespace: &str, own: &str) -> bool {
        namespace == self.operator_namespace
            || namespace == own
            || namespace == keys::OPERATOR_NAMESPACE
            || self.pipeline_namespaces.contains(namespace)
    }
}
