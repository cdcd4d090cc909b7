//! The ClusterNetworkPolicies of a namespace, where the API server serves them: the deny and the quarantine once more, in the tier that no NetworkPolicy opens.
//!
//! In: how far trust is enforced in the namespace, who of it is in quarantine, and whom the NetworkPolicies of ours let through. Out: policies made, changed and deleted. Promises: the
//! definition's presence is the switch; one stands only beside the NetworkPolicy of the same meaning, so that labels and openings come first, and goes before it; what is
//! not ours is told and never changed; a namespace that goes takes its own along, which it owns.

use std::time::Duration;

use serde_json::{Value, json};

use super::facts::of_platform;
use super::{kaos, plan};
use crate::controllers::network_policy::memory::{Context, Plan};
use crate::controllers::scaffold::plan::{Op, Report};
use crate::controllers::trust;
use crate::domain::keys;
use crate::domain::reason::Reason;
use crate::domain::trust::TrustLevel;
use crate::policy::desired::{cluster_deny, cluster_quarantine};
use crate::store::objects::ClusterPolicyRef;
use crate::store::{Key, Kind, Reach, Store};

/// How often Services are looked up anew that it was made from.
const SERVICES: Duration = Duration::from_secs(60);

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Deny,
    Quarantine,
}

impl Which {
    const ALL: [Self; 2] = [Self::Deny, Self::Quarantine];

    fn prefix(self) -> &'static str {
        match self {
            Self::Deny => keys::PREFIX_CLUSTER_DENY,
            Self::Quarantine => keys::PREFIX_CLUSTER_QUARANTINE,
        }
    }

    /// The NetworkPolicy of the same meaning.
    fn beside(self) -> &'static str {
        match self {
            Self::Deny => keys::DEFAULT_DENY,
            Self::Quarantine => keys::QUARANTINE_POLICY,
        }
    }

    /// The one that the item of a namespace is about.
    pub(super) fn of_item(key: &Key) -> Option<Self> {
        Self::ALL.into_iter().find(|which| key.name.strip_prefix(which.prefix()) == Some(&*key.namespace))
    }

    /// Its name for a namespace.
    fn name(self, namespace: &str) -> String {
        format!("{}{namespace}", self.prefix())
    }
}

/// The items of a namespace, where there can be any.
pub(super) fn items(store: &Store, namespace: &str) -> Vec<Key> {
    if store.reach(Kind::ClusterNetworkPolicy) != Reach::Listed {
        return Vec::new();
    }
    Which::ALL.map(|which| Key::new(namespace, &which.name(namespace))).into()
}

/// Whom a change of a ClusterNetworkPolicy concerns: its own item, and the NetworkPolicy that waits for it to go.
pub(super) fn touched(name: &str) -> Vec<Key> {
    let of_one = |which: Which| {
        let namespace = name.strip_prefix(which.prefix())?;
        Some([Key::new(namespace, name), Key::new(namespace, which.beside())])
    };
    Which::ALL.into_iter().filter_map(of_one).flatten().collect()
}

/// Whether the one beside a NetworkPolicy is there, and ours. Where the definition went, they went with it; where they cannot be read any more, what
/// was read last is there.
pub(super) fn stands(store: &Store, namespace: &str, beside: &str) -> bool {
    if store.reach(Kind::ClusterNetworkPolicy) == Reach::Absent {
        return false;
    }
    let which = Which::ALL.into_iter().find(|which| which.beside() == beside);
    which.is_some_and(|which| store.cluster_policy(&which.name(namespace)).is_some_and(|policy| policy.seen.ours))
}

