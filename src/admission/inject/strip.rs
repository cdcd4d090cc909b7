//! Taking out what the status annotation says we added: for `uninject`, for Pods that are no longer injected, and to
//! see the Pod as it was before us when we are called again.
//!
//! What somebody changed since is left as it is; only what is still ours goes.

use serde_json::Value;

use super::edit;
use super::pod::{PodView, text};
use super::status::{Account, Status};
use crate::admission::patch::{self, Operation, pointer};
use crate::domain::keys;

/// The operations, in an order in which every path is true when its turn comes.
pub(super) fn operations(pod: PodView<'_>, status: &Status<'_>) -> Vec<Operation> {
    let mut out = Vec::new();
    let mut recorded = edit::by_container(&status.edits);
    for (list, index, container) in pod.all_containers() {
        if let Some(edits) = recorded.remove(text(container, "name")) {
            let at = pointer(["spec", list]).with_trailing_token(index);
            edit::operations(container, &at, &[], &edits, &mut out);
        }
    }
    for list in ["initContainers", "containers", "volumes"] {
        elements(pod, list, status, &mut out);
    }
    account(pod, status, &mut out);
    annotations(pod, status, &mut out);
    out
}

/// Removes our elements of a list, the first of each name, from the back; a list that would be empty goes as a whole.
fn elements(pod: PodView<'_>, list: &str, status: &Status<'_>, out: &mut Vec<Operation>) {
    let items = pod.list(list);
    let mut ours: Vec<usize> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let name = text(item, "name");
        // Those before it are no more than there are names of ours.
        if status.record(list, name).is_some() && !ours.iter().any(|other| text(&items[*other], "name") == name) {
            ours.push(index);
        }
    }
    let at = pointer(["spec", list]);
    if !ours.is_empty() && ours.len() == items.len() {
        out.push(patch::remove(at));
    } else {
        out.extend(ours.into_iter().rev().map(|index| patch::remove(at.with_trailing_token(index))));
    }
}

/// Gives the Pod its ServiceAccount back, in both spellings: the API server fills in the second.
pub(super) fn service_account(pod: PodView<'_>, account: &Account, out: &mut Vec<Operation>) {
    for key in ["serviceAccountName", "serviceAccount"] {
        let at = pointer(["spec", key]);
        if pod.spec(key).and_then(Value::as_str) == Some(account.now.as_str()) {
            out.push(match &account.was {
                Some(was) => patch::replace(at, was.as_str()),
                None => patch::remove(at),
            });
        }
    }
}

fn account(pod: PodView<'_>, status: &Status<'_>, out: &mut Vec<Operation>) {
    if let Some(account) = &status.service_account {
        service_account(pod, account, out);
    }
    if status.fs_group && pod.security_context("fsGroup").and_then(Value::as_i64) == Some(0) {
        let alone = pod.spec("securityContext").and_then(Value::as_object).is_some_and(|context| context.len() == 1);
        let context = pointer(["spec", "securityContext"]);
        out.push(patch::remove(if alone { context } else { context.with_trailing_token("fsGroup") }));
    }
}

fn annotations(pod: PodView<'_>, status: &Status<'_>, out: &mut Vec<Operation>) {
    let Some(present) = pod.annotations() else { return };
    let mut gone: Vec<&str> = [keys::ANNOTATION_STATUS, keys::ANNOTATION_RUNTIME_CONFIG]
        .into_iter()
        .filter(|key| present.contains_key(*key))
        .collect();
    let hash = keys::ANNOTATION_CONFIG_HASH;
    match (&status.template_hash, pod.annotation(hash)) {
        (Some(was), Some(now)) if was != now => {
            out.push(patch::replace(pointer(["metadata", "annotations", hash]), was.as_str()));
        }
        (None, Some(_)) => gone.push(hash),
        _ => {}
    }
    if gone.len() == present.len() {
        out.push(patch::remove(pointer(["metadata", "annotations"])));
    } else {
        out.extend(gone.into_iter().map(|key| patch::remove(pointer(["metadata", "annotations", key]))));
    }
}
