//! `drawbridge-trust-types`: where agents are cut off, a running Pod stays one: without its label no NetworkPolicy of ours selects it. A new
//! Pod may be none; that leaving is told, not refused.

use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::super::super::selectors::condition;
use super::super::super::{Install, object};
use super::super::{Refusal, pods_updated, refusal};
use super::{agents, at_least};
use crate::domain::keys;
use crate::domain::trust::TrustLevel;

/// Its name.
const NAME: &str = "drawbridge-trust-types";

pub(super) fn policy(install: &Install) -> [Value; 2] {
    let label = |of: &str| format!("{of}.metadata.?labels[?'{}']", keys::LABEL_TYPE);
    let rule = Refusal {
        // That it has ended is not asked: whoever may write its status says so, and its containers then run on for as long as they are given.
        applies: vec![condition("was-an-agent", &format!("{}.orValue('') == 'agent'", label("oldObject")))],
        variables: Vec::new(),
        holds: format!("{} == {}", label("object"), label("oldObject")),
        message: format!(
            "this namespace cuts off agents that have not proved who they are, so a running Pod keeps its label {}: agent. What to do: change \
             the workload's template, and its Pods are made anew",
            keys::LABEL_TYPE
        ),
        message_expression: None,
    };
    let mut both = refusal(install, NAME, matched(), rule);
    both[0]["spec"]["matchConstraints"]["objectSelector"] = object(&agents());
    both[0]["spec"]["matchConstraints"]["namespaceSelector"] = object(&at_least(install, TrustLevel::Enforced));
    both
}

/// The API server takes labels from an update of the status, too.
fn matched() -> NamedRuleWithOperations {
    NamedRuleWithOperations { resources: Some(["pods", "pods/status"].map(str::to_owned).into()), ..pods_updated() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::render::FailureMode;

    /// To whoever holds `*` in a namespace that is his to write: with the word of it that a Pod has ended it would be no agent any more, and run on.
    #[test]
    fn what_the_status_of_a_pod_says_frees_it_of_nothing() {
        let install = Install::new(FailureMode::Fail, keys::OPERATOR_NAMESPACE, "drawbridge:test");
        let spec = &policy(&install)[0]["spec"];
        let conditions = spec["matchConditions"].as_array().unwrap();
        let label = format!("oldObject.metadata.?labels[?'{}'].orValue('') == 'agent'", keys::LABEL_TYPE);
        assert_eq!(conditions.iter().map(|one| &one["expression"]).collect::<Vec<_>>(), [&Value::from(label)]);
        assert!(!spec.to_string().contains("oldObject.?status"), "{spec}");
        let resources = &spec["matchConstraints"]["resourceRules"][0]["resources"];
        assert_eq!(*resources, serde_json::json!(["pods", "pods/status"]));
    }
}
