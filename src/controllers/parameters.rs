//! The ServiceAccounts that parametrise policies of the API server: nothing runs under them, and what a policy goes by stands in their annotations.
//!
//! In: the name of one and what is to be written on it. Out: the operation that makes it so; none where it is. They are ServiceAccounts because a
//! policy may take only those built-in kinds as parameters that the API server watches from its start on ([`keys::GATE`]).

use serde_json::{Map, Value, json};

use super::scaffold::controller::Controller;
use super::scaffold::plan::{Context, Op};
use crate::domain::keys;
use crate::store::{Key, Kind, Store};

/// The write that puts these annotations on the ServiceAccount of that name in the operator's namespace.
pub(super) fn written<C: Controller>(cx: &Context<'_, C>, name: &str, annotations: &[(&str, String)]) -> Option<Op> {
    let namespace = cx.store.operator_namespace();
    let wanted: Map<String, Value> =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), Value::from(&**value))).collect();
    match cx.store.service_account(namespace, name) {
        None => {
            let metadata = json!({
                "name": name,
                "namespace": namespace,
                "labels": {keys::LABEL_APP_MANAGED_BY: keys::MANAGED_BY_DRAWBRIDGE},
                "annotations": wanted,
            });
            let body = json!({"metadata": metadata, "automountServiceAccountToken": false});
            Some(Op::Create { kind: Kind::ServiceAccount, namespace: namespace.to_owned(), body })
        }
        Some((seen, ..)) if annotations.iter().all(|(key, value)| seen.parameter(key) == Some(value)) => None,
        Some((_, observed, _)) => {
            let patch = json!({"metadata": {"uid": &*observed.uid, "annotations": wanted}});
            Some(Op::Merge { kind: Kind::ServiceAccount, key: Key::new(namespace, name), patch })
        }
    }
}

/// The uid of a namespace in which things can be created.
pub(super) fn uid<'s>(store: &'s Store, namespace: &str) -> Option<&'s str> {
    store.namespace(namespace)?;
    Some(&store.kept(Kind::Namespace, namespace, namespace)?.uid)
}

/// Whether the API server makes Pods of agents in that namespace, or every Pod, as far as they wait for what cuts them off.
pub(super) fn is_told(store: &Store, namespace: &str, all: bool) -> bool {
    let annotation = if all { keys::ANNOTATION_ARMED_ALL } else { keys::ANNOTATION_ARMED };
    let list = store
        .service_account(store.operator_namespace(), keys::ARMED)
        .and_then(|(seen, ..)| seen.parameter(annotation));
    let uid = uid(store, namespace);
    list.zip(uid).is_some_and(|(list, uid)| list.split(',').any(|one| one == uid))
}
