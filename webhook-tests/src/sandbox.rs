//! The definition of Sandboxes (`agents.x-k8s.io`), as far as tests need it: every field is taken, the status is a subresource.

use serde_json::{Value, json};

/// The CustomResourceDefinition.
#[must_use]
pub fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sandboxes.agents.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {
            "group": "agents.x-k8s.io", "scope": "Namespaced",
            "names": {"kind": "Sandbox", "listKind": "SandboxList", "plural": "sandboxes", "singular": "sandbox"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
        },
    })
}