/// What becomes of it.
pub(super) fn plan(cx: &Context<'_>, which: Which, level: TrustLevel) -> Plan {
    let namespace = &cx.key.namespace;
    if cx.store.reach(Kind::ClusterNetworkPolicy) != Reach::Listed {
        return Plan::nothing();
    }
    let stored = cx.store.cluster_policy(&cx.key.name).filter(|policy| !policy.seen.deleting);
    let beside = cx.store.network_policy(namespace, which.beside());
    let beside = beside.is_some_and(|policy| policy.seen.is_ours() && !policy.seen.deleting);
    let spec = match which {
        Which::Deny => (level.enforces() && beside).then(|| deny(cx, level)),
        Which::Quarantine => {
            let held = trust::quarantine(cx.store, namespace);
            held.filter(|_| beside).map(|held| cluster_quarantine(namespace, held.everybody))
        }
    };
    let again = (which == Which::Deny && spec.is_some()).then_some(SERVICES);
    let ops = match (stored, spec) {
        (None, None) => Vec::new(),
        (Some(policy), spec) if !policy.seen.ours => {
            // Where nothing is wanted, nobody is in the way.
            spec.is_some().then(|| foreign(cx, which)).flatten().into_iter().collect()
        }
        (Some(policy), None) => {
            vec![Op::Delete { kind: Kind::ClusterNetworkPolicy, key: object(cx), uid: policy.uid.to_owned() }]
        }
        (None, Some(spec)) => create(cx, &spec).into_iter().collect(),
        (Some(policy), Some(spec)) if is_same(cx, &policy, &spec) => Vec::new(),
        (Some(policy), Some(spec)) => set(cx, &policy, &spec).into_iter().collect(),
    };
    Plan { again, ..Plan::of(ops) }
}

/// What is left to NetworkPolicies is what those of ours let any agent of the namespace reach by the platform's word, and by what Agents of KAOS name in
/// the namespace itself. Where a namespace says itself that its identity provider is, or its collector, the platform has to name it, too.
fn deny(cx: &Context<'_>, level: TrustLevel) -> Value {
    let namespace = &cx.key.namespace;
    let links: Vec<_> =
        plan::agents(cx.store, namespace).flat_map(|workload| kaos::wired_by_platform(cx, &workload)).collect();
    cluster_deny(namespace, level == TrustLevel::EnforcedAll, &of_platform(cx, namespace, &links))
}

fn object(cx: &Context<'_>) -> Key {
    Key::new("", &cx.key.name)
}

/// The Namespace as the owner: with it, it goes.
fn owner(cx: &Context<'_>) -> Option<Value> {
    let namespace = &cx.key.namespace;
    let uid = &cx.store.object(Kind::Namespace, namespace, namespace)?.1.uid;
    Some(json!({"apiVersion": "v1", "kind": "Namespace", "name": &**namespace, "uid": &**uid, "controller": true}))
}

fn is_same(cx: &Context<'_>, policy: &ClusterPolicyRef<'_>, spec: &Value) -> bool {
    let uid = owner(cx).map(|owner| owner["uid"].clone());
    let owned = policy.seen.controller.as_deref().map(|owner| Value::from(&*owner.uid));
    owned == uid && policy.seen.spec.as_deref() == Some(spec)
}

fn create(cx: &Context<'_>, spec: &Value) -> Option<Op> {
    let labels = json!({
        keys::LABEL_POLICY_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
        keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE,
    });
    let metadata = json!({"name": &*cx.key.name, "labels": labels, "ownerReferences": [owner(cx)?]});
    let body = json!({"metadata": metadata, "spec": spec});
    Some(Op::Create { kind: Kind::ClusterNetworkPolicy, namespace: String::new(), body })
}

fn set(cx: &Context<'_>, policy: &ClusterPolicyRef<'_>, spec: &Value) -> Option<Op> {
    let operations = json!([
        {"op": "test", "path": "/metadata/uid", "value": policy.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": policy.version.to_string()},
        {"op": "add", "path": "/metadata/ownerReferences", "value": [owner(cx)?]},
        {"op": "add", "path": "/spec", "value": spec},
    ]);
    Some(Op::Edit { kind: Kind::ClusterNetworkPolicy, key: object(cx), operations })
}

/// Told at the NetworkPolicy of the same meaning.
fn foreign(cx: &Context<'_>, which: Which) -> Option<Op> {
    let (namespace, name) = (&cx.key.namespace, &cx.key.name);
    let beside = cx.store.network_policy(namespace, which.beside())?;
    let message = format!(
        "ClusterNetworkPolicy {name} is not Drawbridge's, so it is left as it is, and other NetworkPolicies of namespace {namespace} can open what this one cuts \
         off. What to do: put what it says into a policy of another name, then: kubectl delete clusternetworkpolicy {name}"
    );
    let (about, uid, since) = (Key::new(namespace, which.beside()), beside.uid.to_owned(), String::new());
    Some(Op::Report(Report { kind: Kind::NetworkPolicy, about, uid, reason: Reason::NameConflict, message, since }))
}
