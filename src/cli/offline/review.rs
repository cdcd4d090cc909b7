//! One workload put before the engine, as the webhook would.

use std::borrow::Cow;

use anyhow::Context;
use serde_json::{Value, json};

use super::workload::{OFFLINE_UID, Subject};
use super::world::World;
use crate::admission::explanation::Explanation;
use crate::admission::inject;
use crate::admission::verdict::{Verdict, Warning};
use crate::api::agent_kagenti_dev;
use crate::api::review::{GroupVersionKind, Operation, Phase, Request};
use crate::cli::survey;
use crate::config::namesakes;
use crate::config::snapshot::Snapshot;
use crate::config::view::Ownership;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::workload::WorkloadKind;
use crate::store::Kind;

/// Gives the world what controllers would have made before this workload's Pods; says what that is.
///
/// # Errors
/// When the platform file or the gates file has a fault.
pub fn prepare(world: &mut World, subject: &Subject, object: &Value) -> anyhow::Result<Option<String>> {
    world.know_namespace(&subject.namespace);
    match subject.workload.kind {
        WorkloadKind::CronJob if !subject.workload.name.is_empty() => {
            world.observe_next_job(&subject.namespace, &subject.workload.name);
        }
        WorkloadKind::Job => world.observe(object, &subject.namespace),
        _ => {}
    }
    if !subject.may_have_account() {
        return Ok(None);
    }
    let template = subject.template(object).cloned().unwrap_or_default();
    let needs = inject::needs(&subject.namespace, &subject.workload, &template, &world.snapshot()?);
    Ok(needs
        .service_account
        .filter(|name| world.make_service_account(&subject.namespace, name) || world.is_made(&subject.namespace, name)))
}

/// What the webhook would answer for this Pod.
///
/// # Errors
/// When the Pod cannot be written as JSON.
pub fn evaluate(subject: &Subject, pod: &Value, snapshot: &Snapshot) -> anyhow::Result<Verdict> {
    let pod = noted(subject, pod, snapshot);
    let of = (&*pod, subject.namespace.as_str());
    let mut verdict = with_request(Phase::Mutate, pods(), of, |request| crate::admission::evaluate(request, snapshot))?;
    verdict.warnings.iter_mut().for_each(|warning| unnamed(subject, warning));
    Ok(verdict)
}

/// The same answer, with the tree behind it.
///
/// # Errors
/// When the Pod cannot be written as JSON.
pub fn explain(subject: &Subject, pod: &Value, snapshot: &Snapshot) -> anyhow::Result<(Verdict, Explanation)> {
    explained(subject, &noted(subject, pod, snapshot), snapshot)
}

/// The same of a Pod as a cluster would judge it: `sent` is the Pod as it reaches the API server, and `pod` the same, or what of it was there before an
/// earlier call of ours. Of one that was copied from an injected Pod the API server notes the variables of tracing as the requester's own, so
/// that controllers and webhook leave them out of the configuration hash. `inject`, which has to take back what it added itself, does not.
///
/// # Errors
/// When the Pod cannot be written as JSON.
pub fn explain_as_sent(
    subject: &Subject,
    (pod, sent): (&Value, &Value),
    snapshot: &Snapshot,
) -> anyhow::Result<(Verdict, Explanation)> {
    let mut pod = noted(subject, pod, snapshot);
    let is_copy = survey::annotation(sent, keys::ANNOTATION_STATUS).is_some();
    if is_sent(subject, sent) && is_copy && pod.get("metadata").is_some_and(Value::is_object) {
        let notes = &mut pod.to_mut()["metadata"]["managedFields"];
        match notes.as_array_mut() {
            Some(notes) => notes.push(brought(sent)),
            None => *notes = json!([brought(sent)]),
        }
    }
    explained(subject, &pod, snapshot)
}

/// What the API server notes of the containers of a Pod that is sent, as far as it decides: their names and those of their variables.
fn brought(sent: &Value) -> Value {
    let key = |name: &Value| format!("k:{{\"name\":\"{}\"}}", name.as_str().unwrap_or_default());
    let named = |list: &Value, note: &dyn Fn(&Value) -> Value| {
        let items = list.as_array().into_iter().flatten();
        Value::Object(items.map(|item| (key(&item["name"]), note(item))).collect())
    };
    let of_variable = |_: &Value| json!({});
    let of_container = |container: &Value| json!({"f:env": named(&container["env"], &of_variable)});
    let of_list = |list: &str| named(&sent["spec"][list], &of_container);
    let spec = json!({"f:containers": of_list("containers"), "f:initContainers": of_list("initContainers")});
    json!({"fieldsV1": {"f:spec": spec}})
}

/// Whether a Pod is sent: as a manifest, or made of a template. Only what is stored has been through us.
#[must_use]
pub fn is_sent(subject: &Subject, pod: &Value) -> bool {
    subject.workload.kind != WorkloadKind::Pod || pod.pointer("/metadata/uid").is_none()
}

