//! Which workload a Pod belongs to (docs/deviations.md: ServiceAccount).
//!
//! In: a Pod and, for a Job's Pod, the Jobs of the namespace. Out: kind and name, or that the Job is not known yet.
//! The controller's owner reference decides, by group and kind; without one the Pod's own names do.

use std::borrow::Cow;

use serde_json::Value;

use super::pod::{PodView, text};
use crate::config::view::NamespaceView;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};

/// The Job that owns a Pod, unknown to the view: the Pod is asked for again when it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnknownJob {
    /// Its name, from the owner reference.
    pub(super) name: String,
    /// Its uid, from the owner reference.
    pub(super) uid: String,
}

/// The workload of a Pod.
pub(super) fn workload(pod: PodView<'_>, known: &NamespaceView) -> Result<Workload, UnknownJob> {
    let Some(owner) = pod.owner_references().iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))
    else {
        return Ok(Workload { kind: WorkloadKind::Pod, name: from_names(pod) });
    };
    let group = text(owner, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let name = text(owner, "name");
    let named = |kind| Ok(Workload { kind, name: name.to_owned() });
    match WorkloadKind::from_group_kind(group, text(owner, "kind")) {
        Some(WorkloadKind::ReplicaSet) => Ok(Workload::of_replica_set(name, pod.label(keys::LABEL_POD_TEMPLATE_HASH))),
        Some(WorkloadKind::Job) => job(name, text(owner, "uid"), known),
        Some(
            kind @ (WorkloadKind::StatefulSet
            | WorkloadKind::DaemonSet
            | WorkloadKind::Sandbox
            | WorkloadKind::Deployment
            | WorkloadKind::CronJob),
        ) => named(kind),
        Some(WorkloadKind::Pod | WorkloadKind::Unknown) | None => {
            let name = of_deployment_config(pod, owner).map_or_else(|| from_names(pod), str::to_owned);
            Ok(Workload { kind: WorkloadKind::Unknown, name })
        }
    }
}

/// The annotation with which OpenShift names the DeploymentConfig of a Pod.
const DEPLOYMENT_CONFIG: &str = "openshift.io/deployment-config.name";

/// The DeploymentConfig of which `owner` is a revision: a ReplicationController of its name and a number. Named by the revision, a client would be another
/// one after each rollout.
fn of_deployment_config<'a>(pod: PodView<'a>, owner: &Value) -> Option<&'a str> {
    let is_revision = text(owner, "apiVersion") == "v1" && text(owner, "kind") == "ReplicationController";
    let name = pod.annotation(DEPLOYMENT_CONFIG).filter(|name| is_revision && !name.is_empty())?;
    let number = text(owner, "name").strip_prefix(name)?.strip_prefix('-')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

/// The workload that Pods of a template of `maker` belong to, as they are found to themselves: those of a ReplicaSet belong to the Deployment whose
/// hash its template bears.
pub(super) fn of_template<'w>(maker: &'w Workload, template: &Value) -> Cow<'w, Workload> {
    if maker.kind != WorkloadKind::ReplicaSet {
        return Cow::Borrowed(maker);
    }
    let labels = template.get("metadata").and_then(|metadata| metadata.get("labels"));
    let hash = labels.and_then(|labels| labels.get(keys::LABEL_POD_TEMPLATE_HASH)).and_then(Value::as_str);
    Cow::Owned(Workload::of_replica_set(&maker.name, hash))
}

/// A Job answers for its CronJob; one that only shares the name with a known Job is another Job.
fn job(name: &str, uid: &str, known: &NamespaceView) -> Result<Workload, UnknownJob> {
    known
        .jobs
        .get(name)
        .filter(|job| *job.uid == *uid)
        .map(|job| job.workload.clone())
        .ok_or_else(|| UnknownJob { name: name.to_owned(), uid: uid.to_owned() })
}

/// The classic rule: generateName without its hash, else the name, else the uid.
fn from_names(pod: PodView<'_>) -> String {
    let hash = pod.label(keys::LABEL_POD_TEMPLATE_HASH).unwrap_or("");
    let generated = pod.generate_name();
    let without_hash = generated
        .strip_suffix('-')
        .filter(|_| !hash.is_empty())
        .and_then(|rest| rest.strip_suffix(hash)?.strip_suffix('-'))
        .filter(|rest| !rest.is_empty());
    let trimmed = without_hash.unwrap_or_else(|| generated.trim_end_matches('-'));
    [trimmed, pod.name(), pod.uid()].into_iter().find(|name| !name.is_empty()).unwrap_or("").to_owned()
}

#[cfg(test)]
mod tests;
