//! Whether a running Pod carries the label of quarantine.
//!
//! In: who of the namespace is in quarantine, and whose the Pod is by the uids of its owners. Out: what becomes of the label. Promises: it is put
//! only while the NetworkPolicy that cuts off by it is there, since others do not hold such Pods; a Pod that its workload let go keeps it as
//! long as the workload is in quarantine, so that nobody gets out by changing other labels.

use super::plan::Change;
use crate::controllers::scaffold::plan::Context;
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::quarantine::label_of;
use crate::domain::workload::WorkloadKind;
use crate::store::Store;
use crate::store::objects::PodRef;

/// What becomes of the label; `None` when it stays as it is.
pub(super) fn change(cx: &Context<'_>, pod: &PodRef<'_>) -> Option<Change> {
    let namespace = &cx.key.namespace;
    let wanted = wanted(cx.store, namespace, pod);
    if wanted.as_deref() == pod.seen.quarantined.as_deref() {
        return None;
    }
    let cuts = || {
        let policy = cx.store.network_policy(namespace, keys::QUARANTINE_POLICY);
        policy.is_some_and(|policy| policy.seen.is_ours() && !policy.seen.deleting)
    };
    (wanted.is_none() || cuts()).then_some(Change { label: keys::LABEL_QUARANTINED, value: wanted })
}

/// Whether the Pod is in quarantine, whatever it carries by now.
pub(super) fn holds(store: &Store, namespace: &str, pod: &PodRef<'_>) -> bool {
    wanted(store, namespace, pod).is_some()
}

/// The value that the label should have.
fn wanted(store: &Store, namespace: &str, pod: &PodRef<'_>) -> Option<String> {
    let quarantine = trust::quarantine(store, namespace)?;
    let controller = pod.seen.controller.as_deref();
    if let Some(root) = controller.and_then(|owner| store.root_of(namespace, owner)) {
        return quarantine.holds(root.name).then(|| label_of(root.name));
    }
    // Whose it is is not known, or not any more: what was said of it stays.
    if let Some(value) = pod.seen.quarantined.as_deref().filter(|value| quarantine.holds_label(value)) {
        return Some(value.to_owned());
    }
    let is_watched =
        controller.is_some_and(|owner| WorkloadKind::from_group_kind(owner.group(), &owner.kind).is_some());
    // A Pod of its own, or of a kind that is not watched, is named itself.
    let named = controller.map_or(&**pod.name, |owner| &*owner.name);
    (!is_watched && quarantine.holds(named)).then(|| label_of(named))
}
