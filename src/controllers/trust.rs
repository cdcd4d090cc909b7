//! Whom the cards of a namespace prove to be who they say; pure.
//!
//! In: what is known of cards and workloads, and what the platform says. Out: how far trust is enforced in a namespace, who of it is in
//! quarantine, the card that counts for a workload, and what that proves. Promise: one place, for the labels on Pods and for NetworkPolicies
//! alike; who is in quarantine is trusted by nobody, whatever a card proves.

pub(in crate::controllers) mod opened;

use crate::controllers::scaffold::controller::Controller;
use crate::controllers::scaffold::plan::Context;
use crate::domain::keys;
use crate::domain::quarantine::Quarantine;
use crate::domain::trust::TrustLevel;
use crate::domain::workload::WorkloadKind;
use crate::store::objects::{CardRef, WorkloadRef};
use crate::store::{CardTarget, Store, Trust};

/// The kinds of workloads whose agents can be trusted: their Pods stay, and are known.
pub(in crate::controllers) const KINDS: [WorkloadKind; 4] =
    [WorkloadKind::Deployment, WorkloadKind::StatefulSet, WorkloadKind::DaemonSet, WorkloadKind::Sandbox];

/// How far trust is enforced in a namespace; `None` of one that goes, that is not served, or that is not known yet.
pub(in crate::controllers) fn level<C: Controller>(cx: &Context<'_, C>, namespace: &str) -> Option<TrustLevel> {
    let seen = cx.store.namespace(namespace)?;
    cx.facts.snapshot.namespace(namespace)?;
    let label = seen.labels.get(keys::LABEL_TRUST).map(String::as_str);
    Some(cx.facts.platform.cards().trust.in_force(namespace, cx.store.operator_namespace(), label))
}

/// Who of a namespace is in quarantine; nobody of a system namespace, or of our own, ever is.
pub(in crate::controllers) fn quarantine<'a>(store: &'a Store, namespace: &str) -> Option<&'a Quarantine> {
    if namespace == store.operator_namespace() || keys::SYSTEM_NAMESPACES.contains(&namespace) {
        return None;
    }
    store.namespace(namespace)?.quarantine.as_deref()
}

/// The card that counts for a workload: a person's before a controller's, then the oldest, then by name.
pub(in crate::controllers) fn card_of<'a>(
    store: &'a Store,
    namespace: &str,
    workload: &WorkloadRef<'_>,
) -> Option<CardRef<'a>> {
    let target = CardTarget::of_workload(workload.seen.kind, workload.name);
    let cards = store.agent_cards_of(namespace, &target).filter(|card| !card.seen.deleting);
    cards.min_by_key(|card| (card.seen.is_automatic(), card.seen.created.clone(), card.name.clone()))
}

/// What the cards of a workload prove of it.
pub(in crate::controllers) fn of_workload<'a>(
    store: &'a Store,
    namespace: &str,
    workload: &WorkloadRef<'_>,
) -> Trust<'a> {
    if workload.seen.deleting || !KINDS.contains(&workload.seen.kind) {
        return Trust::None;
    }
    if quarantine(store, namespace).is_some_and(|found| found.holds(workload.name)) {
        return Trust::None;
    }
    card_of(store, namespace, workload).map_or(Trust::None, |card| card.seen.trust(workload.uid))
}

#[cfg(test)]
mod tests;
