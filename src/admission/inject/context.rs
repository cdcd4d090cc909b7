//! What every part builder reads: the subject, what is in force for it, and its workload.

use serde_json::Value;

use super::decide::Subject;
use super::effective::Effective;
use super::identity;
use super::plan::{InjectionPlan, Mount};
use crate::domain::keys;
use crate::domain::workload::Workload;

/// The inputs of a plan.
#[derive(Debug)]
pub(super) struct Context<'a> {
    /// The Pod, its namespace and the snapshot.
    pub(super) subject: Subject<'a>,
    /// What is in force.
    pub(super) effective: Effective<'a>,
    /// The workload the Pod belongs to.
    pub(super) workload: Workload,
}

impl Context<'_> {
    /// A value of ConfigMap `authbridge-config`, when the namespace has it.
    pub(super) fn config(&self, key: &str) -> Option<&str> {
        self.subject.view().authbridge_config.as_ref()?.get(key).map(String::as_str)
    }

    /// The SPIFFE id that the Pod will have; `None` without SPIRE parts.
    pub(super) fn spiffe_id(&self, plan: &InjectionPlan<'_>) -> Option<String> {
        self.effective.spire().then(|| identity::planned(self, plan).spiffe_id())
    }

    /// The user of a sidecar that runs as its image's, `image`: said aloud only where the Pod is told to run as root, which a
    /// container that must not would inherit, and the kubelet would never start it.
    pub(super) fn user_of_image(&self, image: i64) -> Option<i64> {
        let of_pod = self.subject.pod.security_context("runAsUser").and_then(Value::as_i64);
        (of_pod == Some(0)).then_some(image)
    }

    /// The mount at `/shared`: the managed credentials where there are any, else the shared emptyDir.
    pub(super) fn shared_mount(&self, without_credentials: fn(&'static str, &'static str) -> Mount) -> Mount {
        match self.effective.credentials {
            Some(_) => Mount::read_only(keys::VOLUME_CREDENTIALS, keys::PATH_SHARED),
            None => without_credentials(keys::VOLUME_SHARED, keys::PATH_SHARED),
        }
    }
}
