//! The rule of `drawbridge-pod-bindings`: the API server copies labels and annotations of a Binding to the Pod, past every policy on Pods
//! (measured). Schedulers set none of ours.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;

use super::{Refusal, pods};
use crate::domain::keys;

/// Both ways of binding a Pod.
pub(super) fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations {
        resources: Some(["pods/binding", "bindings"].map(str::to_owned).to_vec()),
        ..pods("CREATE")
    }
}

pub(super) fn rule() -> Refusal {
    let none = |member: &str| {
        let ours = [keys::PREFIX, keys::PREFIX_AGENT].map(|prefix| format!("key.startsWith('{prefix}')")).join(" || ");
        format!("!object.metadata.?{member}.orValue({{}}).exists(key, {ours})")
    };
    Refusal {
        applies: Vec::new(),
        variables: Vec::new(),
        holds: format!("{} && {}", none("labels"), none("annotations")),
        message: format!(
            "a Binding carries no labels or annotations that begin with {} or {}: they would be copied to the Pod and change what was admitted. \
             What to do: leave them out of the Binding; what a Pod is to carry belongs in its workload's template",
            keys::PREFIX,
            keys::PREFIX_AGENT
        ),
        message_expression: None,
    }
}
