//! What is to be done, in which order, and what stays and why. Pure.
//!
//! Order: the policies of the API server and the webhooks first, so that nothing is held or refused any more for want of somebody who
//! answers; then the operator's rights and processes, so that nobody puts back what follows; then the workloads, the finalizers, and at the end what
//! Pods might still need.

mod gated;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::found::{Found, Part};
use crate::cli::survey;
use crate::domain::keys;
use crate::domain::workload::{Workload, WorkloadKind};
use crate::domain::written::{self, At};
use crate::store::Kind;
pub(super) use gated::resumes;

/// What the person decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Namespace of the operator.
    pub operator_namespace: String,
    /// The CustomResourceDefinitions go, too.
    pub crds: bool,
    /// What cuts off and opens agents stays.
    pub keep_policies: bool,
    /// Pods are replaced only where un-enrolment replaces them.
    pub keep_pods: bool,
}

/// The order of the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// Admission policies and their bindings.
    Policies,
    /// Webhook configurations.
    Webhooks,
    /// Rights and processes of the operator.
    Operator,
    /// What cuts off agents, and what opens them.
    Trust,
    /// What we put on workloads.
    Workloads,
    /// Workloads that only their Pods' own label enrols, and whose Pods therefore nothing replaces.
    Restarts,
    /// Pods that wait behind the scheduling gate.
    GatedPods,
    /// Finalizers of our own kinds.
    Finalizers,
    /// What we made for Pods.
    Belongings,
    /// The operator's own objects, and CustomResourceDefinitions.
    Rest,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: [Phase; 10] = [
        Phase::Policies,
        Phase::Webhooks,
        Phase::Operator,
        Phase::Trust,
        Phase::Workloads,
        Phase::Restarts,
        Phase::GatedPods,
        Phase::Finalizers,
        Phase::Belongings,
        Phase::Rest,
    ];

    /// What it is, and what it means for Pods.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Phase::Policies => "admission policies: nothing is gated or refused by the API server itself any more",
            Phase::Webhooks => {
                "webhooks: Pods that are made from now on get no sidecars; running Pods keep theirs until they are replaced"
            }
            Phase::Operator => "rights and processes of the operator: nobody writes any more",
            Phase::Trust => {
                "what cuts off agents that have not proved who they are, then what opens others, then the label that says who has"
            }
            Phase::Workloads => "un-enrolment: what Drawbridge put on workloads is taken off; labels of yours stay",
            Phase::Restarts => {
                "workloads that their Pods' own label enrols: a few at a time are restarted, and their Pods come back without sidecars"
            }
            Phase::GatedPods => {
                "Pods that wait behind the scheduling gate: their controllers make them again, without sidecars"
            }
            Phase::Finalizers => {
                "finalizers: AgentRuntimes, Agents of every kind, AgentBuilds, AgentCards, ModelAPIs and MCPServers can be deleted without an operator"
            }
            Phase::Belongings => {
                "ConfigMaps and ServiceAccounts that Drawbridge made and that no Pod uses, and AgentCards that it made"
            }
            Phase::Rest => "the operator's own objects",
        }
    }
}

/// How a step is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Delete the object of that uid.
    Delete {
        /// `metadata.uid`.
        uid: String,
    },
    /// Server-side apply of an empty field set as that manager.
    Release {
        /// What identifies the object, and nothing else.
        identity: Value,
        /// The field manager whose fields go.
        manager: String,
    },
    /// Merge patch.
    Merge {
        /// The patch.
        patch: Value,
    },
    /// What `kubectl rollout restart` does to the object of that uid.
    Restart {
        /// `metadata.uid`.
        uid: String,
    },
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Its phase.
    pub phase: Phase,
    /// Such as `Deployment team1/weather-agent`.
    pub object: String,
    /// Path of the object.
    #[serde(skip)]
    pub path: String,
    /// How it is done.
    #[serde(skip)]
    pub action: Action,
    /// What it means.
    pub effect: String,
}

/// Something that stays, or is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// Such as `ConfigMap team1/envoy-config`.
    pub object: String,
    /// Why, and what to do about it.
    pub why: String,
    /// The plan leaves it so: something needs it, or it is a person's.
    pub planned: bool,
}

