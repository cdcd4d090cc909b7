//! The list of namespaces in which what cuts off stands, on ServiceAccount [`keys::ARMED`].
//!
//! In: the NetworkPolicies `drawbridge-default-deny`, the uids of their namespaces, what the ServiceAccount says. Out: the write that brings it up to
//! date. Promises: a namespace is on the list only while the policy that is stored there cuts off, as [`cut`] reads it; one that was made
//! again under the same name is not on it by its predecessor's; nothing is taken off because it has not been read; what goes off the list goes at once;
//! what comes to a long list is gathered, because all of it goes to everybody who watches ServiceAccounts; at rest nothing is written.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::controllers::armed::memory::{Armed, Context};
use crate::controllers::parameters;
use crate::controllers::scaffold::plan::{Name, Plan, Row};
use crate::domain::keys;
use crate::policy::desired::{Cut, cut};
use crate::store::{Key, Kind, Store};

/// The controller's name.
pub const NAME: Name = Name::new("armed");

/// The controller's row. Its only item is the operator's namespace.
pub const ROW: Row<Armed> =
    Row { controller: NAME, touched: |store, _, kind, key| touched(store, kind, key), of_namespace, plan };

/// Time until what has not been read is looked at again.
const AGAIN: Duration = Duration::from_secs(1);
/// Time between two writes that only add, for each namespace on the list, and at most.
const GATHERED: (Duration, Duration) = (Duration::from_millis(2), Duration::from_secs(1));
/// Namespaces on one list, at most: with their uids an annotation takes 256 KiB, together with all others of its object.
const MOST: usize = 3000;

fn touched(store: &Store, kind: Kind, key: &Key) -> Vec<Key> {
    let concerns = match kind {
        Kind::NetworkPolicy => &*key.name == keys::DEFAULT_DENY,
        Kind::Namespace => store.network_policy(&key.name, keys::DEFAULT_DENY).is_some(),
        Kind::ServiceAccount => *key.namespace == *store.operator_namespace() && &*key.name == keys::ARMED,
        _ => false,
    };
    if concerns { vec![Key::new(store.operator_namespace(), "")] } else { Vec::new() }
}

fn of_namespace(store: &Store, namespace: &str) -> Vec<Key> {
    if namespace == store.operator_namespace() { vec![Key::new(namespace, "")] } else { Vec::new() }
}

fn plan(cx: Context<'_>) -> Plan {
    if [Kind::NetworkPolicy, Kind::Namespace, Kind::ServiceAccount].iter().any(|kind| !cx.store.is_certain(*kind)) {
        return Plan::later(AGAIN);
    }
    let own = cx.store.operator_namespace();
    let mut armed: Vec<(&str, Cut)> = cx
        .store
        .namespaces()
        .filter_map(|name| {
            let deny = cx.store.network_policy(name, keys::DEFAULT_DENY)?;
            let spec = deny.seen.spec.as_deref().filter(|_| deny.seen.is_ours() && !deny.seen.deleting)?;
            Some((parameters::uid(cx.store, name)?, cut(spec, own)?))
        })
        .collect();
    armed.sort_unstable();
    let list = |least: Cut| {
        let uids = armed.iter().filter(|(_, cut)| *cut >= least).map(|(uid, _)| *uid);
        uids.take(MOST).collect::<Vec<_>>().join(",")
    };
    let annotations = [(keys::ANNOTATION_ARMED, list(Cut::Agents)), (keys::ANNOTATION_ARMED_ALL, list(Cut::Everybody))];
    let Some(write) = parameters::written(&cx, keys::ARMED, &annotations) else { return Plan::nothing() };
    let least = GATHERED.0.saturating_mul(u32::try_from(armed.len()).unwrap_or(u32::MAX)).min(GATHERED.1);
    let waited = cx.own.memory.wrote.map_or(least, |wrote| cx.now.saturating_sub(wrote));
    if waited < least && !takes_off(&cx, &annotations) {
        return Plan::later(least.saturating_sub(waited));
    }
    Plan::of(vec![write])
}

/// Whether a namespace that is on a list is on it no more.
fn takes_off(cx: &Context<'_>, wanted: &[(&str, String)]) -> bool {
    let stored = cx.store.service_account(cx.store.operator_namespace(), keys::ARMED);
    let Some((seen, ..)) = stored else { return false };
    wanted.iter().any(|(annotation, list)| {
        let stays: BTreeSet<&str> = list.split(',').collect();
        let before = seen.parameter(annotation).unwrap_or_default();
        before.split(',').any(|uid| !uid.is_empty() && !stays.contains(uid))
    })
}
