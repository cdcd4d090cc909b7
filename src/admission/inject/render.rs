//! The plan as operations against the Pod as received.
//!
//! In: the raw Pod, what its status annotation records, the plan. Out: operations; none when everything is in place.
//! Our elements are added where they belong, surviving ones repaired in place and moved as they are, and recorded
//! ones that the plan does not want removed. Nothing else is touched.

use std::sync::Arc;

use serde_json::{Value, json};

use super::edit;
use super::parts::{self, Parts, Rendered};
use super::plan::InjectionPlan;
use super::pod::{PodView, text};
use super::refuse::volumes::same_source;
use super::repair;
use super::status::Status;
use super::strip;
use super::token;
use crate::admission::patch::{self, Operation, pointer};
use crate::domain::keys;

/// Where our elements stand in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// Ahead of everybody's.
    First,
    /// Behind everybody's.
    Last,
    /// Behind the first of the user's, in our own order.
    Behind,
}

/// The operations that make the Pod what the plan says.
pub(super) fn operations(
    pod: PodView<'_>,
    recorded: &Status<'_>,
    (plan, ours): (&InjectionPlan<'_>, &Parts),
    status: &Status<'_>,
) -> Vec<Operation> {
    let mut out = Vec::new();
    user_containers(pod, recorded, plan, &mut out);
    let placement = if plan.init_first { Placement::First } else { Placement::Last };
    let token = token::mount(pod);
    for (key, placement, wanted) in
        [("initContainers", placement, &ours.init), ("containers", Placement::Behind, &ours.containers)]
    {
        let placed = list(pod, (key, placement), wanted, recorded, &mut out);
        if let Some(token) = &token {
            let at = pointer(["spec", key]);
            let mounted = |(place, which): &(usize, usize)| {
                token::operation(&at.with_trailing_token(*place), wanted[*which].value(), token)
            };
            out.extend(placed.iter().filter_map(mounted));
        }
    }
    volumes(pod, recorded, &ours.volumes, &mut out);
    identity(pod, recorded, plan, &mut out);
    annotations(pod, plan, status, &mut out);
    scheduling_gate(pod, &mut out);
    out
}

/// Changes to the user's containers, ahead of anything that shifts an index.
fn user_containers(pod: PodView<'_>, recorded: &Status<'_>, plan: &InjectionPlan<'_>, out: &mut Vec<Operation>) {
    if plan.edits.is_empty() && recorded.edits.is_empty() {
        return;
    }
    let (mut wanted, mut before) = (edit::by_container(&plan.edits), edit::by_container(&recorded.edits));
    for (list, index, container) in pod.all_containers() {
        let name = text(container, "name");
        let (wanted, before) = (wanted.remove(name), before.remove(name));
        if wanted.is_some() || before.is_some() {
            let at = pointer(["spec", list]).with_trailing_token(index);
            edit::operations(container, &at, &wanted.unwrap_or_default(), &before.unwrap_or_default(), out);
        }
    }
}

/// An element of a list: one of ours by its place in the plan, or somebody's by its old index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Ours(usize),
    Other(usize),
}

/// The list as the plan wants it. Out, beside the operations: those of ours that are in it as rendered, by their place in
/// the list and in the plan; those that were there before are not among them.
fn list(
    pod: PodView<'_>,
    (key, placement): (&str, Placement),
    wanted: &[Arc<Rendered>],
    recorded: &Status<'_>,
    out: &mut Vec<Operation>,
) -> Vec<(usize, usize)> {
    let at = pointer(["spec", key]);
    if !pod.has_list(key) {
        if !wanted.is_empty() {
            out.push(patch::add_parts(at, wanted.iter().map(|ours| Arc::clone(&ours.part)).collect()));
        }
        return (0..wanted.len()).map(|which| (which, which)).collect();
    }
    let mut fresh = vec![true; wanted.len()];
    let mut current = Vec::new();
    let mut gone = Vec::new();
    for (index, element) in pod.list(key).iter().enumerate() {
        let Some(record) = recorded.record(key, text(element, "name")) else {
            current.push(Slot::Other(index));
            continue;
        };
        match wanted.iter().position(|part| part.record.name == record.name) {
            Some(which) if !current.contains(&Slot::Ours(which)) => {
                let at = at.with_trailing_token(index);
                fresh[which] = recorded.brought && !repair::is_as_rendered(element, wanted[which].value());
                if !recorded.brought {
                    repair::operations(element, &wanted[which], record, &at, out);
                } else if fresh[which] {
                    out.push(patch::replace_part(at, &wanted[which].part));
                }
                current.push(Slot::Ours(which));
            }
            _ => gone.push(index),
        }
    }
    if current.is_empty() && wanted.is_empty() {
        if !gone.is_empty() {
            out.push(patch::remove(at));
        }
        return Vec::new();
    }
    out.extend(gone.into_iter().rev().map(|index| patch::remove(at.with_trailing_token(index))));
    for (place, slot) in target(&current, wanted.len(), placement).into_iter().enumerate() {
        if current.get(place) == Some(&slot) {
            continue;
        }
        if let Some(from) = current.iter().position(|here| *here == slot) {
            out.push(patch::relocate(at.with_trailing_token(from), at.with_trailing_token(place)));
            current.remove(from);
        } else if let Slot::Ours(which) = slot {
            let to = if place == current.len() { at.with_trailing_token("-") } else { at.with_trailing_token(place) };
            out.push(patch::add_part(to, &wanted[which].part));
        }
        current.insert(place, slot);
    }
    let ours = |(place, slot): (usize, &Slot)| match slot {
        Slot::Ours(which) if fresh[*which] => Some((place, *which)),
        _ => None,
    };
    current.iter().enumerate().filter_map(ours).collect()
}