/// The plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// In this order.
    pub steps: Vec<Step>,
    /// Ours, and not to be taken away yet.
    pub later: Vec<Kept>,
    /// Not ours to take away.
    pub stays: Vec<Kept>,
}

/// What is to be done about what was found.
#[must_use]
pub(super) fn plan(found: &Found, options: &Options) -> Plan {
    let mut plan = Plan::default();
    found.parts.iter().for_each(|part| install(&mut plan, part, options));
    found.restricting.iter().for_each(|part| restricting(&mut plan, part));
    super::trust::plan(&mut plan, found, options);
    found.workloads.iter().for_each(|part| workload(&mut plan, part));
    found.workloads.iter().for_each(|part| restart(&mut plan, part, (found, options)));
    found.pods.iter().for_each(|part| gated::pod(&mut plan, part, found));
    found.agent_runtimes.iter().chain(&found.agents).for_each(|part| finalizer(&mut plan, part));
    for object in &found.belongings {
        belonging(&mut plan, object, found);
    }
    found.agents.iter().for_each(|part| card(&mut plan, part));
    // What waits for a controller comes behind what that controller has to do, so that all of it is waited for at once.
    plan.steps.sort_by_key(|step| (step.phase, resumes(&step.action)));
    plan
}

/// What the second plan would still do, each with the refusal it met.
#[must_use]
pub(super) fn left(rest: &Plan, done: &[super::Done]) -> Vec<Kept> {
    let mut undone: Vec<Kept> = Vec::new();
    // What comes later is not begun while the operator may still write.
    let stopped = done.iter().any(|done| done.outcome == "refused" && done.step.phase <= Phase::Operator);
    for step in &rest.steps {
        let refusal = done.iter().rev().find(|done| done.step.object == step.object && done.outcome == "refused");
        let why = refusal.and_then(|done| done.message.clone());
        let is_tried = done.iter().any(|done| done.step.object == step.object);
        let still = match step.phase {
            _ if stopped && !is_tried => {
                "not tried, because a step before it was refused; once that one is done, run uninstall once more"
            }
            Phase::Restarts => "its Pods still run with sidecars; they are gone once its rollout has ended",
            _ => "it exists again, or still: run uninstall once more",
        };
        let why = why.unwrap_or_else(|| still.to_owned());
        let kept = Kept { object: step.object.clone(), why, planned: false };
        // A Job has two steps.
        if !undone.contains(&kept) {
            undone.push(kept);
        }
    }
    undone.extend(rest.later.iter().cloned());
    undone
}

/// What a plan that was cut short has not done, as far as is known: each step with the refusal it met, or that nobody knows.
#[must_use]
pub(super) fn cut_short(plan: &Plan, done: &[super::Done]) -> Vec<Kept> {
    const UNKNOWN: &str = "not known to be done, because the command was cut short; run uninstall once more";
    let undone = plan.steps.iter().filter_map(|step| {
        let why = match done.iter().rev().find(|done| done.step == *step) {
            None => UNKNOWN.to_owned(),
            Some(done) if done.outcome == "refused" => done.message.clone().unwrap_or_default(),
            Some(_) => return None,
        };
        Some(Kept { object: step.object.clone(), why, planned: false })
    });
    undone.chain(plan.later.iter().cloned()).collect()
}

/// The text at a pointer, empty when there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

fn member<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    object.pointer(map)?.get(key)?.as_str()
}

