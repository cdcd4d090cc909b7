//! Taking a workload over from the Go operator; pure.
//!
//! In: a workload on which its field manager owns what enrolment writes. Out: one JSON patch that takes these fields out
//! of its entry of `managedFields`, and its `managed-by` label away. Promises: the patch tests whose entry it is, so an
//! entry that has moved meanwhile is not touched; a `managed-by` that names somebody else stays, and stays whose it is. Without
//! the patch un-enrolment would leave the fields behind, as somebody else's.

use serde_json::{Value, json};

use crate::controllers::scaffold::plan::Op;
use crate::domain::keys;
use crate::store::objects::WorkloadRef;
use crate::store::{Key, Place};

/// The fields that enrolment writes, and that the Go operator wrote before.
const TAKEN: [(Place, &str); 4] = [
    (Place::Labels, keys::LABEL_TYPE),
    (Place::Labels, keys::LABEL_APP_MANAGED_BY),
    (Place::TemplateLabels, keys::LABEL_TYPE),
    (Place::TemplateAnnotations, keys::ANNOTATION_CONFIG_HASH),
];

/// The patch that takes the Go operator's entry out of the way; `None` when there is nothing of it.
pub(super) fn disown(namespace: &str, workload: &WorkloadRef<'_>) -> Option<Op> {
    let (at, owned) = workload.seen.upstream.as_ref()?;
    let entry = format!("/metadata/managedFields/{at}");
    let is_named = workload.seen.labels.get(keys::LABEL_APP_MANAGED_BY) == Some(keys::MANAGED_BY_UPSTREAM);
    let is_theirs = |key: &&str| *key != keys::LABEL_APP_MANAGED_BY || is_named;
    let taken: Vec<_> = TAKEN.iter().filter(|(place, key)| owned.owns(*place, key) && is_theirs(key)).collect();
    if taken.is_empty() {
        return None;
    }
    let mut patch = vec![
        test("/metadata/uid", workload.uid),
        test(&format!("{entry}/manager"), keys::MANAGER_UPSTREAM),
        test(&format!("{entry}/operation"), "Update"),
    ];
    for (place, key) in &taken {
        let path = format!("{entry}/fieldsV1{}/f:{}", fields_path(*place, workload), escaped(key));
        patch.push(json!({"op": "remove", "path": path}));
    }
    let managed_by = format!("/metadata/labels/{}", escaped(keys::LABEL_APP_MANAGED_BY));
    if is_named && owned.owns(Place::Labels, keys::LABEL_APP_MANAGED_BY) {
        patch.push(json!({"op": "remove", "path": managed_by}));
    }
    Some(Op::Edit { kind: workload.kind, key: Key::new(namespace, workload.name), operations: Value::Array(patch) })
}

fn test(path: &str, value: &str) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

fn fields_path(place: Place, workload: &WorkloadRef<'_>) -> String {
    let template: String = workload.seen.kind.template_path().iter().map(|part| format!("/f:{part}")).collect();
    match place {
        Place::Labels => "/f:metadata/f:labels".to_owned(),
        Place::Annotations => "/f:metadata/f:annotations".to_owned(),
        Place::TemplateLabels => format!("{template}/f:metadata/f:labels"),
        Place::TemplateAnnotations => format!("{template}/f:metadata/f:annotations"),
    }
}

/// A key as part of a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
