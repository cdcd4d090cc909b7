//! Which workloads run under the same ServiceAccount; pure.
//!
//! In: a workload and the account that it runs as. Out: the names of others whose Pods run as that account too, so that each can sign for the
//! other. Promises: found are those that name the account in their template, enrolled or not, and those that get it without naming one; no
//! more than [`LOOKED`] are looked at, so a large namespace costs no more than a small one.

use crate::admission::inject::runs_as;
use crate::controllers::agent_card::memory::Context;
use crate::store::objects::WorkloadRef;

/// Workloads that are looked at for one card.
const LOOKED: usize = 64;
/// The account of Pods that name none.
const DEFAULT: &str = "default";

/// The other workloads of the namespace that run as `account`, by name.
pub(super) fn sharing<'a>(cx: &Context<'a>, workload: &WorkloadRef<'_>, account: &str) -> Vec<&'a str> {
    let namespace = &cx.key.namespace;
    let is_unnamed = |other: &WorkloadRef<'_>| named(other).is_none_or(|named| named == DEFAULT);
    // Those that name it; those whose own account would have that name; of the account of all, those that name none.
    let named = cx.store.naming(namespace, account);
    let dedicated = cx.store.users(namespace, account).filter(is_unnamed);
    let is_default = account == DEFAULT;
    let unnamed = cx.store.governed(namespace).filter(|other| is_default && is_unnamed(other));
    let all = named.chain(dedicated).chain(unnamed).filter(|other| other.uid != workload.uid && other.is_root());
    let mut found: Vec<_> =
        all.take(LOOKED).filter(|other| runs(cx, other, account)).map(|other| &**other.name).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn named(workload: &WorkloadRef<'_>) -> Option<String> {
    workload.seen.template.as_ref()?.account()
}

fn runs(cx: &Context<'_>, other: &WorkloadRef<'_>, account: &str) -> bool {
    // Who names one keeps it; who names none gets what the webhook would give.
    match named(other) {
        Some(named) if named != DEFAULT => return named == account,
        _ if !other.is_governed() => return account == DEFAULT,
        _ => {}
    }
    let template = other.governed_template(&cx.facts.snapshot.labels);
    let runs_as =
        template.and_then(|template| runs_as(&cx.key.namespace, &other.identity(), &template, &cx.facts.snapshot));
    runs_as.is_some_and(|runs_as| runs_as.account == account)
}
