//! What the workload of an agent is asked for, whatever API group asked.
//!
//! A front end translates its custom resource into this value and owns the words of its status; everything after that is one
//! implementation.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::owner::Owner;

/// Everything the workload of an agent is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadRequest {
    /// Which object asks, and owns what is made for it.
    pub owner: Owner,
    /// Name of what is made for it.
    pub name: String,
    /// `apiVersion` of that object.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Image of the agent's container; `None` while there is none.
    pub image: Option<String>,
    /// Labels that select the Pods; immutable.
    pub selector: BTreeMap<String, String>,
    /// Labels of the Deployment and the Pods, besides the selector.
    pub labels: BTreeMap<String, String>,
    /// Labels of the Deployment and the Service that say whose they are; its Pods do not get them.
    pub marks: BTreeMap<String, String>,
    /// Annotations of the Deployment and the Service.
    pub annotations: BTreeMap<String, String>,
    /// Annotations of the Pods, besides the template's own.
    pub pod_annotations: BTreeMap<String, String>,
    /// The Pod template as written, a JSON object: members nobody knows reach the Deployment.
    pub pod_template: Value,
    /// Desired Pods; `None` when somebody else scales.
    pub replicas: Option<i64>,
    /// Ports of the Service as written; empty for no Service.
    pub service_ports: Vec<Value>,
    /// Type of the Service; `None` where that is left to whoever sets it.
    pub service_type: Option<&'static str>,
    /// Port of the agent's container when it declares none.
    pub container_port: i64,
    /// What the lock-down leaves out, by profile.
    pub profile: LockdownProfile,
    /// Whether a ServiceAccount of the object's name is made.
    pub own_account: bool,
}

/// How much of the lock-down applies to fields that the user left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockdownProfile {
    /// All of it.
    Restricted,
    /// Without a read-only root filesystem and a fixed user.
    Baseline,
    /// None of it, nor anything else that was not written: what runs may need what a lock-down takes.
    Open,
}