fn explained(subject: &Subject, pod: &Value, snapshot: &Snapshot) -> anyhow::Result<(Verdict, Explanation)> {
    let of = (pod, subject.namespace.as_str());
    let (mut verdict, mut explanation) =
        with_request(Phase::Mutate, pods(), of, |request| crate::admission::explain(request, snapshot))?;
    verdict.warnings.iter_mut().for_each(|warning| unnamed(subject, warning));
    explanation.warnings = verdict.warnings.iter().map(ToString::to_string).collect();
    Ok((verdict, explanation))
}

/// The Pod as it reaches the webhook. Whoever may write annotations can write the record of our parts; of a Pod that is sent with one the API
/// server notes that, and the webhook believes it less. Not noted is what an earlier `inject` may have written, which a second one leaves as it is:
/// it stands beside a container of ours, and names no account but one that we give to Pods.
fn noted<'p>(subject: &Subject, pod: &'p Value, snapshot: &Snapshot) -> Cow<'p, Value> {
    let Some(record) = survey::annotation(pod, keys::ANNOTATION_STATUS) else { return Cow::Borrowed(pod) };
    let record: Value = serde_json::from_str(record).unwrap_or_default();
    let account = record.pointer("/serviceAccount/now").and_then(Value::as_str);
    let accounts = snapshot.namespace(&subject.namespace).map(|view| &view.service_accounts);
    let is_ours = |account: &str| accounts.and_then(|all| all.get(account)) == Some(&Ownership::Ours);
    if !is_sent(subject, pod) || (survey::is_injected(pod) && account.is_none_or(is_ours)) {
        return Cow::Borrowed(pod);
    }
    let field = format!("f:{}", keys::ANNOTATION_STATUS);
    let mut noted = pod.clone();
    noted["metadata"]["managedFields"] = json!([{"fieldsV1": {"f:metadata": {"f:annotations": {field: {}}}}}]);
    Cow::Owned(noted)
}

/// A workload whose name the API server makes up is of a kind that is known; only the name of its account is not yet.
fn unnamed(subject: &Subject, warning: &mut Warning) {
    if warning.reason == Reason::ServiceAccountKept && subject.is_named_later() {
        warning.text = format!(
            "the API server makes the name of this {} (metadata.generateName), and on the cluster its Pods get a ServiceAccount of \
             that name, which nobody knows here; set spec.serviceAccountName to name one yourself",
            subject.kind()
        );
    }
}

/// What a webhook would answer for an object of our own kinds that is created.
///
/// # Errors
/// When the object cannot be written as JSON.
pub fn own_kind(object: &Value, namespace: &str, phase: Phase, snapshot: &Snapshot) -> anyhow::Result<Verdict> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or((agent_kagenti_dev::GROUP, "v1alpha1"));
    let kind = GroupVersionKind { group: group.into(), version: version.into(), kind: text("kind").into() };
    with_request(phase, kind, (object, namespace), |request| crate::admission::evaluate(request, snapshot))
}

/// What a webhook would warn of about an object whose Deployment another one of its namespace wants, too. Of kinds that are not run under a
/// name of their own, nothing.
///
/// # Errors
/// When the object cannot be written as JSON.
pub fn namesakes(object: &Value, namespace: &str, snapshot: &Snapshot) -> anyhow::Result<Vec<Warning>> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let group = text("/apiVersion").split_once('/').map_or("", |(group, _)| group);
    if Kind::of(group, text("/kind")).is_none_or(|kind| !namesakes::KINDS.contains(&kind)) {
        return Ok(Vec::new());
    }
    let own = Some(text("/metadata/namespace")).filter(|own| !own.is_empty());
    let verdict = own_kind(object, own.unwrap_or(namespace), Phase::Validate, snapshot)?;
    Ok(verdict.warnings.into_iter().filter(|warning| warning.reason == Reason::NameConflict).collect())
}

/// The kind of the Pods that are put before the engine.
fn pods() -> GroupVersionKind<'static> {
    GroupVersionKind { group: "".into(), version: "v1".into(), kind: "Pod".into() }
}

fn with_request<T>(
    phase: Phase,
    kind: GroupVersionKind<'_>,
    (object, namespace): (&Value, &str),
    call: impl FnOnce(&Request<'_>) -> T,
) -> anyhow::Result<T> {
    let raw = serde_json::value::to_raw_value(object).context("the object cannot be written as JSON")?;
    let request = Request {
        phase,
        uid: OFFLINE_UID.into(),
        kind,
        sub_resource: None,
        name: object.pointer("/metadata/name").and_then(Value::as_str).map(Into::into),
        namespace: Some(namespace.into()),
        operation: Operation::Create,
        dry_run: Some(true),
        object: Some((&*raw).into()),
        old_object: None,
    };
    Ok(call(&request))
}
