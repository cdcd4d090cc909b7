//! From a decoded object to what is kept of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::wire::{Condition, Metadata, Raw, Spec, Template};
use super::{
    Change, ConfigMapSeen, Key, Kind, NamespaceSeen, Observed, PodSeen, ServiceAccountSeen, What, WorkloadSeen,
};
use crate::domain::keys;
use crate::domain::workload::WorkloadKind;

/// Prefix of the annotations that decide about injection.
const OUR_PREFIX: &str = "kagenti.io/";
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
        Kind::Pod => gated_pod(raw).map(What::GatedPod),
        Kind::Event => None,
        Kind::Deployment | Kind::ReplicaSet | Kind::StatefulSet | Kind::DaemonSet | Kind::Job | Kind::CronJob => {
            workload(kind.workload()?, raw).map(What::Workload)
        }
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

fn gated_pod(raw: Raw) -> Option<PodSeen> {
    let gated = raw.spec?.scheduling_gates.iter().flatten().any(|gate| gate.name == keys::SCHEDULING_GATE);
    (gated && raw.metadata.deletion_timestamp.is_none()).then(|| PodSeen {
        controller: raw.metadata.controller(),
        agent_type: raw.metadata.label(keys::LABEL_TYPE).unwrap_or_default().to_owned(),
        created: raw.metadata.creation_timestamp.unwrap_or_default(),
    })
}

fn workload(kind: WorkloadKind, raw: Raw) -> Option<WorkloadSeen> {
    let metadata = &raw.metadata;
    let spec = raw.spec.unwrap_or_default();
    let status = raw.status.unwrap_or_default();
    let template = match kind {
        WorkloadKind::CronJob => {
            spec.job_template.as_ref().and_then(|job| job.spec.as_ref()).and_then(|job| job.template.as_ref())
        }
        _ => spec.template.as_ref(),
    }
    .and_then(enrolled_template);
    // Jobs are kept also without the label: their Pods may have got it from another webhook, and ours asks for the Job.
    if template.is_none() && kind != WorkloadKind::Job {
        return None;
    }
    let suspended = spec.suspend == Some(true);
    let active = status.active.as_ref().and_then(Value::as_i64).unwrap_or_default();
    let unmet = match kind {
        // The only kind that says it: fewer Pods than wanted is also what a busy controller looks like.
        WorkloadKind::ReplicaSet => {
            let refused = |one: &Condition| one.type_ == "ReplicaFailure" && one.status == "True";
            status.replicas.unwrap_or_default() < spec.replicas.unwrap_or(1)
                && status.conditions.iter().flatten().any(refused)
        }
        // Ordered StatefulSets have fewer Pods than wanted in the ordinary course; none at all is another matter.
        WorkloadKind::StatefulSet => status.replicas.unwrap_or_default() == 0 && spec.replicas.unwrap_or(1) > 0,
        WorkloadKind::DaemonSet => {
            status.current_number_scheduled.unwrap_or_default() < status.desired_number_scheduled.unwrap_or_default()
        }
        WorkloadKind::Job => {
            let done = [status.succeeded, status.failed].into_iter().flatten().sum::<i64>() > 0;
            !suspended && active == 0 && !done && status.completion_time.is_none()
        }
        _ => false,
    };
    Some(WorkloadSeen {
        kind,
        controller: metadata.controller(),
        template,
        unmet,
        retried: metadata.annotation(keys::ANNOTATION_RETRY).map(Into::into),
        suspended,
        suspended_by_us: metadata.annotation(keys::ANNOTATION_SUSPENDED).is_some(),
        active,
    })
}

/// The part of a Pod template that decides about injection, if its type label enrols it.
fn enrolled_template(template: &Template) -> Option<Arc<Value>> {
    let metadata = template.metadata.as_ref()?;
    metadata.label(keys::LABEL_TYPE)?;
    let (labels, annotations) = (ours(metadata.labels.as_ref()), ours(metadata.annotations.as_ref()));
    let spec = pod_spec(template.spec.as_deref());
    Some(Arc::new(json!({"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})))
}

/// The entries of a label or annotation map that carry our prefix, and the hash that names a ReplicaSet's Deployment.
fn ours(map: Option<&BTreeMap<String, String>>) -> Map<String, Value> {
    map.into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(OUR_PREFIX) || *key == keys::LABEL_POD_TEMPLATE_HASH)
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect()
}

fn pod_spec(spec: Option<&Spec>) -> Value {
    let mut kept = Map::new();
    let Some(spec) = spec else { return Value::Object(kept) };
    let mut keep = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            kept.insert(key.to_owned(), value);
        }
    };
    keep("serviceAccountName", spec.service_account_name.as_deref().map(Value::from));
    keep("serviceAccount", spec.service_account.as_deref().map(Value::from));
    keep("hostNetwork", spec.host_network.map(Value::from));
    keep("os", spec.os.as_ref().map(|os| json!({"name": os.name})));
    keep("containers", spec.containers.as_ref().map(|list| list.iter().map(|one| json!({"name": one.name})).collect()));
    keep("nodeSelector", spec.node_selector.as_ref().map(|selector| json!(selector)));
    Value::Object(kept)
}