/// The order we want, moving as little as possible.
fn target(current: &[Slot], wanted: usize, placement: Placement) -> Vec<Slot> {
    let ours = (0..wanted).map(Slot::Ours);
    let others = || current.iter().copied().filter(|slot| matches!(slot, Slot::Other(_)));
    match placement {
        Placement::First => ours.chain(others()).collect(),
        Placement::Last => others().chain(ours).collect(),
        Placement::Behind => {
            let missing = ours.clone().filter(|slot| !current.contains(slot));
            let as_is: Vec<Slot> = current.iter().copied().chain(missing).collect();
            let in_order = as_is.iter().filter(|slot| matches!(slot, Slot::Ours(_))).copied().eq(ours.clone());
            if in_order && matches!(as_is.first(), Some(Slot::Other(_))) {
                as_is
            } else {
                others().chain(ours).collect()
            }
        }
    }
}

fn volumes(pod: PodView<'_>, recorded: &Status<'_>, wanted: &[Arc<Rendered>], out: &mut Vec<Operation>) {
    let at = pointer(["spec", "volumes"]);
    if !pod.has_list("volumes") {
        if !wanted.is_empty() {
            out.push(patch::add_parts(at, wanted.iter().map(|ours| Arc::clone(&ours.part)).collect()));
        }
        return;
    }
    let present = pod.list("volumes");
    let (mut gone, mut names) = (Vec::new(), Vec::new());
    for (index, volume) in present.iter().enumerate() {
        let name = text(volume, "name");
        // Of several of one name the first is ours: the API server takes no more than one.
        let Some(record) = recorded.record("volumes", name).filter(|_| !names.contains(&name)) else { continue };
        names.push(name);
        match wanted.iter().find(|ours| ours.record.name == record.name) {
            Some(ours) if same_source(volume, ours.value()) => {}
            Some(ours) => out.push(patch::replace_part(at.with_trailing_token(index), &ours.part)),
            None => gone.push(index),
        }
    }
    let is_there = |ours: &&Arc<Rendered>| present.iter().any(|volume| text(volume, "name") == ours.record.name);
    let missing: Vec<_> = wanted.iter().filter(|ours| !is_there(ours)).collect();
    if gone.len() == present.len() && !gone.is_empty() && missing.is_empty() {
        out.push(patch::remove(at));
        return;
    }
    out.extend(gone.into_iter().rev().map(|index| patch::remove(at.with_trailing_token(index))));
    out.extend(missing.into_iter().map(|ours| patch::add_part(at.with_trailing_token("-"), &ours.part)));
}

/// ServiceAccount and fsGroup.
fn identity(pod: PodView<'_>, recorded: &Status<'_>, plan: &InjectionPlan<'_>, out: &mut Vec<Operation>) {
    let now = pod.spec("serviceAccountName").and_then(Value::as_str);
    match (&plan.service_account, &recorded.service_account) {
        (Some(name), _) if now != Some(name.as_str()) => {
            out.push(patch::add(pointer(["spec", "serviceAccountName"]), name.as_str()));
        }
        (None, Some(account)) => strip::service_account(pod, account, out),
        _ => {}
    }
    let group = pod.security_context("fsGroup");
    let context = pointer(["spec", "securityContext"]);
    if plan.fs_group && group.is_none() {
        out.push(match pod.spec("securityContext") {
            Some(Value::Object(_)) => patch::add(context.with_trailing_token("fsGroup"), 0),
            _ => patch::add(context, json!({"fsGroup": 0})),
        });
    } else if !plan.fs_group && recorded.fs_group && group.and_then(Value::as_i64) == Some(0) {
        out.push(patch::remove(context.with_trailing_token("fsGroup")));
    }
}

fn annotations(pod: PodView<'_>, plan: &InjectionPlan<'_>, status: &Status<'_>, out: &mut Vec<Operation>) {
    let wanted = [
        (keys::ANNOTATION_STATUS, Some(status.part())),
        (keys::ANNOTATION_RUNTIME_CONFIG, plan.runtime_config.as_deref().map(parts::text)),
        (keys::ANNOTATION_CONFIG_HASH, Some(parts::text(&plan.config_hash))),
    ];
    if pod.annotations().is_none() {
        let mut all: Vec<_> = wanted.into_iter().filter_map(|(key, part)| Some((key, part?))).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        out.push(patch::add_members(pointer(["metadata", "annotations"]), all));
        return;
    }
    for (key, part) in wanted {
        let at = || pointer(["metadata", "annotations", key]);
        match (pod.annotation(key), part) {
            (seen, Some(part)) if seen != part.value.as_str() => out.push(patch::add_part(at(), &part)),
            (Some(_), None) => out.push(patch::remove(at())),
            _ => {}
        }
    }
}

/// Every allowing answer takes our scheduling gate away, however often it stands there.
pub(super) fn scheduling_gate(pod: PodView<'_>, out: &mut Vec<Operation>) {
    let gates = pod.list("schedulingGates");
    let is_ours = |gate: &Value| text(gate, "name") == keys::SCHEDULING_GATE;
    let Some(first) = gates.iter().position(is_ours) else { return };
    let others: Vec<&Value> = gates.iter().filter(|gate| !is_ours(gate)).collect();
    let at = pointer(["spec", "schedulingGates"]);
    out.push(match others.len() {
        0 => patch::remove(at),
        count if count + 1 == gates.len() => patch::remove(at.with_trailing_token(first)),
        // One operation each would cost the API server the square of their number.
        _ => patch::replace(at, Value::Array(others.into_iter().cloned().collect())),
    });
}
