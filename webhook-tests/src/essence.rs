//! What a person wrote of an object, without what servers and controllers count.

use serde_json::Value;

/// An object without managedFields, generation, resourceVersion, status, and the revision that the Deployment controller notes.
#[must_use]
pub fn essence(object: &Value) -> Value {
    let mut kept = object.clone();
    if let Some(members) = kept.as_object_mut() {
        members.remove("status");
    }
    if let Some(metadata) = kept.get_mut("metadata").and_then(Value::as_object_mut) {
        for counted in ["managedFields", "generation", "resourceVersion"] {
            metadata.remove(counted);
        }
    }
    if let Some(annotations) = kept.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_counted_goes() {
        let object = json!({"kind": "Deployment", "status": {"replicas": 1}, "spec": {"replicas": 1}, "metadata": {
            "name": "a", "generation": 2, "resourceVersion": "5", "managedFields": [], "labels": {"b": "c"},
            "annotations": {"deployment.kubernetes.io/revision": "3", "mine": "kept"}}});
        let kept = json!({"kind": "Deployment", "spec": {"replicas": 1},
            "metadata": {"name": "a", "labels": {"b": "c"}, "annotations": {"mine": "kept"}}});
        assert_eq!(essence(&object), kept);
    }
}