/// How people name an object.
pub(super) fn title(object: &Value) -> String {
    let (kind, name) = (text(object, "/kind"), text(object, "/metadata/name"));
    match text(object, "/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

pub(super) fn delete(phase: Phase, part: &Part, effect: &str) -> Step {
    let uid = text(&part.object, "/metadata/uid").to_owned();
    Step {
        phase,
        object: title(&part.object),
        path: part.path.clone(),
        action: Action::Delete { uid },
        effect: effect.to_owned(),
    }
}

/// Whether an object under one of our names is ours. Deployments and the Service carry the name alone (`render::deploy`): that is ours where nobody
/// else says that he looks after it. No manifest has a Secret: one that only bears the name is a person's.
pub(super) fn is_ours(part: &Part) -> bool {
    let label = |key: &str| member(&part.object, "/metadata/labels", key);
    let is_named =
        || label(keys::LABEL_APP_NAME) == Some(keys::MANAGED_BY_DRAWBRIDGE) && text(&part.object, "/kind") != "Secret";
    part.always_ours || label(keys::LABEL_APP_MANAGED_BY).map_or_else(is_named, |by| by == keys::MANAGED_BY_DRAWBRIDGE)
}

/// Why an object under one of our names is not taken.
fn foreign(object: &Value) -> String {
    let (label, name, ours) = (keys::LABEL_APP_MANAGED_BY, keys::LABEL_APP_NAME, keys::MANAGED_BY_DRAWBRIDGE);
    match member(object, "/metadata/labels", label) {
        Some(by) => format!("it carries {label}={by}, so it is somebody else's"),
        None if text(object, "/kind") == "Secret" => {
            format!("it does not carry {label}={ours}, so it is somebody else's")
        }
        None => format!("it carries neither {label}={ours} nor {name}={ours}, so it is somebody else's"),
    }
}

/// An object of the installation.
fn install(plan: &mut Plan, part: &Part, options: &Options) {
    let object = &part.object;
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let mut keep = |why: String| plan.stays.push(Kept { object: title(object), why, planned: true });
    let phase = match text(object, "/kind") {
        "Namespace" => {
            return keep(format!("others may keep things in it; when nobody does: kubectl delete namespace {name}"));
        }
        "Gateway" => {
            return keep(format!(
                "routes of others may lead through it; when none does: kubectl -n {namespace} delete gateways.gateway.networking.k8s.io {name}"
            ));
        }
        "CustomResourceDefinition" if !options.crds => {
            return keep("what is stored under it is yours; --crds deletes it and that".to_owned());
        }
        _ if !is_ours(part) => return keep(foreign(object)),
        "ConfigMap" if part.edited => {
            return keep(format!(
                "it is not as `drawbridge render` wrote it; when you do not need it: kubectl -n {namespace} delete configmap {name}"
            ));
        }
        "PodMonitor" if namespace != options.operator_namespace => {
            return keep(format!(
                "it names Pods of its own namespace, which is not the operator's; when you do not need it: kubectl -n {namespace} delete podmonitor {name}"
            ));
        }
        kind if kind.contains("AdmissionPolicy") => Phase::Policies,
        kind if kind.ends_with("WebhookConfiguration") => Phase::Webhooks,
        "ConfigMap" | "Secret" | "Lease" | "CustomResourceDefinition" | "PodMonitor" | "PrometheusRule" => Phase::Rest,
        _ => Phase::Operator,
    };
    let effect = if phase == Phase::Rest && text(object, "/kind") == "CustomResourceDefinition" {
        "deleted, and every object that is stored under it, with what that controls"
    } else {
        "deleted"
    };
    plan.steps.push(delete(phase, part, effect));
}

/// A NetworkPolicy that lets only its Agents reach a ModelAPI: it goes with that, and until then says what it says now.
fn restricting(plan: &mut Plan, part: &Part) {
    let object = &part.object;
    let definition = format!("CustomResourceDefinition {}.{}", Kind::ModelApi.plural(), Kind::ModelApi.group());
    if plan.steps.iter().any(|step| step.object == definition) {
        return;
    }
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let api = survey::controller(object).map_or("", |owner| text(owner, "/name"));
    let why = format!(
        "it lets in the Agents that name ModelAPI {api} now, and nobody adds those that come later; it goes with that ModelAPI. When you do not need it: \
         kubectl -n {namespace} delete networkpolicy {name}"
    );
    plan.stays.push(Kept { object: title(object), why, planned: true });
}

/// What we put on something that makes Pods.
fn workload(plan: &mut Plan, part: &Part) {
    let object = &part.object;
    let step = |action, effect: &str| Step {
        phase: Phase::Workloads,
        object: title(object),
        path: part.path.clone(),
        action,
        effect: effect.to_owned(),
    };
    let uid = text(object, "/metadata/uid");
    let managed = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entry = managed.into_iter().flatten().find(|entry| entry["manager"] == keys::MANAGER_ENROLMENT);
    if let Some(entry) = entry {
        let identity = json!({
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "metadata": {"name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"], "uid": uid},
        });
        let labels = entry["fieldsV1"].to_string().contains(&format!("f:{}", keys::LABEL_TYPE));
        let effect = match (labels, replaces(object)) {
            (true, true) => "label and hash are taken off; its Pods roll once and come back without sidecars",
            (true, false) => {
                "label and hash are taken off; Pods that exist keep their sidecars until they are replaced"
            }
            (false, true) => {
                "the hash is taken off, the label is yours; its Pods roll once and come back without sidecars"
            }
            (false, false) => "the hash is taken off, the label is yours; Pods that exist keep their sidecars",
        };
        let manager = keys::MANAGER_ENROLMENT.to_owned();
        plan.steps.push(step(Action::Release { identity, manager }, effect));
    }
    if let Some((patch, effect)) = notes(object) {
        plan.steps.push(step(Action::Merge { patch }, effect));
    }
}

/// Annotations of ours that no server-side apply takes off: by which controllers remember what they have begun, and what others have
/// copied of those that enrolment applied.
pub(super) fn left_behind(object: &Value) -> impl Iterator<Item = &'static str> {
    let applied = object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let ours = applied.filter(|entry| entry["manager"] == keys::MANAGER_ENROLMENT);
    let ours: String = ours.map(|entry| entry["fieldsV1"].to_string()).collect();
    let copied = written::released().filter(|(at, _)| *at == At::Annotation).map(|(_, key)| key);
    let copied: Vec<_> = copied.filter(|key| !ours.contains(key)).collect();
    let keys: Vec<_> = written::notes().chain(copied).collect();
    keys.into_iter().filter(|key| member(object, "/metadata/annotations", key).is_some())
}

