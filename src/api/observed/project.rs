//! From a decoded object to what is kept of it.

use std::sync::Arc;

use super::wire::{Metadata, Raw};
use super::{
    BuildPodSeen, Change, ClaimSeen, ConfigMapSeen, Key, Kind, NamespaceSeen, Observed, OwnerReference,
    ServiceAccountSeen, What, runtime, workload,
};
use crate::domain::keys;

/// Labels of a namespace that admission reads.
const NAMESPACE_LABELS: [&str; 3] = [keys::LABEL_NAMESPACE_ENABLED, keys::LABEL_POD_SECURITY, keys::LABEL_USE_WAYPOINT];

/// Where an object lives, which one it is and at which version.
pub(super) struct Identity {
    key: Key,
    uid: Arc<str>,
    version: u64,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            key: metadata.key(),
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            version: metadata.version(),
        }
    }

    /// The object as a change; without anything that is kept it counts as gone.
    pub(super) fn change(self, kind: Kind, what: Option<What>) -> Change {
        let Self { key, uid, version } = self;
        let now = what.map(|what| Arc::new(Observed { uid, version, what }));
        Change { kind, key, version, listed: false, now }
    }
}

impl Metadata {
    /// Where the object lives.
    #[must_use]
    pub fn key(&self) -> Key {
        let part = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Key { namespace: part(&self.namespace), name: part(&self.name) }
    }

    /// Its resourceVersion as a number, 0 when it is not one.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.resource_version.as_deref().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

impl Raw {
    /// The object as a change of that kind; an object that is of no interest counts as gone.
    #[must_use]
    pub fn into_change(self, kind: Kind) -> Change {
        Identity::of(&self.metadata).change(kind, project(kind, self))
    }
}

/// What is kept of an object of that kind; `None` when it does not concern us.
fn project(kind: Kind, raw: Raw) -> Option<What> {
    match kind {
        Kind::Namespace => Some(What::Namespace(namespace(&raw.metadata))),
        Kind::ConfigMap => Some(What::ConfigMap(config_map(raw))),
        Kind::ServiceAccount => Some(What::ServiceAccount(service_account(raw))),
        Kind::CsiDriver => Some(What::CsiDriver),
        Kind::Pod => match build_pod(&raw) {
            Some(seen) => Some(What::BuildPod(seen)),
            None => workload::pod(raw).map(What::Pod),
        },
        Kind::PersistentVolumeClaim => Some(What::Claim(ClaimSeen::of(&raw.metadata))),
        Kind::AgentRuntime => Some(What::AgentRuntime(runtime::agent_runtime(raw))),
        Kind::Event
        | Kind::Secret
        | Kind::Agent
        | Kind::AgentBuild
        | Kind::Service
        | Kind::PipelineRun
        | Kind::TaskRun => None,
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
    let frozen = raw.immutable == Some(true);
    ConfigMapSeen {
        is_defaults: raw.metadata.label(keys::LABEL_DEFAULTS) == Some("true"),
        is_step: raw.metadata.label(keys::LABEL_STEP) == Some(keys::LABEL_STEP_VALUE),
        ours: raw.metadata.label(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_DRAWBRIDGE),
        written: raw.metadata.annotation(keys::ANNOTATION_CONTENT_DIGEST).filter(|_| !frozen).map(Into::into),
        created: raw.metadata.creation_timestamp.as_deref().map(Into::into),
        ..ConfigMapSeen::of(raw.data.unwrap_or_default())
    }
}

fn service_account(raw: Raw) -> ServiceAccountSeen {
    let ours = raw.metadata.label(keys::LABEL_MANAGED_BY) == Some(keys::MANAGED_BY_WEBHOOK);
    let of_agent = raw.metadata.has_agent();
    let claim = of_agent.then(|| ClaimSeen::of(&raw.metadata));
    let for_builds = raw.metadata.label(keys::LABEL_BUILD_ACCOUNT) == Some("true");
    let owners = if ours || of_agent { raw.metadata.owner_references.unwrap_or_default() } else { Vec::new() };
    ServiceAccountSeen { ours, automount: raw.automount_service_account_token, owners, for_builds, claim }
}

/// The Pod of a build's task, unless it is one that injection is about.
fn build_pod(raw: &Raw) -> Option<BuildPodSeen> {
    let metadata = &raw.metadata;
    let run = metadata.label(keys::LABEL_PIPELINE_RUN).filter(|run| !run.is_empty())?;
    if metadata.label(keys::LABEL_AGENT_BUILD).is_none() || metadata.label(keys::LABEL_TYPE).is_some() {
        return None;
    }
    Some(BuildPodSeen {
        run: run.into(),
        controller: owner(metadata),
        terminating: metadata.deletion_timestamp.is_some(),
        phase: workload::phase(raw),
    })
}

/// The owner that controls an object.
pub(super) fn owner(metadata: &Metadata) -> Option<Arc<OwnerReference>> {
    let mut owners = metadata.owner_references.iter().flatten();
    owners.find(|owner| owner.controller == Some(true)).cloned().map(Arc::new)
}
