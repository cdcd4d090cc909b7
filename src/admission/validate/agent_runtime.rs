//! The review of an AgentRuntime.
//!
//! In: the object, the stored one at UPDATE, the snapshot. Out: allowed, with warnings, or refused for the first thing that is wrong, all
//! others named beside it. Promises: nothing that is being deleted and no update that leaves the spec alone is ever refused, so no finalizer is
//! held up; an update is not refused for what was wrong before it; whether the target exists is not asked, since it may come later; what cannot be
//! read is let through.

use serde_json::Value;

use super::known;
use crate::admission::explanation::{Explanation, FieldLine};
use crate::admission::verdict::{Denial, Verdict, Warning};
use crate::api::json;
use crate::api::review::{Operation, Raw, Request};
use crate::config::inputs::{AgentRuntimeInput, AgentType, Fault, Target};
use crate::config::snapshot::Snapshot;
use crate::domain::keys;
use crate::domain::namespace_switch;
use crate::domain::reason::Reason;

/// The object of a request, as far as it is JSON.
fn parsed(raw: Option<&Raw<'_>>) -> Option<Value> {
    json::tree(raw?.get(), json::ALL_WANTED).ok()
}

/// The decision.
pub(in crate::admission) fn review(request: &Request<'_>, snapshot: &Snapshot) -> Verdict {
    let Some(object) = parsed(request.object.as_ref()).filter(Value::is_object) else {
        return unread();
    };
    let read = AgentRuntimeInput::of_object(&object);
    if read.deleting {
        return Verdict::skipped(Reason::BeingDeleted);
    }
    let before = match request.operation {
        Operation::Update => parsed(request.old_object.as_ref()),
        _ => None,
    };
    if before.as_ref().is_some_and(|before| before.get("spec") == object.get("spec")) {
        return Verdict::skipped(Reason::SpecUnchanged);
    }
    let before = before.map(|before| AgentRuntimeInput::of_object(&before));
    let mut warnings = known::unknown_fields(object.get("spec").unwrap_or(&Value::Null));
    let was_wrong = |fault: &Fault| before.as_ref().is_some_and(|before| before.faults.contains(fault));
    let (old, new): (Vec<_>, Vec<_>) = read.faults.iter().partition(|fault| was_wrong(fault));
    warnings.extend(old.into_iter().map(|fault| Warning::new(fault.reason, described(fault))));
    if let Some(denial) = refusal(&new) {
        return Verdict { warnings, ..Verdict::denied(denial) };
    }
    let name = name(request, &object);
    if let Some(target) = &read.target {
        let moved = before.as_ref().is_none_or(|before| before.target.as_ref() != Some(target));
        match duplicate(request.namespace(), target, name, snapshot) {
            Some(denial) if moved => return Verdict { warnings, ..Verdict::denied(denial) },
            Some(denial) => {
                warnings.push(Warning::new(denial.reason, format!("{}; {}", denial.sentence, denial.remedy)))
            }
            None => {}
        }
    }
    warnings.extend(without_effect(request.namespace(), read.agent_type, snapshot));
    let switch = snapshot.namespace(request.namespace()).and_then(|view| view.enabled_label.as_deref());
    let unread = namespace_switch::unread(request.namespace(), switch);
    warnings.extend(unread.map(|told| Warning::new(Reason::UnknownValue, told)));
    Verdict { warnings, ..Verdict::skipped(Reason::Accepted) }
}

/// Who only advises lets through what it cannot read: a refusal would stand where the webhook's failure would not.
fn unread() -> Verdict {
    let text = "the review holds no AgentRuntime that can be read, so nothing was looked at; drawbridge status shows what becomes of it";
    Verdict { warnings: vec![Warning::new(Reason::Undecodable, text)], ..Verdict::skipped(Reason::Undecodable) }
}

/// The object's name, empty while the API server has still to make it.
fn name<'a>(request: &'a Request<'_>, object: &'a Value) -> &'a str {
    let own = object.pointer("/metadata/name").and_then(Value::as_str);
    request.name.as_deref().filter(|name| !name.is_empty()).or(own).unwrap_or("")
}

fn described(fault: &Fault) -> String {
    format!("{}: {} ({})", fault.field, fault.message, fault.seen)
}

/// One refusal for everything that is wrong.
fn refusal(faults: &[&Fault]) -> Option<Denial> {
    let (first, others) = faults.split_first()?;
    let others: String = others.iter().map(|fault| format!("; {}", described(fault))).collect();
    let remedy = match first.reason {
        Reason::ModeNotAvailable => "name one of the modes, or leave spec.authBridgeMode out to use the namespace's",
        Reason::UnsupportedTarget => "point spec.targetRef at a workload of one of these kinds",
        _ => "correct the field",
    };
    let denial = Denial::new(first.reason, 422, format!("{}{others}", first.message), remedy);
    Some(denial.at(first.field, first.seen.as_str()))
}

/// Another AgentRuntime that governs the target.
fn duplicate(namespace: &str, target: &Target, name: &str, snapshot: &Snapshot) -> Option<Denial> {
    let first = snapshot.namespace(namespace)?.governors.winner(target.kind, &target.name)?;
    if &*first.name == name {
        return None;
    }
    let (kind, workload, first) = (target.kind.as_str(), &target.name, &first.name);
    let denial = Denial::new(
        Reason::DuplicateTarget,
        422,
        format!("an AgentRuntime already targets {kind} {workload} in namespace {namespace}: {first}"),
        format!("change {first}, or delete it first"),
    );
    let more = format!("kubectl get agentruntime {first} -n {namespace} -o yaml");
    Some(denial.at("spec.targetRef.name", &**workload).with_more(more))
}

/// What keeps the Pods as they are although the AgentRuntime is in order.
fn without_effect(namespace: &str, agent_type: Option<AgentType>, snapshot: &Snapshot) -> Option<Warning> {
    let gates = &snapshot.gates;
    let label = snapshot.namespace(namespace).unwrap_or(&snapshot.fresh).enabled_label.as_deref();
    let reason = if keys::SYSTEM_NAMESPACES.contains(&namespace) || namespace == &*snapshot.view.operator_namespace {
        Reason::SystemNamespace
    } else if !gates.global_enabled {
        Reason::GlobalDisabled
    } else if agent_type == Some(AgentType::Tool) && !gates.inject_tools {
        Reason::ToolsDisabled
    } else if label == Some("false") {
        Reason::NamespaceOptedOut
    } else if snapshot.require_namespace_label && label != Some("true") {
        Reason::NamespaceNotEnrolled
    } else {
        return None;
    };
    Some(Warning::new(reason, format!("the workload is labelled and its Pods stay as they are: {}", reason.sentence())))
}

/// The tree behind the decision: what was read, and what governs the target.
pub(in crate::admission) fn explain(request: &Request<'_>, snapshot: &Snapshot, verdict: &Verdict) -> Explanation {
    let object = parsed(request.object.as_ref()).unwrap_or(Value::Null);
    let read = AgentRuntimeInput::of_object(&object);
    let subject = format!("AgentRuntime {}/{}", request.namespace(), name(request, &object));
    let mut tree = Explanation::of(&subject, verdict);
    if let Some(target) = &read.target {
        tree.workload = Some(format!("{}/{}", target.kind.as_str(), target.name));
        let winner =
            snapshot.namespace(request.namespace()).and_then(|view| view.governors.winner(target.kind, &target.name));
        tree.fields.extend(winner.map(|winner| FieldLine {
            name: "governed by".to_owned(),
            value: winner.name.to_string(),
            layer: format!("created {}", winner.says.created),
            shadowed: Vec::new(),
        }));
    }
    tree
}