/// What finishes what controllers have begun, and takes their notes off.
fn notes(object: &Value) -> Option<(Value, &'static str)> {
    let note = |key: &str| member(object, "/metadata/annotations", key);
    let mut annotations: Map<String, Value> = left_behind(object).map(|key| (key.to_owned(), Value::Null)).collect();
    if annotations.is_empty() {
        return None;
    }
    let mut effect = "an annotation that Drawbridge wrote is taken off; no Pod is replaced";
    let mut spec = Value::Null;
    if note(keys::ANNOTATION_SUSPENDED).is_some() {
        spec = json!({"suspend": false});
        effect = "resumed: Drawbridge had suspended it";
    }
    if note(keys::ANNOTATION_RESTART_PENDING).is_some() {
        annotations.insert(keys::ANNOTATION_SANDBOX_POD.to_owned(), Value::Null);
        effect = "its restart is finished: its Pod is made again, without sidecars";
        // Replicas that somebody else has set meanwhile stay.
        if object.pointer("/spec/replicas") == Some(&json!(0)) {
            let before = note(keys::ANNOTATION_RESTART_REPLICAS).and_then(|text| text.parse::<u32>().ok());
            spec = json!({"replicas": before.unwrap_or(1)});
        }
    }
    let mut patch = json!({"metadata": {"uid": text(object, "/metadata/uid"), "annotations": annotations}});
    if !spec.is_null() {
        patch["spec"] = spec;
    }
    Some((patch, effect))
}

/// A change of the template replaces its Pods.
pub(super) fn replaces(object: &Value) -> bool {
    let by_itself = ["Deployment", "StatefulSet", "DaemonSet"].contains(&text(object, "/kind"));
    let held = object.pointer("/spec/paused") == Some(&Value::Bool(true))
        || text(object, "/spec/updateStrategy/type") == "OnDelete";
    by_itself && !held
}

