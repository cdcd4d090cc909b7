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
        applies: vec![
            condition("was-an-agent", &format!("{}.orValue('') == 'agent'", label("oldObject"))),
            condition("still-runs", "!(oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed'])"),
        ],
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
