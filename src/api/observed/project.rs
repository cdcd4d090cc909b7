//! From a decoded object to what is kept of it.

use std::sync::Arc;

use super::wire::{Metadata, Raw};
use super::{
    Change, ConfigMapSeen, Key, Kind, NamespaceSeen, Observed, OwnerReference, ServiceAccountSeen, What, runtime,
    workload,
};
use crate::domain::keys;

/// Labels of a namespace that admission reads.
const NAMESPACE_LABELS: [&str; 2] = [keys::LABEL_NAMESPACE_ENABLED, keys::LABEL_POD_SECURITY];

impl Raw {
    /// Where the object lives.
    #[must_use]
    pub fn key(&self) -> Key {
        let part = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Key { namespace: part(&self.metadata.namespace), name: part(&self.metadata.name) }
    }

    /// Its resourceVersion as a number, 0 when it is not one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.metadata.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    /// The object as a change of that kind; an object that is of no interest counts as gone.
    #[must_use]
    pub fn into_change(self, kind: Kind) -> Change {
        let (key, version) = (self.key(), self.version());
        let uid: Arc<str> = self.metadata.uid.as_deref().unwrap_or_default().into();
        let now = project(kind, self).map(|what| Arc::new(Observed { uid, version, what }));
        Change { kind, key, version, listed: false, now }
    }
}

/// What is kept of an object of that kind; `None` when it does not concern us.
fn project(kind: Kind, raw: Raw) -> Option<What> {
    match kind {
        Kind::Namespace => Some(What::Namespace(namespace(&raw.metadata))),
        Kind::ConfigMap => Some(What::ConfigMap(config_map(raw))),
        Kind::ServiceAccount => Some(What::ServiceAccount(service_account(raw))),
        Kind::CsiDriver => Some(What::CsiDriver),
        Kind::Pod => workload::pod(raw).map(What::Pod),
        Kind::AgentRuntime => Some(What::AgentRuntime(runtime::agent_runtime(raw))),
        Kind::Event => None,
        Kind::Deployment
        | Kind::ReplicaSet
        | Kind::StatefulSet
        | Kind::DaemonSet
        | Kind::Job
        | Kind::CronJob
        | Kind::Sandbox => workload::workload(kind.workload()?, raw).map(|seen| What::Workload(Box::new(seen))),
    }
}

fn namespace(metadata: &Metadata) -> NamespaceSeen {
    let labels = NAMESPACE_LABELS
        .iter()
        .filter_map(|key| metadata.label(key).map(|value| ((*key).to_owned(), value.to_owned())))
        .collect();
    NamespaceSeen { labels, terminating: metadata.deletion_timestamp.is_some() }
}

fn config_map(raw: Raw) -> ConfigMapSeen {
    ConfigMapSeen {
        is_defaults: raw.metadata.label(keys::LABEL_DEFAULTS) == Some("true"),
        is_step: raw.metadata.label(keys::LABEL_STEP) == Some(keys::LABEL_STEP_VALUE),
        ours: raw.metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE),
        written: raw.metadata.annotation(keys::ANNOTATION_CONTENT_DIGEST).map(Into::into),
        data: Arc::new(raw.data.unwrap_or_default()),
    }
}

fn service_account(raw: Raw) -> ServiceAccountSeen {
    let ours = raw.metadata.label(keys::LABEL_MANAGED_BY) == Some(keys::MANAGED_BY_WEBHOOK);
    let owners = if ours { raw.metadata.owner_references.unwrap_or_default() } else { Vec::new() };
    ServiceAccountSeen { ours, automount: raw.automount_service_account_token, owners }
}

/// The owner that controls an object.
pub(super) fn owner(metadata: &Metadata) -> Option<Arc<OwnerReference>> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).cloned().map(Arc::new)
}