/// Something that makes Pods and that nothing of the plan rolls, while Pods of it run with sidecars.
fn restart(plan: &mut Plan, part: &Part, (found, options): (&Found, &Options)) {
    let object = &part.object;
    let kind = text(object, "/kind");
    let namespace = text(object, "/metadata/namespace");
    let Some(kind) = WorkloadKind::WITH_TEMPLATE.into_iter().find(|known| known.as_str() == kind) else { return };
    let workload = Workload { kind, name: text(object, "/metadata/name").to_owned() };
    let injected = found.injected.get(&(namespace.to_owned(), workload.clone())).copied().unwrap_or_default();
    let rolls = plan.steps.iter().any(|step| step.path == part.path && matches!(step.action, Action::Release { .. }));
    if injected == 0 || (rolls && replaces(object)) {
        return;
    }
    if replaces(object) && !options.keep_pods {
        let uid = text(object, "/metadata/uid").to_owned();
        plan.steps.push(Step {
            phase: Phase::Restarts,
            object: title(object),
            path: part.path.clone(),
            action: Action::Restart { uid },
            effect: format!("restarted; {} come back without sidecars", pods(injected)),
        });
        return;
    }
    let how = kind.restart(namespace, &workload.name);
    let keeps = if injected == 1 { "keeps its sidecars until it is" } else { "keep their sidecars until they are" };
    let why = format!("{} of it {keeps} replaced: {how}", pods(injected));
    plan.later.push(Kept { object: title(object), why, planned: true });
}

fn pods(number: usize) -> String {
    if number == 1 { "1 Pod".to_owned() } else { format!("{number} Pods") }
}

fn finalizer(plan: &mut Plan, part: &Part) {
    let object = &part.object;
    let all: Vec<&str> = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let others: Vec<&str> = all.iter().copied().filter(|name| !keys::FINALIZERS.contains(name)).collect();
    let marked = member(object, "/metadata/labels", keys::LABEL_POLICY_PARAMETER).is_some();
    let finalized = others.len() < all.len();
    let effect = match (finalized, marked) {
        (false, false) => return,
        (true, false) => "its finalizer is taken off; the object stays yours",
        (false, true) => "our label is taken off; the object stays yours",
        (true, true) => "its finalizer and our label are taken off; the object stays yours",
    };
    let mut patch = json!({"metadata": {
        "uid": text(object, "/metadata/uid"),
        "resourceVersion": text(object, "/metadata/resourceVersion"),
    }});
    if finalized {
        patch["metadata"]["finalizers"] = if others.is_empty() { Value::Null } else { json!(others) };
    }
    if marked {
        patch["metadata"]["labels"] = json!({keys::LABEL_POLICY_PARAMETER: null});
    }
    plan.steps.push(Step {
        phase: Phase::Finalizers,
        object: title(object),
        path: part.path.clone(),
        action: Action::Merge { patch },
        effect: effect.to_owned(),
    });
}

/// A ConfigMap or ServiceAccount that we made in somebody's namespace.
fn belonging(plan: &mut Plan, part: &Part, found: &Found) {
    let object = &part.object;
    let kind = text(object, "/kind");
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    if part.edited {
        let why = format!(
            "somebody changed it; when you do not need it: kubectl -n {namespace} delete {} {name}",
            kind.to_lowercase()
        );
        return plan.stays.push(Kept { object: title(object), why, planned: true });
    }
    let users: BTreeSet<&str> = found.users_of(kind, namespace, name).collect();
    if let Some(first) = users.first() {
        let more = if users.len() > 1 { format!(" and {} more", users.len() - 1) } else { String::new() };
        let why = format!(
            "{first}{more} of that namespace still needs it; replace those Pods (kubectl rollout restart), then run uninstall again"
        );
        return plan.later.push(Kept { object: title(object), why, planned: true });
    }
    // Nobody knows whether a Pod needs it.
    if found.unread.contains(namespace) {
        let why = format!(
            "what may use it in namespace {namespace} could not all be read; run uninstall again as somebody who may list Pods, Jobs, Deployments, \
             StatefulSets, DaemonSets, CronJobs and RoleBindings there"
        );
        return plan.later.push(Kept { object: title(object), why, planned: true });
    }
    plan.steps.push(delete(Phase::Belongings, part, "deleted: no Pod uses it"));
}

/// An AgentCard that we made for a workload: nobody keeps it up to date any more, and trust that nobody judges is none.
fn card(plan: &mut Plan, part: &Part) {
    let is_card = text(&part.object, "/kind") == Kind::AgentCard.as_str();
    let by = member(&part.object, "/metadata/labels", keys::LABEL_APP_MANAGED_BY);
    if is_card && by == Some(keys::MANAGED_BY_DRAWBRIDGE) {
        plan.steps.push(delete(
            Phase::Belongings,
            part,
            "deleted: it was made for its workload, and nobody reads it anew",
        ));
    }
}

#[cfg(test)]
mod tests;
